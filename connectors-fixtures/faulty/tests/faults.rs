//! Faults happen where, when and as often as the config says; without one, the
//! connector is the SQLite connector. Faults that end an instance (spin, hoard,
//! recurse) and those of the host's clock and network need a host.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use materialize_faulty::Faulty;
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_boilerplate::sqlite::Database;
use tidegate_boilerplate::testing::{Document, Harness, Row, binding, document, spec};
use tidegate_boilerplate::tuple::Element;
use tidegate_boilerplate::{ConnectorError, ErrorKind, JsonType, Protocol, packed};

struct Fixture {
    harness: Harness<Faulty>,
    path: String,
    _directory: TempDir,
}

/// Returns a connector with a new file, applied but not opened, whose config has
/// these properties too.
fn applied(config: Value) -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let path = directory
        .path()
        .join("shop.db")
        .to_str()
        .unwrap()
        .to_owned();
    let mut config = config;
    config["path"] = json!(path);
    let animals = binding(
        "animals",
        json!({"table": "animals"}),
        &[("id", &[JsonType::String])],
        &[("n", &[JsonType::Integer])],
    );
    let mut harness = Harness::new(Faulty::default, spec(config, vec![animals]));
    harness.apply().unwrap();
    Fixture {
        harness,
        path,
        _directory: directory,
    }
}

fn animal(id: &str, n: i64) -> Document {
    document(0, json!({"id": id, "n": n}))
}

impl Fixture {
    fn rows(&self) -> Vec<(String, i64)> {
        let db = Database::open(&self.path).unwrap();
        db.query(
            "SELECT id, n FROM animals ORDER BY id",
            &[],
            |row| match &row[..] {
                [Element::String(id), Element::Int(n)] => Ok((id.to_string(), *n)),
                other => panic!("a row of {other:?}"),
            },
        )
        .unwrap()
    }

    /// Runs a transaction and says whether it panicked, and with what.
    fn panics(&mut self, documents: &[Document], checkpoint: &str) -> Option<String> {
        let run = AssertUnwindSafe(|| self.harness.transact(documents, checkpoint));
        match catch_unwind(run) {
            Ok(result) => {
                result.unwrap();
                None
            }
            Err(payload) => Some(payload.downcast_ref::<String>().unwrap().clone()),
        }
    }
}

#[test]
fn without_a_fault_it_is_the_sqlite_connector() {
    let mut fixture = applied(json!({}));
    assert_eq!(fixture.harness.open().unwrap().checkpoint, None);
    fixture.harness.transact(&[animal("a", 1)], "one").unwrap();
    assert_eq!(
        fixture.harness.open().unwrap().checkpoint.as_deref(),
        Some("one")
    );
    assert_eq!(fixture.rows(), [("a".to_owned(), 1)]);
}

#[test]
fn it_panics_on_one_document_and_is_well_again_without_the_flag() {
    let mut fixture =
        applied(json!({"fault": {"kind": "panic", "call": "store", "onDocument": "boom"}}));
    fixture.harness.open().unwrap();
    assert_eq!(fixture.panics(&[animal("a", 1)], "one"), None);
    let panic = fixture.panics(&[animal("b", 1), animal("boom", 1)], "two");
    assert_eq!(panic.as_deref(), Some("faulty: told to panic in Store"));
    fixture.harness.spec.config["fault"] = Value::Null;
    assert_eq!(
        fixture.harness.open().unwrap().checkpoint.as_deref(),
        Some("one")
    );
    assert_eq!(
        fixture.panics(&[animal("b", 1), animal("boom", 1)], "two"),
        None
    );
    assert_eq!(fixture.rows().len(), 3);
}

#[test]
fn a_crash_between_commit_and_acknowledge_happens_as_often_as_told() {
    let fault = json!({"kind": "panic", "call": "start-commit", "after": true, "times": 3});
    let mut fixture = applied(json!({"fault": fault}));
    for (n, checkpoint) in (1..).zip(["one", "two", "three"]) {
        fixture.harness.open().unwrap();
        assert!(fixture.panics(&[animal("a", n)], checkpoint).is_some());
        let opened = fixture.harness.open().unwrap();
        assert_eq!(
            opened.checkpoint.as_deref(),
            Some(checkpoint),
            "it was committed"
        );
        assert_eq!(fixture.rows(), [("a".to_owned(), n)]);
    }
    fixture.harness.open().unwrap();
    assert_eq!(fixture.panics(&[animal("a", 4)], "four"), None);
}

#[test]
fn every_kind_of_error_in_every_call() {
    let kinds = [
        ("config", ErrorKind::Config),
        ("auth", ErrorKind::Auth),
        ("schema", ErrorKind::Schema),
        ("document", ErrorKind::Document),
        ("transient", ErrorKind::Transient),
        ("internal", ErrorKind::Internal),
    ];
    let calls = [
        "open",
        "load",
        "flush",
        "store",
        "start-commit",
        "acknowledge",
    ];
    for (call, (name, kind)) in calls.into_iter().zip(kinds) {
        let fault = json!({"kind": "error", "call": call, "errorKind": name});
        let mut fixture = applied(json!({"fault": fault}));
        let run = |harness: &mut Harness<Faulty>| {
            harness.open()?;
            harness.transact(&[animal("a", 1)], "one")
        };
        let error = run(&mut fixture.harness).unwrap_err();
        assert_eq!(error.kind, kind, "{call}");
        let committed = if call == "acknowledge" { 1 } else { 0 };
        assert_eq!(fixture.rows().len(), committed, "{call}");
    }
}

#[test]
fn only_the_nth_call_fails() {
    let fault =
        json!({"kind": "error", "call": "start-commit", "nth": 2, "errorKind": "transient"});
    let mut fixture = applied(json!({"fault": fault}));
    fixture.harness.open().unwrap();
    fixture.harness.transact(&[], "one").unwrap();
    assert!(fixture.harness.transact(&[], "two").is_err());
}

