//! `append`, `read`, `tasks`, `connector inspect`, and one host a data directory.

use std::fs;

use serde_json::json;
use tidegate_tests::catalog::{Catalog, Task};
use tidegate_tests::document::{ORDERS, order_schema};
use tidegate_tests::host::{Host, RUN_MAX};
use tidegate_tests::program;
use tidegate_tests::table;
use tidegate_tests::workspace::Workspace;

fn workspace() -> Workspace {
    let task = Task::sqlite("rows.db").table(ORDERS, "orders");
    let catalog = Catalog::new().collection(ORDERS, &["/id"], order_schema());
    Workspace::with(&catalog.task("acmeCo/rows", task))
}

/// Starts a host that has a row, so that it surely runs.
fn running(workspace: &Workspace) -> Host {
    workspace.write_lines("orders.ndjson", [r#"{"id":1}"#]);
    let mut host = workspace.run().input(ORDERS, "orders.ndjson").start();
    let file = workspace.path("rows.db");
    host.wait_until("a row is there", RUN_MAX, || {
        table::try_ask(&file, "SELECT id FROM orders").is_ok_and(|id| id == "1")
    });
    host
}

#[test]
fn appended_documents_are_read_back_and_materialized() {
    let workspace = workspace();
    let lines = [
        r#"{"id":1,"status":"a"}"#,
        r#"{"id":2}"#,
        r#"{"id":1,"status":"b"}"#,
    ];
    workspace.write_lines("orders.ndjson", lines);
    let appended = workspace
        .on_data(&["append", ORDERS, "orders.ndjson"])
        .finish()
        .succeeded();
    assert!(
        appended.stdout.contains("3 documents appended"),
        "{}",
        appended.stdout
    );
    let read = || {
        workspace
            .on_data(&["read", ORDERS])
            .finish()
            .succeeded()
            .stdout
    };
    assert_eq!(read().lines().collect::<Vec<_>>(), lines);
    workspace
        .run()
        .until_caught_up()
        .start()
        .finish()
        .succeeded();
    let rows = "SELECT id, status FROM orders ORDER BY id";
    assert_eq!(table::ask(&workspace.path("rows.db"), rows), "1|b\n2|NULL");

    // Appending is not following: the same file again is the same documents again.
    workspace
        .on_data(&["append", ORDERS, "orders.ndjson"])
        .finish()
        .succeeded();
    assert_eq!(read().lines().count(), 6);
    workspace
        .run()
        .until_caught_up()
        .start()
        .finish()
        .succeeded();
    assert_eq!(table::ask(&workspace.path("rows.db"), rows), "1|b\n2|NULL");

    let tasks = workspace.on_data(&["tasks"]).finish().succeeded().stdout;
    assert!(tasks.contains("acmeCo/rows"), "{tasks}");
    assert!(tasks.contains("6 of 6 documents"), "{tasks}");
}

#[test]
fn append_reads_standard_input() {
    let workspace = workspace();
    let script = format!(
        "printf '{{\"id\":7}}\\n{{\"id\":8}}' | '{}' append {ORDERS} --data-dir data",
        program::tidegate().display()
    );
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script]).current_dir(workspace.path(""));
    Host::start(shell).finish().succeeded();
    let read = workspace.on_data(&["read", ORDERS]).finish().succeeded();
    assert_eq!(read.stdout, "{\"id\":7}\n{\"id\":8}\n");
}

