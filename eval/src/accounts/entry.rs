//! What the accounts say.

use crate::plan::PairKind;
use crate::resource::Usage;
use closer_contracts::Digest;
use closer_contracts::id::Key;
use closer_contracts::word_enum;
use serde::{Deserialize, Serialize};

word_enum! {
    /// The worlds of a pair.
    pub enum World {
        /// The one with the item.
        A = "a",
        /// The one without; of two same worlds the second.
        B = "b",
    }
}

word_enum! {
    /// Which kind of failure a cause is.
    pub enum Class {
        /// The manipulation was not what it should be.
        Manipulation = "manipulation",
        /// There was nothing to withhold.
        Commit = "commit",
        /// The participant brought no answer.
        Task = "task",
        /// Its answer did not meet the contract.
        Contract = "contract",
        /// The study ended before it.
        Study = "study",
    }
}

word_enum! {
    /// Why a pair is invalid, or an attempt did not count. A closed list.
    pub enum Cause {
        /// The packets differ in more than the item, or tell what was withheld.
        Leakage = "leakage",
        /// What was committed is not what the worlds would begin from.
        FixtureTampered = "fixture_tampered",
        /// The item was not accepted: there is nothing to withhold, and nothing is shown about inheritance.
        PromotionFailed = "promotion_failed",
        /// The space could not be founded or did not go on.
        SpaceBroken = "space_broken",
        /// The participant failed.
        NoAnswer = "no_answer",
        /// The participant did not answer in time.
        TimedOut = "timed_out",
        /// The process of the study ended while the attempt was under way.
        Interrupted = "interrupted",
        /// The answer does not meet its contract.
        Malformed = "malformed",
        /// More or fewer than asked for.
        Cardinality = "cardinality",
        /// The packet did not arrive as it was sent.
        ContextTruncated = "context_truncated",
        /// The record did not take the answer.
        AnswerRefused = "answer_refused",
        /// The resource vector was used up.
        ResourcesUsedUp = "resources_used_up",
    }
}

impl Cause {
    /// Its kind.
    #[must_use]
    pub const fn class(self) -> Class {
        match self {
            Self::Leakage | Self::FixtureTampered => Class::Manipulation,
            Self::PromotionFailed | Self::SpaceBroken => Class::Commit,
            Self::NoAnswer | Self::TimedOut | Self::Interrupted => Class::Task,
            Self::Malformed | Self::Cardinality | Self::ContextTruncated | Self::AnswerRefused => Class::Contract,
            Self::ResourcesUsedUp => Class::Study,
        }
    }

    /// Whether another attempt may be made under the retry policy: nothing came back at all.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        match self {
            Self::NoAnswer | Self::TimedOut | Self::Interrupted => true,
            Self::Leakage
            | Self::FixtureTampered
            | Self::PromotionFailed
            | Self::SpaceBroken
            | Self::Malformed
            | Self::Cardinality
            | Self::ContextTruncated
            | Self::AnswerRefused
            | Self::ResourcesUsedUp => false,
        }
    }
}

/// One attempt at one world of a pair.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// The pair.
    pub pair: Key,
    /// The world.
    pub world: World,
    /// Which repeat, from 1.
    pub repeat: u32,
    /// Which attempt at it, from 1.
    pub attempt: u32,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttemptEnd {
    /// Why it does not count; none where it does.
    pub cause: Option<Cause>,
    /// In words.
    pub reason: Option<String>,
    /// The answer, by the digest of its artifact.
    pub answer: Option<Digest>,
    /// What became of it, by the digest of its artifact.
    pub outcome: Option<Digest>,
    /// What it took; none where nobody says.
    pub usage: Option<Usage>,
    /// How long it took, in milliseconds.
    pub wall_ms: Option<u64>,
    /// The process that answered.
    pub process: Option<u32>,
}

impl AttemptEnd {
    /// The end of an attempt that nobody saw the end of.
    #[must_use]
    pub fn interrupted() -> Self {
        Self {
            cause: Some(Cause::Interrupted),
            reason: None,
            answer: None,
            outcome: None,
            usage: None,
            wall_ms: None,
            process: None,
        }
    }
}

/// One stage's call in a procedure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The attempt it was made in.
    pub attempt: Attempt,
    /// Which stage, from 1.
    pub stage: u32,
    /// Its role.
    pub role: Key,
    /// Whether it only hands on.
    pub coordinates: bool,
    /// What it was handed, by the digest of its artifact.
    pub packet: Digest,
    /// How it ended; it has no outcome of its own.
    pub end: AttemptEnd,
}

