//! The judgment: one readable function, cheapest and most fundamental check first.

use crate::bounds::{covers, misfit, violates};
use crate::situation::{
    AttemptStanding, ClockStanding, DisclosureStanding, KeyStanding, OwnershipStanding, Reservation, Situation,
};
use closer_contracts::adjudication::Phase;
use closer_contracts::audit::Grant;
use closer_contracts::branch;
use closer_contracts::digest::Digest;
use closer_contracts::id::{ActionId, AttemptId};
use closer_contracts::item::{EffectClass, OperationEntry, RepeatSafety, Standing};
use closer_contracts::refs::{Amounts, ProducerRole};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::time::Timestamp;

/// What the monitor says.
#[derive(Debug)]
pub enum Verdict {
    /// Nothing speaks against the action.
    Admitted(Admission),
    /// Everything that speaks against it, in the order judged; never empty. The caller is told the foremost.
    Refused(Vec<Denial>),
}

/// An action that was admitted. It permits nothing until its record is durable (see [`crate::release`]).
#[derive(Debug, PartialEq, Eq)]
pub struct Admission {
    pub(crate) action_id: ActionId,
    pub(crate) attempt_id: AttemptId,
    pub(crate) logical_digest: Digest,
    pub(crate) contract_digest: Digest,
    pub(crate) valid_until: Timestamp,
    worst_case: Amounts,
    effect_class: EffectClass,
}

impl Admission {
    /// What is reserved with the admission: the worst case of the whole unit (§8.3).
    #[must_use]
    pub const fn worst_case(&self) -> &Amounts {
        &self.worst_case
    }

    /// What the registered operation does to the world.
    #[must_use]
    pub const fn effect_class(&self) -> EffectClass {
        self.effect_class
    }

    /// Until when the effect may be sent.
    #[must_use]
    pub const fn valid_until(&self) -> &Timestamp {
        &self.valid_until
    }
}

/// Judges one attempt at one action. Pure and total; denies by default.
///
/// After failed authentication nothing else is told. Otherwise every failing check is listed, and precedence
/// ([`closer_contracts::refusal::PRECEDENCE`]) says which one the caller hears. Spec: §4.2, C7.
#[must_use]
pub fn judge(situation: &Situation<'_>) -> Verdict {
    let mut denials = producer(situation);
    if !denials.is_empty() {
        return Verdict::Refused(denials);
    }
    clock(situation, &mut denials);
    let entry = registry(situation, &mut denials);
    target_and_parameters(situation, entry, &mut denials);
    let grant = grant(situation, &mut denials);
    constraints(situation, &mut denials);
    restrictions(situation, &mut denials);
    versions(situation, entry, &mut denials);
    assessment(situation, &mut denials);
    ownership(situation, &mut denials);
    attempts(situation, entry, &mut denials);
    disclosure(situation, &mut denials);
    reservation(situation, &mut denials);
    match (entry, grant) {
        (Some(entry), Some(grant)) if denials.is_empty() => Verdict::Admitted(admission(situation, entry, grant)),
        (Some(_) | None, Some(_) | None) => Verdict::Refused(denials),
    }
}

/// What speaks against an action that somebody else would carry out: everything that is known of it before it is assessed and
/// sent. It admits nothing, and nothing follows from it but what whoever asked does with it.
#[must_use]
pub fn foresee(situation: &Situation<'_>) -> Vec<Denial> {
    let mut denials = Vec::new();
    clock(situation, &mut denials);
    let entry = registry(situation, &mut denials);
    target_and_parameters(situation, entry, &mut denials);
    let _: Option<&Grant> = grant(situation, &mut denials);
    constraints(situation, &mut denials);
    restrictions(situation, &mut denials);
    denials
}

