//! One packet as a page, and what changed in it since the person last looked.

use crate::http::Door;
use crate::request::Request;
use crate::space::Space;
use crate::web::decisions::{self, Given};
use crate::web::frame::Frame;
use crate::web::memory::Look;
use crate::web::shown::{Shown, When};
use crate::web::trouble::{Trouble, rendered};
use crate::web::visit::Visit;
use askama::Template;
use axum::response::Response;
use closer_contracts::audit::DecisionType;
use closer_contracts::id::{DecisionId, Key};
use closer_contracts::time::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a page says beside the packet.
pub(super) enum Note {
    None,
    /// An answer was not recorded.
    Problem(String),
    /// The answer is asked for once more.
    Again,
}

#[derive(Deserialize)]
struct Told {
    packet: Body,
    status: Shown,
    digest: Shown,
    answered_as: BTreeMap<String, Option<DecisionType>>,
}

#[derive(Deserialize)]
struct Body {
    obligation_ids: Vec<Shown>,
    question: Shown,
    recommendation: Option<Recommendation>,
    recommendation_reason: Option<Shown>,
    alternatives: Vec<Alternative>,
    evidence_refs: Vec<Shown>,
    dissent: Vec<Dissent>,
    remaining_uncertainty: Vec<Shown>,
    requested_authorization: Option<Value>,
    deadline: Option<String>,
    while_waiting: Waiting,
}

#[derive(Deserialize)]
struct Recommendation {
    option_id: Shown,
    text: Shown,
}

#[derive(Deserialize)]
struct Alternative {
    option_id: String,
    text: Shown,
    consequence: Shown,
}

#[derive(Deserialize)]
struct Dissent {
    actor: DissentActor,
    reason_class: Shown,
    text: Shown,
}

#[derive(Deserialize)]
#[serde(transparent)]
struct DissentActor(Shown);

impl std::fmt::Display for DissentActor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Deserialize)]
struct Waiting {
    permitted: Vec<Shown>,
    blocked: Vec<Shown>,
    consequence: Shown,
}

struct Offered {
    id: Shown,
    text: Shown,
    consequence: Shown,
    kind: &'static str,
    kind_words: &'static str,
    sign: &'static str,
}

#[derive(Deserialize)]
struct Proposed {
    allowed_operations: Vec<Shown>,
    targets: Vec<Target>,
    parameter_bounds: Vec<Bound>,
    resource_bounds: BTreeMap<String, Value>,
    expiry: String,
}

#[derive(Deserialize)]
struct Target {
    r#type: Shown,
    account: Shown,
    address: Shown,
}

#[derive(Deserialize)]
struct Bound {
    parameter: Shown,
    at_least: Option<i64>,
    at_most: Option<i64>,
    one_of: Option<Vec<Value>>,
}

struct BoundWords {
    parameter: Shown,
    words: Shown,
}

struct Authority {
    operations: Vec<Shown>,
    targets: Vec<Target>,
    bounds: Vec<BoundWords>,
    often: Shown,
    until: When,
    limits: Vec<(Shown, Shown)>,
}

struct Change {
    what: &'static str,
    text: Shown,
    gone: bool,
}

#[derive(Template)]
#[template(path = "packet.html")]
struct Page {
    frame: Frame,
    id: Shown,
    digest: Shown,
    waiting: bool,
    overdue: bool,
    standing: Shown,
    deadline: Option<When>,
    consequence: Shown,
    question: Shown,
    problem: Option<Shown>,
    again: Option<()>,
    recommended: Option<Shown>,
    no_recommendation: Shown,
    changes: Vec<Change>,
    options: Vec<Offered>,
    grant: Option<Authority>,
    obligations: Vec<Shown>,
    related: Vec<(Shown, Shown)>,
    evidence: Vec<Shown>,
    evidence_version: Shown,
    unknown: Vec<Shown>,
    dissent: Vec<Dissent>,
    permitted: Vec<Shown>,
    blocked: Vec<Shown>,
    answers: Vec<Given>,
    effort: Option<Shown>,
    /// How many questions like it were answered before.
    like: usize,
    granted: bool,
    parameters: Vec<(Shown, Shown)>,
}

