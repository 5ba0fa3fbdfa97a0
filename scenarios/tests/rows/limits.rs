//! The limits of an urgent issuer, and what follows where they are exceeded or a review is missed.

use crate::support::{narrow, recorded, refused, space};
use crate::urgent::{appointed, founded, reconcile, restrictions, suspend};
use closer_contracts::RefusalCode as Code;
use closer_contracts::audit::{ReconciliationDisposition, RestrictiveAction};
use closer_contracts::delta::{AuthorityKind, Change};
use closer_contracts::item::{AffectedScope, Appointment, IdentityKind, Item};
use closer_contracts::refs::{ProducerRole, TargetPattern};
use closer_contracts::shows;
use closer_protocol::entry::{ArtifactBody, Entry, NoticeKind};
use closer_scenarios::founding::{identity, plan_target};
use closer_scenarios::{Space, worker};

/// A broad restriction of its own kind for each number.
fn broad(number: usize) -> RestrictiveAction {
    let targets = TargetPattern {
        address: format!("service-{number}-*").as_str().into(),
        ..TargetPattern::exactly(&plan_target())
    };
    suspend(AffectedScope::Target { operation: None, targets })
}

pub(crate) fn told(space: &Space, kind: NoticeKind) -> Vec<String> {
    let notices = space.view().notices.values().filter(|notice| notice.kind == kind);
    notices.map(|notice| notice.owner.as_ref().map_or_else(String::new, ToString::to_string)).collect()
}

fn is_suspended(space: &Space) -> bool {
    space.view().state.appointment(&"issuer-1".into()).expect("the appointment").broad_suspended
}

#[test]
fn a_flood_of_restrictions_stops_at_the_issuers_limit_and_no_narrow_one_is_lost() {
    shows!("CP-7.2-23", "CP-10.2-18", "CP-12-13"; by "urgent.broad_beyond_limit");
    let mut space = founded(&appointed(|appointment| appointment.outstanding_max = 3));
    for number in 0..3 {
        recorded(&space.restrict("issuer-1", broad(number)).unwrap());
    }
    for number in 3..20 {
        assert!(space.restrict("issuer-1", broad(number)).unwrap().refusal().is_some());
    }
    assert_eq!(space.refusals().unwrap().first(), Some(&Code::IssuerLimit));
    assert_eq!(restrictions(&space), 3, "what is in force stays in force");
    recorded(&space.restrict("issuer-1", RestrictiveAction::RevokeGrant("grant-1".into())).unwrap());
    assert!(
        space.view().state.grant(&"grant-1".into()).expect("the grant").revocation.revoked_by.is_some(),
        "one named grant is always revoked"
    );
}

#[test]
fn a_target_has_a_limit_of_its_own() {
    shows!("CP-7.2-23"; by "urgent.target_limit_reached");
    let mut space = founded(&appointed(|appointment| appointment.outstanding_per_target_max = 1));
    recorded(&space.restrict("issuer-1", broad(1)).unwrap());
    let wider = TargetPattern { address: "service-*".into(), ..TargetPattern::exactly(&plan_target()) };
    let wider = suspend(AffectedScope::Target { operation: None, targets: wider });
    refused(&space.restrict("issuer-1", wider).unwrap(), Code::IssuerLimit);
    let mut space = founded(&appointed(|appointment| appointment.outstanding_per_target_max = 1));
    recorded(&space.restrict("issuer-1", broad(1)).unwrap());
    recorded(&space.restrict("issuer-1", broad(2)).unwrap());
}