fn admission(situation: &Situation<'_>, entry: &OperationEntry, grant: &Grant) -> Admission {
    let permit_ms = situation.state.profile().map_or(0, |profile| profile.limits.permit_ms);
    let by_limit = situation.now.plus_ms(permit_ms);
    let ends = [Some(&grant.expiry), Some(&entry.verification.expires_at), situation.ownership.lease_expiry.as_ref()];
    let valid_until = ends.into_iter().flatten().fold(by_limit, |earliest, end| earliest.min(end.clone()));
    Admission {
        action_id: situation.action.action_id.clone(),
        attempt_id: situation.action.attempt_id.clone(),
        logical_digest: situation.action.logical_digest,
        contract_digest: entry.contract_digest,
        valid_until,
        worst_case: entry.reserved(),
        effect_class: entry.effect_class,
    }
}

fn deny(
    denials: &mut Vec<Denial>,
    code: Code,
    check: CheckKind,
    offending: impl std::fmt::Display,
    reason: impl Into<String>,
) {
    denials.push(Denial::new(code, check, reason).of(offending));
}

/// Envelope and producer: a current identity in the planner's role (§6.1, §6.2).
fn producer(situation: &Situation<'_>) -> Vec<Denial> {
    let producer = situation.producer;
    let identity = situation.state.identity(&producer.actor_id);
    let current = identity.is_some_and(|identity| {
        identity.standing == Standing::Current
            && identity.revoked_at.as_ref().is_none_or(|revoked_at| revoked_at > situation.now)
            && identity.roles.contains(&producer.role)
    });
    if branch!("monitor.producer_current", current && producer.role == ProducerRole::Planner) {
        return Vec::new();
    }
    let reason = "an action comes from a current identity in the planner's role";
    vec![Denial::new(Code::Unauthenticated, CheckKind::Authentication, reason).of(&producer.actor_id)]
}

/// A clock in doubt permits nothing that depends on time, and every grant does (DEC-59).
fn clock(situation: &Situation<'_>, denials: &mut Vec<Denial>) {
    if branch!("monitor.clock_unreliable", situation.clock == ClockStanding::Unreliable) {
        deny(denials, Code::ClockUnreliable, CheckKind::Runtime, "clock", "the runtime's clock is in doubt");
    }
}

/// Registry entry, its contract pin and expiry, the proposer's capability, the profile (§3.3, DEC-44, DEC-86).
fn registry<'a>(situation: &Situation<'a>, denials: &mut Vec<Denial>) -> Option<&'a OperationEntry> {
    let operation = &situation.action.operation;
    let registered = situation.state.operation(operation).filter(|entry| entry.standing == Standing::Current);
    if branch!("monitor.operation_unregistered", registered.is_none()) {
        let reason = "the operation is not in the registry";
        deny(denials, Code::UnregisteredOperation, CheckKind::Authority, operation, reason);
    }
    let entry = registered?;
    trust(situation, entry, denials);
    let capable = situation.state.identity(situation.proposer).is_some_and(|identity| {
        identity.standing == Standing::Current && identity.capabilities.contains(&entry.capability)
    });
    if branch!("monitor.capability_undeclared", !capable) {
        let reason = format!("`{}` has not declared `{}`", situation.proposer, entry.capability);
        deny(denials, Code::CapabilityUndeclared, CheckKind::Authority, &entry.capability, reason);
    }
    let open = situation.state.profile().map_or(vec![1], |profile| profile.unanswered());
    let consequential = entry.effect_class != EffectClass::ReadOnly;
    if branch!("monitor.profile_incomplete", consequential && !open.is_empty()) {
        let reason = format!("the deployment profile leaves questions {open:?} open");
        deny(denials, Code::ProfileIncomplete, CheckKind::Authority, "profile", reason);
    }
    Some(entry)
}

