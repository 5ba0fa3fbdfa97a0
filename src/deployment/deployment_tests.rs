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
