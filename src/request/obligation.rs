//! Obligations: which there are, how one stands, and the trace that led there.

use super::{Answer, words};
use closer_contracts::delta::AdmissionPath;
use closer_contracts::id::{Id, ObligationId};
use closer_contracts::item::{Item, ItemKind};
use closer_contracts::obligation::Obligation;
use closer_protocol::trace::{self, Gap, Step, Trace};
use closer_protocol::view::View;
use serde_json::{Value, json};

fn obligations(view: &View) -> impl Iterator<Item = &Obligation> {
    view.state.items(ItemKind::Obligation).filter_map(|accepted| match &accepted.item {
        Item::Obligation(obligation) => Some(obligation),
        _ => None,
    })
}

pub(super) fn list(view: &View, all: bool) -> Answer {
    let listed: Vec<&Obligation> = obligations(view).filter(|obligation| all || obligation.status.is_open()).collect();
    let line = |obligation: &&Obligation| {
        format!("{:<28} {:<22} {}", obligation.obligation_id, obligation.status, obligation.gap.text)
    };
    let told = |obligation: &&Obligation| {
        json!({
            "obligation_id": obligation.obligation_id, "status": obligation.status, "gap": obligation.gap.text,
            "responsible_owner": obligation.responsible_owner,
            "under_way": view.under_way.get(&obligation.obligation_id),
        })
    };
    Answer::done(json!({ "obligations": listed.iter().map(told).collect::<Vec<_>>() }), listed.iter().map(line).collect())
}

pub(super) fn show(view: &View, id: &ObligationId) -> Answer {
    let Some(obligation) = view.state.obligation(id) else { return Answer::not_found("obligation", id.as_str()) };
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
    let decided = view.decisions.values().flatten().map(|(_, decision)| closer_protocol::derived_id("grant", decision.decision_id.as_str()));
    let grants: Vec<String> = decided.collect();
    let attempts = view.attempts.values().filter(|attempt| attempt.intent.obligation_id == *id);
    attempts
        .filter(|attempt| grants.iter().any(|grant| grant == attempt.action.authority_ref.as_str()))
        .map(|attempt| trace::check_judgment(&view.chain, &attempt.intent.attempt_id))
        .collect()
}

/// The trace that led to where an obligation stands, every citation followed.
#[must_use]
pub fn trace(view: &View, id: &ObligationId) -> Answer {
    if view.state.obligation(id).is_none() {
        return Answer::not_found("obligation", id.as_str());
    }
    let mut steps: Vec<Step> = Vec::new();
    let mut gaps: Vec<String> = Vec::new();
    let walked = judgments(view, id).into_iter().chain(versions(view, id).into_iter().map(|version| walk(view, version)));
    for walked in walked {
        match walked {
            Ok(walked) => {
                for step in walked.steps {
                    if !steps.iter().any(|known| known.stage == step.stage && known.id == step.id) {
                        steps.push(step);
                    }
                }
            }
            Err(gap) => gaps.push(gap.to_string()),
        }
    }
    let code = |step: &Step| match step.stage {
        trace::Stage::Refusal => step.text.split(':').next().unwrap_or("-").to_owned(),
        _ => "-".to_owned(),
    };
    let line = |(index, step): (usize, &Step)| {
        format!("{:>3}  {:<13} {:<14} {}  {}", index + 1, step.stage, words::short(&step.digest), step.id, step.text)
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
