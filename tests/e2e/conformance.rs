//! `tidegate connector test` and `connector new`, with the real connectors.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tidegate_tests::host::{Finished, Host};
use tidegate_tests::postgres::{DATABASE, PASSWORD, Server, USER};
use tidegate_tests::program;
use tidegate_tests::receiver::{Answer, Receiver};
use tidegate_tests::workspace::Workspace;

/// The suite opens some hundred sessions, and a server syncs at each commit.
const SUITE_MAX: Duration = Duration::from_secs(240);

/// The same of a component with an interpreter, which takes half a minute of one core to
/// compile where nothing else runs.
const INTERPRETED_SUITE_MAX: Duration = Duration::from_secs(600);

/// Compiling what a new crate depends on, on a busy machine.
const COMPILE_MAX: Duration = Duration::from_secs(300);

/// Runs the suite on a connector, in a workspace that has the setup.
fn suite(workspace: &Workspace, connector: &str, setup: &Value) -> Finished {
    suite_within(workspace, connector, setup, SUITE_MAX)
}

fn suite_within(workspace: &Workspace, connector: &str, setup: &Value, max: Duration) -> Finished {
    workspace.write("conformance.json", setup.to_string());
    let directory = program::connectors();
    let arguments = [
        "connector",
        "test",
        connector,
        "--config",
        "conformance.json",
    ];
    let more = ["--format", "json", "--connectors"].map(Into::into);
    let host = workspace.tidegate(
        arguments
            .map(std::ffi::OsString::from)
            .into_iter()
            .chain(more)
            .chain([directory.into_os_string()]),
    );
    host.finish_within(max)
}

