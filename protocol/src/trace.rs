//! Trace contracts: that what was accepted follows, citation by citation, from what made it due. Spec: C15, DEC-91, DEC-108.
//!
//! Every record cites its predecessors by id and digest. A check starts from the last record and walks the citations back
//! to the first; it compares no timestamps. What is cited has to be on record, to be what the citation says, and to stand
//! before the record that cites it. A gap names the stage that is missing and the citation that led there.
//!
//! ```text
//! event → match → activation → work → result → action → pre-action → dispatch → readback → post-outcome → delta → endorsement → receipt
//!    due trigger ↗                        └──────── all of this block or nothing of it ────────┘
//! ```

mod chain;
mod judgment;
mod ordinary;
mod urgent;

pub use chain::Chain;
pub use judgment::check_judgment;
pub use ordinary::{check_attempt, check_delta, check_ordinary};
pub use urgent::check_urgent;

use chain::Located;
use closer_contracts::digest::Digest;
use closer_contracts::{branch, word_enum};
use std::fmt;

word_enum! {
    /// A place in a trace.
    pub enum Stage {
        /// What an observer saw.
        Event = "event",
        /// The receipt that matched it to the obligation.
        Match = "match",
        /// A due trigger, which stands in for event and match.
        Trigger = "trigger",
        /// The invalidation of something the obligation relies on, which makes it due.
        Invalidation = "invalidation",
        /// The episode that took the cause up.
        Activation = "activation",
        /// Bounded work.
        Work = "work",
        /// The participant's answer.
        Result = "result",
        /// The proposed action.
        Action = "action",
        /// The judgment before it.
        PreAction = "pre_action",
        /// The durable intent.
        Dispatch = "dispatch",
        /// Evidence that a delta rests on.
        Evidence = "evidence",
        /// What the target showed.
        Readback = "readback",
        /// The judgment of what was established.
        PostOutcome = "post_outcome",
        /// The immutable proposal.
        Delta = "delta",
        /// Its endorsement.
        Endorsement = "endorsement",
        /// The accepted transition.
        Commit = "commit",
        /// Its receipt.
        Receipt = "receipt",
        /// An authenticated restrictive event or statement.
        Restriction = "restriction",
        /// A dispatch that the restriction refused.
        Refusal = "refusal",
        /// The record that a deadline was missed.
        Overdue = "overdue",
        /// The review of an urgent commit.
        Reconciliation = "reconciliation",
        /// The ordinary commit that corrects or confirms it.
        Correction = "correction",
        /// An assessment that left something open.
        Assessment = "assessment",
        /// The packet on The Bench.
        Bench = "bench",
        /// The user's explicit decision.
        Decision = "decision",
        /// The grant made from it.
        Grant = "grant",
        /// The action's assessment after the grant.
        Reassessment = "reassessment",
    }
}

/// One record of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its stage.
    pub stage: Stage,
    /// Its id.
    pub id: String,
    /// Its digest.
    pub digest: Digest,
    /// One line for people.
    pub text: String,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<14} {}  {}", self.stage, self.id, self.text)
    }
}

/// A walked trace, predecessors first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// The records.
    pub steps: Vec<Step>,
}

/// Why a trace does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// What is cited is not on record.
    Missing,
    /// What is cited does not stand before what cites it.
    OutOfOrder,
    /// What is cited is not what the citation says, or not what the stage demands.
    Differs(&'static str),
}

/// Where a trace breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The stage that is missing.
    pub missing: Stage,
    /// The stage and id of the record whose citation led there; absent where nothing led there.
    pub cited_by: Option<(Stage, String)>,
    /// The citation.
    pub citation: String,
    /// What is wrong with it.
    pub fault: Fault,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the trace has no {}: ", self.missing)?;
        if let Some((stage, id)) = &self.cited_by {
            write!(f, "{stage} `{id}` cites `{}`, which ", self.citation)?;
        } else {
            write!(f, "`{}` ", self.citation)?;
        }
        match &self.fault {
            Fault::Missing => f.write_str("is not on record"),
            Fault::OutOfOrder => f.write_str("is not on record before it"),
            Fault::Differs(how) => f.write_str(how),
        }
    }
}

impl std::error::Error for Gap {}

/// The record whose citation is being followed.
#[derive(Debug, Clone)]
struct From {
    stage: Stage,
    id: String,
    position: u64,
}

impl From {
    fn new(stage: Stage, id: impl fmt::Display, position: u64) -> Self {
        Self { stage, id: id.to_string(), position }
    }

    fn gap(&self, missing: Stage, citation: impl fmt::Display, fault: Fault) -> Gap {
        Gap { missing, cited_by: Some((self.stage, self.id.clone())), citation: citation.to_string(), fault }
    }

    /// What the record cites, if it is there and stands before it.
    fn follow<'a, T>(
        &self,
        missing: Stage,
        citation: impl fmt::Display,
        cited: Option<&'a Located<T>>,
    ) -> Result<&'a Located<T>, Gap> {
        let cited = cited.ok_or_else(|| self.gap(missing, &citation, Fault::Missing))?;
        match branch!("trace.cited_stands_before", cited.position < self.position) {
            true => Ok(cited),
            false => Err(self.gap(missing, &citation, Fault::OutOfOrder)),
        }
    }

    /// Demands something of what is cited.
    fn demand(&self, holds: bool, missing: Stage, citation: impl fmt::Display, how: &'static str) -> Result<(), Gap> {
        match holds {
            true => Ok(()),
            false => Err(self.gap(missing, citation, Fault::Differs(how))),
        }
    }
}

impl Trace {
    fn has(&self, stage: Stage, id: &str) -> bool {
        self.steps.iter().any(|step| step.stage == stage && step.id == id)
    }

    fn push(&mut self, stage: Stage, id: impl fmt::Display, digest: Digest, text: impl Into<String>) {
        let id = id.to_string();
        if !self.has(stage, &id) {
            self.steps.push(Step { stage, id, digest, text: text.into() });
        }
    }
}
