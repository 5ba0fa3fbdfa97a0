//! What the sequence takes and gives.

use crate::disclose::Request;
use crate::entry::{ArtifactBody, Entry, EpisodeEnd};
use crate::port::{Order, Performed};
use closer_contracts::Payload;
use closer_contracts::audit::DisclosureReceipt;
use closer_contracts::auth::Authenticated;
use closer_contracts::id::{
    ActorId, AdjudicationId, AttemptId, DeltaId, EpisodeId, ObligationId, PayloadId, ReadbackMethodId, Text, WorkId,
};
use closer_contracts::record::FencedAppend;
use closer_contracts::refs::{ActorRef, Amounts, ArtifactRef, Target};
use closer_contracts::refusal::Denial;
use closer_contracts::time::Timestamp;
use closer_monitor::{Admission, ClockStanding};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The time that comes with an input, and whether it can be trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// The runtime's time.
    pub now: Timestamp,
    /// Whether it can be trusted (DEC-59).
    pub clock: ClockStanding,
}

/// Something authenticated that seeks to be recorded. The shell authenticates before; the sequence checks again that the
/// identity is still current.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission<T> {
    /// What is submitted.
    pub content: Arc<T>,
    /// Who submitted it, as authenticated.
    pub producer: ActorRef,
    /// The proof of its authentication.
    pub auth: Authenticated,
}

/// What a participant answers a unit of work with.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// A RESULT.
    Result(Submission<Payload>),
    /// Its move in a conference.
    Move(Submission<ArtifactBody>),
}

/// What the sequence decides, one after another.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A payload of the twelve types.
    Payload(Submission<Payload>),
    /// A unit of work, with the receipt of what its packet releases to whom (§4.3).
    Issue {
        /// The WORK payload.
        work: Submission<Payload>,
        /// What it releases, and to which participant.
        disclosure: DisclosureReceipt,
    },
    /// A participant answered a unit of work, and what that used.
    Answer {
        /// The answer.
        answer: Answer,
        /// What it used, as far as anybody measured it.
        used: Amounts,
    },
    /// A participant gave no answer that counts to a unit of work (C6).
    Unanswered {
        /// The work.
        work_id: WorkId,
        /// What was wrong.
        denial: Denial,
        /// What it used all the same, as far as anybody measured it.
        used: Amounts,
        /// Who handed it in from outside; nobody where the runtime asked for it itself.
        handed_in_by: Option<ActorId>,
    },
    /// Somebody asks for a part of the record (§4.3).
    Disclose(Submission<Request>),
    /// An artifact: declaration, decision, restriction, reconciliation, consent.
    Artifact(Submission<ArtifactBody>),
    /// Bytes that could not be read or authenticated: recorded as refused, or aggregated.
    Unreadable {
        /// Who seemed to send them; never trusted.
        subject: Text,
        /// Why.
        denial: Denial,
    },
    /// A target could not be looked at: told once for each cause until it is seen again, so that nobody waits for it in silence.
    Unseen {
        /// What cannot be looked at.
        target: Target,
        /// How it is looked at.
        method: ReadbackMethodId,
        /// The obligation that waits for it.
        obligation_id: ObligationId,
        /// Why it cannot.
        reason: Text,
    },
    /// A target that could not be looked at shows again what it showed before: why it was unseen is over.
    SeenAgain {
        /// What can be looked at.
        target: Target,
        /// How it is looked at.
        method: ReadbackMethodId,
        /// The obligation that waits for it.
        obligation_id: ObligationId,
    },
    /// The scheduler opens an episode on an eligible obligation.
    Open {
        /// The obligation.
        obligation_id: ObligationId,
        /// The episode's fresh id.
        episode_id: EpisodeId,
    },
    /// The planner asks for the admission of one attempt.
    Dispatch {
        /// The ACTION payload.
        payload_id: PayloadId,
        /// The adjudication that is offered for it; `None` looks the newest up.
        adjudication_id: Option<AdjudicationId>,
    },
    /// The dispatcher reports what a call came to.
    Performed {
        /// The attempt.
        attempt_id: AttemptId,
        /// What it came to.
        performed: Performed,
    },
    /// The semantic service asks for the commit of an endorsed delta.
    Commit {
        /// The delta.
        delta_id: DeltaId,
    },
    /// The coordinator ends an episode.
    End {
        /// The episode.
        episode_id: EpisodeId,
        /// Why.
        end: EpisodeEnd,
        /// For people.
        reason: Text,
    },
    /// The coordinator takes a conference one step further, or somebody reaches for a position of it.
    Confer(crate::conference::Proceed),
    /// Time has passed: whatever is due happens.
    Tick,
    /// The process, or a part of it, has started again: attempts without an outcome are unknown from now on, but for those
    /// that are still running here and will tell.
    Recover {
        /// The attempts whose effect is on its way in this process.
        running: BTreeSet<AttemptId>,
    },
}

/// What may follow once the step's records are durable, and not before.
#[expect(clippy::large_enum_variant, reason = "made once, moved a few times and taken apart; boxes would cost more")]
#[derive(Debug)]
pub enum Effect {
    /// Send one admitted effect.
    Perform {
        /// The admission; the shell releases it into a permit with the acknowledgment of the append.
        admission: Admission,
        /// What to do.
        order: Order,
        /// The newest restriction that was decided.
        restriction_cursor: u64,
    },
    /// Ask for the cancellation of an effect under way, where it can be called back.
    Cancel {
        /// The attempt.
        attempt_id: AttemptId,
        /// What it does.
        order: Order,
    },
    /// An obligation has become eligible for work.
    Eligible(ObligationId),
    /// An episode can go on.
    Advance(EpisodeId),
    /// A packet is on The Bench.
    OnTheBench(closer_contracts::id::DecisionId),
}

/// What the caller is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// It was recorded: the references to what it became.
    Recorded(Vec<ArtifactRef>),
    /// It was refused: every denial, and the foremost is the one to tell.
    Refused(Vec<Denial>),
}

impl Reply {
    /// The foremost denial, where there is one.
    #[must_use]
    pub fn refusal(&self) -> Option<&Denial> {
        match self {
            Self::Recorded(_) => None,
            Self::Refused(denials) => closer_contracts::refusal::foremost(denials),
        }
    }
}

/// One decision: what is appended, how the view changes, what may follow, what the caller is told.
#[derive(Debug)]
pub struct Step {
    /// The append; nothing leaves the process before it is durable.
    pub append: Option<FencedAppend>,
    /// The typed entries of the append's records, folded into the view at once.
    pub entries: Vec<Entry>,
    /// What may follow.
    pub effects: Vec<Effect>,
    /// What the caller is told.
    pub reply: Reply,
}
