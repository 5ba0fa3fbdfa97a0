//! Obligations: which there are, why one stands as it does, what would wake it, and the trace on demand. And the work on them.

use super::frame::Frame;
use super::picture;
use super::shown::{Shown, with_times};
use super::trouble::{Trouble, rendered};
use super::visit::Visit;
use crate::http::Door;
use crate::request::Request;
use askama::Template;
use axum::response::Response;
use closer_contracts::id::ObligationId;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// The most obligations that one page shows.
const SHOWN_MAX: usize = 100;

/// A status in words.
fn in_words(status: &str) -> Shown {
    match status {
        "active" => "Active".into(),
        "awaiting_event" => "Waits for an event".into(),
        "awaiting_user_judgment" => "Waits for your judgment".into(),
        "resolved" => "Resolved".into(),
        "superseded" => "Superseded".into(),
        "withdrawn" => "Withdrawn".into(),
        other => other.into(),
    }
}

#[derive(Deserialize)]
struct Listed {
    obligations: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    obligation_id: Shown,
    status: Shown,
    gap: Shown,
    responsible_owner: Shown,
}

struct Row {
    obligation_id: Shown,
    status: Shown,
    status_words: Shown,
    gap: Shown,
    responsible_owner: Shown,
}

#[derive(Template)]
#[template(path = "obligations.html")]
struct Obligations {
    frame: Frame,
    obligations: Vec<Row>,
    total: usize,
    all: bool,
    next: Option<Shown>,
}

pub(super) async fn list(door: &Arc<Door>, visit: Visit) -> Result<Response, Trouble> {
    let all = visit.query("all").is_some_and(|all| all == "true");
    let listed: Listed = visit.ask(door, Request::ObligationList { all }).await?;
    let total = listed.obligations.len();
    let after = visit.query("after");
    let begin = after.map_or(0, |after| {
        listed.obligations.iter().position(|entry| entry.obligation_id == *after).map_or(0, |found| found + 1)
    });
    let row = |entry: Entry| Row {
        status_words: in_words(entry.status.as_str()),
        obligation_id: entry.obligation_id,
        status: entry.status,
        gap: entry.gap,
        responsible_owner: entry.responsible_owner,
    };
    let obligations: Vec<Row> = listed.obligations.into_iter().skip(begin).take(SHOWN_MAX).map(row).collect();
    let next = obligations.last().map(|row| row.obligation_id.clone()).filter(|_| begin + obligations.len() < total);
    let frame = Frame::new(door, &visit, "Obligations", "obligations");
    Ok(rendered(&Obligations { frame, obligations, total, all, next }))
}

#[derive(Deserialize)]
struct Told {
    obligation: Kept,
}

#[derive(Deserialize)]
struct Kept {
    gap: Gap,
    status: Shown,
    responsible_owner: Shown,
    closure_authority: Shown,
    resolution_conditions: Vec<Condition>,
}

#[derive(Deserialize)]
struct Gap {
    text: Shown,
}

#[derive(Deserialize)]
struct Condition {
    proposition: Shown,
    assessment_status: Shown,
}

#[derive(Deserialize)]
struct Traced {
    steps: Vec<Step>,
    gaps: Vec<Shown>,
}

#[derive(Deserialize)]
pub(super) struct Step {
    sequence: u64,
    pub(super) stage: Shown,
    subject: Shown,
    pub(super) verdict: Shown,
    code: Shown,
    digest: Shown,
}

struct TraceRow {
    sequence: u64,
    stage: Shown,
    subject: Shown,
    verdict: Shown,
    short: Shown,
    refused: bool,
}

struct Trace {
    picture: String,
    steps: Vec<TraceRow>,
    gaps: Vec<Shown>,
}

struct Line {
    text: Shown,
    deep: bool,
}

#[derive(Template)]
#[template(path = "obligation.html")]
struct Obligation {
    frame: Frame,
    id: Shown,
    gap: Shown,
    status: Shown,
    status_words: Shown,
    owner: Shown,
    closes: Shown,
    why: Vec<Line>,
    refused: Vec<Shown>,
    wakes: Vec<Line>,
    packets: Vec<Shown>,
    conditions: Vec<Condition>,
    trace: Option<Trace>,
}

