//! Events are bound to accepted, open obligations, each candidate with its reason; triggers fire once on what they read.

use crate::fixture::{
    ALL_FACETS, World, added, at, at_minute, event, event_ref, minute, obligation, observation, reentry, rule, watch,
};
use closer_contracts::event::{Event, Facet, MatchOutcome, MatchReceipt, Rationale};
use closer_contracts::id::ObligationId;
use closer_contracts::item::{Item, ItemKind, RuleBody};
use closer_contracts::obligation::{Obligation, ObligationDependency};
use closer_contracts::reentry::{Any, Evaluation, Reentry, TypedPredicate};
use closer_contracts::refs::{ArtifactRef, SourceRef};
use closer_contracts::shows;
use closer_protocol::matching::{fired, gap_trigger, match_event};

/// Records an event and matches it.
fn bind(world: &mut World, event: Event) -> MatchReceipt {
    let payload = world.payload(&format!("pl-{}", event.event_id), event.clone());
    match_event(&event, event_ref(&payload), None, &world.view, &at(5))
}

fn watching(id: &str, dependencies: Vec<ObligationDependency>) -> Obligation {
    Obligation { dependencies, ..obligation(id, &[]) }
}

fn of<'a>(receipt: &'a MatchReceipt, obligation: &str) -> &'a Rationale {
    receipt.rationale.iter().find(|rationale| rationale.obligation_id.as_str() == obligation).expect("a reason")
}

fn matched(receipt: &MatchReceipt) -> Vec<&str> {
    receipt.matched_obligation_ids.iter().map(ObligationId::as_str).collect()
}

/// An obligation that requires all four facets, and the evidence that an event has to cite.
fn with_all_facets() -> (World, ArtifactRef) {
    let mut world = World::new();
    let cited = world.observe(observation("ev-1", "probe", "probes", 1));
    world.admit(watching("o-1", vec![watch("d-1", "catalogue", &["shop"], &["changed"], &["ev-1"])]), Vec::new());
    (world, cited)
}

#[test]
fn an_event_is_compared_in_four_facets_and_the_reason_names_the_one_that_does_not_fit() {
    shows!("CP-1.1-04"; by "matching.facet_required");
    let (mut world, cited) = with_all_facets();
    let fits = bind(&mut world, event("e-0", "probe", "catalogue", "changed", std::slice::from_ref(&cited)));
    assert_eq!((matched(&fits), fits.outcome), (vec!["o-1"], MatchOutcome::Matched));
    let other = world.observe(observation("ev-2", "probe", "probes", 2));
    let cases = [
        (event("e-1", "probe", "another", "changed", std::slice::from_ref(&cited)), Facet::Entity),
        (event("e-2", "elsewhere", "catalogue", "changed", std::slice::from_ref(&cited)), Facet::Scope),
        (event("e-3", "probe", "catalogue", "replaced", std::slice::from_ref(&cited)), Facet::ChangeKind),
        (event("e-4", "probe", "catalogue", "changed", &[other]), Facet::Evidence),
    ];
    for (event, facet) in cases {
        let receipt = bind(&mut world, event);
        assert_eq!(receipt.outcome, MatchOutcome::Unmatched, "{facet}");
        let reason = of(&receipt, "o-1");
        assert_eq!((reason.result, reason.facet), (Evaluation::NotSatisfied, Some(facet)));
    }
}

#[test]
fn a_facet_that_the_rule_does_not_require_counts_as_satisfied() {
    shows!("CP-1.1-04"; by "matching.facet_required");
    let (mut world, _) = with_all_facets();
    let facets = vec![Facet::Entity, Facet::Scope];
    world.revise(Item::Rule(rule("matching", 2, RuleBody::Matching { facets })));
    let receipt = bind(&mut world, event("e-1", "probe", "catalogue", "replaced", &[]));
    assert_eq!(matched(&receipt), ["o-1"]);
    let elsewhere = bind(&mut world, event("e-2", "elsewhere", "catalogue", "replaced", &[]));
    assert_eq!(elsewhere.outcome, MatchOutcome::Unmatched);
}

#[test]
fn the_entity_is_compared_exactly() {
    shows!("CP-1.1-04"; by "matching.entity_fits");
    let (mut world, cited) = with_all_facets();
    let receipt = bind(&mut world, event("e-1", "probe", "catalogue-2", "changed", &[cited]));
    assert_eq!(of(&receipt, "o-1").facet, Some(Facet::Entity));
}

