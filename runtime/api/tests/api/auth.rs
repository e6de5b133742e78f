//! Who may do what, in every transport.

use std::time::Duration;

use tidegate_api::auth::Keys;
use tidegate_api::{Error, local, v1};

use crate::http::{Answer, Ask};
use crate::server::{TestServer, soon};

async fn ask(
    server: &TestServer,
    token: Option<&str>,
    method: &str,
    path: &str,
    body: &str,
) -> Answer {
    let ask = Ask {
        method,
        path,
        token,
        headers: &[],
        body: body.as_bytes(),
    };
    ask.send(server).await
}

#[tokio::test]
async fn no_token_and_bad_tokens() {
    let server = TestServer::start().await;
    let good = server.token();
    let elsewhere = TestServer::start().await.token();
    let cut = &good[..good.len() - 1];
    for (token, words) in [
        (None, "there is no token"),
        (Some(""), "not one of this host"),
        (Some("nonsense"), "not one of this host"),
        (Some(cut), "not one of this host"),
        (Some(elsewhere.as_str()), "not one of this host"),
    ] {
        let answer = ask(&server, token, "GET", "/v1/tasks", "").await;
        assert_eq!(answer.status, 401);
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        assert_eq!(answer.code(), "UNAUTHENTICATED");
        assert!(answer.text().contains(words), "{}", answer.text());
        // Every route that is no health check, and before its body is looked at.
        let answer = ask(&server, token, "POST", "/v1/task-control/sync-now", "{").await;
        assert_eq!(answer.status, 401);
        let client = server.client_with(token.unwrap_or("x")).await.unwrap();
        let status = client.tasks().list(v1::ListTasksRequest::default()).await;
        assert_eq!(status.unwrap_err().code(), tonic::Code::Unauthenticated);
    }
    assert_eq!(
        ask(&server, Some(&good), "GET", "/v1/tasks", "")
            .await
            .status,
        200
    );
}

/// Every route, with the scope that it needs.
const ROUTES: [(&str, &str, &str, &str); 11] = [
    (
        "POST",
        "/v1/task-control/sync-now",
        r#"{"task": "acmeCo/none"}"#,
        "tasks:sync",
    ),
    ("GET", "/v1/tasks", "", "tasks:read"),
    ("GET", "/v1/tasks/acmeCo/none", "", "tasks:read"),
    ("GET", "/v1/tasks/acmeCo/none:watch", "", "tasks:read"),
    ("POST", "/v1/tasks/acmeCo/none:stop", "", "tasks:write"),
    ("POST", "/v1/tasks/acmeCo/none:start", "", "tasks:write"),
    (
        "POST",
        "/v1/collections/acmeCo/none:append",
        "{}",
        "collections:append",
    ),
    (
        "GET",
        "/v1/collections/acmeCo/none:read",
        "",
        "collections:read",
    ),
    ("GET", "/v1/catalog", "", "admin"),
    ("PUT", "/v1/catalog", "{}", "admin"),
    ("POST", "/v1/catalog/validate", "{}", "admin"),
];

#[tokio::test]
async fn each_route_needs_its_scope() {
    let server = TestServer::start().await;
    for (method, path, body, needs) in ROUTES {
        let with = server.mint(needs, &[""]);
        let answer = ask(&server, Some(&with), method, path, body).await;
        assert!(![401, 403].contains(&answer.status), "{method} {path}");
        let every_other = "tasks:read tasks:sync tasks:write collections:append collections:read"
            .split(' ')
            .filter(|scope| *scope != needs)
            .collect::<Vec<_>>()
            .join(" ");
        let without = server.mint(&every_other, &[""]);
        let answer = ask(&server, Some(&without), method, path, body).await;
        assert_eq!(answer.status, 403, "{method} {path}: {}", answer.text());
        assert_eq!(answer.code(), "PERMISSION_DENIED");
        assert!(answer.text().contains(needs), "{}", answer.text());
    }
}

