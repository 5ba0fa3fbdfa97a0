//! What a reading tool of an MCP server says about a target when asked anew.

use super::Seen;
use crate::declared::{Names, pointer};
use crate::mcp::{CallError, McpServers};
use crate::template::{Piece, pieces};
use closer_contracts::branch;
use closer_contracts::digest::Digest;
use closer_contracts::fault::Fault;
use closer_contracts::refs::Target;
use closer_contracts::work::TargetVersion;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Contract `mcp_read`: calls a tool that looks at the target, and shows members of its answer.
///
/// What the pointers lead into has the member `structured` with the answer's structured content, where it has any, and the
/// member `text` with its text, where it is text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpRead {
    /// The server, by the name of its `[[mcp_server]]`.
    pub server: String,
    /// The tool's name at the server. It must only look.
    pub tool: String,
    /// The digest of the tool as it was listed when somebody looked at it.
    pub listed: Digest,
    /// Whose the targets are.
    pub account: String,
    /// The tool's arguments; `{target}` and `{account}` stand for the target's address and account.
    pub arguments: BTreeMap<String, String>,
    /// The fields to show: by name, a JSON pointer into the answer.
    pub fields: BTreeMap<String, String>,
    /// How long the call may take, in milliseconds. Default 30 s.
    #[serde(default = "deadline_ms")]
    pub deadline_ms: u64,
}

const fn deadline_ms() -> u64 {
    30_000
}

impl McpRead {
    pub(super) fn check(&self) -> Result<(), Fault> {
        for (name, argument) in &self.arguments {
            let told = |reason: String| Fault::schema(reason).within(name).within("arguments");
            Names(&[]).template(argument).map_err(told)?;
        }
        self.fields.iter().try_for_each(|(name, field)| pointer(field, name).map_err(|fault| fault.within("fields")))
    }

    fn fill(&self, target: &Target) -> Result<Map<String, Value>, String> {
        let fill = |(name, template): (&String, &String)| {
            let mut filled = String::new();
            for piece in pieces(template)? {
                match piece {
                    Piece::Literal(text) => filled.push_str(&text),
                    Piece::Placeholder("account") => filled.push_str(target.account.as_str()),
                    Piece::Placeholder(_) => filled.push_str(target.address.as_str()),
                }
            }
            Ok((name.clone(), Value::String(filled)))
        };
        self.arguments.iter().map(fill).collect()
    }
}

pub(super) async fn look(contract: &McpRead, target: &Target, servers: &McpServers) -> Result<Seen, String> {
    let arguments = contract.fill(target)?;
    let session = servers.session(&contract.server).await?;
    let listed = session.tool(&contract.tool).await?.digest;
    if branch!("mcp.read_changed", listed != contract.listed) {
        return Err(format!("endpoint_mismatch: `{}` is not listed any more as it was registered", contract.tool));
    }
    let answer = session.call(&contract.tool, arguments, Duration::from_millis(contract.deadline_ms)).await;
    let answer = answer.map_err(|error| match error {
        CallError::Answered(reason) | CallError::Unknown(reason) => reason,
    })?;
    if answer.is_error.unwrap_or(false) {
        return Err("the tool answered that it could not look".to_owned());
    }
    let texts: Vec<&str> =
        answer.content.iter().filter_map(|block| block.as_text().map(|text| text.text.as_str())).collect();
    let whole = json!({ "structured": answer.structured_content, "text": texts.join("\n") });
    let shown = contract.fields.iter().filter_map(|(name, at)| Some((name.clone(), whole.pointer(at)?.clone())));
    Ok(Seen {
        account: contract.account.as_str().into(),
        version: TargetVersion::Unknown,
        fields: shown.collect(),
        limitations: Vec::new(),
    })
}
