//! Urgent restrictions: who may issue them, how far, and that nothing but an authorized reassessment lifts them.

use crate::support::{
    begun, codes, commit, delta, dispatch, endorse, narrow, propose, recorded, refused, since, space, until_dispatch,
};
use closer_contracts::RefusalCode as Code;
use closer_contracts::adjudication::Disposition;
use closer_contracts::audit::{CommitReceipt, ReconciliationDisposition, ReconciliationReceipt, RestrictiveAction};
use closer_contracts::auth::SigningScope;
use closer_contracts::delta::{AdmissionPath, Change};
use closer_contracts::item::{AffectedScope, Appointment, IdentityKind, Item};
use closer_contracts::refs::{ActorRef, Amounts, ArtifactRef, ProducerRole, TargetPattern};
use closer_contracts::shows;
use closer_protocol::entry::{ArtifactBody, Entry, NoticeKind};
use closer_protocol::input::{Input, Reply};
use closer_scenarios::founding::{identity, plan_target};
use closer_scenarios::{Deployment, Space, worker};

pub(crate) fn suspend(scope: AffectedScope) -> RestrictiveAction {
    RestrictiveAction::SuspendEligibility(scope)
}

/// The deployment with `issuer-1` appointed otherwise.
pub(crate) fn appointed(change: impl FnOnce(&mut Appointment)) -> Deployment {
    let mut deployment = Deployment::default();
    let appointment = deployment
        .founding
        .items
        .iter_mut()
        .find_map(|item| if let Item::Appointment(appointment) = item { Some(appointment) } else { None });
    change(appointment.expect("the appointment"));
    deployment
}

pub(crate) fn founded(deployment: &Deployment) -> Space {
    Space::found(deployment, worker::proposes("basic")).unwrap()
}

/// The newest urgent receipt and its reference.
fn urgent(space: &Space) -> (CommitReceipt, ArtifactRef) {
    let found = space
        .view()
        .commits
        .values()
        .filter_map(|committed| Some(((*committed.receipt.clone()?).clone(), committed.receipt_ref.clone()?)));
    found
        .rev()
        .find(|(receipt, _)| receipt.admission_path == AdmissionPath::UrgentRestrictive)
        .expect("an urgent receipt")
}

pub(crate) fn restrictions(space: &Space) -> usize {
    space.view().state.restrictions_in_force().count()
}

pub(crate) fn reconcile(
    space: &mut Space,
    who: &str,
    role: ProducerRole,
    disposition: ReconciliationDisposition,
) -> Reply {
    let (_, reference) = urgent(space);
    let receipt = ReconciliationReceipt {
        receipt_id: space.fresh("reconciliation").as_str().into(),
        urgent_commit_ref: reference,
        assessment_ref: "assessment-1".into(),
        disposition,
        justification: "It was looked at.".into(),
        evidence_refs: Vec::new(),
        issued_at: space.moment().now,
        authority_ref: who.into(),
    };
    let producer = ActorRef { actor_id: who.into(), role };
    space.submit_artifact(receipt, producer, SigningScope::ReconciliationReceipt).unwrap()
}

#[test]
fn only_an_appointed_issuer_restricts() {
    shows!("CP-7.2-07", "CP-C10-09"; by "urgent.issuer_not_appointed");
    let second = identity("issuer-2", IdentityKind::Issuer, &[ProducerRole::Issuer], &[]);
    let mut space = founded(&Deployment::default().with(Item::Identity(second)));
    refused(&space.restrict("issuer-2", suspend(narrow())).unwrap(), Code::MissingAuthority);
    for (actor, role) in [
        ("closer.coordinator", ProducerRole::Coordinator),
        ("worker", ProducerRole::Participant),
        ("closer.distiller", ProducerRole::Distiller),
    ] {
        let statement = space.statement(actor, suspend(narrow()));
        let producer = ActorRef { actor_id: actor.into(), role };
        let reply = space.submit_artifact(statement, producer, SigningScope::RestrictionStatement).unwrap();
        refused(&reply, Code::MissingAuthority);
    }
    assert_eq!(restrictions(&space), 0);
    recorded(&space.restrict("issuer-1", suspend(narrow())).unwrap());
    assert_eq!(restrictions(&space), 1);
}

