//! The MCP side: lists what can be called, turns each call into a request, and tells what came of it.

use super::{daemon, tell};
use crate::deployment::Deployment;
use crate::error::Error;
use crate::request::{Answer, Asked, CallOf, CallRequest, ObserveRequest, Outcome, Request, WAIT_MS_MAX};
use crate::socket;
use closer_contracts::id::{ActorId, ArtifactId, DecisionId, Key, ObligationId, OperationId};
use closer_contracts::time::Timestamp;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, ListToolsResult, NumberOrString,
    PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The gate's own tools.
const REDEEM: &str = "closer_redeem";
const AWAIT: &str = "closer_await";
/// Where a client names the key of a message that it may send again, and how long it wants to be held.
const KEY: &str = "closer/key";
const WAIT: &str = "closer/wait_s";
/// How often a daemon that is gone is asked again, and after which pause.
const ASKED_AGAIN_MAX: usize = 4;
const PAUSE: Duration = Duration::from_millis(200);
/// How long a call that runs is waited for, beyond what the client asks for.
const RUN_MS: u64 = 120_000;
/// How long one request to the daemon is held; a client that wants to is told of progress in between.
const SLICE_MS: u64 = 5_000;

/// What a gate does with a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// Has it governed.
    Govern,
    /// Has it observed where nothing was ever granted for its operation, as long as observing is on.
    Observe {
        /// When that is to end.
        until: Option<Timestamp>,
        /// Or how many days after it was first started.
        days: Option<u64>,
    },
}

/// One client's gate.
#[derive(Debug, Clone)]
pub struct Gate {
    directory: PathBuf,
    store: PathBuf,
    identity: ActorId,
    obligation: Option<ObligationId>,
    session: Key,
    wait_s: u64,
    mode: Mode,
}

impl Gate {
    /// A gate for a client that calls as `identity`.
    ///
    /// # Errors
    /// What is wrong with the deployment file.
    pub fn new(
        directory: PathBuf,
        identity: ActorId,
        obligation: Option<ObligationId>,
        session: Key,
        wait_s: u64,
    ) -> Result<Self, Error> {
        let store = Deployment::store_of(&directory)?;
        Ok(Self { directory, store, identity, obligation, session, wait_s, mode: Mode::Govern })
    }

    /// The same gate in another mode.
    #[must_use]
    pub fn with_mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// Begins observing, as whoever runs the space, where that is this gate's mode: what is to be said about it.
    async fn begin(&self) -> Result<Option<String>, Error> {
        let Mode::Observe { until, days } = self.mode.clone() else { return Ok(None) };
        let request = Request::Observe(ObserveRequest::Begin { until, days });
        let answer = socket::ask(&self.store, &Asked { identity: None, request }).await?;
        let said = answer.text.join("; ");
        match answer.outcome {
            Outcome::Done => Ok(Some(said)),
            Outcome::Refused | Outcome::NotFound | Outcome::Corruption | Outcome::Failed => Err(Error::World(said)),
        }
    }

    /// Asks the daemon. Where it is gone it is started and asked again: a call is known again by its key.
    async fn ask(&self, request: CallRequest) -> Result<Answer, Error> {
        let asked = Asked { identity: Some(self.identity.clone()), request: Request::Call(request) };
        let mut answered = socket::ask(&self.store, &asked).await;
        for _ in 0..ASKED_AGAIN_MAX {
            if !matches!(answered, Err(Error::Unreachable { .. })) {
                break;
            }
            // A process that has just been killed may still seem to listen.
            tokio::time::sleep(PAUSE).await;
            daemon::ensure(&self.directory).await?;
            answered = socket::ask(&self.store, &asked).await;
        }
        answered
    }

    async fn offered(&self) -> Result<Vec<Offered>, ErrorData> {
        let answer = self.ask(CallRequest::Tools {}).await.map_err(|error| internal(&error))?;
        if answer.outcome != Outcome::Done {
            return Err(ErrorData::internal_error(answer.text.join("; "), None));
        }
        let mut known = Vec::new();
        for (member, is_offered) in [("tools", true), ("withheld", false)] {
            let listed = answer.data.get(member).and_then(Value::as_array).into_iter().flatten();
            known.extend(listed.filter_map(|entry| Offered::of(entry, is_offered)));
        }
        Ok(named(known))
    }

    async fn call(&self, operation: OperationId, arguments: Map<String, Value>, held: &Held<'_>) -> CallToolResult {
        let (as_of, wait_ms) = (self.as_of(held), SLICE_MS);
        let request = match self.mode {
            Mode::Govern => CallRequest::Propose { operation, arguments, as_of, wait_ms },
            Mode::Observe { .. } => CallRequest::Observe { operation, arguments, as_of, wait_ms },
        };
        let answer = self.followed(request, held).await;
        let packet = match &answer {
            Ok(answer) => answer.data.get("packet_id").and_then(Value::as_str).map(str::to_owned),
            Err(_) => None,
        };
        match packet.filter(|_| held.wait_s > 0) {
            None => told(answer),
            Some(packet) => self.allowed(&packet, answer, held).await,
        }
    }

