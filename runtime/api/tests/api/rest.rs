//! Every route, and every code.

use serde_json::{Value, json};
use tidegate_api::v1::task::State;
use tidegate_api::{Code, Error, Readiness};
use tokio::io::AsyncBufReadExt;

use crate::host::{COLLECTION, TASKS, done};
use crate::http::{Ask, get, send};
use crate::server::{TestServer, soon};

#[tokio::test]
async fn sync_now_says_each_message_on_a_line() {
    let server = TestServer::start().await;
    let token = server.token();
    let ask = Ask {
        method: "POST",
        path: "/v1/task-control/sync-now",
        token: Some(&token),
        headers: &[("Content-Type", "application/x-www-form-urlencoded")],
        body: br#"{"task": "acmeCo/a"}"#,
    };
    let (mut reader, head) = ask.open(&server).await;
    assert_eq!(head.status, 200);
    assert_eq!(head.header("content-type"), Some("application/x-ndjson"));
    let mut lines = Vec::new();
    for _ in 0..2 {
        let mut line = String::new();
        soon("a line", reader.read_line(&mut line)).await.unwrap();
        lines.push(serde_json::from_str::<Value>(&line).unwrap());
    }
    let status = json!({
        "sourcedDocsTotal": "5000", "sourcedBytesTotal": "1099511627776",
        "headPhase": "EXTEND", "tailPhase": "DONE", "heldUntil": "2100-01-01T00:00:00Z",
    });
    let ack = json!({"result": {"ack": {"outcome": "HELD_COLLAPSED", "status": status}}});
    assert_eq!(lines[0], ack);
    assert_eq!(
        lines[1],
        json!({"result": {"heartbeat": {"status": status}}})
    );
    assert_eq!(server.host.commit(&Ok(done())), 1);
    let mut last = String::new();
    loop {
        let mut line = String::new();
        if soon("a line", reader.read_line(&mut line)).await.unwrap() == 0 {
            break;
        }
        last = line;
    }
    let done = json!({"result": {"done": {
        "committedDocsTotal": "5000", "committedBytesTotal": "1099511627776", "durationMillis": "7",
    }}});
    assert_eq!(serde_json::from_str::<Value>(&last).unwrap(), done);
}

#[tokio::test]
async fn a_stream_that_fails_ends_with_the_error() {
    let server = TestServer::start().await;
    let token = server.token();
    let ask = Ask {
        method: "POST",
        path: "/v1/task-control/sync-now",
        token: Some(&token),
        headers: &[],
        body: br#"{"task": "acmeCo/a"}"#,
    };
    let (mut reader, _) = ask.open(&server).await;
    let mut line = String::new();
    reader.read_line(&mut line).await.unwrap();
    let error = Error::new(Code::Unavailable, "the session ended");
    assert_eq!(server.host.commit(&Err(error)), 1);
    while !line.contains("error") {
        line.clear();
        assert_ne!(
            soon("a line", reader.read_line(&mut line)).await.unwrap(),
            0
        );
    }
    let want = json!({"error": {"code": "UNAVAILABLE", "message": "the session ended"}});
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), want);
    line.clear();
    assert_eq!(
        reader.read_line(&mut line).await.unwrap(),
        0,
        "it was the last"
    );
}

