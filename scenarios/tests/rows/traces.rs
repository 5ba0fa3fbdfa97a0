//! Traces over whole runs: each complete one holds, and none holds without any one record that it cites.

use crate::support::{begun, dispatch, narrow, recorded, refused, until_dispatch};
use closer_contracts::RefusalCode as Code;
use closer_contracts::adjudication::Disposition;
use closer_contracts::audit::{DecisionType, ReconciliationDisposition, ReconciliationReceipt, RestrictiveAction};
use closer_contracts::auth::SigningScope;
use closer_contracts::delta::{AdmissionPath, Change};
use closer_contracts::refs::{ActorRef, ProducerRole};
use closer_contracts::shows;
use closer_contracts::work::{Relation, WorkResult};
use closer_protocol::Entry;
use closer_protocol::trace::{Chain, Gap, Stage, Trace, check_judgment, check_ordinary, check_urgent};
use closer_scenarios::founding::plan_target;
use closer_scenarios::{Mode, Space, worker};

/// Checks a run's trace whole and without each of its records in turn; gives how many of them it cannot do without.
#[track_caller]
fn held_by(space: &Space, check: impl Fn(&Chain) -> Result<Trace, Gap>) -> (Trace, usize) {
    let entries: Vec<Entry> = space.entries().unwrap().into_iter().map(|(_, entry)| entry).collect();
    let trace = check(&Chain::of(&entries)).unwrap_or_else(|gap| panic!("{gap}"));
    let mut needed = 0;
    for index in 0..entries.len() {
        let rest = entries.iter().enumerate().filter(|(i, _)| *i != index).map(|(_, entry)| entry);
        if let Err(gap) = check(&Chain::of(rest)) {
            assert!(!gap.citation.is_empty(), "the gap is named: {gap}");
            needed += 1;
        }
    }
    (trace, needed)
}

/// The version that closed `o-1`.
pub(crate) fn closing(space: &Space) -> u64 {
    let closes = |change: &Change| matches!(change, Change::SetStatus { obligation_id, status, .. } if *obligation_id == "o-1".into() && !status.is_open());
    let found = space.view().commits.iter().find(|(_, committed)| committed.commit.delta.changes.iter().any(closes));
    *found.expect("it is closed").0
}

pub(crate) fn stages(trace: &Trace) -> Vec<Stage> {
    let mut stages: Vec<Stage> = Vec::new();
    for step in &trace.steps {
        if !stages.contains(&step.stage) {
            stages.push(step.stage);
        }
    }
    stages
}

pub(crate) const ORDINARY: [Stage; 13] = [
    Stage::Event,
    Stage::Match,
    Stage::Activation,
    Stage::Work,
    Stage::Result,
    Stage::Action,
    Stage::PreAction,
    Stage::Dispatch,
    Stage::Readback,
    Stage::PostOutcome,
    Stage::Delta,
    Stage::Endorsement,
    Stage::Receipt,
];

#[test]
fn a_run_with_an_effect_leaves_an_ordinary_trace_and_every_record_of_it_counts() {
    shows!("CP-C15-01"; by "trace.cited_stands_before");
    for mode in [Mode::Normal, Mode::AppliedUnanswered] {
        let mut space = Space::found(&closer_scenarios::Deployment::default(), worker::proposes("basic")).unwrap();
        space.world.effect_mode = mode;
        recorded(&space.event("service-a", "price").unwrap());
        space.run().unwrap();
        let version = closing(&space);
        let (trace, needed) = held_by(&space, |chain| check_ordinary(chain, version));
        assert_eq!(stages(&trace), ORDINARY);
        // The commit stands beside its receipt and is walked through without a step of its own.
        assert_eq!(needed, trace.steps.len() + 1, "{mode:?}");
    }
}

#[test]
fn research_alone_leaves_a_trace_without_the_action_block() {
    shows!("CP-C15-01"; by "trace.delta_unfounded");
    let supports: closer_scenarios::space::Answer = Box::new(|work, view| {
        let assessments =
            view.evidence.keys().map(|id| worker::relation(view, "p-o-1", id, Relation::Supports)).collect();
        WorkResult { assessments, ..worker::nothing(work) }
    });
    let mut space = Space::found(&closer_scenarios::Deployment::default(), supports).unwrap();
    recorded(&space.observe(&plan_target(), Some("o-1")).unwrap());
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    let version = closing(&space);
    let (trace, needed) = held_by(&space, |chain| check_ordinary(chain, version));
    let without: Vec<Stage> = ORDINARY
        .into_iter()
        .filter(|stage| {
            !matches!(stage, Stage::Action | Stage::PreAction | Stage::Dispatch | Stage::Readback | Stage::PostOutcome)
        })
        .collect();
    assert_eq!(stages(&trace), without);
    // Besides the commit, the evidence that the delta rests on is cited by it.
    assert_eq!(needed, trace.steps.len() + 2);
}

