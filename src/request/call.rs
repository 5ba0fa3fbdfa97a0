//! Calls: whoever works outside has one exact action proposed, waits for what becomes of it, and redeems what a person
//! allowed. Which call is new, repeated or redeemable is the core's to say ([`closer_protocol::call`]).

use super::Answer;
use crate::error::Error;
use crate::space::Space;
use closer_adapters::McpServers;
use closer_adapters::mcp::Listed;
use closer_adapters::operations::{McpTool, OperationContract};
use closer_contracts::Digest;
use closer_contracts::fault::Fault;
use closer_contracts::id::{ActorId, ArtifactId, DecisionId, Key, ObligationId, OperationId};
use closer_contracts::item::{Item, ItemKind, OperationEntry, Standing};
use closer_contracts::refs::{ActorRef, Plain, ProducerRole};
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode};
use closer_contracts::work::ActionProposal;
use closer_protocol::call::{self, Call, Fate};
use closer_protocol::entry::ArtifactBody;
use closer_protocol::{Input, Reply, View, bench, observe};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The longest that one request waits for what becomes of a call, in milliseconds.
pub const WAIT_MS_MAX: u64 = 600_000;

/// What is asked about calls.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case", deny_unknown_fields)]
pub enum CallRequest {
    /// The tools that can be called: those that are registered and are listed by their servers as they were registered.
    Tools {},
    /// Has one exact action proposed.
    Propose {
        /// Which.
        operation: OperationId,
        /// With which arguments.
        arguments: Map<String, Value>,
        /// As whose call.
        as_of: CallOf,
        /// How long to wait for what becomes of it, in milliseconds.
        wait_ms: u64,
    },
    /// The same while observing is on: a call of an operation that nothing was ever granted for is recorded and forwarded.
    Observe {
        /// Which.
        operation: OperationId,
        /// With which arguments.
        arguments: Map<String, Value>,
        /// As whose call.
        as_of: CallOf,
        /// How long to wait for what becomes of a call that is governed, in milliseconds.
        wait_ms: u64,
    },
    /// Runs the stored action of a packet that a person allowed.
    Redeem {
        /// Which.
        packet: DecisionId,
        /// As whose call.
        as_of: CallOf,
        /// How long to wait for what becomes of it, in milliseconds.
        wait_ms: u64,
    },
    /// Whether a packet has been answered.
    Answered {
        /// Which.
        packet: DecisionId,
        /// How long to wait for the answer, in milliseconds.
        wait_ms: u64,
    },
    /// What became of a call.
    Await {
        /// Which.
        call_id: ArtifactId,
        /// How long to wait for it, in milliseconds.
        wait_ms: u64,
    },
}

/// What a call is made under.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallOf {
    /// The obligation; the one that the caller holds without one.
    pub obligation_id: Option<ObligationId>,
    /// The client's session.
    pub session: Key,
    /// What makes a repeat of the same message the same call.
    pub transport_key: Option<Key>,
}

/// Whether a call is governed in any case, or observed where nothing was ever granted for its operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Govern,
    Observe,
}

/// Answers what is asked about calls, for whoever calls.
pub(super) async fn answer(space: &dyn Space, caller: &ActorId, asked: CallRequest) -> Result<Answer, Error> {
    if let Some(answer) = not_a_caller(&space.view(), caller) {
        return Ok(answer);
    }
    let Some(servers) = space.servers() else {
        return Err(Error::Runtime(
            "calls are made in a running space: start it with `closer run` or `closer serve`".into(),
        ));
    };
    match asked {
        CallRequest::Tools {} => Ok(tools(&space.view(), servers).await),
        CallRequest::Propose { operation, arguments, as_of, wait_ms } => {
            propose(space, servers, caller, (&operation, arguments), as_of, (Mode::Govern, wait_ms)).await
        }
        CallRequest::Observe { operation, arguments, as_of, wait_ms } => {
            propose(space, servers, caller, (&operation, arguments), as_of, (Mode::Observe, wait_ms)).await
        }
        CallRequest::Redeem { packet, as_of, wait_ms } => redeem(space, servers, caller, &packet, as_of, wait_ms).await,
        CallRequest::Answered { packet, wait_ms } => Ok(answered(space, &packet, wait_ms).await),
        CallRequest::Await { call_id, wait_ms } => {
            let known = space.view().calls.get(&call_id).is_some_and(|known| known.call.caller == *caller);
            match known {
                true => Ok(awaited(space, servers, &call_id, false, wait_ms).await),
                false => Ok(Answer::not_found("call", call_id.as_str())),
            }
        }
    }
}

