//! Reading deployment files: what is left out, what is relative, what does not fit.

use super::*;
use closer_contracts::item::{Item, ItemKind};
use closer_contracts::reentry::TypedPredicate;

fn now() -> Timestamp {
    Timestamp::parse("2026-01-31T00:00:00Z").unwrap()
}

fn example(name: &str) -> Deployment {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name);
    // Companions and programs beside the binary are not needed to read a file.
    Deployment::load(&root, &now()).unwrap_or_else(|misfit| panic!("{misfit}"))
}

fn founded<'a>(deployment: &'a Deployment, kind: ItemKind, id: &str) -> &'a Item {
    let mut items = deployment.founding.items.iter();
    items.find(|item| item.kind() == kind && item.id().as_str() == id).unwrap_or_else(|| panic!("no {kind} `{id}`"))
}

#[test]
fn relative_times_count_from_the_given_moment() {
    let at = |text: &str| moments::moment(text, &now());
    for (text, expected) in [
        ("now", "2026-01-31T00:00:00.000Z"),
        ("now+1d", "2026-02-01T00:00:00.000Z"),
        ("now-90m", "2026-01-30T22:30:00.000Z"),
        ("now+250ms", "2026-01-31T00:00:00.250Z"),
    ] {
        assert_eq!(at(text).unwrap().map(|time| time.unix_ms()), Some(Timestamp::parse(expected).unwrap().unix_ms()));
    }
    for text in ["", "nowhere", "2026-01-31T00:00:00Z", "right now"] {
        assert_eq!(at(text), Ok(None), "{text}");
    }
    for text in ["now+", "now+d", "now+1w", "now-x1d", "now+99999999999d"] {
        assert!(at(text).is_err(), "{text}");
    }
}

#[test]
fn what_is_left_out_is_filled_in() {
    let deployment = example("certificate-renewal");
    let Item::Operation(operation) = founded(&deployment, ItemKind::Operation, "certificate.renew") else { panic!() };
    assert_eq!(operation.contract_digest, closer_contracts::canonical::digest_of(&operation.contract).unwrap());
    assert_eq!(operation.verification.contract_digest, operation.contract_digest);
    assert_eq!(operation.verification.identity.as_str(), "user.owner");
    let Item::Grant(grant) = founded(&deployment, ItemKind::Grant, "grant.renew-web") else { panic!() };
    assert_eq!(grant.expiry, now().plus_ms(365 * 24 * 3_600_000));
    assert_eq!(grant.revocation.revoked_by, None);
    founded(&deployment, ItemKind::Rule, "rule.sufficiency");
    founded(&deployment, ItemKind::Policy, "policy.deadline");
    founded(&deployment, ItemKind::Identity, "user.owner");
    for (obligation, reentries) in &deployment.founding.obligations {
        let listed: Vec<_> = reentries.iter().map(|reentry| reentry.reentry_id.clone()).collect();
        assert_eq!(obligation.reentry_refs, listed);
    }
}

#[test]
fn paths_in_contracts_are_absolute_and_streams_have_their_names() {
    let deployment = example("certificate-renewal");
    let Item::Operation(operation) = founded(&deployment, ItemKind::Operation, "certificate.renew") else { panic!() };
    let root = operation.contract.0.pointer("/run/target_root").and_then(Value::as_str).unwrap();
    assert_eq!(Path::new(root), deployment.directory.join("var/certs"));
    let (_, reentries) = deployment
        .founding
        .obligations
        .iter()
        .find(|(kept, _)| kept.obligation_id.as_str() == "obligation.mail")
        .unwrap();
    let TypedPredicate::All(all) = &reentries[0].predicate else { panic!() };
    let TypedPredicate::EvidenceAdded(leaf) = &all.items[1] else { panic!() };
    let stream = leaf.after_cursor.keys().next().unwrap();
    assert!(stream.as_str().starts_with("certificate.parse.") && !stream.as_str().contains(' '), "{stream}");
}

const COALITION: &str = r#"
[[identity]]
actor_id = "agent.second"
kind = "producer"
roles = ["participant"]

[[capability]]
capability_id = "capability.reading"
text = "Reads certificates."
contract = { reads = "x509" }
endpoints = [{ identity = "agent.second" }]

[[workflow]]
workflow_id = "workflow.check"
text = "Check what is there."
needs = ["capability.reading"]

[[skill]]
skill_id = "skill.look"
text = "Look twice."
workflows = ["workflow.check"]

[[coalition]]
coalition_id = "coalition.two"
needs = ["capability.reading"]
members = [
    { actor = "agent.renewal", role = "worker" },
    { actor = "agent.second", role = "checker", capabilities = ["capability.reading"], worst_case = { tokens = 4000 } },
]

[coalition.inquiry]
seal_within_ms = 5000

[[participant]]
identity = "agent.second"
kind = "model"
endpoint = "http://127.0.0.1:9/v1/"
model = "small"
key_file = "./keys/small"
roles.checker = { lists = ["objections"] }
"#;

fn with_coalition(change: impl Fn(String) -> String) -> Result<Deployment, Misfit> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/certificate-renewal");
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::read_to_string(root.join(FILE)).unwrap();
    std::fs::write(folder.path().join(FILE), change(format!("{file}\n{COALITION}"))).unwrap();
    Deployment::load(folder.path(), &now())
}

#[test]
fn a_coalition_is_written_short_and_founded_whole() {
    let deployment = with_coalition(|file| file).unwrap_or_else(|misfit| panic!("{misfit}"));
    deployment.fits_founding().unwrap_or_else(|misfit| panic!("{misfit}"));
    let Item::Coalition(coalition) = founded(&deployment, ItemKind::Coalition, "coalition.two") else { panic!() };
    let Item::Capability(capability) = founded(&deployment, ItemKind::Capability, "capability.reading") else {
        panic!()
    };
    let cited = &coalition.members[1].capabilities[0];
    assert_eq!((cited.version, cited.digest), (capability.version, capability.contract_digest));
    assert_eq!(capability.endpoints[0].contract_digest, capability.contract_digest);
    assert_eq!(coalition.members[0].model.as_str(), "agent.renewal", "who is no model stands for itself");
    let inquiry = coalition.inquiry.as_ref().unwrap();
    assert_eq!((inquiry.seal_within_ms, inquiry.decision_rule_ref.id.as_str()), (5000, "rule.decision"));
    let Some(ParticipantConfig::Model(model)) = deployment.participants.get(&"agent.second".into()) else { panic!() };
    assert_eq!(model.key_file.as_deref(), Some(deployment.directory.join("keys/small").as_path()));
}

#[test]
fn what_a_coalition_names_is_declared() {
    for (right, wrong) in [
        ("capabilities = [\"capability.reading\"]", "capabilities = [\"capability.unheard-of\"]"),
        ("{ actor = \"agent.second\", role", "{ actor = \"agent.third\", role"),
        ("workflows = [\"workflow.check\"]", "workflows = [\"workflow.unheard-of\"]"),
        ("endpoint = \"http://127.0.0.1:9/v1/\"", "endpoint = \"127.0.0.1:9\""),
        ("[coalition.inquiry]\nseal_within_ms = 5000", ""),
    ] {
        let changed = with_coalition(|file| file.replace(right, wrong));
        let changed = changed.and_then(|deployment| deployment.fits_founding());
        assert!(changed.is_err(), "{wrong}");
    }
}
