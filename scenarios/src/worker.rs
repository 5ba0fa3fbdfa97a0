//! Scripted workers: what a participant answers, written down.

use crate::founding::plan_target;
use crate::space::Answer;
use closer_contracts::id::{EvidenceId, ObservationStreamId, PropositionId};
use closer_contracts::refs::Plain;
use closer_contracts::work::{
    ActionProposal, Comparison, EvidenceRelation, Expectation, Need, Postcondition, ProposedClaim, ReferenceStatus,
    Relation, ScopeMatch, TargetVersion, Unresolved, ValidAt, Work, WorkResult,
};
use closer_protocol::View;
use serde_json::json;

/// An answer that says nothing.
#[must_use]
pub fn nothing(work: &Work) -> WorkResult {
    WorkResult {
        work_id: work.work_id.clone(),
        claims: Vec::new(),
        action_proposals: Vec::new(),
        assessments: Vec::new(),
        objections: Vec::new(),
        unresolved: Vec::new(),
        skill_receipts: Vec::new(),
        extensions: None,
    }
}

/// A proposal to change the plan, named after the proposition it would establish.
#[must_use]
pub fn proposal(proposition: &str, plan: &str) -> ActionProposal {
    ActionProposal {
        operation: "plan.change".into(),
        target: plan_target(),
        parameters: [("plan".into(), Plain(json!(plan)))].into(),
        expected_postcondition: Postcondition {
            id: proposition.into(),
            expectations: vec![Expectation {
                field: "plan".into(),
                comparison: Comparison::Equals,
                value: Plain(json!(plan)),
            }],
        },
    }
}

/// What an evidence item on record says about a proposition.
#[must_use]
pub fn relation(view: &View, proposition: &str, evidence: &EvidenceId, relation: Relation) -> EvidenceRelation {
    let known = view.evidence.get(evidence);
    EvidenceRelation {
        proposition_id: PropositionId::from(proposition),
        evidence_id: evidence.clone(),
        reference_status: ReferenceStatus::Resolved,
        scope_match: ScopeMatch::Applicable,
        relation,
        valid_at: known.map_or_else(
            || ValidAt {
                observed_at: closer_contracts::Timestamp::from_unix_ms(0),
                observation_sequence_ref: ObservationStreamId::from("unknown"),
                observation_version: 0,
                target_version: TargetVersion::Unknown,
            },
            |known| closer_protocol::sufficiency::valid_at(&known.body),
        ),
        limitations: known.map_or_else(Vec::new, |known| known.body.limitations.clone()),
    }
}

/// Proposes to change the plan; the work's first subject is the proposition it would establish.
#[must_use]
pub fn proposes(plan: impl Into<String>) -> Answer {
    let plan = plan.into();
    Box::new(move |work, _| {
        let proposition = work.question.subject_refs.first().map_or("p", |id| id.as_str()).to_owned();
        WorkResult { action_proposals: vec![proposal(&proposition, &plan)], ..nothing(work) }
    })
}

/// As [`proposes`], resting on every evidence item on record as support.
#[must_use]
pub fn proposes_on_evidence(plan: impl Into<String>) -> Answer {
    let plan = plan.into();
    Box::new(move |work, view| {
        let proposition = work.question.subject_refs.first().map_or("p", |id| id.as_str()).to_owned();
        let assessments = view.evidence.keys().map(|id| relation(view, &proposition, id, Relation::Supports)).collect();
        WorkResult { action_proposals: vec![proposal(&proposition, &plan)], assessments, ..nothing(work) }
    })
}

/// Says of every evidence item on record how it is related to the work's first subject.
#[must_use]
pub fn relates(how: Relation) -> Answer {
    Box::new(move |work, view| {
        let proposition = work.question.subject_refs.first().map_or("p", |id| id.as_str()).to_owned();
        let assessments = view.evidence.keys().map(|id| relation(view, &proposition, id, how)).collect();
        WorkResult { assessments, ..nothing(work) }
    })
}

/// As [`relates`] in support, but quoting a place in the stream that the evidence does not stand at.
#[must_use]
pub fn misquotes() -> Answer {
    let mut supports = relates(Relation::Supports);
    Box::new(move |work, view| {
        let mut answer = supports(work, view);
        for assessment in &mut answer.assessments {
            assessment.valid_at.observation_version += 1;
        }
        answer
    })
}

/// Leaves something open that only this can settle.
#[must_use]
pub fn leaves_open(need: Need) -> Answer {
    Box::new(move |work, _| {
        let subject = work.question.subject_refs.first().cloned().unwrap_or_else(|| "p".into());
        let open = Unresolved { subject, need, text: "Is a slower service acceptable?".into() };
        WorkResult { unresolved: vec![open], ..nothing(work) }
    })
}

/// Claims that the service has this plan, on every evidence item in its packet, read like this.
#[must_use]
pub fn claims(work: &Work, view: &View, plan: &str, how: Relation) -> WorkResult {
    let proposition = crate::founding::proposition("o-1", plan);
    let given = work.context_items.iter().map(|item| EvidenceId::new(item.reference.id.as_str()));
    let given = given.filter(|id| view.evidence.contains_key(id));
    WorkResult {
        assessments: given.map(|id| relation(view, "p-o-1", &id, how)).collect(),
        claims: vec![ProposedClaim { proposition, applicability: vec!["as observed".into()] }],
        ..nothing(work)
    }
}

/// Reads every evidence item in its packet as this, and claims nothing.
#[must_use]
pub fn reads(work: &Work, view: &View, how: Relation) -> WorkResult {
    WorkResult { claims: Vec::new(), ..claims(work, view, "basic", how) }
}
