//! What a deployment file may leave out. TOML has no `null` and nobody types digests: here they are filled in.

use super::declared::own_id;
use serde_json::{Map, Value, json};

/// What defaults are made from.
#[derive(Debug, Clone)]
pub(super) struct Base {
    pub(super) user: String,
    pub(super) scope: Value,
    pub(super) now: String,
    pub(super) in_a_year: String,
    /// How the user's own declarations and grants are authenticated: by the profile they are published with.
    pub(super) founding_auth: Value,
}

/// Sets members that are not there.
pub(super) fn fill(table: &mut Map<String, Value>, defaults: Value) {
    let Value::Object(defaults) = defaults else { return };
    for (name, default) in defaults {
        table.entry(name).or_insert(default);
    }
}

/// Sets members that are not there in every table of a list.
pub(super) fn fill_each(table: &mut Map<String, Value>, list: &str, defaults: &Value) {
    let Some(Value::Array(items)) = table.get_mut(list) else {
        return;
    };
    for item in items.iter_mut().filter_map(Value::as_object_mut) {
        fill(item, defaults.clone());
    }
}

/// A text stands for version 1 of what it names.
fn versioned(table: &mut Map<String, Value>, member: &str) {
    if let Some(Value::String(id)) = table.get(member) {
        let reference = json!({ "id": id, "version": 1 });
        table.insert(member.to_owned(), reference);
    }
}

fn bounds(table: &mut Map<String, Value>, list: &str) {
    fill_each(table, list, &json!({ "at_least": null, "at_most": null, "one_of": null }));
}

/// Completes one table of a section.
pub(super) fn complete(section: &str, table: &mut Map<String, Value>, base: &Base) {
    let own_id = table.get(own_id(section)).cloned().unwrap_or(Value::Null);
    let issuer = json!({ "identity": base.user, "auth_ref": base.founding_auth });
    match section {
        "identity" => {
            let defaults = json!({
                "roles": [], "capabilities": [], "mechanisms": ["session"], "keys": [], "appointed_by": base.user,
                "revoked_at": null, "standing": "current",
            });
            fill(table, defaults);
            let key = json!({
                "not_before": base.now, "not_after": base.in_a_year, "revoked_at": null, "compromised": false,
            });
            fill_each(table, "keys", &key);
        }
        "source" => fill(
            table,
            json!({ "emitters": ["closer.observer"], "scope": base.scope, "change_kinds": [], "standing": "current" }),
        ),
        "readback_method" | "rule" | "policy" => fill(table, json!({ "version": 1, "standing": "current" })),
        "operation" => operation(table, &own_id, base),
        "appointment" => fill(
            table,
            json!({
                "operations": [], "targets": [], "broad": false, "outstanding_max": 8, "outstanding_per_target_max": 2,
                "escalation_policy_ref": "policy.escalation", "expires_at": base.in_a_year, "broad_suspended": false,
                "standing": "current",
            }),
        ),
        "goal" => fill(table, json!({ "scope": base.scope, "standing": "current" })),
        "constraint" => {
            let defaults = json!({
                "scope": base.scope, "operations": [], "targets": [], "bounds": [], "standing": "current",
            });
            fill(table, defaults);
            bounds(table, "bounds");
        }
        "grant" => {
            let defaults = json!({
                "authenticated_issuer": issuer, "parameter_bounds": [], "resource_bounds": {}, "delegability": "none",
                "revocation": { "may_revoke": [base.user], "revoked_by": null },
            });
            fill(table, defaults);
            bounds(table, "parameter_bounds");
        }
        "declaration" => fill(
            table,
            json!({
                "authenticated_issuer": issuer, "scope": base.scope, "constraints": [], "existing_grants": [],
                "effective_period": { "from": base.now, "to": null },
            }),
        ),
        "obligation" => obligation(table, base),
        "reentry" => complete_reentry(table),
        _ => {}
    }
}

/// Completes a trigger.
pub(super) fn complete_reentry(table: &mut Map<String, Value>) {
    let own_id = table.get("reentry_id").cloned().unwrap_or(Value::Null);
    fill(
        table,
        json!({
            "event_sources": [], "eligible_work": ["worker"], "resource_posture": {}, "deduplication_key": own_id,
            "expires_at": null, "refresh_policy_ref": "policy.refresh", "expiry_policy_ref": "policy.expiry",
        }),
    );
}

