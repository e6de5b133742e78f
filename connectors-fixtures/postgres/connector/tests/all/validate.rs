//! Constraints: which fields a table can hold, and which it must. No server is asked.

use crate::common::{INTEGER, TEXT, animals};
use postgres_connector::PostgresConnector;
use serde_json::{Value, json};
use tidegate_boilerplate::ConstraintKind::{
    Forbidden, Incompatible, Optional, Recommended, Required,
};
use tidegate_boilerplate::testing::{projection, spec};
use tidegate_boilerplate::{
    Connector, ConstraintKind, ErrorKind, JsonType, Projection, Spec, ValidateBinding,
    ValidateRequest, ValidatedBinding,
};

fn config() -> Value {
    json!({"address": "db:5432", "user": "u", "database": "d", "schema": "s"})
}

fn request(bindings: Vec<ValidateBinding>, last: Option<Spec>) -> ValidateRequest {
    ValidateRequest {
        task: "acme/task".to_owned(),
        config: config(),
        bindings,
        last,
    }
}

fn at(pointer: &str, projection: Projection) -> Projection {
    Projection {
        pointer: pointer.to_owned(),
        ..projection
    }
}

fn key(field: &str, types: &[JsonType]) -> Projection {
    Projection {
        key: true,
        ..projection(field, types)
    }
}

fn collection(projections: Vec<Projection>) -> ValidateBinding {
    let keys = projections.iter().filter(|it| it.key);
    let mut key: Vec<_> = keys.map(|it| it.pointer.clone()).collect();
    key.dedup();
    ValidateBinding {
        collection: "acme/animals".to_owned(),
        resource: json!({"table": "animals"}),
        key,
        projections,
        backfill: 0,
    }
}

fn validated(binding: ValidateBinding, last: Option<Spec>) -> ValidatedBinding {
    let response = PostgresConnector
        .validate(&request(vec![binding], last))
        .unwrap();
    response.bindings.into_iter().next().unwrap()
}

fn kinds(validated: &ValidatedBinding) -> Vec<(&str, ConstraintKind)> {
    let constraints = validated.constraints.iter();
    constraints.map(|(field, it)| (&**field, it.kind)).collect()
}

#[test]
fn fields_of_a_new_table() {
    let long = "x".repeat(64);
    let binding = collection(vec![
        key("id", INTEGER),
        at("/id", key("id_alias", INTEGER)),
        at("", projection("flow_document", &[JsonType::Object])),
        projection("Name", &[JsonType::Null, JsonType::String]),
        projection("name", TEXT),
        projection("tags", &[JsonType::Array]),
        projection("mixed", &[JsonType::Integer, JsonType::String]),
        projection("never", &[JsonType::Null]),
        projection("nul\0", TEXT),
        projection("xmin", TEXT),
        projection(&long, TEXT),
    ]);
    let standard = validated(binding.clone(), None);
    assert_eq!(standard.resource_path, ["s", "animals"]);
    assert_eq!(
        kinds(&standard),
        [
            ("Name", Recommended),
            ("flow_document", Required),
            ("id", Required),
            ("id_alias", Optional),
            ("mixed", Optional),
            ("name", Recommended),
            ("never", Optional),
            ("nul\0", Forbidden),
            ("tags", Optional),
            ("xmin", Forbidden),
            // Whether it is cut, and to what, is the validator's to say.
            (&long, Recommended),
        ]
    );
    let mut delta = binding;
    delta.resource = json!({"table": "animals", "delta_updates": true, "schema": "other"});
    let delta = validated(delta, None);
    assert!(delta.delta_updates);
    assert_eq!(delta.resource_path, ["other", "animals"]);
    assert_eq!(delta.constraints["flow_document"].kind, Recommended);
    assert_eq!(delta.constraints["id"].kind, Recommended);
}

#[test]
fn what_a_table_was_made_with_binds_until_it_is_made_anew() {
    let last = || {
        let mut last = animals();
        last.resource_path = vec!["s".to_owned(), "animals".to_owned()];
        Some(spec(config(), vec![last]))
    };
    let projections = |name: Projection| {
        vec![
            key("id", INTEGER),
            at("", projection("flow_document", &[JsonType::Object])),
            name,
        ]
    };
    let same = collection(projections(projection("name", TEXT)));
    let got = validated(same.clone(), last());
    assert!(kinds(&got).iter().all(|(_, it)| *it != Incompatible));

    let mut counted = last();
    counted.as_mut().unwrap().bindings[0].values = vec![projection("name", INTEGER)];
    let got = validated(same.clone(), counted);
    assert_eq!(
        got.constraints["name"].kind, Recommended,
        "its column becomes text"
    );

    let mut dated = projection("name", TEXT);
    dated.format = Some("date".to_owned());
    for (changed, word) in [(projection("name", INTEGER), "numeric"), (dated, "date")] {
        let changed = collection(projections(changed));
        let got = validated(changed.clone(), last());
        assert_eq!(got.constraints["name"].kind, Incompatible);
        let reason = &got.constraints["name"].reason;
        assert!(
            reason.contains(&format!("text and would be {word}")),
            "{reason}"
        );
        let anew = ValidateBinding {
            backfill: 1,
            ..changed
        };
        let got = validated(anew, last());
        assert_eq!(got.constraints["name"].kind, Recommended);
    }
    let mut delta = same;
    delta.resource["delta_updates"] = json!(true);
    assert_eq!(
        validated(delta, last()).constraints["id"].kind,
        Incompatible
    );
}

#[test]
fn a_wrong_resource_names_its_binding() {
    let mut wrong = collection(vec![key("id", INTEGER)]);
    wrong.resource = json!({"table": "tidegate_checkpoints"});
    let bindings = vec![collection(vec![key("id", INTEGER)]), wrong];
    let error = PostgresConnector
        .validate(&request(bindings, None))
        .unwrap_err();
    assert_eq!((error.kind, error.binding), (ErrorKind::Config, Some(1)));
}

#[test]
fn the_spec_says_what_the_connector_reaches() {
    let spec = PostgresConnector.spec();
    assert_eq!(spec.wants.network, ["/address"]);
    assert!(spec.wants.directory.is_empty());
    assert_eq!(spec.name_limits.field_bytes_max, Some(63));
    assert_eq!(spec.hard_delete_pointer.as_deref(), Some("/hardDelete"));
    assert_eq!(spec.config_schema["properties"]["password"]["secret"], true);
    for schema in [&spec.config_schema, &spec.resource_schema] {
        assert_eq!(
            schema["$schema"],
            "https://json-schema.org/draft/2020-12/schema"
        );
        assert_eq!(schema["additionalProperties"], false);
        for (name, property) in schema["properties"].as_object().unwrap() {
            assert!(
                property["title"].is_string() && property["description"].is_string(),
                "{name}"
            );
        }
    }
}

/// Both are `text`, one as it is and one as JSON: the key of an old row would not be
/// found again.
#[test]
fn a_key_of_one_type_does_not_become_one_of_several() {
    let mut last = animals();
    last.resource_path = vec!["s".to_owned(), "animals".to_owned()];
    last.key = vec![key("id", TEXT)];
    let several = &[JsonType::Integer, JsonType::String];
    let changed = collection(vec![
        key("id", several),
        at("", projection("flow_document", &[JsonType::Object])),
    ]);
    let got = validated(changed, Some(spec(config(), vec![last])));
    assert_eq!(got.constraints["id"].kind, Incompatible);
    let reason = &got.constraints["id"].reason;
    assert!(
        reason.contains("text and would be text of JSON"),
        "{reason}"
    );
}