#[test]
fn append_takes_all_of_a_file_or_says_what_it_took() {
    let workspace = workspace();
    workspace
        .run()
        .until_caught_up()
        .start()
        .finish()
        .succeeded();
    workspace.write_lines(
        "orders.ndjson",
        [r#"{"id":1}"#, r#"{"id":2}"#, r#"{"status":"x"}"#],
    );
    let finished = workspace
        .on_data(&["append", ORDERS, "orders.ndjson"])
        .finish();
    finished.ended_with(1).says(&["orders.ndjson", "3", "id"]);
}

#[test]
fn a_data_directory_has_one_host() {
    let workspace = workspace();
    let host = running(&workspace);
    let holder = format!("{}", host.id());
    let others = [
        workspace.run().until_caught_up().start(),
        workspace.on_data(&["append", ORDERS, "orders.ndjson"]),
        workspace.on_data(&["read", ORDERS]),
        workspace.on_data(&["tasks"]),
    ];
    for other in others {
        other.finish().ended_with(1).says(&["in use", &holder]);
    }
    host.signal("TERM");
    host.finish().succeeded();
    let read = workspace.on_data(&["read", ORDERS]).finish().succeeded();
    assert_eq!(
        read.stdout, "{\"id\":1}\n",
        "what was refused appended nothing"
    );
}

#[test]
fn a_killed_host_leaves_no_lock_behind() {
    let workspace = workspace();
    running(&workspace).kill();
    workspace.on_data(&["tasks"]).finish().succeeded();
    workspace
        .run()
        .until_caught_up()
        .start()
        .finish()
        .succeeded();
}

#[test]
fn what_is_not_there_is_said() {
    let workspace = workspace();
    workspace
        .on_data(&["tasks"])
        .finish()
        .ended_with(1)
        .says(&["no data directory", "data"]);
    workspace
        .on_data(&["read", ORDERS])
        .finish()
        .ended_with(1)
        .says(&["no data directory"]);
    assert!(!workspace.data_dir().exists(), "asking makes nothing");
    workspace
        .on_data(&["append", ORDERS, "nothing.ndjson"])
        .finish()
        .ended_with(1)
        .says(&["nothing.ndjson"]);
    workspace
        .run()
        .until_caught_up()
        .start()
        .finish()
        .succeeded();
    let read = workspace.on_data(&["read", "acmeCo/nothing"]).finish();
    read.ended_with(1).says(&["acmeCo/nothing"]);
}

#[test]
fn inspect_says_what_a_connector_is_and_wants() {
    let workspace = Workspace::new();
    for component in ["materialize-sqlite", "materialize-faulty"] {
        let file = program::connectors().join(format!("{component}.wasm"));
        let arguments = ["connector".into(), "inspect".into(), file.into_os_string()];
        let shown = workspace.tidegate(arguments).finish().succeeded().stdout;
        for word in ["tidegate:connector", "0.1.0", "config", "resource"] {
            assert!(
                shown.contains(word),
                "{component}: no \"{word}\" in\n{shown}"
            );
        }
    }
    let file = program::connectors().join("materialize-sqlite.wasm");
    let arguments = ["connector".into(), "inspect".into(), file.into_os_string()];
    let shown = workspace.tidegate(arguments).finish().succeeded().stdout;
    for word in ["sqlite", "/path"] {
        assert!(shown.contains(word), "no \"{word}\" in\n{shown}");
    }
}

#[test]
fn compiled_connectors_are_kept_in_the_data_directory_or_where_one_says() {
    let workspace = workspace();
    let run = |data_dir: &str| {
        let data_dir = workspace.path(data_dir);
        workspace.run().data_dir(&data_dir).until_caught_up()
    };
    let holds_something = |path: &str| {
        let entries = fs::read_dir(workspace.path(path));
        entries.is_ok_and(|mut entries| entries.next().is_some())
    };
    let unset = run("one").shell("unset TIDEGATE_CACHE");
    unset.start().finish().succeeded();
    assert!(holds_something("one/cache"));
    fs::remove_file(workspace.path("rows.db")).expect("it was made");
    let named = run("two").option("--cache").option("named");
    named.start().finish().succeeded();
    assert!(holds_something("named") && !holds_something("two/cache"));
}

#[test]
fn usage_errors_end_with_2() {
    let workspace = workspace();
    for arguments in [
        &["run"][..],
        &["run", "flow.json", "--input", "acmeCo/orders"],
        &["run", "flow.json", "--input", "=orders.ndjson"],
        &["run", "flow.json", "--no-such-option"],
        &["append", ORDERS, "--published-at", "yesterday"],
        &["no-such-command"],
    ] {
        let finished = workspace.tidegate(arguments.iter().copied()).finish();
        assert!(!finished.stderr.is_empty(), "{} says why", finished.command);
        finished.ended_with(2);
    }
    assert!(
        !workspace.data_dir().exists(),
        "a usage error makes nothing"
    );
    workspace.tidegate(["--help"]).finish().succeeded();
    workspace.tidegate(["--version"]).finish().succeeded();
}

#[test]
fn a_file_in_place_of_the_data_directory_is_refused() {
    let workspace = workspace();
    workspace.write("data", "notes");
    workspace
        .run()
        .until_caught_up()
        .start()
        .finish()
        .ended_with(1)
        .says(&["data"]);
    let foreign = workspace.path("thesis");
    std::fs::create_dir(&foreign).expect("it is new");
    workspace.write("thesis/chapter.tex", "years of work");
    let run = workspace.run().data_dir(&foreign).until_caught_up();
    run.start()
        .finish()
        .ended_with(1)
        .says(&["thesis", "not a data directory"]);
    assert_eq!(
        std::fs::read_dir(&foreign).expect("it is there").count(),
        1,
        "nothing was written"
    );
}

#[test]
fn a_newer_data_directory_is_left_alone() {
    let workspace = workspace();
    workspace
        .run()
        .until_caught_up()
        .start()
        .finish()
        .succeeded();
    workspace.write("data/format", "4711\n");
    let refused = |host: Host| {
        drop(
            host.finish()
                .ended_with(1)
                .says(&["4711", "at least as new"]),
        )
    };
    refused(workspace.run().until_caught_up().start());
    refused(workspace.on_data(&["tasks"]));
    workspace.write("data/format", "1\n");
    workspace
        .run()
        .until_caught_up()
        .start()
        .finish()
        .succeeded();
}

#[test]
fn documents_can_be_published_in_the_past() {
    let task = Task::sqlite("rows.db").binding(json!({
        "source": { "name": ORDERS, "notBefore": "2025-01-01T00:00:00Z", "notAfter": "2025-12-31T00:00:00Z" },
        "resource": { "table": "orders" },
    }));
    let catalog = Catalog::new()
        .collection(ORDERS, &["/id"], order_schema())
        .task("acmeCo/rows", task);
    let workspace = Workspace::with(&catalog);
    for (id, at) in [
        (1, "2024-12-31T23:59:59Z"),
        (2, "2025-06-01T00:00:00+02:00"),
        (3, "2026-01-01T00:00:00Z"),
    ] {
        workspace.write_lines("orders.ndjson", [format!(r#"{{"id":{id}}}"#)]);
        let append = ["append", ORDERS, "orders.ndjson", "--published-at", at];
        workspace.on_data(&append).finish().succeeded();
    }
    workspace
        .run()
        .until_caught_up()
        .start()
        .finish()
        .succeeded();
    assert_eq!(
        table::ask(&workspace.path("rows.db"), "SELECT id FROM orders"),
        "2"
    );
}
