//! Policies over whole packets; the two examples' own decisions among them.

use super::*;
use crate::participants::{ParticipantConfig, Scripted, Validator};
use closer_contracts::Check;
use closer_contracts::refs::{ArtifactRef, Plain};
use closer_contracts::work::{Need, Question, ReasonClass, StopCondition};
use serde_json::json;

fn packet(role: &str, contents: &[Value]) -> Work {
    Work {
        work_id: "work-1".into(),
        question: Question { text: "what next?".into(), subject_refs: Vec::new() },
        role: role.into(),
        coalition_ref: "coalition-1".into(),
        membership_version: 1,
        context_items: contents
            .iter()
            .enumerate()
            .map(|(index, content)| ContextItem {
                reference: ArtifactRef {
                    id: format!("item-{index}").as_str().into(),
                    digest: canonical::digest_of(content).unwrap(),
                },
                content: Plain(content.clone()),
            })
            .collect(),
        proposal_vocabulary_ref: version("vocabulary"),
        output_contract_ref: version("contract"),
        stop_condition: StopCondition { rounds_max: 1, calls_max: 1, time_ms_max: 1_000 },
        deadline: None,
        extensions: None,
    }
}

fn version(id: &str) -> closer_contracts::refs::VersionedRef {
    closer_contracts::refs::VersionedRef { id: id.into(), version: 1 }
}

fn evidence(id: &str, kind: &str, address: &str, value: &Value) -> Value {
    json!({
        "evidence_id": id,
        "source": { "source_id": "source-1" },
        "artifact_ref": { "id": "artifact-1", "digest": canonical::digest_of("x").unwrap() },
        "observed_at": "2026-01-01T00:00:00Z",
        "target_binding": {
            "target": { "type": kind, "account": "acme", "address": address },
            "observation_sequence_ref": format!("acme/{kind}"),
            "observation_version": 4,
            "target_version": "2026.3",
        },
        "observation": { "type": kind, "value": value },
        "limitations": ["seen once"],
        "action_ref": null,
        "readback": null,
    })
}

fn policy(toml: &str) -> Policy {
    toml::from_str(toml).unwrap()
}

fn answer_of(policy: &Policy, role: &str, contents: &[Value]) -> WorkResult {
    let result = policy.answer(&packet(role, contents)).unwrap();
    result.check().unwrap();
    result
}

/// The certificate's owner: renew when fewer than 30 days remain, with the same key.
const CERTIFICATE: &str = r#"
    [[rules]]
    name = "a certificate with enough time needs nothing"
    items.cert = [{ field = "/observation/type", comparison = "equals", value = "certificate" }]
    when = [{ field = "cert/observation/value/not_after", comparison = "not_before", value = "{{cert/observed_at + 30d}}" }]
    last = true
    assess = [{ evidence = "cert", proposition_id = "proposition-valid", relation = "supports" }]

    [[rules]]
    name = "renew with the same key"
    roles = ["worker"]
    items.cert = [{ field = "/observation/type", comparison = "equals", value = "certificate" }]
    absent = [[{ field = "/observation/type", comparison = "equals", value = "revocation" }]]
    assess = [{ evidence = "cert", proposition_id = "proposition-valid", relation = "contradicts" }]

    [[rules.propose]]
    operation = "operation-renew"
    target = { type = "{{cert/target_binding/target/type}}", account = "{{cert/target_binding/target/account}}", address = "{{cert/target_binding/target/address}}" }
    parameters = { days = 90, subject = "renewed from {{cert/observation/value/serial}}" }

    [rules.propose.expected_postcondition]
    id = "postcondition-renewed"
    expectations = [
        { field = "not_after", comparison = "not_before", value = "{{cert/observed_at + 60d}}" },
        { field = "public_key_digest", comparison = "equals", value = "{{cert/observation/value/public_key_digest}}" },
    ]

    [[rules]]
    name = "a new key is the user's to decide"
    roles = ["worker"]
    items.cert = [{ field = "/observation/type", comparison = "equals", value = "certificate" }]
    items.gone = [{ field = "/observation/type", comparison = "equals", value = "revocation" }]

    [[rules.unresolved]]
    subject = "obligation-1"
    need = "authority"
    text = "the key {{gone/observation/value/key}} is revoked; a new one needs your grant"
"#;

fn certificate(not_after: &str) -> Value {
    let value = json!({ "not_after": not_after, "serial": "1001", "public_key_digest": "sha256:aa" });
    evidence("evidence-cert", "certificate", "site/cert.pem", &value)
}

