//! Catalogs: imports, what is run of them, and `--check`.

use std::fs;

use serde_json::json;
use tidegate_tests::catalog::{Catalog, Task};
use tidegate_tests::document::{ORDERS, SALES, order_schema, sale_schema};
use tidegate_tests::table;
use tidegate_tests::workspace::Workspace;

const ONE: &str = "acmeCo/one";
const TWO: &str = "acmeCo/two";

fn collections() -> Catalog {
    Catalog::new()
        .collection(ORDERS, &["/id"], order_schema())
        .collection(SALES, &["/id"], sale_schema())
}

fn two_tasks(catalog: Catalog) -> Catalog {
    catalog
        .task(ONE, Task::sqlite("one.db").table(ORDERS, "orders"))
        .task(TWO, Task::sqlite("two.db").table(ORDERS, "orders"))
}

#[test]
fn a_catalog_may_be_spread_over_files() {
    let workspace = Workspace::new();
    fs::create_dir(workspace.path("common")).expect("it is new");
    workspace.write("common/collections.json", collections().to_string());
    // Paths are relative to the file that names them.
    let more = "import:\n- collections.json\n";
    workspace.write("common/more.yaml", more);
    let tasks = two_tasks(Catalog::new())
        .import("common/more.yaml")
        .import("common/collections.json");
    workspace.catalog(&tasks);
    workspace.write_lines("orders.ndjson", [r#"{"id":1}"#]);
    let run = workspace
        .run()
        .input(ORDERS, "orders.ndjson")
        .until_caught_up();
    run.start().finish().succeeded();
    for file in ["one.db", "two.db"] {
        assert_eq!(
            table::ask(&workspace.path(file), "SELECT id FROM orders"),
            "1"
        );
    }
}

#[test]
fn several_catalogs_run_together() {
    let workspace = Workspace::new();
    workspace.write("collections.json", collections().to_string());
    workspace.write("tasks.json", two_tasks(Catalog::new()).to_string());
    workspace.write_lines("orders.ndjson", [r#"{"id":1}"#]);
    let run = workspace
        .run()
        .catalogs(&["collections.json", "tasks.json"]);
    run.input(ORDERS, "orders.ndjson")
        .until_caught_up()
        .start()
        .finish()
        .succeeded();
    assert_eq!(
        table::ask(&workspace.path("two.db"), "SELECT id FROM orders"),
        "1"
    );
}

#[test]
fn only_the_named_tasks_run() {
    let workspace = Workspace::with(&two_tasks(collections()));
    workspace.write_lines("orders.ndjson", [r#"{"id":1}"#]);
    let run = || {
        workspace
            .run()
            .input(ORDERS, "orders.ndjson")
            .until_caught_up()
    };
    run()
        .option("--task")
        .option(TWO)
        .start()
        .finish()
        .succeeded();
    assert!(
        !workspace.path("one.db").exists(),
        "the other task did not run"
    );
    assert_eq!(
        table::ask(&workspace.path("two.db"), "SELECT id FROM orders"),
        "1"
    );
    // The other one starts from the journal's beginning when it does run.
    run().start().finish().succeeded();
    assert_eq!(
        table::ask(&workspace.path("one.db"), "SELECT id FROM orders"),
        "1"
    );
}

#[test]
fn what_is_disabled_does_not_run() {
    let off = Task::sqlite("off.db")
        .table(ORDERS, "orders")
        .shards(json!({ "disable": true }));
    let half = Task::sqlite("half.db")
        .table(ORDERS, "orders")
        .binding(json!({
            "source": SALES,
            "resource": { "table": "sales" },
            "disable": true,
        }));
    let workspace = Workspace::with(
        &collections()
            .task("acmeCo/off", off)
            .task("acmeCo/half", half),
    );
    workspace.write_lines("orders.ndjson", [r#"{"id":1}"#]);
    workspace.write_lines("sales.ndjson", [r#"{"id":1}"#]);
    let run = workspace
        .run()
        .input(ORDERS, "orders.ndjson")
        .input(SALES, "sales.ndjson");
    run.until_caught_up().start().finish().succeeded();
    assert!(
        !workspace.path("off.db").exists(),
        "a disabled task touches nothing"
    );
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name = 'sales'";
    assert_eq!(table::ask(&workspace.path("half.db"), tables), "0");
    assert_eq!(
        table::ask(&workspace.path("half.db"), "SELECT id FROM orders"),
        "1"
    );
}

#[test]
fn an_image_stands_for_a_component() {
    let task = json!({
        "endpoint": { "connector": {
            "image": "images.example/acmeCo/materialize-sqlite:v1",
            "config": { "path": "rows.db" },
        } },
        "bindings": [{ "source": ORDERS, "resource": { "table": "orders" } }],
    });
    let mut catalog: serde_json::Value =
        serde_json::from_str(&collections().to_string()).expect("a catalog is JSON");
    catalog["materializations"] = json!({ "acmeCo/rows": task });
    let workspace = Workspace::new();
    workspace.write("flow.json", catalog.to_string());
    workspace.write_lines("orders.ndjson", [r#"{"id":1}"#]);
    let run = workspace
        .run()
        .input(ORDERS, "orders.ndjson")
        .until_caught_up();
    run.start().finish().succeeded();
    assert_eq!(
        table::ask(&workspace.path("rows.db"), "SELECT id FROM orders"),
        "1"
    );
}

#[test]
fn a_backfill_starts_over_and_a_new_binding_from_the_beginning() {
    let catalog = |backfill: u32, more: bool| {
        let binding =
            json!({ "source": ORDERS, "resource": { "table": "orders" }, "backfill": backfill });
        let task = Task::sqlite("rows.db").binding(binding);
        let task = if more {
            task.table(ORDERS, "again")
        } else {
            task
        };
        collections().task("acmeCo/rows", task)
    };
    let workspace = Workspace::with(&catalog(0, false));
    workspace.write_lines("orders.ndjson", [r#"{"id":1}"#, r#"{"id":2}"#]);
    let run = || {
        let run = workspace
            .run()
            .input(ORDERS, "orders.ndjson")
            .until_caught_up();
        run.start().finish().succeeded();
    };
    let ask = |sql: &str| table::ask(&workspace.path("rows.db"), sql);
    run();
    assert_eq!(ask("SELECT id FROM orders ORDER BY id"), "1\n2");
    workspace.catalog(&catalog(1, true));
    run();
    assert_eq!(ask("SELECT id FROM orders ORDER BY id"), "1\n2");
    assert_eq!(ask("SELECT id FROM again ORDER BY id"), "1\n2");
}

#[test]
fn check_writes_nothing() {
    let workspace = Workspace::with(&two_tasks(collections()));
    workspace.write_lines("orders.ndjson", [r#"{"id":1}"#]);
    let names = || {
        let entries = fs::read_dir(workspace.path("")).expect("the directory is there");
        let mut names: Vec<_> = entries
            .map(|entry| entry.expect("it can be read").file_name())
            .collect();
        names.sort();
        names
    };
    let before = names();
    let run = || {
        workspace
            .run()
            .input(ORDERS, "orders.ndjson")
            .option("--check")
    };
    run().start().finish().succeeded();
    assert_eq!(names(), before);

    let broken = Task::sqlite("one.db").table("acmeCo/order", "orders");
    workspace.catalog(&collections().task(ONE, broken));
    run()
        .start()
        .finish()
        .ended_with(1)
        .says(&["acmeCo/order", ORDERS]);
    assert_eq!(names(), before);
}
