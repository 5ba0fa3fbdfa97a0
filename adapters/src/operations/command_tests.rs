//! Commands as operations.

use super::*;
use crate::fixture::{clock, doubt, permitted, refusal, response, target};
use crate::process::MemoryLedger;
use std::time::{Duration, Instant};

fn contract(arguments: &[&str]) -> Value {
    json!({
        "kind": "command",
        "account": "host",
        "run": { "program": "/bin/sh", "arguments": arguments, "deadline_ms": 10_000 },
    })
}

fn run(contract: &Value, parameters: &[(&str, Value)]) -> Performed {
    let permitted = permitted(contract, target("host", "a target; rm -rf $HOME"), parameters);
    let mut members = contract.as_object().unwrap().clone();
    members.remove("kind");
    let contract: Command = serde_json::from_value(Value::Object(members)).unwrap();
    perform(&permitted, &contract, &clock(), &MemoryLedger::default())
}

#[test]
fn values_arrive_as_they_are_and_status_and_output_are_reported() {
    let contract = contract(&[
        "-c",
        "printf '%s|%s|%s' \"$1\" \"$2\" \"$3\"; echo oops >&2; exit 3",
        "sh",
        "{target}",
        "--n={n}",
        "{b}",
    ]);
    let response = response(run(&contract, &[("n", json!(-7)), ("b", json!(true))]));
    assert_eq!(response["status"], 3);
    assert_eq!(response["stdout"]["text"], "a target; rm -rf $HOME|--n=-7|true");
    assert_eq!(response["stderr"], json!({ "text": "oops\n", "bytes": 5, "is_cut": false }));
}

#[test]
fn parameters_that_cannot_be_one_argument_are_refused() {
    let contract = contract(&["-c", "true", "sh", "{x}"]);
    assert!(refusal(run(&contract, &[])).contains("no parameter"));
    assert!(refusal(run(&contract, &[("x", json!("--help"))])).contains("option"));
    assert!(refusal(run(&contract, &[("x", json!(["a"]))])).contains("no single value"));
    assert!(refusal(run(&contract, &[("x", json!("a\u{0}b"))])).contains("zero byte"));
}

#[test]
fn the_environment_is_the_allowed_one_and_standard_input_is_empty() {
    let mut contract = contract(&["-c", "cat; env"]);
    contract["run"]["environment"] = json!({ "SET": "yes" });
    contract["run"]["environment_allowed"] = json!(["PATH", "NOT_THERE"]);
    let response = response(run(&contract, &[]));
    let text = response["stdout"]["text"].as_str().unwrap();
    let mut names: Vec<&str> = text.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    names.sort_unstable();
    // `PWD`, `SHLVL` and `_` are the shell's own.
    names.retain(|name| !["PWD", "SHLVL", "_", "OLDPWD"].contains(name));
    assert_eq!(names, ["CLOSER_ATTEMPT", "PATH", "SET"]);
}

#[test]
fn long_output_is_cut_and_does_not_stop_the_program() {
    let mut contract = contract(&["-c", "head -c 1000000 /dev/zero | tr '\\0' 'x'; exit 0"]);
    contract["run"]["environment_allowed"] = json!(["PATH"]);
    contract["run"]["output_bytes_max"] = json!(100);
    let response = response(run(&contract, &[]));
    assert_eq!(response["status"], 0);
    assert_eq!(response["stdout"], json!({ "text": "x".repeat(100), "bytes": 1_000_000, "is_cut": true }));
}

#[test]
fn a_program_that_is_ended_leaves_the_outcome_unknown() {
    let mut slow = contract(&["-c", "sleep 60"]);
    slow["run"]["deadline_ms"] = json!(100);
    let begun = Instant::now();
    assert!(doubt(run(&slow, &[])).contains("had not ended after 100 ms"));
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert!(doubt(run(&contract(&["-c", "kill -9 $$"]), &[])).contains("signal 9"));
}

#[test]
fn a_program_that_cannot_start_was_not_sent() {
    let mut contract = contract(&[]);
    contract["run"]["program"] = json!("/nonexistent/program");
    assert!(refusal(run(&contract, &[])).contains("could not be started"));
    contract["run"]["program"] = json!("sh");
    assert!(refusal(run(&contract, &[])).contains("absolute"));
}
