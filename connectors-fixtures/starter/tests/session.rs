//! The connector, natively: through the protocol, without WebAssembly.

use materialize_starter::StarterConnector;
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_boilerplate::testing::{Document, Harness, binding, document, spec, tombstone};
use tidegate_boilerplate::{Driver, ErrorKind, JsonType};

/// A connector with a file of its own.
fn starter() -> (Harness<Driver<StarterConnector>>, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop.json");
    let animals = binding(
        "animals",
        json!({"table": "animals"}),
        &[("id", &[JsonType::Integer])],
        &[],
    );
    let spec = spec(json!({"path": path}), vec![animals]);
    (Harness::of(StarterConnector, spec), directory)
}

fn animal(id: i64, name: &str) -> Document {
    document(0, json!({"id": id, "name": name}))
}

/// Returns the names that the file holds.
fn names(directory: &TempDir) -> Vec<String> {
    let text = std::fs::read_to_string(directory.path().join("shop.json")).unwrap();
    let contents: Value = serde_json::from_str(&text).unwrap();
    let rows = contents["tables"]["animals"]["rows"].as_object().unwrap();
    let name = |row: &Value| row["name"].as_str().unwrap().to_owned();
    rows.values().map(name).collect()
}

#[test]
fn documents_are_kept_replaced_and_deleted() {
    let (mut harness, directory) = starter();
    assert_eq!(harness.apply().unwrap(), ["make table \"animals\", empty"]);
    assert!(harness.apply().unwrap().is_empty());
    harness.open().unwrap();
    let txn = [animal(1, "cat"), animal(2, "dog")];
    harness.transact(&txn, "first").unwrap();
    let txn = [animal(1, "lynx"), tombstone(0, json!({"id": 2}))];
    let loaded = harness.transact(&txn, "second").unwrap().loaded;
    assert_eq!(loaded.len(), 2);
    assert_eq!(names(&directory), ["lynx"]);
    assert_eq!(
        harness.open().unwrap().checkpoint.as_deref(),
        Some("second")
    );
}

#[test]
fn an_older_session_can_no_longer_commit() {
    let (mut harness, directory) = starter();
    harness.apply().unwrap();
    harness.open().unwrap();
    let older = harness.fence;
    harness.open().unwrap();
    harness.transact(&[animal(1, "cat")], "first").unwrap();
    // Opening with the fence of before is what a host does that was asleep.
    harness.fence = older;
    harness.fence.session -= 1;
    let error = harness.open().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Transient, "{error}");
    assert_eq!(names(&directory), ["cat"]);
}
