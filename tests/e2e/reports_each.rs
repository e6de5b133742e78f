//! The reports about values, keys and crashes, on every connector: each destination has
//! ways of its own to be wrong.
//!
//! ```text
//! each destination -> a task of its own -> the report's lines -> its rows, as JSON -> what is right
//! ```
//!
//! The name of each test begins with the case's number.

use std::collections::BTreeSet;
use std::fs;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tidegate_tests::catalog::{Catalog, Task};
use tidegate_tests::files::Reader;
use tidegate_tests::fold::{Fold, Rows};
use tidegate_tests::host::{Finished, RUN_MAX};
use tidegate_tests::postgres::{DATABASE, PASSWORD, Server, USER};
use tidegate_tests::program;
use tidegate_tests::receiver::Receiver;
use tidegate_tests::table;
use tidegate_tests::workspace::Workspace;

const COLLECTION: &str = "acmeCo/documents";
const FILE: &str = "documents.ndjson";
const TASK: &str = "acmeCo/rows";

/// What the tests name the table, the folder or the path.
const TABLE: &str = "documents";

/// A connector, and a destination of the test's own.
enum Destination {
    Sqlite,
    Postgres(Server),
    Files,
    Webhook(Receiver),
    JavaScript,
    Python,
}

use Destination::{Files, JavaScript, Postgres, Python, Sqlite, Webhook};

/// Runs a test on every connector.
fn each(test: impl Fn(&Destination)) {
    program::interpreted();
    let all: [fn() -> Destination; 6] = [
        || Sqlite,
        || Postgres(Server::start()),
        || Files,
        || Webhook(Receiver::accepting()),
        || JavaScript,
        || Python,
    ];
    for make in all {
        let destination = make();
        println!("{}", destination.component());
        test(&destination);
    }
}

impl Destination {
    fn component(&self) -> &'static str {
        match self {
            Sqlite => "materialize-sqlite",
            Postgres(_) => "materialize-postgres",
            Files => "materialize-files",
            Webhook(_) => "materialize-webhook",
            JavaScript => "materialize-ndjson-javascript",
            Python => "materialize-ndjson-python",
        }
    }

    fn config(&self) -> Value {
        match self {
            Sqlite => json!({ "path": "rows.db" }),
            Postgres(server) => json!({
                "address": server.address(), "user": USER, "password": PASSWORD,
                "database": DATABASE,
            }),
            Files => json!({ "path": "out", "format": "ndjson", "uploadInterval": "0s" }),
            Webhook(receiver) => json!({ "address": receiver.url() }),
            JavaScript | Python => json!({ "path": "out" }),
        }
    }

    fn resource(&self, table: &str) -> Value {
        match self {
            Sqlite | Postgres(_) => json!({ "table": table }),
            Webhook(_) => json!({ "path": format!("/{table}") }),
            Files | JavaScript | Python => json!({ "folder": table }),
        }
    }

    /// Returns the resource of every change; some connectors keep nothing else.
    fn changes(&self) -> Value {
        let mut resource = self.resource("changes");
        if let Sqlite | Postgres(_) = self {
            resource["delta_updates"] = json!(true);
        }
        resource
    }

    fn catalog(&self, key: &str, schema: Value, resources: &[Value]) -> Catalog {
        let mut task = Task::new(self.component(), self.config());
        for resource in resources {
            task = task.binding(json!({ "source": COLLECTION, "resource": resource }));
        }
        Catalog::new()
            .collection(COLLECTION, &[key], schema)
            .task(TASK, task)
    }

    fn workspace(&self, key: &str, schema: Value) -> Workspace {
        Workspace::with(&self.catalog(key, schema, &[self.resource(TABLE)]))
    }

    /// Returns what is there, a JSON object a row with these fields and maybe others.
    fn lines(&self, workspace: &Workspace, table: &str, fields: &[&str]) -> Vec<String> {
        let object = |function: &str| {
            let fields = fields.iter().map(|it| format!("'{it}', {it}"));
            let fields = fields.collect::<Vec<_>>().join(", ");
            format!("SELECT {function}({fields}) FROM {table}")
        };
        // Where there is no table yet, there are no rows.
        let split = |rows: String| rows.lines().map(str::to_owned).collect();
        match self {
            Sqlite => table::try_ask(&workspace.path("rows.db"), &object("json_object"))
                .map(split)
                .unwrap_or_default(),
            Postgres(server) => server
                .try_ask(&format!(
                    "SET timezone = 'UTC'; {}",
                    object("json_build_object")
                ))
                .map(split)
                .unwrap_or_default(),
            Files => Reader::all(&workspace.path("out"))
                .remove(table)
                .unwrap_or_default(),
            Webhook(receiver) => received(receiver, table),
            JavaScript | Python => ndjson(workspace, table),
        }
    }

    /// Returns the last row of each key, which is the first of the fields.
    fn rows(&self, workspace: &Workspace, fields: &[&str]) -> Rows {
        let lines = self.lines(workspace, TABLE, fields);
        let mut rows = Fold::last_write_wins(&fields[..1]).over(lines);
        for row in rows.values_mut() {
            row.retain(|field, value| fields.contains(&field.as_str()) && value != "null");
        }
        rows
    }
}