#[test]
fn a_certificate_is_renewed_with_its_own_key_when_time_runs_out() {
    let policy = policy(CERTIFICATE);
    let fresh = answer_of(&policy, "worker", &[certificate("2026-02-01T00:00:00Z")]);
    assert_eq!((fresh.action_proposals.len(), fresh.assessments[0].relation), (0, Relation::Supports));

    let due = answer_of(&policy, "worker", &[certificate("2026-01-30T23:59:59Z")]);
    assert_eq!(due.assessments[0].relation, Relation::Contradicts);
    let [proposal] = due.action_proposals.try_into().unwrap();
    assert_eq!(proposal.target.address.as_str(), "site/cert.pem");
    assert_eq!(proposal.parameters[&"days".into()], Plain(json!(90)));
    assert_eq!(proposal.parameters[&"subject".into()], Plain(json!("renewed from 1001")));
    let values: Vec<&Value> = proposal.expected_postcondition.expectations.iter().map(|one| &one.value.0).collect();
    assert_eq!(values, [&json!("2026-03-02T00:00:00.000Z"), &json!("sha256:aa")]);
}

#[test]
fn a_revoked_key_becomes_a_question_and_not_a_proposal() {
    let revoked = evidence("evidence-gone", "revocation", "key", &json!({ "key": "aa" }));
    let contents = [certificate("2026-01-10T00:00:00Z"), revoked];
    let asked = answer_of(&policy(CERTIFICATE), "worker", &contents);
    assert_eq!(asked.action_proposals, []);
    assert_eq!(asked.unresolved[0].need, Need::Authority);
    assert!(asked.unresolved[0].text.as_str().starts_with("the key aa is revoked"));
    let regulator = answer_of(&policy(CERTIFICATE), "regulator", &contents);
    assert_eq!((regulator.unresolved.len(), regulator.assessments.len()), (0, 0));
}

/// The cost candidate: probe while the export is not established, claim it once it is, then ask for the judgment.
const COST: &str = r#"
    [[rules]]
    name = "probe what the page does not establish"
    items.lead = [{ field = "/observation/type", comparison = "equals", value = "plans" }]
    absent = [[{ field = "/observation/type", comparison = "equals", value = "capability" }]]
    last = true

    [[rules.propose]]
    operation = "operation-probe"
    target = { type = "capability", account = "{{lead/target_binding/target/account}}", address = "export" }
    parameters = { plan = "{{lead/observation/value/cheapest/name}}" }
    expected_postcondition = { id = "postcondition-probed", expectations = [{ field = "feature", comparison = "equals", value = "export" }] }

    [[rules]]
    name = "every probe says something about the export"
    items.probe = [{ field = "/observation/type", comparison = "equals", value = "capability" }]
    each = "probe"
    when = [{ field = "probe/observation/value/available", comparison = "equals", value = true }]
    assess = [{ evidence = "probe", proposition_id = "proposition-export", relation = "supports", limitations = ["probed, not used"] }]

    [[rules]]
    name = "claim it at the version observed"
    items.probe = [{ field = "/observation/value/available", comparison = "equals", value = true }]
    claims = [{ applicability = ["at version {{probe/target_binding/target_version}}"], proposition = { proposition_id = "proposition-export", subject = "entity-economy", predicate = "offers", object = "export", scope = ["space"] } }]

    [[rules.objections]]
    subject = "{{probe/artifact_ref/digest}}"
    reason_class = "risk"
    text = "latency is not known"
    evidence_ids = ["{{probe/evidence_id}}"]
"#;

#[test]
fn a_cost_candidate_is_probed_first_and_claimed_at_its_version() {
    let policy = policy(COST);
    let lead =
        evidence("evidence-lead", "plans", "plans", &json!({ "cheapest": { "name": "economy", "price_minor": 700 } }));
    let first = answer_of(&policy, "investigator", std::slice::from_ref(&lead));
    assert_eq!(first.action_proposals[0].operation.as_str(), "operation-probe");
    assert_eq!(first.action_proposals[0].parameters[&"plan".into()], Plain(json!("economy")));

    let probe = |id: &str, available: bool| {
        evidence(id, "capability", "export", &json!({ "feature": "export", "available": available }))
    };
    let second = answer_of(
        &policy,
        "investigator",
        &[lead, probe("evidence-1", true), probe("evidence-2", false), probe("evidence-3", true)],
    );
    let assessed: Vec<&str> = second.assessments.iter().map(|one| one.evidence_id.as_str()).collect();
    assert_eq!(assessed, ["evidence-1", "evidence-3"]);
    let relation = &second.assessments[1];
    assert_eq!(relation.valid_at.observation_version, 4);
    assert_eq!(relation.limitations[0].as_str(), "seen once");
    assert_eq!(second.claims[0].applicability[0].as_str(), "at version 2026.3");
    // The newest item that fits is the one bound.
    assert_eq!(second.objections[0].evidence_ids[0].as_str(), "evidence-3");
}

