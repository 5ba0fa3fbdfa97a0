//! A tool of an MCP server.
//!
//! The pin is the tool as its server lists it: the list is asked for anew before each call, and a tool that is not listed as
//! it was registered is not called. What the tool is handed are the action's parameters and nothing else, and the target
//! that was judged must be the one that they name. An answer, also one that says it failed, is a response like any other;
//! a line that breaks or a deadline that passes leaves the outcome unknown.

use super::permitted::Permitted;
use super::report::{not_sent, responded, unknown};
use crate::declared::{Names, positive};
use crate::mcp::{CallError, McpServers};
use crate::template::{Piece, pieces};
use closer_contracts::branch;
use closer_contracts::canonical;
use closer_contracts::digest::Digest;
use closer_contracts::fault::Fault;
use closer_contracts::id::{Id, Key, Text};
use closer_contracts::item::OperationEntry;
use closer_contracts::refs::{Parameters, Plain, Target};
use closer_contracts::refusal::RefusalCode;
use closer_contracts::work::{ActionProposal, Comparison, Expectation, Postcondition};
use closer_protocol::port::{Clock, Performed};
use rmcp::model::CallToolResult;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The placeholder that stands for everything the tool is handed.
const ARGUMENTS: &str = "arguments";

/// Contract `mcp_tool`: calls one tool of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpTool {
    /// The server, by the name of its `[[mcp_server]]`.
    pub server: String,
    /// The tool's name at the server.
    pub tool: String,
    /// The digest of the tool as it was listed when somebody looked at it; `closer gate init` writes it.
    pub listed: Digest,
    /// Whose the targets are.
    pub account: String,
    /// The target's address: `{name}` stands for a parameter, `{arguments}` for a digest of all of them.
    pub address: String,
    /// The folder that the filled address lies below, as an absolute path; the target's address is then relative to it, and
    /// one that lies elsewhere is refused. Default: none; the address is what was filled in.
    #[serde(default)]
    pub root: Option<String>,
    /// What the target shows when the effect took place. Default: that a person has confirmed it.
    #[serde(default = "confirmed")]
    pub expect: Vec<Expected>,
    /// How long the call may take, in milliseconds. Default 30 s.
    #[serde(default = "deadline_ms")]
    pub deadline_ms: u64,
    /// The longest answer that is handed on, in bytes; the record keeps no more than 48 KiB of it. Default 4 MiB.
    #[serde(default = "response_bytes_max")]
    pub response_bytes_max: usize,
    /// How long after its settlement an effect answers for a call that is after the same, in milliseconds. Default 0: each
    /// call is new.
    #[serde(default)]
    pub repeat_window_ms: u64,
}

/// What one field of the target is to show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// The field, as the readback method names it.
    pub field: String,
    /// How it is compared. Default: equal.
    #[serde(default = "equals")]
    pub comparison: Comparison,
    /// The value to show.
    #[serde(default)]
    pub value: Option<Value>,
    /// Or the parameter whose value it is to show.
    #[serde(default)]
    pub parameter: Option<String>,
    /// Or the parameter, as text, whose digest it is to show.
    #[serde(default)]
    pub digest_of: Option<String>,
}

const fn equals() -> Comparison {
    Comparison::Equals
}

fn confirmed() -> Vec<Expected> {
    let value = Some(Value::Bool(true));
    vec![Expected { field: "confirmed".to_owned(), comparison: equals(), value, parameter: None, digest_of: None }]
}

const fn deadline_ms() -> u64 {
    30_000
}

const fn response_bytes_max() -> usize {
    4 << 20
}

/// How much of an answer the record keeps, in bytes.
const RECORDED_BYTES_MAX: usize = 48 << 10;
/// The longest deadline, in milliseconds: below the time after which the runtime itself calls an effect unknown.
const DEADLINE_MS_MAX: u64 = 540_000;

