//! The urgent restrictive path: one append carries the issuer's statement, the delta completed with the current parent, its
//! receipt and the duty to reconcile. Spec: §7.2, DEC-24, DEC-73 to DEC-75, DEC-101.

use crate::entry::{ArtifactBody, Entry, Notice, NoticeKind};
use crate::input::Reply;
use crate::sequence::Deciding;
use crate::services::{self, Lineage};
use crate::view::View;
use crate::{commit, intake, streams};
use closer_contracts::audit::{RestrictionStatement, RestrictiveAction, UrgentDetails};
use closer_contracts::auth::AuthRecord;
use closer_contracts::branch;
use closer_contracts::delta::{AdmissionPath, AuthorityKind, AuthorityRef, Change, Delta};
use closer_contracts::digest::Digest;
use closer_contracts::event::Event;
use closer_contracts::id::{
    ActorId, ArtifactId, ChangeKindId, ConditionId, DeltaId, EntityId, Id, Key, ObligationId, PayloadId, PropositionId,
    ReentryId, RestrictionId, SourceId, Text,
};
use closer_contracts::item::{AffectedScope, Appointment, Item, ItemKind, Restriction, Standing};
use closer_contracts::obligation::{AssessmentStatus, Condition};
use closer_contracts::profile::RestrictiveEvent;
use closer_contracts::refs::{ActorRef, ArtifactRef, ProducerRole, TargetPattern, VersionedRef};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::{Fault, Payload};
use closer_state::{Derivation, Duty};

/// The policy pair of a reconciliation trigger.
pub const RECONCILIATION_REFRESH: &str = "policy.reconciliation.refresh";
/// See [`RECONCILIATION_REFRESH`].
pub const RECONCILIATION_EXPIRY: &str = "policy.reconciliation.expiry";

/// What a restrictive event restricts, where the profile lists its kind of change from its source (DEC-24).
#[must_use]
pub fn restrictive_event<'a>(view: &'a View, event: &Event) -> Option<&'a RestrictiveEvent> {
    listed(view, &event.source.source_id, &event.change_kind, &event.entity_ref)
}

/// What the profile lists for this kind of change of this entity from this source (DEC-24).
#[must_use]
pub fn listed<'a>(
    view: &'a View,
    source: &SourceId,
    change_kind: &ChangeKindId,
    entity_ref: &EntityId,
) -> Option<&'a RestrictiveEvent> {
    let listed = &view.state.profile()?.restrictive_events;
    listed.iter().find(|listed| {
        let same_kind = listed.change_kind == *change_kind;
        let same_entity = listed.entity_ref.as_ref().is_none_or(|own| own == entity_ref);
        branch!("urgent.source_speaks_for_issuer", same_kind && listed.source == *source)
            && branch!("urgent.event_is_about_the_listed", same_entity)
    })
}

/// Restricts on a restrictive event from a source that speaks for an appointed issuer; any other event passes by.
pub(crate) fn on_event(
    deciding: &mut Deciding<'_>,
    event: &Event,
    payload: &Payload,
    auth: &AuthRecord,
) -> Result<(), Fault> {
    let Some(listed) = restrictive_event(deciding.view, event) else {
        return Ok(());
    };
    let within_ms = deciding.view.state.appointment(&listed.issuer).map(|appointment| appointment.reconcile_within_ms);
    let statement = RestrictionStatement {
        statement_id: ArtifactId::new(crate::derived_id("restriction", event.event_id.as_str())),
        issuer: listed.issuer.clone(),
        action: listed.action.clone(),
        reason: listed.reason.clone(),
        evidence_refs: event.evidence_refs.clone(),
        reconciliation_due_at: within_ms.map(|within_ms| deciding.at.now.plus_ms(within_ms)),
    };
    let known =
        deciding.batch.claimed(&streams::artifact_claim("restriction_statement", statement.statement_id.as_str()));
    if known.is_some() {
        return repeated(deciding, &statement);
    }
    let auth_ref = ArtifactRef { id: ArtifactId::new(payload.id().as_str()), digest: auth.content_digest };
    restrict(deciding, &statement, auth_ref).map(|_| ())
}

