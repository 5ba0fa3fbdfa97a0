//! The two deployments a newcomer runs.

use crate::support::{Place, body, entries, free_port, has_openssl};
use closer_contracts::envelope::Body;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn stages(run: &Value, obligation: &str) -> Vec<String> {
    let told = run["obligations"].as_array().unwrap();
    let told = told.iter().find(|told| told["obligation_id"] == obligation).unwrap();
    assert_eq!(told["trace"]["gaps"], serde_json::json!([]), "{told}");
    let steps = told["trace"]["steps"].as_array().unwrap();
    steps.iter().map(|step| step["stage"].as_str().unwrap().to_owned()).collect()
}

fn status<'a>(run: &'a Value, obligation: &str) -> &'a str {
    let told = run["obligations"].as_array().unwrap().iter().find(|told| told["obligation_id"] == obligation);
    told.unwrap()["status"].as_str().unwrap()
}

/// Whether openssl says that the certificate is still valid so many seconds from now.
fn is_valid_for(place: &Place, certificate: &str, seconds: u64) -> bool {
    let file = place.path().join("var/certs").join(certificate);
    let checked =
        Command::new("openssl").args(["x509", "-noout", "-checkend", &seconds.to_string(), "-in"]).arg(file).output();
    checked.unwrap().status.success()
}

fn public_key(place: &Place, certificate: &str) -> Vec<u8> {
    let file = place.path().join("var/certs").join(certificate);
    Command::new("openssl").args(["x509", "-noout", "-pubkey", "-in"]).arg(file).output().unwrap().stdout
}

const DAYS_30: u64 = 30 * 24 * 3_600;

#[test]
fn certificates_are_renewed_to_a_committed_closure() {
    if !has_openssl() {
        return;
    }
    let place = Place::example("certificate-renewal", |text| text);
    place.call(&["init", place.path().to_str().unwrap()]).expect(0);
    let before = ["web.pem", "mail.pem"].map(|certificate| public_key(&place, certificate));
    assert!(!is_valid_for(&place, "web.pem", DAYS_30));
    let run = place.run(&["--answer", "--json"]).expect(0).json();
    assert_eq!((status(&run, "obligation.web"), status(&run, "obligation.mail")), ("resolved", "resolved"));
    assert!(is_valid_for(&place, "web.pem", DAYS_30) && is_valid_for(&place, "mail.pem", DAYS_30));
    // The grant renews with the key there is; a new key took the owner's word.
    assert_eq!(public_key(&place, "web.pem"), before[0]);
    assert_ne!(public_key(&place, "mail.pem"), before[1]);
    let web = stages(&run, "obligation.web");
    let chain = [
        "event",
        "match",
        "activation",
        "work",
        "result",
        "action",
        "pre_action",
        "dispatch",
        "readback",
        "post_outcome",
        "delta",
        "endorsement",
        "receipt",
    ];
    assert!(web.windows(chain.len()).any(|window| window == chain), "{web:?}");
    let mail = stages(&run, "obligation.mail");
    let judged: Vec<&String> =
        mail.iter().filter(|stage| ["bench", "decision", "grant", "dispatch"].contains(&stage.as_str())).collect();
    assert_eq!(judged, ["bench", "decision", "grant", "dispatch"]);
    // A second run finds nothing to do and changes nothing.
    let again = place.run(&["--answer", "--json"]).expect(0).json();
    assert_eq!(again["state"], run["state"]);
}

#[test]
fn without_an_answer_it_stops_at_the_bench_and_says_how_to_go_on() {
    if !has_openssl() {
        return;
    }
    let place = Place::example("certificate-renewal", |text| text);
    let stopped = place.run(&[]).expect(6);
    assert!(stopped.stdout.contains("obligation.mail: awaiting_user_judgment"), "{stopped:?}");
    assert!(stopped.stderr.contains("bench decide decision-"), "{stopped:?}");
    let why = place.call(&["--json", "obligation", "why", "obligation.mail"]).expect(0).json();
    let decision = why["waiting"][0]["decision_id"].as_str().unwrap().to_owned();
    assert_eq!(why["waiting"][0]["for"], "user");
    let shown = place.call(&["--json", "bench", "show", &decision]).expect(0).json();
    assert_eq!(shown["packet"]["requested_authorization"]["action"]["proposal"]["operation"], "certificate.rekey");
    // Refusing leaves it open; nothing is done.
    let key = public_key(&place, "mail.pem");
    place.call(&["bench", "decide", &decision, "perhaps"]).expect(4);
    place.call(&["bench", "decide", &decision, "allow"]).expect(0);
    let twice = place.call(&["--json", "bench", "decide", &decision, "allow"]).expect(3).json();
    assert_eq!(twice["code"], "stale_packet");
    assert_eq!(public_key(&place, "mail.pem"), key);
    place.run(&[]).expect(0);
    assert_ne!(public_key(&place, "mail.pem"), key);
}

#[test]
fn a_revoked_key_restricts_at_once() {
    if !has_openssl() {
        return;
    }
    let place = Place::example("certificate-renewal", |text| text);
    place.call(&["init", place.path().to_str().unwrap()]).expect(0);
    let send = [
        "--as",
        "issuer.security",
        "event",
        "send",
        "--source",
        "source.security",
        "--entity",
        "key.web",
        "--change",
        "key_revoked",
    ];
    place.call(&send).expect(0);
    // The renewal is due and granted, and restricted all the same; what remains is to reconcile the restriction.
    let run = place.run(&["--json"]);
    assert_eq!(run.code, Some(6), "{run:?}");
    assert_ne!(status(&run.json(), "obligation.web"), "resolved");
    assert!(!is_valid_for(&place, "web.pem", DAYS_30));
    let why = place.call(&["--json", "obligation", "why", "obligation.web"]).expect(0).json();
    assert_eq!(why["waiting"][0]["for"], "restriction", "{why}");
    let refused: Vec<&str> =
        why["refused"].as_array().unwrap().iter().map(|refusal| refusal["code"].as_str().unwrap()).collect();
    assert!(refused.contains(&"restricted"), "{why}");
}

