//! Bounded work: a packet to one participant, and the answer that comes back. Spec: §4.1, §4.3, C5, C6.

use crate::conference::{self, Round};
use crate::entry::{Entry, LedgerEntry, LedgerMovement};
use crate::input::Reply;
use crate::ledger::Ledger;
use crate::sequence::{Deciding, record_payload, record_payload_in};
use crate::services::{self, Lineage};
use crate::streams;
use crate::view::{Episode, View};
use closer_contracts::audit::DisclosureReceipt;
use closer_contracts::auth::AuthRecord;
use closer_contracts::branch;
use closer_contracts::canonical::{self, Canonical};
use closer_contracts::conference::{Seat, Subject};
use closer_contracts::contract::Check;
use closer_contracts::envelope::DisclosureRef;
use closer_contracts::id::{
    ActorId, ArtifactId, BudgetId, CategoryId, CoalitionId, DisclosureId, EvidenceId, Id, Key, OperationId, PayloadId,
    PurposeId, Text, WorkId,
};
use closer_contracts::item::Item;
use closer_contracts::refs::{Amounts, ArtifactRef, Plain, ProducerRole, VersionedRef};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode as Code};
use closer_contracts::time::Timestamp;
use closer_contracts::work::{ContextItem, Question, StopCondition, Work, WorkResult};
use closer_contracts::{Fault, Payload};
use closer_monitor::Reservation;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The output contract that every participant's answer meets.
#[must_use]
pub fn output_contract() -> VersionedRef {
    VersionedRef { id: Id::from("contract.result"), version: 1 }
}

/// The vocabulary of proposals: the operations in the registry.
#[must_use]
pub fn vocabulary() -> VersionedRef {
    VersionedRef { id: Id::from("vocabulary.registry"), version: 1 }
}

/// What a packet may be used for.
#[must_use]
pub fn packet_use() -> Key {
    Key::from("answer this work")
}

/// What may be released for work: the categories that a packet's items belong to (DEC-79).
const CATEGORIES: [&str; 5] = ["obligation", "claim", "constraint", "grant", "evidence"];

/// A drafted packet: the work and the receipt of what it releases.
#[derive(Debug, Clone)]
pub struct Packet {
    /// The WORK payload.
    pub work: Payload,
    /// What it releases.
    pub disclosure: DisclosureReceipt,
}

/// Drafts the work of an episode for one participant: the obligation, the claims and constraints that bear on it, the
/// grants that bound it and the evidence at hand, each as far as policy releases it to this recipient.
///
/// # Errors
/// The codes of the contracts; `unresolved_ref` when the obligation is gone.
pub fn draft(
    view: &View,
    episode: &Episode,
    recipient: &ActorId,
    role: &Key,
    now: &Timestamp,
) -> Result<Packet, Fault> {
    packet(view, episode, recipient, role, None, now)
}

/// Drafts the work that a conference asks one of its seats with: its declared subjects, on its declared evidence (§4.1).
///
/// # Errors
/// As [`draft`].
pub fn draft_for_seat(
    view: &View,
    episode: &Episode,
    round: &Round,
    seat: &Seat,
    now: &Timestamp,
) -> Result<Packet, Fault> {
    packet(view, episode, &seat.actor, &seat.role, Some(round), now)
}

/// What each role of the reference configuration is asked to look at (§4.1). Other roles get the question as it stands.
const CHARGES: [(&str, &str); 3] = [
    ("remainder", "Which alternatives are there, and what is left out?"),
    ("investigator", "What does the evidence say, and does the inference follow from it?"),
    ("regulator", "Is this within the goals, the constraints and the authority that is granted?"),
];

/// What a role is asked to look at, before the question itself.
fn charge(role: &Key, question: &Text) -> Text {
    let charge = CHARGES.iter().find(|(named, _)| branch!("work.role_charged", role.as_str() == *named));
    charge.map_or_else(|| question.clone(), |(_, charge)| crate::intake::bounded(&format!("{charge} {question}")))
}

/// The question of a packet: what an obligation leaves open, or what a conference is about.
fn question(view: &View, episode: &Episode, role: &Key, round: Option<&Round>) -> Result<Question, Fault> {
    let obligation = view.state.obligation(&episode.obligation_id).ok_or_else(|| {
        Fault::new(Code::UnresolvedRef, "the episode's obligation is not accepted").within(&episode.obligation_id)
    })?;
    let subject_refs = match round {
        Some(round) => round.contract.subjects.iter().map(Subject::id).collect(),
        None => obligation.gap.propositions.iter().map(Id::from).collect(),
    };
    Ok(Question { text: charge(role, &obligation.gap.text), subject_refs })
}

