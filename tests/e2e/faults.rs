//! Every fault of the faulty connector, at every call: an error that says where,
//! while another task of the same process goes on.
//!
//! The faulty connector is the SQLite connector with a fault before or after a
//! call, so a fault that passes must leave exactly the rows of one that never was.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_tests::catalog::{Catalog, Task};
use tidegate_tests::document::{SALES, sale_schema, sales};
use tidegate_tests::fold::Fold;
use tidegate_tests::host::{Host, RUN_MAX};
use tidegate_tests::seed;
use tidegate_tests::table;
use tidegate_tests::workspace::Workspace;

/// The calls of a session.
const CALLS: [&str; 7] = [
    "apply",
    "open",
    "load",
    "flush",
    "store",
    "start-commit",
    "acknowledge",
];

/// The calls that are about one binding.
const OF_A_BINDING: [&str; 3] = ["load", "flush", "store"];

/// How long some dozens of tasks may take to fail three times each.
const ALL_FAIL_MAX: Duration = Duration::from_secs(120);

/// A task that is to fail.
struct Case {
    task: String,
    fault: Value,
    /// What its error must say.
    says: Vec<String>,
}

/// Returns what goes wrong, with words of the error that comes of it.
fn faults(call: &str, silent: &str) -> Vec<(&'static str, Value, &'static str)> {
    let error = |kind: &str| json!({ "kind": "error", "errorKind": kind });
    let mut faults = vec![
        ("panic", json!({ "kind": "panic" }), "faulty: told to panic"),
        ("spin", json!({ "kind": "spin" }), "computed for 300ms"),
        (
            "sleep",
            json!({ "kind": "sleep", "milliseconds": 600_000 }),
            "waited 300ms",
        ),
        (
            "hang",
            json!({ "kind": "hangNet", "address": silent }),
            "waited 300ms",
        ),
        ("hoard", json!({ "kind": "hoard" }), "limit is 33554432"),
        ("recurse", json!({ "kind": "recurse" }), "recursion"),
        (
            "config",
            error("config"),
            "the configuration is wrong: faulty: told to fail",
        ),
        (
            "auth",
            error("auth"),
            "refused the credentials: faulty: told to fail",
        ),
        (
            "schema",
            error("schema"),
            "tables do not fit: faulty: told to fail",
        ),
        (
            "document",
            error("document"),
            "cannot be stored: faulty: told to fail",
        ),
        (
            "transient",
            error("transient"),
            "it may work later: faulty: told to fail",
        ),
        (
            "internal",
            error("internal"),
            "the connector failed: faulty: told to fail",
        ),
    ];
    let violate = |violation: &str| json!({ "kind": "violate", "violation": violation });
    // What is loaded is parsed when it is combined; what is flushed was not asked for.
    let garbled = match call {
        "load" => "the document that the connector loaded: not JSON",
        _ => "ordinal",
    };
    match call {
        "load" | "flush" => faults.extend([
            ("ordinal", violate("ordinal"), "ordinal"),
            ("batch", violate("batch"), "protocol"),
            ("garbled", violate("document"), garbled),
        ]),
        "validate" | "apply" | "open" | "acknowledge" => faults.extend([
            ("json", violate("json"), "protocol"),
            ("property", violate("property"), "unheardOf"),
        ]),
        "start-commit" => faults.push(("json", violate("json"), "protocol")),
        _ => {}
    }
    faults
}

fn cases(call: &str, silent: &str) -> Vec<Case> {
    let case = |(name, mut fault, says): (&str, Value, &str)| {
        fault["call"] = call.into();
        let task = format!("acmeCo/{call}-{name}");
        let place = match OF_A_BINDING.contains(&call) {
            // It is a document that is wrong, not a call.
            _ if says.starts_with("the document") => format!("task {task}: binding 0 "),
            true => format!("task {task}: {call} of binding 0: "),
            false => format!("task {task}: {call}: "),
        };
        Case {
            task,
            fault,
            says: vec![place, says.to_owned()],
        }
    };
    faults(call, silent).into_iter().map(case).collect()
}

/// Returns a task with a fault; its file is named after it.
fn faulty(name: &str, fault: &Value) -> Task {
    let config =
        json!({ "path": file(name), "syncSchedule": { "syncFrequency": "0s" }, "fault": fault });
    let limits = json!({ "compute": "300ms", "import": "300ms", "memory": "32MiB" });
    Task::new("materialize-faulty", config)
        .table(SALES, "sales")
        .limits(limits)
}

fn file(task: &str) -> String {
    format!("{}.db", task.replace('/', "-"))
}

/// A server that takes connections and says nothing.
fn silent_server() -> (TcpListener, String) {
    let server = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = server.local_addr().expect("it is bound").to_string();
    (server, address)
}

/// Appends a line and waits until the healthy task has it.
fn healthy_goes_on(workspace: &Workspace, host: &mut Host, lines: &mut Lines) {
    let line = lines.append(workspace);
    let sql = format!("SELECT count(*) FROM sales WHERE last = {line}");
    let file = workspace.path("healthy.db");
    host.wait_until(
        &format!("the healthy task has line {line}"),
        RUN_MAX,
        || table::try_ask(&file, &sql).is_ok_and(|count| count == "1"),
    );
}

/// Lines over few keys, appended one by one.
struct Lines {
    lines: Vec<String>,
    appended: usize,
}

impl Lines {
    fn new(test: &str) -> Lines {
        Lines {
            lines: sales(&mut seed::random(test), 1_000, 5),
            appended: 0,
        }
    }

    /// Appends the next line; returns its number.
    fn append(&mut self, workspace: &Workspace) -> usize {
        workspace.append_lines("sales.ndjson", [&self.lines[self.appended]]);
        self.appended += 1;
        self.appended
    }

