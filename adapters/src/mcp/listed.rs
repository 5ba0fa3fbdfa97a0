//! A tool as its server lists it, and the digest by which it is known again.

use closer_contracts::digest::Digest;
use rmcp::model::Tool;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The digest of a tool as it is listed: server, name, description, schemas and hints.
pub type ToolDigest = Digest;

/// A tool as its server lists it now.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// What it is said to do.
    pub description: Option<String>,
    /// What its arguments look like, as JSON Schema.
    pub input_schema: Map<String, Value>,
    /// What is said about its effects. Hints of another party: they decide nothing.
    pub annotations: Value,
    /// The whole entry, as it was listed.
    pub entry: Value,
    /// The digest by which it is known again.
    pub digest: ToolDigest,
}

impl Listed {
    pub(super) fn of(server: &str, tool: &Tool) -> Result<Self, String> {
        let entry = serde_json::to_value(tool).map_err(|error| error.to_string())?;
        let member = |name: &str| entry.get(name).cloned().unwrap_or(Value::Null);
        let parts = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"]
            .map(|name| sorted(&member(name)));
        let text = serde_json::to_string(&(server, parts)).map_err(|error| error.to_string())?;
        Ok(Self {
            name: tool.name.to_string(),
            description: tool.description.as_ref().map(ToString::to_string),
            input_schema: (*tool.input_schema).clone(),
            annotations: member("annotations"),
            digest: Digest::of(text.as_bytes()),
            entry,
        })
    }
}

/// A value as text with the members of every table in order. A schema may hold fractions, which no canonical form has.
fn sorted(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(sorted).collect::<Vec<_>>().join(",")),
        Value::Object(members) => {
            let members: BTreeMap<&String, String> =
                members.iter().map(|(name, member)| (name, sorted(member))).collect();
            let members = members.into_iter().map(|(name, member)| format!("{}:{member}", Value::from(name.as_str())));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tool_is_known_again_whatever_the_order_and_by_no_less_than_all_of_it() {
        let tool = |value: Value| Listed::of("s", &serde_json::from_value::<Tool>(value).unwrap()).unwrap().digest;
        let own = tool(json!({ "name": "t", "description": "d", "inputSchema": { "type": "object", "minimum": 1.5 } }));
        let turned = json!({ "inputSchema": { "minimum": 1.5, "type": "object" }, "description": "d", "name": "t" });
        assert_eq!(own, tool(turned));
        for other in [
            json!({ "name": "u", "description": "d", "inputSchema": { "type": "object", "minimum": 1.5 } }),
            json!({ "name": "t", "description": "D", "inputSchema": { "type": "object", "minimum": 1.5 } }),
            json!({ "name": "t", "description": "d", "inputSchema": { "type": "object", "minimum": 1.25 } }),
            json!({ "name": "t", "inputSchema": { "type": "object", "minimum": 1.5 } }),
        ] {
            assert_ne!(own, tool(other.clone()), "{other}");
        }
    }
}
