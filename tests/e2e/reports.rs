//! Reports about other systems that must not become reports about this one.
//!
//! The name of each test begins with the case's number.

use serde_json::{Value, json};
use tidegate_tests::catalog::{Catalog, Task};
use tidegate_tests::host::RUN_MAX;
use tidegate_tests::table;
use tidegate_tests::workspace::Workspace;

const COLLECTION: &str = "acmeCo/documents";
const FILE: &str = "documents.ndjson";

fn catalog(schema: Value, bindings: &[Value]) -> Catalog {
    let task = bindings
        .iter()
        .cloned()
        .fold(Task::sqlite("rows.db"), Task::binding);
    Catalog::new()
        .collection(COLLECTION, &["/id"], schema)
        .task("acmeCo/rows", task)
}

fn hard_delete(table: &str, hard: bool) -> Value {
    json!({ "source": COLLECTION, "resource": { "table": table }, "hardDelete": hard })
}

fn changes() -> Value {
    json!({ "source": COLLECTION, "resource": { "table": "changes", "delta_updates": true } })
}

fn plain_schema() -> Value {
    json!({ "type": "object", "required": ["id"], "properties": {
        "id": { "type": "integer" },
        "v": {},
        "_meta": { "type": "object", "properties": { "op": { "type": "string" } } },
    } })
}

fn summing_schema() -> Value {
    json!({ "type": "object", "required": ["id"], "reduce": { "strategy": "merge" }, "properties": {
        "id": { "type": "integer" },
        "n": { "type": "integer", "reduce": { "strategy": "sum" } },
    } })
}

fn caught_up(workspace: &Workspace) {
    workspace
        .run()
        .input(COLLECTION, FILE)
        .until_caught_up()
        .start()
        .finish()
        .succeeded();
}

fn ask(workspace: &Workspace, sql: &str) -> String {
    table::ask(&workspace.path("rows.db"), sql)
}

/// The destination has committed, and the host dies before it knows.
#[test]
fn c08_a_commit_whose_acknowledgement_is_lost_is_not_repeated() {
    // The connector commits, and then does not come back.
    let fault = json!({
        "kind": "sleep", "call": "start-commit", "after": true, "milliseconds": 600_000, "times": 3,
    });
    let config =
        json!({ "path": "rows.db", "syncSchedule": { "syncFrequency": "0s" }, "fault": fault });
    let task = Task::new("materialize-faulty", config)
        .table(COLLECTION, "sums")
        .binding(changes());
    let catalog = Catalog::new().collection(COLLECTION, &["/id"], summing_schema());
    let workspace = Workspace::with(&catalog.task("acmeCo/rows", task));
    let file = workspace.path("rows.db");
    for round in 1..=3 {
        workspace.append_lines(
            FILE,
            [
                r#"{"id":1,"n":1}"#,
                r#"{"id":2,"n":1}"#,
                r#"{"id":1,"n":1}"#,
            ],
        );
        let rows = format!("1|{}\n2|{round}", 2 * round);
        let mut host = workspace.run().input(COLLECTION, FILE).start();
        host.wait_until("the commit is there", RUN_MAX, || {
            table::try_ask(&file, "SELECT id, n FROM sums ORDER BY id")
                .is_ok_and(|found| found == rows)
        });
        host.kill();
    }
    workspace.append_lines(FILE, [r#"{"id":2,"n":1}"#]);
    caught_up(&workspace);
    assert_eq!(
        ask(&workspace, "SELECT id, n FROM sums ORDER BY id"),
        "1|6\n2|4"
    );
    assert_eq!(
        ask(
            &workspace,
            "SELECT id, sum(n) FROM changes GROUP BY id ORDER BY id"
        ),
        "1|6\n2|4"
    );
}

#[test]
fn c09_transactions_with_nothing_to_store_move_the_checkpoint() {
    let silent = "acmeCo/silent";
    let task = Task::sqlite("rows.db")
        .binding(json!({
            "source": { "name": COLLECTION, "notBefore": "2026-01-01T00:00:00Z" },
            "resource": { "table": "documents" },
        }))
        .table(silent, "silent");
    let catalog = Catalog::new()
        .collection(COLLECTION, &["/id"], plain_schema())
        .collection(silent, &["/id"], plain_schema())
        .task("acmeCo/rows", task);
    let workspace = Workspace::with(&catalog);
    workspace.write_lines(
        "old.ndjson",
        (0..1_000).map(|id| format!(r#"{{"id":{id}}}"#)),
    );
    let old = [
        "append",
        COLLECTION,
        "old.ndjson",
        "--published-at",
        "2025-06-01T00:00:00Z",
    ];
    workspace.on_data(&old).finish().succeeded();

    workspace
        .run()
        .until_caught_up()
        .start()
        .finish()
        .succeeded();
    assert_eq!(ask(&workspace, "SELECT count(*) FROM documents"), "0");
    assert_eq!(ask(&workspace, "SELECT count(*) FROM silent"), "0");
    let tasks = || workspace.on_data(&["tasks"]).finish().succeeded().stdout;
    assert!(
        tasks().contains("committed 1000 of 1000 documents, 0 to go"),
        "{}",
        tasks()
    );

    let again = workspace
        .run()
        .until_caught_up()
        .start()
        .finish()
        .succeeded();
    assert!(
        again.stdout.contains(" 0 documents read"),
        "the checkpoint moved: {}",
        again.stdout
    );
    workspace.write_lines("new.ndjson", [r#"{"id":5}"#]);
    let new = [
        "append",
        COLLECTION,
        "new.ndjson",
        "--published-at",
        "2026-01-01T00:00:00Z",
    ];
    workspace.on_data(&new).finish().succeeded();
    workspace
        .run()
        .until_caught_up()
        .start()
        .finish()
        .succeeded();
    assert_eq!(ask(&workspace, "SELECT id FROM documents"), "5");
}

const C10: [&str; 5] = [
    r#"{"id":7,"v":"a","_meta":{"op":"c"}}"#,
    r#"{"id":7,"_meta":{"op":"d"}}"#,
    r#"{"id":7,"v":"b","_meta":{"op":"c"}}"#,
    r#"{"id":8,"v":"x","_meta":{"op":"c"}}"#,
    r#"{"id":8,"_meta":{"op":"d"}}"#,
];

#[test]
fn c10_updates_and_deletes_keep_their_order() {
    let together = Workspace::with(&catalog(plain_schema(), &[hard_delete("documents", true)]));
    together.append_lines(FILE, C10);
    caught_up(&together);
    let apart = Workspace::with(&catalog(plain_schema(), &[hard_delete("documents", true)]));
    for line in C10 {
        apart.append_lines(FILE, [line]);
        caught_up(&apart);
    }
    for workspace in [together, apart] {
        let rows = "SELECT id, flow_document ->> '$.v' FROM documents";
        assert_eq!(ask(&workspace, rows), "7|b");
    }
}

#[test]
fn c11_deleting_what_was_never_there_stores_nothing() {
    let bindings = [hard_delete("hard", true), hard_delete("soft", false)];
    let workspace = Workspace::with(&catalog(plain_schema(), &bindings));
    workspace.append_lines(FILE, [r#"{"id":9,"_meta":{"op":"d"}}"#]);
    caught_up(&workspace);
    assert_eq!(ask(&workspace, "SELECT count(*) FROM hard"), "0");
    let soft = "SELECT id, flow_document ->> '$._meta.op' FROM soft";
    assert_eq!(ask(&workspace, soft), "9|d");
}
