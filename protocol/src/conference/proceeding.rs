//! What the runtime writes down of a conference: seal, release, access, report. Spec: §4.1, DEC-40 to DEC-42.

use closer_contracts::adjudication::Dissent;
use closer_contracts::canonical::hash_parts;
use closer_contracts::conference::Seat;
use closer_contracts::contract::Check;
use closer_contracts::digest::Digest;
use closer_contracts::fault::Fault;
use closer_contracts::id::{ActorId, ArtifactId, ConferenceId, ContextId, Id, Key, Text};
use closer_contracts::obligation::AssessmentStatus;
use closer_contracts::refs::{ArtifactRef, StateRef};
use closer_contracts::time::Timestamp;
use closer_contracts::word_enum;
use closer_contracts::work::WorkResult;
use serde::{Deserialize, Serialize};

/// One thing that the runtime records of a conference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proceeding {
    /// Its id.
    pub proceeding_id: ArtifactId,
    /// The conference.
    pub conference_id: ConferenceId,
    /// What happened.
    pub what: What,
    /// When.
    pub at: Timestamp,
}

impl Check for Proceeding {
    fn check(&self) -> Result<(), Fault> {
        self.proceeding_id.check().map_err(|fault| fault.within("proceeding_id"))
    }
}

/// What happened in a conference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// The initial positions were sealed.
    Sealed(Seal),
    /// They were released to the seats.
    Released(Release),
    /// Somebody reached for a position.
    Accessed(Access),
    /// The conference is over.
    Concluded(Report),
}

/// The available initial positions, fixed: nobody can read or change them until they are released.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seal {
    /// The accepted state they were taken on.
    pub basis: StateRef,
    /// Each position, as a digest that cannot be guessed from its content.
    pub sealed: Vec<Sealed>,
    /// Who had said nothing when the time was over.
    pub absent: Vec<ActorId>,
    /// At least 128 random bits, disclosed at release.
    pub nonce: Key,
}

/// One sealed position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sealed {
    /// Whose it is.
    pub actor: ActorId,
    /// In which role.
    pub role: Key,
    /// The digest over nonce, actor and record.
    pub digest: Digest,
}

/// The digest that a position is sealed under.
#[must_use]
pub fn sealed_digest(nonce: &Key, actor: &ActorId, position: Digest) -> Digest {
    let parts = [nonce.as_str().as_bytes(), actor.as_str().as_bytes(), position.raw()];
    hash_parts("closer.seal.v1", &parts)
}

word_enum! {
    /// What a position counts as.
    pub enum Label {
        /// Taken without having seen another one.
        Independent = "independent",
        /// Taken after sealing and before release (DEC-41).
        LateUnexposed = "late_unexposed",
        /// Taken in a context that has seen another one.
        Informed = "informed",
        /// There is none. Never assent.
        Absent = "absent",
    }
}

/// One released position, readable by every seat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Released {
    /// Whose it is.
    pub actor: ActorId,
    /// In which role.
    pub role: Key,
    /// What it counts as.
    pub label: Label,
    /// The record it is.
    pub position: ArtifactRef,
    /// What it says.
    pub content: WorkResult,
}

/// The positions that the group gets to see, and the contexts that see them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// The seal that is opened.
    pub seal: ArtifactRef,
    /// Its nonce.
    pub nonce: Key,
    /// The positions, in the order in which they came.
    pub positions: Vec<Released>,
    /// The contexts that see them from now on.
    pub contexts: Vec<ContextId>,
}

word_enum! {
    /// What became of somebody's reach for a position.
    pub enum Reach {
        /// It was refused; nothing was seen.
        Refused = "refused",
        /// It was seen after its release.
        Seen = "seen",
        /// It was seen before its release, or it is not certain that it was not: a violation (DEC-42).
        Leaked = "leaked",
    }
}

/// Who reached for which position, in which context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// The reader.
    pub reader: ActorId,
    /// In which context.
    pub context: ContextId,
    /// The position, with the digest of its bytes.
    pub item: ArtifactRef,
    /// What became of it.
    pub reach: Reach,
}

word_enum! {
    /// Why a conference is over. It never closes its obligation.
    pub enum Ending {
        /// The coordinator asked for the declared rule to be applied.
        RuleApplied = "rule_applied",
        /// The rounds were used up.
        Rounds = "rounds",
        /// The calls were used up.
        Calls = "calls",
        /// The time was over.
        Time = "time",
    }
}

word_enum! {
    /// What may be said about the independence of the positions.
    pub enum Claim {
        /// At least two were taken independently, and nothing speaks against it.
        Held = "held",
        /// Something leaked before the release: nothing is claimed for this round (§4.1).
        Suspended = "suspended",
        /// Fewer than two are independent, or one model stands behind several.
        NotEstablished = "not_established",
    }
}

/// What may be said about the independence of a round's positions, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Independence {
    /// What may be said.
    pub claim: Claim,
    /// How many positions count as independent.
    pub count: u32,
    /// Why it is not more.
    pub reasons: Vec<Text>,
}

/// What one participant brought and had seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attendance {
    /// Actor, role, context, model and tools.
    pub seat: Seat,
    /// What its position counts as.
    pub label: Label,
    /// The how-manieth position it was, from 1; `None` when there is none.
    pub order: Option<u32>,
    /// The positions of others on these subjects that its context had seen, inherited ones included.
    pub exposures: Vec<ArtifactRef>,
}

/// What the declared rule comes to for one subject. Voices are not counted anywhere in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// The subject.
    pub subject: Id,
    /// Its digest.
    pub digest: Digest,
    /// What its sufficiency rule computes from the evidence; `unassessed` for a proposed action.
    pub status: AssessmentStatus,
    /// What was objected to it and not taken back.
    pub dissent: Vec<Dissent>,
}

/// The outcome of a conference. It accepts nothing: adjudication and commit do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Why it is over.
    pub ending: Ending,
    /// The accepted state it speaks on.
    pub basis: StateRef,
    /// Everybody who was asked.
    pub attendance: Vec<Attendance>,
    /// What may be said about independence.
    pub independence: Independence,
    /// What was found, subject by subject.
    pub findings: Vec<Finding>,
}
