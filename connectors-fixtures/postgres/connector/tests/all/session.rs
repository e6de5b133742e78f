//! Sessions: what is stored, loaded, committed, and what is not.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::common::{INTEGER, TEXT, animals, config, created, delta, opened, table};
use crate::postgres::PASSWORD;
use serde_json::json;
use tidegate_boilerplate::testing::{Document, document, tombstone};
use tidegate_boilerplate::tuple::Element;
use tidegate_boilerplate::{ErrorKind, KeyRange};

fn cat(id: i64, name: &str) -> Document {
    document(0, json!({"id": id, "name": name}))
}

const ANIMALS: &str = "SELECT id, name FROM animals ORDER BY id";
const CHECKPOINT: &str = "SELECT checkpoint FROM tidegate_checkpoints";

#[test]
fn rows_are_inserted_updated_and_deleted() {
    let mut fixture = opened(vec![animals()]);
    let harness = &mut fixture.harness;
    let first = harness.transact(&[cat(2, "cat"), cat(1, "ant")], "one");
    assert!(first.unwrap().loaded.is_empty());
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
        fixture.ask("SELECT id, name, flow_document FROM animals ORDER BY id"),
        "1|bee|{\"id\":1,\"name\":\"bee\"}\n3|dog|{\"id\":3,\"name\":\"dog\"}"
    );
    assert_eq!(fixture.ask(CHECKPOINT), "two");
}

#[test]
fn what_was_committed_but_not_acknowledged_is_there_once() {
    let log = delta(table("log", &[("id", INTEGER)], &[("n", INTEGER)]));
    let mut fixture = opened(vec![animals(), log]);
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
    assert_eq!(fixture.ask(ANIMALS), "1|bee");
    assert_eq!(fixture.ask("SELECT id, n FROM log"), "1|2");
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
    assert_eq!(fixture.ask(ANIMALS), "1|ant");
    fixture.harness.transact(&[], "two").unwrap();
    assert_eq!(fixture.ask(CHECKPOINT), "two", "without documents too");
    assert_eq!(fixture.ask(ANIMALS), "1|ant");
}

#[test]
fn delta_updates_add_rows_and_are_never_loaded() {
    let log = delta(table("log", &[("id", INTEGER)], &[("n", INTEGER)]));
    let mut fixture = opened(vec![log]);
    let harness = &mut fixture.harness;
    for (n, checkpoint) in [(1, "one"), (2, "two")] {
        let documents = [document(0, json!({"id": 1, "n": n}))];
        harness.transact(&documents, checkpoint).unwrap();
    }
    assert_eq!(fixture.ask("SELECT id, n FROM log ORDER BY n"), "1|1\n1|2");
}

#[test]
fn a_row_that_the_host_does_not_know_is_not_overwritten() {
    let mut fixture = opened(vec![animals()]);
    fixture.ask("INSERT INTO animals (id, name) VALUES (1, 'cat')");
    let harness = &mut fixture.harness;
    let row = harness.row(&cat(1, "bee"));
    harness.flush(0, &mut BTreeMap::new()).unwrap();
    harness.store(0, std::slice::from_ref(&row)).unwrap();
    let error = harness.start_commit("one").unwrap_err();
    assert_eq!(error.kind, ErrorKind::Schema, "{error}");
    assert!(error.message.contains("animals"), "{error}");
    harness.open().unwrap();
    harness.load(0, &[row], &mut BTreeMap::new()).unwrap();
    let error = harness.flush(0, &mut BTreeMap::new()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Schema);
    assert!(error.message.contains("has no document"), "{error}");
    assert_eq!(fixture.ask(ANIMALS), "1|cat");
}

