//! The commands that go through a host that runs.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidegate_tests::catalog::{Catalog, Task};
use tidegate_tests::document::{ORDERS, order_schema};
use tidegate_tests::host::{Finished, Host, RUN_MAX};
use tidegate_tests::table;
use tidegate_tests::workspace::Workspace;

const TASK: &str = "acmeCo/shop";

/// A task that a schedule holds for longer than any test takes.
fn workspace() -> Workspace {
    let task = Task::sqlite("shop.db")
        .table(ORDERS, "orders")
        .field("syncSchedule", json!({ "baseInterval": "4h" }));
    let catalog = Catalog::new().collection(ORDERS, &["/id"], order_schema());
    Workspace::with(&catalog.task(TASK, task))
}

fn serve(workspace: &Workspace) -> Host {
    let mut host = workspace.serve().start();
    host.wait_for_line("where it listens", RUN_MAX, |line| {
        line.contains("listening on http")
    });
    host
}

fn stop(host: Host) {
    host.signal("TERM");
    host.finish().succeeded();
}

fn call(workspace: &Workspace, arguments: &[&str]) -> Finished {
    workspace.on_data(arguments).finish()
}

fn tasks(workspace: &Workspace) -> Value {
    let listed = call(workspace, &["tasks", "--format", "json"]).succeeded();
    let listed: Value = serde_json::from_str(&listed.stdout).expect("it is JSON");
    listed["tasks"][0].clone()
}