/// What became of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Nothing yet.
    Pending,
    /// Both worlds answered.
    Valid,
    /// It does not count among the valid.
    Invalid(Cause),
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case", deny_unknown_fields)]
pub enum Entry {
    /// The accounts begin.
    Opened {
        /// The study.
        study: Key,
        /// The revision.
        revision: u32,
        /// The digest of its freeze.
        freeze: Digest,
    },
    /// A pair is enrolled. From here on it is in every report.
    Enrolled {
        /// The pair.
        pair: Key,
        /// Its item.
        item: Key,
        /// What its worlds differ in.
        kind: PairKind,
        /// The family of the item.
        family: Key,
        /// The cluster of the item.
        cluster: Key,
    },
    /// The item was committed.
    Committed {
        /// The pair.
        pair: Key,
        /// The digest of everything the worlds begin from.
        store: Digest,
    },
    /// The packets were made and compared.
    Compared {
        /// The pair.
        pair: Key,
        /// The packet of world A.
        a: Digest,
        /// The packet of world B.
        b: Digest,
        /// How they differ, by the digest of its artifact.
        difference: Digest,
        /// The state that both worlds' monitors judge on.
        state: Digest,
    },
    /// An attempt begins.
    Began(Attempt),
    /// An attempt has ended.
    Ended {
        /// The attempt.
        attempt: Attempt,
        /// How.
        end: AttemptEnd,
    },
    /// The mechanism was tested: from here on procedures may be compared, by this build.
    Tested {
        /// The build.
        build: Digest,
        /// Valid pairs about inheritance.
        valid: usize,
    },
    /// A stage of a procedure was asked.
    Called(Box<Call>),
    /// A pair has its fate.
    Settled {
        /// The pair.
        pair: Key,
        /// Why it is invalid; none where it is valid.
        cause: Option<Cause>,
        /// In words.
        reason: Option<String>,
    },
    /// Every output is in; the truth may be opened.
    Sealed {
        /// How many pairs were enrolled.
        enrolled: usize,
    },
}

impl Entry {
    /// The same without what it says in words; none where it says nothing in words.
    #[must_use]
    pub fn without_words(&self) -> Option<Self> {
        let mut silent = self.clone();
        let reason = match &mut silent {
            Self::Ended { end, .. } => &mut end.reason,
            Self::Called(call) => &mut call.end.reason,
            Self::Settled { reason, .. } => reason,
            Self::Opened { .. }
            | Self::Enrolled { .. }
            | Self::Committed { .. }
            | Self::Compared { .. }
            | Self::Began(_)
            | Self::Tested { .. }
            | Self::Sealed { .. } => return None,
        };
        reason.take().map(|_| silent)
    }
}

/// What the accounts know of a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairRecord {
    /// Its item.
    pub item: Key,
    /// What its worlds differ in.
    pub kind: PairKind,
    /// The family of the item.
    pub family: Key,
    /// The cluster of the item.
    pub cluster: Key,
    /// What its worlds begin from.
    pub store: Option<Digest>,
    /// Packets A and B, how they differ, and the state that is judged on.
    pub compared: Option<[Digest; 4]>,
    /// Every attempt, in order, with its end.
    pub attempts: Vec<(Attempt, Option<AttemptEnd>)>,
    /// Every call of a procedure's stages, in order.
    pub calls: Vec<Call>,
    /// Its fate.
    pub fate: Fate,
    /// The fate in words.
    pub reason: Option<String>,
}

impl PairRecord {
    /// The answer that a stage of a procedure has given: it is not asked for again.
    #[must_use]
    pub fn answered(&self, of: &Attempt, stage: u32) -> Option<Digest> {
        let same = |call: &&Call| {
            (call.attempt.world, call.attempt.repeat, call.stage) == (of.world, of.repeat, stage)
                && call.end.cause.is_none()
        };
        self.calls.iter().find(same).and_then(|call| call.end.answer)
    }

    /// The attempt that counts for a repeat of a world, and how it ended.
    #[must_use]
    pub fn counted(&self, world: World, repeat: u32) -> Option<(&Attempt, &AttemptEnd)> {
        let of = self.attempts.iter().filter(|(attempt, _)| attempt.world == world && attempt.repeat == repeat);
        of.filter_map(|(attempt, end)| Some((attempt, end.as_ref()?))).find(|(_, end)| end.cause.is_none())
    }
}