#[test]
fn only_accepted_and_open_obligations_are_compared() {
    shows!("CP-1.1-05"; by "matching.obligation_open");
    let mut world = World::new();
    let proposed = watching("o-1", vec![watch("d-1", "catalogue", &["shop"], &[], &[])]);
    world.payload("pl-proposed", proposed.clone());
    let before = bind(&mut world, event("e-1", "probe", "catalogue", "changed", &[]));
    assert_eq!((before.outcome, before.rationale.len()), (MatchOutcome::Unmatched, 0));
    world.admit(proposed, Vec::new());
    let accepted = bind(&mut world, event("e-2", "probe", "catalogue", "changed", &[]));
    assert_eq!(matched(&accepted), ["o-1"]);
    world.close("o-1");
    let closed = bind(&mut world, event("e-3", "probe", "catalogue", "changed", &[]));
    assert_eq!((closed.outcome, closed.rationale.len()), (MatchOutcome::Unmatched, 0));
}

fn fed(id: &str, obligation: &str, after: u64) -> Reentry {
    Reentry {
        event_sources: vec![SourceRef { source_id: "probe".into() }],
        ..reentry(id, obligation, TypedPredicate::EvidenceAdded(added(after)))
    }
}

#[test]
fn a_trigger_matches_where_no_dependency_does() {
    shows!("CP-1.1-06"; by "matching.candidate_satisfied");
    let mut world = World::new();
    let trigger = fed("reentry-1", "o-1", 0);
    world.admit(obligation("o-1", std::slice::from_ref(&trigger)), vec![trigger]);
    world.observe(observation("ev-1", "probe", "probes", 1));
    let receipt = bind(&mut world, event("e-1", "probe", "anything", "changed", &[]));
    assert_eq!(matched(&receipt), ["o-1"]);
    assert_eq!(of(&receipt, "o-1").candidate.as_str(), "reentry-1");
    assert_eq!(receipt.predicate_results[0].result, Evaluation::Satisfied);
    assert_eq!(receipt.predicate_results[0].predicate_version.id.as_str(), "reentry-1");
}

#[test]
fn exactly_the_relevant_obligations_are_listed() {
    shows!("CP-1.1-07"; by "matching.candidate_satisfied");
    let mut world = World::new();
    for (id, entity) in [("o-1", "catalogue"), ("o-2", "prices"), ("o-3", "catalogue")] {
        world.admit(watching(id, vec![watch(&format!("d-{id}"), entity, &["shop"], &[], &[])]), Vec::new());
    }
    world.admit(watching("o-4", vec![watch("d-o-4", "catalogue", &["bank"], &[], &[])]), Vec::new());
    let receipt = bind(&mut world, event("e-1", "probe", "catalogue", "changed", &[]));
    assert_eq!(matched(&receipt), ["o-1", "o-3"]);
    let considered: Vec<&str> = receipt.rationale.iter().map(|rationale| rationale.obligation_id.as_str()).collect();
    assert_eq!(considered, ["o-1", "o-3", "o-4"], "what the event does not touch is not looked at");
}

#[test]
fn the_receipt_names_the_rule_at_its_version() {
    shows!("CP-1.1-08"; by "matching.rule_current");
    let (mut world, cited) = with_all_facets();
    let first = bind(&mut world, event("e-1", "probe", "catalogue", "changed", std::slice::from_ref(&cited)));
    world.revise(Item::Rule(rule("matching", 2, RuleBody::Matching { facets: ALL_FACETS.to_vec() })));
    let second = bind(&mut world, event("e-2", "probe", "catalogue", "changed", &[cited]));
    assert_eq!((first.rule_ref.id.as_str(), first.rule_ref.version), ("matching", 1));
    assert_eq!((second.rule_ref.id.as_str(), second.rule_ref.version), ("matching", 2));
}

#[test]
fn the_receipt_names_the_state_it_was_made_on() {
    shows!("CP-1.1-09");
    let (mut world, cited) = with_all_facets();
    let before = world.view.state.reference();
    let first = bind(&mut world, event("e-1", "probe", "catalogue", "changed", std::slice::from_ref(&cited)));
    world.admit(obligation("o-2", &[]), Vec::new());
    let second = bind(&mut world, event("e-2", "probe", "catalogue", "changed", &[cited]));
    assert_eq!(first.state_basis, before);
    assert_eq!(second.state_basis, world.view.state.reference());
    assert_ne!(first.state_basis, second.state_basis);
}

/// Three candidates of one event: one that matches, one that does not, one that cannot be told.
fn of_every_kind() -> (World, MatchReceipt) {
    let mut world = World::new();
    world.admit(watching("o-yes", vec![watch("d-yes", "catalogue", &["shop"], &[], &[])]), Vec::new());
    world.admit(watching("o-no", vec![watch("d-no", "catalogue", &["shop"], &["replaced"], &[])]), Vec::new());
    world.admit(watching("o-perhaps", vec![watch("d-perhaps", "catalogue", &["shop"], &[], &["ev-1"])]), Vec::new());
    let dangling = ArtifactRef { id: "ev-1".into(), digest: closer_contracts::Digest::of(b"elsewhere") };
    let receipt = bind(&mut world, event("e-1", "probe", "catalogue", "changed", &[dangling]));
    (world, receipt)
}