/// The page of the packet that the path names.
pub(super) async fn page(door: &Arc<Door>, visit: &Visit, note: Note) -> Result<Response, Trouble> {
    let id = DecisionId::from(visit.place("packet_id"));
    let data = visit.data(door, Request::BenchShow { decision_id: id.clone() }).await?;
    let now = door.now();
    let before = door.memory.look(visit.identity(), &id);
    let body = data.get("packet").cloned().unwrap_or_default();
    let changes = before.as_ref().map(|look| changes(&look.packet, &body)).unwrap_or_default();
    let told: Told = serde_json::from_value(data).map_err(|error| Trouble::unexpected(&error.to_string()))?;
    let waiting = matches!(told.status.as_str(), "open" | "overdue");
    let answers = decisions::given(door, visit, Some(id.clone())).await?;
    let look = looked(door, visit, &id, told.digest.as_str(), &body, &now);
    let related = related(door, &id, &told.packet.obligation_ids);
    let grant = told.packet.requested_authorization.as_ref().and_then(|asked| authority(asked, &now));
    let (problem, again) = match note {
        Note::None => (None, None),
        Note::Problem(text) => (Some(text.into()), None),
        Note::Again => (None, Some(())),
    };
    let frame = Frame {
        stop_query: told
            .packet
            .obligation_ids
            .first()
            .map_or_else(Shown::default, |id| format!("?obligation={id}").into()),
        ..Frame::new(door, visit, told.packet.question.clone(), "bench")
    };
    let evidence_version = version_shown(door, &id);
    let packet = told.packet;
    Ok(rendered(&Page {
        frame,
        id: id.as_str().into(),
        digest: told.digest,
        waiting,
        overdue: told.status == *"overdue",
        standing: standing(told.status.as_str()).into(),
        deadline: When::of(packet.deadline.as_deref(), &now),
        consequence: packet.while_waiting.consequence,
        question: packet.question,
        problem,
        again,
        recommended: packet.recommendation.map(|one| format!("{} ({})", one.text, one.option_id).into()),
        no_recommendation: packet.recommendation_reason.unwrap_or_default(),
        changes,
        options: offered(packet.alternatives, &told.answered_as),
        grant,
        obligations: packet.obligation_ids,
        related,
        evidence: packet.evidence_refs,
        evidence_version,
        unknown: packet.remaining_uncertainty,
        dissent: packet.dissent,
        permitted: packet.while_waiting.permitted,
        blocked: packet.while_waiting.blocked,
        answers,
        effort: Some(effort(&look, &now)),
        like: door.space.view().packets.get(&id).map_or(0, |packet| crate::request::like(&door.space.view(), packet)),
        granted: visit.query("granted").is_some(),
        parameters: parameters(door, &id),
    }))
}

fn standing(status: &str) -> String {
    match status {
        "answered" => "This was answered.".to_owned(),
        "refreshed" => "A newer version replaced this.".to_owned(),
        "withdrawn" => "This was taken back: it no longer needs an answer.".to_owned(),
        other => other.to_owned(),
    }
}

fn offered(alternatives: Vec<Alternative>, kinds: &BTreeMap<String, Option<DecisionType>>) -> Vec<Offered> {
    let one = |option: Alternative| {
        let (kind, kind_words, sign) = kind(kinds.get(&option.option_id).copied().flatten());
        Offered {
            id: option.option_id.into(),
            text: option.text,
            consequence: option.consequence,
            kind,
            kind_words,
            sign,
        }
    };
    alternatives.into_iter().map(one).collect()
}

/// What kind of answer an option is: a word for the style sheet, words for people, and a sign.
pub(crate) const fn kind(kind: Option<DecisionType>) -> (&'static str, &'static str, &'static str) {
    match kind {
        Some(DecisionType::ScopedAuthorization) => ("authorization", "Gives authority", "✓"),
        Some(DecisionType::Rejection) => ("rejection", "Refuses", "✕"),
        Some(DecisionType::InvestigationRequest) => ("investigation", "Asks for more", "?"),
        Some(DecisionType::Preference) => ("preference", "States a preference", "→"),
        Some(DecisionType::Acknowledgment) | None => ("acknowledgment", "Says it was seen; grants nothing", "•"),
    }
}

fn authority(asked: &Value, now: &Timestamp) -> Option<Authority> {
    let grant = asked.pointer("/action/grant").or_else(|| asked.get("grant"))?;
    let proposed: Proposed = serde_json::from_value(grant.clone()).ok()?;
    let amount = |name: &str| proposed.resource_bounds.get(name).and_then(Value::as_u64);
    let often = match amount("calls") {
        Some(1) => "once".to_owned(),
        Some(calls) => format!("at most {calls} times"),
        None => "without a limit of its own".to_owned(),
    };
    let limits = ["tokens", "cost_micros", "time_ms"].into_iter().filter_map(|name| {
        let amount = amount(name)?;
        let currency = proposed.resource_bounds.get("currency").and_then(Value::as_str).unwrap_or_default();
        let (name, words) = match name {
            "cost_micros" => ("Cost", format!("{}.{:06} {currency}", amount / 1_000_000, amount % 1_000_000)),
            "time_ms" => ("Time", format!("{} s", amount / 1_000)),
            _ => ("Tokens", amount.to_string()),
        };
        Some((Shown::from(name), Shown::from(words)))
    });
    let limits = limits.collect();
    let words = |bound: &Bound| {
        let mut words: Vec<String> = Vec::new();
        words.extend(bound.at_least.map(|least| format!("at least {least}")));
        words.extend(bound.at_most.map(|most| format!("at most {most}")));
        if let Some(values) = &bound.one_of {
            let values: Vec<String> = values.iter().map(Value::to_string).collect();
            words.push(format!("exactly {}", values.join(" or ")));
        }
        words.join(", ")
    };
    Some(Authority {
        often: often.into(),
        limits,
        bounds: proposed
            .parameter_bounds
            .iter()
            .map(|bound| BoundWords { parameter: bound.parameter.clone(), words: words(bound).into() })
            .collect(),
        operations: proposed.allowed_operations,
        targets: proposed.targets,
        until: When::of(Some(&proposed.expiry), now)?,
    })
}

