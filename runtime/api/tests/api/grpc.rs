//! gRPC and gRPC-web say what REST says.

use bytes::{BufMut, BytesMut};
use prost::Message;
use tidegate_api::v1::sync_now_response::Response;
use tidegate_api::v1::task::State;
use tidegate_api::{Code, Error, Readiness, to_json, v1};
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::host::{COLLECTION, done};
use crate::http::{Ask, get, send};
use crate::server::{TestServer, soon};

#[tokio::test]
async fn sync_now() {
    let server = TestServer::start().await;
    let client = server.client().await;
    let request = v1::SyncNowRequest {
        task: "acmeCo/a".to_owned(),
        ..Default::default()
    };
    let mut answers = client
        .task_control()
        .sync_now(request)
        .await
        .unwrap()
        .into_inner();
    let mut said = Vec::new();
    while let Some(message) = soon("a message", answers.message()).await.unwrap() {
        match message.response.unwrap() {
            Response::Ack(_) => said.push("ack"),
            Response::Heartbeat(_) => {
                if said.last() != Some(&"heartbeat") {
                    said.push("heartbeat");
                    server.host.commit(&Ok(done()));
                }
            }
            Response::Done(it) => {
                assert_eq!(it, done());
                said.push("done");
            }
        }
    }
    assert_eq!(said, ["ack", "heartbeat", "done"]);
}

#[tokio::test]
async fn answers_are_those_of_rest() {
    let server = TestServer::start().await;
    let client = server.client().await;
    let append = v1::AppendRequest {
        collection: COLLECTION.to_owned(),
        documents: "{}\n{}\n".into(),
        ..Default::default()
    };
    let appended = client.collections().append(append).await.unwrap();
    assert_eq!(appended.into_inner().appended_docs, 2);
    let listed = client
        .tasks()
        .list(v1::ListTasksRequest::default())
        .await
        .unwrap();
    let rest = get(&server, "/v1/tasks").await;
    assert_eq!(
        rest.text().trim_end().as_bytes(),
        to_json(&listed.into_inner())
    );
    let request = v1::GetTaskRequest {
        task: "acmeCo/a".to_owned(),
    };
    let got = client.tasks().get(request).await.unwrap();
    let rest = get(&server, "/v1/tasks/acmeCo/a").await;
    assert_eq!(
        rest.text().trim_end().as_bytes(),
        to_json(&got.into_inner())
    );
    let request = v1::ReadRequest {
        collection: COLLECTION.to_owned(),
        ..Default::default()
    };
    let mut read = client
        .collections()
        .read(request)
        .await
        .unwrap()
        .into_inner();
    let mut lines = Vec::new();
    while let Some(document) = read.message().await.unwrap() {
        lines.extend([b"{\"result\":", to_json(&document).as_slice(), b"}\n"].concat());
    }
    let rest = get(&server, "/v1/collections/acmeCo/orders:read").await;
    assert_eq!(rest.body, lines);
    let catalog = v1::CatalogFiles {
        files: [("a".to_owned(), "bad".to_owned())].into(),
        roots: vec!["a".to_owned()],
        base_directory: String::new(),
    };
    let request = v1::PublishRequest {
        catalog: Some(catalog),
        dry_run: false,
    };
    let published = client.catalog().publish(request.clone()).await.unwrap();
    let rest = send(&server, "PUT", "/v1/catalog", &to_json(&request)).await;
    assert_eq!(
        rest.text().trim_end().as_bytes(),
        to_json(&published.into_inner())
    );
}

#[tokio::test]
async fn errors_are_those_of_rest() {
    let server = TestServer::start().await;
    server
        .host
        .change("acmeCo/b", |task| task.set_state(State::Pending));
    let client = server.client().await;
    for (task, code) in [
        ("acmeCo/none", Code::NotFound),
        ("acmeCo/b", Code::Unavailable),
        ("acmeCo/broken", Code::Internal),
        ("", Code::InvalidArgument),
        ("a\u{e9}\n", Code::NotFound),
    ] {
        let request = v1::SyncNowRequest {
            task: task.to_owned(),
            ..Default::default()
        };
        let status = client
            .task_control()
            .sync_now(request.clone())
            .await
            .unwrap_err();
        let error = Error::from(status);
        assert_eq!(error.code, code, "{task}: {error}");
        let body = to_json(&request);
        let rest = send(&server, "POST", "/v1/task-control/sync-now", &body).await;
        assert_eq!(rest.status, error.http_status());
        let rest = rest.json();
        assert_eq!(rest["error"]["code"], code.as_str_name());
        assert_eq!(rest["error"]["message"], error.message);
    }
}