/// What a server was sent, less what it can tell that it has had.
fn received(receiver: &Receiver, table: &str) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut lines = Vec::new();
    for request in receiver.received() {
        let new = seen.insert(request.headers["idempotency-key"].clone());
        if new && request.path == format!("/{table}") {
            let documents: Vec<&RawValue> =
                serde_json::from_str(&request.body).expect("the body is an array");
            lines.extend(documents.iter().map(|it| it.get().to_owned()));
        }
    }
    lines
}

/// The lines of a folder's files, in the order of their commits.
fn ndjson(workspace: &Workspace, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(workspace.path("out").join(folder));
    let entries = entries.into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|it| it == "ndjson"))
        .collect();
    paths.sort();
    let files = paths.iter().map(fs::read_to_string);
    let text: String = files.map(|text| text.expect("it can be read")).collect();
    text.lines().map(str::to_owned).collect()
}

fn run(workspace: &Workspace, lines: &[&str]) -> Finished {
    workspace.append_lines(FILE, lines);
    let run = workspace.run().input(COLLECTION, FILE);
    run.until_caught_up().start().finish()
}

fn check(workspace: &Workspace) -> Finished {
    workspace.run().option("--check").start().finish()
}

fn object(required: &[&str], properties: Value) -> Value {
    json!({ "type": "object", "required": required, "properties": properties })
}

/// The commit is seen, and the host is killed before it knows, or just after.
#[test]
fn c08_a_kill_right_after_the_commit_changes_nothing() {
    let mut schema = object(
        &["id"],
        json!({
            "id": { "type": "integer" },
            "n": { "type": "integer", "reduce": { "strategy": "sum" } },
        }),
    );
    schema["reduce"] = json!({ "strategy": "merge" });
    each(|destination| {
        let mut tables = vec!["changes"];
        let mut resources = vec![destination.changes()];
        if let Sqlite | Postgres(_) = destination {
            tables.push(TABLE);
            resources.push(destination.resource(TABLE));
        }
        let workspace = Workspace::with(&destination.catalog("/id", schema.clone(), &resources));
        let sums = |table: &str| {
            let lines = destination.lines(&workspace, table, &["id", "n"]);
            Fold::sum(&["id"], &["n"]).over(lines)
        };
        let lines = [
            r#"{"id":1,"n":1}"#,
            r#"{"id":2,"n":1}"#,
            r#"{"id":1,"n":1}"#,
        ];
        let mut want = Fold::sum(&["id"], &["n"]);
        for _ in 0..3 {
            workspace.append_lines(FILE, lines);
            lines.iter().for_each(|line| drop(want.apply(line)));
            let mut host = workspace.run().input(COLLECTION, FILE).start();
            host.wait_until("the commit is there", RUN_MAX, || {
                sums("changes") == want.rows
            });
            host.kill();
        }
        let last = r#"{"id":2,"n":1}"#;
        want.apply(last);
        run(&workspace, &[last]).succeeded();
        for table in tables {
            assert_eq!(sums(table), want.rows, "{table}");
        }
    });
}

