//! Obligations: which there are, how one stands, and the trace that led there.

use super::{Answer, words};
use closer_contracts::delta::AdmissionPath;
use closer_contracts::id::{Id, ObligationId};
use closer_contracts::item::{Item, ItemKind};
use closer_contracts::obligation::Obligation;
use closer_protocol::trace::{self, Gap, Step, Trace};
use closer_protocol::view::View;
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
            json!({ "episode_id": episode.episode_id, "began_at": episode.began_at, "causes": causes, "end": episode.end })
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
        let end = episode.end.map_or("under way", |end| end.as_str());
        let cause = episode.causes.first().map_or("", |cause| cause.reason.as_str());
        text.push(format!("  episode    {} {end}: {cause}", episode.began_at.as_str()));
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
    let decided = view
        .decisions
        .values()
        .flatten()
        .map(|(_, decision)| closer_protocol::derived_id("grant", decision.decision_id.as_str()));
    let grants: Vec<String> = decided.collect();
    let attempts = view.attempts.values().filter(|attempt| attempt.intent.obligation_id == *id);
    attempts
        .filter(|attempt| grants.iter().any(|grant| grant == attempt.action.authority_ref.as_str()))
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

/// The trace that led to where an obligation stands, every citation followed.
#[must_use]
pub fn trace(view: &View, id: &ObligationId) -> Answer {
    if view.state.obligation(id).is_none() {
        return Answer::not_found("obligation", id.as_str());
    }
    let mut steps: Vec<Step> = Vec::new();
    let mut gaps: Vec<String> = Vec::new();
    let judged = judgments(view, id);
    gaps.extend(judged.iter().filter_map(|judged| judged.as_ref().err()).map(ToString::to_string));
    let judged: Vec<Trace> = judged.into_iter().filter_map(Result::ok).collect();
    for version in versions(view, id) {
        match walk(view, version) {
            Ok(walked) => {
                // The user's judgment stands before the action that was taken under it.
                for judgment in judged.iter().filter(|judgment| shares_dispatch(judgment, &walked)) {
                    let until = judgment.steps.iter().position(|step| step.stage == trace::Stage::Grant);
                    judgment
                        .steps
                        .iter()
                        .take(until.map_or(0, |grant| grant + 1))
                        .for_each(|step| add(&mut steps, step));
                }
                // A routine commit of the service is told by its receipt alone.
                let by_work = walked.steps.iter().any(|step| !is_routine(step.stage));
                let told = walked.steps.iter().filter(|step| by_work || step.stage == trace::Stage::Receipt);
                told.for_each(|step| add(&mut steps, step));
            }
            Err(gap) => gaps.push(gap.to_string()),
        }
    }
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
    let told: Vec<Value> = steps.iter().enumerate().map(told).collect();
    Answer::done(json!({ "obligation_id": id, "steps": told, "gaps": gaps }), text)
}