/// Calls are made by participants, and nobody else is spoken for here.
fn not_a_caller(view: &View, caller: &ActorId) -> Option<Answer> {
    let calls = view.state.identity(caller).is_some_and(|identity| {
        identity.standing == Standing::Current
            && identity.revoked_at.is_none()
            && identity.roles.contains(&ProducerRole::Participant)
    });
    let reason = "only a registered participant makes calls; name one with `--as`";
    let denial = || Denial::new(RefusalCode::Unauthenticated, CheckKind::Authentication, reason).of(caller);
    (!calls).then(|| Answer::refused(&[denial()]))
}

/// The operations that are tools of MCP servers.
fn registered(view: &View) -> Vec<(OperationEntry, McpTool)> {
    let items = view
        .state
        .items(ItemKind::Operation)
        .filter_map(|accepted| if let Item::Operation(entry) = &accepted.item { Some(entry.clone()) } else { None })
        .filter(|entry| entry.standing == Standing::Current);
    let tool = |entry: OperationEntry| match OperationContract::read(&entry.contract.0) {
        Ok(OperationContract::McpTool(tool)) => Some((entry, tool)),
        Ok(_) | Err(_) => None,
    };
    items.filter_map(tool).collect()
}

/// Every registered tool that its server lists as it was registered; and of each other one why it is not offered.
async fn tools(view: &View, servers: &McpServers) -> Answer {
    let mut lists: BTreeMap<String, Result<Vec<Listed>, String>> = BTreeMap::new();
    let (mut offered, mut withheld, mut text) = (Vec::new(), Vec::new(), Vec::new());
    for (entry, tool) in registered(view) {
        if !lists.contains_key(&tool.server) {
            lists.insert(tool.server.clone(), servers.listed(&tool.server).await);
        }
        let listed = match lists.get(&tool.server) {
            Some(Ok(list)) => list.iter().find(|listed| listed.name == tool.tool),
            Some(Err(_)) | None => None,
        };
        match listed.filter(|listed| listed.digest == tool.listed) {
            Some(listed) => {
                text.push(format!("{}  {}", entry.operation, tool.tool));
                offered.push(json!({
                    "operation": entry.operation, "server": tool.server, "tool": tool.tool,
                    "effect_class": entry.effect_class, "listing": listed.entry,
                }));
            }
            None => {
                let reason = match lists.get(&tool.server) {
                    Some(Err(reason)) => reason.clone(),
                    Some(Ok(_)) | None => "it is not listed as it was registered".to_owned(),
                };
                text.push(format!("{}  not offered: {reason}", entry.operation));
                withheld.push(json!({ "operation": entry.operation, "server": tool.server, "tool": tool.tool, "code": "endpoint_mismatch", "reason": reason }));
            }
        }
    }
    Answer::done(json!({ "tools": offered, "withheld": withheld }), text)
}

/// The obligation of a call: the one that is named, or the open one that the caller holds.
fn obligation(view: &View, caller: &ActorId, named: Option<&ObligationId>) -> Result<ObligationId, Box<Answer>> {
    if let Some(named) = named {
        return Ok(named.clone());
    }
    let mut open = super::obligation::every(view).filter(|obligation| obligation.status.is_open());
    let held =
        open.find(|held| view.ownership(&held.obligation_id).is_some_and(|ownership| ownership.owner == *caller));
    held.map(|held| held.obligation_id.clone()).ok_or_else(|| {
        let reason = format!("`{caller}` holds no open obligation; name one with `--obligation`");
        Answer::absent(reason).into()
    })
}

/// What a tool shows itself to be now; of one that is not listed, a digest that nothing is registered under.
async fn endpoint(
    servers: &McpServers,
    entry: &OperationEntry,
    tool: &McpTool,
) -> Result<(Digest, Option<Listed>), Fault> {
    let listed = servers.listed(&tool.server).await;
    let listed = listed.map_err(|reason| Fault::new(RefusalCode::NoAnswer, reason))?;
    let mut named = listed.into_iter().filter(|listed| listed.name == tool.tool);
    match (named.next(), named.next()) {
        (Some(listed), None) => Ok((McpTool::digest_as(&entry.contract, listed.digest)?, Some(listed))),
        (Some(_), Some(_)) | (None, _) => Ok((Digest::of(b"not listed once"), None)),
    }
}

fn tool_of(view: &View, operation: &OperationId) -> Option<(OperationEntry, McpTool)> {
    registered(view).into_iter().find(|(entry, _)| entry.operation == *operation)
}

