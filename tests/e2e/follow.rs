//! Input files are followed: no line lost, none doubled, whatever happens to the
//! process.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tidegate_tests::catalog::{Catalog, Task};
use tidegate_tests::document::{ORDERS, SALES, order_schema, orders, sale_schema, sales};
use tidegate_tests::fold::Fold;
use tidegate_tests::host::RUN_MAX;
use tidegate_tests::prefix::Prefix;
use tidegate_tests::seed;
use tidegate_tests::table;
use tidegate_tests::watch::Watch;
use tidegate_tests::workspace::{Run, Workspace};

/// The table of sales, which shows a line that was lost or doubled.
fn workspace() -> Workspace {
    let task = Task::sqlite("rows.db").table(SALES, "sales");
    Workspace::with(
        &Catalog::new()
            .collection(SALES, &["/id"], sale_schema())
            .task("acmeCo/rows", task),
    )
}

fn run(workspace: &Workspace) -> Run<'_> {
    workspace.run().input(SALES, "sales.ndjson")
}

fn fold() -> Fold {
    Fold::sum(&["id"], &["n", "revenue"])
}

#[track_caller]
fn holds(workspace: &Workspace, lines: &[String]) {
    assert_eq!(
        table::read(&workspace.path("rows.db"), "sales", &["id"]),
        fold().over(lines)
    );
}

/// Waits until the journal's lines have become rows.
fn wait_for_line(workspace: &Workspace, host: &mut tidegate_tests::host::Host, line: usize) {
    let file = workspace.path("rows.db");
    let sql = format!("SELECT count(*) FROM sales WHERE last = {line}");
    host.wait_until(&format!("line {line} is in the table"), RUN_MAX, || {
        table::try_ask(&file, &sql).is_ok_and(|count| count == "1")
    });
}

#[test]
fn lines_are_picked_up_once_over_runs_and_kills() {
    let mut random = seed::random("lines_are_picked_up_once");
    let lines = sales(&mut random, 400, 20);
    let workspace = workspace();
    let all: Arc<[String]> = lines.clone().into();
    let watch = Watch::start(
        &workspace.path("rows.db"),
        Prefix::new(all, fold()).check(&["sales"], &["id"]),
    );

    workspace.write_lines("sales.ndjson", &lines[..100]);
    let mut host = run(&workspace).start();
    wait_for_line(&workspace, &mut host, 100);
    workspace.append_lines("sales.ndjson", &lines[100..200]);
    wait_for_line(&workspace, &mut host, 200);
    host.kill();
    holds(&workspace, &lines[..200]);

    workspace.append_lines("sales.ndjson", &lines[200..300]);
    run(&workspace)
        .until_caught_up()
        .start()
        .finish()
        .succeeded();
    holds(&workspace, &lines[..300]);
    run(&workspace)
        .until_caught_up()
        .start()
        .finish()
        .succeeded();
    holds(&workspace, &lines[..300]);

    let mut host = run(&workspace).start();
    workspace.append_lines("sales.ndjson", &lines[300..]);
    wait_for_line(&workspace, &mut host, 400);
    host.signal("TERM");
    host.finish().succeeded();
    holds(&workspace, &lines);

    assert!(watch.finish().changes > 3, "the reader saw it grow");
    let read = workspace.on_data(&["read", SALES]).finish().succeeded();
    let journal: Vec<&str> = read.stdout.lines().collect();
    assert_eq!(
        journal, lines,
        "the journal holds each line once, in order, as it was written"
    );
}

#[test]
fn several_files_feed_one_collection() {
    let mut random = seed::random("several_files");
    let lines = sales(&mut random, 300, 20);
    let workspace = workspace();
    workspace.write_lines("one.ndjson", &lines[..100]);
    workspace.write_lines("two.ndjson", &lines[100..200]);
    for _ in 0..2 {
        let run = workspace
            .run()
            .input(SALES, "one.ndjson")
            .input(SALES, "two.ndjson");
        run.until_caught_up().start().finish().succeeded();
    }
    let sums = |count: usize| {
        let mut rows = fold().over(&lines[..count]);
        // Which of two files comes last is nobody's business.
        rows.values_mut().for_each(|row| drop(row.remove("last")));
        rows
    };
    let found = || {
        let mut rows = table::read(&workspace.path("rows.db"), "sales", &["id"]);
        rows.values_mut().for_each(|row| drop(row.remove("last")));
        rows
    };
    assert_eq!(found(), sums(200));
    workspace.append_lines("one.ndjson", &lines[200..]);
    workspace
        .run()
        .input(SALES, "one.ndjson")
        .until_caught_up()
        .start()
        .finish()
        .succeeded();
    assert_eq!(found(), sums(300));
}

