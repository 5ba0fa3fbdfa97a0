use super::fixtures::*;
use crate::propose;
use closer_contracts::item::{ItemKind, Standing};
use closer_contracts::obligation::{AssessmentStatus, Condition, Obligation, ObligationStatus, Origin, Watch};
use closer_contracts::reentry::{All, Any, EvidenceAdded, Reentry, TypedPredicate};
use closer_contracts::refs::Scope;
use closer_contracts::{RefusalCode, shows};
use std::collections::BTreeMap;

fn evidence(source: &str) -> TypedPredicate {
    TypedPredicate::EvidenceAdded(EvidenceAdded {
        scope_ref: Scope(vec!["space".into()]),
        permitted_source_refs: vec![source.into()],
        after_cursor: BTreeMap::new(),
    })
}

fn unsupported() -> TypedPredicate {
    serde_json::from_str(r#"{"operator":"MoonIsFull","phase":"full"}"#).unwrap()
}

fn with_trigger(predicate: TypedPredicate) -> Vec<closer_contracts::delta::Change> {
    let reentries = vec![reentry("reentry-of-o", "o", predicate)];
    vec![closer_contracts::delta::Change::AdmitObligation { obligation: Box::new(obligation("o")), reentries }]
}

#[test]
fn an_obligation_comes_from_a_declaration_or_an_accepted_requirement() {
    shows!("CP-C3-02", "CP-1.1-18"; by "state.origin_resolves");
    let state = founded();
    let event = Obligation { origin: Origin::Commit(artifact("event-1")), ..obligation("o") };
    assert_eq!(codes(&state, vec![admit(event)]), [RefusalCode::NoOrigin]);
    for origin in [Origin::Declaration(artifact("declaration-1")), Origin::Commit(artifact("profile-commit"))] {
        assert!(codes(&state, vec![admit(Obligation { origin, ..obligation("o") })]).is_empty());
    }
}

#[test]
fn an_open_obligation_keeps_a_trigger_or_a_gap() {
    shows!("CP-INV-07", "CP-C3-04"; by "state.can_be_reconsidered");
    let state = founded();
    let bare = Obligation { reentry_refs: Vec::new(), ..obligation("o") };
    let admitted = |obligation: Obligation| {
        vec![closer_contracts::delta::Change::AdmitObligation { obligation: Box::new(obligation), reentries: vec![] }]
    };
    assert_eq!(codes(&state, admitted(bare.clone())), [RefusalCode::NoTrigger]);
    let with_gap = Obligation { trigger_gap: Some(gap(time("2026-01-15T00:00:00Z"))), ..bare };
    assert!(codes(&state, admitted(with_gap)).is_empty());
    let state = after(&state, vec![admit(obligation("o"))]);
    assert_eq!(codes(&state, vec![set_triggers("o", Vec::new(), None)]), [RefusalCode::NoTrigger]);
}

#[test]
fn a_trigger_counts_only_while_it_can_fire() {
    shows!("CP-C3-04"; by "state.trigger_expired");
    let state = after(&founded(), vec![admit(obligation("o"))]);
    let expiring = |text: &str| {
        let base = reentry("r-2", "o", time("2026-02-01T00:00:00Z"));
        vec![set_triggers("o", vec![Reentry { expires_at: Some(at(text)), ..base }], None)]
    };
    assert_eq!(codes(&state, expiring("2026-01-01T00:00:00Z")), [RefusalCode::NoTrigger]);
    assert!(codes(&state, expiring("2026-01-01T00:00:01Z")).is_empty());
}

#[test]
fn every_leaf_of_a_counting_trigger_can_be_evaluated() {
    shows!("CP-C3-04"; by "state.trigger_evaluable");
    let state = founded();
    let both = |other| TypedPredicate::All(All { items: vec![time("2026-02-01T00:00:00Z"), other] });
    let dead = [evidence("nowhere"), unsupported(), both(unsupported()), both(evidence("nowhere"))];
    for predicate in dead {
        assert_eq!(codes(&state, with_trigger(predicate)), [RefusalCode::NoTrigger]);
    }
    for predicate in [evidence("source-1"), both(evidence("source-1"))] {
        assert!(codes(&state, with_trigger(predicate)).is_empty());
    }
    let state = after(&state, vec![revise(&state, source(Standing::Suspended))]);
    assert_eq!(codes(&state, with_trigger(evidence("source-1"))), [RefusalCode::NoTrigger]);
}

#[test]
fn the_review_of_a_gap_is_bounded_by_the_profile() {
    shows!("CP-C3-05"; by "state.gap_review_bounded");
    let state = after(&founded(), vec![admit(obligation("o"))]);
    let any = |items| TypedPredicate::Any(Any { items });
    let late = "2026-01-31T00:00:00.001Z";
    let unbounded = [
        evidence("source-1"),
        time(late),
        any(vec![evidence("source-1"), time(late)]),
        TypedPredicate::All(All { items: vec![evidence("source-1"), time("2026-01-15T00:00:00Z")] }),
    ];
    for review in unbounded {
        assert_eq!(codes(&state, vec![set_triggers("o", Vec::new(), Some(gap(review)))]), [RefusalCode::NoTrigger]);
    }
    for review in [time("2026-01-31T00:00:00Z"), any(vec![evidence("source-1"), time("2026-01-15T00:00:00Z")])] {
        assert!(codes(&state, vec![set_triggers("o", Vec::new(), Some(gap(review)))]).is_empty());
    }
}

#[test]
fn a_gap_names_a_registered_owner() {
    let state = after(&founded(), vec![admit(obligation("o"))]);
    let mut nobody = gap(time("2026-01-15T00:00:00Z"));
    nobody.responsible_owner = "nobody".into();
    assert_eq!(codes(&state, vec![set_triggers("o", Vec::new(), Some(nobody))]), [RefusalCode::UnresolvedRef]);
}

#[test]
fn a_trigger_belongs_to_one_obligation_and_never_changes() {
    let state = after(&founded(), vec![admit(obligation("o")), admit(obligation("p"))]);
    let later = reentry("reentry-of-o", "o", time("2026-03-01T00:00:00Z"));
    assert_eq!(codes(&state, vec![set_triggers("o", vec![later], None)]), [RefusalCode::KeyConflict]);
    let foreign = reentry("r-2", "p", time("2026-03-01T00:00:00Z"));
    assert_eq!(codes(&state, vec![set_triggers("o", vec![foreign], None)]), [RefusalCode::SchemaInvalid]);
    let fresh = reentry("r-3", "o", time("2026-03-01T00:00:00Z"));
    let next = after(&state, vec![set_triggers("o", vec![fresh.clone()], None)]);
    assert_eq!(next.reentries_of(&"o".into()).collect::<Vec<_>>(), [&fresh]);
    assert_eq!(next.reentry(&"reentry-of-o".into()), None);
}

#[test]
fn an_obligation_cites_only_what_exists() {
    let state = founded();
    let broken = [
        Obligation { responsible_owner: "nobody".into(), ..obligation("o") },
        Obligation { closure_authority: "nobody".into(), ..obligation("o") },
        Obligation { authority_boundary: vec!["nowhere".into()], ..obligation("o") },
        watching("o", "nowhere"),
        Obligation {
            resolution_conditions: vec![Condition {
                evidence_rule_ref: closer_contracts::refs::VersionedRef { id: "rule-1".into(), version: 9 },
                ..condition("c")
            }],
            ..obligation("o")
        },
    ];
    for obligation in broken {
        assert_eq!(codes(&state, vec![admit(obligation)]), [RefusalCode::UnresolvedRef]);
    }
}

#[test]
fn an_assessment_changes_no_demand() {
    shows!("CP-C3-01"; by "state.condition_is_kept");
    let state = after(&founded(), vec![admit(obligation("o"))]);
    let set =
        |conditions| vec![closer_contracts::delta::Change::SetConditions { obligation_id: "o".into(), conditions }];
    let easier = Condition { proposition: "an-easier-one".into(), ..condition("condition-of-o") };
    assert_eq!(codes(&state, set(vec![easier])), [RefusalCode::KeyConflict]);
    let more = vec![condition("condition-of-o"), condition("c")];
    assert_eq!(codes(&state, set(more)), [RefusalCode::Cardinality]);
    let next = after(&state, vec![assessed("o", AssessmentStatus::NotMet)]);
    let found = next.obligation(&"o".into()).unwrap().resolution_conditions[0].assessment_status;
    assert_eq!(found, AssessmentStatus::NotMet);
}

#[test]
fn open_obligations_move_freely_and_resume_as_what_they_were() {
    shows!("CP-5-09", "CP-3.2-04"; by "state.reopens_active");
    let mut state = after(&founded(), vec![admit(obligation("o"))]);
    for status in [
        ObligationStatus::AwaitingEvent,
        ObligationStatus::AwaitingUserJudgment,
        ObligationStatus::Active,
        ObligationStatus::AwaitingEvent,
        ObligationStatus::Active,
    ] {
        state = after(&state, vec![set_status("o", status)]);
        assert_eq!(state.obligation(&"o".into()).unwrap().status, status);
        assert_eq!(state.open_obligations().count(), 1);
    }
}

#[test]
fn obligations_are_found_by_what_they_watch() {
    let entity = Watch::Entity {
        entity_ref: "thing".into(),
        scope: Scope(Vec::new()),
        change_kinds: Vec::new(),
        evidence_ids: Vec::new(),
    };
    let mut on_entity = watching("p", "g-0");
    on_entity.dependencies[0].watch = entity;
    let state = after(&founded(), vec![admit(watching("o", "g-0")), admit(on_entity)]);
    let ids = |found: Vec<&Obligation>| found.iter().map(|found| found.obligation_id.to_string()).collect::<Vec<_>>();
    assert_eq!(ids(state.obligations_watching_item(&"g-0".into()).collect()), ["o"]);
    assert_eq!(ids(state.obligations_watching_entity(&"thing".into()).collect()), ["p"]);
    assert_eq!(ids(state.open_obligations().collect()), ["o", "p"]);
    assert_eq!(state.grants_allowing(&"operation-1".into()).count(), 1);
    assert_eq!(state.constraints_in_force().count(), 1);
    let state = after(&state, vec![retract(ItemKind::Constraint, "c-0"), add(constraint("c-1"))]);
    let in_force: Vec<_> = state.constraints_in_force().map(|found| found.constraint_id.to_string()).collect();
    assert_eq!(in_force, ["c-1"]);
}

#[test]
fn an_obligation_is_admitted_open_whatever_the_protocol_verified() {
    shows!("CP-C3-03"; by "state.admitted_open");
    let settled = Obligation { status: ObligationStatus::Withdrawn, ..obligation("o") };
    let state = founded();
    let proposed = delta(&state, "delta-1", vec![admit(settled)]);
    let derivation = verified(&["o"]);
    assert_eq!(codes_of(propose(&state, proposed, &derivation)), [RefusalCode::NotClosable]);
    assert!(codes(&state, vec![admit(obligation("o"))]).is_empty());
}

#[test]
fn triggers_and_gaps_are_found_by_what_they_wait_for_and_by_their_moments() {
    let state = after(
        &founded(),
        with_trigger(TypedPredicate::Any(Any { items: vec![evidence("source-1"), time("2026-02-01T00:00:00Z")] })),
    );
    let waiting = Obligation {
        reentry_refs: Vec::new(),
        trigger_gap: Some(gap(time("2026-01-10T00:00:00Z"))),
        ..obligation("p")
    };
    let admitted =
        closer_contracts::delta::Change::AdmitObligation { obligation: Box::new(waiting), reentries: vec![] };
    let state = after(&state, vec![admitted]);
    let source = crate::Awaited::Source("source-1".into());
    assert_eq!(
        state.triggers_awaiting(&source).map(|found| found.reentry_id.as_str()).collect::<Vec<_>>(),
        ["reentry-of-o"]
    );
    assert_eq!(state.gaps_awaiting(&source).count(), 0);
    assert_eq!(state.triggers_awaiting(&crate::Awaited::Source("source-2".into())).count(), 0);
    let due = |text: &str| (state.triggers_due(&at(text)).count(), state.gaps_due(&at(text)).count());
    assert_eq!(due("2026-01-09T23:59:59Z"), (0, 0));
    assert_eq!(due("2026-01-10T00:00:00Z"), (0, 1));
    assert_eq!(due("2026-02-01T00:00:00Z"), (1, 1));
    assert_eq!(state.next_moment(&now()), Some(&at("2026-01-10T00:00:00Z")));
    assert_eq!(state.next_moment(&at("2026-02-01T00:00:00Z")), None);
    let state = after(&state, vec![set_triggers("o", Vec::new(), Some(gap(time("2026-01-15T00:00:00Z"))))]);
    assert_eq!(state.triggers_awaiting(&source).count(), 0);
}
