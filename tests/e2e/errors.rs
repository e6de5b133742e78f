//! Documents that a destination cannot hold: what `onError` of a binding makes of
//! them.
//!
//! SQLite's integers have 64 bits and JSON's have no end, so that every integer
//! above is a document that its table cannot hold.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_tests::api::Api;
use tidegate_tests::catalog::{Catalog, Task};
use tidegate_tests::host::{Finished, RUN_MAX};
use tidegate_tests::seed;
use tidegate_tests::table;
use tidegate_tests::workspace::Workspace;

const TASK: &str = "acmeCo/rows";
const COLLECTION: &str = "acmeCo/numbers";
const LETTERS: &str = "acmeCo/rows/deadLetters";
const FILE: &str = "rows.db";
const ROWS: &str = "SELECT id, n FROM numbers ORDER BY id";

/// What a column of SQLite cannot hold: 2^63.
const BEYOND: &str = "9223372036854775808";

/// As many as the host leaves out of one transaction.
const OMISSIONS_MAX: usize = 100;

fn collection(schema: Value) -> Catalog {
    Catalog::new().collection(COLLECTION, &["/id"], schema)
}

fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["id", "n"],
        "properties": { "id": { "type": "integer" }, "n": { "type": "integer" } },
    })
}

fn binding(on_error: &str) -> Value {
    json!({ "source": COLLECTION, "resource": { "table": "numbers" }, "onError": on_error })
}

fn catalog(on_error: &str) -> Catalog {
    collection(schema()).task(TASK, Task::sqlite(FILE).binding(binding(on_error)))
}

fn workspace(on_error: &str) -> Workspace {
    Workspace::with(&catalog(on_error))
}

/// Appends documents that are all read by one transaction.
fn append<L: AsRef<str>>(workspace: &Workspace, lines: impl IntoIterator<Item = L>) {
    workspace.write_lines("lines.ndjson", lines);
    let append = workspace.on_data(&["append", COLLECTION, "lines.ndjson"]);
    append.finish().succeeded();
}

fn run(workspace: &Workspace) -> Finished {
    workspace.run().until_caught_up().start().finish()
}

fn number(id: impl std::fmt::Display, n: impl std::fmt::Display) -> String {
    format!(r#"{{"id":{id},"n":{n}}}"#)
}

fn rows(workspace: &Workspace) -> String {
    table::ask(&workspace.path(FILE), ROWS)
}

/// Reads the task's dead letters.
fn letters(workspace: &Workspace) -> Vec<Value> {
    let read = workspace.on_data(&["read", LETTERS]).finish().succeeded();
    let lines = read.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("it is JSON"))
        .collect()
}

fn listed(workspace: &Workspace) -> Value {
    let listed = workspace
        .on_data(&["tasks", "--format", "json"])
        .finish()
        .succeeded();
    let listed: Value = serde_json::from_str(&listed.stdout).expect("it is JSON");
    listed["tasks"][0].clone()
}

#[test]
fn halt_names_what_does_not_fit_and_loses_nothing() {
    let workspace = workspace("halt");
    append(&workspace, [number(1, 1), number(2, BEYOND), number(3, 3)]);
    for _ in 0..2 {
        let says = [
            TASK,
            COLLECTION,
            "key [2]",
            "\"n\"",
            BEYOND,
            "64 bits",
            "onError is halt",
        ];
        run(&workspace).ended_with(1).says(&says);
        assert_eq!(rows(&workspace), "");
    }
    // Whoever reads that decides to go on without the document.
    workspace.catalog(&catalog("skip"));
    run(&workspace).succeeded();
    assert_eq!(rows(&workspace), "1|1\n3|3");
}

#[test]
fn skip_goes_on_and_counts() {
    let workspace = workspace("skip");
    append(&workspace, [number(1, 1), number(2, BEYOND), number(3, 3)]);
    let first = run(&workspace).succeeded();
    for says in [" 3 documents read", "1 document skipped"] {
        assert!(first.stdout.contains(says), "{}", first.stdout);
    }
    assert_eq!(rows(&workspace), "1|1\n3|3");
    let line = first.stderr.lines().find(|line| line.contains("left out"));
    let line = line.expect("each is said");
    assert!(
        line.contains("WARN") && line.contains("key [2]") && line.contains("64 bits"),
        "{line}"
    );

    // The same key is loaded now, another one is beyond every key until now, and one is good.
    append(
        &workspace,
        [number(1, BEYOND), number(2, 2), number(4, BEYOND)],
    );
    let second = run(&workspace).succeeded();
    assert!(
        second.stdout.contains("3 documents skipped"),
        "{}",
        second.stdout
    );
    assert_eq!(rows(&workspace), "1|1\n2|2\n3|3");
    append(&workspace, [number(4, 4)]);
    let third = run(&workspace).succeeded();
    assert!(
        third.stdout.contains("3 documents skipped"),
        "{}",
        third.stdout
    );
    assert_eq!(rows(&workspace), "1|1\n2|2\n3|3\n4|4");
    let task = listed(&workspace);
    assert_eq!(
        (&task["skippedDocs"], &task["deadLetters"]),
        (&json!("3"), &json!("0"))
    );
    assert_eq!(task["unfinished"], false);
    let said = workspace.on_data(&["tasks"]).finish().succeeded().stdout;
    assert!(said.contains("3 documents skipped"), "{said}");
    let read = workspace.on_data(&["read", LETTERS]).finish();
    read.ended_with(1).says(&["no collection"]);
}

