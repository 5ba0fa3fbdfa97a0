//! Why: what was refused, what is waited for, and what would wake it. From the record, never from a guess.

use super::{Answer, bench, words};
use crate::error::Error;
use crate::space::Space;
use crate::visible::one_line;
use closer_contracts::evidence::Evidence;
use closer_contracts::id::{DecisionId, ObligationId};
use closer_contracts::item::{AffectedScope, Restriction};
use closer_contracts::obligation::Obligation;
use closer_contracts::record::Position;
use closer_contracts::refusal::Refusal;
use closer_protocol::episode::{self, Next};
use closer_protocol::follow_up;
use closer_protocol::view::{Attempt, Episode, OnRecord, Packet, View};
use closer_protocol::{Entry, Moment, readback, streams};
use closer_store::{Reader, RecordLog};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// How many of the newest refusals are looked through.
const REFUSALS_MAX: usize = 100_000;

pub(super) fn why(space: &dyn Space, id: &ObligationId) -> Result<Answer, Error> {
    let (view, at) = (space.view(), space.moment());
    let Some(obligation) = view.state.obligation(id) else {
        return Ok(Answer::not_found("obligation", id.as_str()));
    };
    let mut text = vec![format!("{id} is {}.", obligation.status)];
    let waiting = waiting(&view, obligation, &at, &mut text);
    let refused = refused(space, &view, id)?;
    if !refused.is_empty() {
        text.push("Refused so far:".to_owned());
    }
    text.extend(refused.iter().map(|refusal| {
        let offending = refusal.offending.as_ref().map(|offending| format!(" ({offending})")).unwrap_or_default();
        let at = refusal.refused_at.as_str();
        format!("  {at} {} {}: {}{offending}", refusal.subject, refusal.code.as_str(), refusal.reason)
    }));
    let not_sent = not_sent(&view, obligation, &mut text);
    let answered = answered(&view, id, &mut text);
    let wakes = wakes(&view, obligation, &at, &mut text);
    let data = json!({
        "obligation_id": id, "status": obligation.status, "waiting": waiting, "refused": refused, "not_sent": not_sent,
        "answered": answered, "last_episode": last_ended(&view, id).map(|episode| ended(&view, episode)), "would_wake": wakes,
    });
    let mut answer = Answer::done(data, text);
    for (decision_id, packet) in packets_about(&view, id) {
        if bench::is_waiting(packet) {
            answer = answer.hint("look", ["bench", "show", decision_id.as_str()]);
        }
    }
    Ok(answer)
}

fn packets_about<'a>(view: &'a View, id: &'a ObligationId) -> impl Iterator<Item = (&'a DecisionId, &'a Packet)> {
    view.packets.iter().filter(move |(_, packet)| packet.packet.body.obligation_ids.contains(id))
}

/// The attempts that an adapter turned down: nothing was sent, and the adapter says why. One that another attempt followed
/// is over, and so are all of them once the obligation is settled.
fn not_sent(view: &View, obligation: &Obligation, text: &mut Vec<String>) -> Vec<Value> {
    let id = &obligation.obligation_id;
    let mut told = Vec::new();
    let own: Vec<_> = view.attempts.values().filter(|attempt| attempt.intent.obligation_id == *id).collect();
    let is_followed = |attempt: &Attempt| {
        own.iter().any(|other| {
            let same =
                other.action.operation == attempt.action.operation && other.action.target == attempt.action.target;
            same && other.intent.authorized_at > attempt.intent.authorized_at
        })
    };
    let standing = own.iter().filter(|attempt| obligation.status.is_open() && !is_followed(attempt));
    for (attempt, outcome) in standing.filter_map(|attempt| Some((attempt, attempt.not_sent()?))) {
        if told.is_empty() {
            text.push("Not sent:".to_owned());
        }
        let at = attempt.told_at.as_ref().map_or("", |at| at.as_str());
        let (operation, address) = (&attempt.action.operation, &attempt.action.target.address);
        text.push(format!("  {at} {operation} on `{address}`: {}", one_line(outcome.reason.as_str())));
        told.push(json!({
            "attempt_id": attempt.intent.attempt_id, "operation": operation, "target": attempt.action.target,
            "told_at": attempt.told_at, "reason": outcome.reason,
        }));
    }
    told
}