#[test]
fn every_candidate_has_its_reason() {
    shows!("CP-1.1-10"; by "matching.cited_evidence_resolves");
    let (_, receipt) = of_every_kind();
    let results: Vec<_> = ["o-yes", "o-no", "o-perhaps"].map(|id| of(&receipt, id).result).to_vec();
    assert_eq!(results, [Evaluation::Satisfied, Evaluation::NotSatisfied, Evaluation::Unknown]);
    assert!(receipt.rationale.iter().all(|rationale| !rationale.reason.as_str().is_empty()));
    assert_eq!(of(&receipt, "o-perhaps").facet, Some(Facet::Evidence));
}

#[test]
fn one_unknown_candidate_makes_it_ambiguous_and_keeps_the_satisfied_ones() {
    shows!("CP-C2-05"; by "matching.candidate_unknown");
    let (mut world, receipt) = of_every_kind();
    assert_eq!((receipt.outcome, matched(&receipt)), (MatchOutcome::Ambiguous, vec!["o-yes"]));
    let plain = bind(&mut world, event("e-2", "probe", "catalogue", "changed", &[]));
    assert_eq!((plain.outcome, matched(&plain)), (MatchOutcome::Matched, vec!["o-yes"]));
    let none = bind(&mut world, event("e-3", "elsewhere", "catalogue", "changed", &[]));
    assert_eq!((none.outcome, matched(&none)), (MatchOutcome::Unmatched, vec![]));
}

#[test]
fn an_unmatched_event_stays_and_makes_no_duty() {
    shows!("CP-1.1-15", "CP-1.1-16"; by "matching.candidate_satisfied");
    let mut world = World::new();
    world.admit(watching("o-1", vec![watch("d-1", "catalogue", &["bank"], &[], &[])]), Vec::new());
    let before = world.view.state.items(ItemKind::Obligation).count();
    for n in 0..5 {
        let receipt = bind(&mut world, event(&format!("e-{n}"), "probe", "catalogue", "changed", &[]));
        assert_eq!(receipt.outcome, MatchOutcome::Unmatched);
        world.artifact(receipt);
    }
    assert_eq!(world.view.state.items(ItemKind::Obligation).count(), before);
    assert!(world.view.eligible.is_empty(), "no work is eligible");
    for n in 0..5 {
        let id = format!("e-{n}").as_str().into();
        assert_eq!(world.view.events.get(&id).expect("the event").body.event_id, id);
        assert_eq!(world.view.matches.get(&id).expect("its receipt").1.outcome, MatchOutcome::Unmatched);
    }
}

#[test]
fn without_a_rule_in_force_nothing_can_be_told() {
    let mut items = crate::fixture::items();
    items.retain(|item| item.id().as_str() != "matching");
    let mut world = World::of(items);
    world.admit(watching("o-1", vec![watch("d-1", "catalogue", &["shop"], &[], &[])]), Vec::new());
    let receipt = bind(&mut world, event("e-1", "probe", "catalogue", "changed", &[]));
    assert_eq!((receipt.outcome, matched(&receipt)), (MatchOutcome::Ambiguous, vec![]));
}

#[test]
fn an_expired_trigger_makes_nothing_eligible() {
    shows!("CP-7.3-17"; by "matching.trigger_expired");
    let mut world = World::new();
    let trigger = Reentry { expires_at: Some(minute(10)), ..fed("reentry-1", "o-1", 0) };
    world.admit(obligation("o-1", std::slice::from_ref(&trigger)), vec![trigger]);
    world.observe(observation("ev-1", "probe", "probes", 1));
    let event = event("e-1", "probe", "anything", "changed", &[]);
    let reference = event_ref(&world.payload("pl-e-1", event.clone()));
    let live = match_event(&event, reference.clone(), None, &world.view, &at(9));
    assert_eq!(matched(&live), ["o-1"]);
    assert_eq!(fired(&world.view, &at(9), &world.entries).len(), 1);
    let expired = match_event(&event, reference, None, &world.view, &at(10));
    assert_eq!((expired.outcome, matched(&expired)), (MatchOutcome::Unmatched, vec![]));
    assert!(fired(&world.view, &at(10), &world.entries).is_empty());
}

