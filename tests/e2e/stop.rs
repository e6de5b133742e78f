//! Signals: the first stops in order, the second at once.

use std::time::Duration;

use serde_json::json;
use tidegate_tests::catalog::{Catalog, Task};
use tidegate_tests::document::{SALES, sale_schema, sales};
use tidegate_tests::fold::Fold;
use tidegate_tests::host::RUN_MAX;
use tidegate_tests::seed;
use tidegate_tests::table;
use tidegate_tests::workspace::Workspace;

/// A stop in order takes a commit; this much is for a slow disk.
const STOP_MAX: Duration = Duration::from_secs(10);

/// A floor that no test waits for.
const HOUR: &str = "1h";

fn held() -> Workspace {
    let shards = json!({ "minTxnDuration": HOUR, "maxTxnDuration": "2h" });
    let task = Task::sqlite("rows.db").table(SALES, "sales").shards(shards);
    let catalog = Catalog::new()
        .collection(SALES, &["/id"], sale_schema())
        .task("acmeCo/rows", task);
    Workspace::with(&catalog)
}

#[test]
fn the_first_signal_commits_what_is_open() {
    let mut random = seed::random("the_first_signal");
    let lines = sales(&mut random, 500, 20);
    for signal in ["TERM", "INT"] {
        let workspace = held();
        workspace.write_lines("sales.ndjson", &lines);
        let mut host = workspace.run().input(SALES, "sales.ndjson").start();
        // The transaction has read everything and is under its floor.
        host.wait_for_line("that it has read", RUN_MAX, |line| {
            line.contains("500 documents read")
        });
        assert_ne!(
            table::try_ask(&workspace.path("rows.db"), "SELECT count(*) > 0 FROM sales").as_deref(),
            Ok("1")
        );
        host.signal(signal);
        host.finish_within(STOP_MAX).succeeded();
        let rows = table::read(&workspace.path("rows.db"), "sales", &["id"]);
        assert_eq!(rows, Fold::sum(&["id"], &["n", "revenue"]).over(&lines));
    }
}

#[test]
fn until_caught_up_does_not_wait_for_a_floor() {
    let mut random = seed::random("until_caught_up");
    let lines = sales(&mut random, 500, 20);
    let workspace = held();
    workspace.write_lines("sales.ndjson", &lines);
    workspace
        .run()
        .input(SALES, "sales.ndjson")
        .until_caught_up()
        .start()
        .finish()
        .succeeded();
    let rows = table::read(&workspace.path("rows.db"), "sales", &["id"]);
    assert_eq!(rows, Fold::sum(&["id"], &["n", "revenue"]).over(&lines));
}

#[test]
fn an_idle_host_stops_as_well() {
    let workspace = held();
    workspace.write("sales.ndjson", "");
    let mut host = workspace.run().input(SALES, "sales.ndjson").start();
    let file = workspace.path("rows.db");
    host.wait_until("the table is there", RUN_MAX, || {
        table::try_ask(&file, "SELECT count(*) FROM sales").is_ok()
    });
    host.signal("INT");
    host.finish_within(STOP_MAX).succeeded();
    workspace.on_data(&["tasks"]).finish().succeeded();
}
