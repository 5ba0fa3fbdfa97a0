use super::fixtures::*;
use crate::derive::{Reach, cascade};
use crate::receipt::{INVALIDATED_PAGE_ITEMS, invalidated};
use crate::{DerivedChange, State, apply, propose, touched};
use closer_contracts::canonical::digest_of;
use closer_contracts::delta::Change;
use closer_contracts::id::Id;
use closer_contracts::item::{Item, ItemKind, Standing};
use closer_contracts::{RefusalCode, shows};

/// Claim `c` rests on `b`, which rests on `a`; method `m` names `c`; obligation `o` watches `c`.
fn chained() -> State {
    let state = after(&founded(), ["a", "b", "c"].map(|id| add(claim(id))).into());
    let state = after(&state, vec![depends("d-1", "a", "b"), depends("d-2", "b", "c"), add(method("m", &["c"]))]);
    after(&state, vec![admit(watching("o", "c"))])
}

fn standing(state: &State, kind: ItemKind, id: &str) -> Option<Standing> {
    crate::accepted::standing(&state.item(kind, &id.into()).unwrap().item)
}

fn suspended(id: &str, premise: &str, kind: ItemKind) -> DerivedChange {
    DerivedChange::Suspend { kind, id: id.into(), premise: premise.into() }
}

#[test]
fn what_rests_on_an_invalidated_premise_is_suspended_in_the_same_commit() {
    shows!("CP-3.2-02", "CP-C14-12", "CP-INV-05"; by "state.cascade_reaches_knowledge");
    let (commit, next) = attempt(&chained(), vec![retract(ItemKind::Claim, "a")]).unwrap();
    let woken = DerivedChange::Reconsider { kind: ItemKind::Obligation, id: "o".into(), premise: "c".into() };
    let expected = [
        suspended("b", "a", ItemKind::Claim),
        suspended("c", "b", ItemKind::Claim),
        suspended("m", "c", ItemKind::Method),
        woken,
    ];
    assert_eq!(commit.derived, expected);
    assert_eq!(standing(&next, ItemKind::Claim, "a"), Some(Standing::Retracted));
    for (kind, id) in [(ItemKind::Claim, "b"), (ItemKind::Claim, "c"), (ItemKind::Method, "m")] {
        assert_eq!(standing(&next, kind, id), Some(Standing::Suspended));
        assert!(!next.item(kind, &id.into()).unwrap().is_current());
        assert!(touched(&commit).contains(&(kind, id.into())));
    }
    assert!(touched(&commit).contains(&(ItemKind::Obligation, "o".into())));
    assert!(next.obligation(&"o".into()).unwrap().status.is_open());
}

#[test]
fn a_suspension_and_a_revision_to_suspended_reach_as_far_as_a_retraction() {
    let state = chained();
    let suspend = Change::Suspend { kind: ItemKind::Claim, id: "a".into(), reason: "in doubt".into() };
    let mut doubted = bare_claim("a");
    doubted.standing = Standing::Suspended;
    for change in [suspend, revise(&state, Item::Claim(doubted))] {
        let (commit, _) = attempt(&state, vec![change]).unwrap();
        assert_eq!(commit.derived.len(), 4);
    }
    let mut narrower = bare_claim("a");
    narrower.limitations.push("by day".into());
    let (commit, _) = attempt(&state, vec![revise(&state, Item::Claim(narrower))]).unwrap();
    assert_eq!(commit.derived, []);
}

#[test]
fn facts_never_alter_what_is_permitted() {
    shows!("CP-5-07"; by "state.delegate_falls");
    let state = after(&founded(), vec![add(claim("a"))]);
    let state = after(&state, vec![depends("d-1", "a", "g-0"), depends("d-2", "a", "c-0")]);
    let (commit, next) = attempt(&state, vec![retract(ItemKind::Claim, "a")]).unwrap();
    let named = |kind, id: &str| DerivedChange::Reconsider { kind, id: id.into(), premise: "a".into() };
    assert_eq!(commit.derived, [named(ItemKind::Grant, "g-0"), named(ItemKind::Constraint, "c-0")]);
    for (kind, id) in [(ItemKind::Grant, "g-0"), (ItemKind::Constraint, "c-0")] {
        let digest = |state: &State| state.item(kind, &id.into()).unwrap().digest;
        assert_eq!(digest(&next), digest(&state));
    }
}

#[test]
fn revoking_a_grant_revokes_its_delegates() {
    shows!("CP-C14-15"; by "state.delegate_falls");
    let state = after(&founded(), vec![add(grant("g-1")), add(grant("g-2")), add(grant("g-3"))]);
    let state = after(&state, vec![depends("d-1", "g-0", "g-1"), depends("d-2", "g-1", "g-2")]);
    let (commit, next) = attempt(&state, vec![revoke("g-0")]).unwrap();
    for id in ["g-0", "g-1", "g-2"] {
        let revoked_by = next.grant(&id.into()).unwrap().revocation.revoked_by.clone().unwrap();
        assert_eq!(revoked_by.digest, commit.delta.proposal_digest);
    }
    assert_eq!(next.grant(&"g-3".into()).unwrap().revocation.revoked_by, None);
    assert_eq!(invalidated(&commit).unwrap().total, 2);
    assert_eq!(codes(&next, vec![revoke("g-1")]), [RefusalCode::Duplicate]);
}

