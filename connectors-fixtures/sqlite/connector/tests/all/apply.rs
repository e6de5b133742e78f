//! Tables: made, extended, made anew, or left alone.

use crate::common::{INTEGER, TEXT, animals, created, opened, table};
use serde_json::json;
use tidegate_boilerplate::testing::{binding, document, projection};
use tidegate_boilerplate::{ErrorKind, JsonType, SpecBinding};

#[test]
fn a_dry_run_says_what_apply_does_and_does_nothing() {
    let mut fixture = created(vec![animals()]);
    let planned = fixture.harness.dry_run().unwrap();
    assert_eq!(
        planned,
        [
            "CREATE TABLE \"animals\" (\n    \"id\" INTEGER NOT NULL,\n    \"name\" TEXT,\n    \
          \"flow_document\" JSON_TEXT,\n    PRIMARY KEY (\"id\")\n)"
        ]
    );
    assert!(fixture.rows("SELECT name FROM sqlite_master").is_empty());
    assert_eq!(fixture.harness.apply().unwrap(), planned);
    assert!(
        fixture.harness.apply().unwrap().is_empty(),
        "twice does nothing more"
    );
    assert!(fixture.harness.dry_run().unwrap().is_empty());
}

#[test]
fn a_new_field_adds_a_column_and_a_removed_one_leaves_it() {
    let mut fixture = opened(vec![animals()]);
    fixture
        .harness
        .transact(&[document(0, json!({"id": 1, "name": "ant"}))], "one")
        .unwrap();
    fixture.harness.spec.bindings =
        vec![table("animals", &[("id", INTEGER)], &[("legs", INTEGER)])];
    assert_eq!(
        fixture.harness.apply().unwrap(),
        ["ALTER TABLE \"animals\" ADD COLUMN \"legs\" INTEGER"]
    );
    fixture.harness.open().unwrap();
    let documents = [
        document(0, json!({"id": 1, "legs": 6})),
        document(0, json!({"id": 2, "legs": 4})),
    ];
    fixture.harness.transact(&documents, "two").unwrap();
    assert_eq!(
        fixture.rows("SELECT id, name, legs FROM animals ORDER BY id"),
        [json!([1, "ant", 6]), json!([2, null, 4])]
    );
    // The column that was left is taken again, in another spelling even.
    fixture.harness.spec.bindings = vec![table("animals", &[("id", INTEGER)], &[("Name", TEXT)])];
    assert!(fixture.harness.apply().unwrap().is_empty());
}

#[test]
fn a_raised_counter_makes_the_table_anew() {
    let mut fixture = opened(vec![animals()]);
    fixture
        .harness
        .transact(&[document(0, json!({"id": 1, "name": "ant"}))], "one")
        .unwrap();
    let mut anew = table("animals", &[("name", TEXT)], &[("id", INTEGER)]);
    anew.backfill = 1;
    fixture.harness.spec.bindings = vec![anew];
    let actions = fixture.harness.apply().unwrap();
    assert_eq!(actions[0], "DROP TABLE \"animals\"");
    assert!(actions[1].contains("PRIMARY KEY (\"name\")"), "{actions:?}");
    assert_eq!(
        fixture.harness.open().unwrap().checkpoint.as_deref(),
        Some("one")
    );
    assert_eq!(fixture.rows("SELECT count(*) FROM animals"), [json!([0])]);
    fixture.harness.spec.bindings[0].backfill = 0;
    let error = fixture.harness.apply().unwrap_err();
    assert!(error.message.contains("only ever raised"), "{error}");
}