/// Returns the checks with an outcome, by name.
fn with_outcome(finished: &Finished, outcome: &str) -> Vec<String> {
    let report: Value = serde_json::from_str(&finished.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", finished.stdout, finished.stderr));
    let checks = report["checks"].as_array().expect("a report has checks");
    let of = |check: &&Value| check["outcome"] == outcome;
    let name = |check: &Value| check["check"].as_str().unwrap_or_default().to_owned();
    checks.iter().filter(of).map(name).collect()
}

/// Asserts that nothing failed, and that nothing but these was skipped.
#[track_caller]
fn passes(finished: Finished, skipped: &[&str]) {
    let finished = finished.ended_with(0);
    assert_eq!(
        with_outcome(&finished, "failed"),
        [""; 0],
        "{}",
        finished.stdout
    );
    assert_eq!(
        with_outcome(&finished, "skipped"),
        skipped,
        "{}",
        finished.stdout
    );
}

/// What prints the rows of a table of a SQLite file, which another program reads.
fn sqlite_readback(file: &str) -> Value {
    json!([
        "sqlite3",
        "-readonly",
        file,
        "SELECT json_object('seq', seq) FROM \"{name}\""
    ])
}

/// Prints every column of a table as JSON spells it. SQLite's own printing loses the last
/// digit of the largest double.
const SQLITE_COLUMNS: &str = r#"
import json, sqlite3, sys

db = sqlite3.connect(sys.argv[1])
db.row_factory = sqlite3.Row
for row in map(dict, db.execute(f'SELECT * FROM "{sys.argv[2]}"')):
    for column in ("array", "object", "several"):
        if row[column] is not None:
            row[column] = json.loads(row[column])
    if row["boolean"] is not None:
        row["boolean"] = bool(row["boolean"])
    print(json.dumps(row))
"#;

#[test]
fn sqlite_passes() {
    let workspace = Workspace::new();
    let setup = json!({
        "config": {"path": "rows.db"},
        "resource": {"table": "{name}"},
        "deltaResource": {"table": "{name}", "delta_updates": true},
        "readback": sqlite_readback("rows.db"),
        "columns": ["python3", "-c", SQLITE_COLUMNS, "rows.db", "{name}"],
    });
    passes(suite(&workspace, "materialize-sqlite", &setup), &[]);
}

#[test]
fn postgres_passes() {
    let server = Server::start();
    let workspace = Workspace::new();
    let rows = "SELECT row_to_json(t) FROM \"{name}\" t";
    let columns = "SELECT row_to_json(t) FROM \
        (SELECT *, encode(base64, 'base64') AS base64 FROM \"{name}\") t";
    let url = format!(
        "postgres://{USER}:{}@{}/{DATABASE}",
        PASSWORD.replace(' ', "%20"),
        server.address()
    );
    let setup = json!({
        "config": {
            "address": server.address(), "user": USER, "password": PASSWORD, "database": DATABASE,
        },
        "resource": {"table": "{name}"},
        "deltaResource": {"table": "{name}", "delta_updates": true},
        "readback": ["psql", url, "-tAc", rows],
        "columns": ["psql", url, "-tAc", columns],
    });
    passes(suite(&workspace, "materialize-postgres", &setup), &[]);
}

#[test]
fn files_of_lines_pass() {
    files_pass("ndjson", &["cat".into()]);
}

/// Prints the rows of CSV files, without the columns in which quotes tell values apart:
/// Python's reader does not say where there were any.
const CSV_ROWS: &str = r#"
import csv, json, sys

JSON = ("seq", "integer", "boolean", "nullable", "array", "object")
QUOTES = ("string", "several", "base64")
for file in sys.argv[1:]:
    for row in csv.DictReader(open(file, newline="")):
        row = {name: text or None for name, text in row.items() if name not in QUOTES}
        for name in JSON:
            if row.get(name) is not None:
                row[name] = json.loads(row[name])
        print(json.dumps(row))
"#;

#[test]
fn files_of_csv_pass() {
    files_pass("csv", &["python3".into(), "-c".into(), CSV_ROWS.into()]);
}

#[test]
fn files_of_parquet_pass() {
    files_pass("parquet", &[program::parquet_rows().into_os_string()]);
}

/// A directory is one task's alone, and what is committed is what manifests name.
#[track_caller]
fn files_pass(format: &str, print: &[OsString]) {
    let workspace = Workspace::new();
    std::fs::create_dir(workspace.path("out")).expect("a directory can be made");
    let rows = "cd out/{task} && grep -oh '\"path\":\"{name}/v0/[^\"]*' manifest/*.json 2>/dev/null \
        | cut -d'\"' -f4 | xargs -r \"$@\"";
    let mut readback = ["sh", "-c", rows, "sh"].map(str::to_owned).to_vec();
    readback.extend(print.iter().map(|it| it.to_string_lossy().into_owned()));
    let setup = json!({
        "config": {"path": "out/{task}", "format": format},
        "resource": {"folder": "{name}"},
        "readback": readback,
    });
    let skipped = ["apply-backfill", "keys", "updates", "bad-document", "kill"];
    passes(suite(&workspace, "materialize-files", &setup), &skipped);
}

/// At least once: what a server has is what it was sent, and it tells.
#[test]
fn the_webhook_passes() {
    let mut taken: BTreeMap<String, String> = BTreeMap::new();
    let receiver = Receiver::start(move |request| {
        if request.method == "GET" {
            let documents = taken.get(&request.path).cloned().unwrap_or_default();
            return Answer::Status(200, Vec::new(), documents);
        }
        let documents: Vec<Box<RawValue>> =
            serde_json::from_str(&request.body).expect("a body is an array");
        let lines = taken.entry(request.path.clone()).or_default();
        for document in documents {
            lines.push_str(document.get());
            lines.push('\n');
        }
        Answer::status(200)
    });
    let workspace = Workspace::new();
    let setup = json!({
        "config": {"address": receiver.url()},
        "resource": {"path": "/{name}"},
        "readback": ["curl", "-sSf", format!("{}/{{name}}", receiver.url())],
    });
    let skipped = [
        "apply-backfill",
        "keys",
        "updates",
        "bad-document",
        "fence",
        "fence-open",
        "kill",
    ];
    passes(suite(&workspace, "materialize-webhook", &setup), &skipped);
}

#[test]
fn the_starter_passes() {
    let workspace = Workspace::new();
    let setup = json!({"config": {"path": "{task}.json"}, "resource": {"table": "{name}"}});
    passes(
        suite(&workspace, "materialize-starter", &setup),
        &["columns", "kill-delta"],
    );
}

#[test]
fn the_javascript_connector_passes() {
    ndjson_passes("materialize-ndjson-javascript");
}

#[test]
fn the_python_connector_passes() {
    ndjson_passes("materialize-ndjson-python");
}

/// Updates are deltas, never loaded and never replaced: all else applies.
#[track_caller]
fn ndjson_passes(connector: &str) {
    program::interpreted();
    let workspace = Workspace::new();
    let folders = workspace.path("ndjson");
    std::fs::create_dir_all(&folders).expect("a directory can be made");
    let readback = "cat ndjson/{name}/*.ndjson 2>/dev/null || true";
    let setup = json!({
        "config": {"path": "ndjson"},
        "resource": {"folder": "{name}"},
        "readback": ["sh", "-c", readback],
    });
    let finished = suite_within(&workspace, connector, &setup, INTERPRETED_SUITE_MAX);
    let standard_only = ["apply-backfill", "keys", "updates", "bad-document", "kill"];
    passes(finished, &standard_only);
}

/// Columns that hold something else than the documents say are named.
#[test]
fn the_suite_sees_into_columns() {
    let cases = [
        ("integer", "passed", "columns compared: 1"),
        (
            "iif(integer = 9007199254740993, integer - 1, integer)",
            "failed",
            "\"integer\" holds 9007199254740992, and the document has 9007199254740993",
        ),
        (
            "ifnull(integer, 0)",
            "failed",
            "\"integer\" holds 0, and the document has null",
        ),
    ];
    for (column, outcome, says) in cases {
        let rows = format!("SELECT json_object('seq', seq, 'integer', {column}) FROM \"{{name}}\"");
        let workspace = Workspace::new();
        let setup = json!({
            "config": {"path": "rows.db"},
            "resource": {"table": "{name}"},
            "columns": ["sqlite3", "-readonly", "rows.db", rows],
        });
        let finished = suite(&workspace, "materialize-sqlite", &setup);
        let report: Value = serde_json::from_str(&finished.stdout).expect("a report is JSON");
        let checks = report["checks"].as_array().expect("a report has checks");
        let check = checks.iter().find(|check| check["check"] == "columns");
        let check = check.expect("columns are checked");
        assert_eq!(check["outcome"], outcome, "{check}");
        let note = check["note"].as_str().unwrap_or_default();
        assert!(note.contains(says), "{note}");
    }
}

/// A suite that finds nothing would pass as well: each fault has a check that
/// fails because of it.
#[test]
fn the_suite_finds_what_is_wrong() {
    let cases = [
        // A connector that says it did what it did not do.
        (json!({"kind": "skip", "call": "store"}), "updates"),
        (json!({"kind": "skip", "call": "start-commit"}), "restart"),
        (json!({"kind": "skip", "call": "load"}), "updates"),
        (
            json!({"kind": "skip", "call": "start-commit", "nth": 2}),
            "one-key",
        ),
        (
            json!({"kind": "violate", "violation": "ordinal", "call": "load"}),
            "updates",
        ),
        (
            json!({"kind": "violate", "violation": "document", "call": "load"}),
            "updates",
        ),
        (
            json!({"kind": "violate", "violation": "json", "call": "open"}),
            "restart",
        ),
        (
            json!({"kind": "violate", "violation": "property", "call": "apply"}),
            "apply-twice",
        ),
        (json!({"kind": "panic", "call": "acknowledge"}), "updates"),
        (
            json!({"kind": "error", "errorKind": "internal", "call": "apply"}),
            "apply-twice",
        ),
    ];
    for (fault, check) in cases {
        let workspace = Workspace::new();
        let setup = json!({
            "config": {"path": "rows.db", "fault": fault},
            "resource": {"table": "{name}"},
        });
        let finished = suite(&workspace, "materialize-faulty", &setup).ended_with(1);
        let failed = with_outcome(&finished, "failed");
        assert!(
            failed.iter().any(|name| name == check),
            "{check} is not among {failed:?} with {fault}"
        );
    }
}

#[test]
fn pacing_is_tested_where_there_is_some() {
    let workspace = Workspace::new();
    let setup = json!({"config": {"path": "rows.db"}, "resource": {"table": "{name}"}});
    passes(
        suite(&workspace, "materialize-faulty", &setup),
        &["columns", "kill-delta"],
    );
}

#[test]
fn what_is_wrong_with_a_setup_is_said() {
    let workspace = Workspace::new();
    let cases = [
        (
            json!({"config": {"path": "x.db"}, "resource": {"table": "t"}}),
            "{name}",
        ),
        (json!({"config": {"path": "x.db"}}), "resource"),
        (
            json!({"config": {}, "resource": {"table": "{name}"}}),
            "path",
        ),
        (
            json!({"config": {"path": "none/x.db"}, "resource": {"table": "{name}"}}),
            "none",
        ),
    ];
    for (setup, says) in cases {
        let finished = suite(&workspace, "materialize-sqlite", &setup).ended_with(1);
        let said = format!("{}{}", finished.stdout, finished.stderr);
        assert!(said.contains(says), "{setup}: {said}");
    }
    let arguments = [
        "connector",
        "test",
        "materialize-sqlite",
        "--config",
        "none.yaml",
    ];
    let finished = workspace.tidegate(arguments).finish();
    finished.ended_with(1).says(&["none.yaml cannot be read"]);
}

#[test]
fn a_report_is_for_people_and_for_ci() {
    let workspace = Workspace::new();
    let setup = json!({"config": {"path": "{task}.json"}, "resource": {"table": "{name}"}});
    workspace.write("conformance.json", setup.to_string());
    let component = program::connectors().join("materialize-starter.wasm");
    let run = |format: &str| {
        let arguments = [
            "connector",
            "test",
            "--config",
            "conformance.json",
            "--format",
            format,
        ];
        let arguments = arguments.map(std::ffi::OsString::from).into_iter();
        workspace
            .tidegate(arguments.chain([component.clone().into_os_string()]))
            .finish_within(SUITE_MAX)
            .ended_with(0)
            .stdout
    };
    let human = run("human");
    for says in ["ok    spec", "skip  kill-delta", "0 failed", "exactlyOnce"] {
        assert!(human.contains(says), "{says} is not in {human}");
    }
    let junit = run("junit");
    for says in [
        "<testsuites",
        "<testcase name=\"kill\"",
        "<skipped",
        "failures=\"0\"",
    ] {
        assert!(junit.contains(says), "{says} is not in {junit}");
    }
}

/// From nothing to a component that passes, with the commands that are printed.
#[test]
fn a_new_connector_builds_and_passes_at_once() {
    let workspace = Workspace::new();
    let arguments = ["connector", "new", "acme-kv", "--boilerplate"];
    let boilerplate = program::repository().join("boilerplate");
    let new = || {
        let arguments = arguments.map(std::ffi::OsString::from).into_iter();
        workspace.tidegate(arguments.chain([boilerplate.clone().into_os_string()]))
    };
    new()
        .finish()
        .succeeded()
        .prints(&["cargo test", "connector test"]);
    new()
        .finish()
        .ended_with(1)
        .says(&["materialize-acme-kv is there already"]);
    let crate_dir = workspace.path("materialize-acme-kv");

    // Versions that are fetched and compiled for the other connectors already.
    let lock = program::repository().join("connectors-fixtures/Cargo.lock");
    std::fs::copy(lock, crate_dir.join("Cargo.lock")).expect("a lock file can be copied");
    let mut native = Command::new("cargo");
    native.args(["test", "--quiet"]).current_dir(&crate_dir);
    native.env("CARGO_TARGET_DIR", crate_dir.join("target"));
    Host::start(native).finish_within(COMPILE_MAX).succeeded();

    let mut build = Command::new(program::repository().join("scripts/build-connectors"));
    build.args(["target", "."]).current_dir(&crate_dir);
    Host::start(build).finish_within(COMPILE_MAX).succeeded();

    let component = crate_dir.join("target/materialize-acme-kv.wasm");
    let config = crate_dir.join("conformance.yaml");
    let arguments = [
        "connector".into(),
        "test".into(),
        component.into_os_string(),
    ];
    let arguments = arguments
        .into_iter()
        .chain(["--config".into(), config.into_os_string()]);
    let finished = workspace.tidegate(arguments).finish_within(SUITE_MAX);
    finished.succeeded().prints(&["0 failed"]);
}