#[test]
fn many_keys_and_large_documents_go_through_in_pieces() {
    const LARGE: i64 = 150;
    const SMALL: i64 = 30_000;
    let small = table("small", &[("id", INTEGER)], &[]);
    let mut fixture = opened(vec![animals(), small]);
    let name = "x".repeat(20_000);
    let documents = |name: &str| {
        let large = (0..LARGE).map(|id| cat(id, name));
        let small = (0..SMALL).map(|id| document(1, json!({"id": id})));
        large.chain(small).collect::<Vec<_>>()
    };
    let first = fixture.harness.transact(&documents(&name), "one");
    assert_eq!(first.unwrap().loaded.len(), 0);
    for checkpoint in ["two", "three"] {
        let again = fixture.harness.transact(&documents("short"), checkpoint);
        let loaded = again.unwrap().loaded;
        assert_eq!(loaded.len() as i64, LARGE + SMALL);
        // By ordinal and by document.
        assert!(loaded[&(1, 0)].starts_with("{\"id\":"));
        assert_eq!(
            fixture.ask("SELECT count(*), max(length(name)) FROM animals"),
            "150|5"
        );
    }
    assert_eq!(
        fixture.ask("SELECT count(*), count(DISTINCT id) FROM small"),
        "30000|30000"
    );
}

#[test]
fn an_older_session_can_neither_commit_nor_open() {
    let mut fixture = opened(vec![animals()]);
    fixture.harness.transact(&[cat(1, "ant")], "one").unwrap();
    let mut older = fixture.another();
    fixture.harness.fence.epoch += 1;
    older.harness.open().unwrap();
    // It has stored, and its transaction is open, when it is overtaken.
    let row = older.harness.row(&cat(1, "bee"));
    older.harness.load_and_store(vec![row]).unwrap();
    fixture.harness.open().unwrap();
    let error = older.harness.start_commit("two").unwrap_err();
    assert_eq!(error.kind, ErrorKind::Transient);
    assert!(error.message.contains("fenced off"), "{error}");
    let error = older.harness.open().unwrap_err();
    assert!(error.message.contains("is refused"), "{error}");

    let harness = &mut fixture.harness;
    harness.transact(&[cat(2, "cat")], "three").unwrap();
    assert_eq!(fixture.ask(ANIMALS), "1|ant\n2|cat");
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
    let mut applying = fixture.another();
    applying.harness.apply().unwrap();
    let harness = &mut fixture.harness;
    harness.transact(&[cat(1, "ant")], "one").unwrap();

    applying.harness.spec.bindings[0].backfill = 1;
    applying.harness.apply().unwrap();
    let error = harness.transact(&[cat(2, "cat")], "two").unwrap_err();
    assert!(
        error.message.contains("tables have been changed"),
        "{error}"
    );
    assert_eq!(fixture.ask("SELECT count(*) FROM animals"), "0");
}

#[test]
fn shards_that_are_laid_out_anew_go_on_where_the_last_were() {
    let [low, high] =
        [(0, 0x7fff_ffff), (0x8000_0000, u32::MAX)].map(|(begin, end)| KeyRange { begin, end });
    let mut fixture = opened(vec![animals()]);
    fixture.harness.transact(&[], "one").unwrap();

    let mut other = fixture.another();
    let harness = &mut fixture.harness;
    harness.range = low;
    assert_eq!(harness.open().unwrap().checkpoint.as_deref(), Some("one"));
    other.harness.range = high;
    let opened = other.harness.open().unwrap();
    assert_eq!(opened.checkpoint.as_deref(), Some("one"));
    harness.transact(&[], "two").unwrap();

    // Only one of the two has committed: there is no one checkpoint to go on from.
    let mut whole = fixture.another();
    let error = whole.harness.open().unwrap_err();
    assert!(error.message.contains("not at one checkpoint"), "{error}");
    other.harness.transact(&[], "two").unwrap();
    let opened = whole.harness.open().unwrap();
    assert_eq!(opened.checkpoint.as_deref(), Some("two"));

    let error = fixture.harness.transact(&[], "three").unwrap_err();
    assert!(error.message.contains("fenced off"), "{error}");
}

#[test]
fn tasks_that_share_a_database_keep_apart() {
    let mut fixture = opened(vec![animals()]);
    fixture.harness.transact(&[cat(1, "ant")], "one").unwrap();
    let mut other = fixture.another();
    other.harness.spec.bindings = vec![table("plants", &[("id", INTEGER)], &[])];
    other.harness.spec.task = "acme/other".to_owned();
    other.harness.apply().unwrap();
    assert_eq!(other.harness.open().unwrap().checkpoint, None);
    // Both have a transaction open, and neither waits.
    let rows = vec![fixture.harness.row(&cat(2, "cat"))];
    fixture.harness.load_and_store(rows).unwrap();
    let documents = [document(0, json!({"id": 1}))];
    other.harness.transact(&documents, "o").unwrap();
    fixture.harness.start_commit("two").unwrap();
    let opened = fixture.harness.open().unwrap();
    assert_eq!(opened.checkpoint.as_deref(), Some("two"));
}

