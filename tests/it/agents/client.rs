//! An MCP client over either transport and in either revision, and what an agent answers.

use crate::support::{Place, counting};
use rmcp::model::{CallToolRequestParams, CallToolResult, ProtocolVersion, RequestMetaObject};
use rmcp::service::{ClientInitializeError, RoleClient, RunningService};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientLifecycleMode, ClientServiceExt};
use serde_json::{Value, json};
use std::time::Duration;

/// A revision of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Revision {
    /// 2025-11-25, with a handshake.
    Handshake,
    /// 2026-07-28, without one.
    Stateless,
}

impl Revision {
    pub(super) const BOTH: [Self; 2] = [Self::Handshake, Self::Stateless];

    fn lifecycle(self) -> ClientLifecycleMode {
        match self {
            Self::Handshake => ClientLifecycleMode::Initialize,
            Self::Stateless => {
                ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
            }
        }
    }
}

/// A deployment whose worker is an agent outside, beside another agent that nobody asks.
pub(super) fn deployment() -> Place {
    let text = counting("conditional");
    let (text, _) = text.split_once("[[participant]]").unwrap();
    let (before, after) = text.split_once("actor_id = \"agent.worker\"\nkind = \"producer\"").unwrap();
    Place::with(&format!(
        "{before}actor_id = \"agent.worker\"\nkind = \"agent\"{after}\n[[identity]]\nactor_id = \"agent.zero\"\nkind = \"agent\"\n\
         roles = [\"participant\"]\n"
    ))
}

/// A connected client.
pub(super) struct Connected(RunningService<RoleClient, ()>);

/// How a call went.
#[derive(Debug)]
pub(super) struct Told(pub(super) CallToolResult);

impl Told {
    #[track_caller]
    pub(super) fn done(self) -> Value {
        assert_ne!(self.0.is_error, Some(true), "{self:?}");
        self.0.structured_content.unwrap()
    }

    #[track_caller]
    pub(super) fn refused(self, code: &str) -> Value {
        assert_eq!(self.0.is_error, Some(true), "{self:?}");
        let told = self.0.structured_content.unwrap();
        assert_eq!(told["code"], code, "{told}");
        assert!(told["next"].as_array().is_some_and(|next| !next.is_empty()), "it says what to do: {told}");
        told
    }
}

impl Connected {
    /// `closer mcp` as a child process.
    pub(super) async fn stdio(place: &Place, identity: &str, revision: Revision) -> Self {
        let mut command = tokio::process::Command::new(crate::support::CLOSER);
        command.arg("--as").arg(identity).arg("mcp").arg(place.path());
        let transport = TokioChildProcess::new(command).unwrap();
        Self(().serve_with_lifecycle(transport, revision.lifecycle()).await.unwrap())
    }

    async fn over_http(port: u16, token: &str, revision: Revision) -> Result<Self, Box<ClientInitializeError>> {
        // Whoever comes first installs it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let uri = format!("http://127.0.0.1:{port}/mcp");
        let config = StreamableHttpClientTransportConfig::with_uri(uri).auth_header(token);
        let transport = StreamableHttpClientTransport::from_config(config);
        ().serve_with_lifecycle(transport, revision.lifecycle()).await.map(Self).map_err(Box::new)
    }

    /// `/mcp` of a served deployment.
    pub(super) async fn http(port: u16, token: &str, revision: Revision) -> Self {
        Self::over_http(port, token, revision).await.unwrap()
    }

    /// Whether this token opens it.
    pub(super) async fn tries_http(port: u16, token: &str, revision: Revision) -> bool {
        let tried = tokio::time::timeout(Duration::from_secs(15), Self::over_http(port, token, revision)).await;
        matches!(tried, Ok(Ok(_)))
    }

    pub(super) async fn call(&self, name: &'static str, arguments: Value) -> Told {
        self.call_with(name, arguments, None).await.unwrap()
    }

    pub(super) async fn call_with(
        &self,
        name: &'static str,
        arguments: Value,
        meta: Option<Value>,
    ) -> Result<Told, rmcp::ServiceError> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let mut asked = CallToolRequestParams::new(name).with_arguments(arguments);
        asked.meta = meta.map(|meta| serde_json::from_value::<RequestMetaObject>(meta).unwrap());
        self.0.peer().call_tool(asked).await.map(Told)
    }

    pub(super) async fn tools(&self) -> Vec<Value> {
        let tools = self.0.peer().list_all_tools().await.unwrap();
        tools.iter().map(|tool| serde_json::to_value(tool).unwrap()).collect()
    }

    pub(super) async fn end(self) {
        self.0.cancel().await.unwrap();
    }
}

/// The tool with this name.
pub(super) fn tool<'a>(tools: &'a [Value], name: &str) -> &'a Value {
    tools.iter().find(|tool| tool["name"] == name).unwrap()
}

/// The work that waits for an agent, once some does.
pub(super) async fn working(agent: &Connected) -> String {
    for _ in 0..200 {
        let listed = agent.call("closer_work_list", json!({})).await.done();
        if let Some(work_id) = listed["work"][0]["work_id"].as_str() {
            return work_id.to_owned();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no work came");
}

/// What a sensible agent answers: where the file says `done` it says so, else it proposes to finish it.
pub(super) fn answer_to(packet: &Value) -> Value {
    let items = packet["context_items"].as_array().unwrap();
    let newest = items.iter().rev().map(|item| &item["content"]).find(|content| content["observation"].is_object());
    let done = newest.filter(|evidence| evidence["observation"]["value"]["content"] == "done\n");
    let assessments: Vec<Value> = done
        .map(|evidence| {
            let binding = &evidence["target_binding"];
            json!({
                "proposition_id": "file-says-done", "evidence_id": evidence["evidence_id"], "reference_status": "resolved",
                "scope_match": "applicable", "relation": "supports", "limitations": evidence["limitations"],
                "valid_at": {
                    "observed_at": evidence["observed_at"], "observation_sequence_ref": binding["observation_sequence_ref"],
                    "observation_version": binding["observation_version"], "target_version": binding["target_version"],
                },
            })
        })
        .into_iter()
        .collect();
    let proposals = match done {
        Some(_) => json!([]),
        None => json!([{
            "operation": "file.finish", "target": { "type": "file", "account": "local", "address": "target" }, "parameters": {},
            "expected_postcondition": {
                "id": "file-says-done",
                "expectations": [{ "field": "content", "comparison": "equals", "value": "done\n" }],
            },
        }]),
    };
    json!({
        "work_id": packet["work_id"], "claims": [], "action_proposals": proposals, "assessments": assessments,
        "objections": [], "unresolved": [], "skill_receipts": [],
    })
}
