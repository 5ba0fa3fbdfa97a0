//! Obligations: which there are, how one stands, and the trace that led there.

use super::{Answer, why, words};
use closer_contracts::delta::AdmissionPath;
use closer_contracts::id::{AttemptId, Id, ObligationId};
use closer_contracts::item::{Item, ItemKind};
use closer_contracts::obligation::Obligation;
use closer_contracts::time::Timestamp;
use closer_protocol::entry::EpisodeEnd;
use closer_protocol::trace::{self, Gap, Step, Trace};
use closer_protocol::view::{Episode, View};
use serde_json::{Value, json};

pub(super) fn every(view: &View) -> impl Iterator<Item = &Obligation> {
    view.state
        .items(ItemKind::Obligation)
        .filter_map(|accepted| if let Item::Obligation(obligation) = &accepted.item { Some(obligation) } else { None })
}

pub(super) fn list(view: &View, all: bool) -> Answer {
    let listed: Vec<&Obligation> = every(view).filter(|obligation| all || obligation.status.is_open()).collect();
    let line = |obligation: &&Obligation| {
        format!("{:<28} {:<22} {}", obligation.obligation_id.as_str(), obligation.status.as_str(), obligation.gap.text)
    };
    let told = |obligation: &&Obligation| {
        json!({
            "obligation_id": obligation.obligation_id, "status": obligation.status, "gap": obligation.gap.text,
            "responsible_owner": obligation.responsible_owner,
            "under_way": view.under_way.get(&obligation.obligation_id),
        })
    };
    Answer::done(
        json!({ "obligations": listed.iter().map(told).collect::<Vec<_>>() }),
        listed.iter().map(line).collect(),
    )
}

pub(super) fn show(view: &View, id: &ObligationId) -> Answer {
    let Some(obligation) = view.state.obligation(id) else {
        return Answer::not_found("obligation", id.as_str());
    };
    let episodes: Vec<Value> = view
        .episodes
        .values()
        .filter(|episode| episode.obligation_id == *id)
        .map(|episode| {
            let causes: Vec<_> = episode.causes.iter().map(|cause| &cause.reason).collect();
            json!({
                "episode_id": episode.episode_id, "began_at": episode.began_at, "causes": causes, "end": episode.end,
                "reason": episode.end_reason,
            })
        })
        .collect();
    let mut text = vec![
        format!("{}: {}", obligation.obligation_id, obligation.status),
        format!("  question   {}", obligation.gap.text),
        format!("  owner      {}   closes: {}", obligation.responsible_owner, obligation.closure_authority),
    ];
    text.extend(obligation.resolution_conditions.iter().map(|condition| {
        format!("  condition  {} about {}: {}", condition.id, condition.proposition, condition.assessment_status)
    }));
    text.extend(obligation.authority_boundary.iter().map(|boundary| format!("  boundary   {boundary}")));
    for episode in view.episodes.values().filter(|episode| episode.obligation_id == *id) {
        let cause = episode.causes.first().map_or("", |cause| cause.reason.as_str());
        text.push(format!("  episode    {} because {cause}", episode.began_at.as_str()));
        text.push(format!("             {}", why::ended_in_words(episode)));
    }
    Answer::done(json!({ "obligation": obligation, "episodes": episodes }), text)
}

/// The versions whose commit concerns the obligation, oldest first.
fn versions(view: &View, id: &ObligationId) -> Vec<u64> {
    let subject = (ItemKind::Obligation, Id::from(id));
    let concerns = |version: &u64| {
        view.commits.get(version).is_some_and(|committed| {
            let touched = closer_state::touched(&committed.commit).contains(&subject);
            let delta = view.deltas.get(&committed.commit.delta.delta_id);
            touched || delta.is_some_and(|delta| delta.payload.envelope().obligation_ids.contains(id))
        })
    };
    view.commits.keys().filter(|version| concerns(version)).copied().collect()
}

