//! What the right next steps are: held out, and opened by the scorer alone after every output is sealed. Spec: §10.2.

use crate::file::{self, Misfit};
use crate::item::StudyItem;
use crate::step::Step;
use closer_contracts::canonical::digest_of;
use closer_contracts::contract::Check;
use closer_contracts::fault::Fault;
use closer_contracts::id::Key;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// What one step is worth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Worth {
    /// The step.
    pub step: Step,
    /// How right it is, in percent.
    #[schemars(range(max = 100))]
    pub score: u8,
    /// Whether only the item justifies it. Taken without the item it is a guess, and a guess is worth nothing.
    #[serde(default)]
    pub needs_item: bool,
}

/// The truth about one item. Steps that are not listed are worth nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Truth {
    /// The item.
    pub item: Key,
    /// The steps that are worth something.
    pub steps: Vec<Worth>,
    /// Whether the user had the best step, or the question, already; unknown without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_has_it: Option<bool>,
}

impl Check for Truth {
    fn check(&self) -> Result<(), Fault> {
        self.item.check().map_err(|fault| fault.within("item"))?;
        for worth in &self.steps {
            worth.step.check().map_err(|fault| fault.within("step").within("steps"))?;
            if worth.score > 100 {
                return Err(Fault::schema("a score is at most 100").within("score").within("steps"));
            }
        }
        Ok(())
    }
}

/// What a step in a world is worth: correct and justified by what the world had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// How right and justified it is, in percent.
    pub score: u8,
    /// Whether it was right without what justifies it.
    pub guessed: bool,
}

impl Truth {
    /// Judges a step that was taken with or without the item.
    #[must_use]
    pub fn judge(&self, step: &Step, had_item: bool) -> Verdict {
        match self.steps.iter().find(|worth| worth.step == *step) {
            None => Verdict { score: 0, guessed: false },
            Some(worth) if worth.needs_item && !had_item => Verdict { score: 0, guessed: worth.score > 0 },
            Some(worth) => Verdict { score: worth.score, guessed: false },
        }
    }

    /// The best that can be had, with or without the item: what an oracle scores.
    #[must_use]
    pub fn best(&self, has_item: bool) -> u8 {
        self.steps.iter().map(|worth| self.judge(&worth.step, has_item).score).max().unwrap_or(0)
    }
}

/// Reads the truth about these items; each must have the digest that its item declares.
///
/// # Errors
/// [`Misfit`] with line and field.
pub fn read(path: &Path, items: &[StudyItem]) -> Result<BTreeMap<Key, Truth>, Misfit> {
    let mut truths = BTreeMap::new();
    let declared: BTreeMap<&Key, &StudyItem> = items.iter().map(|item| (&item.item, item)).collect();
    for (index, truth) in file::lines::<Truth>(path)?.into_iter().enumerate() {
        let line = index + 1;
        let digest = digest_of(&truth).map_err(|fault| Misfit::at(path, line, &fault.path, fault.reason.clone()))?;
        if declared.get(&truth.item).is_none_or(|item| item.truth_digest != digest) {
            let reason = format!("no item `{}` declares a truth with the digest {digest}", truth.item);
            return Err(Misfit::at(path, line, "item", reason));
        }
        truths.insert(truth.item.clone(), truth);
    }
    match items.iter().find(|item| !truths.contains_key(&item.item)) {
        Some(item) => Err(Misfit::at(path, truths.len(), "item", format!("there is no truth about `{}`", item.item))),
        None => Ok(truths),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use closer_contracts::shows;

    #[test]
    fn a_step_counts_where_it_is_right_and_justified_and_a_lucky_guess_does_not() {
        shows!("CP-10.1-05");
        let right = Step::Ask {};
        let truth = Truth {
            item: "i".into(),
            steps: vec![
                Worth { step: right.clone(), score: 100, needs_item: true },
                Worth { step: Step::Gap {}, score: 50, needs_item: false },
            ],
            user_has_it: None,
        };
        assert_eq!(truth.judge(&right, true), Verdict { score: 100, guessed: false });
        assert_eq!(truth.judge(&right, false), Verdict { score: 0, guessed: true });
        // Different from the other world's step, and still worth nothing.
        assert_eq!(truth.judge(&Step::Object {}, true), Verdict { score: 0, guessed: false });
        assert_eq!((truth.best(true), truth.best(false)), (100, 50));
    }
}