#[test]
fn a_lost_connection_is_transient_at_every_call_and_doubles_nothing() {
    const TERMINATE: &str = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
        WHERE application_name = 'tidegate'";
    let log = delta(table("log", &[("id", INTEGER)], &[("n", INTEGER)]));
    let mut fixture = opened(vec![animals(), log]);
    for round in 0..4_usize {
        let documents = [cat(1, "ant"), document(1, json!({"id": round, "n": 1}))];
        let harness = &mut fixture.harness;
        let rows: Vec<_> = documents.iter().map(|it| harness.row(it)).collect();
        let mut run = |stop: usize| {
            if stop == 0 {
                fixture.server.ask(TERMINATE);
            }
            harness.load_and_store(rows.clone())?;
            if stop == 1 {
                fixture.server.ask(TERMINATE);
            }
            harness.start_commit(&format!("c{round}"))?;
            if stop == 2 {
                fixture.server.ask(TERMINATE);
            }
            harness.acknowledge()?;
            harness.load_and_store(Vec::new())?;
            harness.start_commit(&format!("d{round}"))
        };
        let error = run(round.min(2)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Transient, "{round}: {error}");
        let committed = harness.open().unwrap().checkpoint;
        let want = format!("c{round}");
        if committed.as_deref() != Some(&*want) {
            harness.recover().unwrap();
            harness.load_and_store(rows).unwrap();
            harness.start_commit(&want).unwrap();
            harness.acknowledge().unwrap();
        }
    }
    assert_eq!(
        fixture.ask("SELECT id, n FROM log ORDER BY id"),
        "0|1\n1|1\n2|1\n3|1"
    );
}

#[test]
fn a_statement_that_takes_too_long_is_transient() {
    let mut fixture = opened(vec![animals()]);
    fixture.ask("ALTER ROLE tide SET statement_timeout = '300ms'");
    let harness = &mut fixture.harness;
    harness.open().unwrap();
    harness.transact(&[cat(1, "ant")], "one").unwrap();
    // Somebody else's lock: the merge waits for it.
    let mut other = fixture.server.psql();
    let mut other = other
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = other.stdin.take().unwrap();
    std::io::Write::write_all(
        &mut stdin,
        b"BEGIN; LOCK TABLE animals IN SHARE MODE; SELECT 'locked';\n",
    )
    .unwrap();
    let mut said = [0; 6];
    std::io::Read::read_exact(other.stdout.as_mut().unwrap(), &mut said).unwrap();
    assert_eq!(&said, b"locked");
    let error = harness.transact(&[cat(1, "bee")], "two").unwrap_err();
    assert_eq!(error.kind, ErrorKind::Transient, "{error}");
    assert!(error.message.contains("statement_timeout"), "{error}");
    drop(stdin);
    other.wait().unwrap();
    harness.open().unwrap();
    harness.transact(&[cat(1, "bee")], "two").unwrap();
    assert_eq!(fixture.ask(ANIMALS), "1|bee");
}

