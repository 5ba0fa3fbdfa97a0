//! Writing: answers and restrictions, as the identity that came in.

use super::told;
use crate::http::door::{Call, Door};
use crate::http::problem::Problem;
use crate::request::{AnswerDraft, GrantDraft, Outcome, Request, RestrictDraft};
use axum::response::Response;
use closer_contracts::Digest;
use closer_contracts::id::{GrantId, Key, ObligationId, OperationId, OptionId, Text};
use closer_contracts::item::ParameterBound;
use closer_contracts::refs::TargetPattern;
use closer_contracts::refusal::RefusalCode;
use closer_contracts::time::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An answer to a packet.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecisionDraft {
    /// The option, by its id.
    option: OptionId,
    /// The digest of the packet as it was shown.
    packet_digest: Digest,
    /// Parameters of the proposed action that are to have other values.
    #[serde(default)]
    amend: BTreeMap<Key, Value>,
    /// Fields that the target has to show then, where others than before.
    #[serde(default)]
    expect: BTreeMap<Key, Value>,
}

/// A restriction: of a grant, an operation with or without its targets, an obligation, or of everything.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RestrictionDraft {
    /// Revoke this grant.
    grant_id: Option<GrantId>,
    /// Or restrict this operation.
    operation: Option<OperationId>,
    /// On these targets.
    targets: Option<TargetPattern>,
    /// Or everything for this obligation.
    obligation_id: Option<ObligationId>,
    /// Why.
    reason: Text,
    /// Within which time it is reconciled, in milliseconds; without one, the most that the appointment allows.
    reconcile_within_ms: Option<u64>,
}

/// What lifts a restriction.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LiftBody {
    /// What the reassessment came to.
    reason: Text,
}

/// A grant for more than one action: the packet's own operations and targets, within these bounds.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GrantBody {
    /// The bounds of the parameters.
    parameter_bounds: Vec<ParameterBound>,
    /// How often; without one, as often as it comes up.
    calls: Option<u64>,
    /// Until when.
    expiry: Timestamp,
}

impl GrantBody {
    fn draft(call: &Call) -> Result<GrantDraft, Problem> {
        let body: Self = call.json()?;
        let packet_id = call.place("packet_id").into();
        Ok(GrantDraft { packet_id, parameter_bounds: body.parameter_bounds, calls: body.calls, expiry: body.expiry })
    }
}

/// Tells what a grant would have answered.
pub(crate) async fn try_grant(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    told(&door.ask(call.identity()?, Request::GrantTry(GrantBody::draft(&call)?)).await?)
}

/// Gives a grant.
pub(crate) async fn give_grant(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    told(&door.ask(call.identity()?, Request::GrantGive(GrantBody::draft(&call)?)).await?)
}

/// Answers a packet. An answer to another version than the newest is refused, and the newest is told with the refusal.
pub(crate) async fn decide(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let draft: DecisionDraft = call.json()?;
    let decision_id = closer_contracts::id::DecisionId::from(call.place("packet_id"));
    let request = Request::BenchDecide(AnswerDraft {
        decision_id: decision_id.clone(),
        option: draft.option.to_string(),
        packet_digest: Some(draft.packet_digest),
        amend: draft.amend,
        expect: draft.expect,
    });
    let answer = door.answer(call.identity()?, request).await?;
    match answer.outcome {
        Outcome::Done => told(&answer.data),
        Outcome::Refused | Outcome::NotFound | Outcome::Corruption | Outcome::Failed => {
            let mut problem = Problem::of(&answer);
            if answer.code == Some(RefusalCode::StalePacket) {
                let newest = door.ask(call.identity()?, Request::BenchShow { decision_id }).await?;
                if let Some(more) = problem.more.as_object_mut() {
                    more.insert("newest".to_owned(), newest);
                }
            }
            Err(problem)
        }
    }
}

/// Lifts a restriction, under the user's authority; whom the caller's identity restricts for does not come in here.
pub(crate) async fn lift(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let LiftBody { reason } = call.json()?;
    let request = Request::RestrictionLift { restriction_id: call.place("restriction_id").into(), reason };
    told(&door.ask(call.identity()?, request).await?)
}

/// Restricts as the issuer that the caller's identity speaks for.
pub(crate) async fn restrict(door: &Arc<Door>, call: Call) -> Result<Response, Problem> {
    let draft: RestrictionDraft = call.json()?;
    let request = Request::Restrict(RestrictDraft {
        grant_id: draft.grant_id,
        operation: draft.operation,
        targets: draft.targets,
        obligation_id: draft.obligation_id,
        reason: draft.reason,
        reconcile_within_ms: draft.reconcile_within_ms,
    });
    let issuer = door.settings.restricts_as(call.identity()?);
    let answer = door.answer(&issuer, request).await?;
    match answer.outcome {
        Outcome::Done => {
            let recorded = answer.data.get("recorded").cloned().unwrap_or_default();
            let in_force_before = recorded.as_array().is_some_and(Vec::is_empty);
            told(&json!({ "recorded": recorded, "in_force_before": in_force_before }))
        }
        Outcome::Refused | Outcome::NotFound | Outcome::Corruption | Outcome::Failed => Err(Problem::of(&answer)),
    }
}
