//! `materialize-webhook` and a server that records what it is sent.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tidegate_tests::catalog::{Catalog, Task};
use tidegate_tests::certificates::Certificates;
use tidegate_tests::document::{ORDERS, SALES, order_schema, sale_schema, sales};
use tidegate_tests::fold::Fold;
use tidegate_tests::host::{Finished, RUN_MAX};
use tidegate_tests::receiver::{Answer, Received, Receiver};
use tidegate_tests::seed;
use tidegate_tests::workspace::Workspace;

const TASK: &str = "acmeCo/hook";

/// How often a host is killed.
const ROUNDS: usize = 30;

/// Lines that are there when a round's host starts, and keys that they are about:
/// each transaction is some dozen requests.
const LINES_A_ROUND: usize = 200;
const KEYS: u32 = 60;
const BATCH_DOCUMENTS: u32 = 4;

/// Every so many-th request is refused for the moment.
const BUSY_EVERY: usize = 9;

/// What nobody but the server may see.
const TOKEN: &str = "t0p-s3cret";

fn webhook(config: Value) -> Task {
    Task::new("materialize-webhook", config)
}

fn orders(config: Value) -> Task {
    webhook(config).binding(json!({ "source": ORDERS, "resource": { "path": "/orders" } }))
}

fn catalog(task: Task) -> Catalog {
    Catalog::new()
        .collection(ORDERS, &["/id"], order_schema())
        .task(TASK, task)
}

