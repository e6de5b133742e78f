//! `materialize-postgres` on a real PostgreSQL with its default, durable settings.
//!
//! The server is each test's own; what the tables hold is read with `psql`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_tests::catalog::{Catalog, Task};
use tidegate_tests::certificates::Certificates;
use tidegate_tests::document::{ORDERS, SALES, order_schema, orders, sale_schema, sales};
use tidegate_tests::fold::{Fold, Row, Rows, key_of, row};
use tidegate_tests::host::{Finished, RUN_MAX};
use tidegate_tests::postgres::{DATABASE, PASSWORD, Server, USER, give_away};
use tidegate_tests::program::repository;
use tidegate_tests::seed;
use tidegate_tests::workspace::Workspace;

const TASK: &str = "acmeCo/rows";

/// How often a host is killed.
const KILLS: usize = 30;

/// How often the server ends our sessions.
const TERMINATIONS: usize = 15;

/// In which of those rounds the server crashes.
const CRASHES: [usize; 2] = [4, 9];

/// A host that lost a session pauses before the next one, longer each time.
const RETRIES_MAX: Duration = Duration::from_secs(180);

/// Ends our sessions, and waits until they have ended.
const TERMINATE: &str = "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity
    WHERE application_name = 'tidegate'";

const SESSIONS: &str = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tidegate'";

/// Deltas that do not add up to the row of the other binding.
const UNEQUAL: &str = "WITH summed AS (SELECT id, sum(n) AS n FROM changes GROUP BY id)
    SELECT count(*) FROM summed FULL JOIN sums USING (id) WHERE summed.n IS DISTINCT FROM sums.n";

fn config(server: &Server) -> Value {
    json!({
        "address": server.address(), "user": USER, "password": PASSWORD, "database": DATABASE,
    })
}

fn task(server: &Server) -> Task {
    Task::new("materialize-postgres", config(server))
}

/// Returns a catalog with sales as sums, and as changes.
fn sums(server: &Server) -> Catalog {
    let changes =
        json!({ "source": SALES, "resource": { "table": "changes", "delta_updates": true } });
    let task = task(server).table(SALES, "sums").binding(changes);
    Catalog::new()
        .collection(SALES, &["/id"], sale_schema())
        .task(TASK, task)
}

/// Applies the catalog, and then makes each commit linger between the rows and the
/// checkpoint. That takes a millisecond otherwise, which nobody hits by chance.
fn linger_in_commits(server: &Server, workspace: &Workspace) {
    workspace.append_lines("sales.ndjson", [""; 0]);
    let run = workspace.run().input(SALES, "sales.ndjson");
    run.until_caught_up().start().finish().succeeded();
    server.ask(
        "CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql
            AS 'BEGIN PERFORM pg_sleep(0.1); RETURN NEW; END';
        CREATE TRIGGER linger BEFORE UPDATE ON tidegate_checkpoints
            FOR EACH ROW EXECUTE FUNCTION linger()",
    );
}

fn sums_fold() -> Fold {
    Fold::sum(&["id"], &["n", "revenue"])
}

/// Reads the documents of a table whose key is `key`.
#[track_caller]
fn read(server: &Server, table: &str, key: &[&str]) -> Rows {
    let key: Vec<String> = key.iter().map(|&name| name.to_owned()).collect();
    let documents = server.ask(&format!("SELECT flow_document FROM {table}"));
    let mut rows = BTreeMap::new();
    for document in documents.lines() {
        let document: Row = row(document);
        let key = key_of(&document, &key);
        let twice = rows.insert(key.clone(), document);
        assert_eq!(twice, None, "{table} holds two rows of the key {key}");
    }
    rows
}

