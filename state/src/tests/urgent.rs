use super::fixtures::*;
use crate::{Derivation, DerivedChange, Duty, propose, restricted_scopes};
use closer_contracts::Digest;
use closer_contracts::delta::Change;
use closer_contracts::item::{AffectedScope, ItemKind};
use closer_contracts::obligation::{ObligationStatus, Origin};
use closer_contracts::{RefusalCode, shows};

fn space() -> Change {
    restriction("r-1", AffectedScope::Space {})
}

fn with_duty(duty: Option<Duty>) -> Vec<RefusalCode> {
    let state = founded();
    let derivation = Derivation { urgent: duty, ..verified(&[]) };
    codes_of(propose(&state, urgent_delta(&state, vec![space()]), &derivation))
}

#[test]
fn the_urgent_path_restricts_at_once_and_brings_the_duty_to_reconcile() {
    shows!("CP-7.2-08", "CP-7.2-09", "CP-C10-09"; by "state.urgent_beyond_restriction");
    let state = founded();
    let (commit, next) = attempt_urgent(&state, vec![space(), revoke("g-0")]).unwrap();
    assert_eq!(next.restrictions_in_force().count(), 1);
    assert!(next.grant(&"g-0".into()).unwrap().revocation.revoked_by.is_some());
    assert_eq!(restricted_scopes(&commit), [AffectedScope::Space {}]);
    let owed = next.obligation(&"duty-1".into()).unwrap();
    assert_eq!(owed.status, ObligationStatus::Active);
    assert_eq!(owed.responsible_owner, "independent".into());
    assert_eq!(owed.origin, Origin::Commit(artifact("profile-commit")));
    let trigger = next.reentries_of(&"duty-1".into()).next().unwrap();
    assert_eq!(trigger.predicate, time("2026-01-01T01:00:00Z"));
}

#[test]
fn the_urgent_path_carries_restrictions_and_nothing_else() {
    shows!("CP-7.2-10", "CP-7.2-11", "CP-7.2-12"; by "state.urgent_beyond_restriction");
    let state = after(&founded(), vec![admit(obligation("o")), add(claim("a")), space()]);
    let lift = Change::LiftRestriction {
        restriction_id: "r-1".into(),
        urgent_receipt: artifact("receipt-1"),
        reason: "enough".into(),
    };
    let others = [
        add(grant("g-1")),
        revise(&state, grant("g-0")),
        lift,
        set_status("o", ObligationStatus::Withdrawn),
        add(claim("b")),
        add(method("m", &[])),
        retract(ItemKind::Constraint, "c-0"),
        retract(ItemKind::Claim, "a"),
    ];
    for change in others {
        let codes = codes_of(attempt_urgent(&state, vec![change.clone()]));
        assert!(codes.contains(&RefusalCode::NotRestrictive), "{change:?}: {codes:?}");
    }
    assert!(attempt_urgent(&state, vec![revoke("g-0")]).is_ok());
}

#[test]
fn a_mixed_delta_is_refused_whole() {
    shows!("CP-7.2-14", "CP-C10-12"; by "state.urgent_beyond_restriction");
    let state = founded();
    let mixed = attempt_urgent(&state, vec![revoke("g-0"), add(claim("a"))]);
    assert_eq!(codes_of(mixed), [RefusalCode::NotRestrictive]);
    assert_eq!(state.grant(&"g-0".into()).unwrap().revocation.revoked_by, None);
    let mut tied = urgent_delta(&state, vec![revoke("g-0")]);
    if let Change::AddDependency { dependency } = depends("d-1", "c-0", "g-0") {
        tied.dependency_updates.push(dependency);
    }
    let derivation = Derivation { urgent: Some(duty()), ..verified(&[]) };
    let codes = codes_of(propose(&state, tied.sealed().unwrap(), &derivation));
    assert_eq!(codes, [RefusalCode::NotRestrictive]);
}

