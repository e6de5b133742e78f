//! Holds, and what ends them: the guarantee of sync-now, with the real binary.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidegate_tests::api::Api;
use tidegate_tests::catalog::{Catalog, Task};
use tidegate_tests::document::{ORDERS, order_schema};
use tidegate_tests::host::{Host, RUN_MAX};
use tidegate_tests::seed;
use tidegate_tests::table;
use tidegate_tests::workspace::Workspace;

const TASK: &str = "acmeCo/foo/materialize-bar";

/// Callers share one commit, so they end together.
const TOGETHER: Duration = Duration::from_secs(1);

/// The commit of the slow connector.
const SLOW_COMMIT: Duration = Duration::from_secs(2);

fn schedule() -> Value {
    json!({ "baseInterval": "4h" })
}

fn catalog(task: Task) -> Catalog {
    Catalog::new()
        .collection(ORDERS, &["/id"], order_schema())
        .task(TASK, task)
}

fn numbered(from: usize, count: usize) -> String {
    let line = |id| format!("{{\"id\":{id},\"line\":{id}}}\n");
    (from..from + count).map(line).collect()
}

/// Starts the host, and waits until it takes calls.
fn serve(workspace: &Workspace) -> (Host, Api) {
    let mut host = workspace.serve().start();
    host.wait_for_line("where it listens", RUN_MAX, |line| {
        line.contains("listening on http")
    });
    (host, Api::of(&workspace.data_dir()))
}

fn append(workspace: &Workspace, name: &str, text: &str) {
    workspace.write(name, text);
    let appended = workspace.on_data(&["append", ORDERS, name]);
    appended.finish().succeeded();
}

fn count(workspace: &Workspace) -> String {
    let sql = "SELECT count(*) FROM orders";
    table::try_ask(&workspace.path("bar.db"), sql).unwrap_or_default()
}

/// Waits until a field of the task is a text.
fn wait_for(host: &mut Host, api: &Api, pointer: &str, value: &str) {
    host.wait_until(&format!("{pointer} is {value}"), RUN_MAX, || {
        api.task(TASK).pointer(pointer) == Some(&value.into())
    });
}

fn outcome(messages: &[Value]) -> String {
    let outcome = messages[0]["result"]["ack"]["outcome"].as_str();
    outcome.expect("an Ack comes first").to_owned()
}

fn slow_task() -> Task {
    let slow = json!({
        "path": "bar.db",
        "fault": {
            "kind": "slow",
            "call": "start-commit",
            "milliseconds": SLOW_COMMIT.as_millis() as u64,
        },
    });
    Task::new("materialize-faulty", slow)
        .table(ORDERS, "orders")
        .field("syncSchedule", schedule())
}

/// Twelve callers at once: eight commands and four REST calls. Returns when each
/// of them ended, and what each of them met.
fn twelve_callers(workspace: &Workspace, api: &Api, head: bool) -> Vec<(Instant, String)> {
    thread::scope(|scope| {
        let mut callers = Vec::new();
        for _ in 0..8 {
            callers.push(scope.spawn(move || {
                let mut command = vec!["sync-now", "--task", TASK, "--json"];
                if head {
                    command.extend(["--through", "head"]);
                }
                let finished = workspace.on_data(&command).finish().succeeded();
                let messages: Vec<Value> = finished
                    .stdout
                    .lines()
                    .map(|line| serde_json::from_str(line).expect("each line is a message"))
                    .collect();
                (Instant::now(), outcome(&messages))
            }));
        }
        for _ in 0..4 {
            let api = api.clone();
            callers.push(scope.spawn(move || {
                let messages = api.sync_now(TASK, head).expect("the call is done");
                (Instant::now(), outcome(&messages))
            }));
        }
        let joined = callers.into_iter().map(|caller| caller.join());
        joined
            .map(|ended| ended.expect("no caller panics"))
            .collect()
    })
}