#[test]
fn the_users_judgment_leaves_its_trace() {
    shows!("CP-C15-09", "CP-C15-10"; by "trace.assessed_after_grant");
    let mut space = Space::found(&closer_scenarios::Deployment::default(), worker::proposes("large")).unwrap();
    recorded(&space.event("service-a", "price").unwrap());
    space.run().unwrap();
    let decision_id = space.view().packets.keys().next().expect("a packet").clone();
    recorded(&space.answer(&decision_id, DecisionType::ScopedAuthorization).unwrap());
    space.run().unwrap();
    let attempt_id = space.view().attempts.keys().next().expect("the attempt").clone();
    let (trace, needed) = held_by(&space, |chain| check_judgment(chain, &attempt_id));
    let expected = [
        Stage::Assessment,
        Stage::Bench,
        Stage::Decision,
        Stage::Grant,
        Stage::Reassessment,
        Stage::Dispatch,
        Stage::Readback,
    ];
    assert_eq!(stages(&trace), expected);
    assert!(needed >= trace.steps.len(), "{needed} of {}", trace.steps.len());
}

/// A restriction from statement to correction, reviewed in time or late.
fn restricted(late: bool) -> (Space, u64) {
    let mut space = Space::found(&closer_scenarios::Deployment::default(), worker::proposes("basic")).unwrap();
    let episode_id = begun(&mut space);
    let payload_id = until_dispatch(&mut space, &episode_id);
    recorded(&space.restrict("issuer-1", RestrictiveAction::SuspendEligibility(narrow())).unwrap());
    refused(&dispatch(&mut space, &payload_id), Code::Restricted);
    let urgent = space.view().commits.iter().find_map(|(version, committed)| {
        let receipt =
            committed.receipt.as_ref().filter(|receipt| receipt.admission_path == AdmissionPath::UrgentRestrictive)?;
        Some((*version, committed.receipt_ref.clone()?, receipt.clone()))
    });
    let (version, reference, _) = urgent.expect("an urgent commit");
    space.pass(if late { 2_000_000 } else { 1_000 }).unwrap();
    let review = ReconciliationReceipt {
        receipt_id: "reconciliation-1".into(),
        urgent_commit_ref: reference.clone(),
        assessment_ref: "assessment-1".into(),
        disposition: ReconciliationDisposition::LiftRecommended,
        justification: "The key was not known to others.".into(),
        evidence_refs: Vec::new(),
        issued_at: space.moment().now,
        authority_ref: "user".into(),
    };
    let user = ActorRef { actor_id: "user".into(), role: ProducerRole::User };
    recorded(&space.submit_artifact(review, user, SigningScope::ReconciliationReceipt).unwrap());
    let restriction_id = space.view().state.restrictions_in_force().next().expect("it").restriction_id.clone();
    let changes =
        vec![Change::LiftRestriction { restriction_id, urgent_receipt: reference, reason: "Reassessed.".into() }];
    let authority = space.instruct(&changes).unwrap();
    let lift = crate::support::delta(&mut space, changes, Vec::new(), vec![authority]);
    recorded(&crate::support::propose(&mut space, lift.clone()));
    recorded(&crate::support::endorse(&mut space, &lift, Disposition::Endorsed));
    recorded(&crate::support::commit(&mut space, &lift));
    (space, version)
}

#[test]
fn a_restriction_leaves_its_trace_from_statement_to_correction() {
    shows!("CP-C15-07", "CP-7.2-31"; by "trace.correction_after_review");
    let (space, version) = restricted(false);
    let (trace, needed) = held_by(&space, |chain| check_urgent(chain, version));
    let expected =
        [Stage::Restriction, Stage::Delta, Stage::Receipt, Stage::Refusal, Stage::Reconciliation, Stage::Correction];
    assert_eq!(stages(&trace), expected);
    assert!(needed >= trace.steps.len(), "{needed} of {}", trace.steps.len());
}

#[test]
fn a_late_review_holds_beside_the_record_that_the_deadline_was_missed() {
    shows!("CP-C15-07", "CP-C15-14"; by "trace.review_is_late");
    let (space, version) = restricted(true);
    let (trace, _) = held_by(&space, |chain| check_urgent(chain, version));
    assert!(stages(&trace).contains(&Stage::Overdue));
    let entries: Vec<Entry> = space.entries().unwrap().into_iter().map(|(_, entry)| entry).collect();
    let untold = entries.iter().filter(|entry| !matches!(entry, Entry::Notice(_)));
    let gap = check_urgent(&Chain::of(untold), version).err().unwrap_or_else(|| panic!("nobody was told and it held"));
    assert_eq!(gap.missing, Stage::Overdue, "{gap}");
}