#[test]
fn violations_are_seen_in_the_answer() {
    let spoiled = |call: &str, violation: &str| {
        let fault = json!({"kind": "violate", "call": call, "violation": violation});
        let mut fixture = applied(json!({"fault": fault}));
        fixture.harness.open().unwrap();
        let row: Row = fixture.harness.row(&animal("a", 1));
        let mut keys = Vec::new();
        packed::push_row(&mut keys, &tidegate_boilerplate::tuple::encode(&row.key));
        fixture.harness.protocol().load(0, &keys).unwrap()
    };
    let read = |answer: &[u8]| {
        packed::loaded(answer)
            .map(|it| it.map(|(ordinal, _)| ordinal))
            .collect::<Vec<_>>()
    };
    assert_eq!(read(&spoiled("load", "ordinal")), [Ok(u32::MAX)]);
    assert!(read(&spoiled("load", "batch"))[0].is_err());
    let answer = spoiled("load", "document");
    let (_, text) = packed::loaded(&answer).next().unwrap().unwrap();
    assert!(serde_json::from_slice::<Value>(text).is_err());

    for (violation, is_json) in [("json", false), ("property", true)] {
        let fault = json!({"kind": "violate", "call": "acknowledge", "violation": violation});
        let mut fixture = applied(json!({"fault": fault}));
        fixture.harness.open().unwrap();
        fixture.harness.load_and_store(vec![]).unwrap();
        fixture.harness.start_commit("one").unwrap();
        let answer = fixture.harness.protocol().acknowledge("{}").unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&answer).is_ok(),
            is_json,
            "{answer}"
        );
        let response: Result<tidegate_boilerplate::AcknowledgeResponse, _> =
            serde_json::from_str(&answer);
        assert!(response.is_err());
    }
}

#[test]
fn a_fault_that_cannot_do_what_it_says_is_a_config_error() {
    let mut fixture = applied(json!({}));
    let cases = [
        (json!({"kind": "error", "call": "open"}), "errorKind"),
        (json!({"kind": "violate", "call": "load"}), "violation"),
        (json!({"kind": "hangNet", "call": "load"}), "address"),
        (json!({"kind": "sleep", "call": "load"}), "milliseconds"),
        (json!({"kind": "explode", "call": "load"}), "explode"),
    ];
    for (fault, want) in cases {
        fixture.harness.spec.config["fault"] = fault.clone();
        let error: ConnectorError = fixture.harness.open().unwrap_err();
        assert_eq!(error.kind, ErrorKind::Config, "{fault}");
        assert!(error.message.contains(want), "{fault}: {error}");
    }
}

#[test]
fn its_own_schedule_paces_only_without_one_in_the_spec() {
    let cases = [
        (json!({}), Some("30m")),
        (json!({"syncSchedule": {"syncFrequency": "5m"}}), Some("5m")),
        (json!({"syncSchedule": {"syncFrequency": "0s"}}), None),
    ];
    for (config, want) in cases {
        let mut fixture = applied(config.clone());
        let pacing = fixture.harness.open().unwrap().pacing;
        let frequency = pacing.map(|pacing| pacing.schedule["syncFrequency"].clone());
        assert_eq!(frequency, want.map(Value::from), "{config}");
        let mut paced = BTreeMap::new();
        for turn in 0..7 {
            let transacted = fixture.harness.transact(&[animal("a", turn)], "c").unwrap();
            paced.insert(turn, transacted.pace);
        }
        let from_fifth = |(turn, pace): (i64, bool)| pace == (want.is_some() && turn >= 4);
        assert!(paced.into_iter().all(from_fifth), "{config}");

        fixture.harness.spec.sync_schedule = Some(json!({"baseInterval": "1h"}));
        assert_eq!(fixture.harness.open().unwrap().pacing, None, "{config}");
        assert!(
            !fixture
                .harness
                .transact(&[animal("a", 9)], "d")
                .unwrap()
                .pace
        );
    }
}

#[test]
fn a_recovered_transaction_is_not_paced() {
    let mut fixture = applied(json!({"jitterKey": "warehouse"}));
    fixture.harness.stored_counts = vec![1; 5];
    let opened = fixture.harness.open().unwrap();
    assert_eq!(opened.jitter_key.as_deref(), Some("warehouse"));
    assert!(!fixture.harness.recover().unwrap().pace);
    assert!(fixture.harness.transact(&[], "one").unwrap().pace);
}

#[test]
fn a_wrong_schedule_is_a_config_error() {
    let mut fixture = applied(json!({}));
    fixture.harness.spec.config["syncSchedule"] = json!({"syncFrequency": "often"});
    let error = fixture.harness.open().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Config);
    assert!(error.message.contains("often"), "{error}");
}

#[test]
fn the_spec_declares_what_is_new() {
    let spec = applied(json!({})).harness.spec_response();
    assert!(spec.defers_to_schedule);
    assert_eq!(spec.wants.network, ["/fault/address"]);
    assert_eq!(spec.wants.directory, ["/path"]);
    for property in ["path", "syncSchedule", "jitterKey", "fault"] {
        assert!(
            spec.config_schema["properties"][property].is_object(),
            "{property}"
        );
    }
}

#[test]
fn it_reaches_for_what_it_is_told_to_and_tells() {
    let reach = json!([{"file": "/nonexistent/file"}, "environment"]);
    let fault = json!({"kind": "reach", "call": "open", "reach": reach});
    let error = applied(json!({"fault": fault})).harness.open().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Config);
    for words in ["1 refused: No such file", "2 reached variables ["] {
        assert!(error.message.contains(words), "{error}");
    }
}
