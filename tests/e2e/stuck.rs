//! Connectors that crash or never come back: cases C17 and C18.

use std::net::TcpListener;
use std::thread;
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

/// How long a stop may take when a connector is stuck.
const STOP_MAX: Duration = Duration::from_secs(3);

/// A sleep that no test waits for.
const TEN_MINUTES: u64 = 600_000;

/// Returns a task with a fault; a null is none.
fn faulty(file: &str, fault: &Value) -> Task {
    let mut config = json!({ "path": file, "syncSchedule": { "syncFrequency": "0s" } });
    if !fault.is_null() {
        config["fault"] = fault.clone();
    }
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
fn c17_a_connector_that_crashed_is_finished_and_its_task_is_not() {
    let catalog = |fault: Value| {
        let other = json!({ "source": ORDERS, "resource": { "table": "other" } });
        collection(text_keys())
            .task(
                "acmeCo/crashing",
                faulty("crashing.db", &fault).binding(other),
            )
            .task(
                "acmeCo/other",
                Task::sqlite("other.db").table(ORDERS, "orders"),
            )
    };
    let boom = json!({ "kind": "panic", "call": "store", "onDocument": "boom" });
    let workspace = Workspace::with(&catalog(boom));
    workspace.append_lines("orders.ndjson", [r#"{"id":"a"}"#]);
    let mut host = workspace.run().input(ORDERS, "orders.ndjson").start();
    wait_for_rows(&workspace, &mut host, "crashing.db", "a");

    workspace.append_lines("orders.ndjson", [r#"{"id":"boom"}"#]);
    host.wait_for_line("that the connector crashed", RUN_MAX, |line| {
        line.contains("acmeCo/crashing: store of binding 0")
            && line.contains("told to panic in Store")
    });
    wait_for_rows(&workspace, &mut host, "other.db", "a\nboom");
    host.wait_for_line("that the task has failed", RUN_MAX, |line| {
        line.contains("acmeCo/crashing") && line.contains("failed")
    });
    workspace.append_lines("orders.ndjson", [r#"{"id":"c"}"#]);
    wait_for_rows(&workspace, &mut host, "other.db", "a\nboom\nc");
    host.signal("TERM");
    let finished = host.finish().ended_with(1);
    finished.says(&[
        "told to panic in Store",
        "store of binding 0",
        "report it to its author",
    ]);
    assert_eq!(
        table::ask(&workspace.path("crashing.db"), "SELECT id FROM orders"),
        "a"
    );

    workspace.catalog(&catalog(Value::Null));
    workspace
        .run()
        .input(ORDERS, "orders.ndjson")
        .until_caught_up()
        .start()
        .finish()
        .succeeded();
    let rows = "SELECT id FROM orders ORDER BY id";
    assert_eq!(
        table::ask(&workspace.path("crashing.db"), rows),
        "a\nboom\nc"
    );
    assert_eq!(table::ask(&workspace.path("other.db"), rows), "a\nboom\nc");
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

/// A task that waits for its turn does not compute: its clock is out of the others' reach.
#[test]
fn a_connector_that_computes_does_not_use_up_the_time_of_another() {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    // More than there are threads for: most of them wait at any time.
    let tasks: Vec<_> = (0..4 * cores).map(|n| format!("acmeCo/spins{n}")).collect();
    let spin = json!({ "kind": "spin", "call": "store" });
    let mut catalog = collection(order_schema());
    for (n, name) in tasks.iter().enumerate() {
        let task = faulty(&format!("{n}.db"), &spin).limits(json!({ "compute": "1s" }));
        catalog = catalog.task(name, task);
    }
    let workspace = Workspace::with(&catalog);
    workspace.write("orders.ndjson", "");
    let mut host = workspace.run().input(ORDERS, "orders.ndjson").start();
    for n in 0..tasks.len() {
        wait_for_rows(&workspace, &mut host, &format!("{n}.db"), "");
    }
    let started = Instant::now();
    workspace.append_lines("orders.ndjson", [r#"{"id":1}"#]);
    for name in &tasks {
        host.wait_for_line(&format!("that {name} is ended"), RUN_MAX, |line| {
            line.contains(&format!("{name}: store of binding 0"))
                && line.contains("computed for 1s")
        });
    }
    // Four seconds of computing for each core; half of that if they do not begin together.
    let took = started.elapsed();
    assert!(took > Duration::from_secs(2), "{took:?}");
}

#[test]
fn c18_a_stop_ends_stuck_connectors_at_once() {
    let server = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let silent = server.local_addr().expect("it is bound").to_string();
    for (name, fault) in [
        ("spins", json!({ "kind": "spin", "call": "store" })),
        (
            "sleeps",
            json!({ "kind": "sleep", "call": "store", "milliseconds": TEN_MINUTES }),
        ),
        (
            "hangs",
            json!({ "kind": "hangNet", "call": "store", "address": silent }),
        ),
        (
            "waits",
            json!({ "kind": "slow", "call": "store", "milliseconds": TEN_MINUTES }),
        ),
    ] {
        println!("{name}");
        let catalog = collection(order_schema())
            .task("acmeCo/stuck", faulty("stuck.db", &fault))
            .task(
                "acmeCo/healthy",
                Task::sqlite("healthy.db").table(ORDERS, "orders"),
            );
        let workspace = Workspace::with(&catalog);
        workspace.write_lines("orders.ndjson", [r#"{"id":1}"#]);
        for signals in [1, 2] {
            let mut host = workspace.run().input(ORDERS, "orders.ndjson").start();
            wait_for_rows(&workspace, &mut host, "healthy.db", "1");
            let stopped = Instant::now();
            for _ in 0..signals {
                host.signal("TERM");
            }
            let finished = host.finish_within(RUN_MAX);
            let took = stopped.elapsed();
            assert!(
                took < STOP_MAX,
                "{name}: {took:?} after {signals} signals: {}",
                finished.stderr
            );
        }
        // What was interrupted is finished by a connector that is well.
        let catalog =
            collection(order_schema()).task("acmeCo/stuck", faulty("stuck.db", &Value::Null));
        workspace.catalog(&catalog);
        workspace
            .run()
            .until_caught_up()
            .start()
            .finish()
            .succeeded();
        assert_eq!(
            table::ask(&workspace.path("stuck.db"), "SELECT id FROM orders"),
            "1"
        );
    }
}
