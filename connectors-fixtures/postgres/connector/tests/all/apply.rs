//! Tables: made, extended, made anew, or left alone.

use crate::common::{INTEGER, TEXT, animals, created, delta, opened, table};
use serde_json::json;
use tidegate_boilerplate::testing::{document, projection};
use tidegate_boilerplate::{ErrorKind, JsonType, SpecBinding};

const TABLES: &str = "SELECT table_name, column_name, data_type, is_nullable
    FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, ordinal_position";

#[test]
fn a_dry_run_says_what_apply_does_and_does_nothing() {
    let mut elsewhere = animals();
    elsewhere.resource["schema"] = json!("zoo");
    let mut fixture = created(vec![elsewhere]);
    let planned = fixture.harness.dry_run().unwrap();
    assert_eq!(
        planned,
        [
            "CREATE SCHEMA \"zoo\"",
            "CREATE TABLE \"zoo\".\"animals\" (\n    \"id\" numeric NOT NULL,\n    \"name\" text,\n    \
             \"flow_document\" json,\n    PRIMARY KEY (\"id\")\n)"
        ]
    );
    let count =
        "SELECT count(*) FROM information_schema.tables WHERE table_schema IN ('public', 'zoo')";
    assert_eq!(fixture.ask(count), "0");
    assert_eq!(fixture.harness.apply().unwrap(), planned);
    assert_eq!(fixture.ask(count), "3");
    let twice = fixture.harness.apply().unwrap();
    assert!(twice.is_empty(), "twice does nothing more");
    assert!(fixture.harness.dry_run().unwrap().is_empty());
}

#[test]
fn a_new_field_adds_a_column_and_a_removed_one_leaves_it() {
    let mut fixture = opened(vec![animals()]);
    let ant = [document(0, json!({"id": 1, "name": "ant"}))];
    fixture.harness.transact(&ant, "one").unwrap();
    fixture.harness.spec.bindings =
        vec![table("animals", &[("id", INTEGER)], &[("legs", INTEGER)])];
    // Somebody made the column that is left NOT NULL, which a row without a name cannot be.
    fixture.ask("ALTER TABLE animals ALTER COLUMN name SET NOT NULL");
    assert_eq!(
        fixture.harness.apply().unwrap(),
        [
            "ALTER TABLE \"public\".\"animals\" ADD COLUMN \"legs\" numeric",
            "ALTER TABLE \"public\".\"animals\" ALTER COLUMN \"name\" DROP NOT NULL",
        ]
    );
    fixture.harness.open().unwrap();
    let documents = [
        document(0, json!({"id": 1, "legs": 6})),
        document(0, json!({"id": 2, "legs": 4})),
    ];
    fixture.harness.transact(&documents, "two").unwrap();
    assert_eq!(
        fixture.ask("SELECT id, name, legs FROM animals ORDER BY id"),
        "1|ant|6\n2||4"
    );
    // The column that was left is taken again.
    fixture.harness.spec.bindings = vec![animals()];
    assert!(fixture.harness.apply().unwrap().is_empty());
}

#[test]
fn a_wider_type_keeps_what_the_column_holds() {
    const KEY: &[(&str, &[JsonType])] = &[("id", INTEGER)];
    let narrow = [
        ("a", INTEGER),
        ("b", &[JsonType::Number][..]),
        ("c", &[JsonType::Boolean][..]),
    ];
    let mut fixture = opened(vec![table("animals", KEY, &narrow)]);
    let ant = json!({"id": 1, "a": 9_007_199_254_740_993_i64, "b": 1.5, "c": true});
    fixture
        .harness
        .transact(&[document(0, ant)], "one")
        .unwrap();
    let wide = ["a", "b", "c"].map(|it| (it, TEXT));
    fixture.harness.spec.bindings = vec![table("animals", KEY, &wide)];
    let alter = |column: &str| {
        format!(
            "ALTER TABLE \"public\".\"animals\" ALTER COLUMN \"{column}\" TYPE text \
             USING \"{column}\"::text"
        )
    };
    assert_eq!(fixture.harness.apply().unwrap(), ["a", "b", "c"].map(alter));
    assert!(fixture.harness.apply().unwrap().is_empty());
    fixture.harness.open().unwrap();
    let bee = json!({"id": 2, "a": "z", "b": "7", "c": "no"});
    fixture
        .harness
        .transact(&[document(0, bee)], "two")
        .unwrap();
    assert_eq!(
        fixture.ask("SELECT a, b, c FROM animals ORDER BY id"),
        "9007199254740993|1.5|true\nz|7|no"
    );
}

#[test]
fn a_raised_counter_makes_the_table_anew() {
    let mut fixture = opened(vec![animals()]);
    let ant = [document(0, json!({"id": 1, "name": "ant"}))];
    fixture.harness.transact(&ant, "one").unwrap();
    let mut anew = table("animals", &[("name", TEXT)], &[("id", INTEGER)]);
    anew.backfill = 1;
    fixture.harness.spec.bindings = vec![anew];
    let actions = fixture.harness.apply().unwrap();
    assert_eq!(actions[0], "DROP TABLE \"public\".\"animals\"");
    assert!(actions[1].contains("PRIMARY KEY (\"name\")"), "{actions:?}");
    let opened = fixture.harness.open().unwrap();
    assert_eq!(opened.checkpoint.as_deref(), Some("one"));
    assert_eq!(fixture.ask("SELECT count(*) FROM animals"), "0");
    fixture.harness.spec.bindings[0].backfill = 0;
    let error = fixture.harness.apply().unwrap_err();
    assert!(error.message.contains("only ever raised"), "{error}");
}

