//! ROUTE: which actors and capabilities do the work. Spec: C4.

use crate::digest::Digest;
use crate::id::{ActorId, BudgetId, CapabilityId, CoalitionId, DisclosureId, Key, RouteId, Text, WorkflowId};
use crate::refs::ActorRef;

crate::contract! {
    /// A capability contract at one exact version and digest. Spec: C4, DEC-10.
    pub struct CapabilityContractRef = "CapabilityContractRef" {
        "CP-C4-F07" id: CapabilityId,
        "CP-C4-F07" version: u32,
        "CP-C4-F07" digest: Digest,
    }
}

crate::contract! {
    /// Which assessment role an actor takes. Roles are not built in (§3.1).
    pub struct RoleAssignment = "RoleAssignment" {
        "CP-C4-F04" actor: ActorId,
        "CP-C4-F04" role: Key,
    }
}

crate::contract! {
    /// A need that no registered capability meets, recorded as a gap. Spec: §3.4.
    pub struct CapabilityGap = "CapabilityGap" {
        "CP-C4-F02" need: Key,
        "CP-C4-F02" reason: Text,
    }
}

crate::contract! {
    /// The actors, capabilities, disclosure and allocation for one episode. Spec: C4.
    pub struct Route = "ROUTE" {
        "CP-C4-F01" route_id: RouteId,
        "CP-C4-F02" capability_gaps: Vec<CapabilityGap>,
        "CP-C4-F03" selected_actors: Vec<ActorRef>,
        "CP-C4-F04" role_assignments: Vec<RoleAssignment>,
        "CP-C4-F05" coalition_id: CoalitionId,
        "CP-C4-F06" membership_version: u32,
        "CP-C4-F07" capability_contract_refs: Vec<CapabilityContractRef>,
        "CP-C4-F08" workflow_options: Vec<WorkflowId>,
        "CP-C4-F09" disclosure_plan_ref: DisclosureId,
        "CP-C4-F10" allocation_ref: BudgetId;
        /// Extensions in reverse-DNS keys; digested, never read by a decision (DEC-09).
        extensions: Option<crate::envelope::Extensions>
    }
}