fn operation(table: &mut Map<String, Value>, own_id: &Value, base: &Base) {
    let defaults = json!({
        "version": 1, "capability": own_id, "parameters": [], "identifying_parameters": [], "settle_time_ms": 0,
        "cancellable": false, "worst_case": { "calls": 1, "time_ms": 60_000 }, "standing": "current",
    });
    fill(table, defaults);
    fill_each(table, "parameters", &json!({ "optional": false }));
    versioned(table, "readback_method");
    let contract = table.get("contract").cloned().unwrap_or(Value::Null);
    let digest = closer_contracts::canonical::digest_of(&contract).map(|digest| json!(digest)).unwrap_or(Value::Null);
    let verified_by = table.remove("verified_by").unwrap_or_else(|| json!(base.user));
    let verified_until = table.remove("verified_until").unwrap_or_else(|| json!(base.in_a_year));
    let version = table.get("version").cloned().unwrap_or(json!(1));
    let derived = json!({
        "contract_digest": digest,
        "verification": {
            "identity": verified_by, "contract_digest": digest, "version": version, "verified_at": base.now,
            "method": "declared", "expires_at": verified_until,
        },
    });
    fill(table, derived);
}

fn obligation(table: &mut Map<String, Value>, base: &Base) {
    let defaults = json!({
        "scope": base.scope, "dependencies": [], "status": "awaiting_event", "responsible_owner": base.user,
        "authority_boundary": [], "closure_authority": "closer.assessor", "trigger_gap": null,
    });
    fill(table, defaults);
    let condition = json!({
        "evidence_rule_ref": { "id": "rule.sufficiency", "version": 1 }, "assessment_status": "unassessed",
    });
    fill_each(table, "resolution_conditions", &condition);
    if let Some(Value::Array(conditions)) = table.get_mut("resolution_conditions") {
        for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
            versioned(condition, "evidence_rule_ref");
        }
    }
    if let Some(Value::Array(dependencies)) = table.get_mut("dependencies") {
        for watch in dependencies.iter_mut().filter_map(|dependency| dependency.get_mut("watch")?.as_object_mut()) {
            if watch.get("on").and_then(Value::as_str) == Some("entity") {
                fill(watch, json!({ "scope": base.scope, "change_kinds": [], "evidence_ids": [] }));
            }
        }
    }
}

/// Rules and policies that a deployment has unless it declares its own of the same kind.
pub(super) fn standard(user: &str) -> Vec<(&'static str, Value)> {
    let day_ms = 24 * 3_600_000_u64;
    vec![
        (
            "rule",
            json!({ "rule_id": "rule.matching", "body": { "rule": "matching", "facets": ["entity", "change_kind"] } }),
        ),
        (
            "rule",
            json!({
                "rule_id": "rule.sufficiency",
                "body": {
                    "rule": "sufficiency", "distinct_sources_min": 1, "age_ms_max": null,
                    "accepts_unknown_target_version": true, "observation_types": [],
                },
            }),
        ),
        (
            "rule",
            json!({
                "rule_id": "rule.decision",
                "body": { "rule": "decision", "required_roles": ["validator"], "blocking_classes": [], "deterministic": false },
            }),
        ),
        (
            "policy",
            json!({ "policy_id": "policy.refresh", "body": { "policy": "refresh", "rearm": false, "after_ms": null } }),
        ),
        (
            "policy",
            json!({
                "policy_id": "policy.expiry",
                "body": { "policy": "expiry", "replace_for_ms": null, "review_within_ms": 7 * day_ms },
            }),
        ),
        ("policy", json!({ "policy_id": "policy.deadline", "body": { "policy": "deadline", "escalate_to": user } })),
        (
            "policy",
            json!({ "policy_id": "policy.escalation", "body": { "policy": "escalation", "escalate_to": user } }),
        ),
        ("identity", json!({ "actor_id": user, "kind": "user", "roles": ["user"] })),
    ]
}
