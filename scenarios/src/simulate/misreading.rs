//! An observer that reports what it has not seen. Each kind begins from an honest look at a target, and changes one thing.

use super::machine::Simulation;
use super::steps::said;
use super::world::{one_of, target_of};
use crate::space::{Broken, Space};
use crate::world::Mode;
use closer_contracts::envelope::Body;
use closer_contracts::evidence::{Evidence, ReadbackOutcome};
use closer_contracts::id::EvidenceId;
use closer_contracts::refs::{Plain, ProducerRole, Target};
use closer_contracts::time::Timestamp;
use closer_contracts::word_enum;
use closer_protocol::View;
use closer_protocol::input::Reply;
use closer_protocol::port::Observed;
use closer_protocol::readback;
use closer_protocol::services::Lineage;
use closer_protocol::view::Attempt;
use rand::rngs::Xoshiro256PlusPlus as Rng;

word_enum! {
    /// What a dishonest observer does to an honest observation.
    pub enum Misreading {
        /// It observes for a source that is not its own.
        OtherSource = "other_source",
        /// It observes for a source that nobody knows.
        UnknownSource = "unknown_source",
        /// It gives the number of an observation on record.
        OldNumber = "old_number",
        /// It names another action than the attempt's.
        OtherAction = "other_action",
        /// It has looked before the attempt began.
        BeforeAttempt = "before_attempt",
        /// It has looked by another method.
        OtherMethod = "other_method",
        /// It has looked at another target, and says that it shows the effect.
        OtherTarget = "other_target",
        /// It says that the effect is there, and it is not.
        SaysMatched = "says_matched",
        /// It says that the effect is not there, and it may be.
        SaysNotMatched = "says_not_matched",
        /// It says that it is later than it is, so that the settle time seems over.
        FromTheFuture = "from_the_future",
    }
}

impl Simulation {
    /// A dishonest observer reports. Whatever else is true it must be refused.
    pub(super) fn misread(&mut self, rng: &mut Rng) -> Result<String, String> {
        let misreading = one_of(rng, Misreading::ALL).unwrap_or(Misreading::OtherSource);
        let of_record = !matches!(misreading, Misreading::OtherSource | Misreading::UnknownSource);
        if of_record {
            self.leader.world.effect_mode = Mode::LostUnanswered;
            self.until(rng, |space| unsettled(space).next().is_some())?;
            self.attempt(Space::send)?;
            self.check_left()?;
            self.flush()?;
        }
        let attempts: Vec<Attempt> = unsettled(&self.leader).cloned().collect();
        let attempt = one_of(rng, &attempts).filter(|_| of_record);
        if of_record && attempt.is_none() {
            return Ok(format!("{misreading}: nothing to read back"));
        }
        let reply = self.attempt(|space| match misread(space, misreading, attempt.as_ref()) {
            Err(Broken::Fault(fault)) => Ok(Some(Reply::Refused(vec![fault.into()]))),
            done => done,
        })?;
        match reply.flatten() {
            Some(Reply::Recorded(_)) => Err(format!("a misreading was recorded: {misreading}")),
            Some(reply @ Reply::Refused(_)) => Ok(format!("{misreading}: {}", said(&reply))),
            None => Ok(format!("{misreading}: nothing to misread")),
        }
    }
}

/// Attempts whose calls are over and that are not settled.
fn unsettled(space: &Space) -> impl Iterator<Item = &Attempt> {
    let left = |attempt: &&Attempt| attempt.outcome.is_some() && !attempt.status.is_settled();
    space.view().attempts.values().filter(left)
}

