//! The first thing that a user does.

use std::fs;

use rusqlite::types::ValueRef;
use tidegate_tests::fold::{Fold, Row, canonical, row};
use tidegate_tests::program::repository;
use tidegate_tests::table::{self, DOCUMENT};
use tidegate_tests::workspace::{Run, Workspace};

const FILES: [&str; 3] = ["flow.yaml", "orders.ndjson", "sales.ndjson"];

fn quickstart() -> Workspace {
    let workspace = Workspace::new();
    for file in FILES {
        let content = fs::read(repository().join("examples/quickstart").join(file));
        workspace.write(file, content.expect("the quickstart is in the repository"));
    }
    workspace
}

fn run(workspace: &Workspace) -> Run<'_> {
    workspace
        .run()
        .catalogs(&["flow.yaml"])
        .input("acmeCo/orders", "orders.ndjson")
        .input("acmeCo/sales", "sales.ndjson")
        .until_caught_up()
}

#[test]
fn the_tables_are_what_the_files_come_to() {
    let workspace = quickstart();
    let finished = run(&workspace).start().finish().succeeded();
    assert!(
        finished.stdout.contains("6,000 documents read"),
        "{}",
        finished.stdout
    );

    let lines = |file: &str| fs::read_to_string(workspace.path(file)).expect("it was copied");
    let file = workspace.path("shop.db");
    let orders = Fold::last_write_wins(&["id"])
        .hard_delete()
        .over(lines("orders.ndjson").lines());
    assert!(orders.len() > 100, "the quickstart has something to show");
    assert_eq!(table::read(&file, "orders", &["id"]), orders);
    let sales = Fold::sum(&["product"], &["units", "revenue"]).over(lines("sales.ndjson").lines());
    assert_eq!(table::read(&file, "sales", &["product"]), sales);
    assert_eq!(table::ask(&file, "PRAGMA integrity_check"), "ok");

    columns_hold_the_documents(
        &workspace,
        "orders",
        &["id", "customer", "status", "total", "placed_at"],
    );
    columns_hold_the_documents(&workspace, "sales", &["product", "units", "revenue"]);

    let finished = run(&workspace).start().finish().succeeded();
    assert!(
        finished.stdout.contains(" 0 documents read, 0 rows stored"),
        "{}",
        finished.stdout
    );
    assert_eq!(table::read(&file, "orders", &["id"]), orders);
    assert_eq!(table::read(&file, "sales", &["product"]), sales);
}

/// Requires each of the columns to say what the document says.
fn columns_hold_the_documents(workspace: &Workspace, name: &str, columns: &[&str]) {
    let connection = table::open(&workspace.path("shop.db")).expect("the file is there");
    let selected = columns
        .iter()
        .map(|column| format!("\"{column}\""))
        .collect::<Vec<_>>()
        .join(", ");
    let mut query = connection
        .prepare(&format!("SELECT {DOCUMENT}, {selected} FROM \"{name}\""))
        .unwrap_or_else(|error| panic!("{name} lacks a column: {error}"));
    let mut rows = query.query([]).expect("the query has no parameters");
    while let Some(found) = rows.next().expect("the table can be read") {
        let document: String = found.get(0).expect("the document is text");
        let document: Row = row(&document);
        for (index, &column) in columns.iter().enumerate() {
            let value = found.get_ref(index + 1).expect("the column was selected");
            let want = document.get(column).map_or("null", String::as_str);
            assert_eq!(json(&value), want, "{column} of {document:?}");
        }
    }
}

fn json(value: &ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "null".to_owned(),
        ValueRef::Integer(integer) => integer.to_string(),
        ValueRef::Real(real) => canonical(&format!("{real:?}")),
        ValueRef::Text(text) => serde_json::Value::from(String::from_utf8_lossy(text)).to_string(),
        ValueRef::Blob(blob) => panic!("no column is bytes: {blob:?}"),
    }
}