#[test]
fn only_a_satisfied_predicate_makes_work_eligible() {
    shows!("CP-1.1-11"; by "matching.trigger_satisfied");
    let mut world = World::new();
    let triggers = [fed("reentry-1", "o-1", 0), fed("reentry-2", "o-2", 1), fed("reentry-3", "o-3", 9)];
    for (trigger, id) in triggers.into_iter().zip(["o-1", "o-2", "o-3"]) {
        world.admit(obligation(id, std::slice::from_ref(&trigger)), vec![trigger]);
    }
    world.observe(observation("ev-1", "probe", "probes", 1));
    let newest = std::slice::from_ref(world.entries.last().expect("the evidence"));
    let fired = fired(&world.view, &at(5), newest);
    let obligations: Vec<&str> = fired.iter().map(|fired| fired.obligation_id.as_str()).collect();
    assert_eq!(obligations, ["o-1"], "o-2 is not satisfied, o-3 cannot be told");
}

#[test]
fn a_trigger_fires_once_until_an_input_moves() {
    shows!("CP-C11-20"; by "matching.trigger_not_activated");
    let mut world = World::new();
    let trigger = fed("reentry-1", "o-1", 0);
    world.admit(obligation("o-1", std::slice::from_ref(&trigger)), vec![trigger]);
    world.observe(observation("ev-1", "probe", "probes", 1));
    let first = fired(&world.view, &at(5), &world.entries);
    assert_eq!(first.len(), 1);
    world.take_up(first[0].clone());
    assert!(fired(&world.view, &at(6), &world.entries).is_empty(), "nothing has moved");
    world.observe(observation("ev-2", "probe", "probes", 2));
    assert_eq!(fired(&world.view, &at(7), &world.entries).len(), 1);
}

#[test]
fn a_trigger_that_was_taken_up_does_not_match_again_on_the_same_inputs() {
    shows!("CP-C11-20"; by "matching.trigger_activated_before");
    let mut world = World::new();
    let trigger = fed("reentry-1", "o-1", 0);
    world.admit(obligation("o-1", std::slice::from_ref(&trigger)), vec![trigger]);
    world.observe(observation("ev-1", "probe", "probes", 1));
    let before = bind(&mut world, event("e-1", "probe", "anything", "changed", &[]));
    assert_eq!(matched(&before), ["o-1"]);
    let first = fired(&world.view, &at(5), &world.entries);
    world.take_up(first[0].clone());
    let again = bind(&mut world, event("e-2", "probe", "anything", "changed", &[]));
    assert_eq!(again.outcome, MatchOutcome::Unmatched);
    assert_eq!(again.predicate_results[0].result, Evaluation::Satisfied, "the record says what it was");
}

#[test]
fn the_commit_that_installs_a_trigger_evaluates_it() {
    let mut world = World::new();
    let trigger = reentry("reentry-1", "o-1", at_minute(1));
    let commit = world.admit(obligation("o-1", std::slice::from_ref(&trigger)), vec![trigger]);
    let installed = [closer_protocol::Entry::Commit(commit)];
    assert_eq!(fired(&world.view, &at(0), &installed).len(), 0);
    assert_eq!(fired(&world.view, &at(1), &installed).len(), 1);
}

#[test]
fn triggers_that_wait_for_something_else_are_not_looked_at() {
    let mut world = World::new();
    let trigger = reentry("reentry-1", "o-1", at_minute(1));
    world.admit(obligation("o-1", std::slice::from_ref(&trigger)), vec![trigger]);
    world.observe(observation("ev-1", "probe", "probes", 1));
    let newest = std::slice::from_ref(world.entries.last().expect("the evidence"));
    assert!(fired(&world.view, &at(5), newest).is_empty(), "time is looked after by the timers");
}

#[test]
fn the_review_of_a_gap_becomes_eligible_when_its_condition_holds() {
    shows!("CP-C3-05"; by "matching.review_due");
    let mut world = World::new();
    let mut gapped = obligation("o-1", &[]);
    if let Some(gap) = &mut gapped.trigger_gap {
        let items = vec![TypedPredicate::EvidenceAdded(added(1)), at_minute(600)];
        gap.review_predicate = TypedPredicate::Any(Any { items });
    }
    world.admit(gapped, Vec::new());
    world.observe(observation("ev-1", "probe", "probes", 1));
    assert!(fired(&world.view, &at(5), &world.entries).is_empty());
    world.observe(observation("ev-2", "probe", "probes", 2));
    let review = fired(&world.view, &at(5), &world.entries);
    assert_eq!(review.len(), 1);
    assert_eq!(review[0].obligation_id.as_str(), "o-1");
    assert_eq!(review[0].cause.reentry_id, Some(gap_trigger(&"o-1".into())));
    assert!(review[0].cause.reason.as_str().contains("owner"), "it says whose review it is");
    world.take_up(review[0].clone());
    assert!(fired(&world.view, &at(6), &world.entries).is_empty(), "once");
}
