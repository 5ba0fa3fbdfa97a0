//! Who does the work, and what it can be done with: coalitions, capabilities, workflows and skills. Spec: §3.1, §3.4, C4.
//!
//! A coalition names responsibilities and who takes them; a role is a word of the deployment's own. The catalogue links
//! workflows and skills many-to-many by ids that nothing here knows. Neither permits anything.

use crate::conference::MoveKind;
use crate::contract::nonempty;
use crate::digest::Digest;
use crate::fault::Fault;
use crate::id::{
    ActorId, CapabilityId, CoalitionId, ContextId, Key, MethodId, ObligationId, SkillId, Text, WorkflowId,
};
use crate::item::{Standing, Verification};
use crate::refs::{Amounts, Plain, VersionedRef};
use crate::route::CapabilityContractRef;
use crate::work::{Proposition, StopCondition};

crate::contract! {
    /// Who works, in which role, with what. Spec: §3.1, §4.1, C4.
    pub struct Member = "Member" {
        "CP-C4-F03" actor: ActorId,
        "CP-C4-F04" role: Key,
        /// The context that lasts from conference to conference with all that it has seen; `null` for a fresh one each time.
        "CP-4.1-36" context: Option<ContextId>,
        "CP-4.1-36" model: Key,
        "CP-4.1-36" tools: Vec<Key>,
        /// The capability contracts that it works under.
        "CP-C4-F07" capabilities: Vec<CapabilityContractRef>,
        /// Who may take its place where it cannot be reached, in order.
        "CP-C4-F03" alternatives: Vec<ActorId>,
        /// What one unit of its work may cost at most, beside its calls and its time.
        "CP-C4-F10" worst_case: Amounts,
    }
}

crate::contract! {
    /// How several members confer: the bounds, moves and rule of every conference that they hold. Spec: §4.1.
    pub struct Inquiry = "Inquiry" checked by Inquiry::check_bounds {
        /// The propositions as the deployment writes them out; one that is missing stands as its obligation leaves it open.
        "CP-4.1-08" subjects: Vec<Proposition>,
        "CP-4.1-23" stop: StopCondition,
        "CP-4.1-13" seal_within_ms: u64,
        #[schemars(length(min = 1))]
        "CP-4.1-23" allowed_moves: Vec<MoveKind>,
        "CP-4.1-09" decision_rule_ref: VersionedRef,
        "CP-4.1-18" independence_required: bool,
        "CP-4.1-14" late_counts: bool,
    }
}

impl Inquiry {
    fn check_bounds(&self) -> Result<(), Fault> {
        nonempty(&self.allowed_moves, "allowed_moves")
    }
}

crate::contract! {
    /// Who works on which obligations. Its version is the membership version that work names. Spec: C4.
    pub struct Coalition = "Coalition" checked by Coalition::check_members {
        "CP-C4-F05" coalition_id: CoalitionId,
        "CP-C4-F06" version: u32,
        /// The obligations that it works on; empty for all that no other coalition names.
        "CP-C4-F05" obligations: Vec<ObligationId>,
        #[schemars(length(min = 1))]
        "CP-C4-F03" members: Vec<Member>,
        /// What the work takes, to be looked up in the catalogue.
        "CP-C4-F08" needs: Vec<CapabilityId>,
        /// How they confer; `null` where one works alone.
        "CP-4.1-23" inquiry: Option<Inquiry>,
        "CP-C4-F05" standing: Standing,
    }
}

impl Coalition {
    fn check_members(&self) -> Result<(), Fault> {
        nonempty(&self.members, "members")?;
        if self.members.len() > 1 && self.inquiry.is_none() {
            return Err(Fault::schema("several members say how they confer").within("inquiry"));
        }
        let twice = self.members.iter().enumerate().any(|(at, member)| {
            self.members.iter().skip(at + 1).any(|other| {
                other.actor == member.actor || (other.context.is_some() && other.context == member.context)
            })
        });
        match twice {
            true => Err(Fault::schema("an actor is a member once, and a context belongs to one").within("members")),
            false => Ok(()),
        }
    }

    /// The member that an actor is.
    #[must_use]
    pub fn member(&self, actor: &ActorId) -> Option<&Member> {
        self.members.iter().find(|member| member.actor == *actor)
    }
}

crate::contract! {
    /// What can be done, under one exact contract, and the endpoints that were verified to do it. Spec: SR8, C4, DEC-90.
    pub struct Capability = "Capability" checked by Capability::check_contract {
        "CP-C4-F07" capability_id: CapabilityId,
        "CP-C4-F07" version: u32,
        "CP-C4-F07" text: Text,
        "CP-C4-F07" contract: Plain,
        "CP-C4-F07" contract_digest: Digest,
        "CP-C4-F07" endpoints: Vec<Verification>,
        "CP-C4-F07" standing: Standing,
    }
}

impl Capability {
    fn check_contract(&self) -> Result<(), Fault> {
        match crate::canonical::digest_of(&self.contract)? == self.contract_digest {
            true => Ok(()),
            false => Err(Fault::new(
                crate::refusal::RefusalCode::DigestMismatch,
                "the contract is not what its digest names",
            )
            .within("contract_digest")),
        }
    }
}

crate::contract! {
    /// A way of working, by an opaque id: there is no closed list of them. Spec: SR9, §3.4.
    pub struct Workflow = "Workflow" {
        "CP-C4-F08" workflow_id: WorkflowId,
        "CP-C4-F08" text: Text,
        /// The needs that it is a way to meet.
        "CP-C4-F08" needs: Vec<CapabilityId>,
        "CP-C4-F08" standing: Standing,
    }
}

crate::contract! {
    /// Something that a participant knows how to do. Its text permits nothing. Spec: SR10, §3.4.
    pub struct Skill = "Skill" {
        "CP-C4-F08" skill_id: SkillId,
        "CP-C4-F08" text: Text,
        /// The workflows that it is usable in.
        "CP-C4-F08" workflows: Vec<WorkflowId>,
        /// The methods that it brings together.
        "CP-C4-F08" methods: Vec<MethodId>,
        /// The roles that it is for; empty for all.
        "CP-C4-F08" roles: Vec<Key>,
        "CP-C4-F08" standing: Standing,
    }
}
