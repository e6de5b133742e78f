//! The JSON schema of a catalog, for editors.
//!
//! It says what completion and hover need; what is wrong in a catalog, the rules say better.

use serde_json::Value;

const SCHEMA: &str = include_str!("catalog.schema.json");

/// Returns the JSON schema (draft 2020-12) of a catalog file.
pub fn catalog_schema() -> Value {
    serde_json::from_str(SCHEMA).expect("the schema is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Answers, Code, finish, load};
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    fn validator() -> jsonschema::Validator {
        jsonschema::draft202012::new(&catalog_schema()).expect("the schema compiles")
    }

    /// Returns the fields that the reader names when it meets one that it does not know.
    fn fields_of_reader(catalog: &str) -> BTreeSet<String> {
        let read = |_: &Path| Ok(catalog.as_bytes().to_vec());
        let draft = load(&[PathBuf::from("flow.yaml")], &read);
        let (_, diagnostics) = finish(&draft, &Answers::default());
        let unknown = diagnostics.iter().find(|it| it.code == Code::UnknownField);
        let help = unknown.and_then(|it| it.help.as_deref());
        let list = help.and_then(|it| it.strip_prefix("fields here are "));
        let list = list.unwrap_or_else(|| panic!("{catalog}: {diagnostics:?}"));
        list.split(", ").map(str::to_owned).collect()
    }

    #[test]
    fn schema_and_reader_know_the_same_fields() {
        let schema = catalog_schema();
        for (pointer, catalog) in [
            ("", "zzzzzzzz: 1"),
            ("/$defs/collection", "collections: {a: {zzzzzzzz: 1}}"),
            (
                "/$defs/materialization",
                "materializations: {a: {zzzzzzzz: 1}}",
            ),
            (
                "/$defs/endpoint",
                "materializations: {a: {endpoint: {zzzzzzzz: 1}}}",
            ),
            (
                "/$defs/endpoint/properties/wasm",
                "materializations: {a: {endpoint: {wasm: {zzzzzzzz: 1}}}}",
            ),
            (
                "/$defs/endpoint/properties/connector",
                "materializations: {a: {endpoint: {connector: {zzzzzzzz: 1}}}}",
            ),
            (
                "/$defs/limits",
                "materializations: {a: {endpoint: {wasm: {limits: {zzzzzzzz: 1}}}}}",
            ),
            (
                "/$defs/allow",
                "materializations: {a: {endpoint: {wasm: {allow: {zzzzzzzz: 1}}}}}",
            ),
            (
                "/$defs/materialization/properties/shards",
                "materializations: {a: {shards: {zzzzzzzz: 1}}}",
            ),
            (
                "/$defs/binding",
                "materializations: {a: {bindings: [{zzzzzzzz: 1}]}}",
            ),
            (
                "/$defs/binding/properties/fields",
                "materializations: {a: {bindings: [{fields: {zzzzzzzz: 1}}]}}",
            ),
            (
                "/$defs/binding/properties/source/oneOf/1",
                "materializations: {a: {bindings: [{resource: {}, source: {zzzzzzzz: 1}}]}}",
            ),
        ] {
            let properties = schema
                .pointer(pointer)
                .and_then(|it| it["properties"].as_object())
                .unwrap_or_else(|| panic!("{pointer} has properties"));
            let deprecated = |it: &&String| properties[*it]["deprecated"] == true;
            let of_schema: BTreeSet<_> = properties
                .keys()
                .filter(|it| !deprecated(it))
                .cloned()
                .collect();
            assert_eq!(of_schema, fields_of_reader(catalog), "{pointer}");
        }
    }

    #[test]
    fn the_schema_admits_catalogs_and_refuses_slips() {
        let validator = validator();
        let good = serde_json::json!({
            "import": ["other.yaml"],
            "x-mine": {"a": 1},
            "collections": {"acmeCo/Größe": {"schema": "s.yaml#/a", "key": ["/id"], "projections": {"a": "/b", "c": {"location": "/d"}}}},
            "materializations": {"acmeCo/sink": {
                "endpoint": {"wasm": {
                    "component": "x.wasm", "config": "c.yaml",
                    "limits": {"memory": "256MiB", "compute": "30s", "logRate": 100},
                    "allow": {"network": ["h:1"], "directory": ["."]},
                }},
                "bindings": [
                    {"source": "acmeCo/Größe", "resource": {"table": "t"}, "fields": {"recommended": 2, "include": {"a": {}, "b": null}}},
                    {"source": {"name": "acmeCo/Größe", "notBefore": "2026-01-01T00:00:00Z"}, "resource": {}, "backfill": 1},
                ],
                "syncSchedule": {"baseInterval": "4h", "windows": [{"interval": "5m", "start": "9:00", "end": "17:30", "days": ["Mon"]}]},
            }},
        });
        let errors: Vec<_> = validator
            .iter_errors(&good)
            .map(|it| it.to_string())
            .collect();
        assert!(errors.is_empty(), "{errors:?}");
        for bad in [
            serde_json::json!({"colections": {}}),
            serde_json::json!({"materializations": {"a/b": {"endpoint": {"wasm": {"component": "x"}}}}}),
            serde_json::json!({"materializations": {"a//b": {"endpoint": {"wasm": {"component": "x"}}, "bindings": []}}}),
            serde_json::json!({"collections": {"a/b": {"schema": {}, "key": ["id"]}}}),
            serde_json::json!({"materializations": {"a/b": {"endpoint": {}, "bindings": []}}}),
            serde_json::json!({"materializations": {"a/b": {"endpoint": {"local": {}}, "bindings": [], "syncSchedule": {"baseInterval": "1h", "cron": "* * * * *"}}}}),
        ] {
            assert!(!validator.is_valid(&bad), "{bad}");
        }
    }
}