#[test]
fn the_quickstart_s_tables_are_what_its_files_come_to() {
    let server = Server::start();
    let workspace = Workspace::new();
    let example = |file: &str| {
        let content = fs::read_to_string(repository().join("examples/quickstart").join(file));
        content.expect("the quickstart is in the repository")
    };
    for file in ["orders.ndjson", "sales.ndjson"] {
        workspace.write(file, example(file));
    }
    let catalog = example("flow.yaml")
        .replace("materialize-sqlite", "materialize-postgres")
        .replace("{ path: shop.db }", &config(&server).to_string());
    workspace.write("flow.yaml", catalog);
    let run = || {
        let run = workspace.run().catalogs(&["flow.yaml"]);
        let run = run.input("acmeCo/orders", "orders.ndjson");
        let run = run.input("acmeCo/sales", "sales.ndjson");
        run.until_caught_up().start().finish().succeeded()
    };
    let orders = Fold::last_write_wins(&["id"]).hard_delete();
    let orders = orders.over(example("orders.ndjson").lines());
    let sales = Fold::sum(&["product"], &["units", "revenue"]);
    let sales = sales.over(example("sales.ndjson").lines());
    let finished = run();
    assert!(finished.stdout.contains("6,000 documents read"));
    for _ in 0..2 {
        assert_eq!(read(&server, "orders", &["id"]), orders);
        assert_eq!(read(&server, "sales", &["product"]), sales);
        let finished = run();
        assert!(
            finished.stdout.contains(" 0 documents read, 0 rows stored"),
            "{}",
            finished.stdout
        );
    }
    // Columns say what the documents say.
    for (table, columns) in [
        ("orders", &["id", "customer", "status", "total"][..]),
        ("sales", &["product", "units", "revenue"]),
    ] {
        for column in columns {
            let unequal = format!(
                "SELECT count(*) FROM {table}
                WHERE to_jsonb({column}) IS DISTINCT FROM flow_document::jsonb->'{column}'"
            );
            assert_eq!(server.ask(&unequal), "0", "{table}.{column}");
        }
    }
}

