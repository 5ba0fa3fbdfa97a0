//! Foundational and audit objects: what the user declares, decides and grants, and the receipts of what was committed,
//! confessed and over-disclosed. Spec: C1 (disclosure receipt), C14.

use crate::contract::{Check, nonempty};
use crate::delta::AdmissionPath;
use crate::digest::Digest;
use crate::fault::Fault;
use crate::id::{
    ActorId, ArtifactId, CategoryId, ConfessionId, DecisionId, DeclarationId, DeltaId, DisclosureId, GoalId, GrantId,
    Id, IncidentId, Key, ObligationId, OperationId, PolicyId, PurposeId, ReceiptId, Text,
};
use crate::item::{AffectedScope, ItemKind, ParameterBound};
use crate::obligation::TriggerGap;
use crate::reentry::TypedPredicate;
use crate::refs::{Amounts, ArtifactRef, AuthenticatedIssuer, Scope, StateRef, TargetPattern, VersionedRef};
use crate::refusal::RefusalCode;
use crate::time::Timestamp;
use crate::work::ActionProposal;
use serde::{Deserialize, Serialize};

crate::contract! {
    /// What was released to whom, for what, and what was held back. Spec: §4.3, C1.
    pub struct DisclosureReceipt = "DisclosureReceipt" {
        "CP-C1-F17" disclosure_id: DisclosureId,
        "CP-C1-F19" purpose: PurposeId,
        "CP-C1-F20" recipient: ActorId,
        "CP-C1-F21" policy_basis: StateRef,
        "CP-C1-F22" materialized_item_refs: Vec<ArtifactRef>,
        "CP-C1-F23" withheld_categories: Vec<CategoryId>,
        "CP-C1-F24" coverage_receipt_ref: ArtifactId,
        "CP-C1-F25" missing_required_context: Vec<Id>,
        "CP-C1-F26" permitted_use: Vec<Key>,
        "CP-C1-F27" issued_at: Timestamp,
    }
}

crate::contract! {
    /// A goal as declared. Spec: C14.
    pub struct DeclaredGoal = "DeclaredGoal" {
        "CP-C14-F03" goal_id: GoalId,
        "CP-C14-F03" text: Text,
    }
}

crate::contract! {
    /// From when to when; `null` is explicitly open. Spec: C14.
    pub struct EffectivePeriod = "EffectivePeriod" {
        "CP-C14-F08" from: Timestamp,
        "CP-C14-F08" to: Option<Timestamp>,
    }
}

crate::contract! {
    /// What the user wants, within which bounds, and what counts as success. Spec: C14.
    pub struct Declaration = "DECLARATION" checked by Declaration::check_criteria {
        "CP-C14-F01" declaration_id: DeclarationId,
        "CP-C14-F02" authenticated_issuer: AuthenticatedIssuer,
        "CP-C14-F03" goal: DeclaredGoal,
        "CP-C14-F04" scope: Scope,
        "CP-C14-F05" constraints: Vec<Text>,
        #[schemars(length(min = 1))]
        "CP-C14-F06" success_criteria: Vec<Text>,
        "CP-C14-F07" existing_grants: Vec<GrantId>,
        "CP-C14-F08" effective_period: EffectivePeriod,
    }
}

impl Declaration {
    fn check_criteria(&self) -> Result<(), Fault> {
        nonempty(&self.success_criteria, "success_criteria")
    }
}

crate::words! {
    /// What kind of answer the user gave (DEC-63).
    pub enum DecisionType {
        /// What the user prefers.
        Preference = "preference",
        /// More is to be found out first.
        InvestigationRequest = "investigation_request",
        /// No.
        Rejection = "rejection",
        /// Yes, within the scope that was shown.
        ScopedAuthorization = "scoped_authorization",
        /// Seen. It grants nothing.
        Acknowledgment = "acknowledgment",
    }
}