    fn fold(&self) -> tidegate_tests::fold::Rows {
        Fold::sum(&["id"], &["n", "revenue"]).over(&self.lines[..self.appended])
    }
}

#[test]
fn each_fault_at_each_call_is_an_error_of_its_task_alone() {
    let (_server, silent) = silent_server();
    let cases: Vec<Case> = CALLS.iter().flat_map(|call| cases(call, &silent)).collect();
    let mut catalog = Catalog::new()
        .collection(SALES, &["/id"], sale_schema())
        .task(
            "acmeCo/healthy",
            Task::sqlite("healthy.db").table(SALES, "sales"),
        );
    for case in &cases {
        catalog = catalog.task(&case.task, faulty(&case.task, &case.fault));
    }
    let workspace = Workspace::with(&catalog);
    let mut lines = Lines::new("each_fault_at_each_call");
    lines.append(&workspace);
    let mut host = workspace.run().input(SALES, "sales.ndjson").start();
    for (index, case) in cases.iter().enumerate() {
        // Loads come once there is something to load.
        if index % 8 == 0 {
            healthy_goes_on(&workspace, &mut host, &mut lines);
            healthy_goes_on(&workspace, &mut host, &mut lines);
        }
        host.wait_for_line(&format!("{:?}", case.says), ALL_FAIL_MAX, |line| {
            case.says.iter().all(|words| line.contains(words))
        });
    }
    healthy_goes_on(&workspace, &mut host, &mut lines);
    host.signal("TERM");
    host.finish().ended_with(1);
    assert_eq!(
        table::read(&workspace.path("healthy.db"), "sales", &["id"]),
        lines.fold()
    );
}

#[test]
fn faults_of_validate_are_problems_of_the_catalog() {
    let (_server, silent) = silent_server();
    let cases = cases("validate", &silent);
    let mut catalog = Catalog::new().collection(SALES, &["/id"], sale_schema());
    for case in &cases {
        catalog = catalog.task(&case.task, faulty(&case.task, &case.fault));
    }
    let workspace = Workspace::with(&catalog);
    let finished = workspace
        .run()
        .until_caught_up()
        .start()
        .finish()
        .ended_with(1);
    for case in &cases {
        let said = |words: &String| finished.stderr.contains(words.as_str());
        assert!(
            said(&case.task) && said(&case.says[1]),
            "{:?} in\n{}",
            case.says,
            finished.stderr
        );
    }
}

/// Whatever fails once, before or after the call was made: in the end each table
/// is the fold, and its changes add up to the same.
#[test]
fn faults_that_pass_leave_no_trace() {
    let mut faults: BTreeMap<String, Value> = BTreeMap::new();
    for call in CALLS {
        for after in [false, true] {
            for kind in ["panic", "error", "hoard"] {
                let name = format!(
                    "acmeCo/{call}-{}-{kind}",
                    if after { "after" } else { "before" }
                );
                let fault = json!({
                    "call": call, "kind": kind, "after": after, "times": 2, "errorKind": "transient",
                });
                faults.insert(name, fault);
            }
        }
    }
    let mut catalog = Catalog::new().collection(SALES, &["/id"], sale_schema());
    for (name, fault) in &faults {
        let changes =
            json!({ "source": SALES, "resource": { "table": "changes", "delta_updates": true } });
        catalog = catalog.task(name, faulty(name, fault).binding(changes));
    }
    let workspace = Workspace::with(&catalog);
    let mut lines = Lines::new("faults_that_pass");
    let mut failures = 0;
    for _ in 0..3 {
        for _ in 0..20 {
            lines.append(&workspace);
        }
        let run = workspace
            .run()
            .input(SALES, "sales.ndjson")
            .until_caught_up();
        let finished = run.start().finish_within(ALL_FAIL_MAX).succeeded();
        failures += finished.stderr.matches("told to").count();
        for name in faults.keys() {
            let file = workspace.path(&file(name));
            assert_eq!(table::read(&file, "sales", &["id"]), lines.fold(), "{name}");
            let unequal = "WITH summed AS (SELECT id, sum(n) AS n FROM changes GROUP BY id)
                SELECT count(*) FROM summed FULL JOIN sales USING (id) WHERE summed.n IS NOT sales.n";
            assert_eq!(table::ask(&file, unequal), "0", "changes of {name}");
        }
    }
    assert!(
        failures >= faults.len(),
        "the faults did happen: {failures}"
    );
}

/// A log that floods is cut, and costs nobody anything else.
#[test]
fn a_flood_of_log_lines_is_cut() {
    let name = "acmeCo/flood";
    let fault = json!({ "call": "store", "kind": "flood" });
    let task = faulty(name, &fault).limits(json!({ "logRate": 100 }));
    let catalog = Catalog::new()
        .collection(SALES, &["/id"], sale_schema())
        .task(name, task);
    let workspace = Workspace::with(&catalog);
    workspace.write_lines("sales.ndjson", [r#"{"id":1,"n":1}"#]);
    let run = workspace
        .run()
        .input(SALES, "sales.ndjson")
        .until_caught_up();
    let shell = run.shell("export TIDEGATE_LOG=info");
    let finished = shell.start().finish().succeeded();
    let logged = finished.stderr.matches("faulty: line ").count();
    assert!(
        (1..2_000).contains(&logged),
        "{logged} lines of 10000 were logged"
    );
    assert!(
        finished.stderr.contains("lost") || finished.stderr.contains("dropped"),
        "it says so"
    );
    assert_eq!(
        table::ask(&workspace.path(&file(name)), "SELECT id FROM sales"),
        "1"
    );
}