/// Trust in the entry ends with its verification, and covers the contract that was verified and no other.
fn trust(situation: &Situation<'_>, entry: &OperationEntry, denials: &mut Vec<Denial>) {
    let verified = &entry.verification;
    if branch!("monitor.registry_expired", verified.expires_at <= *situation.now) {
        let reason = format!("the entry's verification expired at {}", verified.expires_at);
        deny(denials, Code::RegistryExpired, CheckKind::Authority, &entry.operation, reason);
    }
    let readable = situation.state.readback_method_at(&entry.readback_method);
    if branch!("monitor.readback_unregistered", readable.is_none_or(|method| method.standing != Standing::Current)) {
        let reason = "no current readback method tells what the operation did";
        deny(denials, Code::ProfileIncomplete, CheckKind::Authority, &entry.readback_method.id, reason);
    }
    let pinned = verified.contract_digest == entry.contract_digest && verified.version == entry.version;
    if branch!("monitor.contract_unpinned", !pinned) {
        let reason = "the registered contract is not the one that was verified";
        deny(denials, Code::ContractIncompatible, CheckKind::Authority, &entry.operation, reason);
    }
}

/// Target type and exact target as assessed; parameters by the registry's rules (§4.2, Appendix B).
fn target_and_parameters(situation: &Situation<'_>, entry: Option<&OperationEntry>, denials: &mut Vec<Denial>) {
    let action = situation.action;
    let assessed = situation.offered.and_then(|offered| offered.assessed);
    let same = assessed.is_none_or(|assessed| assessed.target == action.target);
    let typed = entry.is_none_or(|entry| entry.target_type == action.target.r#type);
    if branch!("monitor.target_differs", !same || !typed) {
        let reason = "the target is not the one that was assessed, or not of the operation's type";
        deny(denials, Code::TargetMismatch, CheckKind::Authority, &action.target.address, reason);
    }
    if let Some((name, complaint)) = entry.and_then(|entry| misfit(entry, action))
        && branch!("monitor.parameter_misfit", true)
    {
        deny(denials, Code::SchemaInvalid, CheckKind::Schema, name, complaint);
    }
}

/// The grant: operation, target, bounds, calls, period, revocation (C14).
fn grant<'a>(situation: &Situation<'a>, denials: &mut Vec<Denial>) -> Option<&'a Grant> {
    let action = situation.action;
    let id = &action.authority_ref;
    let known = situation.state.grant(id);
    if branch!("monitor.no_such_grant", known.is_none()) {
        deny(denials, Code::MissingAuthority, CheckKind::Authority, id, "there is no such grant");
    }
    let grant = known?;
    if branch!("monitor.operation_not_granted", !grant.allowed_operations.contains(&action.operation)) {
        let reason = format!("the grant does not allow `{}`", action.operation);
        deny(denials, Code::MissingAuthority, CheckKind::Authority, id, reason);
    }
    if branch!("monitor.target_not_granted", !grant.targets.iter().any(|targets| targets.covers(&action.target))) {
        let reason = format!("the grant does not cover `{}` of `{}`", action.target.address, action.target.account);
        deny(denials, Code::OutOfBounds, CheckKind::Authority, id, reason);
    }
    let beyond = grant
        .parameter_bounds
        .iter()
        .filter(|bound| bound.operation == action.operation)
        .find(|bound| !bound.admits(action.parameters.get(&bound.parameter)));
    if let Some(bound) = beyond
        && branch!("monitor.parameter_beyond_grant", true)
    {
        deny(
            denials,
            Code::OutOfBounds,
            CheckKind::Authority,
            &bound.parameter,
            "the parameter is beyond the grant's bound",
        );
    }
    let used_up = grant.resource_bounds.calls.is_some_and(|calls| situation.grant_calls >= calls);
    if branch!("monitor.grant_used_up", used_up) {
        let reason = format!("the grant's calls are used up: {}", situation.grant_calls);
        deny(denials, Code::OutOfBounds, CheckKind::Authority, id, reason);
    }
    if branch!("monitor.grant_revoked", grant.revocation.revoked_by.is_some()) {
        deny(denials, Code::GrantRevoked, CheckKind::Authority, id, "the grant has been revoked");
    }
    if branch!("monitor.grant_expired", grant.expiry <= *situation.now) {
        let reason = format!("the grant expired at {}", grant.expiry);
        deny(denials, Code::GrantExpired, CheckKind::Authority, id, reason);
    }
    Some(grant)
}

