//! What whoever answers for an incident is told: everything done about it, and what stays open.

use super::{Answer, Case, Step};
use crate::view::View;
use closer_contracts::audit::{DisclosureIncident, IncidentAttempt};
use closer_contracts::id::{ActorId, Key, Text};
use serde::{Deserialize, Serialize};

/// What is not settled about one recipient.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exposure {
    /// Whose copy.
    pub recipient: ActorId,
    /// `acknowledged`, `failed` or `unknown`.
    pub standing: Key,
    /// For people.
    pub text: Text,
}

/// An incident with everything done about it, for its owner and the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Where it stands.
    pub state: super::IncidentState,
    /// The incident, its lists filled from the steps on record.
    pub incident: DisclosureIncident,
    /// Every recipient's copy. None is ever shown to be gone.
    pub unresolved_exposure: Vec<Exposure>,
    /// What the state does not say.
    pub limits: Text,
}

/// Composes the report of a case from its steps.
#[must_use]
pub fn report(view: &View, case: &Case) -> Report {
    let mut incident = (*case.opened).clone();
    for (at, step) in &case.steps {
        let attempt = |recipient: &ActorId, outcome: &str| IncidentAttempt {
            recipient: recipient.clone(),
            at: at.clone(),
            outcome: outcome.into(),
        };
        match step {
            Step::Contained { attempts } => incident.containment_attempts.extend(attempts.iter().cloned()),
            Step::Notified { notices, .. } => {
                let told = notices.iter().map(|notice| (&notice.receipt.recipient, notice.erasure));
                let told = told
                    .map(|(recipient, erasure)| attempt(recipient, &format!("notice on record, erasure {erasure}")));
                incident.notification_attempts.extend(told);
            }
            Step::Answered { recipient, answer: Answer::Acknowledged, .. } => {
                incident.acknowledgments.push(attempt(recipient, "acknowledged"));
            }
            Step::Answered { recipient, answer: Answer::Failed, .. } => {
                incident.notification_attempts.push(attempt(recipient, "failed"));
            }
            Step::Reconciled { unknown_copies, .. } => {
                let unknown = unknown_copies.iter().map(|who| Text::new(format!("{who} gave no answer")));
                incident.unknown_copies.extend(unknown);
            }
        }
    }
    incident.dependent_artifacts = super::lineage::dependents(view, case);
    Report {
        state: case.state,
        incident,
        unresolved_exposure: case.opened.recipient_refs.iter().map(|recipient| exposure(case, recipient)).collect(),
        limits: "A withdrawal takes no disclosure back. That a copy is gone is never shown here, only said.".into(),
    }
}

fn exposure(case: &Case, recipient: &ActorId) -> Exposure {
    let answers = || case.answers().filter(|(_, who, _)| *who == recipient).map(|(_, _, answer)| answer);
    let acknowledged = answers().any(|answer| answer == Answer::Acknowledged);
    let (standing, text) = match (acknowledged, answers().next()) {
        (true, _) => ("acknowledged", "it says that its copy is withdrawn; that cannot be proved"),
        (false, Some(_)) => ("failed", "it could not withdraw its copy"),
        (false, None) => ("unknown", "whether it keeps a copy is not known"),
    };
    Exposure { recipient: recipient.clone(), standing: standing.into(), text: text.into() }
}
