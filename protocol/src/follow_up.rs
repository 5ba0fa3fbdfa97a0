//! What a result leads on to beside an action or a question, and what an episode returns. Spec: §7.1.
//!
//! Whoever leaves evidence open is asked again where more has come in meanwhile. Whoever lacks an ability that a contract on
//! record asks for is helped by an offer to somebody who has it; nobody takes over without consent. And an obligation whose
//! triggers are spent waits for the next evidence where its packet came from.

use crate::handoff::{self, Terms};
use crate::input::Moment;
use crate::view::{Episode, OnRecord, View};
use closer_contracts::branch;
use closer_contracts::id::{ActorId, DeltaId, EvidenceId, HandoffId, ObligationId, ReentryId, SourceId, Text};
use closer_contracts::item::{Identity, Item, ItemKind, Policy, PolicyBody, Standing};
use closer_contracts::reentry::{EvidenceAdded, Reentry, TypedPredicate};
use closer_contracts::refs::{ActorRef, Amounts, ArtifactRef, ProducerRole};
use closer_contracts::work::{Need, WorkResult};
use closer_contracts::{Fault, Payload, word_enum};
use std::collections::{BTreeMap, BTreeSet};

/// How often one episode asks in all, where evidence keeps coming in while it does.
pub const INVESTIGATIONS_MAX: usize = 3;

word_enum! {
    /// What a result led on to.
    pub enum FollowUp {
        /// More work on what had come in meanwhile.
        Investigation = "investigation",
        /// An action.
        Operation = "operation",
        /// An offer to somebody else to take the obligation over.
        Handoff = "handoff",
        /// A question on The Bench.
        UserQuestion = "user_question",
        /// A trigger that waits for the next evidence.
        Reentry = "reentry",
    }
}

/// What an episode comes to: what its results led on to, and what it returns. Each list may be empty.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Outcome {
    /// What followed, in the order of [`FollowUp`].
    pub follow_ups: Vec<FollowUp>,
    /// The evidence that it brought in or that its results rest on, in id order.
    pub evidence: Vec<EvidenceId>,
    /// The changes that it proposed, accepted or not, in order.
    pub candidate_deltas: Vec<DeltaId>,
}

/// What the records of an episode show that it came to.
#[must_use]
pub fn outcome(view: &View, episode: &Episode) -> Outcome {
    let results = || episode.results.iter().filter_map(|id| view.results.get(id));
    let confers = view.conferences.of_episode(&episode.episode_id).is_some();
    let followed = [
        (FollowUp::Investigation, !confers && results().count() > 1),
        (FollowUp::Operation, !episode.actions.is_empty()),
        (FollowUp::Handoff, view.handoffs.offered(&handoff_id(episode)).is_some()),
        (FollowUp::UserQuestion, !episode.packets.is_empty()),
        (FollowUp::Reentry, view.state.reentry(&reentry_id(episode)).is_some()),
    ];
    let cited = results().flat_map(|result| result.body.assessments.iter().map(|relation| &relation.evidence_id));
    let evidence = cited.chain(&episode.readbacks);
    let evidence = evidence.filter(|id| branch!("follow_up.evidence_on_record", view.evidence.contains_key(*id)));
    let evidence: BTreeSet<&EvidenceId> = evidence.collect();
    let deltas = episode.deltas.iter();
    let deltas = deltas.filter(|id| branch!("follow_up.delta_on_record", view.deltas.contains_key(*id)));
    Outcome {
        follow_ups: followed.iter().filter(|(_, is)| *is).map(|(follow_up, _)| *follow_up).collect(),
        evidence: evidence.into_iter().cloned().collect(),
        candidate_deltas: deltas.cloned().collect(),
    }
}

fn leaves_open(result: &WorkResult, needs: &[Need]) -> bool {
    result.action_proposals.is_empty() && result.unresolved.iter().any(|open| needs.contains(&open.need))
}

/// Whether to ask again: what it left open takes evidence, and some has come in about the obligation since the packet.
pub(crate) fn investigates(view: &View, episode: &Episode, result: &OnRecord<WorkResult>) -> bool {
    if !leaves_open(&result.body, &[Need::Evidence]) || episode.work.len() >= INVESTIGATIONS_MAX {
        return false;
    }
    let Some(asked) = view.works.get(&result.body.work_id) else { return false };
    let packets = || episode.work.iter().filter_map(|work_id| view.works.get(work_id));
    let items = packets().flat_map(|work| &work.body.context_items);
    let shown: BTreeSet<&str> = items.map(|item| item.reference.id.as_str()).collect();
    let came_in = view.evidence.iter().any(|(id, evidence)| {
        evidence.admitted_at >= asked.admitted_at
            && evidence.payload.envelope().obligation_ids.contains(&episode.obligation_id)
            && !shown.contains(id.as_str())
    });
    branch!("follow_up.more_came_in", came_in)
}

fn handoff_id(episode: &Episode) -> HandoffId {
    HandoffId::new(crate::derived_id("handoff", episode.episode_id.as_str()))
}

