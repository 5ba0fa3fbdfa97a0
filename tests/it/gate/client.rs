//! rmcp's client, in front of the binary.

use crate::support::CLOSER;
use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, RequestMetaObject};
use rmcp::service::{RunningService, serve_client};
use serde_json::{Map, Value};
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use tokio::process::{Child, Command};
use tokio::runtime::Runtime;

/// A client with a gate of its own.
pub(crate) struct Client {
    runtime: Runtime,
    service: RunningService<RoleClient, ()>,
    gate: Mutex<Child>,
}

fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(members) = value { members } else { Map::new() }
}

impl Client {
    pub(crate) fn start(place: &Path, options: &[&str]) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (service, gate) = runtime.block_on(async {
            let mut command = Command::new(CLOSER);
            command.arg("gate").arg(place).args(options).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut gate = command.kill_on_drop(true).spawn().unwrap();
            let line = (gate.stdout.take().unwrap(), gate.stdin.take().unwrap());
            (serve_client((), line).await.unwrap(), gate)
        });
        Self { runtime, service, gate: Mutex::new(gate) }
    }

    pub(crate) fn tools(&self) -> Vec<String> {
        let tools = self.runtime.block_on(self.service.list_all_tools()).unwrap();
        tools.into_iter().map(|tool| tool.name.into_owned()).collect()
    }

    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Value {
        self.call_with(tool, arguments, &[])
    }

    /// Calls a tool with members of `_meta`.
    pub(crate) fn call_with(&self, tool: &str, arguments: Value, meta: &[(&str, Value)]) -> Value {
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(object(arguments));
        if !meta.is_empty() {
            let members: Map<String, Value> =
                meta.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
            params.meta = Some(serde_json::from_value::<RequestMetaObject>(Value::Object(members)).unwrap());
        }
        let result = self.runtime.block_on(self.service.call_tool(params)).unwrap();
        serde_json::to_value(result).unwrap()
    }

    /// Calls a tool and waits for nothing.
    pub(crate) fn begin(&self, tool: &str, arguments: Value) {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(object(arguments));
        let peer = self.service.peer().clone();
        self.runtime.spawn(async move { peer.call_tool(params).await });
    }

    /// Kills the gate.
    pub(crate) fn kill(&self) {
        self.runtime.block_on(self.gate.lock().unwrap().kill()).unwrap();
    }
}

fn meta(result: &Value, name: &str) -> String {
    result["_meta"][format!("closer/{name}")].as_str().unwrap_or_default().to_owned()
}

/// What became of a call.
pub(crate) fn fate(result: &Value) -> String {
    meta(result, "fate")
}

/// The code that it was refused with.
pub(crate) fn code(result: &Value) -> String {
    meta(result, "code")
}

/// The text of an answer.
pub(crate) fn text(result: &Value) -> String {
    let blocks = result["content"].as_array().into_iter().flatten();
    blocks.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}