#[test]
fn twelve_callers_of_a_held_transaction_share_one_commit() {
    let workspace = Workspace::with(&catalog(slow_task()));
    let (mut host, api) = serve(&workspace);
    append(&workspace, "orders.ndjson", &numbered(0, 5_000));
    wait_for(&mut host, &api, "/readDocsTotal", "5000");
    wait_for(&mut host, &api, "/heldBy", "SYNC_SCHEDULE");
    let held_until = api.task(TASK)["status"]["heldUntil"].clone();
    assert!(held_until.is_string(), "it says until when: {held_until}");
    assert_eq!(count(&workspace), "0");

    let ended = twelve_callers(&workspace, &api, false);
    let times = || ended.iter().map(|(at, _)| *at);
    let spread = times().max().unwrap() - times().min().unwrap();
    assert!(spread < TOGETHER, "they ended {spread:?} apart");
    let mut outcomes: Vec<&str> = ended.iter().map(|(_, outcome)| outcome.as_str()).collect();
    outcomes.sort_unstable();
    let mut expected = vec!["ALREADY_CLOSING"; 11];
    expected.push("HELD_COLLAPSED");
    assert_eq!(outcomes, expected);
    assert_eq!(count(&workspace), "5000");
    assert_eq!(api.task(TASK)["transactionsTotal"], "1", "one commit");

    // There is nothing to do, which is no error.
    let idle = api.sync_now(TASK, false).expect("the call is done");
    assert_eq!(outcome(&idle), "IDLE");
    let quiet = workspace.on_data(&["sync-now", "--task", TASK]).finish();
    let quiet = quiet.succeeded();
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
    stop(host);
}

#[test]
fn through_head_covers_what_was_appended_and_is_not_read() {
    let workspace = Workspace::with(&catalog(slow_task()));
    let (host, api) = serve(&workspace);
    append(&workspace, "orders.ndjson", &numbered(0, 5_000));
    twelve_callers(&workspace, &api, true);
    assert_eq!(count(&workspace), "5000");
    stop(host);
}

/// A connector that paces by itself, half an hour by default.
#[test]
fn a_connectors_own_delay_ends_with_a_call() {
    let config = json!({ "path": "bar.db" });
    let task = Task::new("materialize-faulty", config).table(ORDERS, "orders");
    let workspace = Workspace::with(&catalog(task));
    let (mut host, api) = serve(&workspace);
    for commit in 0..5 {
        append(&workspace, "orders.ndjson", &numbered(commit, 1));
        let called = Instant::now();
        api.sync_now(TASK, true).expect("the call is done");
        assert!(
            called.elapsed() < SLOW_COMMIT,
            "call {commit} took {:?}",
            called.elapsed()
        );
        assert_eq!(count(&workspace), (commit + 1).to_string());
    }
    append(&workspace, "orders.ndjson", &numbered(5, 1));
    wait_for(&mut host, &api, "/heldBy", "CONNECTOR");
    let called = Instant::now();
    let finished = workspace.on_data(&["sync-now", "--task", TASK]).finish();
    finished.succeeded();
    assert!(called.elapsed() < SLOW_COMMIT, "{:?}", called.elapsed());
    assert_eq!(count(&workspace), "6");
    stop(host);
}

/// The same connector does not pace where a sync schedule does.
#[test]
fn a_connector_does_not_pace_a_task_that_has_a_schedule() {
    let task = Task::new("materialize-faulty", json!({ "path": "bar.db" }))
        .table(ORDERS, "orders")
        .field("syncSchedule", json!({ "baseInterval": "1s" }));
    let workspace = Workspace::with(&catalog(task));
    let (mut host, api) = serve(&workspace);
    for commit in 0..6 {
        append(&workspace, "orders.ndjson", &numbered(commit, 1));
        let committed = (commit + 1).to_string();
        host.wait_until("the schedule has committed", RUN_MAX, || {
            let task = api.task(TASK);
            assert_ne!(task["heldBy"], "CONNECTOR", "{task}");
            task["transactionsTotal"] == *committed
                && task.pointer("/status/tailPhase") == Some(&"DONE".into())
        });
    }
    assert_eq!(count(&workspace), "6");
    stop(host);
}

