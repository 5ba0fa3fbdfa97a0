//! An MCP server that keeps notes as files in a folder, for trying the gate out and for its tests.
//!
//! It is written by hand, a line in and a line out, so that it can also do what no library lets a server do: describe a tool
//! anew, answer twice, answer hugely, flood, and never answer. What it was really asked to do stands in `calls.log`, one
//! line a call, written before the call is answered.

mod tools;

use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(root) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("notes-server FOLDER");
        return ExitCode::FAILURE;
    };
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let Some(id) = message.get("id").cloned() else { continue };
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
        let params = message.get("params").cloned().unwrap_or(Value::Null);
        for answer in answers(&root, &id, method, &params) {
            if writeln!(std::io::stdout(), "{answer}").is_err() {
                return ExitCode::SUCCESS;
            }
        }
    }
    ExitCode::SUCCESS
}

/// Everything that is written for one request: mostly one message.
fn answers(root: &std::path::Path, id: &Value, method: &str, params: &Value) -> Vec<Value> {
    let result = |result: Value| vec![json!({ "jsonrpc": "2.0", "id": id, "result": result })];
    match method {
        "initialize" => result(json!({
            "protocolVersion": params.get("protocolVersion").cloned().unwrap_or_else(|| json!("2025-11-25")),
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "notes", "version": "1.0.0" },
        })),
        "ping" => result(json!({})),
        "tools/list" => result(json!({ "tools": tools::listed(root) })),
        "tools/call" => {
            let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
            let arguments = params.get("arguments").cloned().unwrap_or_else(|| json!({}));
            match tools::call(root, name, &arguments) {
                tools::Reply::Once(answer) => result(answer),
                tools::Reply::Never => Vec::new(),
                tools::Reply::Twice(answer, other) => [result(answer), result(other)].concat(),
                tools::Reply::After(notices, answer) => {
                    let notice = |number| {
                        json!({ "jsonrpc": "2.0", "method": "notifications/message",
                            "params": { "level": "info", "data": format!("notice {number}") } })
                    };
                    (0..notices).map(notice).chain(result(answer)).collect()
                }
            }
        }
        _ => vec![json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "no such method" } })],
    }
}