impl McpTool {
    pub(super) fn check(&self, names: Names<'_>) -> Result<(), Fault> {
        for piece in pieces(&self.address).map_err(|reason| Fault::schema(reason).within("address"))? {
            match piece {
                Piece::Literal(_) | Piece::Placeholder(ARGUMENTS) => {}
                Piece::Placeholder(name) => {
                    names.parameter(name).map_err(|reason| Fault::schema(reason).within("address"))?;
                }
            }
        }
        self.root.as_ref().map_or(Ok(()), |root| crate::declared::absolute(root, "root"))?;
        for (index, expected) in self.expect.iter().enumerate() {
            let told = |reason: String| Fault::schema(reason).within(index).within("expect");
            let parameter = expected.parameter.iter().chain(&expected.digest_of);
            parameter.clone().try_for_each(|name| names.parameter(name)).map_err(told)?;
            if parameter.count() + usize::from(expected.value.is_some()) != 1 {
                return Err(told("name one of `value`, `parameter` and `digest_of`".to_owned()));
            }
        }
        if self.expect.is_empty() {
            return Err(Fault::schema("say what the target shows when the effect took place").within("expect"));
        }
        positive(self.deadline_ms, "deadline_ms")?;
        positive(self.response_bytes_max as u64, "response_bytes_max")
    }

    /// How long a call may take.
    pub(crate) fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms.min(DEADLINE_MS_MAX))
    }

    /// The contract's digest as it would be if the tool had been listed like this.
    ///
    /// # Errors
    /// `schema_invalid` when the contract has no canonical form.
    pub fn digest_as(contract: &Plain, listed: Digest) -> Result<Digest, Fault> {
        let mut contract = contract.clone();
        if let Value::Object(members) = &mut contract.0 {
            members.insert("listed".to_owned(), json!(listed));
        }
        canonical::digest_of(&contract)
    }

    /// The target that a tool's parameters name.
    ///
    /// # Errors
    /// `schema_invalid` where a parameter that names it is missing; `target_mismatch` where it lies outside the root.
    pub fn target(&self, entry: &OperationEntry, parameters: &Parameters) -> Result<Target, Fault> {
        let mut address = String::new();
        for piece in pieces(&self.address).map_err(Fault::schema)? {
            match piece {
                Piece::Literal(text) => address.push_str(&text),
                Piece::Placeholder(ARGUMENTS) => {
                    let digest = canonical::digest_of(parameters)?.to_string();
                    address.push_str(digest.trim_start_matches("sha256:").get(..24).unwrap_or_default());
                }
                Piece::Placeholder(name) => match parameters.get(&Key::from(name)).map(|plain| &plain.0) {
                    Some(Value::String(text)) => address.push_str(text),
                    Some(Value::Number(number)) => address.push_str(&number.to_string()),
                    Some(Value::Bool(truth)) => address.push_str(&truth.to_string()),
                    Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => {
                        let reason = "the target is named by this parameter, which is not there or no single value";
                        return Err(Fault::schema(reason).within(name));
                    }
                },
            }
        }
        // A path that leads back is another place than it looks like, so that no grant covers it by its beginning.
        let leads_back = address.split('/').any(|part| matches!(part, "." | ".."));
        if branch!("mcp.target_leads_back", leads_back) {
            return Err(Fault::new(
                RefusalCode::TargetMismatch,
                format!("`{address}` leads back; name the place itself"),
            ));
        }
        if let Some(root) = &self.root {
            address = below(root, &address)?;
        }
        Ok(Target {
            r#type: entry.target_type.clone(),
            account: Key::from(self.account.as_str()),
            address: Text::new(address),
        })
    }

    /// The exact action that a call of the tool with these arguments is.
    ///
    /// # Errors
    /// `schema_invalid` for arguments that no action can carry, `target_mismatch` as [`Self::target`].
    pub fn proposal(&self, entry: &OperationEntry, arguments: Map<String, Value>) -> Result<ActionProposal, Fault> {
        let parameters: Parameters =
            arguments.into_iter().map(|(name, value)| (Key::new(name), Plain(value))).collect();
        for (name, value) in &parameters {
            closer_contracts::Check::check(name).map_err(|fault| fault.within("arguments"))?;
            closer_contracts::Check::check(value).map_err(|fault| fault.within(name))?;
        }
        let target = self.target(entry, &parameters)?;
        let named = canonical::digest_of(&(&entry.operation, &target, &parameters))?.to_string();
        let short = named.trim_start_matches("sha256:").get(..32).unwrap_or_default();
        let expectations: Result<Vec<Expectation>, Fault> =
            self.expect.iter().map(|expected| expected.of(&parameters)).collect();
        Ok(ActionProposal {
            operation: entry.operation.clone(),
            target,
            parameters,
            expected_postcondition: Postcondition {
                id: Id::new(format!("effect-{short}")),
                expectations: expectations?,
            },
        })
    }
}