fn packet(
    view: &View,
    episode: &Episode,
    recipient: &ActorId,
    role: &Key,
    round: Option<&Round>,
    now: &Timestamp,
) -> Result<Packet, Fault> {
    let question = question(view, episode, role, round)?;
    let seed = format!("{}.{}", episode.episode_id, episode.work.len() + 1);
    let released = released(view, recipient);
    let (items, withheld) = context(view, episode, round, &released)?;
    let coalition = CoalitionId::new(crate::derived_id("coalition", episode.episode_id.as_str()));
    let disclosure = DisclosureReceipt {
        disclosure_id: DisclosureId::new(crate::derived_id("disclosure", &seed)),
        purpose: PurposeId::from("work"),
        recipient: recipient.clone(),
        policy_basis: view.state.reference(),
        materialized_item_refs: items.iter().map(|item| item.reference.clone()).collect(),
        withheld_categories: withheld,
        coverage_receipt_ref: ArtifactId::new(crate::derived_id("coverage", &seed)),
        missing_required_context: Vec::new(),
        permitted_use: vec![packet_use()],
        issued_at: now.clone(),
    };
    let disclosure_ref =
        DisclosureRef { id: disclosure.disclosure_id.clone(), digest: canonical::digest_of(&disclosure)? };
    let left_ms = u64::try_from(episode.stops_at.unix_ms().saturating_sub(now.unix_ms())).unwrap_or(0).max(1);
    let work = Work {
        work_id: WorkId::new(crate::derived_id("work", &seed)),
        question,
        role: role.clone(),
        coalition_ref: round.map_or(coalition, Round::coalition),
        membership_version: 1,
        context_items: items,
        proposal_vocabulary_ref: vocabulary(),
        output_contract_ref: output_contract(),
        stop_condition: StopCondition { rounds_max: 1, calls_max: 1, time_ms_max: left_ms },
        deadline: Some(episode.stops_at.clone()),
        extensions: None,
    };
    let work = services::write(
        view,
        PayloadId::new(crate::derived_id("pl.work", &seed)),
        services::actor_ref(ProducerRole::Coordinator),
        lineage(episode, cause_payloads(view, episode)),
        disclosure_ref,
        work,
        now,
    )?;
    Ok(Packet { work, disclosure })
}

/// The lineage of a stage's payload in an episode.
#[must_use]
pub fn lineage(episode: &Episode, parents: Vec<PayloadId>) -> Lineage {
    Lineage {
        parents,
        obligation_ids: vec![episode.obligation_id.clone()],
        episode_id: Some(episode.episode_id.clone()),
        causation_event_id: episode.causes.iter().find_map(|cause| cause.event_id.clone()),
        budget_ref: Some(crate::ledger::obligation_budget(&episode.obligation_id)),
    }
}

fn cause_payloads(view: &View, episode: &Episode) -> Vec<PayloadId> {
    let events = episode.causes.iter().filter_map(|cause| cause.event_id.as_ref());
    events.filter_map(|event_id| view.events.get(event_id)).map(|event| event.payload.id().clone()).collect()
}

fn released(view: &View, recipient: &ActorId) -> Vec<CategoryId> {
    let Some(profile) = view.state.profile() else {
        return Vec::new();
    };
    let rules = profile.disclosure_rules.iter();
    rules
        .filter(|rule| rule.recipient == *recipient && rule.purpose.as_str() == "work")
        .flat_map(|rule| rule.categories.iter().cloned())
        .collect()
}

/// The items of a packet, and the categories that policy holds back. Default deny: what no rule releases is withheld.
fn context(
    view: &View,
    episode: &Episode,
    round: Option<&Round>,
    released: &[CategoryId],
) -> Result<(Vec<ContextItem>, Vec<CategoryId>), Fault> {
    let mut items = Vec::new();
    let mut withheld = Vec::new();
    for category in CATEGORIES {
        let candidates = candidates(view, episode, round, category)?;
        let category = CategoryId::from(category);
        match branch!("work.category_released", released.contains(&category)) {
            true => items.extend(candidates),
            false if candidates.is_empty() => {}
            false => withheld.push(category),
        }
    }
    Ok((items, withheld))
}

