//! Deployment files that do not fit: told by line, column and field.

use crate::support::{Place, counting};

/// Founds a changed deployment and expects the misfit at a field, on the line that holds `on`.
#[track_caller]
fn check(change: impl Fn(String) -> String, field: &str, on: &str) {
    let text = change(counting("conditional"));
    let place = Place::with(&text);
    let misfit = place.call(&["--json", "init", place.path().to_str().unwrap()]).expect(1).json();
    assert_eq!(misfit["field"], field, "{misfit}");
    let line = usize::try_from(misfit["line"].as_u64().unwrap()).unwrap();
    let told = line.checked_sub(1).and_then(|index| text.lines().nth(index)).unwrap_or_default();
    assert!(told.contains(on), "line {line} is `{told}`: {misfit}");
    assert!(!place.store().exists());
}

#[test]
fn a_misfit_names_line_and_field() {
    check(|text| text.replace("until = \"idle\"", "until = \"tea\""), "run.until", "until = \"tea\"");
    check(|text| text.replace("every_ms = 100", "every_ms = 1.5"), "observation.0.every_ms", "every_ms = 1.5");
    check(
        |text| text.replace("effect_class = \"external_reversible\"", "effect_class = \"nice\""),
        "operation.0.effect_class",
        "nice",
    );
    check(|text| text.replace("expiry = \"now+30d\"", "expiry = \"now+30x\""), "grant.0.expiry", "now+30x");
    check(|text| text.replace("expiry = \"now+30d\"", "expiry = \"tomorrow\""), "grant.0.expiry", "tomorrow");
    check(|text| text.replace("broad = true", "brood = true"), "appointment.0.brood", "brood = true");
    check(|text| text.replace("kind = \"issuer\"", "kind = \"issuer\"\nroles = []"), "", "roles = ");
    check(|text| text + "\n[[wish]]\nid = 1\n", "wish", "[[wish]]");
    check(
        |text| {
            text.replace(
                "obligation_id = \"obligation.count\"\npredicate",
                "obligation_id = \"obligation.none\"\npredicate",
            )
        },
        "reentry.0.obligation_id",
        "obligation.none",
    );
    check(
        |text| text.replace("declaration = \"declaration.count\"", "declaration = \"declaration.none\""),
        "obligation.0.declaration",
        "declaration.none",
    );
}

/// The tables that begin with `[[section]]`, as they stand.
fn table(text: &str, section: &str) -> String {
    let from = text.find(&format!("[[{section}]]")).unwrap_or_else(|| panic!("{section}"));
    let rest = &text[from..];
    let to = rest[2..].find("\n[[").map_or(rest.len(), |to| to + 3);
    rest[..to].to_owned()
}

/// An id stands for one thing: a second table of it is told by line and field, and nothing was prepared before.
#[test]
fn an_id_is_given_once() {
    let more = "\n[[rule]]\nrule_id = \"rule.own\"\n\n[[policy]]\npolicy_id = \"policy.own\"\n\n[[goal]]\ngoal_id = \"goal.own\"\n\n\
        [[constraint]]\nconstraint_id = \"constraint.own\"\n\n[[claim]]\nclaim_id = \"claim.own\"\n\n\
        [[method]]\nmethod_id = \"method.own\"\n\n[[dependency]]\ndependency_id = \"dependency.own\"\n";
    let whole = counting("conditional") + more;
    let sections = [
        ("identity", "actor_id"),
        ("source", "source_id"),
        ("readback_method", "method"),
        ("operation", "operation"),
        ("appointment", "issuer"),
        ("grant", "grant_id"),
        ("declaration", "declaration_id"),
        ("obligation", "obligation_id"),
        ("reentry", "reentry_id"),
        ("participant", "identity"),
        ("rule", "rule_id"),
        ("policy", "policy_id"),
        ("goal", "goal_id"),
        ("constraint", "constraint_id"),
        ("claim", "claim_id"),
        ("method", "method_id"),
        ("dependency", "dependency_id"),
    ];
    for (section, id) in sections {
        let twice = format!("{whole}\n{}", table(&whole, section));
        let place = Place::with(&twice);
        let misfit = place.call(&["--json", "init", place.path().to_str().unwrap()]).expect(1).json();
        let last =
            twice.lines().count() - twice.lines().rev().position(|line| line.starts_with(&format!("{id} ="))).unwrap();
        let index = twice.matches(&format!("[[{section}]]")).count() - 1;
        assert_eq!(misfit["field"], format!("{section}.{index}.{id}"), "{misfit}");
        assert_eq!(misfit["line"].as_u64(), Some(last as u64), "{misfit}");
        assert!(misfit["error"].as_str().unwrap().contains("is taken: line"), "{misfit}");
        assert!(!place.path().join("var").exists(), "nothing was prepared");
    }
    let keyed = "capabilities = [\"file.finish\"]";
    let key = format!("{{ public_key = \"{}\" }}", "ab".repeat(32));
    check(
        |text| text.replace(keyed, &format!("{keyed}\nkeys = [{key}, {key}]")),
        "identity.0.keys.1.public_key",
        "keys = ",
    );
    let named = "{ name = \"n\", type = \"integer\" }";
    let parameters = |text: String| {
        text.replace(
            "target_type = \"file\"\nreadback_method",
            &format!("target_type = \"file\"\nparameters = [{named}, {named}]\nreadback_method"),
        )
    };
    check(parameters, "operation.0.parameters.1.name", "parameters = ");
}

