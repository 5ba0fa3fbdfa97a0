//! One running server and the line to it.

use super::config::McpServer;
use super::listed::Listed;
use crate::operations::HttpClient;
use crate::process::{Beside, ProcessLedger};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientRequest, ListToolsRequest, PaginatedRequestParams,
    ProtocolVersion, ServerResult,
};
use rmcp::service::{ClientLifecycleMode, RunningService, serve_client_with_lifecycle};
use rmcp::transport::IntoTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransport, StreamableHttpClientTransportConfig};
use rmcp::{RoleClient, ServiceError};
use serde_json::{Map, Value};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Child;

/// The longest message that is read of a server, in bytes: a longer one is dropped, and whoever waits for it waits in vain.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// How many tools, on how many pages, are taken of one server.
const TOOLS_MAX: usize = 1_024;
const PAGES_MAX: usize = 64;

/// A server that runs.
pub(crate) struct Session {
    name: String,
    service: Line,
    start: Duration,
    _process: Option<Process>,
}

/// The process of a server; ended and struck off when this is dropped.
struct Process {
    _child: Child,
    _beside: Beside,
}

type Line = RunningService<RoleClient, ()>;

fn told(name: &str, what: &str) -> String {
    format!("the MCP server `{name}` {what}")
}

/// Speaks first, and waits so long for an answer.
async fn greeted<T, E, A>(name: &str, transport: T, within: Duration) -> Result<Line, String>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let service = tokio::time::timeout(within, serve_client_with_lifecycle((), transport, lifecycle())).await;
    service
        .map_err(|_| told(name, &format!("did not answer within {} ms", within.as_millis())))?
        .map_err(|error| told(name, &format!("does not speak as an MCP server: {error}")))
}

/// A server that is reached over streamable HTTP.
async fn reached(name: &str, url: &str, bearer_file: Option<&str>, within: Duration) -> Result<Line, String> {
    let client = HttpClient::default().connection()?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(url);
    config.max_json_response_size = MESSAGE_BYTES_MAX;
    config.max_sse_event_size = MESSAGE_BYTES_MAX;
    if let Some(file) = bearer_file {
        let token = crate::keys::read_secret(Path::new(file)).map_err(|error| format!("{file}: {error}"))?;
        config.auth_header = Some(token.trim().to_owned());
    }
    greeted(name, StreamableHttpClientTransport::with_client(client, config), within).await
}

/// A server that is a program, put on record before it starts.
async fn started(
    name: &str,
    server: &McpServer,
    ledger: &Arc<dyn ProcessLedger>,
    within: Duration,
) -> Result<(Line, Process), String> {
    let program = server.program.as_deref().ok_or_else(|| told(name, "has neither a program nor an address"))?;
    let mut command = std::process::Command::new(program);
    command.args(&server.arguments).env_clear();
    let allowed = server.environment_allowed.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    command.envs(allowed).envs(&server.environment);
    command.current_dir(server.working_directory.as_deref().unwrap_or("/"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let beside = Beside::announce(Arc::clone(ledger), &mut command)
        .map_err(|error| told(name, &format!("could not be put on record: {error}")))?;
    let mut command = tokio::process::Command::from(command);
    let mut child = command
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| told(name, &format!("could not be started: {program}: {error}")))?;
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(told(name, "has no standard input and output"));
    };
    let transport = AsyncRwTransport::new(stdout, stdin).with_max_line_length(MESSAGE_BYTES_MAX);
    let service = greeted(name, transport, within).await?;
    Ok((service, Process { _child: child, _beside: beside }))
}

/// The newest revision where the server speaks it, else the newest with a handshake.
fn lifecycle() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto { preferred_versions: vec![ProtocolVersion::V_2026_07_28], legacy_version: None }
}

/// Why a call has no answer.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The server answered that it could not: an answer like any other.
    Answered(String),
    /// Nothing says what became of the call.
    Unknown(String),
}

impl Session {
    pub(super) async fn start(name: &str, server: &McpServer, ledger: &Arc<dyn ProcessLedger>) -> Result<Self, String> {
        let start = Duration::from_millis(server.start_ms);
        let (service, process) = match &server.url {
            Some(url) => (reached(name, url, server.bearer_file.as_deref(), start).await?, None),
            None => {
                let (service, process) = started(name, server, ledger, start).await?;
                (service, Some(process))
            }
        };
        Ok(Self { name: name.to_owned(), service, start, _process: process })
    }

    pub(super) fn is_open(&self) -> bool {
        !self.service.peer().is_transport_closed()
    }

    /// What the server lists now: asked anew, whatever it said about how long an earlier list holds.
    pub(crate) async fn tools(&self) -> Result<Vec<Listed>, String> {
        let listing = tokio::time::timeout(self.start, self.pages());
        listing.await.map_err(|_| format!("the MCP server `{}` did not list its tools in time", self.name))?
    }

    async fn pages(&self) -> Result<Vec<Listed>, String> {
        let (mut tools, mut cursor) = (Vec::new(), None);
        for _ in 0..PAGES_MAX {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
            let answer = self.service.peer().send_request(request).await;
            let answer = answer.map_err(|error| format!("the MCP server `{}` lists no tools: {error}", self.name))?;
            let ServerResult::ListToolsResult(page) = answer else {
                return Err(format!("the MCP server `{}` answered with something else than its tools", self.name));
            };
            for tool in &page.tools {
                tools.push(Listed::of(&self.name, tool)?);
            }
            cursor = page.next_cursor;
            if cursor.is_none() && tools.len() <= TOOLS_MAX {
                return Ok(tools);
            }
        }
        Err(format!("the MCP server `{}` lists more than {TOOLS_MAX} tools", self.name))
    }

    /// The tool of a name, as it is listed now.
    pub(crate) async fn tool(&self, name: &str) -> Result<Listed, String> {
        let mut named = self.tools().await?.into_iter().filter(|tool| tool.name == name);
        match (named.next(), named.next()) {
            (Some(tool), None) => Ok(tool),
            (Some(_), Some(_)) => Err(format!("the MCP server `{}` lists two tools called `{name}`", self.name)),
            (None, _) => Err(format!("the MCP server `{}` lists no tool called `{name}`", self.name)),
        }
    }

    /// Calls a tool once.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        deadline: Duration,
    ) -> Result<CallToolResult, CallError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let answer = tokio::time::timeout(deadline, self.service.call_tool_once(params)).await;
        match answer {
            Err(_) => Err(CallError::Unknown(format!("no answer came within {} ms", deadline.as_millis()))),
            Ok(Ok(CallToolResponse::Complete(result))) => Ok(result),
            Ok(Ok(_)) => Err(CallError::Unknown("the server wants more before it ends the call".to_owned())),
            Ok(Err(ServiceError::McpError(error))) => Err(CallError::Answered(error.to_string())),
            Ok(Err(error)) => Err(CallError::Unknown(error.to_string())),
        }
    }
}