#[tokio::test]
async fn grpc_web() {
    let server = TestServer::start().await;
    let call = async |request: &v1::GetTaskRequest, token: &str| {
        let mut body = BytesMut::new();
        body.put_u8(0);
        body.put_u32(request.encoded_len() as u32);
        request.encode(&mut body).unwrap();
        let ask = Ask {
            method: "POST",
            path: "/tidegate.v1.Tasks/Get",
            token: Some(token),
            headers: &[("Content-Type", "application/grpc-web+proto")],
            body: &body,
        };
        ask.send(&server).await
    };
    let request = v1::GetTaskRequest {
        task: "acmeCo/a".to_owned(),
    };
    let answer = call(&request, &server.token()).await;
    assert_eq!(answer.status, 200);
    let length = u32::from_be_bytes(answer.body[1..5].try_into().unwrap()) as usize;
    let message = v1::GetTaskResponse::decode(&answer.body[5..5 + length]).unwrap();
    let rest = get(&server, "/v1/tasks/acmeCo/a").await;
    assert_eq!(rest.text().trim_end().as_bytes(), to_json(&message));
    let trailers = String::from_utf8_lossy(&answer.body[5 + length..]);
    assert!(trailers.contains("grpc-status:0"), "{trailers:?}");
    let request = v1::GetTaskRequest {
        task: "acmeCo/none".to_owned(),
    };
    let missing = call(&request, &server.token()).await;
    assert_eq!(missing.header("grpc-status"), Some("5"));
    let refused = call(&request, "nonsense").await;
    assert_eq!(refused.header("grpc-status"), Some("16"));
}

#[tokio::test]
async fn health_and_reflection_need_no_token() {
    let server = TestServer::start().await;
    let channel = Endpoint::from_shared(server.url.clone()).unwrap();
    let channel = channel.connect().await.unwrap();
    let mut health = HealthClient::new(channel.clone());
    let check = |service: &str| HealthCheckRequest {
        service: service.to_owned(),
    };
    let serving = health.check(check("tidegate.v1.Tasks")).await.unwrap();
    assert_eq!(serving.into_inner().status, 1);
    let unknown = health.check(check("tidegate.v1.None")).await.unwrap_err();
    assert_eq!(unknown.code(), tonic::Code::NotFound);
    let mut watched = health.watch(check("")).await.unwrap().into_inner();
    assert_eq!(watched.message().await.unwrap().unwrap().status, 1);
    *server.host.readiness.lock().unwrap() = Readiness::NotReady("draining".to_owned());
    let changed = soon("a change of health", watched.message()).await;
    assert_eq!(changed.unwrap().unwrap().status, 2);

    let mut reflection = ServerReflectionClient::new(channel);
    let request = tonic_reflection::pb::v1::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let requests = futures::stream::iter([request]);
    let mut answers = reflection
        .server_reflection_info(requests)
        .await
        .unwrap()
        .into_inner();
    let answer = answers.message().await.unwrap().unwrap().message_response;
    let Some(MessageResponse::ListServicesResponse(services)) = answer else {
        panic!("{answer:?}");
    };
    let names: Vec<String> = services.service.into_iter().map(|it| it.name).collect();
    for name in ["TaskControl", "Tasks", "Collections", "Catalog"] {
        assert!(names.contains(&format!("tidegate.v1.{name}")), "{names:?}");
    }
    assert!(names.iter().any(|name| name == "grpc.health.v1.Health"));
}

#[tokio::test]
async fn an_unknown_service_is_unimplemented() {
    let server = TestServer::start().await;
    let ask = Ask {
        method: "POST",
        path: "/tidegate.v9.Tasks/Get",
        token: None,
        headers: &[("Content-Type", "application/grpc")],
        body: b"",
    };
    let answer = soon("an answer", ask.send(&server)).await;
    assert_eq!(answer.header("grpc-status"), Some("12"));
}