/// An issuer restricts: authenticated, appointed, in scope and with a finite deadline, or refused.
pub(crate) fn restrict(
    deciding: &mut Deciding<'_>,
    statement: &RestrictionStatement,
    auth_ref: ArtifactRef,
) -> Result<Reply, Fault> {
    let subject: Id = Id::new(statement.statement_id.as_str());
    let appointment = match admissible(deciding, statement) {
        Ok(appointment) => appointment,
        Err(denials) => {
            let told = |code: Code| denials.iter().any(|denial| denial.code == code);
            let (beyond, suspended) = (told(Code::IssuerLimit), told(Code::IssuerSuspended));
            let reply = deciding.refuse(subject, None, denials)?;
            if branch!("urgent.handed_over", beyond || suspended) {
                hand_over(deciding, statement)?;
            }
            if beyond {
                sanction(deciding, &statement.issuer)?;
            }
            return Ok(reply);
        }
    };
    if let Some(restriction) = in_force(deciding.view, statement) {
        let _ = restriction;
        repeated(deciding, statement)?;
        return Ok(Reply::Recorded(Vec::new()));
    }
    let statement_ref = deciding.batch.artifact(ArtifactBody::from(statement.clone()), vec![streams::refusals()])?;
    let full = is_full(deciding.view, &appointment, &statement.action.affected_scope());
    let reply = land(deciding, statement, &appointment, &statement_ref, auth_ref)?;
    if branch!("urgent.limit_reached", full) {
        sanction(deciding, &appointment.issuer)?;
    }
    Ok(reply)
}

/// What is on record of each urgent commit of an issuer that awaits reconciliation.
#[must_use]
pub fn outstanding_of(view: &View, issuer: &ActorId) -> Vec<UrgentDetails> {
    let receipts = view.outstanding.keys().filter_map(|version| view.commits.get(version)?.receipt.clone());
    let details = receipts.filter_map(|receipt| receipt.urgent_details.clone());
    details.filter(|details| details.restrictive_authority_ref.as_str() == issuer.as_str()).collect()
}

/// Whether an issuer has as many outstanding cases as it may have, in all or on the target of this scope (§7.2).
fn is_full(view: &View, appointment: &Appointment, scope: &AffectedScope) -> bool {
    let outstanding = outstanding_of(view, &appointment.issuer);
    let here = outstanding.iter().filter(|details| same_target(&details.affected_scope, scope)).count();
    outstanding.len() >= appointment.outstanding_max as usize
        || branch!("urgent.target_limit_reached", here >= appointment.outstanding_per_target_max as usize)
}

/// Whether two restrictions bear on one target.
fn same_target(one: &AffectedScope, other: &AffectedScope) -> bool {
    match (one, other) {
        (AffectedScope::Target { targets: one, .. }, AffectedScope::Target { targets: other, .. }) => {
            one.overlaps(other)
        }
        (
            AffectedScope::Space {}
            | AffectedScope::Operation { .. }
            | AffectedScope::Target { .. }
            | AffectedScope::Grant { .. }
            | AffectedScope::Obligation { .. },
            _,
        ) => one == other,
    }
}

/// A restriction that its issuer may not make is handed to the independent restrictive authority, which makes it under its
/// own identity or declines (DEC-75, DEC-112).
fn hand_over(deciding: &mut Deciding<'_>, statement: &RestrictionStatement) -> Result<(), Fault> {
    let Some(profile) = deciding.view.state.profile() else {
        return Ok(());
    };
    let owner = Some(profile.restrictive_authority.clone());
    deciding.batch.artifact(ArtifactBody::from(statement.clone()), vec![streams::refusals()])?;
    let notice = Notice {
        kind: NoticeKind::Escalation,
        key: Key::new(format!("handed_over.{}", statement.statement_id)),
        owner,
        subjects: vec![Key::new(statement.statement_id.as_str()), Key::new(statement.issuer.as_str())],
        text: intake::bounded(&format!(
            "the issuer may not make this restriction; it is yours to make or to decline: {}",
            statement.reason
        )),
    };
    record_notice(deciding, notice)
}

/// Beyond a limit the independent owner is told once, and the issuer makes no further broad restrictions (§7.2).
fn sanction(deciding: &mut Deciding<'_>, issuer: &ActorId) -> Result<(), Fault> {
    let view = deciding.so_far()?;
    let Some(appointment) = view.state.appointment(issuer) else {
        return Ok(());
    };
    escalate(deciding, appointment, "the issuer has more outstanding cases than it may have")?;
    suspend_broad(deciding, issuer)
}

