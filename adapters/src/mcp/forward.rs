//! Handing on a call that observing lets through. It takes no permit, because it is no effect of this runtime: nothing of it
//! stands on record but what would have become of it, and the core alone makes what it takes.

use super::McpServers;
use super::session::CallError;
use crate::operations::McpTool;
use closer_contracts::branch;
use closer_protocol::observe::Ungoverned;
use serde_json::{Value, json};

/// Why a forwarded call has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotForwarded {
    /// It was not sent.
    NotSent(String),
    /// It was sent, and nothing says what became of it.
    Unknown(String),
}

/// Hands a call on, once.
///
/// # Errors
/// Whether it was sent, and why there is no answer.
pub async fn forward(ungoverned: Ungoverned, contract: &McpTool, servers: &McpServers) -> Result<Value, NotForwarded> {
    let session = servers.session(&contract.server).await.map_err(NotForwarded::NotSent)?;
    let listed = session.tool(&contract.tool).await.map_err(NotForwarded::NotSent)?;
    if branch!("mcp.forwarded_tool_changed", listed.digest != contract.listed) {
        let reason = format!("`{}` of `{}` is not listed as it was registered", contract.tool, contract.server);
        return Err(NotForwarded::NotSent(reason));
    }
    let arguments = ungoverned.parameters().iter().map(|(name, value)| (name.to_string(), value.0.clone())).collect();
    match session.call(&contract.tool, arguments, contract.deadline()).await {
        Err(CallError::Unknown(reason)) => Err(NotForwarded::Unknown(reason)),
        Err(CallError::Answered(error)) => Ok(json!({ "is_error": true, "error": error })),
        Ok(result) => serde_json::to_value(&result).map_err(|error| NotForwarded::Unknown(error.to_string())),
    }
}