fn walk(view: &View, version: u64) -> Result<Trace, Gap> {
    let receipt = view.commits.get(&version).and_then(|committed| committed.receipt.as_ref());
    match receipt.map(|receipt| receipt.admission_path) {
        Some(AdmissionPath::UrgentRestrictive) => trace::check_urgent(&view.chain, version),
        Some(AdmissionPath::Ordinary) | None => trace::check_ordinary(&view.chain, version),
    }
}

/// The traces of every attempt that rests on a judgment of the user.
fn judgments(view: &View, id: &ObligationId) -> Vec<Result<Trace, Gap>> {
    let answers = view.decisions.values().flatten();
    let grants: Vec<_> = answers.map(|(_, decision)| closer_protocol::bench::grant_id(decision)).collect();
    let attempts = view.attempts.values().filter(|attempt| attempt.intent.obligation_id == *id);
    attempts
        .filter(|attempt| grants.contains(&attempt.action.authority_ref))
        .map(|attempt| trace::check_judgment(&view.chain, &attempt.intent.attempt_id))
        .collect()
}

fn add(steps: &mut Vec<Step>, step: &Step) {
    if !steps.iter().any(|known| known.stage == step.stage && known.id == step.id) {
        steps.push(step.clone());
    }
}

const fn is_routine(stage: trace::Stage) -> bool {
    matches!(stage, trace::Stage::Delta | trace::Stage::Endorsement | trace::Stage::Commit | trace::Stage::Receipt)
}

fn shares_dispatch(judgment: &Trace, walked: &Trace) -> bool {
    let dispatched = |step: &&Step| step.stage == trace::Stage::Dispatch;
    judgment
        .steps
        .iter()
        .filter(dispatched)
        .any(|own| walked.steps.iter().filter(dispatched).any(|step| step.id == own.id))
}

/// An id at a length that fits a line; JSON has it whole.
fn told_id(id: &str) -> String {
    const SHOWN: usize = 44;
    match id.chars().count() > SHOWN {
        true => id.chars().take(SHOWN - 3).chain("...".chars()).collect(),
        false => id.to_owned(),
    }
}

/// The episodes that ended without a commit, in the order in which they began: no receipt tells of them.
fn led_nowhere<'a>(view: &'a View, id: &'a ObligationId) -> impl Iterator<Item = &'a Episode> {
    let without = |end: EpisodeEnd| end != EpisodeEnd::Committed;
    let mut ended: Vec<&Episode> = view.episodes.values().map(|episode| &**episode).collect();
    ended.retain(|episode| episode.obligation_id == *id && episode.end.is_some_and(without));
    ended.sort_by_key(|episode| &episode.began_at);
    ended.into_iter()
}

/// The attempts that no commit about the obligation rests on, by when they were authorized: what they showed may be what a
/// later commit rests on.
fn attempted(
    view: &View,
    id: &ObligationId,
    walked: &[(u64, Result<Trace, Gap>)],
) -> Vec<(Timestamp, Result<Trace, Gap>)> {
    let known = |attempt_id: &AttemptId| {
        let steps = walked.iter().filter_map(|(_, walked)| walked.as_ref().ok()).flat_map(|walked| &walked.steps);
        steps.into_iter().any(|step| step.stage == trace::Stage::Dispatch && step.id == attempt_id.as_str())
    };
    let own = view.attempts.values().filter(|attempt| attempt.intent.obligation_id == *id);
    let others = own.filter(|attempt| !known(&attempt.intent.attempt_id));
    let mut attempted: Vec<_> = others
        .map(|attempt| (attempt.intent.authorized_at.clone(), trace::check_attempt(view, &attempt.intent.attempt_id)))
        .collect();
    attempted.sort_by(|one, other| one.0.cmp(&other.0));
    attempted
}