#[test]
fn a_script_appends_syncs_and_reads() {
    let workspace = workspace();
    let host = serve(&workspace);
    let lines = [r#"{"id":1,"total":1.50}"#, r#"{"id":2}"#];
    workspace.write_lines("orders.ndjson", lines);
    let appended = call(&workspace, &["append", ORDERS, "orders.ndjson"]).succeeded();
    assert!(
        appended.stdout.starts_with("2 documents appended"),
        "{}",
        appended.stdout
    );
    let synced = call(
        &workspace,
        &["sync-now", "--task", TASK, "--through", "head"],
    )
    .succeeded();
    assert_eq!((synced.stdout.as_str(), synced.stderr.as_str()), ("", ""));
    let count = table::ask(&workspace.path("shop.db"), "SELECT count(*) FROM orders");
    assert_eq!(count, "2");
    let read = call(&workspace, &["read", ORDERS]).succeeded();
    assert_eq!(
        read.stdout.lines().collect::<Vec<_>>(),
        lines,
        "digit for digit"
    );
    // The same command by its other name, and each message a line.
    let raw = call(&workspace, &["raw", "sync-now", "--task", TASK, "--json"]).succeeded();
    let last = raw.stdout.lines().last().expect("there is a Done");
    assert!(last.starts_with(r#"{"result":{"done":{"#), "{last}");
    let told = call(&workspace, &["sync-now", "--task", TASK, "--progress"]).succeeded();
    told.says(&["nothing to commit"]);
    stop(host);
}

#[test]
fn a_bad_line_names_its_place_and_what_is_appended() {
    let workspace = workspace();
    let host = serve(&workspace);
    workspace.write_lines("bad.ndjson", [r#"{"id":1}"#, r#"{"id":"#]);
    let refused = call(&workspace, &["append", ORDERS, "bad.ndjson"]);
    refused
        .ended_with(1)
        .says(&["bad.ndjson: line 2", "0 documents are appended"]);
    let unknown = call(&workspace, &["append", "acmeCo/none", "bad.ndjson"]);
    unknown.ended_with(2).says(&["acmeCo/none"]);
    stop(host);
}

#[test]
fn sync_now_says_what_it_cannot_do() {
    let workspace = workspace();
    // Nobody ever served here.
    let nobody = call(&workspace, &["sync-now", "--task", TASK]);
    nobody
        .ended_with(1)
        .says(&["no host has served", "tidegate serve"]);
    let host = serve(&workspace);
    let unknown = call(&workspace, &["sync-now", "--task", "acmeCo/none"]);
    unknown
        .ended_with(2)
        .says(&["no task acmeCo/none", "tidegate tasks"]);
    let unclear = call(
        &workspace,
        &["sync-now", "--task", TASK, "--timeout", "soon"],
    );
    unclear.ended_with(2);
    call(&workspace, &["stop", "--task", TASK]).succeeded();
    let stopped = call(&workspace, &["sync-now", "--task", TASK]);
    stopped.ended_with(2).says(&["stopped", "tidegate start"]);
    stop(host);
    // The host is gone: that is not for ever, but for this long.
    let began = Instant::now();
    let gone = call(&workspace, &["sync-now", "--task", TASK, "--timeout", "1s"]);
    gone.ended_with(1).says(&["within 1s", "no host answers"]);
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn tasks_are_stopped_started_and_watched() {
    let workspace = workspace();
    let mut host = serve(&workspace);
    workspace.write_lines("orders.ndjson", [r#"{"id":1}"#]);
    call(&workspace, &["append", ORDERS, "orders.ndjson"]).succeeded();
    host.wait_until("it is held", RUN_MAX, || {
        tasks(&workspace)["heldBy"] == "SYNC_SCHEDULE"
    });
    let listed = call(&workspace, &["tasks"]).succeeded();
    assert!(
        listed.stdout.contains("held by its schedule for"),
        "{}",
        listed.stdout
    );
    let mut watch = workspace.on_data(&["watch", "--json"]);
    assert!(!watch.ends_within(Duration::from_millis(500)), "it follows");
    // A stop ends the hold, and the watch.
    call(&workspace, &["stop", "--task", TASK]).succeeded();
    let watched = watch.finish().succeeded();
    let last = watched.stdout.lines().last().expect("a task was shown");
    let last: Value = serde_json::from_str(last).expect("it is JSON");
    assert_eq!(last["result"]["task"]["state"], "STOPPED");
    assert_eq!(tasks(&workspace)["state"], "STOPPED");
    let count = table::ask(&workspace.path("shop.db"), "SELECT count(*) FROM orders");
    assert_eq!(count, "1");
    call(&workspace, &["start", "--task", TASK]).succeeded();
    host.wait_until("it runs again", RUN_MAX, || {
        tasks(&workspace)["state"] == "RUNNING"
    });
    let unknown = call(&workspace, &["start", "--task", "acmeCo/none"]);
    unknown.ended_with(2).says(&["acmeCo/none"]);
    stop(host);
    // Without a host the directory itself says how it went.
    let listed = call(&workspace, &["tasks"]).succeeded();
    assert!(
        listed.stdout.contains("committed 1 of 1 documents"),
        "{}",
        listed.stdout
    );
}

#[test]
fn catalogs_are_published_or_only_compared() {
    let workspace = workspace();
    let host = serve(&workspace);
    let task = || Task::sqlite("shop.db").table(ORDERS, "orders");
    let catalog = || Catalog::new().collection(ORDERS, &["/id"], order_schema());
    let more = catalog().task(TASK, task()).task(
        "acmeCo/more",
        Task::sqlite("more.db").table(ORDERS, "orders"),
    );
    workspace.catalog(&more);
    let dry = call(&workspace, &["publish", "flow.json", "--dry-run"]).succeeded();
    let tasks_of = dry.stdout.lines().filter(|line| !line.starts_with(' '));
    assert_eq!(
        tasks_of.collect::<Vec<_>>(),
        ["acmeCo/more: would be added", "acmeCo/shop: would change"]
    );
    assert_eq!(tasks(&workspace)["name"], TASK, "nothing was changed");
    let published = call(&workspace, &["publish", "flow.json"]).succeeded();
    assert_eq!(
        published.stdout,
        "acmeCo/more: added\nacmeCo/shop: changed\n"
    );
    assert_eq!(tasks(&workspace)["name"], "acmeCo/more");
    workspace.catalog(&catalog().task(TASK, task().field("syncSchedule", json!({}))));
    let refused = call(&workspace, &["publish", "flow.json"]).ended_with(1);
    assert_eq!(refused.stdout, "");
    refused.says(&["flow.json:", "error[", "nothing was changed"]);
    assert_eq!(tasks(&workspace)["name"], "acmeCo/more");
    let missing = call(&workspace, &["publish", "none.json"]);
    missing.ended_with(1).says(&["cannot read", "none.json"]);
    stop(host);
}

#[test]
fn tokens_open_what_they_say_and_no_more() {
    let workspace = workspace();
    call(&workspace, &["token"])
        .ended_with(1)
        .says(&["tidegate serve"]);
    let host = serve(&workspace);
    let all = call(&workspace, &["token"]).succeeded().stdout;
    let narrow = ["token", "--scope", "tasks:read", "--prefix", "acmeCo/other"];
    let narrow = call(&workspace, &narrow).succeeded().stdout;
    let with = |token: &str, arguments: &[&str]| {
        let arguments = [arguments, &["--token", token.trim()]].concat();
        call(&workspace, &arguments)
    };
    with(&all, &["sync-now", "--task", TASK]).succeeded();
    let listed = with(&narrow, &["tasks"]).succeeded();
    assert_eq!(listed.stdout, "", "no task is one of its names");
    let hidden = with(&narrow, &["watch", "--task", TASK]).ended_with(2);
    let missing = with(&narrow, &["watch", "--task", "acmeCo/none"]).ended_with(2);
    let hidden = hidden.stderr.replace(TASK, "X");
    assert_eq!(hidden, missing.stderr.replace("acmeCo/none", "X"));
    let refused = with(&narrow, &["sync-now", "--task", TASK]).ended_with(1);
    let refused = refused.says(&["tasks:sync"]);
    assert!(
        !refused.stderr.contains(narrow.trim()),
        "no token is ever shown"
    );
    with("nonsense", &["tasks"])
        .ended_with(1)
        .says(&["not one of this host"]);
    stop(host);
}

#[test]
fn the_command_line_completes_itself() {
    let workspace = Workspace::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = workspace
            .tidegate(["completions", shell])
            .finish()
            .succeeded();
        assert!(script.stdout.contains("sync-now"), "{shell}");
    }
}
