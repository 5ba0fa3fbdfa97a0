use crate::Merkle;
use closer_contracts::Digest;
use closer_contracts::id::Id;
use closer_contracts::item::ItemKind;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn built<'a>(entries: impl IntoIterator<Item = (&'a u16, &'a u8)>) -> Merkle {
    let mut merkle = Merkle::default();
    for (key, value) in entries {
        merkle.insert(kind(*key), &id(*key), Digest::of(&[*value]));
    }
    merkle
}

fn id(key: u16) -> Id {
    format!("item-{}", key / 2).into()
}

fn kind(key: u16) -> ItemKind {
    if key.is_multiple_of(2) { ItemKind::Claim } else { ItemKind::Grant }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_root_depends_on_the_entries_and_not_on_their_order(
        entries in proptest::collection::btree_map(0u16..200, any::<u8>(), 0..60),
        removed in proptest::collection::btree_map(200u16..400, any::<u8>(), 0..20),
    ) {
        let mut detour = built(removed.iter().chain(entries.iter().rev()));
        let with_removed = detour.root();
        removed.keys().for_each(|key| detour.remove(kind(*key), &id(*key)));
        let straight = built(&entries);
        prop_assert_eq!(detour.root(), straight.root());
        prop_assert_eq!(removed.is_empty(), with_removed == straight.root());
    }

    #[test]
    fn an_update_gives_the_root_of_a_rebuild_and_leaves_the_old_version_alone(
        entries in proptest::collection::btree_map(0u16..100, any::<u8>(), 1..40),
        at in any::<prop::sample::Index>(),
        value in any::<u8>(),
    ) {
        let old = built(&entries);
        let root = old.root();
        let key = *at.get(&entries.keys().copied().collect::<Vec<_>>());
        let mut new = old.clone();
        new.insert(kind(key), &id(key), Digest::of(&[value]));
        let mut changed: BTreeMap<u16, u8> = entries.clone();
        changed.insert(key, value);
        prop_assert_eq!(new.root(), built(&changed).root());
        prop_assert_eq!(new.root() == root, changed == entries);
        prop_assert_eq!(old.root(), root);
        prop_assert_eq!(old.get(kind(key), &id(key)), Some(Digest::of(&[entries[&key]])));
    }

    #[test]
    fn a_proof_holds_for_its_entry_and_for_nothing_else(
        entries in proptest::collection::btree_map(0u16..100, any::<u8>(), 1..40),
        at in any::<prop::sample::Index>(),
    ) {
        let merkle = built(&entries);
        let (root, key) = (merkle.root(), *at.get(&entries.keys().copied().collect::<Vec<_>>()));
        let (kind, id, value) = (kind(key), id(key), Digest::of(&[entries[&key]]));
        let proof = merkle.prove(kind, &id).unwrap();
        prop_assert!(proof.verify(&root, kind, &id, &value));
        prop_assert!(!proof.verify(&root, kind, &id, &Digest::of(b"another value")));
        prop_assert!(!proof.verify(&root, ItemKind::Goal, &id, &value));
        prop_assert!(!proof.verify(&Digest::of(b"another root"), kind, &id, &value));
        for level in 0..proof.steps.len() {
            let mut altered = proof.clone();
            altered.steps[level].sibling = Digest::of(b"another side");
            prop_assert!(!altered.verify(&root, kind, &id, &value));
            let mut shortened = proof.clone();
            shortened.steps.remove(level);
            prop_assert!(!shortened.verify(&root, kind, &id, &value));
        }
        prop_assert!(merkle.prove(ItemKind::Goal, &id).is_none());
    }
}