#[test]
fn an_appointment_ends() {
    shows!("CP-7.2-07"; by "urgent.issuer_not_appointed");
    let until = closer_contracts::Timestamp::parse("2026-01-01T12:00:10Z").unwrap();
    let mut space = founded(&appointed(|appointment| appointment.expires_at = until));
    recorded(&space.restrict("issuer-1", suspend(narrow())).unwrap());
    space.pass(10_000).unwrap();
    let broad = AffectedScope::Operation { operation: "plan.change".into() };
    refused(&space.restrict("issuer-1", suspend(broad)).unwrap(), Code::MissingAuthority);
}

#[test]
fn a_statement_is_its_issuers_own() {
    shows!("CP-7.2-15"; by "bench.statement_of_another");
    let mut space = space(worker::proposes("basic"));
    let statement = space.statement("issuer-1", suspend(narrow()));
    let worker = ActorRef { actor_id: "worker".into(), role: ProducerRole::Participant };
    refused(
        &space.submit_artifact(statement.clone(), worker, SigningScope::RestrictionStatement).unwrap(),
        Code::Unauthenticated,
    );
    recorded(&space.submit_statement(statement).unwrap());
}

#[test]
fn a_restriction_names_a_deadline_within_the_appointments_bound() {
    shows!("CP-7.2-21"; by "urgent.deadline_missing");
    let mut space = space(worker::proposes("basic"));
    let mut never = space.statement("issuer-1", suspend(narrow()));
    never.reconciliation_due_at = None;
    refused(&space.submit_statement(never).unwrap(), Code::MissingDeadline);
    let mut late = space.statement("issuer-1", suspend(narrow()));
    late.reconciliation_due_at = Some(space.moment().now.plus_ms(3_600_001));
    refused(&space.submit_statement(late).unwrap(), Code::MissingDeadline);
    assert_eq!(restrictions(&space), 0);
    recorded(&space.restrict("issuer-1", suspend(narrow())).unwrap());
}

#[test]
fn a_restriction_stays_within_its_issuers_appointed_scope() {
    shows!("CP-7.2-22"; by "urgent.scope_exceeded");
    let within = |appointment: &mut Appointment| {
        appointment.operations = vec!["plan.change".into()];
        appointment.targets = vec![TargetPattern::exactly(&plan_target())];
        appointment.broad = false;
    };
    let mut space = founded(&appointed(within));
    let other = TargetPattern { address: "service-b".into(), ..TargetPattern::exactly(&plan_target()) };
    for beyond in [
        AffectedScope::Space {},
        AffectedScope::Operation { operation: "plan.change".into() },
        AffectedScope::Target { operation: Some("plan.change".into()), targets: other },
        AffectedScope::Target {
            operation: Some("plan.cancel".into()),
            targets: TargetPattern::exactly(&plan_target()),
        },
        AffectedScope::Obligation { obligation_id: "o-1".into() },
    ] {
        refused(&space.restrict("issuer-1", suspend(beyond)).unwrap(), Code::ScopeExceeded);
    }
    recorded(&space.restrict("issuer-1", suspend(narrow())).unwrap());
    recorded(&space.restrict("issuer-1", RestrictiveAction::RevokeGrant("grant-1".into())).unwrap());
}

#[test]
fn the_same_restriction_again_is_one_case_with_its_first_deadline() {
    shows!("CP-7.2-24"; by "urgent.restriction_in_force");
    let mut space = space(worker::proposes("basic"));
    recorded(&space.restrict("issuer-1", suspend(narrow())).unwrap());
    let (first, _) = urgent(&space);
    for _ in 0..4 {
        space.pass(1_000).unwrap();
        recorded(&space.restrict("issuer-1", suspend(narrow())).unwrap());
    }
    assert_eq!((space.view().outstanding.len(), restrictions(&space)), (1, 1));
    assert_eq!(urgent(&space).0, first, "the deadline stands");
    let repeats = space.view().notices.values().filter(|notice| notice.kind == NoticeKind::RestrictionRepeated).count();
    assert_eq!(repeats, 4, "each repeat is on record");
}