#[test]
fn a_revoked_grant_stays_revoked() {
    shows!("CP-7.2-10"; by "state.revises_revoked_grant");
    let state = after(&founded(), vec![revoke("g-0")]);
    assert_eq!(codes(&state, vec![revise(&state, grant("g-0"))]), [RefusalCode::GrantRevoked]);
    let state = founded();
    assert!(codes(&state, vec![revise(&state, grant("g-0"))]).is_empty());
}

#[test]
fn the_tie_of_a_delegate_is_not_cut_without_authority() {
    let state = after(&founded(), vec![add(grant("g-1"))]);
    let bare = |changes| {
        let mut proposed = delta(&state, "delta-x", changes);
        proposed.required_authority_refs.clear();
        proposed.sealed().unwrap()
    };
    let tied = propose(&state, bare(vec![depends("d-1", "g-0", "g-1")]), &verified(&[]));
    assert_eq!(codes_of(tied), [RefusalCode::MissingAuthority]);
    let state = after(&state, vec![depends("d-1", "g-0", "g-1")]);
    let mut cut = delta(&state, "delta-y", vec![Change::RemoveDependency { dependency_id: "d-1".into() }]);
    cut.required_authority_refs.clear();
    let cut = propose(&state, cut.sealed().unwrap(), &verified(&[]));
    assert_eq!(codes_of(cut), [RefusalCode::MissingAuthority]);
}

#[test]
fn nothing_is_promoted_on_a_premise_that_was_lost() {
    shows!("CP-3.2-02"; by "state.promoted_on_lost_premise");
    let state = after(&chained(), vec![retract(ItemKind::Claim, "a")]);
    assert_eq!(codes(&state, vec![revise(&state, claim("b"))]), [RefusalCode::UnsupportedPromotion]);
    let untied = vec![Change::RemoveDependency { dependency_id: "d-1".into() }, revise(&state, claim("b"))];
    assert!(codes(&state, untied).is_empty());
}

#[test]
fn a_circle_of_dependencies_is_walked_once() {
    let state = after(&founded(), vec![add(claim("a")), add(claim("b"))]);
    let state = after(&state, vec![depends("d-1", "a", "b"), depends("d-2", "b", "a")]);
    let (commit, _) = attempt(&state, vec![retract(ItemKind::Claim, "a")]).unwrap();
    assert_eq!(commit.derived, [suspended("b", "a", ItemKind::Claim)]);
}

#[test]
fn a_long_chain_is_listed_by_page_and_replays() {
    const LINKS: usize = 1_000;
    let mut state = after(&founded(), (0..=LINKS).map(|n| add(claim(&format!("k-{n:05}")))).collect());
    let edge = |n: usize| depends(&format!("d-{n:05}"), &format!("k-{n:05}"), &format!("k-{:05}", n + 1));
    state = after(&state, (0..LINKS).map(edge).collect());
    let (commit, next) = attempt(&state, vec![retract(ItemKind::Claim, "k-00000")]).unwrap();
    let listed = invalidated(&commit).unwrap();
    assert_eq!((listed.items.len(), listed.total, listed.complete), (INVALIDATED_PAGE_ITEMS, LINKS as u64, false));
    let whole: Vec<_> = (1..=LINKS)
        .map(|n| closer_contracts::audit::InvalidatedItem { kind: ItemKind::Claim, id: format!("k-{n:05}").into() })
        .collect();
    assert_eq!(listed.list_digest, digest_of(&whole).unwrap());
    assert_eq!(apply(&state, &commit).unwrap().root(), next.root());
    let last = Id::from(format!("k-{LINKS:05}"));
    assert!(!next.item(ItemKind::Claim, &last).unwrap().is_current());
}

/// `count` claims, and the tie of each to the one that `premise_of` names.
fn tied(count: usize, premise_of: impl Fn(usize) -> usize) -> State {
    let mut state = founded();
    for page in (0..=count).collect::<Vec<_>>().chunks(2_000) {
        state = after(&state, page.iter().map(|n| add(claim(&format!("k-{n:05}")))).collect());
    }
    for page in (1..=count).collect::<Vec<_>>().chunks(2_000) {
        let tie = |n: &usize| depends(&format!("d-{n:05}"), &format!("k-{:05}", premise_of(*n)), &format!("k-{n:05}"));
        state = after(&state, page.iter().map(tie).collect());
    }
    state
}

/// How many items fall with the first one, and how many ties were looked at to find that out.
fn fall(state: &State) -> (usize, u64) {
    let fallen = cascade(state, vec!["k-00000".into()], Reach::Knowledge);
    (fallen.derived.len(), fallen.ties)
}

#[test]
fn the_work_of_a_fall_grows_with_what_falls_and_with_nothing_else() {
    for count in [5_000, 10_000] {
        let chain = tied(count, |n| n - 1);
        assert_eq!(fall(&chain), (count, count as u64), "a chain of {count}");
        let fan = tied(count, |_| 0);
        assert_eq!(fall(&fan), (count, count as u64), "a fan of {count}");
        let last = cascade(&chain, vec![Id::from(format!("k-{:05}", count - 1))], Reach::Knowledge);
        assert_eq!(
            (last.derived.len(), last.ties),
            (1, 1),
            "the end of a long chain is as near as that of a short one"
        );
    }
}