crate::contract! {
    /// The user's answer to one version of a packet. Spec: C14.
    pub struct UserDecision = "USER_DECISION" checked by UserDecision::check_amendment {
        "CP-C14-F09" decision_id: DecisionId,
        "CP-C14-F10" briefcase_ref: ArtifactRef,
        "CP-C14-F11" selected_option_or_instruction: Text,
        "CP-C14-F12" authenticated_issuer: AuthenticatedIssuer,
        "CP-C14-F13" issued_at: Timestamp,
        /// The digest of the evidence snapshot that was shown.
        "CP-C14-F14" evidence_version: Digest,
        "CP-C14-F15" decision_type: DecisionType;
        /// The action that the user authorizes in place of the one that was proposed. It is another action, with a digest
        /// of its own, and is assessed as such.
        amendment: Option<ActionProposal>
    }
}

impl UserDecision {
    fn check_amendment(&self) -> Result<(), Fault> {
        let authorizes = self.decision_type == DecisionType::ScopedAuthorization;
        match crate::branch!("decision.amends_without_authorizing", self.amendment.is_some() && !authorizes) {
            true => Err(Fault::schema("an amended action is authorized, or it is not amended").within("amendment")),
            false => Ok(()),
        }
    }
}

/// Whether a grant may be passed on (DEC-66).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Delegability {
    /// It may not.
    None,
    /// To these, so deep, and only narrower.
    Named {
        /// The delegates.
        #[schemars(length(min = 1))]
        delegates: Vec<ActorId>,
        /// How many times it may be passed on.
        depth: u32,
    },
}

impl Check for Delegability {
    fn check(&self) -> Result<(), Fault> {
        match self {
            Self::None => Ok(()),
            Self::Named { delegates, .. } => {
                nonempty(delegates, "delegates")?;
                delegates.check().map_err(|fault| fault.within("delegates"))
            }
        }
    }
}

crate::contract! {
    /// Who may revoke a grant, and what revoked it. Spec: C14, DEC-66.
    pub struct Revocation = "Revocation" {
        #[schemars(length(min = 1))]
        "CP-C14-F24" may_revoke: Vec<ActorId>,
        "CP-C14-F24" revoked_by: Option<ArtifactRef>,
    }
}

crate::contract! {
    /// A permitted effect, bounded in seven ways. Spec: C14.
    pub struct Grant = "GRANT" checked by Grant::check_lists {
        "CP-C14-F16" grant_id: GrantId,
        "CP-C14-F17" authenticated_issuer: AuthenticatedIssuer,
        #[schemars(length(min = 1))]
        "CP-C14-F18" allowed_operations: Vec<OperationId>,
        #[schemars(length(min = 1))]
        "CP-C14-F19" targets: Vec<TargetPattern>,
        "CP-C14-F20" parameter_bounds: Vec<ParameterBound>,
        "CP-C14-F21" resource_bounds: Amounts,
        "CP-C14-F22" expiry: Timestamp,
        "CP-C14-F23" delegability: Delegability,
        "CP-C14-F24" revocation: Revocation,
    }
}

impl Grant {
    fn check_lists(&self) -> Result<(), Fault> {
        nonempty(&self.allowed_operations, "allowed_operations")?;
        nonempty(&self.targets, "targets")?;
        nonempty(&self.revocation.may_revoke, "revocation.may_revoke")
    }
}

crate::contract! {
    /// One item that a commit suspended because a premise of it went.
    pub struct InvalidatedItem = "InvalidatedItem" {
        "CP-C14-F34" kind: ItemKind,
        "CP-C14-F34" id: Id,
    }
}

crate::contract! {
    /// What a commit invalidated, whole or as the first page with the digest of the whole list (DEC-11).
    pub struct InvalidatedDependencies = "InvalidatedDependencies" {
        "CP-C14-F34" items: Vec<InvalidatedItem>,
        "CP-C14-F34" total: u64,
        "CP-C14-F34" complete: bool,
        "CP-C14-F34" list_digest: Digest,
    }
}

crate::contract! {
    /// What an urgent commit must say. Spec: §7.2, C14.
    pub struct UrgentDetails = "UrgentDetails" {
        "CP-C14-F36" issuer_auth_ref: ArtifactRef,
        "CP-C14-F37" restrictive_authority_ref: Id,
        "CP-C14-F38" reason: Text,
        "CP-C14-F39" evidence_refs: Vec<ArtifactRef>,
        "CP-C14-F40" affected_scope: AffectedScope,
        "CP-C14-F41" reconciliation_obligation_id: ObligationId,
        "CP-C14-F42" reconciliation_due_at: Timestamp,
        "CP-C14-F43" independent_owner: ActorId,
        "CP-C14-F44" escalation_policy_ref: PolicyId,
    }
}

