//! The shapes of what is given, made of the contracts' own schemas where there are any.

use closer_contracts::audit::CommitReceipt;
use closer_contracts::briefcase::Briefcase;
use closer_contracts::evidence::Evidence;
use closer_contracts::obligation::Obligation;
use closer_contracts::reentry::Reentry;
use closer_contracts::refs::ArtifactRef;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

fn object(required: &[(&str, Value)], optional: &[(&str, Value)]) -> Schema {
    let properties: serde_json::Map<String, Value> =
        required.iter().chain(optional).map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    let required: Vec<&str> = required.iter().map(|(name, _)| *name).collect();
    json_schema!({ "type": "object", "properties": properties, "required": required })
}

fn list(of: Value) -> Value {
    json!({ "type": "array", "items": of })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn open() -> Value {
    json!({ "type": "object" })
}

/// How much of a list a page is.
fn page() -> Value {
    json!({
        "type": "object", "required": ["total", "before", "count", "complete", "next"],
        "properties": {
            "total": { "type": "integer", "minimum": 0, "description": "Entries of the whole list." },
            "before": { "type": "integer", "minimum": 0, "description": "Entries before this page." },
            "count": { "type": "integer", "minimum": 0, "description": "Entries of this page." },
            "complete": { "type": "boolean", "description": "Whether nothing comes after this page." },
            "next": { "type": ["string", "null"], "description": "`after` of the next page." },
        },
    })
}

fn paged(name: &str, entry: Value) -> Schema {
    object(&[(name, list(entry)), ("page", page())], &[])
}

/// Work as it is told to whom it was issued to.
fn work_entry() -> Value {
    json!(object(
        &[("work_id", text()), ("standing", text()), ("role", text()), ("question", text()), ("issued_at", text())],
        &[
            ("asks_for_a_move", json!({ "type": "boolean" })),
            ("deadline", json!({ "type": ["string", "null"] })),
            ("taken_at", json!({ "type": ["string", "null"] })),
            ("failed", json!({ "type": ["array", "null"] })),
            ("result", json!({ "type": ["string", "null"] })),
            ("proposals", list(open())),
            ("packets", list(text())),
            ("episode_end", json!({ "type": ["string", "null"] })),
            ("end_reason", json!({ "type": ["string", "null"] })),
        ],
    ))
}

pub(crate) fn works(_: &mut SchemaGenerator) -> Schema {
    paged("work", work_entry())
}

pub(crate) fn work(_: &mut SchemaGenerator) -> Schema {
    object(&[("work", work_entry())], &[])
}

pub(crate) fn work_packet(generator: &mut SchemaGenerator) -> Schema {
    let packet = generator.subschema_for::<closer_contracts::work::Work>();
    object(
        &[("work", json!({ "anyOf": [work_entry(), { "type": "null" }] }))],
        &[("packet", json!({ "anyOf": [packet, { "type": "null" }] }))],
    )
}

pub(crate) fn work_answer(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<closer_contracts::work::WorkResult>()
}

pub(crate) fn followed(_: &mut SchemaGenerator) -> Schema {
    let packet = object(
        &[("decision_id", text()), ("status", text())],
        &[
            ("answer", json!({ "type": ["string", "null"] })),
            ("fate", json!({ "type": ["string", "null"] })),
            ("refused", json!({ "type": ["string", "null"] })),
        ],
    );
    object(&[("packet", json!(packet))], &[])
}

pub(crate) fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({})
}

pub(crate) fn standing(_: &mut SchemaGenerator) -> Schema {
    object(&[("status", json!({ "const": "ok" }))], &[])
}

pub(crate) fn obligations(_: &mut SchemaGenerator) -> Schema {
    let entry = object(
        &[("obligation_id", text()), ("status", text()), ("gap", text()), ("responsible_owner", text())],
        &[("under_way", json!({ "type": ["string", "null"] }))],
    );
    paged("obligations", json!(entry))
}

pub(crate) fn obligation(generator: &mut SchemaGenerator) -> Schema {
    let obligation = generator.subschema_for::<Obligation>();
    object(&[("obligation", json!(obligation)), ("episodes", list(open()))], &[])
}

pub(crate) fn trace(_: &mut SchemaGenerator) -> Schema {
    let step = object(
        &[
            ("sequence", json!({ "type": "integer" })),
            ("stage", text()),
            ("subject", text()),
            ("verdict", text()),
            ("code", text()),
            ("digest", text()),
        ],
        &[],
    );
    object(&[("obligation_id", text()), ("steps", list(json!(step))), ("gaps", list(text()))], &[])
}

pub(crate) fn why(_: &mut SchemaGenerator) -> Schema {
    object(
        &[
            ("obligation_id", text()),
            ("status", text()),
            ("waiting", list(open())),
            ("refused", list(open())),
            ("would_wake", list(open())),
        ],
        &[],
    )
}

pub(crate) fn reentries(generator: &mut SchemaGenerator) -> Schema {
    let reentry = generator.subschema_for::<Reentry>();
    let entry = object(&[("reentry_id", text()), ("reentry", json!(reentry)), ("evaluated", open())], &[]);
    paged("reentries", json!(entry))
}

