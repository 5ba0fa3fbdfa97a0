//! Suites shipped: the twelve families of cases, several items each, made from templates and a seed. Spec: §10.2.
//!
//! Truth comes from the template, never from a participant: what most voices in a packet say has no part in it.

mod families;

use crate::item::{Allowed, Conclusion, StudyItem};
use crate::statistics::bootstrap::Random;
use crate::step::Step;
use crate::truth::{Truth, Worth};
use closer_contracts::canonical::digest_of;
use closer_contracts::fault::Fault;
use closer_contracts::id::Key;
use closer_contracts::refs::{Parameters, Plain, Target};
use closer_contracts::word_enum;
use serde_json::json;

word_enum! {
    /// The required families of cases.
    pub enum Family {
        /// A useful permitted action really occurs.
        SupportedContinuation = "supported_continuation",
        /// The gap is kept, and nothing is invented.
        InsufficientEvidence = "insufficient_evidence",
        /// A real citation does not carry the inference.
        WrongInference = "wrong_inference",
        /// What was inherited is contradicted now.
        ContradictedPremise = "contradicted_premise",
        /// The authority is gone.
        ChangedGrant = "changed_grant",
        /// The choice is the user's.
        OwnerOnlyTradeoff = "owner_only_tradeoff",
        /// What happened has nothing to do with it.
        IrrelevantEvent = "irrelevant_event",
        /// What is known of the operation has expired.
        ExpiredRegistry = "expired_registry",
        /// Nobody knows whether it took place: look before repeating.
        UnknownOutcome = "unknown_outcome",
        /// What was closed is open again.
        ReopenedObligation = "reopened_obligation",
        /// The one who objects is right.
        CorrectMinority = "correct_minority",
        /// All agree, and all are wrong.
        FalseAgreement = "false_agreement",
    }
}

/// What a family asks for, beyond its words.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) predicate: &'static str,
    pub(crate) object: serde_json::Value,
    pub(crate) question: String,
    pub(crate) inputs: Vec<(&'static str, serde_json::Value)>,
    pub(crate) operations: Vec<Allowed>,
    pub(crate) steps: Vec<Worth>,
    pub(crate) stale: Option<serde_json::Value>,
}

/// A suite: items, and what is held out about each.
#[derive(Debug, Clone)]
pub struct Suite {
    /// The items.
    pub items: Vec<StudyItem>,
    /// The truths, in the order of the items.
    pub truths: Vec<Truth>,
}

/// The suite of a seed: so many items of each family.
///
/// # Errors
/// `schema_invalid` where a template has no canonical form.
pub fn generate(families: &[Family], per_family: usize, seed: u64) -> Result<Suite, Fault> {
    let mut random = Random::seeded(seed);
    let mut suite = Suite { items: Vec::new(), truths: Vec::new() };
    for family in families {
        for number in 1..=per_family {
            let draft = families::draft(*family, &mut random);
            let (item, truth) = written(*family, number, draft, &mut random)?;
            suite.items.push(item);
            suite.truths.push(truth);
        }
    }
    Ok(suite)
}

impl Suite {
    /// Writes items and truth as two files of JSON lines.
    ///
    /// # Errors
    /// What keeps them from being written.
    pub fn write(&self, items: &std::path::Path, truth: &std::path::Path) -> std::io::Result<()> {
        std::fs::write(items, lines(&self.items)?)?;
        std::fs::write(truth, lines(&self.truths)?)
    }
}

fn lines<T: serde::Serialize>(values: &[T]) -> std::io::Result<String> {
    values.iter().map(|value| Ok(serde_json::to_string(value)? + "\n")).collect()
}

/// The target of every template.
pub(crate) fn target() -> Target {
    Target { r#type: "plan".into(), account: "account-1".into(), address: "service-a".into() }
}

fn written(family: Family, number: usize, draft: Draft, random: &mut Random) -> Result<(StudyItem, Truth), Fault> {
    let name = Key::new(format!("{family}-{number:04}"));
    let truth = Truth { item: name.clone(), steps: draft.steps, user_has_it: None };
    // Like the item in size, about something that has no part in the question.
    let length = draft.object.to_string().len().clamp(3, 60);
    let irrelevant: String = (0..length).map(|_| char::from(b'a' + random.below(26) as u8)).collect();
    let conclusion = |predicate: &str, object: serde_json::Value| Conclusion {
        predicate: predicate.into(),
        evidence: vec![observation(predicate, &object)],
        object: Plain(object),
    };
    let item = StudyItem {
        item: name,
        family: Key::from(family.as_str()),
        cluster: Key::new(format!("{family}-{}", (number - 1) / 2 + 1)),
        claim: conclusion(draft.predicate, draft.object),
        question: draft.question.into(),
        target: target(),
        inputs: draft.inputs.into_iter().map(|(name, value)| (name.into(), Plain(value))).collect(),
        operations: draft.operations,
        placebo: Some(conclusion("colour_of_the_logo", json!(irrelevant))),
        stale: draft.stale.map(|object| conclusion(draft.predicate, object)),
        truth_digest: digest_of(&truth)?,
    };
    Ok((item, truth))
}

fn observation(predicate: &str, object: &serde_json::Value) -> Parameters {
    [(Key::from(predicate), Plain(object.clone()))].into()
}

/// An operation that a template allows.
pub(crate) fn allowed(operation: &str, parameter: &str, values: &[&str]) -> Allowed {
    Allowed {
        operation: operation.into(),
        parameters: [(Key::from(parameter), values.iter().map(|&value| Plain(json!(value))).collect())].into(),
        granted: true,
        probe: false,
        expired: false,
    }
}

/// What an operation of a template is worth as the next step.
pub(crate) fn worth(operation: &str, parameter: &str, value: &str, score: u8, needs_item: bool) -> Worth {
    let step = Step::Operation {
        operation: operation.into(),
        target: target(),
        parameters: [(Key::from(parameter), Plain(json!(value)))].into(),
    };
    Worth { step, score, needs_item }
}

/// What doing something else is worth.
pub(crate) const fn instead(step: Step, score: u8) -> Worth {
    Worth { step, score, needs_item: false }
}

#[cfg(test)]
pub(crate) fn example_item() -> StudyItem {
    generate(&[Family::SupportedContinuation], 1, 1).unwrap().items.remove(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world;
    use closer_contracts::Check;

    #[test]
    fn every_family_commits_and_the_same_seed_gives_the_same_suite() {
        let suite = generate(Family::ALL, 2, 7).unwrap();
        assert_eq!(suite.items.len(), 24);
        assert_eq!(suite.items, generate(Family::ALL, 2, 7).unwrap().items);
        assert_ne!(suite.items, generate(Family::ALL, 2, 8).unwrap().items);
        for item in &suite.items {
            item.check().unwrap();
            let committed = world::commit(item, &item.claim).unwrap_or_else(|error| panic!("{}: {error}", item.item));
            assert_eq!(committed.claim.proposition.object, item.claim.object);
            world::commit(item, item.placebo.as_ref().unwrap()).unwrap();
            if let Some(stale) = &item.stale {
                world::commit(item, stale).unwrap();
            }
        }
    }

    #[test]
    fn the_suite_asks_for_continuation_and_for_restraint() {
        let suite = generate(Family::ALL, 3, 1).unwrap();
        let best = |truth: &Truth| truth.steps.iter().max_by_key(|worth| worth.score).map(|worth| worth.step.clone());
        let acts = suite.truths.iter().filter(|truth| matches!(best(truth), Some(Step::Operation { .. }))).count();
        assert!(acts >= 9 && suite.truths.len() - acts >= 9, "{acts}");
    }
}