#[test]
fn an_issuer_does_not_alter_its_own_privileges() {
    shows!("CP-7.2-13"; by "state.urgent_alters_own_privilege");
    let state = founded();
    let own = [revise(&state, appointment("issuer")), revise(&state, identity("issuer"))];
    for change in own {
        let codes = codes_of(attempt_urgent(&state, vec![change]));
        assert_eq!(codes, [RefusalCode::SelfPrivilege]);
    }
    let foreign = codes_of(attempt_urgent(&state, vec![revise(&state, identity("owner"))]));
    assert_eq!(foreign, [RefusalCode::NotRestrictive]);
}

#[test]
fn an_urgent_commit_comes_with_a_deadline_to_come() {
    shows!("CP-7.2-15"; by "state.duty_is_due_later");
    assert_eq!(with_duty(None), [RefusalCode::MissingDeadline]);
    assert_eq!(with_duty(Some(Duty { due_at: now(), ..duty() })), [RefusalCode::MissingDeadline]);
    assert_eq!(with_duty(Some(duty())), []);
}

#[test]
fn an_issuer_does_not_review_its_own_restriction() {
    shows!("CP-7.2-13"; by "state.issuer_owns_its_review");
    let own = Duty { independent_owner: "issuer".into(), ..duty() };
    assert_eq!(with_duty(Some(own)), [RefusalCode::SelfPrivilege]);
    assert_eq!(with_duty(Some(duty())), []);
}

#[test]
fn the_duty_comes_from_the_profiles_standing_requirement() {
    let without = Duty { origin: artifact("event-1"), ..duty() };
    assert_eq!(with_duty(Some(without)), [RefusalCode::NoOrigin]);
    let nobody = Duty { independent_owner: "nobody".into(), ..duty() };
    assert_eq!(with_duty(Some(nobody)), [RefusalCode::UnresolvedRef]);
}

#[test]
fn parent_integrity_and_authority_are_checked_on_the_urgent_path_too() {
    shows!("CP-C10-10"; by "state.parent_is_current");
    let state = founded();
    let early = urgent_delta(&state, vec![space()]);
    let next = after(&state, vec![add(claim("a"))]);
    let derivation = Derivation { urgent: Some(duty()), ..verified(&[]) };
    assert_eq!(codes_of(propose(&next, early.clone(), &derivation)), [RefusalCode::StaleParent]);
    let mut altered = early.clone();
    altered.proposal_digest = Digest::of(b"another");
    assert_eq!(codes_of(propose(&state, altered, &derivation)), [RefusalCode::DigestMismatch]);
    let unverified = Derivation { authorities: Vec::new(), ..derivation.clone() };
    assert_eq!(codes_of(propose(&state, early.clone(), &unverified)), [RefusalCode::MissingAuthority]);
    assert!(propose(&state, early, &derivation).is_ok());
}

#[test]
fn an_urgent_commit_leaves_claims_to_the_ordinary_path() {
    shows!("CP-7.2-12"; by "state.cascade_reaches_knowledge");
    let state = after(&founded(), vec![add(claim("a")), admit(watching("o", "g-0"))]);
    let state = after(&state, vec![depends("d-1", "g-0", "a")]);
    let (commit, next) = attempt_urgent(&state, vec![revoke("g-0")]).unwrap();
    let named = |kind, id: &str| DerivedChange::Reconsider { kind, id: id.into(), premise: "g-0".into() };
    assert_eq!(commit.derived[..2], [named(ItemKind::Claim, "a"), named(ItemKind::Obligation, "o")]);
    assert!(next.item(ItemKind::Claim, &"a".into()).unwrap().is_current());
}

#[test]
fn a_restriction_holds_until_it_is_lifted() {
    let (_, state) = attempt_urgent(&founded(), vec![space()]).unwrap();
    let lift = || Change::LiftRestriction {
        restriction_id: "r-1".into(),
        urgent_receipt: artifact("receipt-1"),
        reason: "reassessed".into(),
    };
    let mut silent = delta(&state, "delta-x", vec![lift()]);
    silent.required_authority_refs.clear();
    let refused = propose(&state, silent.sealed().unwrap(), &verified(&[]));
    assert_eq!(codes_of(refused), [RefusalCode::MissingAuthority]);
    let lifted = after(&state, vec![lift()]);
    assert_eq!(lifted.restrictions_in_force().count(), 0);
    assert_eq!(codes(&lifted, vec![lift()]), [RefusalCode::Duplicate]);
}
