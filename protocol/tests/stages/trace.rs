//! A trace holds when every citation, walked back from the last record, finds its record before it; else it names the gap.

use crate::fixture::{acceptance, event, minute};
use closer_contracts::action::Action;
use closer_contracts::adjudication::{Adjudication, Disposition, Phase};
use closer_contracts::audit::{
    CommitReceipt, DecisionType, Grant, ReconciliationDisposition, ReconciliationReceipt, RestrictionStatement,
    UserDecision,
};
use closer_contracts::auth::{AuthRecord, SigningScope};
use closer_contracts::briefcase::Briefcase;
use closer_contracts::canonical::digest_of;
use closer_contracts::delta::{AdmissionPath, AuthorityKind, AuthorityRef, Change, Delta};
use closer_contracts::envelope::{Body, Payload};
use closer_contracts::event::{MatchOutcome, MatchReceipt};
use closer_contracts::evidence::{Evidence, Readback, ReadbackOutcome};
use closer_contracts::example::{self, Example, Extent};
use closer_contracts::id::{ArtifactId, Key, PayloadId};
use closer_contracts::item::{AffectedScope, Item, Restriction};
use closer_contracts::obligation::{AssessmentStatus, Condition, ObligationStatus};
use closer_contracts::refs::{ArtifactRef, EvidenceSnapshot, StateRef, TypedRef};
use closer_contracts::refusal::{CheckKind, Refusal, RefusalCode};
use closer_contracts::work::{Need, Unresolved, Work, WorkResult};
use closer_contracts::{Digest, shows};
use closer_protocol::View;
use closer_protocol::entry::{
    Activation, ActivationEntry, ArtifactBody, Cause, Entry, Fired, Intent, Notice, NoticeKind, payload_ref,
};
use closer_protocol::timers::reconciliation_key;
use closer_protocol::trace::{
    Chain, Fault, Gap, Stage, Trace, check_delta, check_judgment, check_ordinary, check_urgent,
};
use closer_state::Commit;
use proptest::prelude::*;
use std::sync::Arc;

/// The records of a trace in log order, each with the stage it stands for.
type Log = Vec<(Stage, Entry)>;

fn chain(log: &Log) -> Chain {
    Chain::of(log.iter().map(|(_, entry)| entry))
}

fn payload(id: &str, parents: &[&str], body: impl Into<Body>) -> Arc<Payload> {
    let mut envelope = example::envelope(body.into(), Extent::Minimal);
    envelope.payload_id = PayloadId::from(id);
    envelope.parents = parents.iter().map(|parent| PayloadId::from(*parent)).collect();
    envelope.obligation_ids = vec!["o-1".into()];
    envelope.episode_id = Some("episode-1".into());
    Arc::new(Payload::seal(envelope).expect("a payload"))
}

fn cited(id: &str, digest: Digest) -> ArtifactRef {
    ArtifactRef { id: ArtifactId::new(id), digest }
}

fn artifact(body: impl Into<ArtifactBody>) -> Entry {
    Entry::Artifact(Arc::new(body.into()))
}

fn state(version: u64) -> StateRef {
    StateRef { version, digest: Digest::of(format!("state {version}").as_bytes()) }
}

fn commit(version: u64, delta: Delta) -> Arc<Commit> {
    Arc::new(Commit {
        version,
        parent: state(version - 1),
        delta,
        derived: Vec::new(),
        derived_digest: Digest::of(b"derived"),
        state_root: Digest::of(b"root"),
        after: state(version),
    })
}

fn delta(id: &str, changes: Vec<Change>) -> Delta {
    Delta {
        delta_id: id.into(),
        parent_state: state(1),
        changes,
        support_relations: Vec::new(),
        dependency_updates: Vec::new(),
        required_authority_refs: Vec::new(),
        admission_path: AdmissionPath::Ordinary,
        proposal_digest: Digest::of(b""),
        extensions: None,
    }
    .sealed()
    .expect("a delta")
}

fn receipt_of(commit: &Commit, adjudication_refs: Vec<ArtifactRef>) -> CommitReceipt {
    CommitReceipt {
        receipt_id: format!("receipt-{}", commit.version).as_str().into(),
        delta_id: commit.delta.delta_id.clone(),
        proposal_digest: commit.delta.proposal_digest,
        adjudication_refs,
        before_state: commit.parent,
        after_state: commit.after,
        ..CommitReceipt::example(Extent::Minimal)
    }
}