/// Whether arguments are what the tool's own schema takes.
fn fits(listed: &Listed, arguments: &Map<String, Value>) -> Result<(), Fault> {
    let schema = Value::Object(listed.input_schema.clone());
    let validator = jsonschema::validator_for(&schema);
    let validator = validator.map_err(|error| Fault::schema(format!("the tool's schema cannot be read: {error}")))?;
    let arguments = Value::Object(arguments.clone());
    validator.validate(&arguments).map_err(|error| {
        let path = error.instance_path().to_string().trim_start_matches('/').replace('/', ".");
        let fault = Fault::schema(error.to_string());
        if path.is_empty() { fault } else { fault.within(path) }
    })
}

async fn propose(
    space: &dyn Space,
    servers: &McpServers,
    caller: &ActorId,
    (operation, arguments): (&OperationId, Map<String, Value>),
    as_of: CallOf,
    (mode, wait_ms): (Mode, u64),
) -> Result<Answer, Error> {
    let view = space.view();
    let Some((entry, tool)) = tool_of(&view, operation) else {
        return Ok(Answer::not_found("tool of a server", operation.as_str()));
    };
    let (endpoint, listed) = match endpoint(servers, &entry, &tool).await {
        Ok(endpoint) => endpoint,
        Err(fault) => return Ok(Answer::refused(&[fault.into()])),
    };
    // What a changed tool would take is not asked: that it has changed is what is told.
    let fits = listed.filter(|listed| listed.digest == tool.listed).map_or(Ok(()), |listed| fits(&listed, &arguments));
    let proposal = match fits.and_then(|()| tool.proposal(&entry, arguments)) {
        Ok(proposal) => proposal,
        Err(fault) => return Ok(Answer::refused(&[fault.into()])),
    };
    let call = match drafted(space, caller, (proposal, endpoint, None), as_of) {
        Ok(call) => call,
        Err(answer) => return Ok(*answer),
    };
    match mode == Mode::Observe && observe::applies(&space.view(), operation, &space.moment()) {
        true => super::observe::forwarded(space, (servers, &tool), super::observe::call_of(space, call)).await,
        false => make(space, servers, call, wait_ms).await,
    }
}

async fn redeem(
    space: &dyn Space,
    servers: &McpServers,
    caller: &ActorId,
    packet: &DecisionId,
    as_of: CallOf,
    wait_ms: u64,
) -> Result<Answer, Error> {
    let view = space.view();
    let stored = view.packets.get(packet).and_then(|packet| bench::proposed(&packet.packet.body)).cloned();
    let Some(proposal) = stored else {
        return Ok(Answer::not_found("packet that asks for an action", packet.as_str()));
    };
    let Some((entry, tool)) = tool_of(&view, &proposal.operation) else {
        return Ok(Answer::not_found("tool of a server", proposal.operation.as_str()));
    };
    let endpoint = match endpoint(servers, &entry, &tool).await {
        Ok((endpoint, _)) => endpoint,
        Err(fault) => return Ok(Answer::refused(&[fault.into()])),
    };
    match drafted(space, caller, (proposal, endpoint, Some(packet.clone())), as_of) {
        Ok(call) => make(space, servers, call, wait_ms).await,
        Err(answer) => Ok(*answer),
    }
}

/// The call that an exact action is, for the obligation that it is made for.
fn drafted(
    space: &dyn Space,
    caller: &ActorId,
    (proposal, endpoint, redeems): (ActionProposal, Digest, Option<DecisionId>),
    as_of: CallOf,
) -> Result<Call, Box<Answer>> {
    let obligation_id = obligation(&space.view(), caller, as_of.obligation_id.as_ref())?;
    Ok(Call {
        call_id: ArtifactId::new(space.fresh("call")),
        caller: caller.clone(),
        obligation_id,
        session: as_of.obligation_id.is_none().then_some(as_of.session),
        transport_key: as_of.transport_key,
        proposal,
        endpoint,
        redeems,
    })
}

async fn make(space: &dyn Space, servers: &McpServers, call: Call, wait_ms: u64) -> Result<Answer, Error> {
    let call_id = call.call_id.clone();
    let producer = ActorRef { actor_id: call.caller.clone(), role: ProducerRole::Participant };
    let reply = match space.artifact(ArtifactBody::from(call), producer, None) {
        Ok(submission) => space.submit(Input::Artifact(submission)).await?,
        Err(fault) => Reply::Refused(vec![fault.into()]),
    };
    let counts = match &reply {
        Reply::Refused(denials) => return Ok(Answer::refused(denials)),
        Reply::Recorded(references) => references.first().map(|reference| reference.id.clone()),
    };
    let counts = counts.unwrap_or(call_id.clone());
    let repeated = counts != call_id;
    Ok(awaited(space, servers, &counts, repeated, wait_ms).await)
}