#[test]
fn c12_nul_characters_are_kept_or_left_out_and_never_in_a_key_that_has_no_room() {
    let schema = object(
        &["id"],
        json!({
            "id": { "type": "string" }, "s": { "type": "string" }, "t": { "type": "string" },
            "o": { "type": "object" },
        }),
    );
    each(|destination| {
        let workspace = destination.workspace("/id", schema.clone());
        let line = r#"{"id":"k1","s":"a\u0000b","o":{"x":"\u0000"},"t":"\\u0000"}"#;
        run(&workspace, &[line]).succeeded();
        let want = match destination {
            Postgres(_) => r#"{"id":"k1","s":"ab","t":"\\u0000"}"#,
            _ => r#"{"id":"k1","s":"a\u0000b","t":"\\u0000"}"#,
        };
        let fields = ["id", "s", "t"];
        let mut want = Fold::last_write_wins(&["id"]).over([want]);
        assert_eq!(destination.rows(&workspace, &fields), want);

        let ended = run(&workspace, &[r#"{"id":"k\u00001"}"#]);
        match destination {
            // Without it, two keys would be one.
            Postgres(_) => drop(ended.ended_with(1).says(&[TASK, "\"id\"", "NUL"])),
            _ => {
                ended.succeeded();
                want.extend(Fold::last_write_wins(&["id"]).over([r#"{"id":"k\u00001"}"#]));
            }
        }
        assert_eq!(destination.rows(&workspace, &fields), want);
    });
}

#[test]
fn c13_instants_with_a_space_are_instants_and_without_an_offset_they_are_none() {
    let schema = object(
        &["id"],
        json!({ "id": { "type": "integer" }, "t": { "type": "string", "format": "date-time" } }),
    );
    let lines = [
        r#"{"id":1,"t":"2026-06-23 00:15:23.918411+00:00"}"#,
        r#"{"id":2,"t":"2025-11-29 01:05:28z"}"#,
        r#"{"id":3,"t":"2025-11-29T01:05:28+05:30"}"#,
    ];
    each(|destination| {
        let workspace = destination.workspace("/id", schema.clone());
        run(&workspace, &lines).succeeded();
        let want = match destination {
            Sqlite => [
                r#"{"id":1,"t":"2026-06-23T00:15:23.918411Z"}"#,
                r#"{"id":2,"t":"2025-11-29T01:05:28Z"}"#,
                r#"{"id":3,"t":"2025-11-29T01:05:28+05:30"}"#,
            ],
            Postgres(_) => [
                r#"{"id":1,"t":"2026-06-23T00:15:23.918411+00:00"}"#,
                r#"{"id":2,"t":"2025-11-29T01:05:28+00:00"}"#,
                r#"{"id":3,"t":"2025-11-28T19:35:28+00:00"}"#,
            ],
            // Documents are delivered as they are. Parquet has columns: see `files.rs`.
            Files | Webhook(_) | JavaScript | Python => lines,
        };
        let mut want = Fold::last_write_wins(&["id"]).over(want);
        assert_eq!(destination.rows(&workspace, &["id", "t"]), want);

        let line = r#"{"id":4,"t":"2025-11-29 01:05:28"}"#;
        let ended = run(&workspace, &[line]);
        match destination {
            Sqlite | Postgres(_) => {
                let said = [TASK, TABLE, "\"t\"", "2025-11-29 01:05:28", "no offset"];
                ended.ended_with(1).says(&said);
            }
            Files | Webhook(_) | JavaScript | Python => {
                ended.succeeded();
                want.extend(Fold::last_write_wins(&["id"]).over([line]));
            }
        }
        assert_eq!(destination.rows(&workspace, &["id", "t"]), want);
    });
}

#[test]
fn c14_integer_keys_above_2_to_the_53_stay_apart() {
    let schema = object(
        &["id"],
        json!({ "id": { "type": "integer" }, "v": { "type": "integer" } }),
    );
    let lines = [
        r#"{"id":9007199254740993,"v":1}"#,
        r#"{"id":9007199254740992,"v":1}"#,
        r#"{"id":9007199254740993,"v":2}"#,
    ];
    each(|destination| {
        let workspace = destination.workspace("/id", schema.clone());
        for line in lines {
            run(&workspace, &[line]).succeeded();
        }
        let want = Fold::last_write_wins(&["id"]).over(lines);
        assert_eq!(want.len(), 2);
        assert_eq!(destination.rows(&workspace, &["id", "v"]), want);
    });
}

#[test]
fn c15_names_that_would_be_cut_to_the_same_bytes_are_refused_where_names_are_cut() {
    let short = "hs_line_item_global_term_hs_recurring_billing_start_date";
    let long = format!("{short}_enabled");
    let wide = "ä".repeat(40);
    let inner = json!({ short: { "type": "string" }, long.as_str(): { "type": "string" } });
    let inner = json!({ "type": "object", "properties": inner });
    let id = json!({ "type": "integer" });
    let deep = object(&["id"], json!({ "id": id, "properties": inner }));
    let wide = object(
        &["id"],
        json!({ "id": id, wide.as_str(): { "type": "string" } }),
    );
    let deep_line = format!(r#"{{"id":1,"properties":{{"{short}":"a","{long}":"b"}}}}"#);
    each(|destination| {
        let workspace = destination.workspace("/id", deep.clone());
        match destination {
            Postgres(_) => {
                let refused = check(&workspace).ended_with(1);
                refused.says(&[short, &long, "63", "projection"]);
            }
            _ => drop(run(&workspace, &[&deep_line]).succeeded()),
        }
        // Eighty bytes in forty characters; nothing else would be cut to the same.
        let checked = check(&destination.workspace("/id", wide.clone())).succeeded();
        match destination {
            Postgres(_) => drop(checked.says(&["80 bytes", "63"])),
            _ => assert!(!checked.stderr.contains("80 bytes"), "{}", checked.stderr),
        }
    });
}

#[test]
fn c16_keys_are_required_or_have_a_default() {
    let keyed = |k: Value, required: &[&str]| object(required, json!({ "k": k }));
    each(|destination| {
        let check = |schema: Value| check(&destination.workspace("/k", schema));
        check(keyed(json!({ "type": "string" }), &["k"])).succeeded();
        let null = check(keyed(json!({ "type": ["string", "null"] }), &[]));
        null.ended_with(1).says(&["/k", "null"]);
        let fraction = check(keyed(json!({ "type": "number" }), &["k"]));
        fraction.ended_with(1).says(&["/k", "number"]);

        let with_default = json!({ "type": "string", "default": "value" });
        let workspace = destination.workspace("/k", keyed(with_default, &[]));
        run(&workspace, &["{}", r#"{"k":"other"}"#]).succeeded();
        let want = match destination {
            Sqlite | Postgres(_) => [r#"{"k":"value"}"#, r#"{"k":"other"}"#],
            // Documents are delivered as they are.
            Files | Webhook(_) | JavaScript | Python => ["{}", r#"{"k":"other"}"#],
        };
        let want = Fold::last_write_wins(&["k"]).over(want);
        assert_eq!(destination.rows(&workspace, &["k"]), want);
    });
}