/// The key of something else restricts nothing here, and nobody is asked to look into it.
#[test]
fn a_key_revoked_elsewhere_restricts_nothing() {
    if !has_openssl() {
        return;
    }
    let place = Place::example("certificate-renewal", |text| text);
    place.call(&["init"]).expect(0);
    let send = ["--as", "issuer.security", "event", "send", "--source", "source.security", "--change", "key_revoked"];
    place.call(&[&send[..], &["--entity", "key.elsewhere"]].concat()).expect(0);
    let run = place.run(&["--json"]).expect(6).json();
    assert_eq!(status(&run, "obligation.web"), "resolved");
    let kept: Vec<&str> =
        run["obligations"].as_array().unwrap().iter().filter_map(|told| told["obligation_id"].as_str()).collect();
    assert_eq!(kept, ["obligation.mail", "obligation.web"]);
}

/// Builds the provider where a run of this package's tests alone left it out; a run of the whole workspace has it.
fn build_the_provider() {
    if Path::new(env!("CARGO_BIN_EXE_closer")).with_file_name("cost-provider").exists() {
        return;
    }
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "-p", "cost-provider"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    assert!(build.status().unwrap().success());
}

#[test]
fn a_cheaper_plan_is_taken_on_the_owners_word_alone() {
    build_the_provider();
    let port = free_port().to_string();
    let place = Place::example("cost-candidate", |text| text.replace("18473", &port));
    let stopped = place.run(&["--json"]).expect(6).json();
    assert_eq!(status(&stopped, "obligation.export"), "resolved");
    // Other work went on while the question waits, and nothing was changed.
    assert_eq!(status(&stopped, "obligation.running"), "resolved");
    assert_eq!(status(&stopped, "obligation.cost"), "awaiting_user_judgment");
    let provider = |place: &Place| -> Value {
        let state = std::fs::read_to_string(place.path().join("var/provider/state.json")).unwrap();
        serde_json::from_str(&state).unwrap()
    };
    assert_eq!(provider(&place)["changes"], 0);
    // What the page leaves open is asked by a permitted action, once, and the obligation closed on what it showed.
    let entries = entries(&place);
    let probes = entries.iter().filter_map(|(_, entry)| {
        let action = if let Some(Body::Action(action)) = body(entry) { action } else { return None };
        Some((action.operation.to_string(), action.authority_ref.to_string()))
    });
    assert_eq!(probes.collect::<Vec<_>>(), [("capability.probe".to_owned(), "grant.probe".to_owned())]);
    // The probe stands in the trace of the obligation that it was for, before the commit that rests on what it showed.
    let probed = stages(&stopped, "obligation.export");
    let place_of = |stage: &str| probed.iter().position(|told| told == stage);
    assert!(place_of("dispatch").is_some() && place_of("dispatch") < place_of("delta"), "{probed:?}");
    let run = place.run(&["--answer", "--json"]).expect(0).json();
    assert_eq!(status(&run, "obligation.cost"), "resolved");
    let state = provider(&place);
    assert_eq!((&state["changes"], &state["accounts"]["acme"]["plan"]), (&1.into(), &"economy".into()));
    assert!(stages(&run, "obligation.cost").contains(&"readback".to_owned()));
}

/// An answer that leads back to the same question is not given for ever.
#[test]
fn answering_stops_where_the_same_question_comes_back() {
    if !has_openssl() {
        return;
    }
    let place = Place::example("certificate-renewal", |text| text);
    let run = place.run(&["--answer", "investigate"]).expect(6);
    assert_eq!(run.stderr.matches("answered: investigate").count(), 1, "{}", run.stderr);
    assert!(run.stderr.contains("nothing new was found since"), "{}", run.stderr);
    let again = place.run(&["--answer", "investigate"]).expect(6);
    assert_eq!(again.stderr.matches("answered: investigate").count(), 0, "{}", again.stderr);
    place.run(&["--answer"]).expect(0);
}

/// A companion whose place is taken is not mistaken for the one that took it.
#[test]
fn a_port_that_is_taken_is_no_companion() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let place = Place::example("cost-candidate", |text| {
        text.replace("18473", &port).replace("beside:cost-provider", "/bin/sleep").replace(
            &format!("arguments = [\"var/provider/state.json\", \"--port\", \"{port}\"]"),
            "arguments = [\"60\"]",
        )
    });
    let run = place.run(&[]);
    assert_ne!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.contains("already listens"), "{run:?}");
}

/// What an agent writes does not draw on the place where a person decides.
#[test]
fn what_an_agent_writes_controls_no_terminal() {
    if !has_openssl() {
        return;
    }
    let place = Place::example("certificate-renewal", |text| {
        text.replace("address = \"mail.pem\" }", "address = \"mail.pem\\u001b[31m\\n  answer: yes\\u202e\" }")
    });
    let run = place.run(&[]);
    let shown = [run, place.call(&["bench", "list"]), place.call(&["obligation", "why", "obligation.mail"])];
    for told in &shown {
        assert!(!told.stdout.contains(['\u{1b}', '\u{202e}']) && !told.stderr.contains('\u{202e}'), "{told:?}");
        assert!(!told.stdout.lines().any(|line| line.trim_start().starts_with("answer: yes")), "{told:?}");
    }
    assert!(shown.iter().any(|told| told.stdout.contains("\\u{1b}") || told.stderr.contains("\\u{1b}")), "{shown:?}");
}
