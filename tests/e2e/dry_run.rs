//! Dry runs say what would be done, and do nothing.

use std::fs;

use serde_json::{Value, json};
use tidegate_tests::catalog::{Catalog, Task};
use tidegate_tests::document::ORDERS;
use tidegate_tests::host::{Finished, RUN_MAX};
use tidegate_tests::table;
use tidegate_tests::workspace::Workspace;

const TASK: &str = "acmeCo/rows";
const FILE: &str = "rows.db";
const COLUMNS: &str = "SELECT group_concat(name) FROM pragma_table_info('orders')";

/// A task whose table has a column for each of these fields, beside its key.
fn catalog(fields: &[&str]) -> Catalog {
    let mut properties = json!({ "id": { "type": "integer" } });
    for field in fields {
        properties[*field] = json!({ "type": "string" });
    }
    let schema = json!({ "type": "object", "required": ["id"], "properties": properties });
    Catalog::new()
        .collection(ORDERS, &["/id"], schema)
        .task(TASK, Task::sqlite(FILE).table(ORDERS, "orders"))
}

fn dry_run(workspace: &Workspace) -> Finished {
    workspace.run().option("--dry-run").start().finish()
}

fn run(workspace: &Workspace) {
    let run = workspace.run().input(ORDERS, "orders.ndjson");
    run.until_caught_up().start().finish().succeeded();
}

#[test]
fn statements_are_printed_and_nothing_is_written() {
    let workspace = Workspace::with(&catalog(&["a"]));
    let made = dry_run(&workspace).succeeded();
    assert!(
        made.stdout.starts_with("acmeCo/rows: would do\n"),
        "{}",
        made.stdout
    );
    assert!(
        made.stdout.contains("CREATE TABLE \"orders\""),
        "{}",
        made.stdout
    );
    assert!(!workspace.path(FILE).exists(), "the file was made");
    assert!(!workspace.data_dir().exists(), "a data directory was made");

    workspace.write_lines("orders.ndjson", [r#"{"id":1,"a":"x"}"#]);
    run(&workspace);
    assert_eq!(
        dry_run(&workspace).succeeded().stdout,
        "acmeCo/rows: nothing to do\n"
    );

    workspace.catalog(&catalog(&["a", "b"]));
    let before = fs::read(workspace.path(FILE)).unwrap();
    let added = || dry_run(&workspace).succeeded().stdout;
    assert!(added().contains("ADD COLUMN \"b\""), "{}", added());
    assert_eq!(fs::read(workspace.path(FILE)).unwrap(), before);
    // Nor does the host believe that it was done.
    run(&workspace);
    let columns = table::ask(&workspace.path(FILE), COLUMNS);
    assert!(columns.split(',').any(|it| it == "b"), "{columns}");
    assert_eq!(added(), "acmeCo/rows: nothing to do\n");
}

#[test]
fn what_cannot_be_done_is_named_by_task() {
    let away = json!({ "kind": "error", "call": "apply", "errorKind": "transient" });
    let config = json!({ "path": "away.db", "fault": away });
    let catalog = catalog(&["a"]).task(
        "acmeCo/away",
        Task::new("materialize-faulty", config).table(ORDERS, "orders"),
    );
    let workspace = Workspace::with(&catalog);
    let asked = dry_run(&workspace).ended_with(1);
    assert!(
        asked.stdout.contains("acmeCo/away: not known\n"),
        "{}",
        asked.stdout
    );
    assert!(
        asked.stdout.contains("acmeCo/rows: would do\n"),
        "{}",
        asked.stdout
    );
    asked.says(&["error: task acmeCo/away: apply: it may work later"]);
}

#[test]
fn publishing_says_what_tasks_would_do() {
    let workspace = Workspace::with(&catalog(&["a"]));
    let mut host = workspace.serve().start();
    host.wait_until("its table", RUN_MAX, || {
        table::try_ask(&workspace.path(FILE), COLUMNS).is_ok_and(|it| it.contains('a'))
    });
    let publish = |more: &[&str]| {
        let arguments = [&["publish", "flow.json"], more].concat();
        workspace.on_data(&arguments).finish().succeeded().stdout
    };
    let more = catalog(&["a", "b"]).task(
        "acmeCo/more",
        Task::sqlite("more.db").table(ORDERS, "orders"),
    );
    workspace.catalog(&more);
    let answer: Value =
        serde_json::from_str(&publish(&["--dry-run", "--format", "json"])).expect("it is JSON");
    assert_eq!(answer["published"], Value::Null, "{answer}");
    let actions = |task: usize| answer["changes"][task]["actions"][0].as_str().unwrap();
    assert!(actions(0).contains("CREATE TABLE"), "{answer}");
    assert!(actions(1).contains("ADD COLUMN \"b\""), "{answer}");
    assert!(!workspace.path("more.db").exists());
    let text = publish(&["--dry-run"]);
    assert!(
        text.contains("acmeCo/rows: would change\n    ALTER TABLE"),
        "{text}"
    );
    assert_eq!(publish(&[]), "acmeCo/more: added\nacmeCo/rows: changed\n");
    assert_eq!(publish(&["--dry-run"]), "");
    host.signal("TERM");
    host.finish().succeeded();
}
