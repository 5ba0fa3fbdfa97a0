//! The MCP servers: each entry is how one is started, and what it is called.

use super::source::Source;
use super::{Misfit, paths, process};
use closer_adapters::McpServer;
use closer_adapters::operations::OperationContract;
use closer_adapters::readback::ReadbackContract;
use closer_contracts::item::Item;
use closer_protocol::genesis::Founding;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// Reads `[[mcp_server]]`. A bare program is looked up once, now; paths that begin with `./` count from the deployment.
pub(super) fn read(
    source: &Source,
    file: &mut Map<String, Value>,
    directory: &Path,
) -> Result<BTreeMap<String, McpServer>, Misfit> {
    let entries: Vec<Map<String, Value>> = super::section(source, file, "mcp_server")?;
    let mut servers = BTreeMap::new();
    for (index, mut entry) in entries.into_iter().enumerate() {
        let field = format!("mcp_server.{index}");
        let name: String = source.typed(&format!("{field}.name"), entry.remove("name").unwrap_or(Value::Null))?;
        if let Some(Value::String(program)) = entry.get_mut("program") {
            *program = process::absolute_program(program, directory)
                .map_err(|reason| source.misfit(format!("{field}.program"), reason))?;
        }
        for member in ["working_directory", "bearer_file"] {
            if let Some(Value::String(path)) = entry.get_mut(member)
                && let Some(inner) = path.strip_prefix("./")
            {
                *path = directory.join(inner).to_string_lossy().into_owned();
            }
        }
        let server: McpServer = source.typed(&field, Value::Object(entry))?;
        server.check().map_err(|fault| source.misfit(paths::join(&field, &fault.path), fault.reason))?;
        if servers.insert(name.clone(), server).is_some() {
            return Err(source.misfit(format!("{field}.name"), format!("another server is called `{name}`")));
        }
    }
    Ok(servers)
}

/// Whether every tool is one of a declared server.
pub(super) fn named(source: &Source, founding: &Founding, servers: &BTreeMap<String, McpServer>) -> Result<(), Misfit> {
    let known = |field: String, server: Option<String>| match server.filter(|server| !servers.contains_key(server)) {
        Some(server) => {
            let reason = format!("no server is called `{server}`: declare it (`[[mcp_server]]`)");
            Err(source.misfit(field, reason))
        }
        None => Ok(()),
    };
    let operations =
        founding.items.iter().filter_map(|item| if let Item::Operation(entry) = item { Some(entry) } else { None });
    for (index, entry) in operations.enumerate() {
        let contract = OperationContract::read(&entry.contract.0).ok();
        let server = if let Some(OperationContract::McpTool(tool)) = contract { Some(tool.server) } else { None };
        known(format!("operation.{index}.contract.server"), server)?;
    }
    let methods = founding
        .items
        .iter()
        .filter_map(|item| if let Item::ReadbackMethod(method) = item { Some(method) } else { None });
    for (index, method) in methods.enumerate() {
        let contract = ReadbackContract::read(&method.contract.0).ok();
        let server = if let Some(ReadbackContract::McpRead(read)) = contract { Some(read.server) } else { None };
        known(format!("readback_method.{index}.contract.server"), server)?;
    }
    Ok(())
}
