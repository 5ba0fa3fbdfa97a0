//! Participants of our own: policies with a known effect, and floors.

use super::{Answered, Participant};
use crate::resource::Usage;
use crate::statistics::bootstrap::Random;
use closer_contracts::canonical;
use closer_contracts::item::Item;
use closer_contracts::refs::{Parameters, Plain, Target};
use closer_contracts::work::{
    ActionProposal, Comparison, Expectation, Need, Objection, Postcondition, ReasonClass, Unresolved, Work, WorkResult,
};
use closer_contracts::{Digest, word_enum};
use serde::{Deserialize, Serialize};

/// Follows the claim in its packet so often, and guesses without one so often; otherwise it keeps the gap open.
///
/// Where k values are allowed and one of them is right, it is right in `follows` percent with the item, and in `guesses` / k
/// percent without: the effect is known before it is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Synthetic {
    /// In how many of a hundred packets with a claim it does what the claim says.
    pub follows: u8,
    /// In how many of a hundred packets without a claim that fits it takes one of the allowed values by chance.
    pub guesses: u8,
}

word_enum! {
    /// What a floor always does.
    pub enum Floor {
        /// Nothing.
        DoNothing = "do_nothing",
        /// Asks the user.
        AlwaysAsk = "always_ask",
        /// Objects.
        AlwaysRefuse = "always_refuse",
    }
}

/// What a participant of our own answers. `seed` is what it draws from. None for a program, which answers itself.
#[must_use]
pub fn answer(participant: &Participant, work: &Work, seed: u64) -> Option<Answered> {
    let result = match participant {
        Participant::Policy(policy) => policy.answer(work).ok()?,
        Participant::Synthetic(synthetic) => synthetic.answer(work, &mut Random::seeded(seed)),
        Participant::Floor { floor } => floor.answer(work),
        Participant::Command(_) => return None,
    };
    let usage = Usage { calls: Some(1), input_tokens: Some(0), output_tokens: Some(0), ..Usage::default() };
    Some(Answered { result, packet: canonical::digest_of(work).ok(), usage: Some(usage) })
}

fn nothing(work: &Work) -> WorkResult {
    WorkResult {
        work_id: work.work_id.clone(),
        claims: Vec::new(),
        action_proposals: Vec::new(),
        assessments: Vec::new(),
        objections: Vec::new(),
        unresolved: Vec::new(),
        skill_receipts: Vec::new(),
        extensions: None,
    }
}

fn open(work: &Work, need: Need, text: &str) -> WorkResult {
    let subject = work.question.subject_refs.first().cloned().unwrap_or_else(|| "question".into());
    WorkResult { unresolved: vec![Unresolved { subject, need, text: text.into() }], ..nothing(work) }
}

impl Floor {
    fn answer(self, work: &Work) -> WorkResult {
        match self {
            Self::DoNothing => nothing(work),
            Self::AlwaysAsk => open(work, Need::Preference, "What should be done?"),
            Self::AlwaysRefuse => {
                let subject = work.context_items.first().map_or_else(|| Digest::of(b""), |item| item.reference.digest);
                let objection = Objection {
                    subject,
                    reason_class: ReasonClass::Risk,
                    text: "Nothing should be done.".into(),
                    evidence_ids: Vec::new(),
                };
                WorkResult { objections: vec![objection], ..nothing(work) }
            }
        }
    }
}

impl Synthetic {
    fn answer(&self, work: &Work, random: &mut Random) -> WorkResult {
        let items: Vec<Item> =
            work.context_items.iter().filter_map(|item| canonical::from_value(item.content.0.clone()).ok()).collect();
        let claim = items.iter().find_map(Item::as_claim);
        let options = items.iter().find_map(Item::as_grant).map(options).unwrap_or_default();
        let drawn = random.below(100) as u8;
        let fits = |option: &&Proposed| claim.is_some_and(|claim| option.value == claim.proposition.object);
        let chosen = match options.iter().find(fits) {
            Some(option) => Some(option).filter(|_| drawn < self.follows),
            None => options.get(random.below(options.len())).filter(|_| drawn < self.guesses),
        };
        match chosen {
            None => open(work, Need::Evidence, "Nothing here settles it."),
            Some(option) => WorkResult { action_proposals: vec![option.proposal(work)], ..nothing(work) },
        }
    }
}

/// One value that a grant allows for one parameter of one operation.
struct Proposed {
    operation: closer_contracts::id::OperationId,
    target: Target,
    parameter: closer_contracts::id::Key,
    value: Plain,
}

fn options(grant: &closer_contracts::audit::Grant) -> Vec<Proposed> {
    let target = grant.targets.first().map(|pattern| Target {
        r#type: pattern.r#type.clone(),
        account: pattern.account.clone(),
        address: pattern.address.clone(),
    });
    let Some(target) = target else { return Vec::new() };
    let first = grant.allowed_operations.first();
    let bounds = grant.parameter_bounds.iter().filter(|bound| Some(&bound.operation) == first);
    bounds
        .flat_map(|bound| {
            let values = bound.one_of.clone().unwrap_or_default();
            values.into_iter().map(|value| Proposed {
                operation: bound.operation.clone(),
                target: target.clone(),
                parameter: bound.parameter.clone(),
                value,
            })
        })
        .collect()
}

impl Proposed {
    fn proposal(&self, work: &Work) -> ActionProposal {
        let parameters: Parameters = [(self.parameter.clone(), self.value.clone())].into();
        let expectation =
            Expectation { field: self.parameter.clone(), comparison: Comparison::Equals, value: self.value.clone() };
        ActionProposal {
            operation: self.operation.clone(),
            target: self.target.clone(),
            parameters,
            expected_postcondition: Postcondition {
                id: work.question.subject_refs.first().cloned().unwrap_or_else(|| "question".into()),
                expectations: vec![expectation],
            },
        }
    }
}
