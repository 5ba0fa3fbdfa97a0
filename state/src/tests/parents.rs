use super::fixtures::*;
use crate::{Derivation, propose};
use closer_contracts::item::{Item, ItemKind};
use closer_contracts::{Digest, RefusalCode, shows};

#[test]
fn of_two_deltas_on_one_parent_the_second_is_refused() {
    shows!("CP-5-06", "CP-C10-06", "CP-8.1-11"; by "state.parent_is_current");
    let state = founded();
    let (first, second) =
        (delta(&state, "delta-1", vec![add(claim("a"))]), delta(&state, "delta-2", vec![add(claim("b"))]));
    let (commit, next) = propose(&state, first, &verified(&[])).unwrap();
    assert_eq!(commit.parent, state.reference());
    assert_eq!(codes_of(propose(&next, second, &verified(&[]))), [RefusalCode::StaleParent]);
}

#[test]
fn the_parent_of_a_commit_is_the_one_its_delta_named() {
    shows!("CP-5-04", "CP-2-12"; by "state.parent_is_current");
    let state = founded();
    let (commit, next) = attempt(&state, vec![add(claim("a"))]).unwrap();
    assert_eq!(commit.delta.parent_state, commit.parent);
    assert_eq!((commit.parent, commit.after), (state.reference(), next.reference()));
    assert_eq!(next.reference().version, state.reference().version + 1);
}

#[test]
fn a_parent_with_the_accepted_version_and_another_digest_is_forged() {
    shows!("CP-C10-10"; by "state.parent_forged");
    let state = founded();
    let mut forged = delta(&state, "delta-1", vec![add(claim("a"))]);
    forged.parent_state.digest = Digest::of(b"another history");
    assert_eq!(codes_of(propose(&state, forged.sealed().unwrap(), &verified(&[]))), [RefusalCode::DigestMismatch]);
}

#[test]
fn a_delta_whose_bytes_do_not_have_its_digest_is_refused() {
    let state = founded();
    let mut altered = delta(&state, "delta-1", vec![add(claim("a"))]);
    altered.changes = vec![add(claim("b"))];
    assert_eq!(codes_of(propose(&state, altered, &verified(&[]))), [RefusalCode::DigestMismatch]);
}

#[test]
fn of_ten_changes_none_is_applied_when_the_tenth_is_invalid() {
    shows!("CP-5-05"; by "state.any_change_denied");
    let state = founded();
    let mut changes: Vec<_> = (0..9).map(|n| add(claim(&format!("a-{n}")))).collect();
    changes.push(retract(ItemKind::Claim, "nowhere"));
    assert_eq!(codes(&state, changes), [RefusalCode::UnresolvedRef]);
    assert_eq!(state.items(ItemKind::Claim).count(), 0);
}

#[test]
fn every_denied_change_is_named_the_first_in_precedence_first() {
    let state = founded();
    let unsupported = Item::Claim(closer_contracts::item::Claim { applicability: Vec::new(), ..bare_claim("a") });
    let changes = vec![add(unsupported), retract(ItemKind::Claim, "nowhere"), add(grant("g-0"))];
    let expected = [RefusalCode::KeyConflict, RefusalCode::UnresolvedRef, RefusalCode::UnsupportedPromotion];
    assert_eq!(codes(&state, changes), expected);
}

#[test]
fn a_normative_change_needs_an_authority_that_was_verified() {
    shows!("CP-INV-02", "CP-C10-08"; by "state.authority_verified", "state.authority_cited");
    let state = founded();
    for change in [add(grant("g-1")), add(constraint("c-1")), revoke("g-0")] {
        let proposed = delta(&state, "delta-1", vec![change.clone()]);
        let unverified = Derivation { authorities: Vec::new(), ..verified(&[]) };
        assert_eq!(codes_of(propose(&state, proposed.clone(), &unverified)), [RefusalCode::MissingAuthority]);
        let mut silent = proposed.clone();
        silent.required_authority_refs.clear();
        let silent = silent.sealed().unwrap();
        assert_eq!(codes_of(propose(&state, silent, &verified(&[]))), [RefusalCode::MissingAuthority]);
        assert!(propose(&state, proposed, &verified(&[])).is_ok());
    }
}