#[test]
fn an_answer_is_the_same_bytes_every_time_and_reads_back() {
    let policy = policy(CERTIFICATE);
    let work = packet("worker", &[certificate("2026-01-10T00:00:00Z")]);
    let said = super::answer(&policy.answer(&work).unwrap()).unwrap();
    assert_eq!(said, super::answer(&policy.answer(&work).unwrap()).unwrap());
    let read = canonical::Canonical::<WorkResult>::read(&said.bytes).unwrap();
    assert_eq!(read.value().action_proposals.len(), 1);
}

#[test]
fn a_rule_that_cannot_be_filled_gives_no_answer_and_is_named() {
    for (rule, names) in [
        ("items.x = []\npropose = [{ operation = '{{x/none}}' }]", "nothing stands at `x/none`"),
        ("claims = [{ nonsense = 1 }]", "nonsense"),
        ("unresolved = [{ subject = '{{y}}', need = 'evidence', text = 't' }]", "no item is bound to `y`"),
        ("items.x = []\nassess = [{ evidence = 'x', proposition_id = 'p', relation = 'supports' }]", "no evidence"),
        ("each = 'z'", "`each` names no pattern"),
    ] {
        let policy = policy(&format!("[[rules]]\nname = 'the rule'\n{rule}"));
        let refused = policy.answer(&packet("worker", &[json!({ "a": 1 })])).unwrap_err();
        assert!(refused.reason.as_str().contains("the rule") && refused.reason.as_str().contains(names), "{refused:?}");
    }
}

#[test]
fn unknown_members_of_a_policy_are_refused() {
    let wrong = "[[rules]]\nname = 'x'\nassume = true";
    assert!(toml::from_str::<Policy>(wrong).unwrap_err().to_string().contains("assume"));
}

#[test]
fn a_validator_objects_to_each_item_that_is_not_as_demanded() {
    let validator: Validator = toml::from_str(
        r#"
        [[rules]]
        name = "within the user's limit"
        reason_class = "outside_constraint"
        items = [{ field = "/observation/type", comparison = "equals", value = "plan" }]
        demands = [{ field = "/observation/value/price_minor", comparison = "at_most", value = 1000 }]
        "#,
    )
    .unwrap();
    let plan = |price: Value| evidence("evidence-1", "plan", "plan", &json!({ "price_minor": price }));
    let contents = [plan(json!(1_000)), plan(json!(1_001)), plan(json!("cheap")), json!({ "other": true })];
    let work = packet("regulator", &contents);
    let objections = validator.answer(&work).unwrap().objections;
    let subjects: Vec<_> = objections.iter().map(|objection| objection.subject).collect();
    assert_eq!(subjects, [work.context_items[1].reference.digest, work.context_items[2].reference.digest]);
    assert_eq!(objections[0].reason_class, ReasonClass::OutsideConstraint);

    let mut forged = work;
    forged.context_items[0].content =
        Plain(json!({ "observation": { "type": "plan", "value": { "price_minor": 1 } } }));
    assert!(validator.answer(&forged).is_err());
}

#[tokio::test]
async fn a_scripted_participant_takes_its_time_and_answers_by_role() {
    let scripted: Scripted = toml::from_str(
        r#"
        delay_ms = 30
        jitter_ms = 20
        answers = [
            { role = "worker", result = { unresolved = [{ subject = "obligation-1", need = "evidence", text = "more" }] } },
            { role = "regulator" },
        ]
        "#,
    )
    .unwrap();
    let participant = ParticipantConfig::Scripted(scripted).build();
    for (role, unresolved) in [("worker", 1), ("regulator", 0)] {
        let begun = std::time::Instant::now();
        let said = participant.work(&packet(role, &[])).await.unwrap();
        assert!(begun.elapsed() >= std::time::Duration::from_millis(30));
        let result = canonical::Canonical::<WorkResult>::read(&said.bytes).unwrap();
        assert_eq!((result.value().work_id.as_str(), result.value().unresolved.len()), ("work-1", unresolved));
    }
    assert!(participant.work(&packet("stranger", &[])).await.is_err());
}