/// Runs a task over two orders until it is caught up, or has failed.
fn run(task: Task) -> Finished {
    let workspace = Workspace::with(&catalog(task));
    workspace.write_lines("orders.ndjson", [r#"{"id":1}"#, r#"{"id":2}"#]);
    let run = workspace.run().input(ORDERS, "orders.ndjson");
    run.until_caught_up()
        .shell("export TIDEGATE_LOG=trace")
        .start()
        .finish()
}

#[test]
fn thirty_rounds_of_kills_deliver_everything_and_repeat_only_what_can_be_dropped() {
    let mut random = seed::random("thirty_rounds_of_kills_deliver");
    let mut count = 0;
    let receiver = Receiver::start(move |_| {
        count += 1;
        match count % BUSY_EVERY {
            0 => Answer::Status(503, vec![("Retry-After", "0".to_owned())], String::new()),
            _ => Answer::status(200),
        }
    });
    let config = json!({ "address": receiver.url(), "batchDocuments": BATCH_DOCUMENTS });
    let task =
        webhook(config).binding(json!({ "source": SALES, "resource": { "path": "/sales" } }));
    let workspace = Workspace::with(
        &Catalog::new()
            .collection(SALES, &["/id"], sale_schema())
            .task(TASK, task),
    );
    let lines = sales(&mut random, ROUNDS * LINES_A_ROUND, KEYS);
    let mut fold = Fold::sum(&["id"], &["n", "revenue"]);
    let mut whole = Duration::from_secs(1);
    let mut killed = 0;
    for (round, lines) in (1..).zip(lines.chunks(LINES_A_ROUND)) {
        workspace.append_lines("sales.ndjson", lines);
        let run = || workspace.run().input(SALES, "sales.ndjson");
        let mut host = run().start();
        killed += usize::from(!host.ends_within(whole.mul_f64(random.f64() * 1.2)));
        host.kill();
        let finished = run().until_caught_up().start().finish().succeeded();
        whole = finished.took;
        lines.iter().for_each(|line| drop(fold.apply(line)));
        let taken = taken_once(&receiver.received());
        let sums = Fold::sum(&["id"], &["n", "revenue"]).over(&taken);
        assert_eq!(sums, fold.rows, "after round {round}: {}", finished.stderr);
    }
    let received = receiver.received();
    let accepted = received.iter().filter(|it| it.status == Some(200)).count();
    let taken = by_key(&received).len();
    println!("{killed} kills; {accepted} requests were accepted, {taken} of them once");
    assert_eq!(killed, ROUNDS, "a host that follows does not end by itself");
    assert!(accepted > taken, "no kill hit a transaction half-way");
}

/// Returns the documents that a server has which drops a key that it has accepted.
fn taken_once(received: &[Received]) -> Vec<String> {
    let mut taken = Vec::new();
    let mut seen = BTreeSet::new();
    for request in received.iter().filter(|it| it.status == Some(200)) {
        if seen.insert(key(request)) {
            let documents: Vec<Box<RawValue>> =
                serde_json::from_str(&request.body).expect("a body is an array");
            taken.extend(documents.iter().map(|it| it.get().to_owned()));
        }
    }
    taken
}

/// Returns the body of each key, which all of its requests have.
fn by_key(received: &[Received]) -> BTreeMap<&str, &str> {
    let mut bodies = BTreeMap::new();
    for request in received {
        let body = bodies.entry(key(request)).or_insert(&*request.body);
        assert_eq!(*body, request.body, "one key stands for two bodies");
    }
    bodies
}

fn key(request: &Received) -> &str {
    &request.headers["idempotency-key"]
}

#[test]
fn c18_a_server_that_never_answers_is_a_timeout_that_says_where() {
    let receiver = Receiver::start(|_| Answer::Silence);
    // It takes the connection, and never looks at it.
    let deaf = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let deaf = format!("http://{}", deaf.local_addr().expect("it is bound"));
    for address in [receiver.url(), deaf] {
        let config = json!({ "address": address, "batchDocuments": 1 });
        let limits = json!({ "import": "2s" });
        let workspace = Workspace::with(&catalog(orders(config).limits(limits)));
        workspace.write_lines("orders.ndjson", [r#"{"id":1}"#, r#"{"id":2}"#]);
        let run = workspace.run().input(ORDERS, "orders.ndjson");
        let mut host = run.start();
        let started = Instant::now();
        host.wait_for_line("that it waited", RUN_MAX, |line| {
            line.contains("acmeCo/hook: store of binding 0")
                && line.contains("waited 2s for wasi:http/outgoing-handler")
        });
        let took = started.elapsed();
        assert!(took > Duration::from_secs(2), "{took:?}");
        // A stop does not wait for the server either.
        host.signal("TERM");
        host.finish_within(Duration::from_secs(10));
    }
}

#[test]
fn what_is_not_granted_is_not_sent_to_and_the_error_says_so() {
    let receiver = Receiver::accepting();
    let config = json!({ "address": format!("{}/x", receiver.url()) });
    let allow = json!({ "network": ["127.0.0.1:1", "hooks.example.com:443"] });
    run(orders(config).allow(allow)).ended_with(1).says(&[
        "acmeCo/hook",
        "the configuration is wrong",
        &format!("{} is not granted", receiver.address()),
        "granted is 127.0.0.1:1, hooks.example.com:443",
        "allow.network",
    ]);
    assert_eq!(receiver.received(), []);
}

#[test]
fn https_is_for_servers_whose_authority_is_trusted() {
    let workspace = Workspace::new();
    let dir = workspace.path("");
    let certificates = Certificates::make(&dir);
    let receiver = Receiver::start_over(certificates.accept(), |_| Answer::status(204));
    let port = receiver.address().replace("127.0.0.1:", "");
    let run = |host: &str, authority: PathBuf| {
        let config = json!({ "address": format!("https://{host}:{port}/in") });
        let workspace = Workspace::with(&catalog(orders(config)));
        workspace.write_lines("orders.ndjson", [r#"{"id":1}"#, r#"{"id":2}"#]);
        let run = workspace.run().input(ORDERS, "orders.ndjson");
        // Where the system keeps the authorities that it trusts.
        let trusted = format!("export SSL_CERT_FILE={}", authority.display());
        run.until_caught_up().shell(&trusted).start().finish()
    };
    for (host, authority, why) in [
        ("127.0.0.1", certificates.other_authority(), "UnknownIssuer"),
        ("localhost", certificates.authority(), "not valid for name"),
    ] {
        let finished = run(host, authority).ended_with(1);
        finished.says(&["acmeCo/hook", &format!("TLS with {host}:{port}"), why]);
    }
    assert_eq!(receiver.received(), []);
    run("127.0.0.1", certificates.authority()).succeeded();
    let received = receiver.received();
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].path, "/in/orders");
    assert_eq!(received[0].headers["host"], receiver.address());
}

#[test]
fn a_pause_between_attempts_ends_when_the_host_is_to_stop() {
    let receiver = Receiver::start(|_| {
        let pause = ("Retry-After", "240".to_owned());
        Answer::Status(503, vec![pause], "later".to_owned())
    });
    let config = json!({ "address": receiver.url() });
    let workspace = Workspace::with(&catalog(orders(config)));
    workspace.write_lines("orders.ndjson", [r#"{"id":1}"#]);
    let mut host = workspace.run().input(ORDERS, "orders.ndjson").start();
    host.wait_until("a request", RUN_MAX, || !receiver.received().is_empty());
    host.signal("TERM");
    let finished = host.finish_within(Duration::from_secs(10));
    finished.says(&[
        "it may work later",
        &format!("{} answers 503", receiver.address()),
        "the session ended before another attempt",
    ]);
}

#[test]
fn secrets_are_sent_and_never_logged() {
    let secret = |receiver: &Receiver| {
        json!({
            "address": format!("{}/{TOKEN}?key={TOKEN}", receiver.url()),
            "headers": { "Authorization": format!("Bearer {TOKEN}"), "X-Key": TOKEN },
        })
    };
    let check = |finished: &Finished| {
        let said = format!("{}{}", finished.stdout, finished.stderr);
        assert!(!said.contains(TOKEN), "{said}");
        assert!(said.contains("TRACE"), "it was to log everything: {said}");
    };
    let receiver = Receiver::accepting();
    check(&run(orders(secret(&receiver))).succeeded());
    let received = receiver.received();
    assert_eq!(received.len(), 1);
    assert_eq!(
        received[0].headers["authorization"],
        format!("Bearer {TOKEN}")
    );
    assert_eq!(received[0].path, format!("/{TOKEN}/orders?key={TOKEN}"));

    // A server that repeats what it was sent, and one that cannot be spoken to.
    let echo = |request: &Received| {
        Answer::Status(
            401,
            vec![("X-Echo", TOKEN.to_owned())],
            format!("{request:?}"),
        )
    };
    let receiver = Receiver::start(echo);
    let finished = run(orders(secret(&receiver))).ended_with(1);
    check(&finished);
    finished.says(&["refused the credentials", "401", "[secret]"]);
    let allow = json!({ "network": [] });
    check(&run(orders(secret(&receiver)).allow(allow)).ended_with(1));
}
