//! Sessions: what is stored, loaded, committed, and what is not.

use std::borrow::Cow;

use crate::common::{Fixture, INTEGER, TEXT, animals, created, opened, table};
use serde_json::{Value, json};
use tidegate_boilerplate::testing::{Row, document, tombstone};
use tidegate_boilerplate::tuple::{Bytes, Element};
use tidegate_boilerplate::{ErrorKind, JsonType, KeyRange, SpecBinding};

const NUMBER: &[JsonType] = &[JsonType::Number];
const BOOLEAN: &[JsonType] = &[JsonType::Boolean];
const MIXED: &[JsonType] = &[JsonType::Integer, JsonType::String];
const OBJECT: &[JsonType] = &[JsonType::Object];

fn cat(id: i64, name: &str) -> tidegate_boilerplate::testing::Document {
    document(0, json!({"id": id, "name": name}))
}

fn delta(mut binding: SpecBinding) -> SpecBinding {
    binding.delta_updates = true;
    binding.resource["delta_updates"] = json!(true);
    binding
}

fn checkpoint(fixture: &Fixture) -> Value {
    fixture.rows("SELECT checkpoint FROM tidegate_checkpoints")[0][0].clone()
}

#[test]
fn rows_are_inserted_updated_and_deleted() {
    let mut fixture = opened(vec![animals()]);
    let harness = &mut fixture.harness;
    assert!(
        harness
            .transact(&[cat(2, "cat"), cat(1, "ant")], "one")
            .unwrap()
            .loaded
            .is_empty()
    );
    let changes = [
        cat(1, "bee"),
        tombstone(0, json!({"id": 2, "_meta": {"op": "d"}})),
        tombstone(0, json!({"id": 9, "_meta": {"op": "d"}})),
        cat(3, "dog"),
    ];
    let loaded = harness.transact(&changes, "two").unwrap().loaded;
    let loaded: Vec<_> = loaded.into_iter().collect();
    assert_eq!(
        loaded,
        [
            ((0, 0), r#"{"id":1,"name":"ant"}"#.to_owned()),
            ((0, 1), r#"{"id":2,"name":"cat"}"#.to_owned()),
        ]
    );
    assert_eq!(
        fixture.rows("SELECT id, name, flow_document FROM animals ORDER BY id"),
        [
            json!([1, "bee", r#"{"id":1,"name":"bee"}"#]),
            json!([3, "dog", r#"{"id":3,"name":"dog"}"#]),
        ]
    );
    assert_eq!(checkpoint(&fixture), json!("two"));
}

#[test]
fn what_was_committed_but_not_acknowledged_is_there_once() {
    let mut fixture = opened(vec![
        animals(),
        delta(table("log", &[("id", INTEGER)], &[("n", INTEGER)])),
    ]);
    let harness = &mut fixture.harness;
    let documents = [cat(1, "ant"), document(1, json!({"id": 1, "n": 2}))];
    let rows: Vec<_> = documents.iter().map(|it| harness.row(it)).collect();
    harness.load_and_store(rows).unwrap();
    harness.start_commit("one").unwrap();
    for _ in 0..3 {
        let opened = harness.open().unwrap();
        assert_eq!(opened.checkpoint.as_deref(), Some("one"));
        harness.recover().unwrap();
    }
    let loaded = harness.transact(&[cat(1, "bee")], "two").unwrap().loaded;
    assert_eq!(loaded.len(), 1);
    assert_eq!(
        fixture.rows("SELECT id, name FROM animals"),
        [json!([1, "bee"])]
    );
    assert_eq!(fixture.rows("SELECT id, n FROM log"), [json!([1, 2])]);
}

#[test]
fn what_was_stored_but_not_committed_is_not_there() {
    let mut fixture = opened(vec![animals()]);
    let harness = &mut fixture.harness;
    harness.transact(&[cat(1, "ant")], "one").unwrap();
    let rows = vec![harness.row(&cat(1, "bee")), harness.row(&cat(2, "cat"))];
    harness.load_and_store(rows).unwrap();
    let opened = harness.open().unwrap();
    assert_eq!(opened.checkpoint.as_deref(), Some("one"));
    assert_eq!(
        fixture.rows("SELECT id, name FROM animals"),
        [json!([1, "ant"])]
    );
}

#[test]
fn a_transaction_without_documents_moves_the_checkpoint() {
    let mut fixture = opened(vec![animals()]);
    fixture.harness.transact(&[], "one").unwrap();
    fixture.harness.transact(&[], "two").unwrap();
    assert_eq!(checkpoint(&fixture), json!("two"));
    assert_eq!(fixture.rows("SELECT count(*) FROM animals"), [json!([0])]);
}

#[test]
fn integer_keys_above_two_to_the_53_stay_apart() {
    let mut fixture = opened(vec![table("t", &[("id", INTEGER)], &[("v", INTEGER)])]);
    let harness = &mut fixture.harness;
    let counted = [
        (9_007_199_254_740_993_i64, 1, 0),
        (9_007_199_254_740_992, 1, 0),
        (9_007_199_254_740_993, 2, 1),
    ];
    for (id, v, want) in counted {
        let loaded = harness
            .transact(&[document(0, json!({"id": id, "v": v}))], "c")
            .unwrap()
            .loaded;
        assert_eq!(loaded.len(), want, "{id}");
    }
    assert_eq!(
        fixture.rows("SELECT id, v FROM t ORDER BY id"),
        [
            json!([9_007_199_254_740_992_i64, 1]),
            json!([9_007_199_254_740_993_i64, 2])
        ]
    );
}

#[test]
fn text_keys_are_compared_by_their_bytes() {
    let mut fixture = opened(vec![table("t", &[("id", TEXT)], &[])]);
    let ids = [
        "a", "A", "a ", "\u{e4}", "a\u{308}", "1", "01", "1.0", "", "x\0y", "x",
    ];
    for id in ids {
        let loaded = fixture
            .harness
            .transact(&[document(0, json!({"id": id}))], "c")
            .unwrap()
            .loaded;
        assert!(loaded.is_empty(), "{id:?} was taken for another key");
    }
    for id in ids {
        let loaded = fixture
            .harness
            .transact(&[document(0, json!({"id": id}))], "c")
            .unwrap()
            .loaded;
        assert_eq!(
            loaded.into_values().collect::<Vec<_>>(),
            [json!({"id": id}).to_string()]
        );
    }
}

#[test]
fn keys_of_several_fields_and_types() {
    let key: &[(&str, &[JsonType])] = &[("a", TEXT), ("b", BOOLEAN), ("c", MIXED), ("d", INTEGER)];
    let mut fixture = opened(vec![table("t", key, &[])]);
    let documents = [
        document(0, json!({"a": "x", "b": true, "c": 1, "d": -1})),
        document(0, json!({"a": "x", "b": true, "c": "1", "d": -1})),
        document(0, json!({"a": "x", "b": false, "c": 1, "d": -1})),
    ];
    assert!(
        fixture
            .harness
            .transact(&documents, "one")
            .unwrap()
            .loaded
            .is_empty()
    );
    assert_eq!(
        fixture
            .harness
            .transact(&documents, "two")
            .unwrap()
            .loaded
            .len(),
        3
    );
    assert_eq!(
        fixture.rows("SELECT a, b, c, d FROM t ORDER BY b, c"),
        [
            json!(["x", 0, "1", -1]),
            json!(["x", 1, "\"1\"", -1]),
            json!(["x", 1, "1", -1]),
        ]
    );
}

#[test]
fn columns_hold_values_exactly() {
    let values: &[(&str, &[JsonType])] = &[
        ("t", TEXT),
        ("i", INTEGER),
        ("n", NUMBER),
        ("b", BOOLEAN),
        ("m", MIXED),
        ("o", OBJECT),
    ];
    let big = (1_i64 << 53) + 1;
    let cases = [
        (
            json!({"t": "123", "i": big, "n": big, "b": true, "m": "7", "o": {"a": [1, 2.50]}}),
            json!([
                "123",
                "text",
                big,
                "integer",
                big,
                "integer",
                1,
                "integer",
                "\"7\"",
                "text",
                "{\"a\":[1,2.5]}",
                "text"
            ]),
        ),
        (
            json!({"t": "1e5", "i": i64::MIN, "n": 0.1, "b": false, "m": 7, "o": {}}),
            json!([
                "1e5",
                "text",
                i64::MIN,
                "integer",
                0.1,
                "real",
                0,
                "integer",
                "7",
                "text",
                "{}",
                "text"
            ]),
        ),
        (
            json!({"t": "", "i": i64::MAX, "n": 1e300, "m": " 7 "}),
            json!([
                "",
                "text",
                i64::MAX,
                "integer",
                1e300,
                "real",
                null,
                "null",
                "\" 7 \"",
                "text",
                null,
                "null"
            ]),
        ),
    ];
    let mut fixture = opened(vec![table("t", &[("id", INTEGER)], values)]);
    for (id, (input, want)) in cases.into_iter().enumerate() {
        let mut input = input;
        input["id"] = json!(id);
        fixture
            .harness
            .transact(&[document(0, input.clone())], "c")
            .unwrap();
        let sql = format!(
            "SELECT t, typeof(t), i, typeof(i), n, typeof(n), b, typeof(b), m, typeof(m), o, typeof(o) \
             FROM t WHERE id = {id}"
        );
        assert_eq!(fixture.rows(&sql), [want], "{input}");
    }
}

#[test]
fn a_value_that_a_column_cannot_hold_is_a_document_error() {
    let beyond = || Element::BigInt((i128::from(i64::MAX) + 2).into());
    let decimal = Element::Bytes(Bytes(Cow::Borrowed(b"0.10000000000000000001")));
    struct Case {
        key: Element<'static>,
        values: [Element<'static>; 2],
        field: &'static str,
        value: &'static str,
    }
    let cases = [
        Case {
            key: Element::Int(1),
            values: [beyond(), Element::Nil],
            field: "i",
            value: "9223372036854775809",
        },
        Case {
            key: Element::Int(1),
            values: [Element::Nil, beyond()],
            field: "n",
            value: "9223372036854775809",
        },
        Case {
            key: Element::Int(1),
            values: [Element::Nil, decimal],
            field: "n",
            value: "0.10000000000000000001",
        },
        Case {
            key: beyond(),
            values: [Element::Nil, Element::Nil],
            field: "id",
            value: "9223372036854775809",
        },
        Case {
            key: Element::Nil,
            values: [Element::Nil, Element::Nil],
            field: "id",
            value: "null",
        },
    ];
    for Case {
        key,
        values,
        field,
        value,
    } in cases
    {
        let mut fixture = opened(vec![
            animals(),
            table("t", &[("id", INTEGER)], &[("i", INTEGER), ("n", NUMBER)]),
        ]);
        let good = Row {
            binding: 1,
            key: vec![Element::Int(0)],
            values: vec![Element::Nil, Element::Nil],
            document: "{}".to_owned(),
            delete: false,
            exists: false,
        };
        let bad = Row {
            key: vec![key.clone()],
            values: values.to_vec(),
            ..good.clone()
        };
        let error = fixture.harness.load_and_store(vec![good, bad]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Document, "{error}");
        assert_eq!(error.binding, Some(1));
        assert_eq!(error.field.as_deref(), Some(field));
        let named = match key {
            Element::Int(_) => "[1]".to_owned(),
            _ => format!("[{value}]"),
        };
        assert_eq!(error.key, Some(named));
        assert!(
            error.message.contains(field) && error.message.contains(value),
            "{error}"
        );
        assert_eq!(fixture.rows("SELECT count(*) FROM t"), [json!([0])]);
        // Nobody has to wait for a session that has failed.
        fixture.execute("BEGIN IMMEDIATE");
    }
}

#[test]
fn delta_updates_add_rows_and_are_never_loaded() {
    let mut fixture = opened(vec![delta(table(
        "log",
        &[("id", INTEGER)],
        &[("n", INTEGER)],
    ))]);
    let harness = &mut fixture.harness;
    harness
        .transact(&[document(0, json!({"id": 1, "n": 1}))], "one")
        .unwrap();
    harness
        .transact(&[document(0, json!({"id": 1, "n": 2}))], "two")
        .unwrap();
    let row = harness.row(&document(0, json!({"id": 1, "n": 2})));
    let error = harness
        .load(0, &[row], &mut std::collections::BTreeMap::new())
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Internal);
    assert_eq!(
        fixture.rows("SELECT id, n FROM log ORDER BY n"),
        [json!([1, 1]), json!([1, 2])]
    );
}

#[test]
fn a_row_that_the_host_does_not_know_is_not_overwritten() {
    let mut fixture = opened(vec![animals()]);
    fixture.execute("INSERT INTO animals (id, name) VALUES (1, 'cat')");
    let harness = &mut fixture.harness;
    let row = harness.row(&cat(1, "bee"));
    harness
        .flush(0, &mut std::collections::BTreeMap::new())
        .unwrap();
    let error = harness.store(0, std::slice::from_ref(&row)).unwrap_err();
    assert!(error.message.contains("animals"), "{error}");
    harness.open().unwrap();
    let error = harness
        .load(0, &[row], &mut std::collections::BTreeMap::new())
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Schema);
    assert!(error.message.contains("has no document"), "{error}");
}

#[test]
fn many_large_documents_are_loaded_in_bounded_answers() {
    const COUNT: i64 = 300;
    let mut fixture = opened(vec![animals()]);
    let name = "x".repeat(20_000);
    let documents: Vec<_> = (0..COUNT).map(|id| cat(id, &name)).collect();
    fixture.harness.transact(&documents, "one").unwrap();
    let again: Vec<_> = (0..COUNT + 5).map(|id| cat(id, "short")).collect();
    let loaded = fixture.harness.transact(&again, "two").unwrap().loaded;
    assert_eq!(loaded.len(), COUNT as usize);
    for ((_, ordinal), loaded) in loaded {
        assert!(
            loaded.starts_with(&format!("{{\"id\":{ordinal},")),
            "{ordinal}: {}",
            &loaded[..20]
        );
    }
    assert_eq!(
        fixture.rows("SELECT count(*), max(length(name)) FROM animals"),
        [json!([COUNT + 5, 5])]
    );
}

#[test]
fn an_older_session_can_neither_commit_nor_open() {
    let mut fixture = opened(vec![animals()]);
    let harness = &mut fixture.harness;
    harness.transact(&[cat(1, "ant")], "one").unwrap();
    let mut older = created(vec![animals()]);
    older.harness.spec = harness.spec.clone();
    older.harness.fence = harness.fence;
    harness.fence.epoch += 1;
    older.harness.open().unwrap();
    harness.open().unwrap();

    let row = older.harness.row(&cat(1, "bee"));
    older.harness.load_and_store(vec![row]).unwrap();
    let error = older.harness.start_commit("two").unwrap_err();
    assert_eq!(error.kind, ErrorKind::Transient);
    assert!(error.message.contains("fenced off"), "{error}");
    let error = older.harness.open().unwrap_err();
    assert!(error.message.contains("is refused"), "{error}");

    harness.transact(&[cat(2, "cat")], "three").unwrap();
    assert_eq!(
        fixture.rows("SELECT id, name FROM animals ORDER BY id"),
        [json!([1, "ant"]), json!([2, "cat"])]
    );
    fixture.harness.fence.session -= 1;
    let error = fixture.harness.open().unwrap_err();
    assert!(
        error.message.contains("is refused"),
        "an equal fence: {error}"
    );
}

#[test]
fn an_apply_that_changes_a_table_ends_the_session() {
    let mut fixture = opened(vec![animals()]);
    let mut applying = created(vec![]);
    applying.harness.spec = fixture.harness.spec.clone();
    applying.harness.apply().unwrap();
    fixture.harness.transact(&[cat(1, "ant")], "one").unwrap();

    applying.harness.spec.bindings[0].backfill = 1;
    applying.harness.apply().unwrap();
    let error = fixture
        .harness
        .transact(&[cat(2, "cat")], "two")
        .unwrap_err();
    assert!(
        error.message.contains("tables have been changed"),
        "{error}"
    );
    assert_eq!(fixture.rows("SELECT count(*) FROM animals"), [json!([0])]);
}

#[test]
fn shards_that_are_laid_out_anew_go_on_where_the_last_were() {
    let halves = [
        KeyRange {
            begin: 0,
            end: 0x7fff_ffff,
        },
        KeyRange {
            begin: 0x8000_0000,
            end: u32::MAX,
        },
    ];
    let mut fixture = opened(vec![animals()]);
    let harness = &mut fixture.harness;
    harness.transact(&[], "one").unwrap();

    harness.range = halves[0].clone();
    assert_eq!(harness.open().unwrap().checkpoint.as_deref(), Some("one"));
    let mut other = created(vec![]);
    other.harness.spec = harness.spec.clone();
    other.harness.range = halves[1].clone();
    other.harness.fence = harness.fence;
    other.harness.fence.session -= 1;
    assert_eq!(
        other.harness.open().unwrap().checkpoint.as_deref(),
        Some("one")
    );
    harness.transact(&[], "two").unwrap();

    // Only one of the two has committed: there is no one checkpoint to go on from.
    let mut whole = created(vec![]);
    whole.harness.spec = harness.spec.clone();
    whole.harness.fence = harness.fence;
    let error = whole.harness.open().unwrap_err();
    assert!(error.message.contains("not at one checkpoint"), "{error}");
    other.harness.transact(&[], "two").unwrap();
    assert_eq!(
        whole.harness.open().unwrap().checkpoint.as_deref(),
        Some("two")
    );

    let error = harness.transact(&[], "three").unwrap_err();
    assert!(error.message.contains("fenced off"), "{error}");
}

#[test]
fn tasks_that_share_a_file_do_not_mix() {
    let mut fixture = opened(vec![animals()]);
    fixture.harness.transact(&[cat(1, "ant")], "one").unwrap();
    let mut other = created(vec![table("plants", &[("id", INTEGER)], &[])]);
    other.harness.spec.task = "acme/other".to_owned();
    other.harness.spec.config = fixture.harness.spec.config.clone();
    other.harness.apply().unwrap();
    assert_eq!(other.harness.open().unwrap().checkpoint, None);
    other
        .harness
        .transact(&[document(0, json!({"id": 1}))], "o")
        .unwrap();
    assert_eq!(
        fixture.harness.open().unwrap().checkpoint.as_deref(),
        Some("one")
    );

    let rows = vec![fixture.harness.row(&cat(2, "cat"))];
    fixture.harness.load_and_store(rows).unwrap();
    let error = other
        .harness
        .transact(&[document(0, json!({"id": 2}))], "p")
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Transient, "a busy file: {error}");
}

#[test]
fn a_file_that_was_replaced_is_noticed() {
    let mut fixture = opened(vec![animals()]);
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", fixture.path));
    }
    let error = fixture.harness.open().unwrap_err();
    assert_eq!(
        (error.kind, error.binding),
        (ErrorKind::Schema, Some(0)),
        "{error}"
    );
}