/// What the user has answered about the obligation.
fn answered(view: &View, id: &ObligationId, text: &mut Vec<String>) -> Vec<Value> {
    let mut told = Vec::new();
    for (packet_id, packet) in packets_about(view, id) {
        for (_, decision) in view.decisions.get(packet_id).into_iter().flatten() {
            if told.is_empty() {
                text.push("Answered by the user:".to_owned());
            }
            let (at, option) = (decision.issued_at.as_str(), &decision.selected_option_or_instruction);
            text.push(format!("  {at} `{option}`, a {}: {}", decision.decision_type, packet.packet.body.question));
            told.push(json!({
                "decision_id": packet_id, "question": packet.packet.body.question, "option": option,
                "decision_type": decision.decision_type, "issued_at": decision.issued_at,
            }));
        }
    }
    told
}

/// An episode that has ended, with what it led on to and what it returned, for programs.
pub(super) fn ended(view: &View, episode: &Episode) -> Value {
    json!({
        "episode_id": episode.episode_id, "began_at": episode.began_at, "end": episode.end,
        "reason": episode.end_reason, "outcome": follow_up::outcome(view, episode),
    })
}

/// How an episode ended and why, in words.
pub(super) fn ended_in_words(episode: &Episode) -> String {
    let end = episode.end.map_or("under way", |end| end.as_str());
    match &episode.end_reason {
        Some(reason) => format!("{end}: {}", one_line(reason.as_str())),
        None => end.to_owned(),
    }
}

/// What stands between the obligation and its next step.
fn waiting(view: &View, obligation: &Obligation, at: &Moment, text: &mut Vec<String>) -> Vec<Value> {
    let id = &obligation.obligation_id;
    let mut told = Vec::new();
    if !obligation.status.is_open() {
        text.push("It is settled; nothing is waited for.".to_owned());
        return told;
    }
    for (decision_id, packet) in packets_about(view, id) {
        if bench::is_waiting(packet) {
            text.push(format!("It waits for the user's answer to {decision_id}: {}", packet.packet.body.question));
            told.push(json!({ "for": "user", "decision_id": decision_id, "question": packet.packet.body.question }));
        }
    }
    for restriction in view.state.restrictions_in_force().filter(|restriction| concerns(view, obligation, restriction))
    {
        let covers = words::scope(&restriction.affected_scope);
        text.push(format!("Actions on {covers} are restricted by {}: {}", restriction.issued_by, restriction.reason));
        told.push(json!({ "for": "restriction", "restriction_id": restriction.restriction_id, "covers": covers, "reason": restriction.reason }));
    }
    for attempt in
        view.attempts.values().filter(|attempt| attempt.intent.obligation_id == *id && !attempt.status.is_settled())
    {
        let what = format!("{} on `{}`", attempt.action.operation, attempt.action.target.address);
        text.push(format!(
            "Attempt {} ({what}) is not settled: {}. It is read back before anything else touches that target.",
            attempt.intent.attempt_id, attempt.status
        ));
        let reason = attempt.outcome.as_ref().map(|outcome| &outcome.reason);
        let limits = last_look(view, attempt).map_or(&[][..], |look| &look.limitations);
        text.extend(reason.map(|reason| format!("  {}", one_line(reason.as_str()))));
        text.extend(limits.iter().map(|limit| format!("  the last look at it: {}", one_line(limit.as_str()))));
        told.push(json!({
            "for": "reconciliation", "attempt_id": attempt.intent.attempt_id, "status": attempt.status,
            "reason": reason, "last_look": limits,
        }));
    }
    for notice in readback::unseen_by(view, id) {
        let reason = one_line(notice.text.as_str());
        text.push(format!("Nobody can see what it waits for: {reason}"));
        told.push(json!({ "for": "observation", "notice": notice.key, "reason": reason }));
    }
    told.extend(under_way(view, id, at, text));
    told
}