/// Waits until a packet is answered.
async fn answered(space: &dyn Space, packet: &DecisionId, wait_ms: u64) -> Answer {
    let until = Instant::now() + Duration::from_millis(wait_ms.min(WAIT_MS_MAX));
    loop {
        let view = space.view();
        let is_answered = view.decisions.get(packet).is_some_and(|decisions| !decisions.is_empty());
        let left = until.saturating_duration_since(Instant::now());
        if is_answered || left.is_zero() {
            return Answer::done(json!({ "packet_id": packet, "answered": is_answered }), Vec::new());
        }
        if tokio::time::timeout(left, space.changed(&view)).await.is_err() {
            tracing::debug!(%packet, "nobody has answered yet");
        }
    }
}

/// Waits until something has become of a call, and tells it.
async fn awaited(
    space: &dyn Space,
    servers: &McpServers,
    call_id: &ArtifactId,
    repeated: bool,
    wait_ms: u64,
) -> Answer {
    let until = Instant::now() + Duration::from_millis(wait_ms.min(WAIT_MS_MAX));
    loop {
        let view = space.view();
        let Some(fate) = call::fate(&view, call_id) else {
            return Answer::not_found("call", call_id.as_str());
        };
        let left = until.saturating_duration_since(Instant::now());
        if fate != Fate::UnderWay || left.is_zero() {
            return told(servers, call_id, &fate, repeated);
        }
        if tokio::time::timeout(left, space.changed(&view)).await.is_err() {
            tracing::debug!(%call_id, "whoever called has waited long enough");
        }
    }
}

/// A response as whoever called gets it: whole while it is held, else as the record keeps it.
fn handed(servers: &McpServers, attempt_id: &closer_contracts::id::AttemptId, response: Option<&Plain>) -> Value {
    let recorded = || response?.0.get("result")?.as_str().map(str::to_owned);
    let text = servers.answer(attempt_id).or_else(recorded);
    let whole = text.and_then(|text| serde_json::from_str(&text).ok());
    whole.or_else(|| response.map(|response| response.0.clone())).unwrap_or(Value::Null)
}

fn told(servers: &McpServers, call_id: &ArtifactId, fate: &Fate, repeated: bool) -> Answer {
    let attempted = |word: &str, attempt_id: &closer_contracts::id::AttemptId, response: Option<&Plain>| {
        json!({
            "call_id": call_id, "fate": word, "repeated": repeated, "attempt_id": attempt_id,
            "response": handed(servers, attempt_id, response),
        })
    };
    let with = |mut data: Value, name: &str, value: Value| {
        if let Value::Object(members) = &mut data {
            members.insert(name.to_owned(), value);
        }
        data
    };
    match fate {
        Fate::UnderWay => Answer::done(
            json!({ "call_id": call_id, "fate": "under_way", "repeated": repeated }),
            vec![format!("{call_id} is under way")],
        ),
        Fate::Done { attempt_id, response } => Answer::done(
            attempted("done", attempt_id, response.as_ref()),
            vec![format!("{call_id} ran as {attempt_id}")],
        ),
        Fate::Unknown { attempt_id, response, reason } => {
            let data = with(attempted("unknown", attempt_id, response.as_ref()), "reason", json!(reason));
            let data = with(data, "code", json!(RefusalCode::OutcomeUnknown));
            Answer::done(data, vec![format!("{call_id} ran as {attempt_id}; what became of it is not known: {reason}")])
        }
        Fate::NoEffect { attempt_id, response, reason } => {
            let data = with(attempted("no_effect", attempt_id, response.as_ref()), "reason", json!(reason));
            Answer::done(data, vec![format!("{call_id} had no effect: {reason}")])
        }
        Fate::OnTheBench(packet) => Answer::done(
            json!({
                "call_id": call_id, "fate": "on_the_bench", "repeated": repeated, "packet_id": packet,
                "code": RefusalCode::MissingAuthority,
            }),
            vec![format!("{call_id} waits for a person: {packet}")],
        ),
        Fate::Refused { code, reason } => {
            Answer::refused(&[Denial::new(*code, CheckKind::Authority, reason.as_str()).of(call_id)])
        }
    }
}
