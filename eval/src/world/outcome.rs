//! What became of a world's next step: told from the record, not from the answer. Spec: §10.3.

use crate::step::Step;
use closer_contracts::Digest;
use closer_contracts::evidence::ReadbackOutcome;
use closer_contracts::item::Standing;
use closer_contracts::obligation::ObligationStatus;
use closer_protocol::entry::Entry;
use closer_scenarios::Space;
use closer_scenarios::space::Broken;
use serde::{Deserialize, Serialize};

closer_contracts::word_enum! {
    /// What the target itself showed after the step.
    pub enum Readback {
        /// As it should be.
        Matched = "matched",
        /// Not as it should be.
        NotMatched = "not_matched",
        /// It could not be told.
        Unknown = "unknown",
        /// Nothing was carried out.
        None = "none",
    }
}

/// A question that was put to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionPut {
    /// How many words a person has to read to answer it: question, alternatives, uncertainty, recommendation.
    pub words: usize,
    /// How many alternatives it gives.
    pub alternatives: usize,
    /// How much evidence it cites.
    pub evidence: usize,
    /// Whether it says what an answer would lead to: a deadline policy, what goes on meanwhile.
    pub says_what_waits: bool,
    /// Whether it names the exact action or grant that is asked for.
    pub specific: bool,
    /// Whether nothing is decided by putting it: no recommendation, or more than one option beside it.
    pub choice_preserved: bool,
}

/// What became of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The step.
    pub step: Step,
    /// What it is compared by.
    pub step_digest: Digest,
    /// Whether the monitor admitted it.
    pub admitted: bool,
    /// Every code by which anything was refused, in order.
    pub refusals: Vec<String>,
    /// Effects that really took place.
    pub effects: usize,
    /// Effects that took place more often than once.
    pub duplicates: usize,
    /// Effects that took place without an admission of their own.
    pub unadmitted_effects: usize,
    /// What the target showed.
    pub readback: Readback,
    /// Claims that the answer proposed and the record does not bear out.
    pub unsupported_claims: usize,
    /// What was asked of the user.
    pub questions: Vec<QuestionPut>,
    /// Obligations that stay open with a trigger or a known gap.
    pub retained: usize,
    /// Obligations that stay open with neither.
    pub orphaned: usize,
    /// How many records the world's copy of the store holds at its end.
    pub records: usize,
}

pub(super) fn of(space: &Space, from: usize, step: &Step) -> Result<Outcome, Broken> {
    let view = space.view();
    let entries = space.entries()?.split_off(from);
    let mut refusals = Vec::new();
    let mut admitted = 0;
    for (_, entry) in &entries {
        admitted += usize::from(matches!(entry, Entry::Intent(_)));
        if let Entry::Refusal(refusal) = entry {
            refusals.push(refusal.code.as_str().to_owned());
        }
    }
    let effects = space.world.effects();
    let repeated = effects.iter().enumerate().filter(|(index, effect)| {
        effects.iter().take(*index).any(|earlier| earlier.logical_digest == effect.logical_digest)
    });
    let looked = view.evidence.values().filter(|evidence| evidence.body.readback.is_some());
    let newest = looked.max_by_key(|evidence| evidence.admitted_at.clone());
    let outcome = newest.and_then(|evidence| evidence.body.readback.as_ref()).map(|readback| readback.outcome);
    let readback = match outcome {
        None => Readback::None,
        Some(ReadbackOutcome::Matched) => Readback::Matched,
        Some(ReadbackOutcome::NotMatched) => Readback::NotMatched,
        Some(ReadbackOutcome::Unknown) => Readback::Unknown,
    };
    let proposed = view.results.values().flat_map(|result| result.body.claims.iter());
    let unsupported = proposed.filter(|claim| {
        let mut held = view.state.claims_on(&claim.proposition.proposition_id);
        !held.any(|held| held.item.as_claim().is_some_and(|held| held.standing == Standing::Current))
    });
    let open: Vec<_> = view.state.open_obligations().collect();
    let retained = open.iter().filter(|kept| !kept.reentry_refs.is_empty() || kept.trigger_gap.is_some());
    let retained = retained.filter(|kept| kept.status != ObligationStatus::Resolved).count();
    Ok(Outcome {
        step: step.clone(),
        step_digest: step.digest()?,
        admitted: admitted > 0,
        refusals,
        effects: effects.len(),
        duplicates: repeated.count(),
        unadmitted_effects: effects.len().saturating_sub(admitted),
        readback,
        unsupported_claims: unsupported.count(),
        questions: view.packets.values().map(|packet| question(&packet.packet.body)).collect(),
        retained,
        orphaned: open.len().saturating_sub(retained),
        records: space.records().len(),
    })
}

fn question(packet: &closer_contracts::briefcase::Briefcase) -> QuestionPut {
    let words = |text: &str| text.split_whitespace().count();
    let waiting = &packet.while_waiting;
    let told = waiting.permitted.iter().chain(&waiting.blocked).chain([&waiting.consequence]);
    let mut read = words(packet.question.as_str()) + told.map(|text| words(text.as_str())).sum::<usize>();
    read += packet.recommendation_reason.as_ref().map_or(0, |text| words(text.as_str()));
    read += packet.remaining_uncertainty.iter().map(|text| words(text.as_str())).sum::<usize>();
    read += packet
        .alternatives
        .iter()
        .map(|option| words(option.text.as_str()) + words(option.consequence.as_str()))
        .sum::<usize>();
    QuestionPut {
        words: read,
        alternatives: packet.alternatives.len(),
        evidence: packet.evidence_refs.len(),
        says_what_waits: !waiting.blocked.is_empty() || !waiting.permitted.is_empty(),
        specific: packet.requested_authorization.is_some(),
        choice_preserved: packet.recommendation.is_none() || packet.alternatives.len() > 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use closer_contracts::shows;
    use closer_scenarios::{Deployment, worker};

    #[test]
    fn an_effect_that_is_delivered_again_is_counted_where_it_took_place_twice() {
        shows!("CP-10.3-06");
        let mut space = Space::found(&Deployment::default(), worker::proposes("basic")).unwrap();
        space.event("service-a", "price").unwrap();
        space.run().unwrap();
        let once = of(&space, 0, &Step::Nothing {}).unwrap();
        assert_eq!((once.effects, once.duplicates), (1, 0));
        let action = space.world.effects()[0].clone();
        let now = space.moment().now;
        space.world.effect_mode = closer_scenarios::Mode::AnsweredNotApplied;
        space.world.perform(&action, &now);
        assert_eq!(of(&space, 0, &Step::Nothing {}).unwrap().duplicates, 0, "it was delivered and did nothing");
        space.world.effect_mode = closer_scenarios::Mode::Normal;
        space.world.perform(&action, &now);
        let twice = of(&space, 0, &Step::Nothing {}).unwrap();
        assert_eq!((twice.effects, twice.duplicates), (2, 1));
    }
}