/// A key that the table cannot hold is refused when it is looked up, before anything
/// is stored.
#[test]
fn keys_that_cannot_be_looked_up_are_left_out() {
    let workspace = workspace("deadLetter");
    append(&workspace, [number(BEYOND, 1), number(1, 1)]);
    run(&workspace).succeeded();
    append(
        &workspace,
        [number(BEYOND, 2), number(1, 2), number(BEYOND, 3)],
    );
    run(&workspace).succeeded();
    assert_eq!(rows(&workspace), "1|2");
    let letters = letters(&workspace);
    let last: Vec<_> = letters.iter().map(|it| &it["document"]["n"]).collect();
    assert_eq!(last, [1, 3], "what its documents come to");
    assert_eq!(letters[1]["key"].to_string(), format!("[{BEYOND}]"));
}

#[test]
fn dead_letters_are_a_collection() {
    let workspace = workspace("deadLetter");
    append(&workspace, [number(1, 1), number(2, BEYOND), number(3, 3)]);
    let first = run(&workspace).succeeded();
    assert!(first.stdout.contains("1 dead letter"), "{}", first.stdout);
    assert_eq!(rows(&workspace), "1|1\n3|3");
    let raw = workspace
        .on_data(&["read", LETTERS])
        .finish()
        .succeeded()
        .stdout;
    assert!(raw.contains(&number(2, BEYOND)), "exact digits: {raw}");
    let kept = letters(&workspace);
    assert_eq!(kept.len(), 1);
    let letter = &kept[0];
    assert_eq!(letter["task"], TASK);
    assert_eq!(letter["collection"], COLLECTION);
    assert_eq!(letter["resource"], json!(["numbers"]));
    assert_eq!(letter["key"], json!([2]));
    assert_eq!(letter["field"], "n");
    assert!(
        letter["reason"].as_str().unwrap().contains("64 bits"),
        "{letter}"
    );
    assert!(
        letter["refusedAt"].as_str().unwrap().ends_with('Z'),
        "{letter}"
    );

    // Which a catalog binds as any other.
    let schema = json!({
        "type": "object", "required": ["id"],
        "properties": { "id": { "type": "string" }, "reason": { "type": "string" } },
    });
    let more = Task::sqlite("letters.db").table(LETTERS, "letters");
    let more = catalog("deadLetter")
        .collection(LETTERS, &["/id"], schema)
        .task("acmeCo/more", more);
    workspace.catalog(&more);
    append(&workspace, [number(4, BEYOND)]);
    run(&workspace).succeeded();
    run(&workspace).succeeded();
    let count = table::ask(
        &workspace.path("letters.db"),
        "SELECT count(*) FROM letters",
    );
    assert_eq!(count, "2");
}

#[test]
fn a_transaction_leaves_out_many_and_not_any_number() {
    let workspace = workspace("deadLetter");
    let bad = |count: usize| (0..count).map(|id| number(id, BEYOND));
    append(&workspace, bad(OMISSIONS_MAX).chain([number(1_000, 1)]));
    run(&workspace).succeeded();
    assert_eq!(rows(&workspace), "1000|1");
    assert_eq!(letters(&workspace).len(), OMISSIONS_MAX);

    append(&workspace, bad(OMISSIONS_MAX + 1).chain([number(1_001, 1)]));
    let says = [
        "\"n\"",
        BEYOND,
        "100 documents already",
        "exclude it, widen its schema",
    ];
    run(&workspace).ended_with(1).says(&says);
    assert_eq!(rows(&workspace), "1000|1");
    // It fails again, at once, and nothing is kept of what was not committed.
    run(&workspace).ended_with(1).says(&says);
    assert_eq!(listed(&workspace)["deadLetters"], "100");
    assert_eq!(letters(&workspace).len(), OMISSIONS_MAX);
}

#[test]
fn one_that_nobody_names_halts() {
    let fault = json!({
        "kind": "error", "call": "store", "errorKind": "document", "onDocument": "\"id\":2",
    });
    let config = json!({ "path": FILE, "fault": fault });
    let task = Task::new("materialize-faulty", config).binding(binding("skip"));
    let workspace = Workspace::with(&collection(schema()).task(TASK, task));
    append(&workspace, [number(1, 1), number(2, 2)]);
    let says = [
        "told to fail in Store",
        COLLECTION,
        "does not say which of the documents",
    ];
    run(&workspace).ended_with(1).says(&says);
    assert_eq!(rows(&workspace), "");
}