/// Constraints in force (§5).
fn constraints(situation: &Situation<'_>, denials: &mut Vec<Denial>) {
    for constraint in situation.state.constraints_in_force() {
        if branch!("monitor.constraint_violated", violates(constraint, situation.action)) {
            let reason = format!("outside a constraint: {}", constraint.statement);
            deny(denials, Code::Restricted, CheckKind::Authority, &constraint.constraint_id, reason);
        }
    }
}

/// Restrictions in force (§7.2, DEC-101).
fn restrictions(situation: &Situation<'_>, denials: &mut Vec<Denial>) {
    for restriction in situation.state.restrictions_in_force() {
        let covered = covers(&restriction.affected_scope, situation.action, situation.obligation_id);
        if branch!("monitor.restriction_covers", covered) {
            let reason = format!("a restriction covers the action: {}", restriction.reason);
            deny(denials, Code::Restricted, CheckKind::Authority, &restriction.restriction_id, reason);
        }
    }
}

/// Relevant versions: the registry entry's, and everything the assessment read (DEC-46).
fn versions(situation: &Situation<'_>, entry: Option<&OperationEntry>, denials: &mut Vec<Denial>) {
    if let Some(entry) = entry
        && branch!("monitor.registry_version_moved", entry.version != situation.action.registry_version)
    {
        let reason = format!("the registry entry is at version {}", entry.version);
        deny(denials, Code::StaleVersion, CheckKind::Authority, &entry.operation, reason);
    }
    let assessed = situation.action.relevant_semantic_version;
    if branch!("monitor.semantic_version_ahead", assessed > situation.state.reference().version) {
        let reason = "the action names a state version that is not accepted";
        deny(denials, Code::StaleVersion, CheckKind::Authority, assessed, reason);
    }
    for moved in situation.moved {
        if branch!("monitor.read_set_moved", true) {
            deny(denials, Code::StaleVersion, CheckKind::Support, &moved.fact, moved.change.clone());
        }
    }
}

/// Pre-action adjudication of this exact digest, in its favour (§4.2).
fn assessment(situation: &Situation<'_>, denials: &mut Vec<Denial>) {
    let action = situation.action;
    let Some(offered) = situation.offered else {
        let reason = "no pre-action adjudication of this content is on record";
        deny(denials, Code::Unassessed, CheckKind::Authority, action.logical_digest, reason);
        return;
    };
    let adjudication = offered.adjudication;
    if branch!("monitor.wrong_phase", adjudication.phase != Phase::PreAction) {
        let reason = format!("a `{}` adjudication does not admit an action", adjudication.phase);
        deny(denials, Code::WrongPhase, CheckKind::Authority, &adjudication.adjudication_id, reason);
        return;
    }
    if branch!("monitor.other_subject_assessed", adjudication.subject.digest != action.logical_digest) {
        let reason = "the adjudication is of other content";
        deny(denials, Code::SubjectMismatch, CheckKind::Authority, &adjudication.adjudication_id, reason);
    }
    if branch!("monitor.not_justified", !adjudication.disposition.is_positive()) {
        let reason = format!("the adjudication came to `{}`", adjudication.disposition);
        deny(denials, Code::Unassessed, CheckKind::Authority, &adjudication.adjudication_id, reason);
    }
}

/// Ownership epoch and lease (§6.4, C12).
fn ownership(situation: &Situation<'_>, denials: &mut Vec<Denial>) {
    let ownership = situation.ownership;
    if branch!("monitor.epoch_stale", situation.action.ownership_epoch != ownership.epoch) {
        let reason = format!("the current ownership epoch is {}", ownership.epoch);
        deny(denials, Code::StaleEpoch, CheckKind::Authority, situation.obligation_id, reason);
    }
    let expired = ownership.lease_expiry.as_ref().is_some_and(|expiry| expiry <= situation.now);
    if branch!("monitor.lease_expired", expired) {
        let reason = format!("the lease of `{}` has expired", ownership.owner);
        deny(denials, Code::LeaseExpired, CheckKind::Authority, situation.obligation_id, reason);
    }
    if branch!("monitor.ownership_fenced", ownership.standing == OwnershipStanding::Fenced) {
        let reason = "a lease has ended, and nobody has accepted the responsibility since";
        deny(denials, Code::LeaseExpired, CheckKind::Authority, situation.obligation_id, reason);
    }
}