#[test]
fn each_of_the_ten_answers_is_asked_for() {
    for question in 1..=10 {
        let whole = counting("conditional");
        let without: String = whole
            .lines()
            .filter(|line| !line.starts_with(&format!("q{question} ")))
            .map(|line| format!("{line}\n"))
            .collect();
        let place = Place::with(&without);
        let misfit = place.call(&["--json", "init", place.path().to_str().unwrap()]).expect(1).json();
        assert_eq!(misfit["field"], "profile.answers");
        let reason = misfit["error"].as_str().unwrap();
        assert!(reason.contains("profile_incomplete") && reason.contains(&format!("[{question}]")), "{reason}");
    }
}

#[test]
fn wrong_calls_are_told_apart() {
    let place = Place::with(&counting("conditional"));
    place.call(&["fly"]).expect(2);
    place.call(&["--help"]).expect(0);
    place.call(&["obligation", "list"]).expect(4);
    place.call(&["init", place.path().to_str().unwrap()]).expect(0);
    place.call(&["init", place.path().to_str().unwrap()]).expect(1);
    for (arguments, code) in [
        (&["obligation", "show", "obligation.none"][..], 4),
        (&["obligation", "trace", "obligation.none"], 4),
        (&["obligation", "why", "obligation.none"], 4),
        (&["bench", "show", "decision.none"], 4),
        (&["receipt", "show", "99"], 4),
        (&["receipt", "show", "1"], 0),
        (&["keys", "list"], 0),
        (&["keys", "revoke", "sha256:none"], 4),
        (&["reentry", "list"], 0),
        (&["reentry", "test", "--json-text", "{\"operator\":\"TimeReached\"}"], 3),
        (&["reentry", "test", "--json-text", "{"], 2),
        (&["event", "send", "--source", "source.none", "--entity", "e", "--change", "c"], 4),
        (&["event", "send", "--source", "source.files", "--entity", "e", "--change", "file_changed"], 3),
        (&["restrict", "--issuer", "user.owner", "--operation", "file.finish", "--reason", "x"], 0),
        (&["restrict", "--issuer", "agent.worker", "--operation", "file.finish", "--reason", "x"], 3),
    ] {
        let called = place.call(arguments);
        assert_eq!(called.code, Some(code), "{arguments:?}: {called:?}");
    }
}

#[test]
fn a_trigger_and_a_key_are_registered_by_name() {
    let place = Place::with(&counting("conditional"));
    place.call(&["init", place.path().to_str().unwrap()]).expect(0);
    let reentry = place.path().join("reentry.toml");
    let text = "reentry_id = \"reentry.new\"\nobligation_id = \"obligation.count\"\n[predicate]\noperator = \"TimeReached\"\nat = \"2090-01-01T00:00:00Z\"\n";
    std::fs::write(&reentry, text).unwrap();
    place.call(&["reentry", "register", reentry.to_str().unwrap()]).expect(0);
    let listed = place.call(&["--json", "reentry", "list", "--obligation", "obligation.count"]).expect(0).json();
    assert_eq!(listed["reentries"].as_array().map(Vec::len), Some(2), "{listed}");
    let again = place.call(&["--json", "reentry", "register", reentry.to_str().unwrap()]).expect(3).json();
    assert_eq!(again["code"], "schema_invalid");

    let file = place.path().join("issuer.key");
    let key = place.call(&["--json", "keys", "new", file.to_str().unwrap()]).expect(0).json();
    let (public_key, key_id) = (key["public_key"].as_str().unwrap(), key["key_id"].as_str().unwrap());
    place.call(&["keys", "rotate", "issuer.security", public_key, "--scope", "EVENT"]).expect(0);
    place.call(&["keys", "revoke", key_id, "--compromised"]).expect(0);
    let listed = place.call(&["--json", "keys", "list"]).expect(0).json();
    assert_eq!(listed["keys"][0]["standing"], "compromised", "{listed}");
    // What was revoked stays so, and is not said twice.
    let again = ["--json", "keys", "rotate", "issuer.security", public_key, "--scope", "EVENT"];
    assert_eq!(place.call(&again).expect(3).json()["code"], "key_conflict");
    let twice = place.call(&["--json", "keys", "revoke", key_id, "--compromised"]).expect(0).json();
    assert_eq!(twice["recorded"], serde_json::json!([]));
    // Nobody else's word changes the registry.
    let other = place.call(&["--json", "--as", "issuer.security", "keys", "revoke", key_id]).expect(3).json();
    assert_eq!(other["code"], "unauthenticated", "{other}");
}
