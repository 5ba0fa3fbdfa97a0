//! Grants: what may be done, by whose word, and how much of it is used. Taking one back is a restriction.

use super::{Answer, words};
use crate::space::Space;
use closer_contracts::audit::Grant;
use closer_contracts::id::GrantId;
use closer_contracts::item::{Item, ItemKind};
use closer_contracts::time::Timestamp;
use closer_protocol::View;
use serde_json::{Value, json};

fn standing(grant: &Grant, now: &Timestamp) -> &'static str {
    match (&grant.revocation.revoked_by, grant.expiry <= *now) {
        (Some(_), _) => "revoked",
        (None, true) => "expired",
        (None, false) => "in force",
    }
}

/// How many calls were made under the grant, and how many it allows where it bounds them.
fn calls(view: &View, grant: &Grant) -> String {
    let used = view.calls_under.get(&grant.grant_id).copied().unwrap_or(0);
    match grant.resource_bounds.calls {
        Some(most) => format!("{used} of {most}"),
        None => used.to_string(),
    }
}

fn operations(grant: &Grant) -> String {
    grant.allowed_operations.iter().map(|operation| operation.as_str()).collect::<Vec<_>>().join(", ")
}

fn told(view: &View, grant: &Grant, now: &Timestamp) -> Value {
    let used = view.calls_under.get(&grant.grant_id).copied().unwrap_or(0);
    json!({ "grant": grant, "standing": standing(grant, now), "calls_used": used })
}

pub(super) fn list(space: &dyn Space, all: bool) -> Answer {
    let (view, now) = (space.view(), space.moment().now);
    let grants = view.state.items(ItemKind::Grant);
    let grants = grants.filter_map(|accepted| if let Item::Grant(grant) = &accepted.item { Some(grant) } else { None });
    let grants: Vec<&Grant> = grants.filter(|grant| all || standing(grant, &now) == "in force").collect();
    let line = |grant: &&Grant| {
        let (id, expiry) = (grant.grant_id.as_str(), grant.expiry.as_str());
        format!("{id:<28} {:<9} {} until {expiry}", standing(grant, &now), operations(grant))
    };
    let data: Vec<Value> = grants.iter().map(|grant| told(&view, grant, &now)).collect();
    Answer::done(json!({ "grants": data }), grants.iter().map(line).collect())
}

pub(super) fn show(space: &dyn Space, id: &GrantId) -> Answer {
    let (view, now) = (space.view(), space.moment().now);
    let Some(grant) = view.state.grant(id) else {
        return Answer::not_found("grant", id.as_str());
    };
    let mut text = vec![
        format!("{id}: {}", standing(grant, &now)),
        format!("  allows     {}", operations(grant)),
        format!("  until      {}", grant.expiry.as_str()),
        format!("  issued by  {}", grant.authenticated_issuer.identity),
        format!("  calls      {}", calls(&view, grant)),
    ];
    text.extend(grant.targets.iter().map(|target| format!("  on         {}", words::targets(target))));
    text.extend(grant.parameter_bounds.iter().map(|bound| format!("  with       {}", words::bound(bound))));
    if let Some(delta) = &grant.revocation.revoked_by {
        text.push(format!("  revoked    by {}", delta.id));
    }
    let answer = Answer::done(told(&view, grant, &now), text);
    match grant.revocation.revoked_by.is_none() {
        true => answer.hint("take it back", ["grant", "revoke", id.as_str(), "--reason", "WHY"]),
        false => answer,
    }
}
