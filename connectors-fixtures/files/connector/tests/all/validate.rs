//! Constraints: which fields files can hold, and which they hold by themselves.

use serde_json::{Value, json};
use tidegate_boilerplate::ConstraintKind::{Forbidden, Incompatible, Optional, Recommended};
use tidegate_boilerplate::testing::{projection, spec};
use tidegate_boilerplate::{
    ConnectorError, ConstraintKind, ErrorKind, JsonType, Projection, Spec, ValidateBinding,
    ValidateRequest, ValidatedBinding,
};

use crate::common::{INTEGER, TEXT, animals, created};

fn projections() -> Vec<Projection> {
    let id = Projection {
        key: true,
        ..projection("id", INTEGER)
    };
    let alias = Projection {
        pointer: "/id".to_owned(),
        key: false,
        ..projection("alias", INTEGER)
    };
    let root = Projection {
        pointer: String::new(),
        ..projection("flow_document", &[JsonType::Object])
    };
    vec![
        alias,
        id,
        root,
        projection("name", &[JsonType::Null, JsonType::String]),
        projection("tags", &[JsonType::Array]),
        projection("never", &[JsonType::Null]),
        projection("", TEXT),
    ]
}

fn validate(
    config: Value,
    folder: &str,
    projections: Vec<Projection>,
    last: Option<Spec>,
) -> Result<ValidatedBinding, ConnectorError> {
    let request = ValidateRequest {
        task: "acme/task".to_owned(),
        config,
        bindings: vec![ValidateBinding {
            collection: "acme/animals".to_owned(),
            resource: json!({"folder": folder}),
            key: vec!["/id".to_owned()],
            projections,
            backfill: 0,
        }],
        last,
    };
    let response = created(json!({}), vec![]).harness.validate(&request)?;
    Ok(response.bindings.into_iter().next().unwrap())
}

fn kinds(format: &str) -> Vec<(String, ConstraintKind)> {
    let config = json!({"path": "/data/out", "format": format});
    let validated = validate(config, "animals", projections(), None).unwrap();
    assert_eq!(validated.resource_path, ["animals"]);
    assert!(validated.delta_updates, "files are only appended to");
    let kinds = validated.constraints.into_iter();
    kinds.map(|(field, it)| (field, it.kind)).collect()
}

#[test]
fn lines_hold_the_document_and_columns_the_scalars() {
    for (format, document) in [
        ("ndjson", Recommended),
        ("csv", Optional),
        ("parquet", Optional),
    ] {
        let want = [
            ("", Forbidden),
            ("alias", Optional),
            ("flow_document", document),
            ("id", Recommended),
            ("name", Recommended),
            ("never", Optional),
            ("tags", Optional),
        ];
        let want = want.map(|(field, kind)| (field.to_owned(), kind));
        assert_eq!(kinds(format), want, "{format}");
    }
}

#[test]
fn what_would_make_a_folder_two_tables_is_incompatible() {
    let last = |format: &str| {
        let config = json!({"path": "/data/out", "format": format});
        Some(spec(config, vec![animals()]))
    };
    let kind = |format: &str, last: Option<Spec>, types: &[JsonType]| {
        let config = json!({"path": "/data/out", "format": format});
        let changed = vec![projection("name", types)];
        let validated = validate(config, "animals", changed, last).unwrap();
        validated.constraints["name"].clone()
    };
    assert_eq!(kind("csv", last("ndjson"), TEXT).kind, Incompatible);
    assert_eq!(kind("csv", last("csv"), INTEGER).kind, Recommended);
    assert_eq!(kind("parquet", last("parquet"), TEXT).kind, Recommended);
    let changed = kind("parquet", last("parquet"), INTEGER);
    assert_eq!(changed.kind, Incompatible);
    assert!(
        changed.reason.contains("STRING and would be INT64"),
        "{}",
        changed.reason
    );
}

#[test]
fn a_folder_or_config_that_cannot_be_is_an_error() {
    let config = json!({"path": "/data/out", "format": "csv"});
    let error = validate(config, "../elsewhere", projections(), None).unwrap_err();
    assert_eq!((error.kind, error.binding), (ErrorKind::Config, Some(0)));
    assert_eq!(error.field.as_deref(), Some("folder"));
    let config = json!({"path": "/data/out", "format": "csv", "compression": "snappy"});
    let error = validate(config, "animals", projections(), None).unwrap_err();
    assert_eq!(error.field.as_deref(), Some("compression"));
}