/// C07: a changed catalog ends a hold within seconds; nothing is lost or doubled.
#[test]
fn c07_a_changed_schedule_ends_the_hold_of_the_old_one() {
    let task = || Task::sqlite("bar.db").table(ORDERS, "orders");
    let other = || {
        let other = Task::sqlite("other.db").table(ORDERS, "orders");
        other.field("syncSchedule", schedule())
    };
    let catalog = |task| catalog(task).task("acmeCo/other", other());
    let held = catalog(task().field("syncSchedule", schedule()));
    let workspace = Workspace::with(&held);
    let (mut host, api) = serve(&workspace);
    append(&workspace, "orders.ndjson", &numbered(0, 10));
    wait_for(&mut host, &api, "/heldBy", "SYNC_SCHEDULE");
    assert_eq!(count(&workspace), "0");

    // A catalog with an error changes nothing.
    let broken = catalog(task().field("syncSchedule", json!({ "baseInterval": "soon" })));
    workspace.catalog(&broken);
    let refused = workspace.on_data(&["publish", "flow.json"]).finish();
    refused.ended_with(1).says(&["soon"]);
    assert_eq!(api.task(TASK)["heldBy"], "SYNC_SCHEDULE");

    workspace.catalog(&catalog(task()));
    let published = Instant::now();
    workspace
        .on_data(&["publish", "flow.json"])
        .finish()
        .succeeded();
    host.wait_until(
        "the table has the documents",
        Duration::from_secs(5),
        || count(&workspace) == "10",
    );
    assert!(published.elapsed() < Duration::from_secs(5));
    append(&workspace, "orders.ndjson", &numbered(10, 10));
    host.wait_until("the new catalog holds nothing", RUN_MAX, || {
        count(&workspace) == "20"
    });
    let other = api.task("acmeCo/other");
    assert_eq!(
        other["heldBy"], "SYNC_SCHEDULE",
        "it did not change: {other}"
    );
    assert_eq!(other.get("transactionsTotal"), None, "{other}");
    stop(host);
}

/// The session that a call waits for dies; the command calls again by itself, and
/// a caller of the API is told that it may.
#[test]
fn a_call_outlives_the_session_that_it_waits_for() {
    let config = json!({
        "path": "bar.db",
        "syncSchedule": { "syncFrequency": "0s" },
        "fault": { "kind": "panic", "call": "start-commit", "times": 2 },
    });
    let task = Task::new("materialize-faulty", config)
        .table(ORDERS, "orders")
        .field("syncSchedule", schedule());
    let workspace = Workspace::with(&catalog(task));
    let (mut host, api) = serve(&workspace);
    append(&workspace, "orders.ndjson", &numbered(0, 10));
    wait_for(&mut host, &api, "/heldBy", "SYNC_SCHEDULE");
    let refused = api.sync_now(TASK, false).expect_err("the session dies");
    assert!(refused.contains("UNAVAILABLE"), "{refused}");
    let finished = workspace.on_data(&["sync-now", "--task", TASK]).finish();
    assert_eq!(finished.succeeded().stdout, "");
    assert_eq!(count(&workspace), "10");
    stop(host);
}

/// C01, C02, C03: a host holds until the instant that `schedule explain` prints,
/// whatever the grid, the windows and the zone.
#[test]
fn holds_last_until_the_instants_that_are_explained() {
    let schedules = [
        json!({ "baseInterval": "15m" }),
        json!({ "baseInterval": "7h" }),
        json!({ "baseInterval": "6h", "timezone": "Europe/Berlin",
            "windows": [{ "interval": "10m", "start": "02:15", "end": "18:00" }] }),
        json!({ "baseInterval": "6h", "timezone": "America/Santiago",
            "windows": [{ "interval": "10m", "start": "00:15", "end": "08:00" }] }),
        json!({ "baseInterval": "8h", "timezone": "Pacific/Auckland",
            "windows": [{ "interval": "5m", "start": "22:00", "end": "02:00",
                "days": ["Mon", "Tue", "Wed", "Thu", "Fri"] }] }),
        json!({ "cron": "0 2 * * *", "timezone": "Asia/Tokyo" }),
    ];
    let name = |index: usize| format!("acmeCo/held-{index}");
    let mut catalog = Catalog::new().collection(ORDERS, &["/id"], order_schema());
    for (index, schedule) in schedules.iter().enumerate() {
        let task = Task::sqlite(&format!("{index}.db"))
            .table(ORDERS, "orders")
            .field("syncSchedule", schedule.clone());
        catalog = catalog.task(&name(index), task);
    }
    let workspace = Workspace::with(&catalog);
    let (mut host, api) = serve(&workspace);
    append(&workspace, "orders.ndjson", &numbered(0, 1));
    let held_until = |task: &str| {
        let held = api.task(task).pointer("/status/heldUntil").cloned();
        held.and_then(|it| it.as_str().map(str::to_owned))
    };
    let explained = |task: &str| {
        let options = ["schedule", "explain", "flow.json", "--task", task];
        let more = ["--count", "1", "--format", "json"];
        let explained = workspace.tidegate(options.into_iter().chain(more));
        let answer: Value = serde_json::from_str(&explained.finish().succeeded().stdout)
            .expect("the answer is JSON");
        let at = answer["fires"][0]["at"].as_str().map(str::to_owned);
        at.expect("it fires")
    };
    for index in 0..schedules.len() {
        let task = name(index);
        // Looks again if an instant passes between the one look and the other.
        host.wait_until(&format!("{task} holds as explained"), RUN_MAX, || {
            held_until(&task).is_some_and(|until| until == explained(&task))
        });
    }
    stop(host);
}