#[test]
fn a_last_line_without_its_newline_waits_for_it() {
    let mut random = seed::random("a_last_line");
    let lines = sales(&mut random, 5, 3);
    let workspace = workspace();
    let (half, rest) = lines[1].split_at(10);
    workspace.append("sales.ndjson", &format!("{}\n{half}", lines[0]));
    let mut host = run(&workspace).start();
    wait_for_line(&workspace, &mut host, 1);
    workspace.append("sales.ndjson", &format!("{rest}\n{}", lines[2]));
    wait_for_line(&workspace, &mut host, 2);
    holds(&workspace, &lines[..2]);
    host.signal("TERM");
    host.finish().succeeded();
    holds(&workspace, &lines[..2]);

    run(&workspace)
        .until_caught_up()
        .start()
        .finish()
        .succeeded();
    holds(&workspace, &lines[..3]);
    workspace.append("sales.ndjson", &format!("\n{}\n{}", lines[3], lines[4]));
    run(&workspace)
        .until_caught_up()
        .start()
        .finish()
        .succeeded();
    holds(&workspace, &lines);
}

#[test]
fn a_line_that_grows_after_it_was_taken_is_an_error() {
    let workspace = workspace();
    workspace.write("sales.ndjson", r#"{"id":1,"n":1}"#);
    run(&workspace)
        .until_caught_up()
        .start()
        .finish()
        .succeeded();
    workspace.append("sales.ndjson", "   {\"id\":2}\n");
    let finished = run(&workspace).until_caught_up().start().finish();
    finished.ended_with(1).says(&["line 1", "sales.ndjson"]);
    holds(&workspace, &[r#"{"id":1,"n":1}"#.to_owned()]);
}

#[test]
fn a_truncated_or_replaced_file_is_an_error() {
    let mut random = seed::random("a_truncated_or_replaced");
    let lines = sales(&mut random, 20, 5);
    let workspace = workspace();
    workspace.write_lines("sales.ndjson", &lines[..10]);
    run(&workspace)
        .until_caught_up()
        .start()
        .finish()
        .succeeded();

    workspace.write_lines("sales.ndjson", &lines[..4]);
    let finished = run(&workspace).until_caught_up().start().finish();
    finished
        .ended_with(1)
        .says(&["sales.ndjson", "truncated", "10 lines"]);
    holds(&workspace, &lines[..10]);

    workspace.write_lines("sales.ndjson", &lines[10..]);
    let finished = run(&workspace).until_caught_up().start().finish();
    finished.ended_with(1).says(&["sales.ndjson", "replaced"]);
    holds(&workspace, &lines[..10]);

    // A copy with the same beginning is the same input.
    workspace.write_lines("copy.ndjson", &lines);
    std::fs::rename(
        workspace.path("copy.ndjson"),
        workspace.path("sales.ndjson"),
    )
    .expect("it is there");
    run(&workspace)
        .until_caught_up()
        .start()
        .finish()
        .succeeded();
    holds(&workspace, &lines);
}

#[test]
fn a_running_host_notices_truncation() {
    let mut random = seed::random("a_running_host");
    let lines = sales(&mut random, 10, 5);
    let workspace = workspace();
    workspace.write_lines("sales.ndjson", &lines);
    let mut host = run(&workspace).start();
    wait_for_line(&workspace, &mut host, 10);
    workspace.write_lines("sales.ndjson", &lines[..3]);
    host.wait_for_line(
        "that the input was truncated",
        Duration::from_secs(10),
        |line| line.contains("sales.ndjson") && line.contains("truncated"),
    );
    host.signal("TERM");
    host.finish().ended_with(1);
    holds(&workspace, &lines);
}

#[test]
fn a_bad_line_stops_its_input_alone_and_can_be_mended() {
    struct Case {
        name: &'static str,
        line: String,
        says: &'static str,
    }
    let case = |name, line: &str, says| Case {
        name,
        line: line.to_owned(),
        says,
    };
    let cases = [
        case("not JSON", r#"{"id":1,"status":"paid""#, ""),
        case("not an object", "[1,2]", ""),
        case("two documents", r#"{"id":1} {"id":2}"#, ""),
        case("not UTF-8 text", "{\"id\":1,\"status\":\"\\ud800\"}", ""),
        case("key missing", r#"{"status":"paid"}"#, "id"),
        case("key null", r#"{"id":null}"#, "id"),
        case("key of another type", r#"{"id":"1"}"#, "id"),
        case("schema violated", r#"{"id":1,"total":"much"}"#, "total"),
        Case {
            name: "over the size limit",
            line: format!(r#"{{"id":1,"status":"{}"}}"#, "x".repeat(16 << 20)),
            says: "bytes",
        },
    ];
    let mut random = seed::random("a_bad_line");
    let good = orders(&mut random, 30, 10);
    let others = sales(&mut random, 30, 10);
    let fold = Fold::last_write_wins(&["id"]);
    for case in cases {
        println!("{}", case.name);
        let task = Task::sqlite("rows.db")
            .table(ORDERS, "orders")
            .table(SALES, "sales");
        let workspace = Workspace::with(
            &Catalog::new()
                .collection(ORDERS, &["/id"], order_schema())
                .collection(SALES, &["/id"], sale_schema())
                .task("acmeCo/rows", task),
        );
        let run = || {
            let run = workspace
                .run()
                .input(ORDERS, "orders.ndjson")
                .input(SALES, "sales.ndjson");
            run.until_caught_up().start().finish()
        };
        let mut lines = good.clone();
        lines.insert(20, case.line);
        workspace.write_lines("orders.ndjson", &lines);
        workspace.write_lines("sales.ndjson", &others);
        let finished = run()
            .ended_with(1)
            .says(&["orders.ndjson", "line 21", case.says]);
        assert!(
            finished.stderr.len() < 10_000,
            "{}: the line itself is not repeated",
            case.name
        );
        let file = workspace.path("rows.db");
        assert_eq!(
            table::read(&file, "orders", &["id"]),
            fold.clone().over(&good[..20]),
            "{}",
            case.name
        );
        holds(&workspace, &others);

        workspace.write_lines("orders.ndjson", &good);
        run().succeeded();
        assert_eq!(
            table::read(&file, "orders", &["id"]),
            fold.clone().over(&good),
            "{}",
            case.name
        );
        holds(&workspace, &others);
    }
}

#[test]
fn values_that_are_not_plain_arrive_as_they_are() {
    let schema = json!({ "type": "object", "required": ["id"], "properties": { "id": { "type": "string" } } });
    let task = Task::sqlite("rows.db").table("acmeCo/things", "things");
    let catalog = Catalog::new()
        .collection("acmeCo/things", &["/id"], schema)
        .task("acmeCo/rows", task);
    let workspace = Workspace::with(&catalog);
    let lines = [
        r#"{"id":"","empty":true}"#,
        r#"{"id":"a\u0000b"}"#,
        r#"{"id":"\"quoted\" 'twice' -- ; DROP TABLE things"}"#,
        r#"{"id":"Zürich 東京 🌊","deep":{"a":[{"b":[[],{}]}]}}"#,
        r#"{"id":"numbers","n":[0.1,1e400,-0.0,12345678901234567890123,1.10]}"#,
    ];
    workspace.write_lines("things.ndjson", lines);
    let run = workspace
        .run()
        .input("acmeCo/things", "things.ndjson")
        .until_caught_up();
    run.start().finish().succeeded();
    let documents = table::open(&workspace.path("rows.db"))
        .and_then(|connection| table::documents(&connection, "things"))
        .expect("the table is there");
    for line in lines {
        assert!(
            documents.iter().any(|document| document == line),
            "{line} is not in {documents:?}"
        );
    }
}