pub(crate) fn packets(_: &mut SchemaGenerator) -> Schema {
    let entry = object(
        &[
            ("decision_id", text()),
            ("status", text()),
            ("question", text()),
            ("obligation_ids", list(text())),
            ("deadline", json!({ "type": ["string", "null"] })),
        ],
        &[],
    );
    paged("packets", json!(entry))
}

pub(crate) fn packet(generator: &mut SchemaGenerator) -> Schema {
    let packet = generator.subschema_for::<Briefcase>();
    object(
        &[
            ("packet", json!(packet)),
            ("status", text()),
            ("digest", text()),
            ("admitted_at", text()),
            ("answered_as", open()),
        ],
        &[("decision", json!({ "type": ["object", "null"] }))],
    )
}

pub(crate) fn recorded(generator: &mut SchemaGenerator) -> Schema {
    let reference = generator.subschema_for::<ArtifactRef>();
    let optional = [("in_force_before", json!({ "type": "boolean" })), ("waits", open())];
    object(&[("recorded", list(json!(reference)))], &optional)
}

pub(crate) fn decisions(_: &mut SchemaGenerator) -> Schema {
    let entry = object(
        &[
            ("decision_id", text()),
            ("packet_id", text()),
            ("option", text()),
            ("decision_type", text()),
            ("answered_by", text()),
            ("answered_at", text()),
            ("fate", text()),
            ("fate_text", text()),
            ("attempts", list(open())),
            ("can_be_taken_back", json!({ "type": "boolean" })),
        ],
        &[("grant_id", json!({ "type": ["string", "null"] }))],
    );
    paged("decisions", json!(entry))
}

pub(crate) fn tried(_: &mut SchemaGenerator) -> Schema {
    let count = json!({ "type": "integer" });
    object(
        &[
            ("since", text()),
            ("would_have_answered", count.clone()),
            ("refused_by_a_person", count),
            ("packets", list(open())),
        ],
        &[],
    )
}

pub(crate) fn receipts(_: &mut SchemaGenerator) -> Schema {
    let entry = object(
        &[
            ("version", json!({ "type": "integer" })),
            ("receipt_id", text()),
            ("delta_id", text()),
            ("committed_at", text()),
            ("admission_path", text()),
            ("changes", json!({ "type": "integer" })),
        ],
        &[],
    );
    paged("receipts", json!(entry))
}

pub(crate) fn receipt(generator: &mut SchemaGenerator) -> Schema {
    let receipt = generator.subschema_for::<CommitReceipt>();
    object(&[("receipt", json!(receipt)), ("changes", list(open()))], &[])
}

pub(crate) fn restrictions(_: &mut SchemaGenerator) -> Schema {
    let entry = object(
        &[
            ("restriction_id", text()),
            ("covers", text()),
            ("affected_scope", open()),
            ("reason", text()),
            ("issued_by", text()),
            ("awaits_reconciliation", json!({ "type": "boolean" })),
        ],
        &[("reconcile_by", json!({ "type": ["string", "null"] }))],
    );
    paged("restrictions", json!(entry))
}

pub(crate) fn choices(_: &mut SchemaGenerator) -> Schema {
    let choice = object(&[("covers", text()), ("affected_scope", open())], &[]);
    object(
        &[
            ("issuer", text()),
            ("independent_owner", json!({ "type": ["string", "null"] })),
            ("reconcile_within_ms", json!({ "type": ["integer", "null"] })),
            ("choices", list(json!(choice))),
        ],
        &[],
    )
}

pub(crate) fn briefcase(_: &mut SchemaGenerator) -> Schema {
    object(
        &[("leads", list(open())), ("investigations", list(open())), ("briefs", list(open())), ("bench", list(open()))],
        &[],
    )
}

pub(crate) fn evidence(generator: &mut SchemaGenerator) -> Schema {
    let evidence = generator.subschema_for::<Evidence>();
    object(&[("evidence", json!(evidence)), ("admitted_at", text()), ("digest", text())], &[])
}

pub(crate) fn budgets(_: &mut SchemaGenerator) -> Schema {
    let count = json!({ "type": "integer" });
    let entry =
        object(&[("dimension", text()), ("used", count.clone()), ("reserved", count.clone()), ("limit", count)], &[]);
    object(&[("budgets", list(json!(entry)))], &[])
}

pub(crate) fn found(_: &mut SchemaGenerator) -> Schema {
    paged("found", json!(object(&[("kind", text()), ("id", text()), ("text", text())], &[])))
}

pub(crate) fn cloud_event(_: &mut SchemaGenerator) -> Schema {
    object(
        &[
            ("specversion", json!({ "const": "1.0" })),
            ("id", json!({ "type": "string", "minLength": 1 })),
            ("source", json!({ "type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$" })),
            ("type", json!({ "type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$" })),
            ("subject", json!({ "type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$" })),
        ],
        &[
            ("time", json!({ "type": "string", "format": "date-time" })),
            ("datacontenttype", text()),
            ("closerevidence", json!({ "type": "string", "description": "Evidence on record, separated by commas." })),
            ("data", json!({})),
        ],
    )
}

pub(crate) fn cloud_events(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": cloud_event(generator) })
}

pub(crate) fn sent(_: &mut SchemaGenerator) -> Schema {
    object(
        &[],
        &[
            ("status", json!({ "enum": ["recorded", "duplicate", "ignored"] })),
            ("recorded", list(open())),
            ("results", list(open())),
        ],
    )
}