/// Suspends an issuer from further broad restrictions under the accepted profile, until an authorized commit says otherwise
/// (§7.2, DEC-99). What it restricted stays in force.
pub(crate) fn suspend_broad(deciding: &mut Deciding<'_>, issuer: &ActorId) -> Result<(), Fault> {
    let view = deciding.so_far()?;
    let replaces = view.state.item(ItemKind::Appointment, &issuer.into()).map(|accepted| accepted.digest);
    let held = view.state.appointment(issuer).zip(replaces);
    let (Some((appointment, replaces)), Some(authority)) = (held, commit::profile_authority(&view)) else {
        return Ok(());
    };
    let cases = outstanding_of(&view, issuer)
        .into_iter()
        .map(|details| details.reconciliation_obligation_id)
        .collect::<Vec<_>>();
    if branch!("urgent.suspended_before", appointment.broad_suspended) || cases.is_empty() {
        return Ok(());
    }
    let item = Box::new(Item::Appointment(Appointment { broad_suspended: true, ..appointment.clone() }));
    let routine = commit::Routine {
        delta_id: DeltaId::new(crate::derived_id("suspend", &format!("{issuer}.{}", view.state.reference().version))),
        changes: vec![Change::Revise { item, replaces }],
        support_relations: Vec::new(),
        authorities: vec![authority],
        lineage: Lineage {
            parents: Vec::new(),
            obligation_ids: cases,
            episode_id: None,
            causation_event_id: None,
            budget_ref: None,
        },
    };
    commit::by_rule(deciding, routine).map(drop)
}

fn admissible(deciding: &Deciding<'_>, statement: &RestrictionStatement) -> Result<Appointment, Vec<Denial>> {
    let view = deciding.view;
    let deny = |code, reason: &str| Denial::new(code, CheckKind::Authority, reason).of(&statement.issuer);
    let appointment = view
        .state
        .appointment(&statement.issuer)
        .filter(|appointment| appointment.standing == Standing::Current && appointment.expires_at > deciding.at.now);
    if branch!("urgent.issuer_not_appointed", appointment.is_none()) {
        return Err(vec![deny(Code::MissingAuthority, "the issuer has no current appointment")]);
    }
    let Some(appointment) = appointment else {
        return Err(Vec::new());
    };
    let mut denials = Vec::new();
    let due_in_time =
        |due_at: &closer_contracts::Timestamp| *due_at <= deciding.at.now.plus_ms(appointment.reconcile_within_ms);
    if branch!("urgent.deadline_missing", !statement.reconciliation_due_at.as_ref().is_some_and(due_in_time)) {
        denials.push(deny(
            Code::MissingDeadline,
            "a restriction names a reconciliation deadline within the appointment's bound",
        ));
    }
    let scope = statement.action.affected_scope();
    if branch!("urgent.scope_exceeded", !within(view, appointment, &scope)) {
        denials.push(deny(Code::ScopeExceeded, &outside(appointment)));
    }
    let broad = !scope.is_narrow();
    if branch!("urgent.issuer_suspended", broad && appointment.broad_suspended) {
        denials.push(deny(Code::IssuerSuspended, "the issuer may not make further broad restrictions"));
    }
    if branch!("urgent.broad_beyond_limit", broad && is_full(view, appointment, &scope)) {
        denials.push(deny(Code::IssuerLimit, "the issuer has as many outstanding cases as it may have"));
    }
    match denials.is_empty() {
        true => Ok(appointment.clone()),
        false => Err(denials),
    }
}

/// What an issuer is appointed for, told where it asked for something else.
fn outside(appointment: &Appointment) -> String {
    let operations = match appointment.operations.is_empty() {
        true => "every operation".to_owned(),
        false => appointment.operations.iter().map(|operation| operation.as_str()).collect::<Vec<_>>().join(", "),
    };
    let target = |target: &TargetPattern| format!("`{}` of `{}`", target.address, target.account);
    let targets = match appointment.targets.is_empty() {
        true => "every target".to_owned(),
        false => appointment.targets.iter().map(target).collect::<Vec<_>>().join(", "),
    };
    let breadth = match appointment.broad {
        true => "also more than one at a time",
        false => "one exact target of one operation, or one grant, at a time",
    };
    format!("the restriction lies outside what its issuer is appointed for: {operations} on {targets}, {breadth}")
}