/// Unknown and stopped tasks, and calls that take too long, are failures that say
/// what to do.
#[test]
fn calls_that_cannot_be_kept_fail_with_a_hint() {
    let task = Task::new(
        "materialize-faulty",
        json!({
            "path": "bar.db",
            "fault": { "kind": "slow", "call": "start-commit", "milliseconds": 60_000 },
        }),
    );
    let workspace = Workspace::with(&catalog(task.table(ORDERS, "orders")));
    let (host, _) = serve(&workspace);
    let unknown = workspace.on_data(&["sync-now", "--task", "acmeCo/nothing"]);
    unknown
        .finish()
        .ended_with(2)
        .says(&["acmeCo/nothing", "tidegate tasks"]);
    append(&workspace, "orders.ndjson", &numbered(0, 1));
    let late = [
        "sync-now",
        "--task",
        TASK,
        "--through",
        "head",
        "--timeout",
        "300ms",
    ];
    let late = workspace.on_data(&late).finish();
    late.ended_with(1).says(&["300ms"]);
    let stop_it = workspace.on_data(&["stop", "--task", TASK]);
    stop_it.finish();
    let stopped = workspace.on_data(&["sync-now", "--task", TASK]).finish();
    stopped
        .ended_with(2)
        .says(&["tidegate start --task acmeCo/foo/materialize-bar"]);
    drop(host);
}

/// Calls that returned are kept to, whenever the host is killed.
#[test]
fn a_call_that_returned_is_never_followed_by_a_query_that_misses_a_document() {
    const ROUNDS: usize = 200;
    let task = Task::sqlite("bar.db")
        .table(ORDERS, "orders")
        .field("syncSchedule", schedule());
    let workspace = Workspace::with(&catalog(task));
    let mut random = seed::random("a_call_that_returned_is_never");
    let (mut host, mut api) = serve(&workspace);
    let mut appended = 0;
    for round in 0..ROUNDS {
        let documents = random.usize(1..50);
        let body = numbered(appended, documents);
        let route = format!("/v1/collections/{ORDERS}:append");
        let answer = api.post(&route, &body);
        // One that was killed may have appended: only what was acknowledged counts.
        let acknowledged = answer.is_ok_and(|answer| answer.contains("appendedDocs"));
        if acknowledged {
            appended += documents;
        }
        match random.usize(0..4) {
            // Hangs up right away.
            0 => {
                let options = ["sync-now", "--task", TASK, "--no-wait"];
                workspace.on_data(&options).finish().succeeded();
            }
            // The host is killed while the call waits, and started again.
            1 => {
                let options = ["sync-now", "--task", TASK, "--through", "head"];
                let mut call = workspace.on_data(&options);
                call.ends_within(Duration::from_millis(random.u64(0..40)));
                host.kill();
                (host, api) = serve(&workspace);
                call.finish().succeeded();
                covers(&workspace, appended, round);
            }
            _ => {
                let pause = Duration::from_millis(random.u64(0..20));
                host.wait_until("a moment has passed", RUN_MAX, {
                    let since = Instant::now();
                    move || since.elapsed() >= pause
                });
                api.sync_now(TASK, true).expect("the call is done");
                covers(&workspace, appended, round);
            }
        }
    }
    stop(host);
}

/// Requires every document that was acknowledged to the appender. Documents have
/// one key each, so that doubled ones could not hide; they replace each other.
#[track_caller]
fn covers(workspace: &Workspace, appended: usize, round: usize) {
    let sql = format!("SELECT count(*) FROM orders WHERE id < {appended}");
    let found = table::ask(&workspace.path("bar.db"), &sql);
    assert_eq!(found, appended.to_string(), "round {round}");
}

fn stop(host: Host) {
    host.signal("TERM");
    host.finish().succeeded();
}