fn adjudication(id: &str, phase: Phase, subject: (&str, Digest), disposition: Disposition) -> Adjudication {
    Adjudication {
        adjudication_id: id.into(),
        phase,
        subject: TypedRef { id: subject.0.into(), digest: subject.1, r#type: phase.subject_type() },
        evidence_snapshot: EvidenceSnapshot::of(Vec::new()).expect("a snapshot"),
        readback_refs: Vec::new(),
        governing_basis: state(1),
        role_positions: Vec::new(),
        decision_rule_ref: Example::example(Extent::Minimal),
        dissent: Vec::new(),
        unresolved: Vec::new(),
        disposition,
        extensions: None,
    }
}

fn cause(event: Option<&str>, match_receipt: Option<ArtifactRef>) -> Cause {
    Cause {
        event_id: event.map(Into::into),
        match_receipt,
        reentry_id: None,
        activation_key: None,
        reason: "it is due".into(),
    }
}

fn begun(causes: Vec<Cause>) -> (Stage, Entry) {
    let began = Activation {
        episode_id: "episode-1".into(),
        obligation_id: "o-1".into(),
        causes,
        stops_at: minute(60),
        priority: None,
    };
    (Stage::Activation, Entry::Activation(ActivationEntry::Began(began)))
}

/// An event, its match, and the episode that takes it up.
fn matched() -> Log {
    let event = payload("pl-event", &[], event("event-1", "probe", "catalogue", "changed", &[]));
    let receipt = MatchReceipt {
        receipt_id: "match-1".into(),
        event_ref: cited("event-1", event.content_digest()),
        matched_obligation_ids: vec!["o-1".into()],
        outcome: MatchOutcome::Matched,
        ..MatchReceipt::example(Extent::Minimal)
    };
    let digest = digest_of(&receipt).expect("a digest");
    let taken = begun(vec![cause(Some("event-1"), Some(cited("match-1", digest)))]);
    vec![(Stage::Event, Entry::Payload(event)), (Stage::Match, artifact(receipt)), taken]
}

/// A trigger that fired stands in for event and match.
fn triggered() -> Log {
    let cause =
        Cause { reentry_id: Some("reentry-1".into()), activation_key: Some(Digest::of(b"key")), ..cause(None, None) };
    let fired = Fired { obligation_id: "o-1".into(), cause: cause.clone() };
    vec![(Stage::Trigger, Entry::Activation(ActivationEntry::Fired(fired))), begun(vec![cause])]
}

fn worked(mut log: Log) -> Log {
    let work = Work { work_id: "work-1".into(), ..Work::example(Extent::Minimal) };
    let result = WorkResult { work_id: "work-1".into(), ..WorkResult::example(Extent::Minimal) };
    log.push((Stage::Work, Entry::Payload(payload("pl-work", &["pl-event"], work))));
    log.push((Stage::Result, Entry::Payload(payload("pl-result", &["pl-work"], result))));
    log
}

/// From the proposal of an action to the judgment of its outcome, assessed on the state of this version.
fn acted(mut log: Log, basis: u64) -> Log {
    let mut action = Action {
        action_id: "action-1".into(),
        attempt_id: "attempt-1".into(),
        authority_ref: "grant-1".into(),
        ..Action::example(Extent::Minimal)
    };
    action.logical_digest = action.compute_logical_digest().expect("a digest");
    let proposed = payload("pl-action", &["pl-result"], action.clone());
    let mut before =
        adjudication("pre-1", Phase::PreAction, ("action-1", action.logical_digest), Disposition::Justified);
    before.governing_basis = state(basis);
    let before = payload("pl-pre", &["pl-action"], before);
    let intent = Intent {
        attempt_id: "attempt-1".into(),
        action_id: "action-1".into(),
        action_ref: payload_ref(&proposed),
        adjudication_ref: payload_ref(&before),
        logical_digest: action.logical_digest,
        obligation_id: "o-1".into(),
        episode_id: "episode-1".into(),
        authorized_at: minute(3),
        valid_until: minute(4),
        reserved: Default::default(),
        budget_id: "budget-1".into(),
        restriction_cursor: 0,
        profile_ref: Example::example(Extent::Minimal),
    };
    let mut evidence = Evidence::example(Extent::Minimal);
    evidence.evidence_id = "ev-1".into();
    evidence.action_ref = Some("action-1".into());
    evidence.readback = Some(Readback {
        attempt_id: "attempt-1".into(),
        outcome: ReadbackOutcome::Matched,
        ..Readback::example(Extent::Minimal)
    });
    let readback = payload("pl-readback", &["pl-action"], evidence);
    let mut after =
        adjudication("post-1", Phase::PostOutcome, ("ev-1", readback.content_digest()), Disposition::Established);
    after.readback_refs = vec![cited("ev-1", readback.content_digest())];
    log.push((Stage::Action, Entry::Payload(proposed)));
    log.push((Stage::PreAction, Entry::Payload(before)));
    log.push((Stage::Dispatch, Entry::Intent(Arc::new(intent))));
    log.push((Stage::Readback, Entry::Payload(readback)));
    log.push((Stage::PostOutcome, Entry::Payload(payload("pl-post", &["pl-readback"], after))));
    log
}

fn assessed() -> Change {
    let condition = Condition { assessment_status: AssessmentStatus::Met, ..Condition::example(Extent::Minimal) };
    Change::SetConditions { obligation_id: "o-1".into(), conditions: vec![condition] }
}

/// A delta that follows from `parent`, endorsed and committed as version 2.
fn committed(mut log: Log, parent: &str) -> Log {
    let delta = delta("delta-1", vec![assessed()]);
    let endorsement =
        adjudication("endorsed-1", Phase::SemanticCommit, ("delta-1", delta.proposal_digest), Disposition::Endorsed);
    let endorsement = payload("pl-endorsed", &["pl-delta"], endorsement);
    let commit = commit(2, delta.clone());
    let receipt = receipt_of(&commit, vec![payload_ref(&endorsement)]);
    log.push((Stage::Delta, Entry::Payload(payload("pl-delta", &[parent], delta))));
    log.push((Stage::Endorsement, Entry::Payload(endorsement)));
    log.push((Stage::Commit, Entry::Commit(commit)));
    log.push((Stage::Receipt, artifact(receipt)));
    log
}

fn ordinary() -> Log {
    committed(acted(worked(matched()), 1), "pl-post")
}

fn stages(trace: &Trace) -> Vec<Stage> {
    trace.steps.iter().map(|step| step.stage).collect()
}

fn without(log: &Log, index: usize) -> Log {
    let mut log = log.clone();
    log.remove(index);
    log
}

fn gap_of(result: Result<Trace, Gap>, what: &str) -> Gap {
    result.err().unwrap_or_else(|| panic!("{what} was accepted"))
}

#[test]
fn the_ordinary_order_is_accepted_and_told_predecessors_first() {
    shows!("CP-C15-01"; by "trace.cited_stands_before");
    let trace = check_ordinary(&chain(&ordinary()), 2).expect("the trace holds");
    let expected = [
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
    assert_eq!(stages(&trace), expected);
    assert!(trace.steps.iter().all(|step| !step.id.is_empty() && !step.to_string().contains('\n')));
}

#[test]
fn each_single_omission_is_a_gap_that_names_its_stage() {
    let log = ordinary();
    for (index, (stage, _)) in log.iter().enumerate() {
        let gap = gap_of(check_ordinary(&chain(&without(&log, index)), 2), &format!("a trace without {stage}"));
        assert_eq!((gap.missing, &gap.fault), (*stage, &Fault::Missing), "{gap}");
        assert_eq!(gap.cited_by.is_none(), *stage == Stage::Receipt, "all but the first are cited by something");
    }
}

#[test]
fn each_adjacent_swap_is_rejected() {
    shows!("CP-C15-01"; by "trace.cited_stands_before");
    let log = ordinary();
    for index in 1..log.len() {
        let mut swapped = log.clone();
        swapped.swap(index - 1, index);
        let (earlier, later) = (log[index - 1].0, log[index].0);
        let gap = gap_of(check_ordinary(&chain(&swapped), 2), &format!("{later} before {earlier}"));
        assert_eq!((gap.missing, gap.fault), (earlier, Fault::OutOfOrder), "{later} before {earlier}");
    }
}

proptest! {
    /// Of all orders of the same records, exactly one is a trace.
    #[test]
    fn only_one_order_is_a_trace(order in Just((0usize..14).collect::<Vec<_>>()).prop_shuffle()) {
        let log = ordinary();
        prop_assert_eq!(log.len(), order.len());
        let in_order = order.windows(2).all(|pair| pair[0] < pair[1]);
        let shuffled: Log = order.iter().map(|index| log[*index].clone()).collect();
        prop_assert_eq!(check_ordinary(&chain(&shuffled), 2).is_ok(), in_order);
    }

    /// What else is on record, wherever it stands, changes nothing.
    #[test]
    fn other_records_change_nothing(places in prop::collection::vec(0usize..14, 0..6)) {
        let mut log = ordinary();
        for (n, place) in places.into_iter().enumerate() {
            let other = acceptance(&format!("handoff-{n}"), "owner", b"contract", 1);
            log.insert(place, (Stage::Event, artifact(other)));
        }
        prop_assert_eq!(check_ordinary(&chain(&log), 2), check_ordinary(&chain(&ordinary()), 2));
    }
}

#[test]
fn a_due_trigger_stands_in_for_event_and_match() {
    let log = committed(acted(worked(triggered()), 1), "pl-post");
    let trace = check_ordinary(&chain(&log), 2).expect("the trace holds");
    assert_eq!(stages(&trace)[..2], [Stage::Trigger, Stage::Activation]);
    for (index, (stage, _)) in log.iter().enumerate() {
        let gap = gap_of(check_ordinary(&chain(&without(&log, index)), 2), &format!("a trace without {stage}"));
        assert_eq!(gap.missing, *stage, "{gap}");
    }
}

#[test]
fn the_action_block_is_there_as_a_whole_or_not_at_all() {
    let without_action = committed(worked(matched()), "pl-result");
    let trace = check_ordinary(&chain(&without_action), 2).expect("research alone can be committed");
    assert!(!stages(&trace).contains(&Stage::Action));
    for part in ["pl-action", "pl-pre", "pl-readback"] {
        let log = committed(acted(worked(matched()), 1), part);
        let gap = gap_of(check_ordinary(&chain(&log), 2), part);
        assert_eq!(gap.missing, Stage::PostOutcome, "{gap}");
    }
    for (index, (stage, _)) in without_action.iter().enumerate() {
        let gap =
            gap_of(check_ordinary(&chain(&without(&without_action, index)), 2), &format!("a trace without {stage}"));
        assert_eq!(gap.missing, *stage, "{gap}");
    }
}

#[test]
fn work_follows_from_what_made_its_obligation_due() {
    shows!("CP-C15-02"; by "trace.obligation_matched");
    let mut log = ordinary();
    let other = MatchReceipt {
        receipt_id: "match-1".into(),
        event_ref: cited("event-1", payload_of(&log, Stage::Event).content_digest()),
        matched_obligation_ids: vec!["o-2".into()],
        outcome: MatchOutcome::Matched,
        ..MatchReceipt::example(Extent::Minimal)
    };
    let digest = digest_of(&other).expect("a digest");
    log[1].1 = artifact(other);
    log[2] = begun(vec![cause(Some("event-1"), Some(cited("match-1", digest)))]);
    assert_eq!(gap_of(check_ordinary(&chain(&log), 2), "another obligation's match").missing, Stage::Match);
    assert!(check_ordinary(&chain(&ordinary()), 2).is_ok());
}

#[test]
fn an_episode_without_a_cause_makes_no_work_due() {
    shows!("CP-C15-02"; by "trace.activation_has_cause");
    let mut log = ordinary();
    log[2] = begun(Vec::new());
    assert_eq!(gap_of(check_ordinary(&chain(&log), 2), "an episode without a cause").missing, Stage::Match);
    assert!(check_ordinary(&chain(&ordinary()), 2).is_ok());
}

fn payload_of(log: &Log, stage: Stage) -> Arc<Payload> {
    let entry = log.iter().find(|(of, _)| *of == stage).map(|(_, entry)| entry);
    let Some(Entry::Payload(payload)) = entry else { panic!("{stage} is no payload") };
    payload.clone()
}

#[test]
fn dispatch_follows_an_assessment_that_justifies_this_very_action() {
    shows!("CP-C15-04"; by "trace.assessment_justifies");
    assert!(check_ordinary(&chain(&ordinary()), 2).is_ok());
    let log = worked(matched());
    let mut log = acted(log, 1);
    let action = payload_of(&log, Stage::Action);
    let Body::Action(body) = action.body() else { panic!("an action") };
    let deferred = adjudication("pre-1", Phase::PreAction, ("action-1", body.logical_digest), Disposition::Deferred);
    let deferred = payload("pl-pre", &["pl-action"], deferred);
    let Entry::Intent(intent) = &log[7].1 else { panic!("an intent") };
    let intent = Intent { adjudication_ref: payload_ref(&deferred), ..(**intent).clone() };
    log[6].1 = Entry::Payload(deferred);
    log[7].1 = Entry::Intent(Arc::new(intent));
    let log = committed(log, "pl-post");
    assert_eq!(gap_of(check_ordinary(&chain(&log), 2), "a deferred assessment").missing, Stage::PreAction);
}

#[test]
fn a_judgment_of_the_outcome_is_about_its_own_readback() {
    shows!("CP-C15-05"; by "trace.judges_its_readback");
    assert!(check_ordinary(&chain(&ordinary()), 2).is_ok());
    let mut log = acted(worked(matched()), 1);
    let readback = payload_of(&log, Stage::Readback);
    let mut post =
        adjudication("post-1", Phase::PostOutcome, ("ev-9", Digest::of(b"another")), Disposition::Established);
    post.readback_refs = vec![cited("ev-1", readback.content_digest())];
    log[9].1 = Entry::Payload(payload("pl-post", &["pl-readback"], post));
    let log = committed(log, "pl-post");
    assert_eq!(gap_of(check_ordinary(&chain(&log), 2), "a judgment of something else").missing, Stage::Readback);
}

#[test]
fn the_endorsement_is_of_the_delta_that_was_committed() {
    shows!("CP-C15-06"; by "trace.delta_is_the_proposal");
    let log = ordinary();
    assert!(check_ordinary(&chain(&log), 2).is_ok());
    let mut changed = log.clone();
    let other = delta("delta-1", vec![assessed(), assessed()]);
    changed[10].1 = Entry::Payload(payload("pl-delta", &["pl-post"], other));
    assert_eq!(gap_of(check_ordinary(&chain(&changed), 2), "another delta of that id").missing, Stage::Delta);
}

#[test]
fn a_receipt_without_an_endorsement_of_its_proposal_closes_nothing() {
    shows!("CP-C15-11"; by "trace.endorses_proposal");
    let log = ordinary();
    assert!(check_ordinary(&chain(&log), 2).is_ok());
    let mut unsupported = log.clone();
    let rejected = adjudication(
        "endorsed-1",
        Phase::SemanticCommit,
        ("delta-1", Digest::of(b"another proposal")),
        Disposition::Endorsed,
    );
    let rejected = payload("pl-endorsed", &["pl-delta"], rejected);
    let Entry::Commit(commit) = &log[12].1 else { panic!("a commit") };
    unsupported[11].1 = Entry::Payload(rejected.clone());
    unsupported[13].1 = artifact(receipt_of(commit, vec![payload_ref(&rejected)]));
    assert_eq!(gap_of(check_ordinary(&chain(&unsupported), 2), "an unendorsed receipt").missing, Stage::Endorsement);
}

#[test]
fn knowledge_without_work_behind_it_is_not_committed() {
    shows!("CP-C15-11"; by "trace.delta_unfounded");
    assert!(check_ordinary(&chain(&ordinary()), 2).is_ok());
    let mut log = ordinary();
    let Entry::Payload(delta) = &log[10].1 else { panic!("a delta") };
    let Body::Delta(body) = delta.body() else { panic!("a delta") };
    log[10].1 = Entry::Payload(payload("pl-delta", &[], (**body).clone()));
    assert_eq!(gap_of(check_ordinary(&chain(&log), 2), "a delta from nowhere").missing, Stage::Work);
}

#[test]
fn a_delta_is_checked_before_it_is_committed() {
    shows!("CP-C15-06"; by "trace.cited_stands_before");
    let log = ordinary();
    let on_record = |stage| {
        let payload = payload_of(&log, stage);
        (payload.clone(), payload.body().clone())
    };
    let ((delta_payload, Body::Delta(delta)), (endorsement_payload, Body::Adjudication(endorsement))) =
        (on_record(Stage::Delta), on_record(Stage::Endorsement))
    else {
        panic!("a delta and its endorsement")
    };
    let delta = closer_protocol::view::OnRecord {
        payload: delta_payload,
        body: Arc::new((*delta).clone()),
        admitted_at: minute(5),
    };
    let endorsement = closer_protocol::view::OnRecord {
        payload: endorsement_payload,
        body: Arc::new((*endorsement).clone()),
        admitted_at: minute(6),
    };
    let before: Log = log[..12].to_vec();
    let view = View { chain: chain(&before), ..View::default() };
    assert!(check_delta(&view, &delta, &endorsement).is_ok());
    for (index, (stage, _)) in before.iter().enumerate() {
        let view = View { chain: chain(&without(&before, index)), ..View::default() };
        let gap = gap_of(check_delta(&view, &delta, &endorsement), &format!("a delta without {stage}"));
        assert_eq!(gap.missing, *stage, "{gap}");
    }
}

/// An urgent restriction, reviewed at a minute of the day, due at minute 30.
fn urgent(reviewed_at: i64) -> Log {
    let statement =
        RestrictionStatement { statement_id: "statement-1".into(), ..RestrictionStatement::example(Extent::Full) };
    let auth = AuthRecord {
        subject_id: "statement-1".into(),
        scope: SigningScope::RestrictionStatement,
        ..AuthRecord::example(Extent::Minimal)
    };
    let restriction = Restriction {
        restriction_id: "restriction-1".into(),
        affected_scope: AffectedScope::Space {},
        ..Restriction::example(Extent::Minimal)
    };
    let mut delta = delta("urgent-1", vec![Change::SuspendEligibility { restriction }]);
    delta.admission_path = AdmissionPath::UrgentRestrictive;
    let commit = commit(2, delta.sealed().expect("a delta"));
    let mut receipt = receipt_of(&commit, Vec::new());
    receipt.admission_path = AdmissionPath::UrgentRestrictive;
    let mut details = CommitReceipt::example(Extent::Full).urgent_details.expect("urgent details");
    details.issuer_auth_ref = cited("auth-statement-1", digest_of(&auth).expect("a digest"));
    details.reconciliation_due_at = minute(30);
    details.reconciliation_obligation_id = "o-reconcile".into();
    receipt.urgent_details = Some(details);
    let receipt_ref = cited("receipt-2", digest_of(&receipt).expect("a digest"));
    let refusal = Refusal {
        code: RefusalCode::Restricted,
        check: CheckKind::Authority,
        subject: "pl-action".into(),
        subject_digest: None,
        offending: Some("restriction-1".into()),
        reason: "a restriction covers the action".into(),
        state_basis: Some(state(2)),
        refused_at: minute(6),
    };
    let review = ReconciliationReceipt {
        receipt_id: "review-1".into(),
        urgent_commit_ref: receipt_ref.clone(),
        disposition: ReconciliationDisposition::LiftRecommended,
        issued_at: minute(reviewed_at),
        ..ReconciliationReceipt::example(Extent::Minimal)
    };
    let mut log: Log = vec![
        (Stage::Restriction, Entry::Auth(auth)),
        (Stage::Restriction, artifact(statement)),
        (Stage::Commit, Entry::Commit(commit)),
        (Stage::Receipt, artifact(receipt)),
        (Stage::Refusal, Entry::Refusal(refusal)),
    ];
    if reviewed_at > 30 {
        log.push((Stage::Overdue, Entry::Notice(overdue())));
    }
    log.push((Stage::Reconciliation, artifact(review)));
    let lift = Change::LiftRestriction {
        restriction_id: "restriction-1".into(),
        urgent_receipt: receipt_ref,
        reason: "it is no longer needed".into(),
    };
    corrected(log, lift)
}

fn overdue() -> Notice {
    Notice {
        kind: NoticeKind::Escalation,
        key: reconciliation_key(2),
        owner: None,
        subjects: vec![Key::from("receipt-2")],
        text: "not reconciled in time".into(),
    }
}

fn corrected(mut log: Log, change: Change) -> Log {
    let correction = delta("correction-1", vec![change]);
    let endorsement = adjudication(
        "endorsed-2",
        Phase::SemanticCommit,
        ("correction-1", correction.proposal_digest),
        Disposition::Endorsed,
    );
    let endorsement = payload("pl-endorsed-2", &[], endorsement);
    let commit = commit(3, correction);
    let receipt = receipt_of(&commit, vec![payload_ref(&endorsement)]);
    log.push((Stage::Endorsement, Entry::Payload(endorsement)));
    log.push((Stage::Correction, Entry::Commit(commit)));
    log.push((Stage::Receipt, artifact(receipt)));
    log
}

#[test]
fn the_urgent_order_is_accepted_and_each_omission_is_a_gap() {
    shows!("CP-C15-07"; by "trace.cited_stands_before");
    let log = urgent(20);
    let trace = check_urgent(&chain(&log), 2).expect("the trace holds");
    let expected =
        [Stage::Restriction, Stage::Delta, Stage::Receipt, Stage::Refusal, Stage::Reconciliation, Stage::Correction];
    assert_eq!(stages(&trace), expected);
    for (index, (stage, _)) in log.iter().enumerate() {
        let gap = gap_of(check_urgent(&chain(&without(&log, index)), 2), &format!("an urgent trace without {stage}"));
        assert_eq!(gap.missing, *stage, "{gap}");
    }
    let mut late_statement = log.clone();
    late_statement.swap(1, 2);
    assert_eq!(gap_of(check_urgent(&chain(&late_statement), 2), "a later statement").fault, Fault::OutOfOrder);
}

#[test]
fn a_refusal_counts_from_the_restriction_on() {
    shows!("CP-C15-07"; by "trace.refused_after_restriction");
    let log = urgent(20);
    assert!(check_urgent(&chain(&log), 2).is_ok());
    let mut early = log.clone();
    early.swap(3, 4);
    assert_eq!(gap_of(check_urgent(&chain(&early), 2), "an earlier refusal").missing, Stage::Refusal);
}

#[test]
fn a_late_review_holds_is_said_to_be_late_and_keeps_its_missed_deadline() {
    shows!("CP-C15-07", "CP-C15-14"; by "trace.review_is_late");
    let late = urgent(40);
    let trace = check_urgent(&chain(&late), 2).expect("a late review is accepted");
    assert!(stages(&trace).contains(&Stage::Overdue));
    let review = trace.steps.iter().find(|step| step.stage == Stage::Reconciliation).expect("a review");
    assert!(review.text.contains("late"), "{review}");
    let unrecorded = without(&late, 5);
    assert_eq!(
        gap_of(check_urgent(&chain(&unrecorded), 2), "a missed deadline without record").missing,
        Stage::Overdue
    );
    let timely = check_urgent(&chain(&urgent(20)), 2).expect("the trace holds");
    assert!(!stages(&timely).contains(&Stage::Overdue));
}

#[test]
fn an_unresolved_review_leaves_the_duty_standing() {
    shows!("CP-C15-07"; by "trace.review_discharges");
    let mut log = urgent(20);
    let Entry::Artifact(review) = &log[5].1 else { panic!("a review") };
    let ArtifactBody::ReconciliationReceipt(review) = &**review else { panic!("a review") };
    let unresolved = ReconciliationReceipt { disposition: ReconciliationDisposition::Unresolved, ..(**review).clone() };
    log[5].1 = artifact(unresolved);
    assert_eq!(gap_of(check_urgent(&chain(&log), 2), "an unresolved review").missing, Stage::Reconciliation);
}

#[test]
fn a_confirmation_settles_the_duty_by_an_ordinary_commit_after_the_review() {
    shows!("CP-C15-07"; by "trace.correction_after_review");
    let settled = Change::SetStatus {
        obligation_id: "o-reconcile".into(),
        status: ObligationStatus::Resolved,
        successor: None,
        reason: "the restriction was right".into(),
    };
    let reviewed: Log = urgent(20).into_iter().take(6).collect();
    let confirmed = corrected(reviewed, settled);
    assert!(check_urgent(&chain(&confirmed), 2).is_ok());
    let mut early = confirmed.clone();
    let correction = early.remove(7);
    early.insert(5, correction);
    assert_eq!(gap_of(check_urgent(&chain(&early), 2), "a correction before the review").missing, Stage::Correction);
}

/// What was left open, the packet, the decision, the grant, and the action under it, assessed on this version's state.
fn judged(basis: u64) -> Log {
    let open = Unresolved { subject: "p-export".into(), need: Need::Authority, text: "may it be done?".into() };
    let mut assessment =
        adjudication("open-1", Phase::PreAction, ("action-0", Digest::of(b"action")), Disposition::Deferred);
    assessment.unresolved = vec![open];
    let packet = Briefcase { decision_id: "decision-1".into(), ..Briefcase::example(Extent::Minimal) };
    let packet = payload("pl-packet", &["pl-open"], packet);
    let decision = UserDecision {
        decision_id: "answer-1".into(),
        briefcase_ref: cited("decision-1", packet.content_digest()),
        decision_type: DecisionType::ScopedAuthorization,
        ..UserDecision::example(Extent::Minimal)
    };
    let grant = Grant { grant_id: "grant-1".into(), ..Grant::example(Extent::Minimal) };
    let mut granting = delta("granting-1", vec![Change::Add { item: Box::new(Item::Grant(grant)) }]);
    granting.required_authority_refs = vec![AuthorityRef {
        kind: AuthorityKind::UserDecision,
        reference: cited("answer-1", digest_of(&decision).expect("a digest")),
    }];
    let mut log: Log = vec![
        (Stage::Assessment, Entry::Payload(payload("pl-open", &[], assessment))),
        (Stage::Bench, Entry::Payload(packet)),
        (Stage::Decision, artifact(decision)),
        (Stage::Grant, Entry::Commit(commit(2, granting.sealed().expect("a delta")))),
    ];
    log.extend(acted(worked(matched()), basis));
    log
}

#[test]
fn the_judgment_order_is_accepted_and_each_omission_is_a_gap() {
    shows!("CP-C15-09"; by "trace.cited_stands_before");
    let log = judged(2);
    let trace = check_judgment(&chain(&log), &"attempt-1".into()).expect("the trace holds");
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
    for (index, (stage, _)) in log.iter().enumerate().filter(|(_, (stage, _))| *stage != Stage::PostOutcome) {
        let gap = gap_of(check_judgment(&chain(&without(&log, index)), &"attempt-1".into()), &format!("no {stage}"));
        let expected = if *stage == Stage::PreAction { Stage::Reassessment } else { *stage };
        assert_eq!(gap.missing, expected, "{gap}");
    }
    for index in 1..4 {
        let mut swapped = log.clone();
        swapped.swap(index - 1, index);
        let gap = gap_of(check_judgment(&chain(&swapped), &"attempt-1".into()), "a swap");
        assert_eq!((gap.missing, gap.fault), (log[index - 1].0, Fault::OutOfOrder));
    }
}

#[test]
fn an_assessment_from_before_the_grant_does_not_count() {
    shows!("CP-C15-10"; by "trace.assessed_after_grant");
    assert!(check_judgment(&chain(&judged(2)), &"attempt-1".into()).is_ok());
    let stale = gap_of(check_judgment(&chain(&judged(1)), &"attempt-1".into()), "a basis before the grant");
    assert_eq!(stale.missing, Stage::Reassessment);
    let mut early = judged(2);
    let grant = early.remove(3);
    early.insert(9, grant);
    assert_eq!(early[8].0, Stage::Action);
    assert!(check_judgment(&chain(&early), &"attempt-1".into()).is_ok(), "granted right before the assessment");
    early.swap(9, 10);
    assert_eq!(early[9].0, Stage::PreAction);
    let stale = gap_of(check_judgment(&chain(&early), &"attempt-1".into()), "an assessment before the grant");
    assert_eq!(stale.missing, Stage::Reassessment);
}

#[test]
fn only_a_scoped_authorization_leads_to_a_grant() {
    shows!("CP-C15-09"; by "trace.decision_authorizes");
    let mut log = judged(2);
    assert!(check_judgment(&chain(&log), &"attempt-1".into()).is_ok());
    let Entry::Artifact(decision) = &log[2].1 else { panic!("a decision") };
    let ArtifactBody::UserDecision(decision) = &**decision else { panic!("a decision") };
    let preference = UserDecision { decision_type: DecisionType::Preference, ..(**decision).clone() };
    let Entry::Commit(commit) = &log[3].1 else { panic!("a commit") };
    let mut delta = commit.delta.clone();
    delta.required_authority_refs[0].reference.digest = digest_of(&preference).expect("a digest");
    let commit = Commit { delta, ..(**commit).clone() };
    log[2].1 = artifact(preference);
    log[3].1 = Entry::Commit(Arc::new(commit));
    assert_eq!(gap_of(check_judgment(&chain(&log), &"attempt-1".into()), "a preference").missing, Stage::Decision);
}

#[test]
fn a_gap_says_which_citation_led_there() {
    let log = ordinary();
    let gap = gap_of(check_ordinary(&chain(&without(&log, 7)), 2), "a trace without dispatch");
    assert_eq!(
        gap.to_string(),
        "the trace has no dispatch: readback `pl-readback` cites `attempt-1`, which is not on record"
    );
    assert_eq!(gap.cited_by, Some((Stage::Readback, "pl-readback".into())));
}

/// The same log with one record changed in place.
fn changed(mut log: Log, index: usize, change: impl FnOnce(&Entry) -> Entry) -> Log {
    log[index].1 = change(&log[index].1);
    log
}

#[test]
fn what_a_citation_names_is_what_stands_there() {
    let gap = |log: &Log, what: &str| gap_of(check_ordinary(&chain(log), 2), what);
    let other_event = payload("pl-event", &[], event("event-1", "probe", "another", "changed", &[]));
    let event = changed(ordinary(), 0, |_| Entry::Payload(other_event));
    assert_eq!(gap(&event, "another event of that id").missing, Stage::Event);

    let readback = changed(ordinary(), 8, |entry| {
        let Entry::Payload(payload) = entry else { panic!("a readback") };
        let Body::Evidence(body) = payload.body() else { panic!("a readback") };
        let mut body = (**body).clone();
        body.observed_at = minute(50);
        Entry::Payload(self::payload("pl-readback", &["pl-action"], body))
    });
    assert_eq!(gap(&readback, "another readback of that id").missing, Stage::Readback);

    let receipt = changed(ordinary(), 12, |entry| {
        let Entry::Commit(commit) = entry else { panic!("a commit") };
        Entry::Commit(Arc::new(Commit { after: state(9), ..(**commit).clone() }))
    });
    assert_eq!(gap(&receipt, "the receipt of another transition").missing, Stage::Commit);
}

#[test]
fn an_action_follows_from_a_result_and_is_dispatched_as_it_was_proposed() {
    let log = ordinary();
    let Entry::Intent(intent) = &log[7].1 else { panic!("an intent") };
    let result = payload_of(&log, Stage::Result);
    let other = Intent { action_ref: payload_ref(&result), ..(**intent).clone() };
    let mistaken = changed(log.clone(), 7, |_| Entry::Intent(Arc::new(other)));
    assert_eq!(gap_of(check_ordinary(&chain(&mistaken), 2), "an intent of no action").missing, Stage::Action);

    let mut orphaned = payload_of(&log, Stage::Action).envelope().clone();
    orphaned.parents = Vec::new();
    let orphaned = Arc::new(Payload::seal(orphaned).expect("a payload"));
    let own = Intent { action_ref: payload_ref(&orphaned), ..(**intent).clone() };
    let log = changed(log, 5, |_| Entry::Payload(orphaned));
    let log = changed(log, 7, |_| Entry::Intent(Arc::new(own)));
    assert_eq!(gap_of(check_ordinary(&chain(&log), 2), "an action from nowhere").missing, Stage::Result);
}

#[test]
fn work_is_on_the_obligation_that_its_episode_took_up() {
    let mut envelope = payload_of(&ordinary(), Stage::Work).envelope().clone();
    envelope.obligation_ids = vec!["o-2".into()];
    let log = changed(ordinary(), 3, |_| Entry::Payload(Arc::new(Payload::seal(envelope).expect("a payload"))));
    assert_eq!(gap_of(check_ordinary(&chain(&log), 2), "work on another obligation").missing, Stage::Activation);
}

#[test]
fn the_users_answer_makes_its_obligation_due() {
    let asked = |obligation: &str| {
        let packet = Briefcase {
            decision_id: "decision-1".into(),
            obligation_ids: vec![obligation.into()],
            ..Briefcase::example(Extent::Minimal)
        };
        let packet = payload("pl-packet", &[], packet);
        let decision = UserDecision {
            decision_id: "answer-1".into(),
            briefcase_ref: cited("decision-1", packet.content_digest()),
            ..UserDecision::example(Extent::Minimal)
        };
        let digest = digest_of(&decision).expect("a digest");
        let log = vec![
            (Stage::Bench, Entry::Payload(packet)),
            (Stage::Decision, artifact(decision)),
            begun(vec![cause(None, Some(cited("answer-1", digest)))]),
        ];
        committed(acted(worked(log), 1), "pl-post")
    };
    let log = asked("o-1");
    let trace = check_ordinary(&chain(&log), 2).expect("the trace holds");
    assert_eq!(stages(&trace)[..3], [Stage::Bench, Stage::Decision, Stage::Activation]);
    for index in 0..2 {
        assert_eq!(gap_of(check_ordinary(&chain(&without(&log, index)), 2), "an omission").missing, log[index].0);
    }
    assert_eq!(gap_of(check_ordinary(&chain(&asked("o-2")), 2), "another obligation's answer").missing, Stage::Bench);
}

#[test]
fn a_grant_of_no_decision_and_a_packet_of_nothing_open_are_gaps() {
    let gap = |log: &Log, what: &str| gap_of(check_judgment(&chain(log), &"attempt-1".into()), what);
    let ungranted = changed(judged(2), 3, |entry| {
        let Entry::Commit(commit) = entry else { panic!("a commit") };
        let mut commit = (**commit).clone();
        commit.delta.required_authority_refs.clear();
        Entry::Commit(Arc::new(commit))
    });
    assert_eq!(gap(&ungranted, "a grant of nobody").missing, Stage::Decision);
    let settled = changed(judged(2), 0, |_| {
        let settled =
            adjudication("open-1", Phase::PreAction, ("action-0", Digest::of(b"action")), Disposition::Justified);
        Entry::Payload(payload("pl-open", &[], settled))
    });
    assert_eq!(gap(&settled, "a packet that nothing left open").missing, Stage::Assessment);
}

#[test]
fn an_urgent_receipt_is_of_its_commit_and_its_correction_is_endorsed() {
    let other = changed(urgent(20), 2, |entry| {
        let Entry::Commit(commit) = entry else { panic!("a commit") };
        Entry::Commit(Arc::new(Commit { after: state(9), ..(**commit).clone() }))
    });
    assert_eq!(gap_of(check_urgent(&chain(&other), 2), "the receipt of another commit").missing, Stage::Delta);
    assert_eq!(urgent(20)[6].0, Stage::Endorsement);
    let unendorsed = without(&urgent(20), 6);
    assert_eq!(gap_of(check_urgent(&chain(&unendorsed), 2), "an unendorsed correction").missing, Stage::Endorsement);
}