#[test]
fn who_cannot_log_in_is_told_what_to_do_and_no_secret() {
    let fixture = created(vec![animals()]);
    fixture.ask("CREATE ROLE guest LOGIN PASSWORD 'guest'");
    fixture.ask("SET password_encryption = 'md5'; CREATE ROLE old LOGIN PASSWORD 'old'; GRANT ALL ON SCHEMA public TO old");
    let hba = fixture.server.dir().join("data/pg_hba.conf");
    let lines = std::fs::read_to_string(&hba).unwrap();
    let lines =
        format!("host all old 127.0.0.1/32 md5\nhost all plain 127.0.0.1/32 password\n{lines}");
    std::fs::write(&hba, lines).unwrap();
    fixture.ask("CREATE ROLE plain LOGIN PASSWORD 'plain'; GRANT ALL ON SCHEMA public TO plain");
    fixture.ask("SELECT pg_reload_conf()");
    let cases = [
        (
            "password",
            json!("wrong horse"),
            Some((ErrorKind::Auth, "check `user` and `password`")),
        ),
        (
            "password",
            json!(null),
            Some((ErrorKind::Auth, "set `password`")),
        ),
        (
            "user",
            json!("nobody"),
            Some((ErrorKind::Auth, "check `user`")),
        ),
        (
            "database",
            json!("nowhere"),
            Some((ErrorKind::Config, "check `database`")),
        ),
        (
            "address",
            json!("127.0.0.1:1"),
            Some((ErrorKind::Transient, "check `address`")),
        ),
        (
            "sslmode",
            json!("require"),
            Some((ErrorKind::Config, "offers no TLS")),
        ),
        ("schema", json!("elsewhere"), None),
        (
            "user",
            json!("guest"),
            Some((ErrorKind::Auth, "grant the role")),
        ),
        ("user", json!("old"), None),
        ("user", json!("plain"), None),
    ];
    for (field, value, want) in cases {
        let mut connector = fixture.another();
        let mut spec = config(&fixture.server);
        spec[field] = value.clone();
        if field == "user" && want.is_none() || value == "guest" {
            spec["password"] = value.clone();
            spec["schema"] = json!("public");
        }
        connector.harness.spec.config = spec;
        connector.harness.spec.task = format!("acme/{field}/{value}");
        connector.harness.spec.bindings.clear();
        let got = connector.harness.apply();
        match want {
            None => drop(got.unwrap()),
            Some((kind, words)) => {
                let error = got.unwrap_err();
                assert_eq!(error.kind, kind, "{field} {value}: {error}");
                assert!(error.message.contains(words), "{field} {value}: {error}");
                for secret in [PASSWORD, "wrong horse"] {
                    assert!(!error.message.contains(secret), "{error}");
                }
            }
        }
    }
}

#[test]
fn a_server_that_was_replaced_by_its_standby_is_found_again() {
    let mut fixture = opened(vec![animals()]);
    fixture.harness.transact(&[cat(1, "ant")], "one").unwrap();
    let server = Rc::get_mut(&mut fixture.server).unwrap();
    server.restart_with(&["default_transaction_read_only=on"]);
    let error = fixture.harness.transact(&[cat(2, "bee")], "two");
    assert_eq!(error.unwrap_err().kind, ErrorKind::Transient);
    let error = fixture.harness.open().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Transient, "{error}");
    assert!(error.message.contains("read-only"), "{error}");
    let server = Rc::get_mut(&mut fixture.server).unwrap();
    server.restart_with(&[]);
    let opened = fixture.harness.open().unwrap();
    assert_eq!(opened.checkpoint.as_deref(), Some("one"));
    fixture.harness.transact(&[cat(2, "bee")], "two").unwrap();

    // What was stored when it crashed is gone, what was committed is there.
    let rows = vec![fixture.harness.row(&cat(3, "cat"))];
    fixture.harness.load_and_store(rows).unwrap();
    Rc::get_mut(&mut fixture.server).unwrap().crash();
    let error = fixture.harness.start_commit("three").unwrap_err();
    assert_eq!(error.kind, ErrorKind::Transient, "{error}");
    let opened = fixture.harness.open().unwrap();
    assert_eq!(opened.checkpoint.as_deref(), Some("two"));
    assert_eq!(fixture.ask(ANIMALS), "1|ant\n2|bee");
}

#[test]
fn a_database_that_was_replaced_is_noticed() {
    let mut fixture = opened(vec![animals()]);
    let mut another = fixture.another();
    another.harness.spec.config["schema"] = json!("other");
    let error = another.harness.open().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Schema, "{error}");
    fixture.ask("DROP TABLE animals");
    let error = fixture.harness.open().unwrap_err();
    assert_eq!(
        (error.kind, error.binding),
        (ErrorKind::Schema, Some(0)),
        "{error}"
    );
}

