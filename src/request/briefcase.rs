//! The Briefcase: its four views of what is on record.

use super::Answer;
use closer_protocol::View;
use closer_protocol::briefcase::{Briefcase, briefcase};
use serde_json::json;

pub(super) fn show(view: &View) -> Answer {
    let Briefcase { leads, investigations, briefs, bench } = briefcase(view);
    let mut text = vec![format!("Leads ({})", leads.len())];
    text.extend(leads.iter().map(|lead| format!("  {}: {} says {}", lead.obligation_id, lead.from, lead.text)));
    text.push(format!("Investigations ({})", investigations.len()));
    text.extend(investigations.iter().map(|work| {
        let state = work.episode_id.as_ref().map_or_else(|| "due".to_owned(), |id| format!("under way in {id}"));
        let reasons: Vec<&str> = work.reasons.iter().map(|reason| reason.as_str()).collect();
        format!("  {}: {state} - {}", work.obligation_id, reasons.join("; "))
    }));
    text.push(format!("Briefs ({})", briefs.len()));
    text.extend(briefs.iter().map(|brief| {
        let status = brief.status.map_or("claimed", |status| status.as_str());
        format!("  {}: {} is {status}", brief.obligation_id, brief.proposition_id)
    }));
    text.push(format!("The Bench ({})", bench.len()));
    for card in &bench {
        let by = card.deadline.as_ref().map_or_else(String::new, |at| format!(", by {}", at.as_str()));
        let overdue = if card.is_overdue { " (overdue)" } else { "" };
        text.push(format!("  {} {}{by}{overdue}", card.decision_class, card.about));
        text.extend(card.decision_ids.iter().map(|id| format!("    closer bench show {id}")));
    }
    let leads: Vec<_> = leads
        .iter()
        .map(|lead| {
            json!({ "obligation_id": lead.obligation_id, "proposition_id": lead.proposition_id, "text": lead.text, "from": lead.from })
        })
        .collect();
    let investigations: Vec<_> = investigations
        .iter()
        .map(|work| json!({ "obligation_id": work.obligation_id, "episode_id": work.episode_id, "reasons": work.reasons }))
        .collect();
    let briefs: Vec<_> = briefs
        .iter()
        .map(|brief| {
            json!({ "obligation_id": brief.obligation_id, "proposition_id": brief.proposition_id, "status": brief.status,
                    "claims": brief.claims })
        })
        .collect();
    let bench: Vec<_> = bench
        .iter()
        .map(|card| {
            json!({ "decision_class": card.decision_class, "about": card.about, "decision_ids": card.decision_ids,
                    "obligation_ids": card.obligation_ids, "deadline": card.deadline, "overdue": card.is_overdue })
        })
        .collect();
    Answer::done(json!({ "leads": leads, "investigations": investigations, "briefs": briefs, "bench": bench }), text)
}