/// The episode under way and its next stage, the causes of one that has not begun, or how the last one ended.
fn under_way(view: &View, id: &ObligationId, at: &Moment, text: &mut Vec<String>) -> Vec<Value> {
    let mut told = Vec::new();
    if let Some(episode) = view.under_way.get(id).and_then(|episode_id| view.episodes.get(episode_id)) {
        let next = next_in_words(view, &episode::next(view, episode, at));
        text.push(format!("Episode {} is under way; next: {next}.", episode.episode_id));
        told.push(json!({ "for": "episode", "episode_id": episode.episode_id, "next": next }));
    } else if let Some(causes) = view.eligible.get(id) {
        let reasons: Vec<_> = causes.iter().map(|cause| &cause.reason).collect();
        text.push(format!(
            "It is eligible for work that has not begun: {}",
            reasons.first().map_or("", |reason| reason.as_str())
        ));
        told.push(json!({ "for": "run", "causes": reasons }));
    } else if let Some(last) = last_ended(view, id) {
        text.push(format!("Its last episode began {} and ended: {}.", last.began_at.as_str(), ended_in_words(last)));
    }
    told
}

fn last_ended<'a>(view: &'a View, id: &ObligationId) -> Option<&'a Episode> {
    let ended = view.episodes.values().filter(|episode| episode.obligation_id == *id && episode.end.is_some());
    ended.max_by_key(|episode| &episode.began_at).map(|episode| &**episode)
}

/// The newest readback of an attempt.
fn last_look<'a>(view: &'a View, attempt: &Attempt) -> Option<&'a Evidence> {
    let of_it = |evidence: &&OnRecord<Evidence>| {
        evidence.body.readback.as_ref().is_some_and(|readback| readback.attempt_id == attempt.intent.attempt_id)
    };
    let looks = view.evidence.values().filter(of_it);
    looks.max_by_key(|evidence| evidence.body.target_binding.observation_version).map(|evidence| &*evidence.body)
}

/// Whether a restriction can touch what is done for the obligation: it names it, or a grant, operation or target of its.
fn concerns(view: &View, obligation: &Obligation, restriction: &Restriction) -> bool {
    let id = &obligation.obligation_id;
    let boundary = |wanted: &str| obligation.authority_boundary.iter().any(|boundary| boundary.as_str() == wanted);
    let mut actions = view.actions.values().filter(|action| action.payload.envelope().obligation_ids.contains(id));
    let grants = || {
        let ids = obligation.authority_boundary.iter();
        ids.filter_map(|boundary| view.state.grant(&closer_contracts::id::GrantId::new(boundary.as_str())))
    };
    match &restriction.affected_scope {
        AffectedScope::Space {} => true,
        AffectedScope::Obligation { obligation_id } => obligation_id == id,
        AffectedScope::Grant { grant_id } => boundary(grant_id.as_str()),
        AffectedScope::Operation { operation } => {
            grants().any(|grant| grant.allowed_operations.contains(operation))
                || actions.any(|action| action.body.operation == *operation)
        }
        AffectedScope::Target { operation, targets } => {
            let granted = grants().any(|grant| {
                let same = operation.as_ref().is_none_or(|operation| grant.allowed_operations.contains(operation));
                same && grant.targets.iter().any(|granted| granted.overlaps(targets))
            });
            granted || actions.any(|action| targets.covers(&action.body.target))
        }
    }
}

fn next_in_words(view: &View, next: &Next) -> String {
    match next {
        Next::Work { participant, .. } => format!("draft work for {participant}"),
        Next::Route { coalition_id } => format!("route the work of {coalition_id}"),
        Next::Convene { coalition_id } => format!("open the conference of {coalition_id}"),
        Next::Confer { conference_id, .. } => format!("go on with the conference {conference_id}"),
        Next::Ask { work_id, participant } => {
            let taken =
                view.taken.get(work_id).map(|at| format!(", who took {work_id} up at {at}")).unwrap_or_default();
            format!("wait for the answer of {participant}{taken}")
        }
        Next::Act { proposal, grant, .. } => format!("plan {} under {grant}", proposal.operation),
        Next::Again { attempt, .. } => format!("plan attempt {attempt}"),
        Next::Assess { .. } => "assess the action".to_owned(),
        Next::Dispatch { .. } => "ask the monitor".to_owned(),
        Next::Await { attempt_id } => format!("wait for {attempt_id}, which is on its way"),
        Next::Readback { attempt_id, not_before } => {
            format!("read {attempt_id} back, not before {}", not_before.as_str())
        }
        Next::Judge { .. } => "judge what the readback shows".to_owned(),
        Next::AskUser { .. } => "put a packet on The Bench".to_owned(),
        Next::HandOver { recipient, .. } => format!("offer it to {recipient}, who has what was lacking"),
        Next::Distil => "distil what was established".to_owned(),
        Next::Endorse { delta_id } => format!("endorse {delta_id}"),
        Next::Commit { delta_id } => format!("commit {delta_id}"),
        Next::End { end, reason } => format!("end as {end}: {reason}"),
        Next::Ended => "it has ended".to_owned(),
    }
}

