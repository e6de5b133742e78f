//! The server stops: streams end, calls finish, nobody is waited for for long.

use std::time::{Duration, Instant};

use tidegate_api::{Code, Error, v1};
use tokio::io::{AsyncBufReadExt, AsyncReadExt};
use tokio::net::TcpStream;

use crate::host::COLLECTION;
use crate::http::Ask;
use crate::server::{TestServer, soon, until};

#[tokio::test]
async fn streams_end_with_unavailable() {
    let mut server = TestServer::start().await;
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
    assert!(answers.message().await.unwrap().is_some());
    let token = server.token();
    let ask = Ask {
        method: "GET",
        path: "/v1/tasks/acmeCo/a:watch",
        token: Some(&token),
        headers: &[],
        body: b"",
    };
    let (mut reader, _) = ask.open(&server).await;
    let mut line = String::new();
    reader.read_line(&mut line).await.unwrap();
    // One that is kept alive and has no call.
    let mut idle = TcpStream::connect(server.address()).await.unwrap();
    let keep = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    tokio::io::AsyncWriteExt::write_all(&mut idle, keep)
        .await
        .unwrap();
    let mut first = [0; 12];
    idle.read_exact(&mut first).await.unwrap();
    let began = Instant::now();
    soon("the end", server.stop()).await.unwrap();
    // Nothing held it up.
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    let error = loop {
        match answers.message().await {
            Ok(message) => assert!(message.is_some(), "the stream ends with an error"),
            Err(status) => break Error::from(status),
        }
    };
    assert_eq!(error.code, Code::Unavailable);
    assert!(error.message.contains("is stopping"), "{error}");
    let mut rest = String::new();
    reader.read_to_string(&mut rest).await.unwrap();
    assert!(
        rest.lines().last().unwrap().contains("UNAVAILABLE"),
        "{rest}"
    );
    assert!(TcpStream::connect(server.address()).await.is_err());
}

#[tokio::test]
async fn calls_that_change_something_finish() {
    let mut server = TestServer::start().await;
    server.host.gate.send_replace(false);
    let client = server.client().await;
    let append = tokio::spawn(async move {
        let request = v1::AppendRequest {
            collection: COLLECTION.to_owned(),
            documents: "{}".into(),
            ..Default::default()
        };
        client.collections().append(request).await
    });
    until("the append has begun", || {
        server.host.gate.receiver_count() > 0
    })
    .await;
    let host = server.host.clone();
    let stopped = server.stop();
    tokio::select! {
        _ = &mut *stopped => panic!("the append was not waited for"),
        () = tokio::time::sleep(Duration::from_millis(200)) => {}
    }
    host.gate.send_replace(true);
    soon("the end", stopped).await.unwrap();
    assert_eq!(append.await.unwrap().unwrap().into_inner().appended_docs, 1);
}