/// Notes that the page was opened, and gives what is remembered with it.
fn looked(door: &Door, visit: &Visit, id: &DecisionId, digest: &str, body: &Value, now: &Timestamp) -> Look {
    let words = words_of(body);
    let fresh = Look {
        first_at: now.clone(),
        last_at: now.clone(),
        opens: 0,
        words_shown: 0,
        digest: String::new(),
        packet: Value::Null,
        answered_at: None,
        later_until: None,
    };
    door.memory.change(visit.identity(), id, &fresh, |look| {
        look.opens = look.opens.saturating_add(1);
        look.words_shown = look.words_shown.saturating_add(words);
        look.last_at = now.clone();
        digest.clone_into(&mut look.digest);
        look.packet = body.clone();
    });
    door.memory.look(visit.identity(), id).unwrap_or(fresh)
}

/// How many words a packet shows.
fn words_of(value: &Value) -> u64 {
    match value {
        Value::String(text) => u64::try_from(text.split_whitespace().count()).unwrap_or(0),
        Value::Array(items) => items.iter().map(words_of).sum(),
        Value::Object(members) => members.values().map(words_of).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn effort(look: &Look, now: &Timestamp) -> Shown {
    let times = if look.opens == 1 { "once".to_owned() } else { format!("{} times", look.opens) };
    let first = When::new(&look.first_at, now).relative;
    let answered = look.answered_at.as_ref().map_or_else(String::new, |at| {
        let seconds = at.unix_ms().saturating_sub(look.first_at.unix_ms()) / 1_000;
        format!(", answered {seconds} seconds after the first look")
    });
    format!("What this took of you: opened {times}, first {first}{answered}; {} words shown.", look.words_shown).into()
}

/// What is new and what is gone between two versions: evidence, alternatives, what is not known, the grant.
fn changes(before: &Value, now: &Value) -> Vec<Change> {
    let lists: [(&'static str, &str); 4] = [
        ("evidence", "/evidence_refs"),
        ("alternative", "/alternatives"),
        ("not known", "/remaining_uncertainty"),
        ("question", "/question"),
    ];
    let mut found = Vec::new();
    for (what, place) in lists {
        differ(what, before.pointer(place), now.pointer(place), &mut found);
    }
    let (was, is) = (grant_lines(before), grant_lines(now));
    differ("what would be allowed", Some(&was), Some(&is), &mut found);
    found
}

/// What a packet's grant would allow, one entry for each bound of it.
fn grant_lines(packet: &Value) -> Value {
    let asked = packet.get("requested_authorization").unwrap_or(&Value::Null);
    let grant = asked.pointer("/action/grant").or_else(|| asked.get("grant")).unwrap_or(&Value::Null);
    let mut lines = Vec::new();
    for (name, value) in grant.as_object().into_iter().flatten() {
        let items = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        lines.extend(items.iter().map(|item| Value::String(format!("{name}: {}", plain(item)))));
    }
    Value::Array(lines)
}

/// A value without the signs of JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(members) => {
            let told = members.iter().filter(|(_, value)| !value.is_null());
            told.map(|(name, value)| format!("{name} {}", plain(value))).collect::<Vec<_>>().join(", ")
        }
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(" or "),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn differ(what: &'static str, before: Option<&Value>, now: Option<&Value>, found: &mut Vec<Change>) {
    let items = |value: Option<&Value>| match value {
        Some(Value::Null) | None => Vec::new(),
        Some(value) => value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]),
    };
    let (before, now) = (items(before), items(now));
    let text = |value: &Value| {
        let text = value.as_str().or_else(|| value.get("text")?.as_str());
        text.map_or_else(|| plain(value).into(), Shown::new)
    };
    found.extend(now.iter().filter(|item| !before.contains(item)).map(|item| Change {
        what,
        text: text(item),
        gone: false,
    }));
    found.extend(before.iter().filter(|item| !now.contains(item)).map(|item| Change {
        what,
        text: text(item),
        gone: true,
    }));
}