fn candidates(
    view: &View,
    episode: &Episode,
    round: Option<&Round>,
    category: &str,
) -> Result<Vec<ContextItem>, Fault> {
    let state = &view.state;
    let Some(obligation) = state.obligation(&episode.obligation_id) else {
        return Ok(Vec::new());
    };
    match category {
        "obligation" => {
            let own = item(&obligation.obligation_id, &Item::Obligation(obligation.clone()))?;
            let subjects = round.into_iter().flat_map(|round| round.contract.subjects.iter()).map(subject_item);
            std::iter::once(Ok(own)).chain(subjects).collect()
        }
        "claim" => obligation
            .gap
            .propositions
            .iter()
            .flat_map(|proposition| state.claims_on(proposition))
            .map(|claim| item(claim.item.id(), &claim.item))
            .collect(),
        "constraint" => state
            .constraints_in_force()
            .filter(|constraint| obligation.authority_boundary.contains(&(&constraint.constraint_id).into()))
            .map(|constraint| item(&constraint.constraint_id, &Item::Constraint(constraint.clone())))
            .collect(),
        "grant" => obligation
            .authority_boundary
            .iter()
            .filter_map(|id| state.grant(&closer_contracts::id::GrantId::new(id.as_str())))
            .map(|grant| item(&grant.grant_id, &Item::Grant(grant.clone())))
            .collect(),
        _ => {
            let at_hand = match round {
                Some(round) => evidence_in_scope(round),
                None => evidence_at_hand(view, episode),
            };
            at_hand.into_iter().map(|id| evidence_item(view, &id)).collect()
        }
    }
}

/// The newest evidence of every stream that an event of this episode cites or that its obligation's earlier episodes read.
fn evidence_at_hand(view: &View, episode: &Episode) -> Vec<EvidenceId> {
    let events = episode.causes.iter().filter_map(|cause| cause.event_id.as_ref());
    let cited = events
        .filter_map(|event_id| view.events.get(event_id))
        .flat_map(|event| event.body.evidence_refs.iter().map(|cited| EvidenceId::new(cited.id.as_str())));
    let streams = view.streams_of.get(&episode.obligation_id).into_iter().flatten();
    let newest = streams.filter_map(|stream| view.observed.get(stream)).map(|(_, id)| id.clone());
    let mut ids: Vec<EvidenceId> = cited.chain(newest).collect();
    ids.sort();
    ids.dedup();
    ids
}

/// Everybody in a conference starts from the same evidence.
fn evidence_in_scope(round: &Round) -> Vec<EvidenceId> {
    let refs = &round.contract.evidence_scope.snapshot.refs;
    refs.iter().map(|cited| EvidenceId::new(cited.id.as_str())).collect()
}

/// A conference's subject, under the digest that objections and moves are bound to.
fn subject_item(subject: &Subject) -> Result<ContextItem, Fault> {
    let content = match subject {
        Subject::Proposition(proposition) => serde_json::to_value(proposition),
        Subject::Proposal(proposal) => serde_json::to_value(proposal),
    };
    context_item(subject.id(), content.map_err(|error| Fault::schema(error.to_string()))?)
}

fn item(id: impl Into<Id>, content: &Item) -> Result<ContextItem, Fault> {
    let content = serde_json::to_value(content).map_err(|error| Fault::schema(error.to_string()))?;
    context_item(id.into(), content)
}

fn evidence_item(view: &View, id: &EvidenceId) -> Result<ContextItem, Fault> {
    let evidence = view.evidence.get(id).map(|evidence| serde_json::to_value(&*evidence.body));
    let content = evidence.transpose().map_err(|error| Fault::schema(error.to_string()))?.unwrap_or_default();
    context_item(id.into(), content)
}

fn context_item(id: Id, content: serde_json::Value) -> Result<ContextItem, Fault> {
    let content = Canonical::of(Plain(content))?;
    let reference = ArtifactRef { id: ArtifactId::new(id.as_str()), digest: content.digest() };
    Ok(ContextItem { reference, content: content.into_value() })
}

/// The worst case of one unit of work: its calls and time, in one slot.
#[must_use]
pub fn worst_case(work: &Work) -> Amounts {
    Amounts {
        calls: Some(u64::from(work.stop_condition.calls_max)),
        tokens: Some(0),
        cost_micros: Some(0),
        currency: Some(Key::from("XXX")),
        time_ms: Some(work.stop_condition.time_ms_max),
        concurrency: Some(1),
    }
}