pub(super) async fn show(door: &Arc<Door>, visit: Visit) -> Result<Response, Trouble> {
    let obligation_id = ObligationId::from(visit.place("obligation_id"));
    let told: Told = visit.ask(door, Request::ObligationShow { obligation_id: obligation_id.clone() }).await?;
    let why = door.answer(visit.identity(), Request::ObligationWhy { obligation_id: obligation_id.clone() }).await?;
    let (lines, refused, wakes) = parts(&why.text);
    let packets = why.data.get("waiting").and_then(Value::as_array).into_iter().flatten();
    let packets = packets.filter_map(|waiting| waiting.get("decision_id")?.as_str()).map(Shown::new).collect();
    let trace = match visit.query("trace").is_some() {
        true => Some(traced(visit.ask(door, Request::ObligationTrace { obligation_id: obligation_id.clone() }).await?)),
        false => None,
    };
    let frame = Frame {
        stop_query: format!("?obligation={obligation_id}").into(),
        ..Frame::new(door, &visit, told.obligation.gap.text.clone(), "obligations")
    };
    Ok(rendered(&Obligation {
        frame,
        id: obligation_id.as_str().into(),
        gap: told.obligation.gap.text,
        status_words: in_words(told.obligation.status.as_str()),
        status: told.obligation.status,
        owner: told.obligation.responsible_owner,
        closes: told.obligation.closure_authority,
        why: lines,
        refused,
        wakes,
        packets,
        conditions: told.obligation.resolution_conditions,
        trace,
    }))
}

/// The answer to "why" in its three parts: what stands in between, what was refused, what would wake it.
fn parts(text: &[String]) -> (Vec<Line>, Vec<Shown>, Vec<Line>) {
    let (mut why, mut refused, mut wakes) = (Vec::new(), Vec::new(), Vec::new());
    let mut part = 0;
    // The first line says the status, which stands above.
    for line in text.iter().skip(1) {
        match line.as_str() {
            "Refused so far:" => part = 1,
            "What would wake it:" => part = 2,
            _ if line.trim_start().starts_with("look: closer") => {}
            _ => {
                let plain = Line { text: with_times(line.trim()), deep: line.starts_with("    ") };
                match part {
                    0 => why.push(plain),
                    1 => refused.push(plain.text),
                    _ => wakes.push(plain),
                }
            }
        }
    }
    (why, refused, wakes)
}

fn traced(traced: Traced) -> Trace {
    let picture = picture::trace(&traced.steps);
    let row = |step: Step| TraceRow {
        short: step.digest.as_str().trim_start_matches("sha256:").chars().take(12).collect::<String>().into(),
        refused: step.code != *"-",
        sequence: step.sequence,
        stage: step.stage,
        subject: step.subject,
        verdict: step.verdict,
    };
    Trace { picture, steps: traced.steps.into_iter().map(row).collect(), gaps: traced.gaps }
}

#[derive(Deserialize)]
struct Worked {
    leads: Vec<Lead>,
    investigations: Vec<Investigation>,
    briefs: Vec<Brief>,
}

#[derive(Deserialize)]
struct Lead {
    obligation_id: Shown,
    proposition_id: Option<Shown>,
    text: Shown,
    from: Shown,
}

#[derive(Deserialize)]
struct Investigation {
    obligation_id: Shown,
    episode_id: Option<Shown>,
    reasons: Vec<Shown>,
}

#[derive(Deserialize)]
struct Brief {
    obligation_id: Shown,
    proposition_id: Shown,
    status: Option<Shown>,
}

struct Item {
    id: Shown,
    obligation_id: Shown,
    text: Shown,
}

#[derive(Template)]
#[template(path = "work.html")]
struct Work {
    frame: Frame,
    leads: Vec<Item>,
    investigations: Vec<Item>,
    briefs: Vec<Item>,
}

pub(super) async fn work(door: &Arc<Door>, visit: Visit) -> Result<Response, Trouble> {
    let worked: Worked = visit.ask(door, Request::BriefcaseShow).await?;
    let lead = |lead: Lead| Item {
        id: lead.proposition_id.unwrap_or_default(),
        obligation_id: lead.obligation_id,
        text: format!("{} says {}", lead.from, lead.text).into(),
    };
    let investigation = |work: Investigation| {
        let reasons: Vec<&str> = work.reasons.iter().map(Shown::as_str).collect();
        Item {
            text: reasons.join("; ").into(),
            id: work.episode_id.unwrap_or_else(|| "due".into()),
            obligation_id: work.obligation_id,
        }
    };
    let brief = |brief: Brief| {
        let status = brief.status.unwrap_or_else(|| "claimed".into());
        Item {
            text: format!("{} is {status}", brief.proposition_id).into(),
            id: brief.proposition_id,
            obligation_id: brief.obligation_id,
        }
    };
    let leads = worked.leads.into_iter().map(lead).collect();
    let investigations = worked.investigations.into_iter().map(investigation).collect();
    let briefs = worked.briefs.into_iter().map(brief).collect();
    let frame = Frame::new(door, &visit, "Work", "work");
    Ok(rendered(&Work { frame, leads, investigations, briefs }))
}