#[tokio::test]
async fn tasks_are_listed_shown_stopped_started_and_watched() {
    let server = TestServer::start().await;
    let names = |answer: &Value| -> Vec<String> {
        let tasks = answer["tasks"].as_array().unwrap().iter();
        tasks
            .map(|task| task["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&get(&server, "/v1/tasks").await.json()), TASKS);
    let some = get(&server, "/v1/tasks?prefix=acmeCo%2F").await;
    assert_eq!(names(&some.json()), TASKS[..2]);
    for path in ["/v1/tasks/acmeCo/a", "/v1/tasks/acmeCo%2Fa"] {
        let task = &get(&server, path).await.json()["task"];
        assert_eq!(
            (&task["name"], &task["state"]),
            (&json!("acmeCo/a"), &json!("RUNNING"))
        );
    }
    let stopped = send(&server, "POST", "/v1/tasks/acmeCo/a:stop", b"").await;
    assert_eq!(stopped.json()["task"]["state"], "STOPPED");
    // A stopped task is all that a watcher is shown, and the end.
    let watched = get(&server, "/v1/tasks/acmeCo/a:watch").await.lines();
    assert_eq!(watched.len(), 1);
    assert_eq!(watched[0]["result"]["task"]["state"], "STOPPED");
    let started = send(&server, "POST", "/v1/tasks/acmeCo/a:start", b"").await;
    assert_eq!(started.json()["task"]["state"], "RUNNING");
    let token = server.token();
    let watch = Ask {
        method: "GET",
        path: "/v1/tasks/acmeCo/a:watch",
        token: Some(&token),
        headers: &[],
        body: b"",
    };
    let (mut reader, _) = watch.open(&server).await;
    let (mut seen, mut heartbeats) = (Vec::new(), 0);
    loop {
        let mut line = String::new();
        if soon("a line", reader.read_line(&mut line)).await.unwrap() == 0 {
            break;
        }
        let line: Value = serde_json::from_str(&line).unwrap();
        if line["result"]["heartbeat"].is_object() {
            heartbeats += 1;
            if heartbeats == 1 {
                server
                    .host
                    .change("acmeCo/a", |task| task.set_state(State::Failed));
            }
        } else {
            seen.push(line["result"]["task"]["state"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(seen, ["RUNNING", "FAILED"]);
    assert!(heartbeats >= 1);
}

#[tokio::test]
async fn documents_are_appended_once_and_read() {
    let server = TestServer::start().await;
    let token = server.token();
    let append = |key: &'static str, body: &'static [u8]| {
        let (server, token) = (&server, &token);
        async move {
            let ask = Ask {
                method: "POST",
                path: "/v1/collections/acmeCo/orders:append?publishedAt=2026-05-04T00:15:00Z",
                token: Some(token),
                headers: &[("Idempotency-Key", key)],
                body,
            };
            ask.send(server).await
        }
    };
    let documents = b"{\"id\": 1.50}\n{\"id\": 9007199254740993}\n";
    let first = append("k", documents).await;
    assert_eq!(first.json(), json!({"appendedDocs": "2", "checked": true}));
    let again = append("k", documents).await;
    assert_eq!(
        again.json(),
        json!({"appendedDocs": "2", "checked": true, "repeated": true})
    );
    let other = append("k", b"{}\n").await;
    assert_eq!(
        (other.status, other.code().as_str()),
        (409, "FAILED_PRECONDITION")
    );
    let bad = append("x", b"{}\n{\n").await;
    assert_eq!((bad.status, bad.code().as_str()), (400, "INVALID_ARGUMENT"));
    assert!(bad.text().contains("line 2"), "{}", bad.text());
    assert_eq!(server.host.documents(COLLECTION).len(), 2);
    let read = get(&server, "/v1/collections/acmeCo%2Forders:read")
        .await
        .lines();
    // Every digit is as it was.
    assert_eq!(
        read,
        [
            json!({"result": {"document": "{\"id\": 1.50}"}}),
            json!({"result": {"offset": "1", "document": "{\"id\": 9007199254740993}"}}),
        ]
    );
    let read = get(
        &server,
        "/v1/collections/acmeCo/orders:read?fromOffset=1&limit=5",
    )
    .await;
    assert_eq!(read.lines().len(), 1);
    let read = get(&server, "/v1/collections/acmeCo/orders:read?limit=1").await;
    assert_eq!(read.lines().len(), 1);
}

#[tokio::test]
async fn catalogs_are_validated_published_and_returned() {
    let server = TestServer::start().await;
    let nothing = get(&server, "/v1/catalog").await;
    assert_eq!(
        (nothing.status, nothing.code().as_str()),
        (404, "NOT_FOUND")
    );
    let catalog = |text: &str| json!({"files": {"flow.yaml": text}, "roots": ["flow.yaml"], "baseDirectory": "/srv"});
    let request = |text: &str| json!({"catalog": catalog(text)}).to_string();
    let validate = async |text: &str| {
        let body = request(text);
        send(&server, "POST", "/v1/catalog/validate", body.as_bytes()).await
    };
    let publish = async |query: &str, text: &str| {
        let path = format!("/v1/catalog{query}");
        send(&server, "PUT", &path, request(text).as_bytes()).await
    };
    let diagnostic = json!({
        "code": "unknown-field", "severity": "ERROR", "message": "there is no such field",
        "place": {"file": "flow.yaml", "line": 3, "column": 5, "pointer": "/materializations"},
        "help": "take it out",
    });
    assert_eq!(validate("good").await.json(), json!({"valid": true}));
    let bad = validate("bad").await;
    assert_eq!(
        (bad.status, bad.json()),
        (200, json!({"diagnostics": [diagnostic]}))
    );
    let bad = publish("", "bad").await;
    assert_eq!(
        (bad.status, bad.json()),
        (422, json!({"diagnostics": [diagnostic]}))
    );
    let dry = publish("?dryRun=true", "good").await;
    let changes = json!([{"task": "acmeCo/a", "kind": "CHANGED"}]);
    assert_eq!(dry.json(), json!({"valid": true, "changes": changes}));
    assert_eq!(
        get(&server, "/v1/catalog").await.status,
        404,
        "nothing was published"
    );
    let published = publish("", "good").await;
    assert_eq!(
        published.json(),
        json!({"valid": true, "published": true, "changes": changes})
    );
    let got = get(&server, "/v1/catalog").await.json();
    let want = json!({"catalog": catalog("good"), "publishedAt": "1970-01-01T00:00:00Z"});
    assert_eq!(got, want);
}

#[tokio::test]
async fn health_needs_no_token() {
    let server = TestServer::start().await;
    let open = async |path: &str| {
        let ask = Ask {
            method: "GET",
            path,
            token: None,
            headers: &[],
            body: b"",
        };
        ask.send(&server).await
    };
    assert_eq!(open("/healthz").await.status, 200);
    assert_eq!(open("/readyz").await.status, 200);
    *server.host.readiness.lock().unwrap() = Readiness::NotReady("draining".to_owned());
    let unready = open("/readyz").await;
    assert_eq!(
        (unready.status, unready.text()),
        (503, "not ready: draining\n")
    );
    assert_eq!(open("/healthz").await.status, 200);
    assert_eq!(open("/openapi.json").await.json(), tidegate_api::openapi());
}

#[tokio::test]
async fn every_code_has_its_status() {
    let server = TestServer::start().await;
    server
        .host
        .change("acmeCo/b", |task| task.set_state(State::Pending));
    server
        .host
        .change("other/a", |task| task.set_state(State::Stopped));
    let sync_now = "/v1/task-control/sync-now";
    let long = format!("/v1/tasks/{}", "a".repeat(201));
    struct Sent<'a>(&'a str, &'a str, &'a [u8]);
    #[rustfmt::skip]
    let cases = [
        (Sent("GET", "/v1/tasks/acmeCo/none", b""), (404, "NOT_FOUND"), "acmeCo/none"),
        (Sent("POST", sync_now, br#"{"task": "acmeCo/none"}"#), (404, "NOT_FOUND"), "acmeCo/none"),
        (Sent("POST", sync_now, br#"{"task": "other/a"}"#), (404, "NOT_FOUND"), "stopped"),
        (Sent("POST", sync_now, br#"{"task": "acmeCo/b"}"#), (503, "UNAVAILABLE"), "no leader"),
        (Sent("POST", sync_now, b""), (400, "INVALID_ARGUMENT"), "names no task"),
        (Sent("POST", sync_now, br#"{"task": 7}"#), (400, "INVALID_ARGUMENT"), "line 1"),
        (Sent("POST", sync_now, br#"{"tsak": "a"}"#), (400, "INVALID_ARGUMENT"), "tsak"),
        (Sent("GET", &long, b""), (400, "INVALID_ARGUMENT"), "201 bytes"),
        (Sent("GET", "/v1/tasks/acmeCo/broken", b""), (500, "INTERNAL"), "log"),
        (Sent("GET", "/v1/nothing", b""), (404, "NOT_FOUND"), "/openapi.json"),
        (Sent("DELETE", "/v1/catalog", b""), (405, "INVALID_ARGUMENT"), "GET, PUT"),
        (Sent("GET", "/v1/tasks?perfix=a", b""), (400, "INVALID_ARGUMENT"), "it has prefix"),
        (Sent("GET", "/v1/tasks?prefix=a&prefix=b", b""), (400, "INVALID_ARGUMENT"), "twice"),
        (Sent("GET", "/v1/tasks?prefix=%ff", b""), (400, "INVALID_ARGUMENT"), "UTF-8"),
        (Sent("GET", "/v1/tasks/acmeCo/a?x=1", b""), (400, "INVALID_ARGUMENT"), "it has none"),
        (Sent("GET", "/v1/collections/acmeCo/none:read", b""), (404, "NOT_FOUND"), "acmeCo/none"),
        (Sent("GET", "/v1/collections/acmeCo/orders:read?limit=-1", b""), (400, "INVALID_ARGUMENT"), "limit"),
        (Sent("POST", "/v1/collections/acmeCo/orders:append?publishedAt=now", b""), (400, "INVALID_ARGUMENT"), "2026-05-04"),
        (Sent("POST", "/v1/catalog/validate", b"{}"), (400, "INVALID_ARGUMENT"), "roots"),
        (Sent("PUT", "/v1/catalog", br#"{"catalog": {"roots": ["x"]}}"#), (400, "INVALID_ARGUMENT"), "no file x"),
        (Sent("PUT", "/v1/catalog?dryRun=yes", b""), (400, "INVALID_ARGUMENT"), "true or false"),
    ];
    for (Sent(method, path, body), (status, code), words) in cases {
        let answer = send(&server, method, path, body).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
        assert_eq!(answer.code(), code, "{method} {path}");
        let error = answer.json();
        assert_eq!(error.as_object().unwrap().len(), 1);
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains(words), "{method} {path}: {message}");
        assert_eq!(answer.header("retry-after").is_some(), status == 503);
        assert_eq!(answer.header("allow").is_some(), status == 405);
    }
}

#[tokio::test]
async fn head_is_get_without_the_answer() {
    let server = TestServer::start().await;
    let answer = send(&server, "HEAD", "/v1/tasks", b"").await;
    assert_eq!((answer.status, answer.body.len()), (200, 0));
}

#[tokio::test]
async fn a_host_that_is_not_ready_is_called_again_instead_of_believed() {
    let server = TestServer::start().await;
    *server.host.readiness.lock().unwrap() = Readiness::NotReady("it is starting".to_owned());
    let sync_now = "/v1/task-control/sync-now";
    #[rustfmt::skip]
    let cases: [(&str, &str, &[u8], u16); 7] = [
        ("POST", sync_now, br#"{"task": "acmeCo/a"}"#, 503),
        ("POST", sync_now, br#"{"task": "acmeCo/none"}"#, 503),
        ("GET", "/v1/tasks/acmeCo/none", b"", 503),
        ("GET", "/v1/tasks/acmeCo/a", b"", 200),
        ("POST", "/v1/tasks/acmeCo/a:stop", b"", 503),
        ("POST", "/v1/collections/acmeCo/orders:append", b"{}", 503),
        ("GET", "/v1/tasks", b"", 200),
    ];
    for (method, path, body, status) in cases {
        let answer = send(&server, method, path, body).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
        if status == 503 {
            assert_eq!(answer.code(), "UNAVAILABLE");
            assert!(
                answer.text().contains("it is starting"),
                "{}",
                answer.text()
            );
        }
    }
    assert!(server.host.documents(COLLECTION).is_empty());
}