#[test]
fn a_descriptive_change_needs_no_authority_of_its_own() {
    let state = founded();
    let mut proposed = delta(&state, "delta-1", vec![add(claim("a"))]);
    proposed.required_authority_refs.clear();
    assert!(propose(&state, proposed.sealed().unwrap(), &Derivation::at(now())).is_ok());
}

#[test]
fn an_id_names_one_item_for_ever() {
    shows!("CP-5-02"; by "state.id_is_taken");
    let state = after(&founded(), vec![add(claim("a"))]);
    assert_eq!(codes(&state, vec![add(claim("a"))]), [RefusalCode::KeyConflict]);
    assert_eq!(codes(&state, vec![add(method("a", &[]))]), [RefusalCode::KeyConflict]);
}

#[test]
fn an_item_is_not_reached_through_another_kind() {
    shows!("CP-2-03"; by "state.kind_differs");
    let state = after(&founded(), vec![add(claim("a"))]);
    assert_eq!(codes(&state, vec![retract(ItemKind::Claim, "c-0")]), [RefusalCode::SchemaInvalid]);
    assert_eq!(codes(&state, vec![retract(ItemKind::Method, "a")]), [RefusalCode::SchemaInvalid]);
    assert_eq!(codes(&state, vec![retract(ItemKind::Method, "nowhere")]), [RefusalCode::UnresolvedRef]);
}

#[test]
fn grants_obligations_and_restrictions_have_changes_of_their_own() {
    shows!("CP-3.2-01"; by "state.kind_has_own_changes");
    let state = after(&founded(), vec![admit(obligation("o"))]);
    for (kind, id) in [(ItemKind::Grant, "g-0"), (ItemKind::Obligation, "o"), (ItemKind::Profile, "profile-1")] {
        assert_eq!(codes(&state, vec![retract(kind, id)]), [RefusalCode::SchemaInvalid], "{kind}");
    }
    assert!(codes(&state, vec![retract(ItemKind::Constraint, "c-0")]).is_empty());
}

#[test]
fn a_revision_names_the_content_that_it_replaces() {
    shows!("CP-5-07"; by "state.revises_what_is_accepted");
    let state = after(&founded(), vec![add(claim("a"))]);
    let mut wider = bare_claim("a");
    wider.limitations.push("not at night".into());
    let revision = revise(&state, Item::Claim(wider.clone()));
    let revised = after(&state, vec![revision.clone()]);
    assert_eq!(codes(&revised, vec![revision]), [RefusalCode::StaleVersion]);
    assert_eq!(revised.claim(&"a".into()), Some(&wider));
    let digest = |state: &crate::State| state.item(ItemKind::Grant, &"g-0".into()).unwrap().digest;
    assert_eq!(digest(&revised), digest(&state));
}

#[test]
fn new_content_of_a_versioned_item_has_a_higher_version() {
    let state = founded();
    let mut same = rule(1);
    if let Item::Rule(rule) = &mut same {
        rule.body = closer_contracts::item::RuleBody::Matching { facets: Vec::new() };
    }
    assert_eq!(codes(&state, vec![revise(&state, same)]), [RefusalCode::KeyConflict]);
    let raised = after(&state, vec![revise(&state, rule(2))]);
    assert!(raised.rule(&rule_ref()).is_none());
}

#[test]
fn all_kinds_of_items_are_there_even_when_empty() {
    shows!("CP-5-01", "CP-2-02");
    let state = founded();
    let next = after(&state, vec![add(goal("goal-1")), add(claim("a")), add(method("m", &["a"]))]);
    let next = after(&next, vec![admit(obligation("o")), depends("d-1", "a", "m")]);
    for kind in ItemKind::ALL {
        let founded: Vec<_> = state.items(*kind).map(|accepted| accepted.item.kind()).collect();
        assert!(founded.iter().all(|found| found == kind));
    }
    let seven = [
        (ItemKind::Goal, "goal-1"),
        (ItemKind::Constraint, "c-0"),
        (ItemKind::Grant, "g-0"),
        (ItemKind::Claim, "a"),
        (ItemKind::Method, "m"),
        (ItemKind::Obligation, "o"),
        (ItemKind::Dependency, "d-1"),
    ];
    for (kind, id) in seven {
        assert!(next.item(kind, &id.into()).is_some(), "{kind}");
    }
    assert_eq!(state.items(ItemKind::Goal).count() + state.items(ItemKind::Obligation).count(), 0);
}