    /// Holds a call until a person has answered or the time is over, and runs it where it was allowed.
    async fn allowed(&self, packet: &str, asked: Result<Answer, Error>, held: &Held<'_>) -> CallToolResult {
        while !held.is_over() {
            let request = CallRequest::Answered { packet: DecisionId::from(packet), wait_ms: held.slice_ms() };
            match self.ask(request).await {
                Ok(answer) if answer.data.get("answered") == Some(&Value::Bool(true)) => {
                    return self.redeem(packet, held).await;
                }
                Ok(_) => held.progress("a person is asked to allow this").await,
                Err(error) => return told(Err(error)),
            }
        }
        told(asked)
    }

    async fn redeem(&self, packet: &str, held: &Held<'_>) -> CallToolResult {
        // What is redeemed is redeemed once, whatever message asks for it.
        let as_of = CallOf { transport_key: None, ..self.as_of(held) };
        let request = CallRequest::Redeem { packet: DecisionId::from(packet), as_of, wait_ms: SLICE_MS };
        told(self.followed(request, held).await)
    }

    /// Asks, and goes on asking while the call is under way.
    async fn followed(&self, request: CallRequest, held: &Held<'_>) -> Result<Answer, Error> {
        let mut answer = self.ask(request).await?;
        let until = Instant::now() + Duration::from_millis(RUN_MS.max(held.wait_s.saturating_mul(1_000)));
        while answer.data.get("fate").and_then(Value::as_str) == Some("under_way") && Instant::now() < until {
            held.progress("under way").await;
            let Some(call_id) = answer.data.get("call_id").and_then(Value::as_str) else { break };
            let repeated = answer.data.get("repeated").cloned();
            let request = CallRequest::Await { call_id: ArtifactId::from(call_id), wait_ms: SLICE_MS };
            answer = self.ask(request).await?;
            if let (Some(members), Some(repeated)) = (answer.data.as_object_mut(), repeated) {
                members.insert("repeated".to_owned(), repeated);
            }
        }
        Ok(answer)
    }

    fn as_of(&self, held: &Held<'_>) -> CallOf {
        CallOf {
            obligation_id: self.obligation.clone(),
            session: self.session.clone(),
            transport_key: Some(held.transport_key(&self.identity, &self.session)),
        }
    }
}

/// A registered tool, offered or withheld, under the name that the client calls it by.
struct Offered {
    name: String,
    server: String,
    tool: String,
    operation: OperationId,
    listing: Option<Tool>,
}

impl Offered {
    fn of(entry: &Value, is_offered: bool) -> Option<Self> {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).map(str::to_owned);
        let listing = entry.get("listing").filter(|_| is_offered);
        Some(Self {
            name: text("tool")?,
            server: text("server")?,
            tool: text("tool")?,
            operation: OperationId::from(text("operation")?),
            listing: listing.and_then(|listing| serde_json::from_value(listing.clone()).ok()),
        })
    }
}

/// Gives tools of the same name the name of their server before it.
fn named(mut known: Vec<Offered>) -> Vec<Offered> {
    let mut count: BTreeMap<String, usize> = [(REDEEM.to_owned(), 1), (AWAIT.to_owned(), 1)].into();
    known.iter().for_each(|tool| *count.entry(tool.tool.clone()).or_default() += 1);
    for tool in &mut known {
        if count.get(&tool.tool).is_some_and(|count| *count > 1) {
            tool.name = format!("{}__{}", tool.server, tool.tool);
        }
    }
    known
}

/// What holds a call: its message, and how long the client wants to wait.
struct Held<'a> {
    context: &'a RequestContext<RoleServer>,
    wait_s: u64,
    begun: Instant,
}

impl Held<'_> {
    /// The key of the message: the one that the client gave, else session and number.
    fn transport_key(&self, identity: &ActorId, session: &Key) -> Key {
        let given = self.context.meta.0.get(KEY).and_then(Value::as_str).map(str::to_owned);
        let text = match (given, &self.context.id) {
            (Some(given), _) => format!("{identity}/{given}"),
            (None, NumberOrString::Number(number)) => format!("{session}/{number}"),
            (None, NumberOrString::String(text)) => format!("{session}/\"{text}"),
        };
        Key::new(closer_protocol::derived_id("message", &closer_contracts::Digest::of(text.as_bytes()).to_string()))
    }

    fn is_over(&self) -> bool {
        self.begun.elapsed() >= Duration::from_secs(self.wait_s)
    }

    fn slice_ms(&self) -> u64 {
        let left = Duration::from_secs(self.wait_s).saturating_sub(self.begun.elapsed());
        SLICE_MS.min(u64::try_from(left.as_millis()).unwrap_or(SLICE_MS)).max(1)
    }

    async fn progress(&self, message: &str) {
        let Some(token) = self.context.meta.get_progress_token() else { return };
        let seconds = self.begun.elapsed().as_secs_f64();
        let notice = ProgressNotificationParam::new(token, seconds).with_message(message);
        if let Err(error) = self.context.peer.notify_progress(notice).await {
            tracing::debug!(%error, "a client was not told of progress");
        }
    }
}

