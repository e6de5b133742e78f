//! Constraints: which fields a table can hold, and which it must.

use crate::common::{INTEGER, TEXT, animals, created};
use serde_json::json;
use tidegate_boilerplate::ConstraintKind::{
    Forbidden, Incompatible, Optional, Recommended, Required,
};
use tidegate_boilerplate::testing::{projection, spec};
use tidegate_boilerplate::{
    ConstraintKind, ErrorKind, JsonType, Projection, Spec, ValidateBinding, ValidateRequest,
    ValidatedBinding,
};

fn key(field: &str, types: &[JsonType]) -> Projection {
    Projection {
        key: true,
        ..projection(field, types)
    }
}

fn root(field: &str) -> Projection {
    Projection {
        pointer: String::new(),
        ..projection(field, &[JsonType::Object])
    }
}

fn collection(projections: Vec<Projection>) -> ValidateBinding {
    let key = projections
        .iter()
        .filter(|it| it.key)
        .map(|it| it.pointer.clone());
    let mut key: Vec<_> = key.collect();
    key.dedup();
    ValidateBinding {
        collection: "acme/animals".to_owned(),
        resource: json!({"table": "Animals"}),
        key,
        projections,
        backfill: 0,
    }
}

fn validated(binding: ValidateBinding, last: Option<Spec>) -> ValidatedBinding {
    let request = ValidateRequest {
        task: "acme/task".to_owned(),
        config: json!({"path": "/data/shop.db"}),
        bindings: vec![binding],
        last,
    };
    let response = created(vec![]).harness.validate(&request).unwrap();
    response.bindings.into_iter().next().unwrap()
}

fn kinds(validated: &ValidatedBinding) -> Vec<(&str, ConstraintKind)> {
    let kinds = validated
        .constraints
        .iter()
        .map(|(field, it)| (&**field, it.kind));
    kinds.collect()
}

fn everything() -> Vec<Projection> {
    vec![
        key("id", INTEGER),
        key("id_alias", INTEGER).at("/id"),
        root("flow_document"),
        root("whole"),
        projection("name", &[JsonType::Null, JsonType::String]),
        projection("tags", &[JsonType::Array]),
        projection("mixed", &[JsonType::Integer, JsonType::String]),
        projection("never", &[JsonType::Null]),
        projection("nul\0", TEXT),
    ]
}

trait At {
    fn at(self, pointer: &str) -> Self;
}

impl At for Projection {
    fn at(mut self, pointer: &str) -> Self {
        pointer.clone_into(&mut self.pointer);
        self
    }
}

#[test]
fn fields_of_a_new_table() {
    let binding = collection(everything());
    let standard = validated(binding.clone(), None);
    assert_eq!(standard.resource_path, ["animals"]);
    assert_eq!(
        kinds(&standard),
        [
            ("flow_document", Required),
            ("id", Required),
            ("id_alias", Optional),
            ("mixed", Optional),
            ("name", Recommended),
            ("never", Optional),
            ("nul\0", Forbidden),
            ("tags", Optional),
            ("whole", Optional),
        ]
    );
    let mut delta = binding;
    delta.resource["delta_updates"] = json!(true);
    let delta = validated(delta, None);
    assert!(delta.delta_updates);
    assert_eq!(
        kinds(&delta)[..2],
        [("flow_document", Recommended), ("id", Recommended)]
    );
}

#[test]
fn of_two_spellings_of_one_column_one_is_forbidden_and_both_are_named() {
    let projections = vec![
        key("id", INTEGER),
        root("flow_document"),
        projection("ID", TEXT),
        projection("Name", TEXT),
        projection("name", TEXT),
        projection("\u{dc}ber", TEXT),
        projection("\u{fc}ber", TEXT),
    ];
    let got = validated(collection(projections.clone()), None);
    assert_eq!(
        kinds(&got),
        [
            ("ID", Forbidden),
            ("Name", Recommended),
            ("flow_document", Required),
            ("id", Required),
            ("name", Forbidden),
            ("\u{dc}ber", Recommended),
            ("\u{fc}ber", Recommended),
        ]
    );
    let reason = &got.constraints["name"].reason;
    assert!(reason.contains("\"name\" and \"Name\""), "{reason}");

    // What is selected already stays.
    let mut last = animals();
    last.resource = json!({"table": "Animals"});
    let got = validated(collection(projections), Some(spec(json!({}), vec![last])));
    assert_eq!(got.constraints["name"].kind, Recommended);
    assert_eq!(got.constraints["Name"].kind, Forbidden);
}

#[test]
fn what_a_table_was_made_with_binds_until_it_is_made_anew() {
    let last = || Some(spec(json!({}), vec![animals()]));
    let projections = |name: &[JsonType]| {
        vec![
            key("id", INTEGER),
            root("flow_document"),
            projection("name", name),
        ]
    };
    let same = collection(projections(TEXT));
    assert!(
        kinds(&validated(same.clone(), last()))
            .iter()
            .all(|(_, it)| *it != Incompatible)
    );

    let changed = collection(projections(&[JsonType::Integer]));
    let got = validated(changed.clone(), last());
    assert_eq!(got.constraints["name"].kind, Incompatible);
    assert!(
        got.constraints["name"]
            .reason
            .contains("TEXT and would be INTEGER")
    );
    let mut anew = changed;
    anew.backfill = 1;
    assert_eq!(
        validated(anew, last()).constraints["name"].kind,
        Recommended
    );

    let mut other_key = same.clone();
    other_key.key = vec!["/name".to_owned()];
    other_key.projections[0].key = false;
    other_key.projections[2].key = true;
    let got = validated(other_key, last());
    assert_eq!(got.constraints["name"].kind, Incompatible);

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
    let request = ValidateRequest {
        task: "acme/task".to_owned(),
        config: json!({"path": "/data/shop.db"}),
        bindings: vec![collection(vec![key("id", INTEGER)]), wrong],
        last: None,
    };
    let error = created(vec![]).harness.validate(&request).unwrap_err();
    assert_eq!((error.kind, error.binding), (ErrorKind::Config, Some(1)));
}

#[test]
fn the_spec_says_what_the_connector_reaches() {
    let spec = created(vec![]).harness.spec_response();
    assert_eq!(spec.wants.directory, ["/path"]);
    assert!(spec.wants.network.is_empty());
    assert_eq!(spec.hard_delete_pointer.as_deref(), Some("/hardDelete"));
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
