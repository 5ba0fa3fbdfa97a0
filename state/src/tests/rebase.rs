use super::fixtures::*;
use crate::{Commit, Denied, State, propose, rebase, sets};
use closer_contracts::delta::{Change, Delta};
use closer_contracts::item::{AffectedScope, Item, ItemKind};
use closer_contracts::obligation::{AssessmentStatus, ObligationStatus};
use closer_contracts::{RefusalCode, shows};
use proptest::prelude::*;

/// Claims `a` and `b`, with `b` resting on `a`; two obligations, `p` watching `b`.
fn space() -> State {
    let state = after(&founded(), vec![add(claim("a")), add(claim("b")), add(claim("c"))]);
    after(&state, vec![depends("d-1", "a", "b"), admit(obligation("o")), admit(watching("p", "b"))])
}

/// Commits `first`, then reissues `second`, which was made against the same parent.
fn both(state: &State, first: &Delta, second: &Delta) -> Result<State, Denied> {
    let (commit, between) = propose(state, first.clone(), &verified(&[])).unwrap();
    let reissued = rebase(second, &between, [&commit], "reissued".into())?;
    assert_eq!(reissued.changes, second.changes);
    assert_eq!(reissued.required_authority_refs, second.required_authority_refs);
    assert_eq!((reissued.parent_state, reissued.delta_id.as_str()), (between.reference(), "reissued"));
    Ok(propose(&between, reissued, &verified(&[])).unwrap().1)
}

#[test]
fn a_delta_is_reissued_where_nothing_it_reads_or_writes_was_touched() {
    shows!("CP-5-06"; by "state.rebase_touched");
    let state = space();
    let mut narrower = bare_claim("c");
    narrower.limitations.push("by day".into());
    let first = delta(&state, "first", vec![revise(&state, Item::Claim(narrower))]);
    let disjoint = delta(&state, "second", vec![set_status("o", ObligationStatus::AwaitingEvent)]);
    let one = both(&state, &first, &disjoint).unwrap();
    let other = both(&state, &disjoint, &first).unwrap();
    assert_eq!(one.root(), other.root());
    let overlapping = delta(&state, "third", vec![retract(ItemKind::Claim, "c")]);
    assert_eq!(both(&state, &first, &overlapping).unwrap_err().code, RefusalCode::StaleParent);
}

#[test]
fn derived_changes_and_propositions_count_as_touched() {
    let state = space();
    let retracting = delta(&state, "first", vec![retract(ItemKind::Claim, "a")]);
    let rival = |id: &str| {
        let mut rival = bare_claim("a");
        rival.claim_id = id.into();
        rival.relations.iter_mut().for_each(|relation| relation.proposition_id = "proposition-of-a".into());
        delta(&state, "second", vec![add(Item::Claim(rival))])
    };
    let reaching = [
        delta(&state, "second", vec![set_status("p", ObligationStatus::AwaitingEvent)]),
        delta(&state, "second", vec![revise(&state, claim("b"))]),
        delta(&state, "second", vec![add(method("m", &["b"]))]),
        delta(&state, "second", vec![Change::RemoveDependency { dependency_id: "d-1".into() }]),
    ];
    for second in reaching {
        let denied = both(&state, &retracting, &second).unwrap_err();
        assert_eq!(denied.code, RefusalCode::StaleParent, "{:?}", second.changes);
    }
    assert_eq!(both(&state, &rival("x"), &rival("y")).unwrap_err().code, RefusalCode::StaleParent);
}

#[test]
fn a_restriction_in_force_that_covers_the_delta_asks_for_a_fresh_assessment() {
    shows!("CP-5-06"; by "state.rebase_restricted");
    let state = space();
    let restricting = |scope| delta(&state, "first", vec![restriction("r-1", scope)]);
    let second = delta(&state, "second", vec![set_status("o", ObligationStatus::AwaitingEvent)]);
    let on = |id: &str| AffectedScope::Obligation { obligation_id: id.into() };
    for scope in [on("o"), AffectedScope::Space {}] {
        assert_eq!(both(&state, &restricting(scope), &second).unwrap_err().code, RefusalCode::StaleParent);
    }
    assert!(both(&state, &restricting(on("p")), &second).is_ok());
}