/// Other packets that wait about the same obligations, each to be answered by itself.
fn related(door: &Door, id: &DecisionId, obligations: &[Shown]) -> Vec<(Shown, Shown)> {
    let view = door.space.view();
    let about = |ids: &[closer_contracts::id::ObligationId]| {
        ids.iter().any(|id| obligations.iter().any(|own| own == id.as_str()))
    };
    let waiting = view.packets.iter().filter(|(other, packet)| {
        *other != id && crate::request::is_waiting(packet) && about(&packet.packet.body.obligation_ids)
    });
    waiting.map(|(other, packet)| (other.as_str().into(), packet.packet.body.question.as_str().into())).collect()
}

/// The digest of the evidence that an answer cites.
fn version_shown(door: &Door, id: &DecisionId) -> Shown {
    let view = door.space.view();
    view.packets.get(id).map(|packet| packet.evidence_version.to_string().into()).unwrap_or_default()
}

/// The digest of a packet's newest version.
pub(super) fn digest_of(door: &Door, id: &DecisionId) -> Option<String> {
    let view = door.space.view();
    view.packets.get(id).map(|packet| packet.packet.payload.content_digest().to_string())
}

/// Whether there is such a packet.
pub(super) fn exists(door: &Door, id: &DecisionId) -> bool {
    door.space.view().packets.contains_key(id)
}

/// When a packet is to be answered.
pub(super) fn deadline(door: &Door, id: &DecisionId) -> Option<Timestamp> {
    door.space.view().packets.get(id)?.packet.body.deadline.clone()
}

/// The values that a person put in place of the proposed action's, where they differ and the answer allows it. Text that is
/// no JSON is text, as on the command line.
pub(super) fn amended(door: &Door, visit: &Visit, id: &DecisionId, option: &str) -> BTreeMap<Key, Value> {
    let view = door.space.view();
    let Some(packet) = view.packets.get(id).filter(|_| authorizes(door, id, option)) else { return BTreeMap::new() };
    let proposed = closer_protocol::bench::proposed(&packet.packet.body);
    let parameters = proposed.iter().flat_map(|proposal| &proposal.parameters).enumerate();
    let changed = parameters.filter_map(|(index, (name, shown))| {
        let text = visit.field(&format!("amend-{index}"))?;
        let wanted = match shown.as_text() {
            Some(_) => Value::String(text.to_owned()),
            None => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())),
        };
        (wanted != shown.0).then(|| (name.clone(), wanted))
    });
    changed.collect()
}

/// The parameters of the proposed action, as a person may change them.
fn parameters(door: &Door, id: &DecisionId) -> Vec<(Shown, Shown)> {
    let view = door.space.view();
    let proposed = view.packets.get(id).and_then(|packet| closer_protocol::bench::proposed(&packet.packet.body));
    let all = proposed.iter().flat_map(|proposal| &proposal.parameters);
    all.map(|(name, value)| {
        (name.as_str().into(), value.as_text().map_or_else(|| value.0.to_string().into(), Shown::new))
    })
    .collect()
}

/// Whether an option of a packet gives authority.
pub(super) fn authorizes(door: &Door, id: &DecisionId, option: &str) -> bool {
    let view = door.space.view();
    let kind = view.packets.get(id).and_then(|packet| crate::request::decision_type(packet, option));
    kind == Some(DecisionType::ScopedAuthorization)
}

/// How many obligations are kept open.
pub(super) fn open_obligations(door: &Door) -> usize {
    door.space.view().state.open_obligations().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_new_and_what_is_gone_is_told_apart() {
        let packet = |evidence: &[&str], most: u64, expiry: &str| {
            json!({
                "question": "May it?", "evidence_refs": evidence, "alternatives": [{ "option_id": "allow", "text": "Allow" }],
                "requested_authorization": { "action": { "grant": { "at_most": most, "expiry": expiry } } },
            })
        };
        assert!(changes(&packet(&["a"], 1, "x"), &packet(&["a"], 1, "x")).is_empty());
        let found = changes(&packet(&["a", "b"], 1, "x"), &packet(&["b", "c"], 2, "y"));
        let told: Vec<(&str, &str, bool)> =
            found.iter().map(|change| (change.what, change.text.as_str(), change.gone)).collect();
        assert_eq!(
            told,
            [
                ("evidence", "c", false),
                ("evidence", "a", true),
                ("what would be allowed", "at_most: 2", false),
                ("what would be allowed", "expiry: y", false),
                ("what would be allowed", "at_most: 1", true),
                ("what would be allowed", "expiry: x", true),
            ]
        );
    }
}
