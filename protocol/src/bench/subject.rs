//! What a packet asks and rests on: when two ask the same, and when one no longer stands. Spec: §7.3, DEC-64, DEC-68.
//!
//! A question is asked once at a time. What it rests on is looked at whenever something is recorded and again before its
//! answer is acted on: evidence that shows something else, an entry of the registry, a profile or a constraint that has
//! changed since. Then the packet is taken back, visibly, and its obligations are worked on anew.

use crate::entry::{ActivationEntry, Cause, Entry, Fired, Notice, NoticeKind};
use crate::input::{Effect, Moment};
use crate::sequence::Deciding;
use crate::view::{Packet, View};
use crate::{commit, intake, predicate, streams, urgent};
use closer_contracts::branch;
use closer_contracts::briefcase::{Briefcase, PacketStatus, RequestedAuthorization};
use closer_contracts::canonical;
use closer_contracts::digest::Digest;
use closer_contracts::fault::Fault;
use closer_contracts::id::{DecisionId, DeltaId, EvidenceId, GrantId, Key, ObligationId};
use closer_contracts::item::ItemKind;
use closer_contracts::obligation::ObligationStatus;
use closer_contracts::reentry::Evaluation;
use closer_contracts::refs::Target;
use closer_contracts::work::ActionProposal;
use closer_monitor::MovedFact;

/// Whether a packet waits for an answer.
#[must_use]
pub const fn waits(packet: &Packet) -> bool {
    matches!(packet.status, PacketStatus::Open | PacketStatus::Overdue)
}

/// The action that a packet asks for, where it asks for one.
#[must_use]
pub const fn proposed(packet: &Briefcase) -> Option<&ActionProposal> {
    match &packet.requested_authorization {
        Some(RequestedAuthorization::Action { proposal, .. }) => Some(proposal),
        Some(RequestedAuthorization::Grant(_)) | None => None,
    }
}

/// What a packet is about: two with the same subject ask the same of the same person.
pub(super) fn subject(packet: &Briefcase) -> Option<Digest> {
    let proposal = proposed(packet);
    let question = proposal.is_none().then_some(&packet.question);
    canonical::digest_of(&(&packet.obligation_ids, packet.decision_class, proposal, question)).ok()
}

/// The packets that wait and ask the same as this one.
pub(super) fn same<'a>(view: &'a View, packet: &'a Briefcase) -> impl Iterator<Item = (&'a DecisionId, &'a Packet)> {
    let about = subject(packet);
    let waiting = view.waiting.iter().filter_map(|id| Some((id, view.packets.get(id)?)));
    waiting.filter(move |(id, other)| {
        **id != packet.decision_id && about.is_some() && subject(&other.packet.body) == about
    })
}

/// Whether the same is asked already, on the same evidence, and can still be answered in time.
pub(super) fn is_asked(view: &View, packet: &Briefcase) -> bool {
    same(view, packet).any(|(_, other)| {
        let open = other.status == PacketStatus::Open;
        branch!("bench.asked_already", open && other.packet.body.evidence_refs == packet.evidence_refs)
    })
}

/// The newest evidence about a target among what was observed for an obligation.
pub(super) fn newest_of(view: &View, obligation_id: &ObligationId, target: &Target) -> Option<EvidenceId> {
    let streams = view.streams_of.get(obligation_id).into_iter().flatten();
    let mut newest = streams.filter_map(|stream| view.observed.get(stream)).map(|(_, id)| id);
    let about = |id: &&EvidenceId| {
        view.evidence.get(*id).is_some_and(|evidence| evidence.body.target_binding.target == *target)
    };
    newest.rfind(about).cloned()
}

/// The facts that a packet rests on and that are no longer what they were when it was asked.
#[must_use]
pub fn changed(view: &View, packet: &Packet) -> Vec<MovedFact> {
    let body = &packet.packet.body;
    let mut facts: Vec<MovedFact> = body.evidence_refs.iter().filter_map(|id| shows_otherwise(view, id)).collect();
    let asked_on = packet.packet.payload.envelope().semantic_basis.as_ref().map_or(0, |basis| basis.version);
    let since = |kind: ItemKind, what: &str| {
        let items = view.state.items(kind).filter(move |accepted| accepted.since > asked_on);
        let about: Vec<_> = items
            .filter(|accepted| kind != ItemKind::Operation || asks_for(body, accepted.item.id().as_str()))
            .collect();
        let told = |id: String| MovedFact {
            fact: format!("{kind}:{id}"),
            change: format!("{what} has changed since it was asked"),
        };
        about.into_iter().map(|accepted| told(accepted.item.id().to_string())).collect::<Vec<_>>()
    };
    if proposed(body).is_some() {
        facts.extend(since(ItemKind::Operation, "the registered operation"));
        facts.extend(since(ItemKind::Profile, "the profile"));
        facts.extend(since(ItemKind::Constraint, "a constraint"));
    }
    facts
}

fn asks_for(packet: &Briefcase, operation: &str) -> bool {
    proposed(packet).is_some_and(|proposal| proposal.operation.as_str() == operation)
}

