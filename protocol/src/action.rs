//! From a proposal to an ACTION: one exact operation under the grant that covers it, with its key. Spec: §6.4, C7.

use crate::input::Reply;
use crate::sequence::{Deciding, record_payload};
use crate::services;
use crate::streams;
use crate::view::{Episode, View};
use crate::work::lineage;
use closer_contracts::action::Action;
use closer_contracts::auth::AuthRecord;
use closer_contracts::branch;
use closer_contracts::canonical;
use closer_contracts::digest::Digest;
use closer_contracts::id::{ActionId, AttemptId, GrantId, Key, PayloadId};
use closer_contracts::refs::ProducerRole;
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::time::Timestamp;
use closer_contracts::work::ActionProposal;
use closer_contracts::{Fault, Payload};
use std::sync::Arc;

/// The grant that covers a proposal now, the narrowest first: operation, target, bounds, period, revocation.
#[must_use]
pub fn covering_grant(view: &View, proposal: &ActionProposal, now: &Timestamp) -> Option<GrantId> {
    let covers = |grant: &&closer_contracts::audit::Grant| {
        grant.revocation.revoked_by.is_none()
            && grant.expiry > *now
            && grant
                .resource_bounds
                .calls
                .is_none_or(|calls| view.calls_under.get(&grant.grant_id).copied().unwrap_or(0) < calls)
            && grant.targets.iter().any(|targets| targets.covers(&proposal.target))
            && grant
                .parameter_bounds
                .iter()
                .filter(|bound| bound.operation == proposal.operation)
                .all(|bound| bound.admits(proposal.parameters.get(&bound.parameter)))
    };
    // What the user allowed on other facts than those of now is asked anew, and never used.
    let stands = |grant: &&closer_contracts::audit::Grant| {
        branch!("action.answer_stands", crate::bench::changed_since_asked(view, &grant.grant_id).is_empty())
    };
    let breadth = |grant: &&closer_contracts::audit::Grant| (grant.allowed_operations.len(), grant.targets.len());
    view.state
        .grants_allowing(&proposal.operation)
        .filter(covers)
        .filter(stands)
        .min_by_key(breadth)
        .map(|grant| grant.grant_id.clone())
}

/// What a proposal is named by within its episode: a repeat of the same content is the same logical operation.
#[derive(serde::Serialize)]
struct Named<'a> {
    obligation: &'a closer_contracts::id::ObligationId,
    episode: &'a closer_contracts::id::EpisodeId,
    grant: &'a GrantId,
    proposal: &'a ActionProposal,
}

/// Drafts the ACTION of a proposal under a grant, as attempt number `attempt`, from 1.
///
/// # Errors
/// `unregistered_operation`; the codes of the contract.
pub fn draft(
    view: &View,
    episode: &Episode,
    result: &PayloadId,
    proposal: &ActionProposal,
    grant: &GrantId,
    attempt: usize,
    now: &Timestamp,
) -> Result<Payload, Fault> {
    let entry = view.state.operation(&proposal.operation).ok_or_else(|| {
        Fault::new(Code::UnregisteredOperation, "the operation is not in the registry").within(&proposal.operation)
    })?;
    let named = canonical::digest_of(&Named {
        obligation: &episode.obligation_id,
        episode: &episode.episode_id,
        grant,
        proposal,
    })?;
    let short: String = named.to_string().trim_start_matches("sha256:").chars().take(24).collect();
    let version = view.state.reference().version;
    let epoch = view.ownership(&episode.obligation_id).map_or(0, |ownership| ownership.epoch);
    let mut action = Action {
        action_id: ActionId::new(format!("action-{short}.{version}")),
        operation: proposal.operation.clone(),
        target: proposal.target.clone(),
        parameters: proposal.parameters.clone(),
        expected_postcondition: proposal.expected_postcondition.clone(),
        authority_ref: grant.clone(),
        relevant_semantic_version: version,
        registry_version: entry.version,
        idempotency_key: Key::new(format!("key-{short}.{version}")),
        logical_digest: Digest::of(b""),
        attempt_id: AttemptId::new(format!("attempt-{short}.{version}.{attempt}")),
        ownership_epoch: epoch,
        extensions: None,
    };
    action.logical_digest = action.compute_logical_digest()?;
    let id = PayloadId::new(crate::derived_id("pl.action", action.attempt_id.as_str()));
    let producer = services::actor_ref(ProducerRole::Planner);
    let disclosure = services::internal_disclosure(view)?;
    services::write(view, id, producer, lineage(episode, vec![result.clone()]), disclosure, action, now)
}

/// Drafts another attempt at an action on record: the same logical content and key, a new attempt id and the epoch of now.
///
/// # Errors
/// The codes of the contract.
pub fn draft_again(
    view: &View,
    episode: &Episode,
    earlier: &PayloadId,
    attempt: usize,
    now: &Timestamp,
) -> Result<Payload, Fault> {
    let earlier = view
        .actions
        .get(earlier)
        .ok_or_else(|| Fault::new(Code::UnresolvedRef, "the earlier attempt is not on record").within(earlier))?;
    let mut action = (*earlier.body).clone();
    action.attempt_id = AttemptId::new(crate::derived_id(&format!("again.{attempt}"), action.action_id.as_str()));
    action.ownership_epoch = view.ownership(&episode.obligation_id).map_or(0, |ownership| ownership.epoch);
    let id = PayloadId::new(crate::derived_id("pl.action", action.attempt_id.as_str()));
    let producer = services::actor_ref(ProducerRole::Planner);
    let disclosure = services::internal_disclosure(view)?;
    services::write(view, id, producer, lineage(episode, vec![earlier.payload.id().clone()]), disclosure, action, now)
}

/// Records a proposed action. It is neither assessed nor admitted by being recorded.
pub(crate) fn propose(
    deciding: &mut Deciding<'_>,
    action: &Action,
    payload: &Arc<Payload>,
    auth: &AuthRecord,
) -> Result<Reply, Fault> {
    let claim = streams::action_claim(&action.action_id);
    let known = deciding.batch.claimed(&claim);
    if branch!("action.id_names_other_content", known.is_some_and(|known| known != action.logical_digest)) {
        let denial = Denial::new(Code::KeyConflict, CheckKind::Resolution, "the action id names other content");
        return deciding.refuse(
            (&action.action_id).into(),
            Some(action.logical_digest),
            vec![denial.of(&action.action_id)],
        );
    }
    let streams = vec![streams::attempts(action.logical_digest)];
    let reference = record_payload(deciding, payload, auth, streams, vec![(claim, action.logical_digest)])?;
    Ok(Reply::Recorded(vec![reference]))
}