fn internal(error: &Error) -> ErrorData {
    ErrorData::internal_error(error.told(), None)
}

/// A daemon that cannot be asked permits nothing, and the client is told so.
fn told(answer: Result<Answer, Error>) -> CallToolResult {
    match answer {
        Ok(answer) => tell::result(&answer),
        Err(error) => {
            let text = format!(
                "no answer: {}. Whether anything was done is not known; make the same call with the same key, or look at the target.",
                error.told()
            );
            tell::said(&text, json!({ "code": "outcome_unknown" }))
        }
    }
}

fn schema(members: Value, required: &[&str]) -> Map<String, Value> {
    let schema =
        json!({ "type": "object", "properties": members, "required": required, "additionalProperties": false });
    if let Value::Object(members) = schema { members } else { Map::new() }
}

/// The tools by which a client follows what it called for.
fn own_tools() -> Vec<Tool> {
    let seconds = json!({ "type": "integer", "minimum": 0, "description": "how long to hold the call, in seconds" });
    let redeem = schema(
        json!({ "packet": { "type": "string", "description": "the packet that was named when a call was not allowed" }, "wait_s": seconds }),
        &["packet"],
    );
    let awaited = schema(
        json!({ "call": { "type": "string", "description": "the call that was under way" }, "wait_s": seconds }),
        &["call"],
    );
    vec![
        Tool::new(
            REDEEM,
            "Runs exactly the call that a packet stands for, once, after a person has allowed it.",
            redeem,
        ),
        Tool::new(AWAIT, "Tells what became of a call that was still under way.", awaited),
    ]
}

impl ServerHandler for Gate {
    fn get_info(&self) -> ServerConfig {
        let own = Implementation::new("closer-gate", env!("CARGO_PKG_VERSION"));
        let mode = match self.mode {
            Mode::Govern => "",
            Mode::Observe { .. } => "Mode \"observe\": calls of tools without a grant are forwarded ungoverned. ",
        };
        let instructions = "Each call is judged before it runs. Where a person has to allow one, its packet is named: call closer_redeem with it later. Where an outcome is unknown, do not call again: look at the target.";
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let config = ServerConfig::new(capabilities).with_server_info(own);
        config.with_instructions(format!("{mode}{instructions}"))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let offered = self.offered().await?.into_iter().filter_map(|offered| {
            let mut tool = offered.listing?;
            tool.name = offered.name.into();
            Some(tool)
        });
        Ok(ListToolsResult::with_all_items(offered.chain(own_tools()).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let asked = arguments.get("wait_s").filter(|_| [REDEEM, AWAIT].contains(&&*request.name));
        let wait_s = asked.or_else(|| context.meta.0.get(WAIT)).and_then(Value::as_u64).unwrap_or(self.wait_s);
        let held = Held { context: &context, wait_s: wait_s.min(WAIT_MS_MAX / 1_000), begun: Instant::now() };
        let text = |name: &str| {
            let missing = || ErrorData::invalid_params(format!("`{name}` is missing"), None);
            arguments.get(name).and_then(Value::as_str).map(str::to_owned).ok_or_else(missing)
        };
        let result = match &*request.name {
            REDEEM => self.redeem(&text("packet")?, &held).await,
            AWAIT => {
                let request = CallRequest::Await { call_id: ArtifactId::from(text("call")?), wait_ms: SLICE_MS };
                told(self.followed(request, &held).await)
            }
            name => {
                let known = self.offered().await?.into_iter().find(|offered| offered.name == name);
                let unknown = || ErrorData::invalid_params(format!("no tool is called `{name}` here"), None);
                self.call(known.ok_or_else(unknown)?.operation, arguments, &held).await
            }
        };
        Ok(result.into())
    }
}

/// Serves one client over standard input and output until it goes. What mode it is in is said by `banner` where it is not the usual one.
///
/// # Errors
/// What kept it from serving.
pub async fn serve(gate: Gate, banner: impl Fn(&str)) -> Result<(), Error> {
    daemon::ensure(&gate.directory).await?;
    if let Some(said) = gate.begin().await? {
        banner(&said);
    }
    let service = rmcp::serve_server(gate, rmcp::transport::stdio()).await;
    let service = service.map_err(|error| Error::Runtime(format!("the client does not speak as one: {error}")))?;
    let ended = service.waiting().await;
    ended.map(drop).map_err(|error| Error::Runtime(format!("serving the client broke off: {error}")))
}