#[test]
fn a_change_that_needs_authority_keeps_its_original_reference() {
    shows!("CP-C10-08"; by "state.rebase_lacks_authority");
    let state = space();
    let first = delta(&state, "first", vec![set_status("o", ObligationStatus::AwaitingEvent)]);
    let (commit, between) = propose(&state, first, &verified(&[])).unwrap();
    let normative = delta(&state, "second", vec![add(grant("g-9"))]);
    assert!(rebase(&normative, &between, [&commit], "reissued".into()).is_ok());
    let mut silent = normative;
    silent.required_authority_refs.clear();
    let denied = rebase(&silent.sealed().unwrap(), &between, [&commit], "reissued".into()).unwrap_err();
    assert_eq!(denied.code, RefusalCode::MissingAuthority);
}

#[test]
fn the_history_between_must_be_whole() {
    let state = space();
    let second = delta(&state, "second", vec![set_status("o", ObligationStatus::AwaitingEvent)]);
    let (one, middle) = attempt(&state, vec![add(claim("x"))]).unwrap();
    let (two, last) = attempt(&middle, vec![add(claim("y"))]).unwrap();
    let code = |between: Vec<&Commit>| rebase(&second, &last, between, "n".into()).map_err(|denied| denied.code);
    assert!(code(vec![&one, &two]).is_ok());
    for incomplete in [vec![], vec![&one], vec![&two], vec![&two, &one]] {
        assert_eq!(code(incomplete).unwrap_err(), RefusalCode::StaleParent);
    }
}

fn changes() -> impl Strategy<Value = Vec<fn(&State) -> Change>> {
    let pool: Vec<fn(&State) -> Change> = vec![
        |_| add(claim("x")),
        |_| add(claim("y")),
        |_| add(constraint("c-9")),
        |_| add(method("m", &["c"])),
        |_| depends("d-2", "b", "c"),
        |_| retract(ItemKind::Claim, "c"),
        |_| retract(ItemKind::Constraint, "c-0"),
        |_| assessed("o", AssessmentStatus::Met),
        |_| set_status("p", ObligationStatus::AwaitingEvent),
        |_| set_triggers("o", vec![reentry("r-9", "o", time("2026-03-01T00:00:00Z"))], None),
        |_| Change::SetOwner { obligation_id: "p".into(), responsible_owner: "user".into() },
        |state| revise(state, claim("a")),
    ];
    proptest::sample::subsequence(pool, 1..=2)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn disjoint_deltas_commit_in_either_order_and_overlapping_ones_do_not(one in changes(), two in changes()) {
        let state = space();
        let made = |id, makers: &[fn(&State) -> Change]| delta(&state, id, makers.iter().map(|make| make(&state)).collect());
        let (one, two) = (made("one", &one), made("two", &two));
        let admitted = |delta: &Delta| propose(&state, delta.clone(), &verified(&[])).is_ok();
        prop_assume!(admitted(&one) && admitted(&two));
        let (reads_one, reads_two) = (sets(&one, &state), sets(&two, &state));
        let forward = reads_two.touched_by(&reads_one.writes).is_none();
        let backward = reads_one.touched_by(&reads_two.writes).is_none();
        let (first, second) = (both(&state, &one, &two), both(&state, &two, &one));
        prop_assert_eq!(first.is_ok(), forward);
        prop_assert_eq!(second.is_ok(), backward);
        if let (Ok(first), Ok(second)) = (first, second) {
            prop_assert_eq!(first.root(), second.root());
        }
    }
}

#[test]
fn an_untied_dependent_is_named_so_that_either_order_is_refused() {
    let state = after(&space(), vec![add(method("m", &["c"]))]);
    let retracting = |id: &str| delta(&state, "one", vec![retract(ItemKind::Claim, id)]);
    let untying = [
        (retracting("a"), Change::RemoveDependency { dependency_id: "d-1".into() }),
        (retracting("c"), revise(&state, method("m", &["a"]))),
    ];
    for (retracting, untying) in untying {
        let untying = delta(&state, "two", vec![untying]);
        assert_eq!(both(&state, &retracting, &untying).unwrap_err().code, RefusalCode::StaleParent);
        assert_eq!(both(&state, &untying, &retracting).unwrap_err().code, RefusalCode::StaleParent);
    }
}