#[test]
fn numbers_and_text_arrive_as_they_were_sent() {
    let schema = json!({
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": { "type": "integer" },
            "n": { "type": "number" },
            "s": { "type": "string" },
            "t": { "type": "string", "format": "date-time" },
            "o": { "type": "object" },
        },
    });
    let server = Server::start();
    let collection = "acmeCo/values";
    let binding = json!({
        "source": collection, "resource": { "table": "rows" },
        "fields": { "recommended": true, "include": { "o": {} } },
    });
    let catalog = Catalog::new()
        .collection(collection, &["/id"], schema)
        .task(TASK, task(&server).binding(binding));
    let workspace = Workspace::with(&catalog);
    let run = |lines: &[&str]| {
        workspace.append_lines("lines.ndjson", lines);
        let run = workspace.run().input(collection, "lines.ndjson");
        run.until_caught_up().start().finish()
    };
    run(&[
        r#"{"id":9007199254740993,"n":0.1,"s":"a\u0000b","t":"2026-06-23 00:15:23.918411+00:00"}"#,
        r#"{"id":9007199254740992,"n":0.1234567890123456789,"s":"\\u0000","t":"2025-11-29t01:05:28z"}"#,
        r#"{"id":340282366920938463463374607431768211457,"n":1e40,"o":{"x":"\u0000"}}"#,
    ])
    .succeeded();
    run(&[r#"{"id":9007199254740993,"n":12345678901234567890,"s":"c"}"#]).succeeded();
    let rows = "SET timezone = 'UTC'; SELECT id, n, s, t FROM rows ORDER BY id";
    assert_eq!(
        server.ask(rows),
        [
            "9007199254740992|0.1234567890123456789|\\u0000|2025-11-29 01:05:28+00",
            "9007199254740993|12345678901234567890|c|",
            "340282366920938463463374607431768211457|10000000000000000000000000000000000000000||",
        ]
        .join("\n")
    );
    let refused = run(&[r#"{"id":1,"t":"2025-11-29 01:05:28"}"#]);
    refused
        .ended_with(1)
        .says(&[TASK, "rows", "\"t\"", "2025-11-29 01:05:28", "no offset"]);
}

#[test]
fn what_the_server_cannot_hold_is_left_out_and_kept() {
    const LETTERS: &str = "acmeCo/rows/deadLetters";
    let schema = json!({
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": { "type": "string" }, "t": { "type": "string", "format": "date-time" },
        },
    });
    let server = Server::start();
    let rows =
        json!({ "source": ORDERS, "resource": { "table": "rows" }, "onError": "deadLetter" });
    let catalog = Catalog::new()
        .collection(ORDERS, &["/id"], schema)
        .task(TASK, task(&server).binding(rows));
    let workspace = Workspace::with(&catalog);
    let run = |lines: &[&str]| {
        workspace.append_lines("orders.ndjson", lines);
        let run = workspace.run().input(ORDERS, "orders.ndjson");
        run.until_caught_up().start().finish().succeeded()
    };
    run(&[
        r#"{"id":"a","t":"2025-11-29T01:05:28Z"}"#,
        r#"{"id":"b","t":"2025-11-29 01:05:28"}"#,
        r#"{"id":"c\u0000"}"#,
        r#"{"id":"d"}"#,
    ]);
    // Now the key with the NUL is one to be looked up.
    run(&[
        r#"{"id":"c\u0000","t":"2025-11-29T01:05:28Z"}"#,
        r#"{"id":"b"}"#,
    ]);
    assert_eq!(server.ask("SELECT id FROM rows ORDER BY id"), "a\nb\nd");
    let read = workspace.on_data(&["read", LETTERS]).finish().succeeded();
    let letters: Vec<Value> = read
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("it is JSON"))
        .collect();
    let of = |name: &str| {
        letters
            .iter()
            .map(|it| it[name].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(of("field"), ["t", "id", "id"]);
    let key = |it: &str| json!([it]);
    assert_eq!(of("key"), [key("b"), key("c\0"), key("c\0")]);
    assert!(
        of("reason")[0].to_string().contains("no offset"),
        "{letters:?}"
    );
    assert!(of("reason")[1].to_string().contains("NUL"), "{letters:?}");
}

#[test]
fn dry_runs_print_what_they_would_run() {
    let server = Server::start();
    let workspace = Workspace::with(&sums(&server));
    let dry = workspace
        .run()
        .option("--dry-run")
        .start()
        .finish()
        .succeeded();
    let made = dry.stdout.matches("CREATE TABLE \"public\".").count();
    assert_eq!(made, 2, "{}", dry.stdout);
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    assert_eq!(server.ask(tables), "0");
    let mut away = config(&server);
    away["address"] = "127.0.0.1:1".into();
    let away = Task::new("materialize-postgres", away).table(SALES, "sums");
    let catalog = Catalog::new().collection(SALES, &["/id"], sale_schema());
    workspace.catalog(&catalog.task(TASK, away));
    let dry = workspace.run().option("--dry-run").start().finish();
    dry.ended_with(1).says(&[TASK, "127.0.0.1:1"]);
}

#[test]
fn names_that_would_be_cut_to_one_are_refused_before_anything_is_made() {
    let long = "hs_line_item_global_term_hs_recurring_billing_start_date_and_more";
    let longer = format!("{long}_enabled");
    let schema = json!({
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": { "type": "integer" }, long: { "type": "string" }, &longer: { "type": "string" },
        },
    });
    let server = Server::start();
    let catalog = Catalog::new()
        .collection(ORDERS, &["/id"], schema)
        .task(TASK, task(&server).table(ORDERS, "rows"));
    let workspace = Workspace::with(&catalog);
    let run = workspace.run().until_caught_up().start().finish();
    run.ended_with(1).says(&[long, &longer, "63 bytes"]);
    assert_eq!(
        server.ask("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"),
        "0"
    );
}

/// Runs a host of its own over one order.
fn one_order(server: &Server, config: Value) -> Finished {
    let task = Task::new("materialize-postgres", config).table(ORDERS, "orders");
    let catalog = Catalog::new().collection(ORDERS, &["/id"], order_schema());
    let workspace = Workspace::with(&catalog.task(TASK, task));
    workspace.write_lines("orders.ndjson", [r#"{"id":1}"#]);
    let run = workspace.run().input(ORDERS, "orders.ndjson");
    let finished = run.until_caught_up().start().finish();
    // The next one knows nothing of this one, and would be refused.
    server.ask("DROP TABLE IF EXISTS orders, tidegate_checkpoints, tidegate_bindings");
    finished
}

#[test]
fn every_sslmode_is_what_it_says() {
    let mut server = Server::start();
    let with = |server: &Server, mode: &str, authority: Option<&str>| {
        let mut config = config(server);
        config["sslmode"] = json!(mode);
        if let Some(authority) = authority {
            config["sslrootcert"] = json!(authority);
        }
        config
    };
    // Without TLS at the server.
    for (mode, works) in [
        ("disable", true),
        ("allow", true),
        ("prefer", true),
        ("require", false),
        ("verify-full", false),
    ] {
        let finished = one_order(&server, with(&server, mode, None));
        match works {
            true => drop(finished.succeeded()),
            false => drop(finished.ended_with(1).says(&[TASK, "offers no TLS"])),
        }
    }
    // With TLS, and for our user nothing else.
    let certificates = Certificates::make(server.dir());
    give_away(server.dir());
    let text = |file: PathBuf| fs::read_to_string(file).expect("it was made");
    let authority = text(certificates.authority());
    let other = text(certificates.other_authority());
    let hba = server.dir().join("data/pg_hba.conf");
    let lines = fs::read_to_string(&hba).expect("it is there");
    let only_tls = "hostssl all all 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 reject";
    fs::write(&hba, format!("{only_tls}\n{lines}")).expect("it can be written");
    let settings = [
        "ssl=on".to_owned(),
        format!("ssl_cert_file={}", certificates.certificate().display()),
        format!("ssl_key_file={}", certificates.key().display()),
    ];
    let settings = settings.each_ref().map(|it| &**it);
    server.restart_with(&settings);
    let cases = [
        ("disable", None, Err("pg_hba.conf")),
        ("allow", None, Ok(())),
        ("prefer", None, Ok(())),
        ("require", None, Ok(())),
        ("require", Some(&other), Err("sslrootcert")),
        ("verify-ca", Some(&authority), Ok(())),
        ("verify-ca", Some(&other), Err("sslrootcert")),
        ("verify-ca", None, Err("sslrootcert")),
        ("verify-full", Some(&authority), Ok(())),
        ("verify-full", Some(&other), Err("sslrootcert")),
    ];
    for (mode, authority, want) in cases {
        println!("{mode}, authority given: {}", authority.is_some());
        let finished = one_order(&server, with(&server, mode, authority.map(|it| &**it)));
        match want {
            Ok(()) => drop(finished.succeeded()),
            Err(words) => drop(finished.ended_with(1).says(&[TASK, words])),
        }
    }
    // The name that we dial is not in the certificate; its authority is trusted.
    let mut named = with(&server, "verify-full", Some(&authority));
    let port = server.address().rsplit(':').next().map(str::to_owned);
    named["address"] = json!(format!("localhost:{}", port.expect("it has a port")));
    one_order(&server, named.clone())
        .ended_with(1)
        .says(&[TASK, "name"]);
    named["sslmode"] = json!("verify-ca");
    one_order(&server, named).succeeded();
}

#[test]
fn thirty_rounds_of_kill_9() {
    const LINES: usize = 200;
    const KEYS: u32 = 60;
    let server = Server::start();
    let workspace = Workspace::with(&sums(&server));
    linger_in_commits(&server, &workspace);
    let mut random = seed::random("postgres_thirty_rounds");
    let mut fold = sums_fold();
    let mut whole = Duration::from_secs(1);
    let mut killed = 0;
    for round in 1..=KILLS {
        let lines = sales(&mut random, LINES, KEYS);
        workspace.append_lines("sales.ndjson", &lines[..LINES / 2]);
        let run = || workspace.run().input(SALES, "sales.ndjson");
        let mut host = run().start();
        let pause = whole.mul_f64(random.f64() * 0.6);
        let mut ended = host.ends_within(pause);
        workspace.append_lines("sales.ndjson", &lines[LINES / 2..]);
        ended |= host.ends_within(pause);
        host.kill();
        killed += usize::from(!ended);
        let finished = run().until_caught_up().start().finish().succeeded();
        whole = finished.took;
        lines.iter().for_each(|line| drop(fold.apply(line)));
        assert_eq!(
            read(&server, "sums", &["id"]),
            fold.rows,
            "after round {round}: {}",
            finished.stderr
        );
        assert_eq!(server.ask(UNEQUAL), "0", "after round {round}");
    }
    assert_eq!(killed, KILLS, "a host that follows does not end by itself");
}

#[test]
fn sessions_that_the_server_ends_are_begun_anew_and_nothing_is_doubled() {
    const LINES: usize = 60;
    const KEYS: u32 = 40;
    let mut server = Server::start();
    let workspace = Workspace::with(&sums(&server));
    let mut random = seed::random("postgres_terminations");
    let mut fold = sums_fold();
    linger_in_commits(&server, &workspace);
    let mut host = workspace.run().input(SALES, "sales.ndjson").start();
    let mut ended = 0;
    for round in 0..TERMINATIONS {
        let lines = sales(&mut random, LINES, KEYS);
        workspace.append_lines("sales.ndjson", &lines);
        lines.iter().for_each(|line| drop(fold.apply(line)));
        host.wait_until("there is a session", RETRIES_MAX, || {
            server.ask(SESSIONS) != "0"
        });
        assert!(
            !host.ends_within(Duration::from_millis(random.u64(0..600))),
            "a lost session does not end a host: {}",
            host.stderr()
        );
        match CRASHES.contains(&round) {
            true => server.crash(),
            false => ended += usize::from(server.ask(TERMINATE) != "0"),
        }
    }
    assert!(ended >= TERMINATIONS / 2, "{ended} sessions were ended");
    host.wait_until("the sums are equal", RETRIES_MAX, || {
        server.try_ask("SELECT 1 FROM sums").is_ok() && read(&server, "sums", &["id"]) == fold.rows
    });
    assert_eq!(server.ask(UNEQUAL), "0");
    host.kill();
}

/// A copy of the data directory is what a second host takes over with, while the
/// first one stands still and knows nothing of it.
#[test]
fn a_host_that_wakes_up_after_a_takeover_is_refused() {
    let server = Server::start();
    let workspace = Workspace::with(&sums(&server));
    let mut random = seed::random("postgres_takeover");
    let mut fold = sums_fold();
    let lines = sales(&mut random, 300, 40);
    let (first, later) = lines.split_at(100);
    workspace.write_lines("sales.ndjson", first);
    let run = || workspace.run().input(SALES, "sales.ndjson");
    let mut stale = run().start();
    first.iter().for_each(|line| drop(fold.apply(line)));
    stale.wait_until("the first lines are committed", RUN_MAX, || {
        server.try_ask("SELECT 1 FROM sums").is_ok() && read(&server, "sums", &["id"]) == fold.rows
    });
    stale.signal("STOP");
    let mut copy = Command::new("cp");
    copy.arg("-r")
        .arg(workspace.data_dir())
        .arg(workspace.path("copy"));
    assert!(
        copy.status().is_ok_and(|it| it.success()),
        "the data directory can be copied"
    );

    workspace.append_lines("sales.ndjson", later);
    later.iter().for_each(|line| drop(fold.apply(line)));
    let taken = run().data_dir(&workspace.path("copy")).until_caught_up();
    taken.start().finish().succeeded();
    assert_eq!(read(&server, "sums", &["id"]), fold.rows);

    stale.signal("CONT");
    stale.wait_for_line("that it is refused", RUN_MAX, |line| {
        line.contains("fenced off") || line.contains("is refused")
    });
    assert_eq!(read(&server, "sums", &["id"]), fold.rows);
    assert_eq!(server.ask(UNEQUAL), "0");
    stale.kill();
}

/// Orders, whose deletions delete, in two schemas of one database.
#[test]
fn deletions_delete_and_schemas_keep_tables_apart() {
    let server = Server::start();
    let binding = |schema: &str| {
        json!({
            "source": ORDERS, "resource": { "table": "orders", "schema": schema }, "hardDelete": true,
        })
    };
    let task = task(&server)
        .binding(binding("one"))
        .binding(binding("two"));
    let catalog = Catalog::new()
        .collection(ORDERS, &["/id"], order_schema())
        .task(TASK, task);
    let workspace = Workspace::with(&catalog);
    let mut random = seed::random("postgres_deletions");
    let mut fold = Fold::last_write_wins(&["id"]).hard_delete();
    for _ in 0..3 {
        let lines = orders(&mut random, 400, 80);
        workspace.append_lines("orders.ndjson", &lines);
        lines.iter().for_each(|line| drop(fold.apply(line)));
        let run = workspace.run().input(ORDERS, "orders.ndjson");
        run.until_caught_up().start().finish().succeeded();
        for table in ["one.orders", "two.orders"] {
            assert_eq!(read(&server, table, &["id"]), fold.rows, "{table}");
        }
    }
}