/// Whether a restriction's scope lies within an appointment's.
#[must_use]
pub fn within(view: &View, appointment: &Appointment, scope: &AffectedScope) -> bool {
    let operation_allowed = |operation: &closer_contracts::id::OperationId| {
        appointment.operations.is_empty() || appointment.operations.contains(operation)
    };
    let targets_allowed = |targets: &TargetPattern| {
        appointment.targets.is_empty()
            || appointment.targets.iter().any(|allowed| allowed == targets || encloses(allowed, targets))
    };
    match scope {
        AffectedScope::Space {} => {
            appointment.broad && appointment.operations.is_empty() && appointment.targets.is_empty()
        }
        AffectedScope::Operation { operation } => {
            appointment.broad && operation_allowed(operation) && appointment.targets.is_empty()
        }
        AffectedScope::Target { operation, targets } => {
            (scope.is_narrow() || appointment.broad)
                && operation.as_ref().map_or(appointment.operations.is_empty(), operation_allowed)
                && targets_allowed(targets)
        }
        AffectedScope::Grant { grant_id } => view.state.grant(grant_id).is_some_and(|grant| {
            grant.allowed_operations.iter().any(operation_allowed)
                && grant.targets.iter().any(|targets| {
                    appointment.targets.is_empty()
                        || appointment.targets.iter().any(|allowed| allowed.overlaps(targets))
                })
        }),
        AffectedScope::Obligation { .. } => appointment.broad,
    }
}

fn encloses(outer: &TargetPattern, inner: &TargetPattern) -> bool {
    let wider = |outer: &str, inner: &str| match outer.strip_suffix('*') {
        Some(prefix) => inner.trim_end_matches('*').starts_with(prefix),
        None => outer == inner,
    };
    outer.r#type == inner.r#type
        && wider(outer.account.as_str(), inner.account.as_str())
        && wider(outer.address.as_str(), inner.address.as_str())
}

/// The same restriction, already in force: repeats coalesce and never move its deadline (DEC-74).
fn in_force(view: &View, statement: &RestrictionStatement) -> Option<Id> {
    match &statement.action {
        RestrictiveAction::RevokeGrant(grant_id) => {
            let revoked = view.state.grant(grant_id).is_some_and(|grant| grant.revocation.revoked_by.is_some());
            branch!("urgent.grant_revoked_before", revoked).then(|| grant_id.into())
        }
        RestrictiveAction::SuspendEligibility(scope) => {
            let same = view.state.restrictions_in_force().find(|restriction| restriction.affected_scope == *scope);
            same.filter(|_| branch!("urgent.restriction_in_force", true))
                .map(|restriction| (&restriction.restriction_id).into())
        }
    }
}

fn repeated(deciding: &mut Deciding<'_>, statement: &RestrictionStatement) -> Result<(), Fault> {
    let count = deciding.view.notices.len();
    let notice = Notice {
        kind: NoticeKind::RestrictionRepeated,
        key: Key::new(format!("repeated.{}.{count}", statement.statement_id)),
        owner: None,
        subjects: vec![Key::new(statement.statement_id.as_str())],
        text: Text::from("the same restriction is in force; its deadline stands"),
    };
    record_notice(deciding, notice)
}

/// Records a notice once per key.
pub(crate) fn record_notice(deciding: &mut Deciding<'_>, notice: Notice) -> Result<(), Fault> {
    if deciding.view.notices.contains_key(&notice.key) {
        return Ok(());
    }
    let id = crate::derived_id("notice", notice.key.as_str());
    deciding.batch.push(
        &id,
        Entry::Notice(notice),
        vec![closer_contracts::record::StreamId::new("notices")],
        Vec::new(),
    )?;
    Ok(())
}

/// Tells the independent owner once (§7.2).
pub(crate) fn escalate(deciding: &mut Deciding<'_>, appointment: &Appointment, reason: &str) -> Result<(), Fault> {
    let count = deciding.view.outstanding.len();
    let notice = Notice {
        kind: NoticeKind::Escalation,
        key: Key::new(format!("escalation.{}.{count}", appointment.issuer)),
        owner: Some(appointment.independent_owner.clone()),
        subjects: vec![Key::new(appointment.issuer.as_str())],
        text: intake::bounded(reason),
    };
    record_notice(deciding, notice)
}

