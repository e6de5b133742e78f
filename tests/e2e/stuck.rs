//! Connectors that crash or never come back: cases C17 and C18.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidegate_tests::catalog::{Catalog, Task};
use tidegate_tests::document::{ORDERS, order_schema};
use tidegate_tests::host::{Host, RUN_MAX};
use tidegate_tests::table;
use tidegate_tests::workspace::Workspace;

/// The deadline that the tasks are given.
const DEADLINE: Duration = Duration::from_secs(2);

/// When the error must be there at the latest.
const DEADLINE_MAX: Duration = Duration::from_secs(4);

/// A sleep that no test waits for.
const TEN_MINUTES: u64 = 600_000;

fn faulty(file: &str, fault: &Value) -> Task {
    let config = json!({ "path": file, "syncSchedule": { "syncFrequency": "0s" }, "fault": fault });
    Task::new("materialize-faulty", config).table(ORDERS, "orders")
}

fn collection(schema: Value) -> Catalog {
    Catalog::new().collection(ORDERS, &["/id"], schema)
}

fn text_keys() -> Value {
    json!({ "type": "object", "required": ["id"], "properties": { "id": { "type": "string" } } })
}

fn wait_for_rows(workspace: &Workspace, host: &mut Host, file: &str, rows: &str) {
    let path = workspace.path(file);
    host.wait_until(&format!("{file} has {rows}"), RUN_MAX, || {
        table::try_ask(&path, "SELECT id FROM orders ORDER BY id").is_ok_and(|found| found == rows)
    });
}

#[test]
fn c18_a_stuck_connector_runs_into_its_deadline_and_a_slow_one_does_not() {
    let server = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let silent = server.local_addr().expect("it is bound").to_string();
    let stuck = [
        (
            "acmeCo/spins",
            json!({ "kind": "spin", "call": "store" }),
            "computed for 2s",
        ),
        (
            "acmeCo/sleeps",
            json!({ "kind": "sleep", "call": "store", "milliseconds": TEN_MINUTES }),
            "waited 2s",
        ),
        (
            "acmeCo/hangs",
            json!({ "kind": "hangNet", "call": "store", "address": silent }),
            "waited 2s",
        ),
    ];
    let limits = json!({ "compute": "2s", "import": "2s" });
    // It is at work for longer than the deadline, and calls the host all the while.
    let slow = json!({ "kind": "slow", "call": "store", "milliseconds": 5_000 });
    let mut catalog = collection(order_schema())
        .task(
            "acmeCo/slow",
            faulty("slow.db", &slow).limits(limits.clone()),
        )
        .task(
            "acmeCo/healthy",
            Task::sqlite("healthy.db").table(ORDERS, "orders"),
        );
    for (name, fault, _) in &stuck {
        let file = format!("{}.db", name.replace('/', "-"));
        catalog = catalog.task(name, faulty(&file, fault).limits(limits.clone()));
    }
    let workspace = Workspace::with(&catalog);
    workspace.write("orders.ndjson", "");
    let mut host = workspace.run().input(ORDERS, "orders.ndjson").start();
    for file in [
        "slow.db",
        "healthy.db",
        "acmeCo-spins.db",
        "acmeCo-sleeps.db",
        "acmeCo-hangs.db",
    ] {
        wait_for_rows(&workspace, &mut host, file, "");
    }

    let started = Instant::now();
    workspace.append_lines("orders.ndjson", [r#"{"id":1}"#]);
    wait_for_rows(&workspace, &mut host, "healthy.db", "1");
    assert!(
        started.elapsed() < DEADLINE,
        "the healthy task does not wait for the stuck ones"
    );
    for (name, _, words) in &stuck {
        host.wait_for_line(&format!("that {name} is stuck"), RUN_MAX, |line| {
            line.contains(&format!("{name}: store of binding 0")) && line.contains(words)
        });
        let took = started.elapsed();
        assert!(
            (DEADLINE..DEADLINE_MAX).contains(&took),
            "{name} was ended after {took:?}"
        );
    }
    wait_for_rows(&workspace, &mut host, "slow.db", "1");
    assert!(
        !host.stderr().contains("acmeCo/slow: store"),
        "{}",
        host.stderr()
    );
}