/// Refusals of anything that belongs to the obligation, oldest first.
fn refused(space: &dyn Space, view: &View, id: &ObligationId) -> Result<Vec<Refusal>, Error> {
    let mut own: BTreeSet<String> = BTreeSet::from([id.to_string()]);
    for (payload_id, action) in
        view.actions.iter().filter(|(_, action)| action.payload.envelope().obligation_ids.contains(id))
    {
        own.extend([payload_id.to_string(), action.body.action_id.to_string(), action.body.attempt_id.to_string()]);
    }
    for episode in view.episodes.values().filter(|episode| episode.obligation_id == *id) {
        own.insert(episode.episode_id.to_string());
        own.extend(episode.deltas.iter().map(ToString::to_string));
        own.extend(episode.adjudications.iter().map(ToString::to_string));
        own.extend(episode.work.iter().map(|work| closer_protocol::derived_id("pl.result", work.as_str())));
    }
    let decided = view.packets.iter().filter(|(_, packet)| packet.packet.body.obligation_ids.contains(id));
    own.extend(
        decided
            .flat_map(|(packet, _)| view.decisions.get(packet).into_iter().flatten())
            .map(|(_, decision)| decision.decision_id.to_string()),
    );
    let entries = space.log().read(&streams::refusals(), Position(1), REFUSALS_MAX, &Reader::SERVICE)?;
    let refusals = entries.iter().filter_map(|entry| {
        if let Ok(Entry::Refusal(refusal)) = Entry::read(&entry.record) { Some(refusal) } else { None }
    });
    Ok(refusals.filter(|refusal| own.contains(refusal.subject.as_str())).collect())
}

/// Every trigger and gap of the obligation, with what it comes to now.
fn wakes(view: &View, obligation: &Obligation, at: &Moment, text: &mut Vec<String>) -> Vec<Value> {
    let mut told = Vec::new();
    if !obligation.status.is_open() {
        return told;
    }
    text.push("What would wake it:".to_owned());
    for reentry in view.state.reentries_of(&obligation.obligation_id) {
        text.push(format!("  {}", reentry.reentry_id));
        let evaluated = words::evaluated(&reentry.predicate, view, at, 2, text);
        told.push(
            json!({ "reentry_id": reentry.reentry_id, "expires_at": reentry.expires_at, "evaluated": evaluated }),
        );
    }
    for dependency in &obligation.dependencies {
        match &dependency.watch {
            closer_contracts::obligation::Watch::Entity { entity_ref, change_kinds, .. } => {
                let kinds: Vec<&str> = change_kinds.iter().map(|kind| kind.as_str()).collect();
                text.push(format!(
                    "  an event about {entity_ref}: {}",
                    if kinds.is_empty() { "any change".to_owned() } else { kinds.join(", ") }
                ));
                told.push(json!({ "entity_ref": entity_ref, "change_kinds": change_kinds }));
            }
            closer_contracts::obligation::Watch::Item { id } => {
                text.push(format!("  a change of `{id}`"));
                told.push(json!({ "item": id }));
            }
        }
    }
    if let Some(gap) = &obligation.trigger_gap {
        text.push(format!("  no trigger: {}; {} reviews it when:", gap.reason, gap.responsible_owner));
        let evaluated = words::evaluated(&gap.review_predicate, view, at, 2, text);
        told.push(
            json!({ "trigger_gap": gap.reason, "responsible_owner": gap.responsible_owner, "evaluated": evaluated }),
        );
    }
    told
}