#[test]
fn an_urgent_commit_and_its_receipt_are_one_step() {
    shows!("CP-C15-08", "CP-4.2-13", "CP-7.2-16"; by "receipt.urgent_lacks_details");
    let mut space = space(worker::proposes("basic"));
    let episode_id = begun(&mut space);
    let payload_id = until_dispatch(&mut space, &episode_id);
    let before = space.records().len();
    recorded(&space.restrict("issuer-1", suspend(narrow())).unwrap());
    let step = since(&space, before);
    let commits = step.iter().filter(|entry| matches!(entry, Entry::Commit(_))).count();
    let receipts = step
        .iter()
        .filter(
            |entry| matches!(entry, Entry::Artifact(artifact) if matches!(**artifact, ArtifactBody::CommitReceipt(_))),
        )
        .count();
    assert_eq!((commits, receipts), (1, 1), "one append holds both");
    let (receipt, reference) = urgent(&space);
    let details = receipt.urgent_details.clone().expect("urgent details");
    assert!(receipt.adjudication_refs.is_empty(), "it is none of the three adjudications");
    assert!(
        space.view().state.obligation(&details.reconciliation_obligation_id).is_some_and(|duty| duty.status.is_open())
    );
    let offered = Input::Dispatch { payload_id, adjudication_id: Some(reference.id.as_str().into()) };
    let reply = space.submit(offered).unwrap();
    assert!(codes(&reply).contains(&Code::Unassessed), "nor can it be cited as one: {reply:?}");
}

#[test]
fn a_restriction_needs_no_budget_and_no_place_in_a_queue() {
    shows!("CP-7.2-32", "CP-7.2-05"; by "work.budget_exceeded");
    let none =
        Amounts { calls: Some(0), tokens: Some(0), time_ms: Some(0), concurrency: Some(0), ..Amounts::default() };
    let mut space = founded(
        &Deployment::default().with_obligation("o-2", "service-a").with_profile(|profile| profile.budget = none),
    );
    recorded(&space.event("service-a", "price").unwrap());
    let episode_id = space.open("o-1").unwrap();
    let (_, reply) = space.advance(&episode_id).unwrap();
    refused(&reply, Code::BudgetExceeded);
    let before = space.view().commits.len();
    recorded(&space.restrict("issuer-1", RestrictiveAction::RevokeGrant("grant-1".into())).unwrap());
    assert_eq!(space.view().commits.len(), before + 1, "within the step that decides it");
}

#[test]
fn an_issuer_neither_reviews_nor_withdraws_its_own_case() {
    shows!("CP-7.2-20", "CP-C14-07"; by "bench.reconciles_without_authority");
    let mut space = space(worker::proposes("basic"));
    recorded(&space.restrict("issuer-1", suspend(narrow())).unwrap());
    let (receipt, reference) = urgent(&space);
    let bytes = closer_contracts::canonical::to_bytes(&receipt).unwrap();
    refused(
        &reconcile(&mut space, "issuer-1", ProducerRole::Issuer, ReconciliationDisposition::Confirmed),
        Code::MissingAuthority,
    );
    refused(
        &reconcile(&mut space, "worker", ProducerRole::Participant, ReconciliationDisposition::Confirmed),
        Code::MissingAuthority,
    );
    assert_eq!(space.view().outstanding.len(), 1, "the duty stands");
    recorded(&reconcile(&mut space, "user", ProducerRole::User, ReconciliationDisposition::Unresolved));
    assert_eq!(space.view().outstanding.len(), 1, "an unresolved review discharges nothing");
    recorded(&reconcile(&mut space, "user", ProducerRole::User, ReconciliationDisposition::Confirmed));
    assert_eq!(space.view().outstanding.len(), 0);
    assert_eq!(urgent(&space), (receipt, reference));
    assert_eq!(
        closer_contracts::canonical::to_bytes(&urgent(&space).0).unwrap(),
        bytes,
        "the urgent receipt never changes"
    );
}