/// The steps of every commit and attempt about the obligation, in the order of the record, and what is missing of them.
fn steps(view: &View, id: &ObligationId) -> (Vec<Step>, Vec<String>) {
    let (mut steps, mut gaps) = (Vec::new(), Vec::new());
    let judged = judgments(view, id);
    gaps.extend(judged.iter().filter_map(|judged| judged.as_ref().err()).map(ToString::to_string));
    let judged: Vec<Trace> = judged.into_iter().filter_map(Result::ok).collect();
    let walked: Vec<_> = versions(view, id).into_iter().map(|version| (version, walk(view, version))).collect();
    let mut attempted = attempted(view, id, &walked).into_iter().peekable();
    for (version, walked) in walked {
        let receipt = view.commits.get(&version).and_then(|committed| committed.receipt.as_ref());
        let before = |attempt: &(Timestamp, _)| receipt.is_some_and(|receipt| attempt.0 <= receipt.committed_at);
        while let Some((_, attempt)) = attempted.next_if(before) {
            add_all(&mut steps, &mut gaps, attempt);
        }
        let Ok(walked) = walked.map_err(|gap| gaps.push(gap.to_string())) else { continue };
        // The user's judgment stands before the action that was taken under it.
        for judgment in judged.iter().filter(|judgment| shares_dispatch(judgment, &walked)) {
            let until = judgment.steps.iter().position(|step| step.stage == trace::Stage::Grant);
            judgment.steps.iter().take(until.map_or(0, |grant| grant + 1)).for_each(|step| add(&mut steps, step));
        }
        // A routine commit of the service is told by its receipt alone.
        let by_work = walked.steps.iter().any(|step| !is_routine(step.stage));
        let told = walked.steps.iter().filter(|step| by_work || step.stage == trace::Stage::Receipt);
        told.for_each(|step| add(&mut steps, step));
    }
    attempted.for_each(|(_, attempt)| add_all(&mut steps, &mut gaps, attempt));
    (steps, gaps)
}

fn add_all(steps: &mut Vec<Step>, gaps: &mut Vec<String>, walked: Result<Trace, Gap>) {
    match walked {
        Ok(walked) => walked.steps.iter().for_each(|step| add(steps, step)),
        Err(gap) => gaps.push(gap.to_string()),
    }
}

/// The trace that led to where an obligation stands, every citation followed.
#[must_use]
pub fn trace(view: &View, id: &ObligationId) -> Answer {
    if view.state.obligation(id).is_none() {
        return Answer::not_found("obligation", id.as_str());
    }
    let (steps, gaps) = steps(view, id);
    let code = |step: &Step| match step.stage == trace::Stage::Refusal {
        true => step.text.split(':').next().unwrap_or("-").to_owned(),
        false => "-".to_owned(),
    };
    let line = |(index, step): (usize, &Step)| {
        let (stage, digest) = (step.stage.as_str(), words::short(&step.digest));
        format!("{:>3}  {stage:<12} {:<44} {}  {}  {digest}", index + 1, told_id(&step.id), step.text, code(step))
    };
    let told = |(index, step): (usize, &Step)| {
        json!({
            "sequence": index + 1, "stage": step.stage.as_str(), "subject": step.id, "verdict": step.text,
            "code": code(step), "digest": step.digest,
        })
    };
    let mut text: Vec<String> = steps.iter().enumerate().map(line).collect();
    text.extend(gaps.iter().map(|gap| format!("gap: {gap}")));
    let led_nowhere: Vec<&Episode> = led_nowhere(view, id).collect();
    text.extend(
        led_nowhere
            .iter()
            .map(|episode| format!("end: {} {}", told_id(episode.episode_id.as_str()), why::ended_in_words(episode))),
    );
    let told: Vec<Value> = steps.iter().enumerate().map(told).collect();
    let ends: Vec<Value> = led_nowhere.into_iter().map(|episode| why::ended(view, episode)).collect();
    Answer::done(json!({ "obligation_id": id, "steps": told, "gaps": gaps, "ends": ends }), text)
}
