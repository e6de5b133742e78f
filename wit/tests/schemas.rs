//! The published JSON schemas are those of the Rust types.
//!
//! After a change of a message: `UPDATE_SCHEMAS=1 cargo test -p tidegate-wit --features schemas`,
//! and read the difference.
#![cfg(feature = "schemas")]

use std::{collections::BTreeMap, fs, path::PathBuf};

use schemars::{JsonSchema, schema_for};
use serde_json::{Value, json};
use tidegate_wit::message::*;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("schemas")
}

fn generated() -> BTreeMap<&'static str, Value> {
    fn schema<T: JsonSchema>() -> Value {
        schema_for!(T).to_value()
    }
    BTreeMap::from([
        ("spec-response.json", schema::<SpecResponse>()),
        ("validate-request.json", schema::<ValidateRequest>()),
        ("validate-response.json", schema::<ValidateResponse>()),
        ("apply-request.json", schema::<ApplyRequest>()),
        ("apply-response.json", schema::<ApplyResponse>()),
        ("open-request.json", schema::<OpenRequest>()),
        ("open-response.json", schema::<OpenResponse>()),
        ("acknowledge-request.json", schema::<AcknowledgeRequest>()),
        ("acknowledge-response.json", schema::<AcknowledgeResponse>()),
    ])
}

#[test]
fn published_schemas_are_those_of_the_types() {
    for (name, schema) in generated() {
        let path = folder().join(name);
        let text = format!("{schema:#}\n");
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            fs::write(&path, &text).unwrap();
        }
        let published = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(published, text, "{} is out of date", path.display());
    }
}

#[test]
fn nothing_else_is_published() {
    let known = generated();
    for entry in fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            known.contains_key(name.as_str()),
            "no message belongs to schemas/{name}"
        );
    }
}

#[test]
fn messages_and_schemas_accept_and_refuse_the_same() {
    fn both<T: serde::de::DeserializeOwned>(schema: &str, message: Value, valid: bool) {
        let schema = fs::read_to_string(folder().join(schema)).unwrap();
        let schema: Value = serde_json::from_str(&schema).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        assert_eq!(validator.is_valid(&message), valid, "schema: {message}");
        assert_eq!(
            serde_json::from_value::<T>(message.clone()).is_ok(),
            valid,
            "type: {message}"
        );
    }

    let field = json!({"field": "id", "pointer": "/id", "types": ["integer"], "key": true});
    let spec = json!({
        "task": "acmeCo/orders",
        "config": {"path": "orders.db"},
        "bindings": [{
            "collection": "acmeCo/orders",
            "resource": {"table": "orders"},
            "resourcePath": ["orders"],
            "key": [field],
            "values": [],
            "document": "flow_document",
        }],
    });
    let open =
        json!({"spec": spec, "range": {"begin": 0, "end": 7}, "fence": {"epoch": 1, "session": 2}});
    both::<OpenRequest>("open-request.json", open.clone(), true);
    let mut unknown = open.clone();
    unknown["fense"] = json!(1);
    both::<OpenRequest>("open-request.json", unknown, false);
    let mut negative = open;
    negative["fence"]["session"] = json!(-1);
    both::<OpenRequest>("open-request.json", negative, false);

    both::<ApplyRequest>("apply-request.json", json!({"next": spec}), true);
    both::<ApplyRequest>("apply-request.json", json!({"last": spec}), false);
    let opened = json!({"authority": "remote", "guarantee": "exactlyOnce", "checkpoint": "{}"});
    both::<OpenResponse>("open-response.json", opened, true);
    let opened = json!({"authority": "both", "guarantee": "exactlyOnce"});
    both::<OpenResponse>("open-response.json", opened, false);
    both::<AcknowledgeRequest>(
        "acknowledge-request.json",
        json!({"storedCounts": [1, 2]}),
        true,
    );
    both::<AcknowledgeResponse>("acknowledge-response.json", json!({"pace": "yes"}), false);
    let constraint = json!({"kind": "required", "reason": "it is the key"});
    let binding = json!({"resourcePath": ["orders"], "constraints": {"id": constraint}});
    both::<ValidateResponse>(
        "validate-response.json",
        json!({"bindings": [binding]}),
        true,
    );
    both::<ValidateResponse>("validate-response.json", json!({"bindings": [{}]}), false);
    both::<ValidateRequest>(
        "validate-request.json",
        json!({"task": "a", "config": {}}),
        false,
    );
    let response = json!({"configSchema": {}, "resourceSchema": {}, "documentationUrl": "https://example.com"});
    both::<SpecResponse>("spec-response.json", response, true);
}