/// Who could take the obligation over, and on which contract: whoever was asked lacks an ability that a contract on record
/// asks for, and another participant has all that it asks for. The first in id order; `None` where it was offered already.
pub(crate) fn hands_over(
    view: &View,
    episode: &Episode,
    result: &OnRecord<WorkResult>,
) -> Option<(ActorId, ArtifactRef)> {
    let lacks = leaves_open(&result.body, &[Need::Prerequisite]);
    if !lacks || view.handoffs.offered(&handoff_id(episode)).is_some() {
        return None;
    }
    let asked = &result.payload.envelope().producer.actor_id;
    let participants: Vec<&Identity> = view
        .state
        .items(ItemKind::Identity)
        .filter_map(|accepted| accepted.item.as_identity())
        .filter(|identity| {
            identity.standing == Standing::Current && identity.roles.contains(&ProducerRole::Participant)
        })
        .collect();
    let asked = participants.iter().find(|identity| identity.actor_id == *asked)?;
    view.handoffs.contracts().find_map(|(reference, contract)| {
        let is_able = |identity: &Identity| contract.capabilities.iter().all(|one| identity.capabilities.contains(one));
        let able = participants.iter().find(|identity| is_able(identity))?;
        branch!("follow_up.ability_lacking", !is_able(asked)).then(|| (able.actor_id.clone(), reference.clone()))
    })
}

/// Drafts the offer, for whoever answers for the obligation now.
///
/// # Errors
/// `unresolved_ref`; the codes of the contract.
pub fn offer(
    view: &View,
    episode: &Episode,
    recipient: &ActorId,
    contract: &ArtifactRef,
    at: &Moment,
) -> Result<Payload, Fault> {
    let obligation_id = &episode.obligation_id;
    let sender = view.ownership(obligation_id).map(|held| held.owner).ok_or_else(|| {
        Fault::new(closer_contracts::RefusalCode::UnresolvedRef, "no such obligation is accepted").within(obligation_id)
    })?;
    let role = view.state.identity(&sender).and_then(|identity| identity.roles.first().copied());
    let terms = Terms {
        handoff_id: handoff_id(episode),
        obligation_id: obligation_id.clone(),
        responsibility: Text::from("Keeps the obligation, with the ability that was lacking."),
        sender: ActorRef { actor_id: sender, role: role.unwrap_or(ProducerRole::Coordinator) },
        recipient: ActorRef { actor_id: recipient.clone(), role: ProducerRole::Participant },
        contract_ref: contract.clone(),
        context_refs: Vec::new(),
        lease_expiry: None,
        return_contract_ref: contract.clone(),
    };
    handoff::draft(view, terms, &at.now)
}

fn reentry_id(episode: &Episode) -> ReentryId {
    ReentryId::new(crate::derived_id("awaits", episode.episode_id.as_str()))
}

/// The trigger that an episode leaves behind: its last result left evidence open, nothing else followed, and every trigger
/// of its obligation is spent. It waits for the next evidence of the sources and streams of the packet. `None` where the
/// packet had none, or no policies say what becomes of a trigger; the obligation's gap is reviewed in time all the same.
pub(crate) fn awaits(view: &View, episode: &Episode) -> Option<(ObligationId, Reentry)> {
    let result = episode.results.last().and_then(|id| view.results.get(id))?;
    let obligation = view.state.obligation(&episode.obligation_id).filter(|obligation| obligation.status.is_open())?;
    let spent = view.state.reentries_of(&episode.obligation_id).next().is_none();
    let open = leaves_open(&result.body, &[Need::Evidence, Need::Prerequisite]);
    if !open || !branch!("follow_up.triggers_spent", spent) {
        return None;
    }
    let asked = view.works.get(&result.body.work_id)?;
    let (mut sources, mut cursor) = (BTreeSet::<SourceId>::new(), BTreeMap::new());
    for item in &asked.body.context_items {
        let Some(evidence) = view.evidence.get(&EvidenceId::new(item.reference.id.as_str())) else { continue };
        let stream = &evidence.body.target_binding.observation_sequence_ref;
        let newest = view.observed.get(stream).map_or(0, |(newest, _)| *newest);
        sources.insert(evidence.body.source.source_id.clone());
        cursor.insert(stream.clone(), newest);
    }
    if cursor.is_empty() {
        return None;
    }
    let policy = |fits: fn(&PolicyBody) -> bool| {
        let policies = view.state.items(ItemKind::Policy).filter_map(|accepted| {
            let Item::Policy(policy) = &accepted.item else { return None };
            Some(policy)
        });
        let mut current = policies.filter(|policy: &&Policy| policy.standing == Standing::Current);
        current.find(|policy| fits(&policy.body)).map(|policy| policy.policy_id.clone())
    };
    let reentry = Reentry {
        reentry_id: reentry_id(episode),
        obligation_id: episode.obligation_id.clone(),
        predicate: TypedPredicate::EvidenceAdded(EvidenceAdded {
            scope_ref: obligation.scope.clone(),
            permitted_source_refs: sources.into_iter().collect(),
            after_cursor: cursor,
        }),
        event_sources: Vec::new(),
        eligible_work: vec!["investigation".into()],
        resource_posture: Amounts::default(),
        deduplication_key: reentry_id(episode).as_str().into(),
        expires_at: None,
        refresh_policy_ref: policy(|body| matches!(body, PolicyBody::Refresh { .. }))?,
        expiry_policy_ref: policy(|body| matches!(body, PolicyBody::Expiry { .. }))?,
        extensions: None,
    };
    Some((episode.obligation_id.clone(), reentry))
}
