use super::fixtures::*;
use crate::{Commit, DerivedChange, Divergence, Genesis, Snapshot, State, apply, genesis};
use closer_contracts::Digest;
use closer_contracts::canonical::digest_of;
use closer_contracts::item::{AffectedScope, Claim, Item, ItemKind};
use closer_contracts::{RefusalCode, shows};

/// A claim that rests on another is suspended by the retraction of it: a commit with derived changes.
fn retraction() -> (State, Commit, State) {
    let state = after(&founded(), vec![add(claim("a")), add(claim("b"))]);
    let state = after(&state, vec![depends("d-1", "a", "b")]);
    let (commit, next) = attempt(&state, vec![retract(ItemKind::Claim, "a")]).unwrap();
    (state, commit, next)
}

#[test]
fn replaying_a_recorded_commit_gives_the_state_it_made() {
    shows!("CP-5-12"; by "state.replay_root", "state.replay_after");
    let (state, commit, next) = retraction();
    let recorded = Commit::read(&commit.to_bytes().unwrap()).unwrap();
    assert_eq!(recorded, commit);
    let replayed = apply(&state, &recorded).unwrap();
    assert_eq!((replayed.reference(), replayed.root()), (next.reference(), next.root()));
    let all = |state: &State| Snapshot::of(state).items;
    assert_eq!(all(&replayed), all(&next));
}

#[test]
fn a_commit_altered_in_one_place_diverges_and_says_where() {
    shows!("CP-5-04"; by "state.replay_parent", "state.replay_proposal", "state.replay_derived");
    let (state, commit, _) = retraction();
    let version = commit.version;
    let other = Digest::of(b"other");
    let altered = |alter: &dyn Fn(&mut Commit)| {
        let mut commit = commit.clone();
        alter(&mut commit);
        apply(&state, &commit).unwrap_err()
    };
    assert_eq!(altered(&|c| c.parent.digest = other), Divergence::Parent { version });
    assert_eq!(altered(&|c| c.delta.delta_id = "another".into()), Divergence::Proposal { version });
    assert_eq!(altered(&|c| c.derived.clear()), Divergence::Derived { version });
    assert_eq!(altered(&|c| c.derived_digest = other), Divergence::Derived { version });
    assert_eq!(altered(&|c| c.state_root = other), Divergence::Root { version });
    assert_eq!(altered(&|c| c.after.digest = other), Divergence::After { version });
    let consistent = |c: &mut Commit| {
        c.derived = vec![DerivedChange::Suspend { kind: ItemKind::Method, id: "nowhere".into(), premise: "a".into() }];
        c.derived_digest = digest_of(&c.derived).unwrap();
    };
    assert!(matches!(altered(&consistent), Divergence::Fold { .. }));
}

#[test]
fn a_fold_corrupted_by_one_field_is_noticed() {
    let (state, commit, _) = retraction();
    let mut corrupted = state.clone();
    let limited = Claim { limitations: vec!["by day".into()], ..bare_claim("b") };
    corrupted.put(Item::Claim(limited), 1).unwrap();
    assert_eq!(corrupted.reference(), state.reference());
    assert_eq!(apply(&corrupted, &commit).unwrap_err(), Divergence::Root { version: commit.version });
}

#[test]
fn an_accepted_version_never_changes_afterwards() {
    shows!("CP-5-12", "CP-2-02");
    let state = after(&founded(), vec![add(claim("a"))]);
    let (reference, root, before) = (state.reference(), state.root(), Snapshot::of(&state));
    let mut next = state.clone();
    for id in ["b", "c", "d", "e"] {
        next = after(&next, vec![add(claim(id))]);
    }
    next = after(&next, vec![retract(ItemKind::Claim, "a")]);
    assert_eq!((state.reference(), state.root(), Snapshot::of(&state)), (reference, root, before));
    assert_ne!(next.root(), root);
}

#[test]
fn a_snapshot_restores_the_state_or_says_that_it_cannot() {
    shows!("CP-5-12"; by "state.snapshot_root");
    let (_, _, state) = retraction();
    let snapshot = Snapshot::read(&Snapshot::of(&state).to_bytes().unwrap()).unwrap();
    let restored = snapshot.restore().unwrap();
    assert_eq!((restored.reference(), restored.root()), (state.reference(), state.root()));
    assert_eq!(Snapshot::of(&restored), snapshot);
    let next = |state: &State| after(state, vec![add(claim("z"))]).reference();
    assert_eq!(next(&restored), next(&state));
    let mut damaged = snapshot.clone();
    damaged.items.pop();
    assert_eq!(damaged.restore().unwrap_err(), Divergence::Root { version: state.reference().version });
}

#[test]
fn a_space_is_founded_at_version_zero_and_found_again() {
    let (record, state) = genesis(profile(), founding_items()).unwrap();
    assert_eq!((state.reference().version, state.reference()), (0, record.after));
    let read = Genesis::read(&record.to_bytes().unwrap()).unwrap();
    let again = read.found().unwrap();
    assert_eq!((again.reference(), again.root()), (state.reference(), state.root()));
    let mut reversed = founding_items();
    reversed.reverse();
    assert_eq!(genesis(profile(), reversed).unwrap().0, record);
    let mut altered = read.clone();
    altered.items.pop();
    assert_eq!(altered.found().unwrap_err(), Divergence::Proposal { version: 0 });
    let mut altered = read;
    altered.after.digest = Digest::of(b"another");
    assert_eq!(altered.found().unwrap_err(), Divergence::After { version: 0 });
}

#[test]
fn what_is_founded_is_checked_like_what_is_committed() {
    let unsupported = Item::Claim(Claim { relations: Vec::new(), ..bare_claim("a") });
    let cases = [
        (unsupported, RefusalCode::UnsupportedPromotion),
        (grant("g-0"), RefusalCode::KeyConflict),
        (Item::Obligation(obligation("o")), RefusalCode::SchemaInvalid),
        (method("m", &["nowhere"]), RefusalCode::UnresolvedRef),
        (
            Item::Profile(closer_contracts::profile::Profile { profile_id: "p-2".into(), ..profile() }),
            RefusalCode::KeyConflict,
        ),
    ];
    for (item, code) in cases {
        let mut items = founding_items();
        items.push(item);
        assert_eq!(genesis(profile(), items).unwrap_err().code, code);
    }
}

#[test]
fn an_item_is_proved_under_the_root() {
    let state = after(&founded(), vec![add(claim("a"))]);
    let (kind, id) = (ItemKind::Claim, "a".into());
    let accepted = state.item(kind, &id).unwrap();
    let proof = state.prove(kind, &id).unwrap();
    assert!(proof.verify(&state.root(), kind, &id, &accepted.digest));
    assert!(!proof.verify(&founded().root(), kind, &id, &accepted.digest));
    assert_eq!(accepted.since, 1);
}

#[test]
fn an_urgent_commit_replays_with_its_duty() {
    let state = founded();
    let (commit, next) = attempt_urgent(&state, vec![restriction("r-1", AffectedScope::Space {})]).unwrap();
    let replayed = apply(&state, &Commit::read(&commit.to_bytes().unwrap()).unwrap()).unwrap();
    assert_eq!(replayed.reference(), next.reference());
    assert_eq!(replayed.obligation(&"duty-1".into()), next.obligation(&"duty-1".into()));
}
