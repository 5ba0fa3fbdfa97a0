//! Typed predicates evaluate what is on record, in three values, and say `unknown` where it cannot be told.

use crate::fixture::{
    World, acceptance, added, at, at_minute, doubtful, minute, obligation, observation, operation, reentry, scope,
    source,
};
use closer_contracts::audit::DecisionType;
use closer_contracts::briefcase::Briefcase;
use closer_contracts::delta::Change;
use closer_contracts::example::{Example, Extent};
use closer_contracts::item::{Item, Standing};
use closer_contracts::reentry::Evaluation::{NotSatisfied, Satisfied, Unknown};
use closer_contracts::reentry::{
    All, Any, CapabilityVerified, DependencyVersionChanged, Evaluation, EvidenceAdded, HandoffAccepted, TypedPredicate,
    UserDecisionReceived,
};
use closer_contracts::{Digest, RefusalCode, shows};
use closer_protocol::predicate::{
    Subject, activation_key, all_of, any_of, evaluate, inputs, installable, is_bounded, record,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn evidence_added(leaf: EvidenceAdded) -> TypedPredicate {
    TypedPredicate::EvidenceAdded(leaf)
}

/// A newer version's operator.
fn unsupported() -> TypedPredicate {
    serde_json::from_str(r#"{"operator":"MoonPhase","phase":"full"}"#).expect("a well-formed predicate")
}

const VALUES: [Evaluation; 3] = [Satisfied, NotSatisfied, Unknown];

/// A leaf of this value, whatever the view.
fn leaf(value: Evaluation) -> TypedPredicate {
    match value {
        Satisfied => at_minute(0),
        NotSatisfied => at_minute(1_000),
        Unknown => unsupported(),
    }
}

#[test]
fn all_follows_its_truth_table() {
    shows!("CP-C11-13"; by "predicate.all_has_unsatisfied", "predicate.all_has_unknown");
    let world = World::new();
    for a in VALUES {
        for b in VALUES {
            let expected = match (a, b) {
                (NotSatisfied, _) | (_, NotSatisfied) => NotSatisfied,
                (Unknown, _) | (_, Unknown) => Unknown,
                (Satisfied, Satisfied) => Satisfied,
            };
            let both = TypedPredicate::All(All { items: vec![leaf(a), leaf(b)] });
            assert_eq!(evaluate(&both, &world.view, &at(5)), expected, "All({a}, {b})");
            for c in VALUES {
                let three = [a, b, c];
                let expected = match () {
                    () if three.contains(&NotSatisfied) => NotSatisfied,
                    () if three.contains(&Unknown) => Unknown,
                    () => Satisfied,
                };
                assert_eq!(all_of(three), expected, "All{three:?}");
            }
        }
    }
}

#[test]
fn any_follows_its_truth_table() {
    shows!("CP-C11-14"; by "predicate.any_has_satisfied", "predicate.any_has_unknown");
    let world = World::new();
    for a in VALUES {
        for b in VALUES {
            let expected = match (a, b) {
                (Satisfied, _) | (_, Satisfied) => Satisfied,
                (Unknown, _) | (_, Unknown) => Unknown,
                (NotSatisfied, NotSatisfied) => NotSatisfied,
            };
            let either = TypedPredicate::Any(Any { items: vec![leaf(a), leaf(b)] });
            assert_eq!(evaluate(&either, &world.view, &at(5)), expected, "Any({a}, {b})");
            for c in VALUES {
                let three = [a, b, c];
                let expected = match () {
                    () if three.contains(&Satisfied) => Satisfied,
                    () if three.contains(&Unknown) => Unknown,
                    () => NotSatisfied,
                };
                assert_eq!(any_of(three), expected, "Any{three:?}");
            }
        }
    }
}

#[test]
fn an_unknown_child_counts_only_where_the_others_do_not_settle_it() {
    shows!("CP-C11-15"; by "predicate.all_has_unsatisfied", "predicate.any_has_satisfied");
    let world = World::new();
    let all =
        |items: &[Evaluation]| TypedPredicate::All(All { items: items.iter().map(|value| leaf(*value)).collect() });
    let any =
        |items: &[Evaluation]| TypedPredicate::Any(Any { items: items.iter().map(|value| leaf(*value)).collect() });
    let told = |predicate: &TypedPredicate| evaluate(predicate, &world.view, &at(5));
    assert_eq!(told(&all(&[NotSatisfied, Unknown])), NotSatisfied);
    assert_eq!(told(&any(&[Satisfied, Unknown])), Satisfied);
    let nested = TypedPredicate::All(All { items: vec![any(&[Satisfied, Unknown]), any(&[NotSatisfied, Unknown])] });
    assert_eq!(told(&nested), Unknown);
    let settled = TypedPredicate::Any(Any { items: vec![all(&[NotSatisfied, Unknown]), any(&[Unknown, Satisfied])] });
    assert_eq!(told(&settled), Satisfied);
}

fn values() -> impl Strategy<Value = Evaluation> {
    prop::sample::select(VALUES.to_vec())
}

/// What a knower of every unknown could still find: the set of values a predicate can take.
fn completions(values: &[Evaluation], combine: impl Fn(&[bool]) -> bool) -> Evaluation {
    let unknown = values.iter().filter(|value| **value == Unknown).count();
    let mut seen = [false, false];
    for mask in 0u32..(1 << unknown) {
        let mut next = 0;
        let bools: Vec<bool> = values
            .iter()
            .map(|value| match value {
                Satisfied => true,
                NotSatisfied => false,
                Unknown => {
                    next += 1;
                    mask & (1 << (next - 1)) != 0
                }
            })
            .collect();
        seen[usize::from(combine(&bools))] = true;
    }
    match seen {
        [true, false] => NotSatisfied,
        [false, true] => Satisfied,
        _ => Unknown,
    }
}

proptest! {
    /// Kleene's logic is exactly what stays true however the unknowns turn out.
    #[test]
    fn evaluation_is_what_every_completion_agrees_on(children in prop::collection::vec(values(), 1..7)) {
        prop_assert_eq!(all_of(children.clone()), completions(&children, |bools| bools.iter().all(|b| *b)));
        prop_assert_eq!(any_of(children.clone()), completions(&children, |bools| bools.iter().any(|b| *b)));
    }

    /// The order of children changes nothing.
    #[test]
    fn the_order_of_children_is_irrelevant(mut children in prop::collection::vec(values(), 1..7)) {
        let (all, any) = (all_of(children.clone()), any_of(children.clone()));
        children.reverse();
        prop_assert_eq!(all_of(children.clone()), all);
        prop_assert_eq!(any_of(children), any);
    }
}

#[test]
fn evidence_counts_from_a_permitted_source_only() {
    shows!("CP-C11-03"; by "predicate.source_permitted");
    let mut world = World::new();
    world.observe(observation("ev-1", "second", "probes", 1));
    assert_eq!(evaluate(&evidence_added(added(0)), &world.view, &at(5)), NotSatisfied);
    world.observe(observation("ev-2", "probe", "probes", 2));
    assert_eq!(evaluate(&evidence_added(added(0)), &world.view, &at(5)), Satisfied);
}

#[test]
fn evidence_counts_within_the_scope_only() {
    shows!("CP-C11-03"; by "predicate.evidence_in_scope");
    let mut world = World::new();
    world.observe(observation("ev-1", "elsewhere", "probes", 1));
    let permitted = vec!["probe".into(), "elsewhere".into()];
    let leaf = EvidenceAdded { permitted_source_refs: permitted, ..added(0) };
    assert_eq!(evaluate(&evidence_added(leaf.clone()), &world.view, &at(5)), NotSatisfied);
    let wider = EvidenceAdded { scope_ref: scope(&["bank"]), ..leaf };
    assert_eq!(evaluate(&evidence_added(wider), &world.view, &at(5)), Satisfied);
}

#[test]
fn evidence_counts_after_the_cursor_only() {
    shows!("CP-C11-03"; by "predicate.at_or_before_cursor");
    let mut world = World::new();
    world.observe(observation("ev-1", "probe", "probes", 1));
    assert_eq!(evaluate(&evidence_added(added(0)), &world.view, &at(5)), Satisfied);
    assert_eq!(evaluate(&evidence_added(added(1)), &world.view, &at(5)), NotSatisfied, "at the cursor exactly");
}

#[test]
fn a_stream_with_a_gap_cannot_be_told() {
    shows!("CP-C11-11"; by "predicate.stream_contiguous");
    let mut world = World::new();
    assert_eq!(evaluate(&evidence_added(added(0)), &world.view, &at(5)), Unknown, "the stream is missing");
    world.observe(observation("ev-1", "second", "probes", 1));
    assert_eq!(evaluate(&evidence_added(added(0)), &world.view, &at(5)), NotSatisfied);
    world.observe(observation("ev-3", "second", "probes", 3));
    assert_eq!(evaluate(&evidence_added(added(0)), &world.view, &at(5)), Unknown, "number 2 is missing");
    assert_eq!(evaluate(&evidence_added(added(2)), &world.view, &at(5)), NotSatisfied, "nothing is missing after 2");
    assert_eq!(evaluate(&evidence_added(added(9)), &world.view, &at(5)), Unknown, "the stream has been reset");
}

#[test]
fn an_unknown_source_gives_unknown_and_no_permission() {
    shows!("CP-C11-10"; by "predicate.source_unknown");
    let mut world = World::new();
    world.observe(observation("ev-1", "second", "probes", 1));
    let leaf = EvidenceAdded { permitted_source_refs: vec!["probe".into(), "stranger".into()], ..added(0) };
    assert_eq!(evaluate(&evidence_added(leaf.clone()), &world.view, &at(5)), Unknown);
    let mut suspended = source("probe", &["shop", "export"]);
    if let Item::Source(source) = &mut suspended {
        source.standing = Standing::Suspended;
    }
    world.revise(suspended);
    world.observe(observation("ev-2", "probe", "probes", 2));
    assert_eq!(evaluate(&evidence_added(added(0)), &world.view, &at(5)), Unknown, "the source is suspended");
}

#[test]
fn a_predicate_that_names_no_stream_cannot_be_told() {
    shows!("CP-C11-11"; by "predicate.no_stream_named");
    let world = World::new();
    let leaf = EvidenceAdded { after_cursor: BTreeMap::new(), ..added(0) };
    assert_eq!(evaluate(&evidence_added(leaf), &world.view, &at(5)), Unknown);
}

#[test]
fn a_dependency_has_changed_when_its_accepted_version_differs() {
    shows!("CP-C11-04"; by "predicate.dependency_differs");
    let mut world = World::new();
    let compared =
        world.view.state.item(closer_contracts::item::ItemKind::Source, &"probe".into()).expect("a source").digest;
    let changed = TypedPredicate::DependencyVersionChanged(DependencyVersionChanged {
        dependency_ref: "probe".into(),
        compared_version: compared,
    });
    assert_eq!(evaluate(&changed, &world.view, &at(5)), NotSatisfied);
    world.revise(source("probe", &["shop"]));
    assert_eq!(evaluate(&changed, &world.view, &at(5)), Satisfied);
    let stranger = TypedPredicate::DependencyVersionChanged(DependencyVersionChanged {
        dependency_ref: "stranger".into(),
        compared_version: compared,
    });
    assert_eq!(evaluate(&stranger, &world.view, &at(5)), Unknown);
}

#[test]
fn a_removed_dependency_has_changed() {
    shows!("CP-C11-04"; by "predicate.dependency_removed");
    let mut world = World::new();
    let dependency = closer_contracts::item::Dependency {
        dependency_id: "dependency-1".into(),
        premise: "probe".into(),
        dependent: "second".into(),
    };
    world.commit(vec![Change::AddDependency { dependency: dependency.clone() }]);
    let changed = TypedPredicate::DependencyVersionChanged(DependencyVersionChanged {
        dependency_ref: "dependency-1".into(),
        compared_version: Item::Dependency(dependency).digest().expect("a digest"),
    });
    assert_eq!(evaluate(&changed, &world.view, &at(5)), NotSatisfied);
    world.commit(vec![Change::RemoveDependency { dependency_id: "dependency-1".into() }]);
    assert_eq!(evaluate(&changed, &world.view, &at(5)), Satisfied);
}

fn asked(world: &mut World, payload_id: &str, question: &str) -> closer_contracts::refs::ArtifactRef {
    let packet = Briefcase {
        decision_id: "decision-1".into(),
        obligation_ids: vec!["o-1".into()],
        question: question.into(),
        ..Briefcase::example(Extent::Minimal)
    };
    world.packet(payload_id, packet)
}

fn awaits(class: DecisionType) -> TypedPredicate {
    TypedPredicate::UserDecisionReceived(UserDecisionReceived {
        decision_ref: "decision-1".into(),
        required_decision_class: class,
    })
}

#[test]
fn only_a_decision_of_the_required_class_counts() {
    shows!("CP-C11-05"; by "predicate.decision_class_fits");
    let mut world = World::new();
    let packet = asked(&mut world, "pl-packet", "may it be done?");
    assert_eq!(evaluate(&awaits(DecisionType::ScopedAuthorization), &world.view, &at(5)), NotSatisfied);
    world.decide("answer-1", &packet, DecisionType::Preference, "user-1");
    assert_eq!(evaluate(&awaits(DecisionType::ScopedAuthorization), &world.view, &at(5)), NotSatisfied);
    world.decide("answer-2", &packet, DecisionType::ScopedAuthorization, "user-1");
    assert_eq!(evaluate(&awaits(DecisionType::ScopedAuthorization), &world.view, &at(5)), Satisfied);
}

#[test]
fn a_bare_acknowledgment_never_counts() {
    shows!("CP-C11-05"; by "predicate.decision_answers");
    let mut world = World::new();
    let packet = asked(&mut world, "pl-packet", "may it be done?");
    world.decide("answer-1", &packet, DecisionType::Acknowledgment, "user-1");
    assert_eq!(evaluate(&awaits(DecisionType::Acknowledgment), &world.view, &at(5)), NotSatisfied);
}

#[test]
fn an_issuer_who_is_not_a_registered_user_leaves_it_unknown() {
    shows!("CP-C11-05"; by "predicate.issuer_unknown");
    let mut world = World::new();
    let packet = asked(&mut world, "pl-packet", "may it be done?");
    world.decide("answer-1", &packet, DecisionType::ScopedAuthorization, "stranger");
    assert_eq!(evaluate(&awaits(DecisionType::ScopedAuthorization), &world.view, &at(5)), Unknown);
}

#[test]
fn a_decision_counts_on_the_packet_version_that_was_current() {
    shows!("CP-C11-05"; by "predicate.packet_was_current");
    let mut world = World::new();
    let first = asked(&mut world, "pl-packet-1", "may it be done?");
    world.decide("answer-1", &first, DecisionType::Preference, "user-1");
    let second = asked(&mut world, "pl-packet-2", "may it still be done?");
    assert_ne!(first.digest, second.digest);
    assert_eq!(evaluate(&awaits(DecisionType::Preference), &world.view, &at(5)), Satisfied, "it was current then");
    world.decide("answer-2", &first, DecisionType::Rejection, "user-1");
    assert_eq!(evaluate(&awaits(DecisionType::Rejection), &world.view, &at(5)), NotSatisfied, "it is not current now");
    world.decide("answer-3", &second, DecisionType::Rejection, "user-1");
    assert_eq!(evaluate(&awaits(DecisionType::Rejection), &world.view, &at(5)), Satisfied);
}

#[test]
fn a_packet_that_is_not_on_record_leaves_it_unknown() {
    shows!("CP-C11-11"; by "predicate.packet_missing");
    let world = World::new();
    assert_eq!(evaluate(&awaits(DecisionType::Preference), &world.view, &at(5)), Unknown);
}

fn capable(version: u32) -> TypedPredicate {
    TypedPredicate::CapabilityVerified(CapabilityVerified {
        capability_ref: "export".into(),
        contract_version: version,
    })
}

fn with_operation(version: u32, until: i64) -> World {
    let mut items = crate::fixture::items();
    let method = closer_contracts::item::ReadbackMethod {
        method: "look".into(),
        version: 1,
        source: "probe".into(),
        ..closer_contracts::item::ReadbackMethod::example(Extent::Minimal)
    };
    let mut entry = operation("copy", "export", version, until);
    entry.readback_method = closer_contracts::refs::VersionedRef { id: "look".into(), version: 1 };
    entry.target_type = method.target_type.clone();
    items.extend([Item::ReadbackMethod(method), Item::Operation(entry)]);
    World::of(items)
}

#[test]
fn a_capability_is_verified_at_exactly_its_version() {
    shows!("CP-C11-06"; by "predicate.capability_version_fits");
    let world = with_operation(3, 60);
    assert_eq!(evaluate(&capable(3), &world.view, &at(5)), Satisfied);
    assert_eq!(evaluate(&capable(2), &world.view, &at(5)), NotSatisfied);
    assert_eq!(evaluate(&capable(4), &world.view, &at(5)), NotSatisfied);
}

#[test]
fn an_expired_verification_does_not_count() {
    shows!("CP-C11-06"; by "predicate.verification_unexpired");
    let world = with_operation(3, 60);
    assert_eq!(evaluate(&capable(3), &world.view, &at(59)), Satisfied);
    assert_eq!(evaluate(&capable(3), &world.view, &at(60)), NotSatisfied);
    assert_eq!(evaluate(&capable(3), &world.view, &doubtful(5)), Unknown);
}

#[test]
fn an_unregistered_capability_cannot_be_told() {
    shows!("CP-C11-11"; by "predicate.capability_unregistered");
    assert_eq!(evaluate(&capable(3), &World::new().view, &at(5)), Unknown);
}

#[test]
fn a_handoff_is_accepted_by_the_ownership_receipt_that_agrees_in_all_four() {
    shows!("CP-C11-07"; by "predicate.acceptance_agrees");
    let mut world = World::new();
    world.artifact(acceptance("handoff-1", "owner", b"contract", 4));
    let leaf = |handoff: &str, recipient: &str, contract: &[u8], epoch| {
        TypedPredicate::HandoffAccepted(HandoffAccepted {
            handoff_ref: handoff.into(),
            recipient_ref: recipient.into(),
            contract_digest: Digest::of(contract),
            ownership_epoch: epoch,
        })
    };
    let told = |predicate: &TypedPredicate| evaluate(predicate, &world.view, &at(5));
    assert_eq!(told(&leaf("handoff-1", "owner", b"contract", 4)), Satisfied);
    assert_eq!(told(&leaf("handoff-1", "watcher", b"contract", 4)), NotSatisfied);
    assert_eq!(told(&leaf("handoff-1", "owner", b"another", 4)), NotSatisfied);
    assert_eq!(told(&leaf("handoff-1", "owner", b"contract", 5)), NotSatisfied);
    assert_eq!(told(&leaf("handoff-2", "owner", b"contract", 4)), Unknown, "there is no receipt");
}

#[test]
fn what_a_model_says_of_an_acceptance_is_not_one() {
    shows!("CP-C11-08"; by "predicate.acceptance_agrees");
    let mut world = World::new();
    let mut result = closer_contracts::work::WorkResult::example(Extent::Minimal);
    result.unresolved = vec![closer_contracts::work::Unresolved {
        subject: "handoff-1".into(),
        need: closer_contracts::work::Need::Prerequisite,
        text: "the handoff was accepted".into(),
    }];
    world.payload("pl-result", result);
    let predicate = TypedPredicate::HandoffAccepted(HandoffAccepted {
        handoff_ref: "handoff-1".into(),
        recipient_ref: "owner".into(),
        contract_digest: Digest::of(b"contract"),
        ownership_epoch: 1,
    });
    assert_eq!(evaluate(&predicate, &world.view, &at(5)), Unknown);
    world.artifact(acceptance("handoff-1", "owner", b"contract", 1));
    assert_eq!(evaluate(&predicate, &world.view, &at(5)), Satisfied);
}

#[test]
fn time_is_reached_from_the_instant_on() {
    shows!("CP-C11-09"; by "predicate.time_reached");
    let world = World::new();
    assert_eq!(evaluate(&at_minute(5), &world.view, &at(4)), NotSatisfied);
    assert_eq!(evaluate(&at_minute(5), &world.view, &at(5)), Satisfied);
    assert_eq!(evaluate(&at_minute(5), &world.view, &at(6)), Satisfied);
}

#[test]
fn a_clock_in_doubt_reaches_nothing() {
    shows!("CP-C11-11"; by "predicate.clock_reliable");
    let world = World::new();
    assert_eq!(evaluate(&at_minute(5), &world.view, &doubtful(6)), Unknown);
    assert_eq!(evaluate(&at_minute(5), &world.view, &doubtful(4)), Unknown);
    assert_eq!(evaluate(&at_minute(5), &world.view, &at(6)), Satisfied);
}

#[test]
fn an_operator_of_a_newer_version_is_kept_and_unknown() {
    let world = World::new();
    let kept = unsupported();
    assert_eq!(evaluate(&kept, &world.view, &at(5)), Unknown);
    assert_eq!(serde_json::to_string(&kept).expect("text"), r#"{"operator":"MoonPhase","phase":"full"}"#);
}

/// Kept where it arrives, and not installed by anybody here.
#[test]
fn an_operator_of_a_newer_version_is_not_installed() {
    let nested =
        |inner| TypedPredicate::Any(Any { items: vec![at_minute(0), TypedPredicate::All(All { items: inner })] });
    for (predicate, path) in
        [(unsupported(), "operator"), (nested(vec![at_minute(1), unsupported()]), "items.1.items.1.operator")]
    {
        let fault = installable(&predicate).expect_err("an operator of another version");
        assert_eq!((fault.code, fault.path.as_str()), (RefusalCode::UnknownVersion, path));
    }
    assert_eq!(installable(&nested(vec![at_minute(1), evidence_added(added(3))])), Ok(()));
}

#[test]
fn an_evaluation_records_what_it_read_and_every_child() {
    let mut world = World::new();
    let cited = world.observe(observation("ev-1", "probe", "probes", 7));
    world.artifact(acceptance("handoff-1", "owner", b"contract", 4));
    let accepted = TypedPredicate::HandoffAccepted(HandoffAccepted {
        handoff_ref: "handoff-1".into(),
        recipient_ref: "owner".into(),
        contract_digest: Digest::of(b"contract"),
        ownership_epoch: 4,
    });
    let children = vec![at_minute(0), evidence_added(added(3)), accepted];
    let predicate = TypedPredicate::Any(Any { items: children.clone() });
    let shop = scope(&["shop"]);
    let subject = Subject { id: "reentry-1".into(), scope: &shop, source_binding: Some(cited.clone()) };
    let records = record(&subject, &predicate, &world.view, &at(5));
    let versions: Vec<Digest> = records.iter().map(|record| record.predicate_version.digest).collect();
    let expected: Vec<Digest> =
        std::iter::once(&predicate).chain(&children).map(|predicate| predicate.version().expect("a digest")).collect();
    assert_eq!(versions, expected, "the whole first, then its children, though the first settles it");
    let whole = &records[0];
    assert_eq!(whole.result, Satisfied);
    assert_eq!(whole.governing_state, world.view.state.reference());
    assert_eq!(whole.event_cursor, BTreeMap::from([("probes".into(), 7)]));
    let receipts: Vec<&str> = whole.input_receipt_refs.iter().map(|reference| reference.id.as_str()).collect();
    assert_eq!(receipts, ["accepted-1"]);
    assert_eq!(whole.source_binding, Some(cited));
    assert_eq!(whole.scope, shop);
}

#[test]
fn an_activation_key_moves_with_the_inputs_and_with_nothing_else() {
    let mut world = World::new();
    let trigger = reentry("reentry-1", "o-1", evidence_added(added(0)));
    world.observe(observation("ev-1", "probe", "probes", 1));
    let before = activation_key(&trigger, &world.view);
    world.observe(observation("ev-other", "probe", "other-stream", 1));
    world.admit(obligation("o-9", &[]), Vec::new());
    world.now = minute(600);
    assert_eq!(activation_key(&trigger, &world.view), before, "nothing it reads has moved");
    let renamed = closer_contracts::reentry::Reentry { deduplication_key: "another".into(), ..trigger.clone() };
    assert_ne!(activation_key(&renamed, &world.view), before);
    world.observe(observation("ev-2", "probe", "probes", 2));
    assert_ne!(activation_key(&trigger, &world.view), before, "its stream has moved");
    assert_eq!(inputs(&trigger.predicate, &world.view).cursor, BTreeMap::from([("probes".into(), 2)]));
}

#[test]
fn a_review_is_bounded_by_a_time_that_comes_whatever_else_happens() {
    const HOUR_MS: u64 = 3_600_000;
    let bounded = |predicate: &TypedPredicate| is_bounded(predicate, &minute(0), HOUR_MS);
    assert!(bounded(&at_minute(60)));
    assert!(!bounded(&at_minute(61)));
    assert!(!bounded(&evidence_added(added(0))));
    assert!(bounded(&TypedPredicate::Any(Any { items: vec![evidence_added(added(0)), at_minute(60)] })));
    assert!(!bounded(&TypedPredicate::All(All { items: vec![evidence_added(added(0)), at_minute(60)] })));
}