/// Issues work: its packet is covered by the receipt that comes with it, and its worst case is reserved in the same append.
pub(crate) fn issue(
    deciding: &mut Deciding<'_>,
    work: &Work,
    payload: &Arc<Payload>,
    auth: &AuthRecord,
    disclosure: Option<&DisclosureReceipt>,
) -> Result<Reply, Fault> {
    let subject: Id = (&work.work_id).into();
    let digest = Some(payload.content_digest());
    let Some(disclosure) = disclosure else {
        let denial = Denial::new(
            Code::CoverageMissing,
            CheckKind::Resolution,
            "work comes with the receipt of what it releases",
        );
        return deciding.refuse(subject, digest, vec![denial]);
    };
    let items = work.context_items.iter().map(|item| &item.reference);
    let uncovered = items.clone().find(|item| !disclosure.materialized_item_refs.contains(item));
    if let Some(item) = uncovered
        && branch!("work.item_not_covered", true)
    {
        let reason = "the packet holds an item that its receipt does not release";
        let denial = Denial::new(Code::DisclosureDenied, CheckKind::Authority, reason).of(&item.id);
        return deciding.refuse(subject, digest, vec![denial]);
    }
    let asked = conference::packet_denials(deciding.view, work, &disclosure.recipient)?;
    if !asked.is_empty() {
        return deciding.refuse(subject, digest, asked);
    }
    let Some(obligation_id) = payload.envelope().obligation_ids.first() else {
        return deciding.refuse(
            subject,
            digest,
            vec![Fault::schema("work names its obligation").within("obligation_ids").into()],
        );
    };
    let path = Ledger::path(obligation_id);
    let amounts = worst_case(work);
    let room = deciding.view.ledger.room(&path, &amounts);
    if let Some(denial) = no_room(&room) {
        return deciding.refuse(subject, digest, vec![denial]);
    }
    let reference = record_payload(deciding, payload, auth, Vec::new(), Vec::new())?;
    reserve(deciding, Key::new(work.work_id.as_str()), path, amounts)?;
    Ok(Reply::Recorded(vec![reference]))
}

fn no_room(room: &Reservation) -> Option<Denial> {
    match room {
        Reservation::Fits => None,
        Reservation::Exceeds(budget) => {
            let reason = "the worst case of the unit does not fit";
            branch!("work.budget_exceeded", true)
                .then(|| Denial::new(Code::BudgetExceeded, CheckKind::Runtime, reason).of(budget))
        }
        Reservation::Uncapped(dimension) => {
            let reason = "the unit states no worst case in a dimension that is capped";
            Some(Denial::new(Code::UncappedRoute, CheckKind::Runtime, reason).of(dimension))
        }
    }
}

/// Records a reservation of the whole unit on every budget of the path.
pub(crate) fn reserve(
    deciding: &mut Deciding<'_>,
    reservation: Key,
    budgets: Vec<BudgetId>,
    amounts: Amounts,
) -> Result<(), Fault> {
    movement(deciding, LedgerEntry { reservation, budgets, movement: LedgerMovement::Reserved, amounts })
}

/// Records a movement of the ledger.
pub(crate) fn movement(deciding: &mut Deciding<'_>, entry: LedgerEntry) -> Result<(), Fault> {
    let id =
        crate::derived_id(&format!("ledger.{}", entry.movement), entry.reservation.as_str().replace(' ', "_").as_str());
    deciding.batch.push(&id, Entry::Ledger(entry), vec![streams::ledger()], Vec::new())?;
    Ok(())
}

/// Reads a participant's answer: untrusted bytes, held to the output contract strictly (DEC-88).
///
/// # Errors
/// `schema_invalid`, `oversize`: a counted failure; no repair makes it an accepted result.
pub fn read_answer(bytes: &[u8]) -> Result<WorkResult, Fault> {
    let result = Canonical::<WorkResult>::read(bytes)?.into_value();
    result.check()?;
    Ok(result)
}

/// Drafts the RESULT payload of a participant's answer.
///
/// # Errors
/// The codes of the contracts.
pub fn draft_result(
    view: &View,
    episode: &Episode,
    participant: &ActorId,
    work_id: &WorkId,
    result: WorkResult,
    now: &Timestamp,
) -> Result<Payload, Fault> {
    let work = view
        .works
        .get(work_id)
        .ok_or_else(|| Fault::new(Code::UnresolvedRef, "no such work was issued").within(work_id))?;
    let producer = closer_contracts::refs::ActorRef { actor_id: participant.clone(), role: ProducerRole::Participant };
    services::write(
        view,
        PayloadId::new(crate::derived_id("pl.result", work_id.as_str())),
        producer,
        lineage(episode, vec![work.payload.id().clone()]),
        work.payload.envelope().disclosure.clone(),
        result,
        now,
    )
}