/// What would be seen at this moment if the target showed the effect, or did not.
fn seen(attempt: Option<&Attempt>, shows: bool, now: &Timestamp) -> Observed {
    let target = attempt.map_or_else(|| target_of("p-o-1"), |attempt| attempt.action.target.clone());
    let mut fields = serde_json::Map::new();
    for expected in attempt.into_iter().flat_map(|attempt| &attempt.action.expected_postcondition.expectations) {
        let value = if shows { expected.value.0.clone() } else { "as it was".into() };
        fields.insert(expected.field.to_string(), value);
    }
    Observed::Seen {
        target,
        observed_at: now.clone(),
        target_version: closer_contracts::work::TargetVersion::Unknown,
        observation: closer_contracts::refs::TypedValue { r#type: "fields".into(), value: Plain(fields.into()) },
        limitations: Vec::new(),
    }
}

fn honest(view: &View, attempt: Option<&Attempt>, shows: bool, now: &Timestamp) -> Option<(Evidence, Lineage)> {
    let method = view.state.readback_method(&"plan.read".into())?;
    let asked: Target = attempt.map_or_else(|| target_of("p-o-1"), |attempt| attempt.action.target.clone());
    let payload = readback::draft(view, method, &seen(attempt, shows, now), &asked, attempt, &[], now).ok()?;
    let envelope = payload.envelope();
    let lineage = Lineage {
        parents: envelope.parents.clone(),
        obligation_ids: envelope.obligation_ids.clone(),
        episode_id: envelope.episode_id.clone(),
        causation_event_id: None,
        budget_ref: envelope.budget_ref.clone(),
    };
    let Body::Evidence(evidence) = payload.body() else { return None };
    Some((Evidence::clone(evidence), lineage))
}

fn misread(space: &mut Space, misreading: Misreading, attempt: Option<&Attempt>) -> Result<Option<Reply>, Broken> {
    let now = space.moment().now;
    let authorized_at = attempt.map(|attempt| attempt.intent.authorized_at.clone());
    let settled = attempt.is_some_and(|attempt| readback::is_settled(space.view(), attempt, &now));
    let shows = matches!(
        misreading,
        Misreading::OtherAction | Misreading::BeforeAttempt | Misreading::OtherMethod | Misreading::SaysNotMatched
    );
    let Some((mut evidence, lineage)) = honest(space.view(), attempt, shows, &now) else { return Ok(None) };
    evidence.evidence_id = EvidenceId::new(space.fresh("ev-forged"));
    let readback = evidence.readback.as_mut();
    match (misreading, readback) {
        (Misreading::OtherSource, _) => evidence.source.source_id = "feed".into(),
        (Misreading::UnknownSource, _) => evidence.source.source_id = "nowhere".into(),
        (Misreading::OldNumber, _) => {
            let newest = space.view().observed.get(&evidence.target_binding.observation_sequence_ref);
            let Some((newest, _)) = newest else { return Ok(None) };
            evidence.target_binding.observation_version = *newest;
        }
        (Misreading::OtherAction, _) => evidence.action_ref = Some("action-of-nobody".into()),
        (Misreading::BeforeAttempt, _) => {
            let before = authorized_at.map_or(0, |at| at.unix_ms() - 5_000);
            evidence.observed_at = Timestamp::from_unix_ms(before);
        }
        (Misreading::OtherMethod, Some(readback)) => readback.readback_method_ref.version += 1,
        (Misreading::OtherTarget, Some(readback)) => {
            readback.outcome = ReadbackOutcome::Matched;
            evidence.target_binding.target.account = "another-account".into();
            let Some((shown, _)) = honest(space.view(), attempt, true, &now) else { return Ok(None) };
            evidence.observation = shown.observation;
            evidence.artifact_ref = shown.artifact_ref;
        }
        (Misreading::SaysMatched, Some(readback)) => readback.outcome = ReadbackOutcome::Matched,
        (Misreading::SaysNotMatched, Some(readback)) => readback.outcome = ReadbackOutcome::NotMatched,
        (Misreading::FromTheFuture, Some(readback)) if !settled => {
            readback.outcome = ReadbackOutcome::NotMatched;
            evidence.observed_at = now.plus_ms(5_000);
        }
        _ => return Ok(None),
    }
    let payload = space.write_in(ProducerRole::Observer, lineage, evidence)?;
    space.submit_payload(payload).map(Some)
}