crate::contract! {
    /// The receipt of one accepted transition. Spec: C14.
    pub struct CommitReceipt = "COMMIT_RECEIPT" checked by CommitReceipt::check_path {
        "CP-C14-F25" receipt_id: ReceiptId,
        "CP-C14-F26" delta_id: DeltaId,
        "CP-C14-F27" proposal_digest: Digest,
        "CP-C14-F28" admission_path: AdmissionPath,
        "CP-C14-F29" adjudication_refs: Vec<ArtifactRef>,
        "CP-C14-F30" before_state: StateRef,
        "CP-C14-F31" after_state: StateRef,
        "CP-C14-F32" committing_authority: ActorId,
        "CP-C14-F33" committed_at: Timestamp,
        "CP-C14-F34" invalidated_dependencies: InvalidatedDependencies,
        "CP-C14-F35" urgent_details: Option<UrgentDetails>,
        /// The profile version in force (Appendix A).
        "CP-A-18" profile_ref: VersionedRef,
    }
}

impl CommitReceipt {
    fn check_path(&self) -> Result<(), Fault> {
        let endorsed = !self.adjudication_refs.is_empty();
        match self.admission_path {
            AdmissionPath::Ordinary if crate::branch!("receipt.ordinary_unendorsed", !endorsed) => {
                Err(Fault::new(RefusalCode::MissingEndorsement, "an ordinary commit names its adjudications")
                    .within("adjudication_refs"))
            }
            AdmissionPath::Ordinary
                if crate::branch!("receipt.ordinary_has_urgent_details", self.urgent_details.is_some()) =>
            {
                Err(Fault::schema("an ordinary commit has no urgent details").within("urgent_details"))
            }
            AdmissionPath::UrgentRestrictive if crate::branch!("receipt.urgent_has_filler", endorsed) => {
                Err(Fault::schema("an urgent commit without prior endorsement names none").within("adjudication_refs"))
            }
            AdmissionPath::UrgentRestrictive
                if crate::branch!("receipt.urgent_lacks_details", self.urgent_details.is_none()) =>
            {
                Err(Fault::schema("an urgent commit states its urgent details").within("urgent_details"))
            }
            AdmissionPath::Ordinary | AdmissionPath::UrgentRestrictive => Ok(()),
        }
    }
}

crate::words! {
    /// What the later review of an urgent restriction came to (DEC-77).
    pub enum ReconciliationDisposition {
        /// It was right.
        Confirmed = "confirmed",
        /// It was too wide.
        Narrowed = "narrowed",
        /// It should go, by a new authorized commit.
        LiftRecommended = "lift_recommended",
        /// Not settled; the duty stands.
        Unresolved = "unresolved",
    }
}

crate::contract! {
    /// The later review of an urgent commit, which itself never changes. Spec: C14.
    pub struct ReconciliationReceipt = "RECONCILIATION_RECEIPT" {
        "CP-C14-F45" receipt_id: ReceiptId,
        "CP-C14-F46" urgent_commit_ref: ArtifactRef,
        "CP-C14-F47" assessment_ref: Id,
        "CP-C14-F48" disposition: ReconciliationDisposition,
        "CP-C14-F49" justification: Text,
        "CP-C14-F50" evidence_refs: Vec<ArtifactRef>,
        "CP-C14-F51" issued_at: Timestamp,
        "CP-C14-F52" authority_ref: Id,
    }
}

crate::words! {
    /// What became of a confessed discrepancy.
    pub enum ConfessionStatus {
        /// Not yet dealt with.
        Open = "open",
        /// A correction was committed.
        Corrected = "corrected",
        /// The gap was kept.
        RetainedGap = "retained_gap",
    }
}

