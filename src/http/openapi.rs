//! `docs/openapi.json`, made from the table of routes.

use super::routes::{ROUTES, Route, Taken};
use axum::http::Method;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// The OpenAPI 3.1 document of the API.
#[must_use]
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        "/components/schemas".clone_into(settings.definitions_path.to_mut());
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let method = if route.method == Method::POST { "post" } else { "get" };
        let entry = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Some(entry) = entry.as_object_mut() {
            entry.insert(method.to_owned(), operation(route, &mut generator));
        }
    }
    let mut schemas = generator.take_definitions(true);
    schemas.insert("Problem".to_owned(), problem());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Closer", "version": env!("CARGO_PKG_VERSION"), "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
            "description": "The door of one space. What is asked here is asked as over the socket; what is refused is told with its code.",
        },
        "servers": [{ "url": "/" }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer", "description": "Made by `closer token new`." } },
            "responses": {
                "Problem": {
                    "description": "What went wrong.",
                    "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
                },
            },
        },
    })
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let places = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = places
        .map(|name| {
            json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string", "minLength": 1 } })
        })
        .collect();
    parameters.extend(route.query.iter().map(|name| parameter(name)));
    let writes = route.method == Method::POST;
    if writes {
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header", "required": false,
            "schema": { "type": "string", "minLength": 1, "maxLength": 256 },
            "description": "The same write under the same key is carried out once.",
        }));
    }
    let (media, schema) = route.gives;
    let mut operation = json!({
        "operationId": route.id, "summary": route.summary, "parameters": parameters,
        "responses": {
            "200": { "description": "As asked.", "content": { media: { "schema": schema(generator) } } },
            "default": { "$ref": "#/components/responses/Problem" },
        },
    });
    let Some(members) = operation.as_object_mut() else { return operation };
    if let Some(body) = body(&route.takes, generator) {
        members.insert("requestBody".to_owned(), json!({ "required": true, "content": body }));
    }
    if let Some(scope) = route.scope {
        members.insert("security".to_owned(), json!([{ "token": [] }]));
        members.insert("x-scope".to_owned(), json!(scope));
    }
    operation
}

fn body(taken: &Taken, generator: &mut SchemaGenerator) -> Option<Map<String, Value>> {
    let media = match taken {
        Taken::Nothing => return None,
        Taken::Json(schema) => vec![("application/json", schema(generator))],
        Taken::Media(media) => media.iter().map(|(media, schema)| (*media, schema(generator))).collect(),
    };
    Some(media.into_iter().map(|(media, schema)| (media.to_owned(), json!({ "schema": schema }))).collect())
}

fn parameter(name: &str) -> Value {
    let (required, schema, description) = match name {
        "all" => (false, json!({ "type": "boolean" }), "Settled or answered ones too."),
        "limit" => (
            false,
            json!({ "type": "integer", "minimum": 1, "maximum": 200 }),
            "The most entries of a page; 50 without it.",
        ),
        "after" => (false, json!({ "type": "string" }), "The page behind this entry: `next` of the page before."),
        "words" => (true, json!({ "type": "string" }), "What is looked for."),
        "obligation_id" => (false, json!({ "type": "string" }), "Of this obligation only."),
        "packet_id" => (false, json!({ "type": "string" }), "Of this packet only."),
        _ => (false, json!({ "type": "string" }), ""),
    };
    json!({ "name": name, "in": "query", "required": required, "schema": schema, "description": description })
}

fn problem() -> Value {
    json!({
        "type": "object", "required": ["type", "title", "status", "code", "detail", "retryable"],
        "properties": {
            "type": { "type": "string" }, "title": { "type": "string" }, "status": { "type": "integer" },
            "code": { "type": "string", "description": "A refusal's code (docs/refusals/), or one of the door's own." },
            "detail": { "type": "string" }, "retryable": { "type": "boolean" }, "spec_ref": { "type": "string" },
            "denials": { "type": "array", "items": { "type": "object" } },
            "newest": { "type": "object", "description": "With stale_packet: the newest version of the packet." },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set `CLOSER_BLESS` to write it anew.
    #[test]
    fn the_committed_document_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/openapi.json");
        let text = serde_json::to_string_pretty(&document()).unwrap() + "\n";
        if std::env::var_os("CLOSER_BLESS").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), text, "run `cargo xtask bless`");
    }

    #[test]
    fn every_reference_of_the_document_leads_somewhere() {
        fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
            match value {
                Value::Object(members) => {
                    found.extend(members.get("$ref").and_then(Value::as_str));
                    members.values().for_each(|value| references(value, found));
                }
                Value::Array(items) => items.iter().for_each(|value| references(value, found)),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        let document = document();
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 20);
        for reference in found {
            assert!(document.pointer(&reference[1..]).is_some(), "{reference}");
        }
    }
}
