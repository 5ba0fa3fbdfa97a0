//! BRIEFCASE: one judgment that belongs to the user. Spec: §7.3, C13.

use crate::adjudication::Dissent;
use crate::contract::Check;
use crate::fault::Fault;
use crate::id::{DecisionId, EvidenceId, ObligationId, OperationId, OptionId, PolicyId, Text};
use crate::item::ParameterBound;
use crate::reentry::TypedPredicate;
use crate::refs::{Amounts, TargetPattern};
use crate::time::Timestamp;
use crate::work::ActionProposal;
use serde::{Deserialize, Serialize};

crate::words! {
    /// What is asked of the user (DEC-63).
    pub enum DecisionClass {
        /// What the user prefers.
        Preference = "preference",
        /// Whether the user gives authority.
        NewAuthority = "new_authority",
        /// Which side of a material tradeoff the user takes.
        MaterialTradeoff = "material_tradeoff",
    }
}

crate::words! {
    /// Where a packet stands (DEC-63).
    pub enum PacketStatus {
        /// It waits for an answer.
        Open = "open",
        /// Its deadline passed unanswered.
        Overdue = "overdue",
        /// A newer version replaced it.
        Refreshed = "refreshed",
        /// It was taken back, visibly.
        Withdrawn = "withdrawn",
        /// It was answered.
        Answered = "answered",
    }
}

crate::contract! {
    /// What the packet recommends and why. Spec: C13.
    pub struct Recommendation = "Recommendation" {
        "CP-C13-F05" option_id: OptionId,
        "CP-C13-F05" text: Text,
    }
}

crate::contract! {
    /// One way to answer, with its consequence. Spec: C13.
    pub struct Alternative = "Alternative" {
        "CP-C13-F07" option_id: OptionId,
        "CP-C13-F07" text: Text,
        "CP-C13-F07" consequence: Text,
    }
}

crate::contract! {
    /// A grant that the packet asks for; what is given is never wider (DEC-65).
    pub struct GrantProposal = "GrantProposal" {
        "CP-C13-F11" allowed_operations: Vec<OperationId>,
        "CP-C13-F11" targets: Vec<TargetPattern>,
        "CP-C13-F11" parameter_bounds: Vec<ParameterBound>,
        "CP-C13-F11" resource_bounds: Amounts,
        "CP-C13-F11" expiry: Timestamp,
    }
}

/// What a packet asks to be allowed. Spec: C13.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RequestedAuthorization {
    /// One exact action, and the narrowest grant that covers it.
    Action {
        /// The action.
        proposal: ActionProposal,
        /// The grant.
        grant: GrantProposal,
    },
    /// A grant for more than one action.
    Grant(GrantProposal),
}

impl RequestedAuthorization {
    /// The grant it asks for.
    #[must_use]
    pub const fn grant(&self) -> &GrantProposal {
        match self {
            Self::Action { grant, .. } | Self::Grant(grant) => grant,
        }
    }
}

impl Check for RequestedAuthorization {
    fn check(&self) -> Result<(), Fault> {
        match self {
            Self::Action { proposal, grant } => {
                proposal.check().map_err(|fault| fault.within("action.proposal"))?;
                grant.check().map_err(|fault| fault.within("action.grant"))
            }
            Self::Grant(grant) => grant.check().map_err(|fault| fault.within("grant")),
        }
    }
}

crate::contract! {
    /// What goes on and what stays blocked until the answer, and what silence leads to. Spec: C13.
    pub struct WhileWaiting = "WhileWaiting" {
        "CP-C13-F14" permitted: Vec<Text>,
        "CP-C13-F14" blocked: Vec<Text>,
        "CP-C13-F14" consequence: Text,
    }
}

crate::contract! {
    /// One judgment for the user, with what it rests on. Spec: C13.
    pub struct Briefcase = "BRIEFCASE" checked by Briefcase::check_packet {
        "CP-C13-F01" decision_id: DecisionId,
        #[schemars(length(min = 1))]
        "CP-C13-F02" obligation_ids: Vec<ObligationId>,
        "CP-C13-F03" question: Text,
        "CP-C13-F04" decision_class: DecisionClass,
        "CP-C13-F05" recommendation: Option<Recommendation>,
        /// Never empty where the recommendation is null.
        "CP-C13-F06" recommendation_reason: Option<Text>,
        "CP-C13-F07" alternatives: Vec<Alternative>,
        "CP-C13-F08" evidence_refs: Vec<EvidenceId>,
        "CP-C13-F09" dissent: Vec<Dissent>,
        "CP-C13-F10" remaining_uncertainty: Vec<Text>,
        "CP-C13-F11" requested_authorization: Option<RequestedAuthorization>,
        "CP-C13-F12" deadline: Option<Timestamp>,
        "CP-C13-F13" deadline_policy_ref: PolicyId,
        "CP-C13-F14" while_waiting: WhileWaiting,
        "CP-C13-F15" refresh_conditions: Vec<TypedPredicate>,
        "CP-C13-F16" status: PacketStatus;
        /// Extensions in reverse-DNS keys; digested, never read by a decision (DEC-09).
        extensions: Option<crate::envelope::Extensions>
    }
}

impl Briefcase {
    fn check_packet(&self) -> Result<(), Fault> {
        crate::contract::nonempty(&self.obligation_ids, "obligation_ids")?;
        let unexplained =
            self.recommendation_reason.is_none() && (self.recommendation.is_none() || self.alternatives.is_empty());
        match crate::branch!("briefcase.null_recommendation_has_reason", unexplained) {
            true => Err(Fault::schema("a packet without recommendation or alternatives says why")
                .within("recommendation_reason")),
            false => Ok(()),
        }
    }
}