impl Expected {
    fn of(&self, parameters: &Parameters) -> Result<Expectation, Fault> {
        let parameter = |name: &String| {
            let missing = || Fault::schema("the effect is told by this parameter, which is not there").within(name);
            parameters.get(&Key::from(name.as_str())).ok_or_else(missing)
        };
        let value = match (&self.value, &self.parameter, &self.digest_of) {
            (Some(value), _, _) => Plain(value.clone()),
            (None, Some(name), _) => parameter(name)?.clone(),
            (None, None, Some(name)) => {
                let text = parameter(name)?;
                let text = text.as_text().ok_or_else(|| Fault::schema("this is no text").within(name))?;
                Plain(json!(Digest::of(text.as_bytes())))
            }
            (None, None, None) => Plain(Value::Null),
        };
        Ok(Expectation { field: Key::from(self.field.as_str()), comparison: self.comparison, value })
    }
}

/// A path relative to a folder it lies below, as it is written: no part of it may lead back or stand for itself.
fn below(root: &str, path: &str) -> Result<String, Fault> {
    let root = root.trim_end_matches('/');
    let inner = path.strip_prefix(root).and_then(|inner| inner.strip_prefix('/')).unwrap_or(path);
    let plain = !inner.starts_with('/')
        && inner.split('/').all(|part| !matches!(part, "" | "." | "..") && !part.contains('\0'));
    match branch!("mcp.target_below_root", plain) {
        true => Ok(inner.to_owned()),
        false => Err(Fault::new(RefusalCode::TargetMismatch, format!("`{path}` is no plain path below {root}"))),
    }
}

/// Calls one tool.
pub(super) async fn perform(
    permitted: &Permitted,
    contract: &McpTool,
    servers: &McpServers,
    clock: &dyn Clock,
) -> Performed {
    let named = contract.target(permitted.entry(), permitted.parameters());
    let same = named.as_ref().is_ok_and(|named| named == permitted.target());
    if branch!("mcp.arguments_name_another_target", !same) {
        return not_sent("the parameters name another target than the one that was judged");
    }
    let session = match servers.session(&contract.server).await {
        Ok(session) => session,
        Err(reason) => return not_sent(reason),
    };
    let listed = match session.tool(&contract.tool).await {
        Ok(listed) => listed.digest,
        Err(reason) => return not_sent(format!("endpoint_mismatch: {reason}")),
    };
    if branch!("mcp.tool_changed", listed != contract.listed) {
        return not_sent(format!(
            "endpoint_mismatch: `{}` of `{}` is not listed any more as it was registered",
            contract.tool, contract.server
        ));
    }
    let arguments = permitted.parameters().iter().map(|(name, value)| (name.to_string(), value.0.clone())).collect();
    let deadline = Duration::from_millis(contract.deadline_ms.min(DEADLINE_MS_MAX));
    let sent_at = clock.now().0;
    match session.call(&contract.tool, arguments, deadline).await {
        Err(CallError::Unknown(reason)) => unknown(sent_at, reason),
        Err(CallError::Answered(error)) => responded(clock, sent_at, json!({ "is_error": true, "error": error })),
        Ok(result) => {
            let response = told(permitted, contract, servers, &result);
            responded(clock, sent_at, response)
        }
    }
}

/// An answer for the record: whole where it is short, else its digest; whoever called is handed all of it.
fn told(permitted: &Permitted, contract: &McpTool, servers: &McpServers, result: &CallToolResult) -> Value {
    let is_error = result.is_error.unwrap_or(false);
    let text = match serde_json::to_string(result) {
        Ok(text) => text,
        Err(error) => return json!({ "is_error": is_error, "left_out": error.to_string() }),
    };
    let bytes = text.len();
    let digest = Digest::of(text.as_bytes());
    if bytes > contract.response_bytes_max {
        return json!({ "is_error": is_error, "bytes": bytes, "digest": digest, "left_out": "it is longer than the contract allows" });
    }
    let short = bytes <= RECORDED_BYTES_MAX;
    let recorded = match short {
        true => json!({ "is_error": is_error, "bytes": bytes, "digest": digest, "result": text }),
        false => {
            json!({ "is_error": is_error, "bytes": bytes, "digest": digest, "left_out": "it is longer than a record keeps" })
        }
    };
    servers.keep(permitted.attempt_id(), text);
    recorded
}