#[test]
fn what_does_not_fit_the_table_is_a_schema_error_and_changes_nothing() {
    let mut renamed = animals();
    renamed.document = Some("doc".to_owned());
    let key: &[(&str, &[JsonType])] = &[("id", INTEGER)];
    let mut long = animals();
    let name = "x".repeat(63);
    long.values = vec![
        projection(&format!("{name}1"), TEXT),
        projection(&format!("{name}2"), TEXT),
    ];
    let mut wide = animals();
    wide.values = (0..1_600)
        .map(|it| projection(&format!("f{it}"), TEXT))
        .collect();
    let cases: [(SpecBinding, &str); 9] = [
        (
            table("animals", &[("name", TEXT)], &[("id", INTEGER)]),
            "another key, (id numeric)",
        ),
        (
            table("animals", &[("id", TEXT)], &[("name", TEXT)]),
            "another key, (id numeric)",
        ),
        (
            table("animals", key, &[("name", INTEGER)]),
            "column \"name\" as text, and it would be numeric",
        ),
        (delta(animals()), "delta_updates false"),
        (renamed, "its document in column \"flow_document\""),
        (table("animals", key, &[("a\0b", TEXT)]), "NUL"),
        (table("animals", key, &[("ctid", TEXT)]), "to itself"),
        (long, "are one column"),
        (wide, "1602 columns"),
    ];
    let mut fixture = opened(vec![animals()]);
    let tables = fixture.ask(TABLES);
    for (binding, want) in cases {
        // A first binding that would fit is not applied either.
        fixture.harness.spec.bindings = vec![table("plants", key, &[]), binding];
        let error = fixture.harness.apply().unwrap_err();
        assert_eq!(
            (error.kind, error.binding),
            (ErrorKind::Schema, Some(1)),
            "{error}"
        );
        assert!(error.message.contains(want), "{want}: {error}");
        assert_eq!(fixture.ask(TABLES), tables, "{want}");
    }
}

#[test]
fn a_table_that_somebody_changed_is_not_written_to() {
    let mut fixture = opened(vec![animals()]);
    fixture.ask("ALTER TABLE animals ALTER COLUMN name TYPE varchar(3)");
    let error = fixture.harness.apply().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Schema);
    assert!(error.message.contains("character varying(3)"), "{error}");
    fixture.ask("ALTER TABLE animals DROP COLUMN name");
    let error = fixture.harness.apply().unwrap_err();
    assert!(error.message.contains("has been dropped"), "{error}");
    fixture.ask("DROP TABLE animals");
    let error = fixture.harness.apply().unwrap_err();
    assert!(error.message.contains("is gone"), "{error}");
    fixture.harness.spec.bindings[0].backfill = 1;
    assert_eq!(fixture.harness.apply().unwrap().len(), 1);
}

#[test]
fn tables_of_others_are_neither_used_nor_dropped() {
    let mut fixture = created(vec![animals()]);
    for made in ["TABLE animals (id numeric)", "VIEW animals AS SELECT 1"] {
        fixture.ask(&format!("CREATE {made}"));
        for backfill in [0, 1] {
            fixture.harness.spec.bindings[0].backfill = backfill;
            let error = fixture.harness.apply().unwrap_err();
            assert_eq!(error.kind, ErrorKind::Schema);
            assert!(
                error.message.contains("was not made by this connector"),
                "{error}"
            );
        }
        let kind = made.split(' ').next().unwrap();
        fixture.ask(&format!("DROP {kind} animals"));
    }
    fixture.harness.apply().unwrap();
    fixture.harness.spec.task = "acme/other".to_owned();
    let error = fixture.harness.apply().unwrap_err();
    assert!(
        error.message.contains("belongs to task acme/task"),
        "{error}"
    );
}

#[test]
fn names_are_quoted() {
    let names = [
        "select",
        "order by",
        "a\"b",
        "x'; DROP TABLE t; --",
        "[b]",
        "Name",
        "name",
        "\u{fc}",
        "\u{dc}",
        "1",
        "c1",
        "ordinal",
        "$1",
    ];
    let values: Vec<_> = names.iter().map(|name| (*name, TEXT)).collect();
    let mut odd = table("group \"by\"; --", &[("table", INTEGER)], &values);
    odd.resource["schema"] = json!("My \"Schema\"");
    let mut fixture = created(vec![odd]);
    fixture.harness.apply().unwrap();
    fixture.harness.open().unwrap();
    let mut input = json!({"table": 1});
    for name in names {
        input[name] = json!(format!("<{name}>"));
    }
    for (checkpoint, loaded) in [("one", 0), ("two", 1)] {
        let documents = [document(0, input.clone())];
        let transacted = fixture.harness.transact(&documents, checkpoint).unwrap();
        assert_eq!(transacted.loaded.len(), loaded);
    }
    for name in names {
        let sql = format!(
            "SELECT \"{}\" FROM \"My \"\"Schema\"\"\".\"group \"\"by\"\"; --\"",
            name.replace('"', "\"\"")
        );
        assert_eq!(fixture.ask(&sql), format!("<{name}>"));
    }
}
