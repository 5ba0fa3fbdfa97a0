//! A run written down: what happens, step after step, as text that a person can read and a shrinker can shorten.
//!
//! A step is its kind and a number from which every choice within it follows, so that a step does the same thing whatever
//! was left out before it, as far as that still makes sense.

use closer_contracts::word_enum;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use std::fmt;

word_enum! {
    /// What can happen in a step.
    pub enum Kind {
        /// An observer reports a change.
        Event = "event",
        /// An episode begins.
        Open = "open",
        /// An episode goes one stage further.
        Advance = "advance",
        /// A stage's message arrives twice.
        Twice = "twice",
        /// A stage's message is lost.
        Lose = "lose",
        /// A stage's message stays on its way.
        Delay = "delay",
        /// A message that stayed on its way arrives, whatever has come before it.
        Deliver = "deliver",
        /// Admitted effects leave.
        Send = "send",
        /// A slow call returns.
        Hear = "hear",
        /// The part of the process that sends effects ends and begins again.
        LoseEffects = "lose_effects",
        /// Time passes.
        Pass = "pass",
        /// The clock falls into doubt.
        Doubt = "doubt",
        /// Targets begin to misbehave.
        Misbehave = "misbehave",
        /// Targets and clock behave again.
        Behave = "behave",
        /// Somebody else changes a target.
        Meddle = "meddle",
        /// The appointed issuer restricts.
        Restrict = "restrict",
        /// A restriction is reviewed.
        Reconcile = "reconcile",
        /// The user answers.
        Answer = "answer",
        /// An obligation passes to another owner, for good or for a while.
        Transfer = "transfer",
        /// A dishonest planner proposes what nobody may do.
        Forge = "forge",
        /// A dishonest issuer, recipient or observer tries what it may not.
        Deceive = "deceive",
        /// Everything decided becomes durable.
        Flush = "flush",
        /// The disk runs full.
        Fill = "fill",
        /// The disk has space again.
        Free = "free",
        /// A flush fails, and the process begins again from the disk.
        FailFlush = "fail_flush",
        /// The power goes, with anything of what was on its way to the disk.
        PowerCut = "power_cut",
        /// The process is killed.
        Kill = "kill",
        /// Another sequencer takes the lease; the one before does not know yet.
        TakeOver = "take_over",
        /// The sequencer that has lost the lease goes on.
        Stale = "stale",
        /// Something moves between an assessment and the dispatch that rests on it.
        Race = "race",
        /// Two who were offered the same responsibility both accept it, and both act.
        Compete = "compete",
    }
}

/// How often each kind comes, in a thousand.
const WEIGHTS: &[(Kind, u32)] = &[
    (Kind::Event, 70),
    (Kind::Open, 90),
    (Kind::Advance, 450),
    (Kind::Twice, 20),
    (Kind::Lose, 10),
    (Kind::Delay, 20),
    (Kind::Deliver, 20),
    (Kind::Send, 90),
    (Kind::Hear, 14),
    (Kind::LoseEffects, 12),
    (Kind::Pass, 40),
    (Kind::Doubt, 4),
    (Kind::Misbehave, 24),
    (Kind::Behave, 20),
    (Kind::Meddle, 14),
    (Kind::Restrict, 16),
    (Kind::Reconcile, 8),
    (Kind::Answer, 30),
    (Kind::Transfer, 14),
    (Kind::Forge, 45),
    (Kind::Deceive, 70),
    (Kind::Flush, 10),
    (Kind::Fill, 3),
    (Kind::Free, 5),
    (Kind::FailFlush, 4),
    (Kind::PowerCut, 6),
    (Kind::Kill, 5),
    (Kind::TakeOver, 9),
    (Kind::Stale, 24),
    (Kind::Race, 24),
    (Kind::Compete, 8),
];

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// What happens.
    pub kind: Kind,
    /// What its choices follow from.
    pub number: u32,
}

impl Step {
    /// The generator of the step's choices.
    #[must_use]
    pub fn choices(self) -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(u64::from(self.number) ^ 0x00c1_05e4)
    }

    fn read(text: &str) -> Option<Self> {
        let (word, number) = text.split_once(' ')?;
        let kind = Kind::ALL.iter().copied().find(|kind| kind.as_str() == word)?;
        Some(Self { kind, number: number.parse().ok()? })
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.number)
    }
}

/// A whole run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The seed it was made from; participants answer by it too.
    pub seed: u64,
    /// How many obligations are kept.
    pub obligations: usize,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

/// A plan as it is kept.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    seed: u64,
    obligations: usize,
    found: String,
    steps: Vec<String>,
}

impl Plan {
    /// The plan of a seed.
    #[must_use]
    pub fn of(seed: u64, steps: usize) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let total: u32 = WEIGHTS.iter().map(|(_, weight)| weight).sum();
        let kind = |mut drawn: u32| {
            for (kind, weight) in WEIGHTS {
                if drawn < *weight {
                    return *kind;
                }
                drawn -= weight;
            }
            Kind::Advance
        };
        let obligations = 6 + steps / 50;
        let steps = (0..steps).map(|_| Step { kind: kind(rng.random_range(0..total)), number: rng.random() }).collect();
        Self { seed, obligations, steps }
    }

    /// The plan as a file to keep, with what it was found to break.
    #[must_use]
    pub fn kept(&self, found: &str) -> String {
        let steps = self.steps.iter().map(Step::to_string).collect();
        let kept = Kept { seed: self.seed, obligations: self.obligations, found: found.to_owned(), steps };
        toml::to_string_pretty(&kept).unwrap_or_else(|error| format!("# {error}\n"))
    }

    /// Reads a kept plan.
    ///
    /// # Errors
    /// What does not read, in words.
    pub fn read(text: &str) -> Result<Self, String> {
        let kept: Kept = toml::from_str(text).map_err(|error| error.to_string())?;
        let steps = kept.steps.iter().map(|step| Step::read(step).ok_or_else(|| format!("`{step}` is no step")));
        Ok(Self { seed: kept.seed, obligations: kept.obligations, steps: steps.collect::<Result<_, _>>()? })
    }
}