#[test]
fn what_does_not_fit_the_table_is_a_schema_error_and_changes_nothing() {
    let mut delta = animals();
    delta.delta_updates = true;
    delta.resource = json!({"table": "animals", "delta_updates": true});
    let mut renamed = animals();
    renamed.document = Some("doc".to_owned());
    let number: &[JsonType] = &[JsonType::Number];
    let key: &[(&str, &[JsonType])] = &[("id", INTEGER)];
    let cases: [(SpecBinding, &str); 6] = [
        (
            table("animals", &[("name", TEXT)], &[("id", INTEGER)]),
            "another key, (id INTEGER)",
        ),
        (
            table("animals", &[("id", TEXT)], &[("name", TEXT)]),
            "another key, (id INTEGER)",
        ),
        (
            table("animals", key, &[("name", number)]),
            "column \"name\" as TEXT, and it would be NUMERIC",
        ),
        (delta, "delta_updates false"),
        (renamed, "its document in column \"flow_document\""),
        (table("animals", key, &[("a\0b", TEXT)]), "NUL"),
    ];
    for (binding, want) in cases {
        let mut fixture = opened(vec![animals()]);
        let tables = fixture.rows("SELECT sql FROM sqlite_master");
        // A first binding that would fit is not applied either.
        fixture.harness.spec.bindings = vec![table("plants", key, &[]), binding];
        let error = fixture.harness.apply().unwrap_err();
        assert_eq!(
            (error.kind, error.binding),
            (ErrorKind::Schema, Some(1)),
            "{error}"
        );
        assert!(error.message.contains(want), "{want}: {error}");
        assert_eq!(
            fixture.rows("SELECT sql FROM sqlite_master"),
            tables,
            "{want}"
        );
    }
}

#[test]
fn tables_of_others_are_neither_used_nor_dropped() {
    let mut fixture = created(vec![animals()]);
    fixture.execute("CREATE TABLE Animals (id INTEGER)");
    for backfill in [0, 1] {
        fixture.harness.spec.bindings[0].backfill = backfill;
        let error = fixture.harness.apply().unwrap_err();
        assert_eq!(error.kind, ErrorKind::Schema);
        assert!(
            error.message.contains("was not made by this connector"),
            "{error}"
        );
    }
    let mut fixture = created(vec![animals()]);
    fixture.execute("CREATE VIEW animals AS SELECT 1");
    assert!(fixture.harness.apply().is_err());

    let mut fixture = opened(vec![animals()]);
    fixture.harness.spec.task = "acme/other".to_owned();
    let error = fixture.harness.apply().unwrap_err();
    assert!(
        error.message.contains("belongs to task acme/task"),
        "{error}"
    );
}

#[test]
fn a_table_that_is_gone_is_made_anew_only_when_asked() {
    let mut fixture = opened(vec![animals()]);
    fixture.execute("DROP TABLE animals");
    let error = fixture.harness.apply().unwrap_err();
    assert!(error.message.contains("is gone"), "{error}");
    fixture.harness.spec.bindings[0].backfill = 1;
    assert_eq!(fixture.harness.apply().unwrap().len(), 1);
}

#[test]
fn names_are_quoted() {
    let names = [
        "select",
        "order by",
        "a\"b",
        "x'; DROP TABLE t; --",
        "[b]",
        "`c`",
        "\u{fc}",
        "\u{dc}",
        "1",
        "rowid",
    ];
    let values: Vec<_> = names.iter().map(|name| (*name, TEXT)).collect();
    let table_name = "group \"by\"; --";
    let odd = binding(
        "odd",
        json!({"table": table_name}),
        &[("table", INTEGER)],
        &values,
    );
    let mut fixture = opened(vec![odd]);
    let mut input = json!({"table": 1});
    for name in names {
        input[name] = json!(format!("<{name}>"));
    }
    fixture
        .harness
        .transact(&[document(0, input.clone())], "one")
        .unwrap();
    assert_eq!(
        fixture
            .harness
            .transact(&[document(0, input)], "two")
            .unwrap()
            .loaded
            .len(),
        1
    );
    for name in names {
        let sql = format!(
            "SELECT \"{}\" FROM \"group \"\"by\"\"; --\"",
            name.replace('"', "\"\"")
        );
        assert_eq!(fixture.rows(&sql), [json!([format!("<{name}>")])]);
    }
}

#[test]
fn two_spellings_of_one_column_are_refused_by_both_names() {
    let fields = [("Name", TEXT), ("name", TEXT)];
    let mut fixture = created(vec![table("t", &[("id", INTEGER)], &fields)]);
    let error = fixture.harness.apply().unwrap_err();
    assert!(error.message.contains("\"Name\" and \"name\""), "{error}");
}

#[test]
fn more_columns_than_a_table_can_have_are_refused() {
    let mut wide = animals();
    wide.values = (0..2_000)
        .map(|it| projection(&format!("f{it}"), TEXT))
        .collect();
    let error = created(vec![wide]).harness.apply().unwrap_err();
    assert!(error.message.contains("2002 columns"), "{error}");
}
