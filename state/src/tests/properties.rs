use super::fixtures::*;
use crate::accepted::only;
use crate::trigger::is_live;
use crate::{Snapshot, State, apply, propose};
use closer_contracts::delta::Change;
use closer_contracts::item::{Claim, Item, ItemKind};
use closer_contracts::obligation::{AssessmentStatus, ObligationStatus};
use closer_contracts::reentry::Reentry;
use closer_contracts::shows;
use closer_contracts::work::{ReferenceStatus, Relation, ScopeMatch};
use proptest::prelude::*;

/// A change over few ids, so that changes meet; many are invalid, and a denied delta changes nothing.
fn change(state: &State, (op, a, b): (u8, u8, u8)) -> Change {
    let (claim_id, method_id, obligation_id) = (format!("a-{a}"), format!("m-{b}"), format!("o-{a}"));
    let trigger = |expires_at| Reentry {
        expires_at,
        ..reentry(&format!("r-{op}-{b}"), &obligation_id, time("2026-02-01T00:00:00Z"))
    };
    match op {
        0 => add(claim(&claim_id)),
        1 => add(Item::Claim(Claim { relations: Vec::new(), ..bare_claim(&claim_id) })),
        2 => add(Item::Claim(Claim { applicability: Vec::new(), ..bare_claim(&claim_id) })),
        3 => add(method(&method_id, &[&claim_id])),
        4 => depends(&format!("d-{a}-{b}"), &format!("a-{a}"), &format!("a-{b}")),
        5 => retract(ItemKind::Claim, &claim_id),
        6 => Change::Suspend { kind: ItemKind::Claim, id: claim_id.as_str().into(), reason: "in doubt".into() },
        7 if state.claim(&claim_id.as_str().into()).is_some() => revise(state, claim(&claim_id)),
        8 => admit(obligation(&obligation_id)),
        9 => admit(watching(&obligation_id, &claim_id)),
        10 => set_triggers(&obligation_id, vec![trigger(None)], None),
        11 => set_triggers(&obligation_id, vec![trigger(Some(now()))], None),
        12 => set_triggers(&obligation_id, Vec::new(), None),
        13 => set_triggers(&obligation_id, Vec::new(), Some(gap(time("2026-01-15T00:00:00Z")))),
        14 => assessed(&obligation_id, AssessmentStatus::Met),
        15 => set_status(&obligation_id, ObligationStatus::Resolved),
        16 => set_status(&obligation_id, ObligationStatus::Active),
        17 => add(grant(&format!("g-{a}"))),
        18 => revoke(&format!("g-{a}")),
        _ => depends(&format!("e-{a}-{b}"), &format!("g-{a}"), &format!("g-{b}")),
    }
}

fn history() -> impl Strategy<Value = Vec<Vec<(u8, u8, u8)>>> {
    proptest::collection::vec(proptest::collection::vec((0u8..20, 0u8..3, 0u8..3), 1..4), 1..24)
}

fn supported(claim: &Claim) -> bool {
    !claim.applicability.is_empty()
        && claim.relations.iter().any(|relation| {
            relation.proposition_id == claim.proposition.proposition_id
                && relation.reference_status == ReferenceStatus::Resolved
                && relation.scope_match == ScopeMatch::Applicable
                && relation.relation == Relation::Supports
        })
}

/// What holds in every reachable state.
fn holds(state: &State) {
    for open in state.open_obligations() {
        let live = state.reentries_of(&open.obligation_id).any(|reentry| is_live(state, reentry, &now()));
        assert!(live || open.trigger_gap.is_some(), "{} can never be reconsidered", open.obligation_id);
    }
    let claims = state.items(ItemKind::Claim).filter_map(|accepted| only!(&accepted.item, Claim));
    for claim in claims {
        assert!(supported(claim), "{} is unsupported", claim.claim_id);
    }
    for kind in [ItemKind::Claim, ItemKind::Method] {
        for accepted in state.items(kind).filter(|accepted| accepted.is_current()) {
            let id = accepted.item.id();
            let lost = state.premises_of(&id).find(|premise| state.locate(premise).any(|found| !found.is_current()));
            assert_eq!(lost, None, "{id} is current on a lost premise");
        }
    }
    for accepted in state.items(ItemKind::Reentry) {
        let owner = only!(&accepted.item, Reentry).and_then(|reentry| state.obligation(&reentry.obligation_id));
        assert!(owner.is_some_and(|owner| owner.reentry_refs.iter().any(|id| accepted.item.id() == id.into())));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_reachable_state_keeps_the_invariants_and_replays(history in history()) {
        shows!("CP-INV-01", "CP-INV-07", "CP-C3-04"; by "state.claim_has_support", "state.can_be_reconsidered");
        let mut state = founded();
        let mut replica = state.clone();
        let mut versions = vec![state.clone()];
        let mut references = vec![(state.reference(), state.root())];
        for (step, makers) in history.into_iter().enumerate() {
            let changes: Vec<Change> = makers.into_iter().map(|maker| change(&state, maker)).collect();
            let proposed = delta(&state, &format!("step-{step}"), changes);
            let before = (state.reference(), state.root());
            match propose(&state, proposed, &verified(&["o-0", "o-1", "o-2"])) {
                Ok((commit, next)) => {
                    replica = apply(&replica, &commit).unwrap();
                    prop_assert_eq!((replica.reference(), replica.root()), (next.reference(), next.root()));
                    state = next;
                    versions.push(state.clone());
                    references.push((state.reference(), state.root()));
                }
                Err(denials) => {
                    prop_assert!(!denials.is_empty());
                    prop_assert!(denials.is_sorted_by_key(|denied| denied.code.precedence()));
                    prop_assert_eq!((state.reference(), state.root()), before);
                }
            }
            holds(&state);
        }
        let restored = Snapshot::of(&state).restore().unwrap();
        prop_assert_eq!((restored.reference(), restored.root()), (state.reference(), state.root()));
        let now: Vec<_> = versions.iter().map(|version| (version.reference(), version.root())).collect();
        prop_assert_eq!(now, references);
    }
}