/// Key claims, earlier attempts and unsettled effects (§6.4, §8.2).
fn attempts(situation: &Situation<'_>, entry: Option<&OperationEntry>, denials: &mut Vec<Denial>) {
    let action = situation.action;
    let reused = match &situation.key {
        KeyStanding::Unused => false,
        KeyStanding::StandsFor(digest) => *digest != action.logical_digest,
    };
    if branch!("monitor.key_stands_for_other_content", reused) {
        let reason = "the idempotency key stands for other content";
        deny(denials, Code::KeyReuseChangedContent, CheckKind::Authority, &action.idempotency_key, reason);
    }
    repetition(situation, entry, denials);
}

/// What earlier attempts allow: a first one, a safe repetition, or nothing before the unsettled one is read back.
fn repetition(situation: &Situation<'_>, entry: Option<&OperationEntry>, denials: &mut Vec<Denial>) {
    let repeatable = entry.is_some_and(|entry| entry.repeat_safety != RepeatSafety::NotRepeatSafe);
    let (code, check, offending, reason) = match &situation.attempt {
        AttemptStanding::First => return,
        AttemptStanding::Again if branch!("monitor.repeat_safe", repeatable) => return,
        AttemptStanding::Again => {
            let reason = "the registered operation does not allow repetition";
            (Code::NotRepeatSafe, CheckKind::Authority, situation.action.operation.to_string(), reason)
        }
        AttemptStanding::Done(attempt_id) => {
            let reason = "the effect of this logical action is confirmed";
            (Code::Duplicate, CheckKind::Authority, attempt_id.to_string(), reason)
        }
        AttemptStanding::Unsettled(attempt_id) => {
            let reason = "an attempt on this operation and target is not settled; read it back first";
            (Code::OutcomeUnknown, CheckKind::Readback, attempt_id.to_string(), reason)
        }
        AttemptStanding::Reused => {
            let attempt_id = situation.action.attempt_id.to_string();
            (Code::Duplicate, CheckKind::Authority, attempt_id, "the attempt id is on record")
        }
    };
    if branch!("monitor.attempt_refused", true) {
        deny(denials, code, check, offending, reason);
    }
}

/// Permission to release the action's inputs, apart from permission to act (§6.5), and their use while an over-disclosure
/// that they derive from is not reconciled (§4.3).
fn disclosure(situation: &Situation<'_>, denials: &mut Vec<Denial>) {
    match &situation.disclosure {
        DisclosureStanding::Released => {}
        DisclosureStanding::Denied(item) => {
            if branch!("monitor.inputs_not_released", true) {
                let reason = "the action's inputs may not be released to where it takes place";
                deny(denials, Code::DisclosureDenied, CheckKind::Authority, item, reason);
            }
        }
        DisclosureStanding::Suspended(incident) => {
            if branch!("monitor.inputs_suspended", true) {
                let reason = "the action derives from an over-disclosure that is not reconciled";
                deny(denials, Code::Restricted, CheckKind::Authority, incident, reason);
            }
        }
    }
}

/// The whole unit's worst case within every budget above it (§8.3).
fn reservation(situation: &Situation<'_>, denials: &mut Vec<Denial>) {
    match &situation.reservation {
        Reservation::Fits => {}
        Reservation::Exceeds(budget) => {
            if branch!("monitor.budget_exceeded", true) {
                deny(
                    denials,
                    Code::BudgetExceeded,
                    CheckKind::Runtime,
                    budget,
                    "the worst case of the unit does not fit",
                );
            }
        }
        Reservation::Uncapped(dimension) => {
            if branch!("monitor.route_uncapped", true) {
                let reason = "the operation states no worst case in a dimension that is capped";
                deny(denials, Code::UncappedRoute, CheckKind::Runtime, dimension, reason);
            }
        }
    }
}
