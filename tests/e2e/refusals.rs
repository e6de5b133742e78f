//! What cannot work is refused with a sentence that says what to do, exit code 1,
//! and nothing lost.

use std::fs;

use serde_json::json;
use tidegate_tests::catalog::{Catalog, Task};
use tidegate_tests::document::{ORDERS, order_schema};
use tidegate_tests::host::Finished;
use tidegate_tests::program;
use tidegate_tests::table;
use tidegate_tests::workspace::Workspace;

fn orders() -> Catalog {
    Catalog::new().collection(ORDERS, &["/id"], order_schema())
}

fn rows(task: Task) -> Catalog {
    orders().task("acmeCo/rows", task)
}

fn table_task() -> Task {
    Task::sqlite("rows.db").table(ORDERS, "orders")
}

/// Runs a catalog over one order until it is caught up.
fn run(workspace: &Workspace) -> Finished {
    workspace.write_lines("orders.ndjson", [r#"{"id":1}"#]);
    workspace
        .run()
        .input(ORDERS, "orders.ndjson")
        .until_caught_up()
        .start()
        .finish()
}

#[test]
fn catalogs_with_errors_run_nothing() {
    struct Case {
        name: &'static str,
        catalog: Catalog,
        says: &'static [&'static str],
    }
    let cases = [
        Case {
            name: "unknown field of a materialization",
            catalog: rows(table_task().field("shard", json!({}))),
            says: &["shard", "shards", "flow.json:"],
        },
        Case {
            name: "unknown field of a binding",
            catalog: rows(table_task().binding(json!({
                "source": ORDERS, "resource": { "table": "b" }, "hardDeletes": true,
            }))),
            says: &["hardDeletes", "hardDelete"],
        },
        Case {
            name: "unknown limit",
            catalog: rows(table_task().limits(json!({ "cpu": "2s" }))),
            says: &["cpu"],
        },
        Case {
            name: "limit without a unit",
            catalog: rows(table_task().limits(json!({ "memory": "64" }))),
            says: &["64", "MiB"],
        },
        Case {
            name: "unknown collection",
            catalog: rows(Task::sqlite("rows.db").table("acmeCo/order", "orders")),
            says: &["acmeCo/order", ORDERS],
        },
        Case {
            name: "imported file missing",
            catalog: rows(table_task()).import("missing.yaml"),
            says: &["missing.yaml"],
        },
        Case {
            name: "unknown component",
            catalog: rows(Task::new("materialize-sqlit", json!({})).table(ORDERS, "orders")),
            says: &["materialize-sqlit", "materialize-sqlite"],
        },
        Case {
            name: "component file missing",
            catalog: rows(Task::new("./missing.wasm", json!({})).table(ORDERS, "orders")),
            says: &["missing.wasm"],
        },
        Case {
            name: "config breaks the connector's schema",
            catalog: rows(Task::new("materialize-sqlite", json!({})).table(ORDERS, "orders")),
            says: &["path"],
        },
        Case {
            name: "resource breaks the connector's schema",
            catalog: rows(
                Task::sqlite("rows.db").binding(json!({ "source": ORDERS, "resource": {} })),
            ),
            says: &["table"],
        },
        Case {
            name: "two bindings of one table",
            catalog: rows(table_task().table(ORDERS, "orders")),
            says: &["orders"],
        },
        Case {
            name: "key that the schema does not have",
            catalog: orders()
                .collection("acmeCo/keyless", &["/nothing"], order_schema())
                .task(
                    "acmeCo/rows",
                    table_task().table("acmeCo/keyless", "keyless"),
                ),
            says: &["/nothing"],
        },
        Case {
            name: "shortest transaction longer than the longest",
            catalog: rows(
                table_task().shards(json!({ "minTxnDuration": "2m", "maxTxnDuration": "1m" })),
            ),
            says: &["minTxnDuration", "maxTxnDuration"],
        },
    ];
    for case in cases {
        println!("{}", case.name);
        let workspace = Workspace::with(&case.catalog);
        run(&workspace).ended_with(1).says(case.says);
        assert!(
            !workspace.path("rows.db").exists(),
            "{}: nothing was run",
            case.name
        );
        let check = workspace.run().option("--check").start().finish();
        check.ended_with(1).says(case.says);
    }
}

#[test]
fn every_problem_of_a_catalog_is_said_at_once() {
    let task = table_task()
        .limits(json!({ "cpu": "2s" }))
        .table("acmeCo/order", "two");
    let finished = run(&Workspace::with(&rows(task.field("bindngs", json!([])))));
    finished
        .ended_with(1)
        .says(&["cpu", "acmeCo/order", "bindngs"]);
}

#[test]
fn files_and_names_that_do_not_exist_are_said() {
    let workspace = Workspace::with(&rows(table_task()));
    workspace.write_lines("orders.ndjson", [r#"{"id":1}"#]);
    let run = || workspace.run().until_caught_up();
    run()
        .catalogs(&["missing.yaml"])
        .start()
        .finish()
        .ended_with(1)
        .says(&["missing.yaml"]);
    run()
        .input(ORDERS, "missing.ndjson")
        .start()
        .finish()
        .ended_with(1)
        .says(&["missing.ndjson"]);
    run()
        .input(ORDERS, ".")
        .start()
        .finish()
        .ended_with(1)
        .says(&["not a regular file"]);
    let unknown = run()
        .input("acmeCo/order", "orders.ndjson")
        .start()
        .finish();
    unknown.ended_with(1).says(&["acmeCo/order", ORDERS]);
    let unknown = run().option("--task").option("acmeCo/row").start().finish();
    unknown.ended_with(1).says(&["acmeCo/row", "acmeCo/rows"]);
    run()
        .input(ORDERS, "orders.ndjson")
        .start()
        .finish()
        .succeeded();
}

#[test]
fn broken_text_is_said_with_its_line() {
    let workspace = Workspace::new();
    for (text, line) in [
        ("collections:\n  a: [1,\n", "flow.yaml:"),
        ("a: 1\na: 2\n", "flow.yaml:2"),
    ] {
        workspace.write("flow.yaml", text);
        let finished = workspace.run().catalogs(&["flow.yaml"]).start().finish();
        finished.ended_with(1).says(&[line]);
    }
}

/// Writes a component that differs from a real one in some names.
fn renamed(workspace: &Workspace, name: &str, from: &str, to: &str) -> Catalog {
    assert_eq!(
        from.len(),
        to.len(),
        "a component is binary: names keep their length"
    );
    let mut bytes =
        fs::read(program::connectors().join("materialize-sqlite.wasm")).expect("it is built");
    let mut at = 0;
    let mut count = 0;
    while let Some(found) = bytes[at..]
        .windows(from.len())
        .position(|window| window == from.as_bytes())
    {
        at += found;
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        count += 1;
    }
    assert!(count > 0, "{from} occurs in the component");
    workspace.write(&format!("{name}.wasm"), bytes);
    rows(Task::new(&format!("./{name}.wasm"), json!({ "path": "rows.db" })).table(ORDERS, "orders"))
}

#[test]
fn components_that_do_not_fit_are_said() {
    let workspace = Workspace::new();
    workspace.catalog(&renamed(
        &workspace,
        "newer",
        "connector@0.1.0",
        "connector@7.1.0",
    ));
    run(&workspace).ended_with(1).says(&["7.1.0", "0.1"]);
    workspace.catalog(&renamed(
        &workspace,
        "curious",
        "tidegate:connector/sqlite",
        "tidegate:connector/stdlib",
    ));
    run(&workspace)
        .ended_with(1)
        .says(&["tidegate:connector/stdlib"]);
    for (name, content) in [
        ("garbage", &b"not wasm at all"[..]),
        ("module", b"\0asm\x01\0\0\0"),
        ("empty", b""),
    ] {
        let file = format!("{name}.wasm");
        workspace.write(&file, content);
        workspace.catalog(&rows(
            Task::new(&format!("./{file}"), json!({})).table(ORDERS, "orders"),
        ));
        run(&workspace).ended_with(1).says(&[&file]);
    }
}

#[test]
fn a_connector_reaches_only_what_it_was_granted() {
    let workspace = Workspace::new();
    fs::create_dir(workspace.path("elsewhere")).expect("it is new");
    let task = Task::sqlite("elsewhere/rows.db").table(ORDERS, "orders");
    workspace.catalog(&rows(task.clone().allow(json!({ "directory": [] }))));
    run(&workspace)
        .ended_with(1)
        .says(&["acmeCo/rows", "elsewhere/rows.db"]);
    assert!(
        !workspace.path("elsewhere/rows.db").exists(),
        "the file was not made"
    );
    workspace.catalog(&rows(
        task.clone().allow(json!({ "directory": ["elsewhere"] })),
    ));
    run(&workspace).succeeded();
    assert_eq!(
        table::ask(
            &workspace.path("elsewhere/rows.db"),
            "SELECT id FROM orders"
        ),
        "1"
    );
}

#[test]
fn a_document_over_the_task_s_limit_is_said() {
    let task = table_task().limits(json!({ "document": "1KiB" }));
    let workspace = Workspace::with(&rows(task));
    let long = format!(r#"{{"id":2,"status":"{}"}}"#, "x".repeat(2_000));
    workspace.write_lines("orders.ndjson", [r#"{"id":1}"#, &long]);
    let run = || {
        workspace
            .run()
            .input(ORDERS, "orders.ndjson")
            .until_caught_up()
            .start()
            .finish()
    };
    run()
        .ended_with(1)
        .says(&["acmeCo/rows", ORDERS, "2", "document"]);
    workspace.catalog(&rows(table_task().limits(json!({ "document": "4KiB" }))));
    run().succeeded();
    assert_eq!(
        table::ask(&workspace.path("rows.db"), "SELECT count(*) FROM orders"),
        "2"
    );
}

#[test]
fn a_number_that_the_column_cannot_hold_is_said() {
    let schema = json!({
        "type": "object",
        "required": ["id"],
        "properties": { "id": { "type": "integer" }, "n": { "type": "integer" } },
    });
    for (line, names) in [
        (
            r#"{"id":9223372036854775808,"n":1}"#,
            ["9223372036854775808", "id"],
        ),
        (
            r#"{"id":1,"n":-9223372036854775809}"#,
            ["-9223372036854775809", "n"],
        ),
    ] {
        let catalog = Catalog::new().collection("acmeCo/numbers", &["/id"], schema.clone());
        let task = Task::sqlite("rows.db").table("acmeCo/numbers", "numbers");
        let workspace = Workspace::with(&catalog.task("acmeCo/rows", task));
        let largest = r#"{"id":-9223372036854775808,"n":9223372036854775807}"#;
        workspace.write_lines("numbers.ndjson", [largest]);
        let run = || {
            let run = workspace.run().input("acmeCo/numbers", "numbers.ndjson");
            run.until_caught_up().start().finish()
        };
        run().succeeded();
        let largest = "SELECT id, typeof(id), n, typeof(n) FROM numbers";
        let want = "-9223372036854775808|integer|9223372036854775807|integer";
        assert_eq!(table::ask(&workspace.path("rows.db"), largest), want);
        workspace.append_lines("numbers.ndjson", [line]);
        run()
            .ended_with(1)
            .says(&["acmeCo/rows", "numbers", names[0], names[1]]);
        assert_eq!(
            table::ask(&workspace.path("rows.db"), largest),
            want,
            "nothing was rounded"
        );
    }
}

/// What was appended before there was a catalog is checked when it is read.
#[test]
fn a_bad_document_in_a_journal_fails_the_task() {
    let workspace = Workspace::with(&rows(table_task()));
    workspace.write_lines("orders.ndjson", [r#"{"id":1}"#, r#"{"status":"no key"}"#]);
    workspace
        .on_data(&["append", ORDERS, "orders.ndjson"])
        .finish()
        .succeeded();
    let finished = workspace.run().until_caught_up().start().finish();
    finished.ended_with(1).says(&["acmeCo/rows", ORDERS, "id"]);
}

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    let workspace = Workspace::with(&rows(table_task()));
    workspace.write(
        "rows.db",
        "these are notes, and they are long enough to be a header".repeat(50),
    );
    run(&workspace)
        .ended_with(1)
        .says(&["acmeCo/rows", "rows.db"]);
    let left = fs::read_to_string(workspace.path("rows.db")).expect("it is still text");
    assert!(left.starts_with("these are notes"));
}