/// A newer observation in the same stream shows something else than the one that was cited.
fn shows_otherwise(view: &View, cited: &EvidenceId) -> Option<MovedFact> {
    let shown = view.evidence.get(cited)?;
    let (_, newest) = view.observed.get(&shown.body.target_binding.observation_sequence_ref)?;
    let newest = view.evidence.get(newest)?;
    let otherwise = newest.body.observation != shown.body.observation;
    branch!("bench.evidence_changed", otherwise).then(|| MovedFact {
        fact: format!("evidence:{cited}"),
        change: format!("`{}` shows something else than when it was asked", shown.body.target_binding.target.address),
    })
}

/// What has changed since the user was asked for the authority that a grant gives; nothing for a grant that no packet
/// asked for.
#[must_use]
pub fn changed_since_asked(view: &View, grant_id: &GrantId) -> Vec<MovedFact> {
    let packet = view.answers.get(grant_id).and_then(|decision_id| view.packets.get(decision_id));
    packet.map_or_else(Vec::new, |packet| changed(view, packet))
}

/// Why a waiting packet no longer stands, if it does not.
fn stale(view: &View, packet: &Packet, at: &Moment) -> Option<String> {
    let body = &packet.packet.body;
    let holds = |condition: &&_| predicate::evaluate(condition, view, at) == Evaluation::Satisfied;
    if branch!("bench.refresh_condition_holds", body.refresh_conditions.iter().any(|condition| holds(&condition))) {
        return Some("a condition on which it is asked anew holds".to_owned());
    }
    let is_open = |id: &ObligationId| view.state.obligation(id).is_some_and(|obligation| obligation.status.is_open());
    if branch!("bench.nothing_left_open", !body.obligation_ids.iter().any(is_open)) {
        return Some("what it is about is settled".to_owned());
    }
    let changed = changed(view, packet);
    changed.first().map(|fact| format!("{}: {}", fact.fact, fact.change))
}

/// Takes back every waiting packet that no longer stands.
pub(crate) fn withdraw_stale(deciding: &mut Deciding<'_>) -> Result<(), Fault> {
    let view = deciding.so_far()?;
    for id in &view.waiting {
        let reason = view.packets.get(id).and_then(|packet| stale(&view, packet, deciding.at));
        if let Some(reason) = reason {
            withdraw(deciding, id, &reason)?;
        }
    }
    Ok(())
}

/// Takes a packet back, visibly. Its obligations are worked on anew, so that what still has to be judged is asked again.
pub(crate) fn withdraw(deciding: &mut Deciding<'_>, decision_id: &DecisionId, reason: &str) -> Result<(), Fault> {
    let view = deciding.so_far()?;
    let Some(packet) = view.packets.get(decision_id).filter(|packet| waits(packet)) else {
        return Ok(());
    };
    let body = packet.packet.body.clone();
    let told = Key::new(decision_id.as_str());
    let notice = Notice {
        kind: NoticeKind::PacketWithdrawn,
        key: Key::new(crate::derived_id("withdrawn", decision_id.as_str())),
        owner: view.state.profile().map(|profile| profile.user.clone()),
        subjects: vec![told],
        text: intake::bounded(&format!("the question was taken back: {reason}")),
    };
    urgent::record_notice(deciding, notice)?;
    let changes = super::status_changes(&view, &body, ObligationStatus::Active, "its question was taken back");
    if !changes.is_empty() {
        let routine = commit::Routine {
            delta_id: DeltaId::new(crate::derived_id("withdrawn", decision_id.as_str())),
            changes,
            support_relations: Vec::new(),
            authorities: Vec::new(),
            lineage: super::packet_lineage(&body, packet.packet.payload.id()),
        };
        commit::by_rule(deciding, routine)?;
    }
    for obligation_id in &body.obligation_ids {
        wake(deciding, obligation_id, decision_id, &format!("the question {decision_id} was taken back: {reason}"))?;
    }
    Ok(())
}

fn wake(
    deciding: &mut Deciding<'_>,
    obligation_id: &ObligationId,
    decision_id: &DecisionId,
    reason: &str,
) -> Result<(), Fault> {
    let is_open = deciding.view.state.obligation(obligation_id).is_some_and(|obligation| obligation.status.is_open());
    if !is_open {
        return Ok(());
    }
    let cause = Cause {
        event_id: None,
        match_receipt: None,
        reentry_id: None,
        activation_key: None,
        reason: intake::bounded(reason),
    };
    let fired = Fired { obligation_id: obligation_id.clone(), cause };
    let id = crate::derived_id(&format!("withdrawn.{decision_id}"), obligation_id.as_str());
    let streams = vec![streams::history(obligation_id)];
    deciding.batch.push(&id, Entry::Activation(ActivationEntry::Fired(fired)), streams, Vec::new())?;
    deciding.effects.push(Effect::Eligible(obligation_id.clone()));
    Ok(())
}

/// Says of every waiting packet that asks the same as a new one that the new one stands in its place.
pub(super) fn refresh(deciding: &mut Deciding<'_>, packet: &Briefcase) -> Result<(), Fault> {
    let view = deciding.view;
    let older: Vec<DecisionId> = same(view, packet).map(|(id, _)| id.clone()).collect();
    for older in older {
        let notice = Notice {
            kind: NoticeKind::PacketRefreshed,
            key: Key::new(crate::derived_id("refreshed", older.as_str())),
            owner: view.state.profile().map(|profile| profile.user.clone()),
            subjects: vec![Key::new(older.as_str())],
            text: intake::bounded(&format!("{} asks the same on what is known now", packet.decision_id)),
        };
        urgent::record_notice(deciding, notice)?;
    }
    Ok(())
}
