//! A connector reaches nothing that was not granted: other ports, other names, other
//! files, the environment.
//!
//! ```text
//! faulty, told to reach -> each attempt -> one error: what was reached, why the rest was not
//! ```
//!
//! What is granted is among the attempts, so that a sandbox which refuses everything
//! fails as well.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use tidegate_tests::catalog::{Catalog, Task};
use tidegate_tests::document::{ORDERS, order_schema};
use tidegate_tests::receiver::Receiver;
use tidegate_tests::workspace::Workspace;

/// What lies outside, in files and in the environment.
const SECRET: &str = "t0p-s3cret";

/// Runs a connector that reaches for things, with what its host says of each.
#[track_caller]
fn reach(workspace: &Workspace, allow: Option<Value>, attempts: &[(Value, String)]) {
    let reaches: Vec<_> = attempts.iter().map(|(reach, _)| reach).collect();
    let config = json!({
        "path": "granted/rows.db",
        "syncSchedule": { "syncFrequency": "0s" },
        "fault": { "kind": "reach", "call": "open", "reach": reaches },
    });
    let mut task = Task::new("materialize-faulty", config).table(ORDERS, "orders");
    if let Some(allow) = allow {
        task = task.allow(allow);
    }
    let catalog = Catalog::new()
        .collection(ORDERS, &["/id"], order_schema())
        .task("acmeCo/reaching", task);
    workspace.catalog(&catalog);
    workspace.write_lines("orders.ndjson", [r#"{"id":1}"#]);
    let run = workspace.run().input(ORDERS, "orders.ndjson");
    let finished = run
        .until_caught_up()
        .shell(&format!("export SECRET={SECRET}"))
        .start()
        .finish()
        .ended_with(1);
    let told = finished
        .stderr
        .lines()
        .find(|line| line.contains("acmeCo/reaching: open") && line.contains("faulty: 1 "))
        .unwrap_or_else(|| panic!("it tells nothing: {}", finished.stderr));
    let report = told.split_once("faulty: ").expect("it is there").1;
    let outcomes: Vec<_> = report.split(" | ").collect();
    assert_eq!(outcomes.len(), attempts.len(), "{report}");
    for (n, (outcome, (reach, want))) in (1..).zip(outcomes.iter().zip(attempts)) {
        assert!(
            outcome.contains(&format!("{n} {want}")),
            "{reach}: {outcome}, and not: {want}"
        );
    }
    assert!(!finished.stderr.contains(SECRET), "{}", finished.stderr);
}

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    fs::create_dir(workspace.path("granted")).expect("a directory can be made");
    workspace
}

fn refused(reason: &str) -> String {
    format!("refused: {reason}")
}

/// What a socket of WASI is refused with.
fn access_denied() -> String {
    refused("access-denied")
}

fn socket(address: &str) -> Value {
    json!({ "socket": address })
}

#[test]
fn other_ports_and_other_names_are_out_of_reach() {
    let (granted, other) = (Receiver::accepting(), Receiver::accepting());
    let (port, other_port) = (port(&granted), port(&other));
    let address = format!("127.0.0.1:{port}");
    let net = |address: String| json!({ "net": address });
    let http = |address: String| json!({ "http": format!("http://{address}/") });
    let not_granted = |address: &str| {
        refused(&format!(
            "{address} is not granted; granted is 127.0.0.1:{port}; correct the config"
        ))
    };
    // The host's words come after what was asked of it.
    let not_sent = |address: &str| {
        refused(&format!(
            "GET to {address}: {address} is not granted; granted is 127.0.0.1:{port}"
        ))
    };
    let other_address = format!("127.0.0.1:{other_port}");
    let named = format!("localhost:{port}");
    let neighbour = format!("127.0.0.2:{port}");
    let attempts = [
        (net(address.clone()), "reached a server".to_owned()),
        (http(address.clone()), "reached an answer, 204".to_owned()),
        (net(other_address.clone()), not_granted(&other_address)),
        (http(other_address.clone()), not_sent(&other_address)),
        // The same server, by another name.
        (net(named.clone()), not_granted(&named)),
        (http(named.clone()), not_sent(&named)),
        (net(neighbour.clone()), not_granted(&neighbour)),
        (http(neighbour.clone()), not_sent(&neighbour)),
        (http("127.0.0.1".to_owned()), not_sent("127.0.0.1:80")),
        // The errors of sockets have no words; those are in the log.
        (socket(&address), "reached a server".to_owned()),
        (socket(&other_address), access_denied()),
        (socket(&named), access_denied()),
        (socket(&neighbour), access_denied()),
        (json!({ "name": "localhost" }), access_denied()),
        (json!({ "listen": "127.0.0.1:0" }), access_denied()),
        (json!({ "listen": "0.0.0.0:0" }), access_denied()),
    ];
    let allow = json!({ "network": [format!("127.0.0.1:{port}")] });
    reach(&workspace(), Some(allow), &attempts);
    assert_eq!(granted.received().len(), 1);
    assert_eq!(other.received(), []);
}

#[test]
fn sockets_lead_where_a_granted_name_led_and_to_its_port() {
    let (granted, other) = (Receiver::accepting(), Receiver::accepting());
    let (port, other_port) = (port(&granted), port(&other));
    let address = format!("127.0.0.1:{port}");
    let attempts = [
        // Nobody has looked up the name yet.
        (socket(&address), access_denied()),
        (
            json!({ "name": "localhost" }),
            "reached an address, 127.0.0.1".to_owned(),
        ),
        (socket(&address), "reached a server".to_owned()),
        (
            socket(&format!("localhost:{port}")),
            "reached a server".to_owned(),
        ),
        (socket(&format!("localhost:{other_port}")), access_denied()),
        (socket(&format!("127.0.0.1:{other_port}")), access_denied()),
        (socket(&format!("127.0.0.2:{port}")), access_denied()),
    ];
    let allow = json!({ "network": [format!("localhost:{port}")] });
    reach(&workspace(), Some(allow), &attempts);
}

#[test]
fn a_granted_name_that_leads_inside_is_out_of_reach() {
    let receiver = Receiver::accepting();
    let port = port(&receiver);
    // To the system's resolver a name, and one that leads to this machine: as if
    // whoever owns a granted name had pointed it here.
    let name = format!("127.1:{port}");
    let why = format!("{name} resolves to 127.0.0.1, which is this machine");
    let attempts = [
        (json!({ "net": name }), refused(&why)),
        (
            json!({ "http": format!("http://{name}/") }),
            refused(&format!("GET to {name}: {why}")),
        ),
        (socket(&name), access_denied()),
    ];
    let allow = json!({ "network": [name] });
    reach(&workspace(), Some(allow), &attempts);
    assert_eq!(receiver.received(), []);
}

fn port(receiver: &Receiver) -> u16 {
    let address = receiver.address();
    let (_, port) = address.rsplit_once(':').expect("it has a port");
    port.parse().expect("it is a number")
}

#[test]
fn files_outside_of_the_granted_directory_are_out_of_reach() {
    let workspace = workspace();
    workspace.write("granted/inside.txt", "this is inside");
    workspace.write("outside.txt", SECRET);
    workspace.write("outside.db", "");
    let link = |to: &str, name: &str| {
        symlink(to, workspace.path(name)).expect("a link can be made");
    };
    link("../outside.txt", "granted/link.txt");
    link("..", "granted/up");
    link("/", "granted/root");
    link("../outside.db", "granted/link.db");
    let absolute = |name: &str| workspace.path(name).display().to_string();
    let file = |path: &str| json!({ "file": path });
    let database = |path: &str| json!({ "database": path });
    let not_inside =
        |path: &str| refused(&format!("the file {path} is not in a granted directory"));
    let attempts = [
        (
            file("granted/inside.txt"),
            "reached this is inside".to_owned(),
        ),
        (
            json!({ "newFile": "granted/new.txt" }),
            "reached a new file".to_owned(),
        ),
        (database("granted/new.db"), "reached a database".to_owned()),
        (file("outside.txt"), refused("")),
        (file("granted/../outside.txt"), refused("")),
        (file(&absolute("outside.txt")), refused("")),
        (file("granted/link.txt"), refused("")),
        (file("granted/up/outside.txt"), refused("")),
        (file("granted/root/proc/self/environ"), refused("")),
        (file("/proc/self/environ"), refused("")),
        (file("/etc/passwd"), refused("")),
        (json!({ "newFile": "granted/up/made.txt" }), refused("")),
        (json!({ "newFile": "granted/../made.txt" }), refused("")),
        (database("outside.db"), not_inside("outside.db")),
        (
            database("granted/../made.db"),
            not_inside("granted/../made.db"),
        ),
        (
            database("granted/up/made.db"),
            not_inside("granted/up/made.db"),
        ),
        (
            database("granted/link.db"),
            refused("the file granted/link.db cannot be opened: it is a symbolic link"),
        ),
        (
            database(&absolute("made.db")),
            not_inside(&absolute("made.db")),
        ),
    ];
    reach(&workspace, None, &attempts);
    for made in ["made.txt", "made.db"] {
        assert!(!workspace.path(made).exists(), "{made}");
    }
    let outside = fs::read(workspace.path("outside.db")).expect("it is there");
    assert!(outside.is_empty(), "it was written to");
    assert!(workspace.path("granted/new.txt").exists());
}

#[test]
fn there_is_no_environment() {
    let none = "reached variables [], arguments []".to_owned();
    reach(&workspace(), None, &[(json!("environment"), none)]);
}