fn land(
    deciding: &mut Deciding<'_>,
    statement: &RestrictionStatement,
    appointment: &Appointment,
    statement_ref: &ArtifactRef,
    auth_ref: ArtifactRef,
) -> Result<Reply, Fault> {
    let view = deciding.so_far()?;
    let seed = statement.statement_id.as_str();
    let due_at = statement.reconciliation_due_at.clone().unwrap_or_else(|| deciding.at.now.clone());
    let obligation_id = ObligationId::new(crate::derived_id("reconcile", seed));
    let change = match &statement.action {
        RestrictiveAction::RevokeGrant(grant_id) => {
            Change::RevokeGrant { grant_id: grant_id.clone(), reason: statement.reason.clone() }
        }
        RestrictiveAction::SuspendEligibility(scope) => Change::SuspendEligibility {
            restriction: Restriction {
                restriction_id: RestrictionId::new(crate::derived_id("restrict", seed)),
                affected_scope: scope.clone(),
                reason: statement.reason.clone(),
                issued_by: statement.issuer.clone(),
                standing: Standing::Current,
            },
        },
    };
    let authority = AuthorityRef {
        kind: AuthorityKind::Appointment,
        reference: ArtifactRef {
            id: ArtifactId::new(appointment.issuer.as_str()),
            digest: closer_contracts::canonical::digest_of(appointment)?,
        },
    };
    let delta = Delta {
        delta_id: DeltaId::new(crate::derived_id("urgent", seed)),
        parent_state: view.state.reference(),
        changes: vec![change],
        support_relations: Vec::new(),
        dependency_updates: Vec::new(),
        required_authority_refs: vec![authority],
        admission_path: AdmissionPath::UrgentRestrictive,
        proposal_digest: Digest::of(b""),
        extensions: None,
    }
    .sealed()?;
    let duty = duty(&view, statement, appointment, &obligation_id, &due_at);
    let lineage = Lineage {
        parents: Vec::new(),
        obligation_ids: vec![obligation_id.clone()],
        episode_id: None,
        causation_event_id: None,
        budget_ref: None,
    };
    let producer = ActorRef { actor_id: statement.issuer.clone(), role: ProducerRole::Issuer };
    let id = PayloadId::new(crate::derived_id("pl", delta.delta_id.as_str()));
    let payload = services::write(
        &view,
        id,
        producer,
        lineage,
        services::internal_disclosure(&view)?,
        delta.clone(),
        &deciding.at.now,
    )?;
    commit::record_own(deciding, &payload)?;
    let details = UrgentDetails {
        issuer_auth_ref: auth_ref,
        restrictive_authority_ref: Id::new(appointment.issuer.as_str()),
        reason: statement.reason.clone(),
        evidence_refs: statement.evidence_refs.clone().into_iter().chain([statement_ref.clone()]).collect(),
        affected_scope: statement.action.affected_scope(),
        reconciliation_obligation_id: obligation_id,
        reconciliation_due_at: due_at,
        independent_owner: appointment.independent_owner.clone(),
        escalation_policy_ref: appointment.escalation_policy_ref.clone(),
    };
    let authorities = delta.required_authority_refs.iter().map(|authority| authority.reference.clone()).collect();
    let origins = view.genesis.clone().into_iter().collect();
    let derivation = Derivation { authorities, origins, urgent: Some(duty), ..Derivation::at(deciding.at.now.clone()) };
    commit::urgent(deciding, delta, derivation, details)
}

fn duty(
    view: &View,
    statement: &RestrictionStatement,
    appointment: &Appointment,
    obligation_id: &ObligationId,
    due_at: &closer_contracts::Timestamp,
) -> Duty {
    let seed = statement.statement_id.as_str();
    Duty {
        issuer: statement.issuer.clone(),
        obligation_id: obligation_id.clone(),
        reentry_id: ReentryId::new(crate::derived_id("reconcile.due", seed)),
        origin: view.genesis.clone().unwrap_or_else(|| ArtifactRef { id: "genesis".into(), digest: Digest::of(b"") }),
        scope: view
            .state
            .profile()
            .map_or_else(|| closer_contracts::refs::Scope(Vec::new()), |profile| profile.scope.clone()),
        text: intake::bounded(&format!("reconcile the restriction: {}", statement.reason)),
        condition: Condition {
            id: ConditionId::new(crate::derived_id("reconciled", seed)),
            proposition: PropositionId::new(crate::derived_id("p.reconciled", seed)),
            evidence_rule_ref: VersionedRef { id: "rule.sufficiency".into(), version: 1 },
            assessment_status: AssessmentStatus::Unassessed,
        },
        due_at: due_at.clone(),
        independent_owner: appointment.independent_owner.clone(),
        refresh_policy_ref: RECONCILIATION_REFRESH.into(),
        expiry_policy_ref: RECONCILIATION_EXPIRY.into(),
    }
}