#[tokio::test]
async fn a_name_that_is_not_the_callers_is_one_that_does_not_exist() {
    let server = TestServer::start().await;
    let restricted = server.mint("admin", &["acmeCo"]);
    let full = server.token();
    // `other/a` is a task, and `other/z` is none; neither is the caller's.
    for (method, path, body) in [
        (
            "POST",
            "/v1/task-control/sync-now",
            r#"{"task": "other/NAME"}"#,
        ),
        ("GET", "/v1/tasks/other/NAME", ""),
        ("GET", "/v1/tasks/other/NAME:watch", ""),
        ("POST", "/v1/tasks/other/NAME:stop", ""),
        ("POST", "/v1/tasks/other/NAME:start", ""),
        ("POST", "/v1/collections/other/NAME:append", "{}"),
        ("GET", "/v1/collections/other/NAME:read", ""),
    ] {
        let said = async |token: &str, name: &str| {
            let (path, body) = (path.replace("NAME", name), body.replace("NAME", name));
            let answer = ask(&server, Some(token), method, &path, &body).await;
            let mut headers = answer.headers.clone();
            headers.retain(|(name, _)| name != "date");
            (
                answer.status,
                headers,
                answer.text().replace(&format!("other/{name}"), "X"),
            )
        };
        let hidden = said(&restricted, "a").await;
        let missing = said(&restricted, "z").await;
        let truly_missing = said(&full, "z").await;
        assert_eq!(hidden.0, 404, "{method} {path}");
        assert_eq!(hidden, missing, "{method} {path}");
        assert_eq!(hidden, truly_missing, "{method} {path}");
    }
    // The task was not stopped by any of that.
    let task = ask(&server, Some(&full), "GET", "/v1/tasks/other/a", "").await;
    assert_eq!(task.json()["task"]["state"], "RUNNING");
    let client = server.client_with(&restricted).await.unwrap();
    let get = async |name: &str| {
        let request = v1::GetTaskRequest {
            task: name.to_owned(),
        };
        let status = client.tasks().get(request).await.unwrap_err();
        Error::from(status)
    };
    assert_eq!(get("other/a").await, Error::unknown_task("other/a"));
    assert_eq!(get("other/z").await, Error::unknown_task("other/z"));
    let listed = client
        .tasks()
        .list(v1::ListTasksRequest::default())
        .await
        .unwrap();
    let names: Vec<String> = listed
        .into_inner()
        .tasks
        .into_iter()
        .map(|it| it.name)
        .collect();
    assert_eq!(names, ["acmeCo/a", "acmeCo/b"]);
    // A catalog concerns all names.
    for (method, path, body) in [
        ("GET", "/v1/catalog", ""),
        ("PUT", "/v1/catalog", "{}"),
        ("POST", "/v1/catalog/validate", "{}"),
    ] {
        let answer = ask(&server, Some(&restricted), method, path, body).await;
        assert_eq!(answer.status, 403, "{method} {path}");
    }
}

#[tokio::test]
async fn keys_are_rotated_while_the_server_runs() {
    let server = TestServer::start().await;
    let file = local::key_file(server.dir.path());
    let old = server.token();
    let status = async |token: &str| {
        ask(&server, Some(token), "GET", "/v1/tasks", "")
            .await
            .status
    };
    Keys::rotate(&file).unwrap();
    let new = server.mint("admin", &[""]);
    assert_ne!(
        old.split('.').next(),
        new.split('.').next(),
        "another key's id"
    );
    soon("the new key is seen", async {
        while status(&new).await != 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    assert_eq!(status(&old).await, 200, "both are good meanwhile");
}

#[tokio::test]
async fn what_is_left_in_the_data_directory_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let server = TestServer::start().await;
    for name in ["token", "api-keys.json", "api.json"] {
        let metadata = std::fs::metadata(server.dir.path().join(name)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600, "{name}");
    }
    let address = local::Address::read(server.dir.path()).unwrap().unwrap();
    assert_eq!(address.url, server.url);
    assert_eq!(address.pid, std::process::id());
}