/// When a confessed discrepancy is looked at again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Reconsideration {
    /// When this holds.
    When(TypedPredicate),
    /// There is no trigger; the gap says who answers for it.
    Gap(TriggerGap),
}

impl Check for Reconsideration {
    fn check(&self) -> Result<(), Fault> {
        match self {
            Self::When(predicate) => predicate.check(),
            Self::Gap(gap) => gap.check(),
        }
    }
}

crate::contract! {
    /// An attributable discrepancy: what was claimed or attempted and what the record cannot support. Spec: §8.1, C14.
    pub struct Confession = "Confession" {
        "CP-C14-F53" affected: ArtifactRef,
        "CP-C14-F54" omitted_check_or_deviation: Text,
        "CP-C14-F55" supporting_evidence: Vec<ArtifactRef>,
        "CP-C14-F56" unknowns: Vec<Text>,
        "CP-C14-F57" cost: Amounts,
        "CP-C14-F58" consequence: Text,
        "CP-C14-F59" status: ConfessionStatus,
        "CP-C14-F60" reconsideration: Reconsideration,
        "CP-C14-F61" affected_obligation: ObligationId,
        "CP-C14-F61" effects: Vec<Text>,
        "CP-8.1-02" confession_id: ConfessionId,
    }
}

crate::contract! {
    /// One attempt at containment, notice or acknowledgment, and what came of it.
    pub struct IncidentAttempt = "IncidentAttempt" {
        "CP-C14-F64" recipient: ActorId,
        "CP-C14-F64" at: Timestamp,
        "CP-C14-F64" outcome: Key,
    }
}

crate::contract! {
    /// An over-disclosure and everything done about it. Spec: §4.3, C14.
    pub struct DisclosureIncident = "DisclosureIncident" checked by DisclosureIncident::check_lists {
        #[schemars(length(min = 1))]
        "CP-C14-F62" released_item_refs: Vec<ArtifactRef>,
        #[schemars(length(min = 1))]
        "CP-C14-F63" recipient_refs: Vec<ActorId>,
        "CP-C14-F64" containment_attempts: Vec<IncidentAttempt>,
        "CP-C14-F65" notification_attempts: Vec<IncidentAttempt>,
        "CP-C14-F66" dependent_artifacts: Vec<ArtifactRef>,
        "CP-C14-F67" acknowledgments: Vec<IncidentAttempt>,
        "CP-C14-F68" unknown_copies: Vec<Text>,
        "CP-C14-F69" incident_owner: ActorId,
        "CP-C14-F70" policy_version: VersionedRef,
        "CP-4.3-13" incident_id: IncidentId,
    }
}

impl DisclosureIncident {
    fn check_lists(&self) -> Result<(), Fault> {
        nonempty(&self.released_item_refs, "released_item_refs")?;
        nonempty(&self.recipient_refs, "recipient_refs")
    }
}

crate::contract! {
    /// An issuer's authenticated restriction, naming no parent: the service completes it (DEC-73).
    pub struct RestrictionStatement = "RestrictionStatement" {
        "CP-7.2-15" statement_id: ArtifactId,
        "CP-7.2-15" issuer: ActorId,
        "CP-7.2-15" action: RestrictiveAction,
        "CP-7.2-15" reason: Text,
        "CP-7.2-15" evidence_refs: Vec<ArtifactRef>,
        /// `null` is refused as `missing_deadline`.
        "CP-7.2-15" reconciliation_due_at: Option<Timestamp>,
    }
}

/// The two things an urgent commit can do (§7.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RestrictiveAction {
    /// Revoke one grant.
    RevokeGrant(GrantId),
    /// Suspend the eligibility of actions in a scope.
    SuspendEligibility(AffectedScope),
}

impl RestrictiveAction {
    /// What it covers.
    #[must_use]
    pub fn affected_scope(&self) -> AffectedScope {
        match self {
            Self::RevokeGrant(grant_id) => AffectedScope::Grant { grant_id: grant_id.clone() },
            Self::SuspendEligibility(scope) => scope.clone(),
        }
    }
}

impl Check for RestrictiveAction {
    fn check(&self) -> Result<(), Fault> {
        self.affected_scope().check()
    }
}