#[test]
fn only_a_new_authorized_commit_restores_what_was_restricted() {
    shows!("CP-C14-09", "CP-7.2-30", "CP-7.2-28"; by "monitor.restriction_covers");
    let mut space = space(worker::proposes("basic"));
    recorded(&space.restrict("issuer-1", suspend(narrow())).unwrap());
    recorded(&reconcile(&mut space, "user", ProducerRole::User, ReconciliationDisposition::LiftRecommended));
    space.pass(90 * 24 * 3_600_000).unwrap();
    space.crash().unwrap();
    let episode_id = begun(&mut space);
    let payload_id = until_dispatch(&mut space, &episode_id);
    let reply = dispatch(&mut space, &payload_id);
    refused(&reply, Code::Restricted);
    assert_eq!(codes(&reply), [Code::Restricted], "after review, months and a restart");
    let restriction_id = space.view().state.restrictions_in_force().next().expect("it").restriction_id.clone();
    let (_, urgent_receipt) = urgent(&space);
    let lift = |reason: &str| {
        vec![Change::LiftRestriction {
            restriction_id: restriction_id.clone(),
            urgent_receipt: urgent_receipt.clone(),
            reason: reason.into(),
        }]
    };
    let bare = delta(&mut space, lift("It is time."), Vec::new(), Vec::new());
    assert!(bare.required_authority_refs.is_empty());
    let authority = space.instruct(&lift("Reassessed.")).unwrap();
    let authorized = delta(&mut space, lift("Reassessed."), Vec::new(), vec![authority]);
    recorded(&propose(&mut space, authorized.clone()));
    recorded(&endorse(&mut space, &authorized, Disposition::Endorsed));
    recorded(&commit(&mut space, &authorized));
    assert_eq!(restrictions(&space), 0);
    space.finish(&episode_id).unwrap();
    let episode_id = begun(&mut space);
    space.finish(&episode_id).unwrap();
    assert_eq!(space.world.effects().len(), 1);
}

#[test]
fn a_missed_review_is_told_to_the_independent_owner_once_and_stays_on_record() {
    shows!("CP-C15-14", "CP-C14-08"; by "timers.deadline_passed");
    let mut space = space(worker::proposes("basic"));
    recorded(&space.restrict("issuer-1", suspend(narrow())).unwrap());
    space.pass(999_999).unwrap();
    let escalations = |space: &Space| {
        space
            .view()
            .notices
            .values()
            .filter(|notice| notice.kind == NoticeKind::Escalation)
            .cloned()
            .collect::<Vec<_>>()
    };
    assert!(escalations(&space).is_empty());
    space.pass(1).unwrap();
    space.pass(1_000_000).unwrap();
    let told = escalations(&space);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].owner, Some("user".into()));
    recorded(&reconcile(&mut space, "user", ProducerRole::User, ReconciliationDisposition::Confirmed));
    assert_eq!(escalations(&space).len(), 1, "a late review erases nothing");
    assert_eq!(restrictions(&space), 1, "and lifts nothing");
}

#[test]
fn a_grant_that_is_revoked_is_not_a_case_again() {
    shows!("CP-7.2-24"; by "urgent.grant_revoked_before");
    let mut space = space(worker::proposes("basic"));
    for _ in 0..3 {
        recorded(&space.restrict("issuer-1", RestrictiveAction::RevokeGrant("grant-1".into())).unwrap());
    }
    assert_eq!(space.view().outstanding.len(), 1);
    assert_eq!(crate::limits::told(&space, NoticeKind::RestrictionRepeated).len(), 2);
}
