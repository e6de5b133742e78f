//! What a client cannot take more of.

use std::time::Duration;

use tidegate_api::limits::{BODY_BYTES_MAX, HEADER_BYTES_MAX, STREAMS_MAX};
use tidegate_api::{Code, Error, v1};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::host::{COLLECTION, MemoryHost};
use crate::http::{Ask, send};
use crate::server::{SOON, TestServer, soon, until};

fn append(bytes: usize) -> v1::AppendRequest {
    let mut documents = vec![b' '; bytes];
    documents[..2].copy_from_slice(b"{}");
    v1::AppendRequest {
        collection: COLLECTION.to_owned(),
        documents: documents.into(),
        ..Default::default()
    }
}

#[tokio::test]
async fn a_body_too_large_is_refused_and_the_largest_is_not() {
    let server = TestServer::start().await;
    let path = "/v1/collections/acmeCo/orders:append";
    let largest = append(32 << 20);
    let answer = send(&server, "POST", path, &largest.documents).await;
    assert_eq!(answer.status, 200);
    let answer = send(&server, "POST", path, &append(BODY_BYTES_MAX + 1).documents).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (413, "RESOURCE_EXHAUSTED")
    );

    let client = server.client().await;
    client.collections().append(largest).await.unwrap();
    let refused = client
        .collections()
        .append(append(BODY_BYTES_MAX + 1))
        .await;
    let error = Error::from(refused.unwrap_err());
    assert_eq!(error.code, Code::ResourceExhausted);
    assert!(error.message.contains("send it in parts"), "{error}");
    assert_eq!(server.host.documents(COLLECTION).len(), 2);
}

#[tokio::test]
async fn a_body_is_not_read_before_its_sender_is_known() {
    let server = TestServer::start().await;
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let head =
        "POST /v1/collections/acmeCo/orders:append HTTP/1.0\r\nContent-Length: 1000000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    // Not a byte of the body was sent.
    let mut answer = String::new();
    soon("a refusal", stream.read_to_string(&mut answer))
        .await
        .unwrap();
    assert!(answer.starts_with("HTTP/1.0 401 "), "{answer}");
}

#[tokio::test]
async fn headers_are_bounded() {
    let server = TestServer::start().await;
    let long = "x".repeat(HEADER_BYTES_MAX);
    let ask = Ask {
        method: "GET",
        path: "/healthz",
        token: None,
        headers: &[("X-Long", &long)],
        body: b"",
    };
    assert_eq!(ask.send(&server).await.status, 431);
}

#[tokio::test]
async fn a_connection_that_asks_for_nothing_is_closed() {
    let server = TestServer::start().await;
    let mut silent = TcpStream::connect(server.address()).await.unwrap();
    let mut half = TcpStream::connect(server.address()).await.unwrap();
    half.write_all(b"GET /healthz HTTP/1.1\r\nHost:")
        .await
        .unwrap();
    let mut nothing = Vec::new();
    let closed = async {
        silent.read_to_end(&mut nothing).await.unwrap();
        // It may be told why.
        half.read_to_end(&mut nothing).await.unwrap();
    };
    tokio::time::timeout(SOON * 2, closed).await.unwrap();
}

#[tokio::test]
async fn calls_on_one_connection_are_bounded_and_the_rest_waits() {
    let server = TestServer::start().await;
    let client = server.client().await;
    let mut calls = Vec::new();
    for _ in 0..STREAMS_MAX + 20 {
        let mut task_control = client.task_control();
        calls.push(tokio::spawn(async move {
            let request = v1::SyncNowRequest {
                task: "acmeCo/a".to_owned(),
                ..Default::default()
            };
            let mut answers = task_control.sync_now(request).await?.into_inner();
            while answers.message().await?.is_some() {}
            Ok::<_, tonic::Status>(())
        }));
    }
    let held = || server.host.held.load(std::sync::atomic::Ordering::SeqCst);
    until("the connection is full", || held() == STREAMS_MAX as usize).await;
    // Another connection is not concerned.
    let other = server.client().await;
    other
        .tasks()
        .list(v1::ListTasksRequest::default())
        .await
        .unwrap();
    assert_eq!(held(), STREAMS_MAX as usize);
    let committer = server.host.clone();
    let commits = tokio::spawn(async move { commit_for_ever(&committer).await });
    for call in calls {
        soon("a call", call).await.unwrap().unwrap();
    }
    commits.abort();
}

async fn commit_for_ever(host: &MemoryHost) {
    loop {
        host.commit(&Ok(crate::host::done()));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