/// Documents that are refused before a connector sees them take the same way.
#[test]
fn documents_that_do_not_fit_the_schema_any_more_are_left_out() {
    let workspace = workspace("halt");
    append(&workspace, [number(1, 100), number(2, 2), number(3, 300)]);
    let narrow = |on_error: &str| {
        let mut schema = schema();
        schema["properties"]["n"]["maximum"] = 99.into();
        collection(schema).task(TASK, Task::sqlite(FILE).binding(binding(on_error)))
    };
    workspace.catalog(&narrow("halt"));
    run(&workspace)
        .ended_with(1)
        .says(&["document 0 of collection", "onError is halt"]);
    workspace.catalog(&narrow("deadLetter"));
    run(&workspace).succeeded();
    assert_eq!(rows(&workspace), "2|2");
    let letters = letters(&workspace);
    let offsets: Vec<_> = letters.iter().map(|it| it["offset"].clone()).collect();
    assert_eq!(offsets, [0, 2]);
    assert_eq!(letters[1]["document"], json!({ "id": 3, "n": 300 }));
    assert!(letters[1].get("key").is_none(), "{}", letters[1]);
}

/// Whenever the host is killed, each document that is left out has one letter, and
/// everything else its row.
#[test]
fn letters_are_kept_once_over_kills() {
    const ROUNDS: usize = 12;
    const GOOD: usize = 40;
    const BAD: usize = 6;
    let workspace = workspace("deadLetter");
    let mut random = seed::random("letters_are_kept_once");
    let mut want = BTreeMap::new();
    let mut killed = 0;
    // How long a whole run takes: kills are spread over a little less than that.
    let mut whole = Duration::from_millis(500);
    for round in 0..ROUNDS {
        let id = |it: usize| round * (GOOD + BAD) + it;
        let mut lines: Vec<String> = (0..GOOD).map(|it| number(id(it), round)).collect();
        lines.extend((GOOD..GOOD + BAD).map(|it| number(id(it), BEYOND)));
        random.shuffle(&mut lines);
        append(&workspace, &lines);
        for it in GOOD..GOOD + BAD {
            want.insert(id(it).to_string(), 1);
        }
        let mut host = workspace.run().start();
        host.ends_within(whole.mul_f64(random.f64() * 0.9));
        host.kill();
        killed += usize::from(listed(&workspace)["unfinished"] == true);
        whole = run(&workspace).succeeded().took;

        let mut kept = BTreeMap::new();
        for letter in letters(&workspace) {
            *kept
                .entry(letter["document"]["id"].to_string())
                .or_insert(0) += 1;
        }
        assert_eq!(kept, want, "after round {round}");
        let sql = "SELECT count(*) FROM numbers";
        let count = table::ask(&workspace.path(FILE), sql);
        assert_eq!(
            count,
            ((round + 1) * GOOD).to_string(),
            "after round {round}"
        );
        let counted = &listed(&workspace)["deadLetters"];
        assert_eq!(*counted, want.len().to_string(), "after round {round}");
    }
    println!("{killed} of {ROUNDS} rounds were killed within a transaction");
    assert!(
        killed > 0,
        "some rounds must be killed within a transaction"
    );
}

#[test]
fn a_host_says_what_it_leaves_out() {
    let workspace = workspace("deadLetter");
    let mut host = workspace.serve().start();
    host.wait_until("its table", RUN_MAX, || {
        table::try_ask(&workspace.path(FILE), ROWS).is_ok()
    });
    append(&workspace, [number(1, 1), number(2, BEYOND)]);
    host.wait_until("the row", RUN_MAX, || rows(&workspace) == "1|1");
    let api = Api::of(&workspace.data_dir());
    let counted = || api.task(TASK)["deadLettersTotal"] == "1";
    host.wait_until("the count", RUN_MAX, counted);
    let said = workspace.on_data(&["tasks"]).finish().succeeded().stdout;
    assert!(said.contains("1 dead letter"), "{said}");
    workspace
        .on_data(&["stop", "--task", TASK])
        .finish()
        .succeeded();
    host.signal("TERM");
    host.finish().succeeded();

    // A task that is stopped is known by its record.
    let mut host = workspace.serve().start();
    host.wait_for_line("where it listens", RUN_MAX, |line| line.contains("http"));
    let told = || {
        let said = workspace.on_data(&["tasks"]).finish().stdout;
        said.contains("stopped") && said.contains("1 dead letter")
    };
    host.wait_until("the stopped task and its letter", RUN_MAX, told);
    host.signal("TERM");
    host.finish().succeeded();
}

#[test]
fn what_on_error_does_not_know_is_refused() {
    let workspace = workspace("deadletter");
    let check = workspace.run().option("--check").start().finish();
    check.ended_with(1).says(&[
        "\"deadletter\"",
        "did you mean \"deadLetter\"?",
        "flow.json:",
    ]);
}
