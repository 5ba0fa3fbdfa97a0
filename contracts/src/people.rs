//! Who decides besides the one user: an organization's quorums, what a person may decide, and who stands in while one is away.
//! Spec: SR1, §7.3, DEC-63.
//!
//! Where nothing is said here, one answer of anybody who speaks as the user decides. An absence never gives a deputy anything:
//! it decides only what it may decide anyway.

use crate::briefcase::DecisionClass;
use crate::contract::Check;
use crate::delta::AuthorityKind;
use crate::fault::Fault;
use crate::id::{ActorId, OperationId};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// How many of a group it takes before one kind of authority stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Quorum {
    /// The kind of authority: a decision on a packet, a declaration, or an instruction given in review.
    pub kind: AuthorityKind,
    /// The group. Each of them counts once.
    pub of: Vec<ActorId>,
    /// How many of them it takes, 1 to all.
    pub needed: u32,
}

/// What a person besides the user may decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mandate {
    /// The person.
    pub person: ActorId,
    /// The classes of questions.
    pub classes: Vec<DecisionClass>,
    /// The operations that an answer may allow; none where it is empty.
    #[serde(default)]
    pub operations: Vec<OperationId>,
}

/// A time in which a person is away, and who is asked instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Absence {
    /// Who is away.
    pub person: ActorId,
    /// From when.
    pub from: Timestamp,
    /// Until when; from then on the person is back.
    pub to: Timestamp,
    /// Who stands in, within a mandate of its own.
    pub deputy: ActorId,
}

/// The people of a deployment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct People {
    /// Quorums, at most one for each kind of authority.
    pub quorum: Vec<Quorum>,
    /// Mandates. Where there is one, whoever has none and is not the user decides nothing.
    pub mandate: Vec<Mandate>,
    /// Absences.
    pub absence: Vec<Absence>,
}

impl People {
    /// Whether nothing is said about people.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.quorum.is_empty() && self.mandate.is_empty() && self.absence.is_empty()
    }

    /// The quorum that a kind of authority takes, where it takes one.
    #[must_use]
    pub fn quorum_of(&self, kind: AuthorityKind) -> Option<&Quorum> {
        self.quorum.iter().find(|quorum| quorum.kind == kind)
    }
}

impl Check for Quorum {
    fn check(&self) -> Result<(), Fault> {
        self.of.check().map_err(|fault| fault.within("of"))?;
        let counted =
            matches!(self.kind, AuthorityKind::Declaration | AuthorityKind::UserDecision | AuthorityKind::Instruction);
        if !counted {
            return Err(Fault::schema("people give declarations, decisions and instructions").within("kind"));
        }
        let twice = self.of.iter().enumerate().any(|(at, one)| self.of.iter().skip(at + 1).any(|other| other == one));
        if twice {
            return Err(Fault::schema("nobody counts twice").within("of"));
        }
        if self.needed == 0 || self.needed as usize > self.of.len() {
            return Err(Fault::schema("it takes at least one of the group and at most all").within("needed"));
        }
        Ok(())
    }
}

impl Check for Mandate {
    fn check(&self) -> Result<(), Fault> {
        self.person.check().map_err(|fault| fault.within("person"))?;
        self.operations.check().map_err(|fault| fault.within("operations"))
    }
}

impl Check for Absence {
    fn check(&self) -> Result<(), Fault> {
        self.person.check().map_err(|fault| fault.within("person"))?;
        self.deputy.check().map_err(|fault| fault.within("deputy"))?;
        if self.person == self.deputy {
            return Err(Fault::schema("nobody stands in for themselves").within("deputy"));
        }
        if self.from >= self.to {
            return Err(Fault::schema("an absence ends after it begins").within("to"));
        }
        Ok(())
    }
}

impl Check for People {
    fn check(&self) -> Result<(), Fault> {
        self.quorum.check().map_err(|fault| fault.within("quorum"))?;
        self.mandate.check().map_err(|fault| fault.within("mandate"))?;
        self.absence.check().map_err(|fault| fault.within("absence"))?;
        let kinds = |at: usize| self.quorum.iter().skip(at + 1).map(|other| other.kind);
        let twice = self.quorum.iter().enumerate().any(|(at, one)| kinds(at).any(|kind| kind == one.kind));
        match twice {
            true => Err(Fault::schema("a kind of authority has one quorum").within("quorum")),
            false => Ok(()),
        }
    }
}
