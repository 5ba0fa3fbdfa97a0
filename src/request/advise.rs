//! What is said to an agent about something that it would do by its own hands: judged, and on record as advised.

use super::{AdviceDraft, Answer};
use crate::error::Error;
use crate::space::Space;
use closer_contracts::canonical;
use closer_contracts::id::{ActorId, ArtifactId};
use closer_contracts::refs::{ActorRef, ProducerRole};
use closer_contracts::refusal::RefusalCode;
use closer_protocol::advice::{self, Asked};
use closer_protocol::{Input, Reply};
use serde_json::json;

/// How often it is judged anew because something has changed since.
const JUDGED_MAX: usize = 4;

/// Judges it and puts on record what is said.
pub(super) async fn advise(space: &dyn Space, identity: &ActorId, draft: AdviceDraft) -> Result<Answer, Error> {
    let AdviceDraft { tool, operation, target, parameters, obligation_id } = draft;
    let asked = Asked { actor: identity.clone(), tool, operation, target, parameters, obligation_id };
    let mut told = Answer::refused(&[]);
    for _ in 0..JUDGED_MAX {
        let objections = advice::objections(&space.view(), &asked, &space.moment());
        let advice = advice::draft(ArtifactId::new(space.fresh("advice")), asked.clone(), &objections);
        let data = json!({ "advice": canonical::to_value(&advice)? });
        let producer = ActorRef { actor_id: identity.clone(), role: ProducerRole::Participant };
        let reply = match space.artifact(advice.into(), producer, None) {
            Ok(submission) => space.submit(Input::Artifact(submission)).await?,
            Err(fault) => Reply::Refused(vec![fault.into()]),
        };
        told = match (&reply, objections.is_empty()) {
            (Reply::Refused(_), _) => Answer::replied(&reply, "advised"),
            (Reply::Recorded(_), true) => Answer::done(data, vec!["nothing speaks against it".to_owned()]),
            (Reply::Recorded(_), false) => Answer::refused(&objections),
        };
        if reply.refusal().is_none_or(|denial| denial.code != RefusalCode::StaleVersion) {
            return Ok(told);
        }
    }
    Ok(told)
}
