//! One running server and the line to it.

use super::config::McpServer;
use super::listed::Listed;
use crate::process::{Beside, ProcessLedger};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientRequest, ListToolsRequest, PaginatedRequestParams,
    ProtocolVersion, ServerResult,
};
use rmcp::service::{ClientLifecycleMode, RunningService, serve_client_with_lifecycle};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleClient, ServiceError};
use serde_json::{Map, Value};
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
    service: RunningService<RoleClient, ()>,
    start: Duration,
    // Dropped last to first: the line is closed, then the process is ended and struck off.
    _child: Child,
    _beside: Beside,
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
    pub(super) async fn start(
        name: &str,
        server: &McpServer,
        ledger: &Arc<dyn ProcessLedger>,
    ) -> Result<Self, String> {
        let told = |what: &str| format!("the MCP server `{name}` {what}");
        let mut command = std::process::Command::new(&server.program);
        command.args(&server.arguments).env_clear();
        let allowed = server.environment_allowed.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        command.envs(allowed).envs(&server.environment);
        command.current_dir(server.working_directory.as_deref().unwrap_or("/"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let beside = Beside::announce(Arc::clone(ledger), &mut command)
            .map_err(|error| told(&format!("could not be put on record: {error}")))?;
        let mut command = tokio::process::Command::from(command);
        let mut child = command
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| told(&format!("could not be started: {}: {error}", server.program)))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(told("has no standard input and output"));
        };
        let transport = AsyncRwTransport::new(stdout, stdin).with_max_line_length(MESSAGE_BYTES_MAX);
        let start = Duration::from_millis(server.start_ms);
        let service = serve_client_with_lifecycle((), transport, lifecycle());
        let service = tokio::time::timeout(start, service).await;
        let service = service
            .map_err(|_| told(&format!("did not answer within {} ms", server.start_ms)))?
            .map_err(|error| told(&format!("does not speak as an MCP server: {error}")))?;
        Ok(Self { name: name.to_owned(), service, start, _child: child, _beside: beside })
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
