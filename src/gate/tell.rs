//! What a client is told of a call: the tool's own answer where it ran, and what became of it in words and in `_meta`.

use crate::request::{Answer, Outcome};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value, json};

/// What stands before the names of everything that the gate itself says in `_meta`.
const OWN: &str = "closer/";

/// An answer of the daemon as the result of a tool.
pub(super) fn result(answer: &Answer) -> CallToolResult {
    let data = &answer.data;
    let text = |name: &str| data.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    if answer.outcome != Outcome::Done {
        let code = answer.code.map(|code| code.as_str().to_owned());
        let reason = answer.text.first().cloned().unwrap_or_default();
        let reason = reason.strip_prefix("refused: ").map(str::to_owned).unwrap_or(reason);
        return said(&reason, json!({ "code": code }));
    }
    let own = json!({
        "call": data.get("call_id"), "attempt": data.get("attempt_id"), "fate": data.get("fate"),
        "packet": data.get("packet_id"), "code": data.get("code"), "repeated": data.get("repeated"),
    });
    match text("fate").as_str() {
        "done" => {
            let repeated = data.get("repeated") == Some(&Value::Bool(true));
            let note = repeated.then(|| {
                let attempt = text("attempt_id");
                format!("repeated: this was done before as {attempt} and is not done again; this is its first result")
            });
            ran(data.get("response"), note.as_deref(), &own, false)
        }
        "unknown" => {
            let (attempt, reason) = (text("attempt_id"), text("reason"));
            let note = format!(
                "outcome_unknown: it was sent as {attempt}, and whether it took effect is not established: {reason}. Do not send it again; look at the target, or ask a person to confirm it."
            );
            ran(data.get("response"), Some(&note), &own, true)
        }
        "no_effect" => ran(data.get("response"), Some(&format!("no effect: {}", text("reason"))), &own, true),
        "ungoverned" => {
            let own = json!({
                "mode": "observe", "fate": "ungoverned", "foreseen": data.get("foreseen"),
                "foreseen_code": data.get("foreseen_code"), "code": data.get("code"),
            });
            let unknown = data.get("reason").and_then(Value::as_str).map(|reason| {
                format!("outcome_unknown: it was forwarded ungoverned, and nothing says what became of it: {reason}. Look at the target.")
            });
            ran(data.get("response"), unknown.as_deref(), &own, unknown.is_some())
        }
        "on_the_bench" => {
            let packet = text("packet_id");
            let note = format!(
                "missing_authority: nothing was done; a person is asked to allow exactly this call, as packet {packet}. Once it is allowed, call closer_redeem with this packet, or make the same call again."
            );
            said(&note, own)
        }
        "under_way" => {
            let call = text("call_id");
            said(&format!("under way: {call} has not come to its end yet; call closer_await with it"), own)
        }
        _ => said("the answer cannot be read", own),
    }
}

/// Something that the gate says itself: nothing ran.
pub(super) fn said(text: &str, own: Value) -> CallToolResult {
    let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
    mark(&mut result, &own);
    result
}

/// The tool's own answer, with what the gate has to say after it.
fn ran(response: Option<&Value>, note: Option<&str>, own: &Value, failed: bool) -> CallToolResult {
    let parsed = response.and_then(|response| serde_json::from_value::<CallToolResult>(response.clone()).ok());
    let whole = parsed.filter(|_| response.is_some_and(|response| response.get("content").is_some()));
    let mut result = whole.unwrap_or_else(|| {
        let shown = response.filter(|response| !response.is_null()).map(ToString::to_string);
        let is_error = response.and_then(|response| response.get("is_error")) == Some(&Value::Bool(true));
        let content = shown.map(ContentBlock::text).into_iter().collect();
        if is_error { CallToolResult::error(content) } else { CallToolResult::success(content) }
    });
    if let Some(note) = note {
        result.content.push(ContentBlock::text(note));
    }
    if failed {
        result.is_error = Some(true);
        result.structured_content = None;
    }
    mark(&mut result, own);
    result
}

/// Puts the gate's own members into `_meta`; nobody else's words stand under its name.
fn mark(result: &mut CallToolResult, own: &Value) {
    let mut meta: Map<String, Value> =
        result.meta.take().and_then(|meta| serde_json::to_value(meta).ok()).and_then(object).unwrap_or_default();
    meta.retain(|name, _| !name.starts_with(OWN));
    for (name, value) in own.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
        meta.insert(format!("{OWN}{name}"), value.clone());
    }
    result.meta = serde_json::from_value(Value::Object(meta)).ok();
}

fn object(value: Value) -> Option<Map<String, Value>> {
    if let Value::Object(members) = value { Some(members) } else { None }
}
