//! Names that nobody types: streams of observations, and the version that an obligation is founded with.

use closer_contracts::canonical::digest_of;
use closer_contracts::digest::Digest;
use closer_contracts::fault::Fault;
use closer_contracts::item::Item;
use closer_contracts::obligation::Obligation;
use closer_contracts::reentry::{All, Any, Reentry, TypedPredicate};
use closer_contracts::refs::Target;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Replaces `METHOD TYPE ACCOUNT ADDRESS` in every `after_cursor` of a predicate by the stream of these observations.
pub(super) fn streams(predicate: &mut Value, items: &[Item]) -> Result<(), String> {
    if let Some(Value::Array(children)) = predicate.get_mut("items") {
        children.iter_mut().try_for_each(|child| streams(child, items))?;
    }
    if predicate.get("compared_version").and_then(Value::as_str) == Some("as founded")
        && let Some(members) = predicate.as_object_mut()
    {
        members.insert("compared_version".to_owned(), json!(as_founded()));
    }
    let Some(Value::Object(cursor)) = predicate.get_mut("after_cursor") else {
        return Ok(());
    };
    let mut named = Map::new();
    for (stream, after) in std::mem::take(cursor) {
        named.insert(stream_of(&stream, items)?, after);
    }
    *cursor = named;
    Ok(())
}

fn stream_of(text: &str, items: &[Item]) -> Result<String, String> {
    let mut words = text.splitn(4, ' ');
    let (Some(method), Some(r#type), Some(account), Some(address)) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Ok(text.to_owned());
    };
    let registered = items.iter().find_map(|item| {
        if let Item::ReadbackMethod(registered) = item { Some(registered) } else { None }
            .filter(|registered| registered.method.as_str() == method)
    });
    let registered = registered.ok_or_else(|| format!("no readback method is called `{method}`"))?;
    let target = Target { r#type: r#type.into(), account: account.into(), address: address.into() };
    Ok(closer_protocol::readback::observation_stream(registered, &target).to_string())
}

/// The digest of nothing: what a trigger names that compares with whatever is founded.
fn as_founded() -> Digest {
    Digest::of(b"as founded")
}

/// Lets triggers that compare with `as_founded` compare with the obligation as it is founded.
pub(super) fn compare_with_founded(obligations: &mut [(Obligation, Vec<Reentry>)]) -> Result<(), Fault> {
    let mut founded = BTreeMap::new();
    for (obligation, _) in obligations.iter() {
        let digest = digest_of(&Item::Obligation(obligation.clone()))?;
        founded.insert(obligation.obligation_id.to_string(), digest);
    }
    for reentry in obligations.iter_mut().flat_map(|(_, reentries)| reentries) {
        compare(&mut reentry.predicate, &founded);
    }
    Ok(())
}

fn compare(predicate: &mut TypedPredicate, founded: &BTreeMap<String, Digest>) {
    match predicate {
        TypedPredicate::DependencyVersionChanged(leaf) => {
            if let (true, Some(digest)) =
                (leaf.compared_version == as_founded(), founded.get(leaf.dependency_ref.as_str()))
            {
                leaf.compared_version = *digest;
            }
        }
        TypedPredicate::All(All { items }) | TypedPredicate::Any(Any { items }) => {
            items.iter_mut().for_each(|item| compare(item, founded));
        }
        TypedPredicate::EvidenceAdded(_)
        | TypedPredicate::UserDecisionReceived(_)
        | TypedPredicate::CapabilityVerified(_)
        | TypedPredicate::HandoffAccepted(_)
        | TypedPredicate::TimeReached(_)
        | TypedPredicate::Unsupported(_) => {}
    }
}