#[test]
fn beyond_a_limit_the_owner_is_told_and_the_issuer_makes_no_further_broad_restrictions() {
    shows!("CP-7.2-25", "CP-7.2-26"; by "urgent.limit_reached", "urgent.issuer_suspended");
    let mut space = founded(&appointed(|appointment| appointment.outstanding_max = 1));
    recorded(&space.restrict("issuer-1", suspend(narrow())).unwrap());
    assert!(!is_suspended(&space));
    recorded(&space.restrict("issuer-1", RestrictiveAction::RevokeGrant("grant-1".into())).unwrap());
    assert!(is_suspended(&space), "a narrow one beyond the limit is committed, and counts");
    assert_eq!(told(&space, NoticeKind::Escalation), ["user"], "an owner who is not the issuer");
    recorded(&reconcile(&mut space, "user", ProducerRole::User, ReconciliationDisposition::Confirmed));
    refused(&space.restrict("issuer-1", broad(1)).unwrap(), Code::IssuerSuspended);
    let suspension =
        space.view().commits.values().find(|committed| {
            committed.commit.delta.changes.iter().any(|change| matches!(change, Change::Revise { .. }))
        });
    let cited = suspension.expect("the suspension").commit.delta.required_authority_refs.clone();
    assert_eq!(
        cited.iter().map(|authority| authority.kind).collect::<Vec<_>>(),
        [AuthorityKind::Profile],
        "under what was declared beforehand"
    );
}

#[test]
fn an_issuer_is_suspended_once() {
    shows!("CP-7.2-26"; by "urgent.suspended_before");
    let mut space = founded(&appointed(|appointment| appointment.outstanding_max = 1));
    recorded(&space.restrict("issuer-1", suspend(narrow())).unwrap());
    let suspensions = |space: &Space| {
        let revises = |change: &Change| matches!(change, Change::Revise { .. });
        space.view().commits.values().filter(|committed| committed.commit.delta.changes.iter().any(revises)).count()
    };
    recorded(&space.restrict("issuer-1", RestrictiveAction::RevokeGrant("grant-1".into())).unwrap());
    let other = TargetPattern { address: "service-b".into(), ..TargetPattern::exactly(&plan_target()) };
    let other = AffectedScope::Target { operation: Some("plan.change".into()), targets: other };
    recorded(&space.restrict("issuer-1", suspend(other)).unwrap());
    assert_eq!(suspensions(&space), 1);
}

#[test]
fn a_missed_review_suspends_the_issuer_without_any_further_event() {
    shows!("CP-7.2-27", "CP-7.2-28", "CP-C14-08"; by "tick.review_missed");
    let mut space = space(worker::proposes("basic"));
    recorded(&space.restrict("issuer-1", suspend(narrow())).unwrap());
    space.pass(999_999).unwrap();
    assert!(!is_suspended(&space));
    space.pass(1).unwrap();
    assert!(is_suspended(&space));
    assert_eq!(told(&space, NoticeKind::Escalation), ["user"]);
    refused(&space.restrict("issuer-1", broad(1)).unwrap(), Code::IssuerSuspended);
    assert_eq!(restrictions(&space), 1, "what it restricted stays in force");
}

#[test]
fn what_an_issuer_may_not_restrict_is_handed_to_the_independent_authority() {
    shows!("CP-7.2-29"; by "urgent.handed_over");
    let authority = identity("watch", IdentityKind::Issuer, &[ProducerRole::Issuer], &[]);
    let second = Item::Appointment(Appointment { issuer: "watch".into(), ..appointment_of_issuer_1() });
    let deployment =
        appointed(|appointment| appointment.broad_suspended = true).with(Item::Identity(authority)).with(second);
    let mut space = founded(&deployment.with_profile(|profile| profile.restrictive_authority = "watch".into()));
    let statement = space.statement("issuer-1", broad(1));
    refused(&space.submit_statement(statement.clone()).unwrap(), Code::IssuerSuspended);
    assert_eq!(told(&space, NoticeKind::Escalation), ["watch"]);
    let kept = space.entries().unwrap().into_iter().any(|(_, entry)| {
        matches!(entry, Entry::Artifact(artifact) if matches!(&*artifact, ArtifactBody::RestrictionStatement(kept) if **kept == statement))
    });
    assert!(kept, "with the statement as it was made");
    assert_eq!(restrictions(&space), 0);
    recorded(&space.restrict("watch", broad(1)).unwrap());
    assert_eq!(restrictions(&space), 1, "made under its own identity");
}

fn appointment_of_issuer_1() -> Appointment {
    let mut found = None;
    drop(appointed(|appointment| found = Some(appointment.clone())));
    found.expect("the appointment")
}