/// Records a participant's answer to work that was issued to it; what it cites must be there.
pub(crate) fn answer(
    deciding: &mut Deciding<'_>,
    result: &WorkResult,
    payload: &Arc<Payload>,
    auth: &AuthRecord,
) -> Result<Reply, Fault> {
    let denials = objections(deciding, result, payload);
    if !denials.is_empty() {
        return deciding.refuse(payload.id().into(), Some(payload.content_digest()), denials);
    }
    let mut propositions: Vec<_> =
        result.assessments.iter().map(|relation| streams::proposition(&relation.proposition_id)).collect();
    propositions.extend(result.claims.iter().map(|claim| streams::proposition(&claim.proposition.proposition_id)));
    let custody = conference::custody_of(deciding.view, result);
    let reference = record_payload_in(custody, deciding, payload, auth, propositions, Vec::new())?;
    let settled = LedgerEntry {
        reservation: Key::new(result.work_id.as_str()),
        budgets: Vec::new(),
        movement: LedgerMovement::Settled,
        amounts: Amounts { calls: Some(1), ..Amounts::default() },
    };
    movement(deciding, settled)?;
    Ok(Reply::Recorded(vec![reference]))
}

fn objections(deciding: &Deciding<'_>, result: &WorkResult, payload: &Payload) -> Vec<Denial> {
    let view = deciding.view;
    let producer = &payload.envelope().producer.actor_id;
    let mut denials = conference::answer_denials(view, result);
    let issued = view.issued_to.get(&result.work_id) == Some(producer);
    if branch!("work.not_issued_to_producer", !issued) {
        let reason = "no such work was issued to this participant";
        denials.push(Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(&result.work_id));
    }
    let answered = view.answered.contains_key(&result.work_id);
    if branch!("work.answered_before", answered) {
        denials.push(
            Denial::new(Code::Duplicate, CheckKind::Resolution, "the work has been answered").of(&result.work_id),
        );
    }
    let cited = result.assessments.iter().map(|relation| &relation.evidence_id);
    for evidence_id in cited.chain(result.objections.iter().flat_map(|objection| objection.evidence_ids.iter())) {
        if branch!("work.unknown_evidence_cited", !view.evidence.contains_key(evidence_id)) {
            let reason = "the answer cites evidence that is not on record";
            denials.push(Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(evidence_id));
        }
    }
    let known = propositions(view, result, payload);
    for relation in &result.assessments {
        if branch!("work.unknown_proposition_related", !known.contains(&(&relation.proposition_id).into())) {
            let reason = "the answer relates evidence to a proposition that nothing names";
            denials.push(Denial::new(Code::UnresolvedRef, CheckKind::Resolution, reason).of(&relation.proposition_id));
        }
    }
    for proposal in &result.action_proposals {
        let known = view.state.operation(&OperationId::new(proposal.operation.as_str())).is_some();
        if branch!("work.proposal_outside_vocabulary", !known) {
            let reason = "the proposed operation is not in the vocabulary";
            denials
                .push(Denial::new(Code::UnregisteredOperation, CheckKind::Resolution, reason).of(&proposal.operation));
        }
    }
    denials
}

/// The propositions that an answer may relate evidence to: those of its question and obligation, those it claims or would
/// establish itself, and those that something accepted is about.
fn propositions(view: &View, result: &WorkResult, payload: &Payload) -> BTreeSet<Id> {
    let asked = view.works.get(&result.work_id).map(|work| work.body.question.subject_refs.clone());
    let own = result.claims.iter().map(|claim| Id::from(&claim.proposition.proposition_id));
    let proposed = result.action_proposals.iter().map(|proposal| proposal.expected_postcondition.id.clone());
    let obligations = payload.envelope().obligation_ids.iter().filter_map(|id| view.state.obligation(id));
    let open = obligations.flat_map(|obligation| {
        let conditions = obligation.resolution_conditions.iter().map(|condition| &condition.proposition);
        obligation.gap.propositions.iter().chain(conditions).map(Id::from)
    });
    let related = result.assessments.iter().map(|relation| &relation.proposition_id);
    let accepted = related.filter(|id| view.state.claims_on(id).next().is_some()).map(Id::from);
    asked.into_iter().flatten().chain(own).chain(proposed).chain(open).chain(accepted).collect()
}
