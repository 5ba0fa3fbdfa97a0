//! What leaves the record, and what is done when something left that should not have.

use crate::support::{Place, counting};
use closer_contracts::shows;
use std::fs;

const RULES: &str = r#"
[[profile.disclosure_rules]]
purpose = "audit"
recipient = "auditor"
categories = ["grant"]
permitted_use = ["look"]

[[identity]]
actor_id = "auditor"
kind = "producer"
roles = ["observer"]

[[identity]]
actor_id = "agent.worker"
"#;

fn place() -> Place {
    Place::with(&counting("conditional").replacen("\n[[identity]]\nactor_id = \"agent.worker\"\n", RULES, 1))
}

#[test]
fn an_export_is_a_projection_under_a_receipt_and_no_store() {
    let place = place();
    place.run(&[]).expect(0);
    let whole = ["--json", "export", "--for", "auditor"];
    assert_eq!(place.call(&whole).expect(3).json()["code"], "disclosure_denied");
    let called = place.call(&[&whole[..], &["--purpose", "audit"]].concat()).expect(0);
    let export: closer_protocol::disclose::Export = serde_json::from_str(&called.stdout).unwrap();
    export.verify().unwrap();
    let ids: Vec<&str> = export.items.iter().map(|exported| exported.item.reference.id.as_str()).collect();
    assert_eq!(ids, ["grant.finish", export.receipt.coverage_receipt_ref.as_str()]);
    assert!(export.items[0].accepted.is_some() && export.receipt.withheld_categories.contains(&"receipt".into()));
    let read = place.call(&["export", "--for", "auditor", "--purpose", "audit"]).expect(0).stdout;
    assert!(read.contains("withheld") && read.contains("grant.finish (accepted, with proof)"), "{read}");
    // Others than the user have nothing released to somebody else.
    let others = place.call(&["--json", "--as", "issuer.security", "export", "--for", "auditor", "--purpose", "audit"]);
    assert_eq!(others.expect(3).json()["code"], "redistribution_denied");
    // It is a part of the record: no space comes of it.
    let folder = place.path().join("export");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("export.json"), &called.stdout).unwrap();
    let elsewhere = place.path().join("elsewhere");
    place.call(&["restore", folder.to_str().unwrap(), elsewhere.to_str().unwrap()]).expect(4);
    assert!(!elsewhere.join("log").exists());
}

#[test]
fn the_record_as_it_stands_is_shown_to_its_user_alone() {
    let place = place();
    place.run(&[]).expect(0);
    for verb in
        [&["obligation", "list"][..], &["obligation", "why", "obligation.count"], &["bench", "list"], &["keys", "list"]]
    {
        place.call(verb).expect(0);
        let other = place.call(&[&["--json", "--as", "auditor"][..], verb].concat()).expect(3).json();
        assert_eq!(other["code"], "disclosure_denied", "{verb:?}");
    }
    place.call(&["--as", "auditor", "export", "--for", "auditor", "--purpose", "audit"]).expect(0);
}

#[test]
fn an_incident_is_taken_through_its_steps_in_their_order() {
    let place = place();
    place.run(&[]).expect(0);
    let report = ["--json", "incident", "report", "--item", "grant.finish", "--recipient"];
    place.call(&[&report[..], &["auditor"]].concat()).expect(4);
    let opened = place.call(&[&report[..], &["agent.worker"]].concat()).expect(0).json();
    let id = opened["recorded"][0]["id"].as_str().unwrap().to_owned();
    let asked = ["--json", "export", "--for", "auditor", "--purpose", "audit", "--item", "grant.finish"];
    assert_eq!(place.call(&asked).expect(3).json()["code"], "release_stopped");
    let reconcile = ["--json", "incident", "reconcile", &id, "--reason", "Asked by telephone."];
    assert_eq!(place.call(&reconcile).expect(3).json()["code"], "wrong_phase");
    place.call(&["incident", "notify", &id]).expect(0);
    place.call(&reconcile).expect(0);
    let shown = place.call(&["--json", "incident", "show", &id]).expect(0).json();
    assert_eq!(shown["state"], "reconciled_with_unknowns");
    assert_eq!(shown["unresolved_exposure"][0]["standing"], "unknown");
    let curious = place.call(&["--json", "--as", "auditor", "incident", "show", &id]).expect(3).json();
    assert_eq!(curious["code"], "disclosure_denied");
    place.call(&asked).expect(0);
}

#[test]
fn local_custody_is_offered_as_proof_of_no_privacy() {
    shows!("CP-6.5-02");
    let cli = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/cli.md")).unwrap();
    let limit = cli.lines().skip_while(|line| !line.contains("no proof of privacy")).take(2).collect::<String>();
    for place in ["folder that synchronizes", "backups", "tools that are called", "calls to a cloud"] {
        assert!(limit.contains(place), "{place} in {limit}");
    }
}