#[test]
fn keys_stay_apart_however_alike() {
    let keys = [
        "a",
        "A",
        "a ",
        "\u{e9}",
        "e\u{301}",
        "",
        "\u{1f600}",
        "ß",
        "ss",
    ];
    let mut fixture = opened(vec![table("t", &[("k", TEXT)], &[("n", INTEGER)])]);
    let documents = |n: usize| {
        let documents = keys.iter().map(|k| document(0, json!({"k": k, "n": n})));
        documents.collect::<Vec<_>>()
    };
    fixture.harness.transact(&documents(1), "one").unwrap();
    let again = fixture.harness.transact(&documents(2), "two").unwrap();
    assert_eq!(again.loaded.len(), keys.len());
    for ((_, ordinal), loaded) in &again.loaded {
        let mut sorted = keys;
        sorted.sort_unstable();
        let want = json!({"k": sorted[*ordinal as usize], "n": 1}).to_string();
        assert_eq!(*loaded, want);
    }
    assert_eq!(fixture.ask("SELECT count(*), sum(n) FROM t"), "9|18");
}

#[test]
fn integer_keys_of_any_size_are_exact() {
    let mut fixture = opened(vec![table("t", &[("id", INTEGER)], &[("v", INTEGER)])]);
    let harness = &mut fixture.harness;
    let huge = || Element::BigInt(i128::from(i64::MAX).pow(2).into());
    let steps = [
        (Element::Int(9_007_199_254_740_993), 1, 0),
        (Element::Int(9_007_199_254_740_992), 1, 0),
        (Element::Int(9_007_199_254_740_993), 2, 1),
        (huge(), 1, 0),
        (huge(), 2, 1),
    ];
    for (key, v, want) in steps {
        let mut row = harness.row(&document(0, json!({"id": 0, "v": v})));
        row.document = format!("{{\"v\":{v}}}");
        row.key = vec![key.clone()];
        let loaded = harness.transact_rows(vec![row], "c").unwrap().loaded;
        assert_eq!(loaded.len(), want, "{key:?}");
    }
    assert_eq!(
        fixture.ask("SELECT id, v FROM t ORDER BY id"),
        "9007199254740992|1\n9007199254740993|2\n85070591730234615847396907784232501249|2"
    );
}

#[test]
fn a_document_that_cannot_be_held_is_named_and_changes_nothing() {
    let mut when = table("t", &[("k", TEXT)], &[("when", TEXT), ("s", TEXT)]);
    when.values[0].format = Some("date-time".to_owned());
    let mut fixture = opened(vec![animals(), when]);
    let good = fixture
        .harness
        .row(&document(1, json!({"k": "good", "s": "a\0b"})));
    let cases = [
        (
            json!({"k": "bad", "when": "2025-11-29 01:05:28"}),
            "when",
            "no offset",
        ),
        (json!({"k": "bad", "when": 7}), "when", "another type"),
        (json!({"k": "bad\0"}), "k", "NUL"),
        (json!({"when": "2025-11-29T01:05:28Z"}), "k", "null"),
    ];
    for (bad, field, words) in cases {
        let harness = &mut fixture.harness;
        let bad = harness.row(&document(1, bad));
        let key = match &bad.key[0] {
            Element::String(key) => json!([key]).to_string(),
            _ => "[null]".to_owned(),
        };
        let stored = harness.load_and_store(vec![good.clone(), bad]);
        let error = stored.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Document, "{error}");
        assert_eq!(
            (error.binding, error.field.as_deref()),
            (Some(1), Some(field))
        );
        assert_eq!(error.key, Some(key), "{error}");
        assert!(error.message.contains(words), "{error}");
        assert_eq!(fixture.ask("SELECT count(*) FROM t"), "0");
        fixture.harness.open().unwrap();
    }
    fixture.harness.transact_rows(vec![good], "one").unwrap();
    assert_eq!(
        fixture.ask("SELECT k, s, flow_document FROM t"),
        "good|ab|{\"k\":\"good\",\"s\":\"a\\u0000b\"}"
    );
    // A key that is too long for an index.
    let harness = &mut fixture.harness;
    let long: String = (0..30_000_u32)
        .map(|at| char::from_u32(0x4e00 + at.wrapping_mul(7919) % 20_000).unwrap())
        .collect();
    let mut row = harness.row(&document(1, json!({})));
    row.key = vec![Element::String(Cow::Owned(long))];
    harness.load_and_store(vec![row]).unwrap();
    let error = harness.start_commit("two").unwrap_err();
    assert_eq!(error.kind, ErrorKind::Document, "{error}");
}
