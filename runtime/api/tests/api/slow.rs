//! Clients that do not read, and clients that hang up.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate_api::v1::task::State;
use tokio::io::{AsyncBufReadExt, AsyncReadExt};
use tokio::net::TcpSocket;

use crate::host::{COLLECTION, done};
use crate::http::{Ask, send};
use crate::server::{TestServer, soon, until};

const SYNC_NOW: Ask<'static> = Ask {
    method: "POST",
    path: "/v1/task-control/sync-now",
    token: None,
    headers: &[],
    body: br#"{"task": "acmeCo/a"}"#,
};

#[tokio::test]
async fn a_client_that_reads_a_byte_at_a_time_delays_nobody() {
    let server = TestServer::start().await;
    let token = server.token();
    let ask = Ask {
        token: Some(&token),
        ..SYNC_NOW
    };
    let (mut slow, _) = ask.open(&server).await;
    let mut byte = [0];
    slow.read_exact(&mut byte).await.unwrap();
    let other = async {
        let (mut reader, _) = ask.open(&server).await;
        let mut line = String::new();
        reader.read_line(&mut line).await.unwrap();
        assert!(line.contains("ALREADY_CLOSING"), "{line}");
        assert_eq!(server.host.commit(&Ok(done())), 2);
        while !line.contains("done") {
            line.clear();
            assert_ne!(reader.read_line(&mut line).await.unwrap(), 0);
        }
    };
    soon("the other's Done", other).await;
    // The commit is over and forgotten while the slow one still reads.
    until("nothing is held", || {
        server.host.held.load(Ordering::SeqCst) == 0
    })
    .await;
    let mut rest = Vec::new();
    let read = async {
        while slow.read_exact(&mut byte).await.is_ok() {
            rest.push(byte[0]);
        }
    };
    soon("the slow one's Done", read).await;
    let rest = String::from_utf8(rest).unwrap();
    assert!(rest.lines().last().unwrap().contains("\"done\""), "{rest}");
}

#[tokio::test]
async fn a_reader_that_does_not_read_is_given_up() {
    let server = TestServer::start().await;
    // Small buffers: what the kernel holds for a client is none of ours.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket
        .connect(server.address().parse().unwrap())
        .await
        .unwrap();
    let request = format!(
        "GET /v1/collections/acmeCo/endless:read HTTP/1.0\r\nAuthorization: Bearer {}\r\n\r\n",
        server.token()
    );
    tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes())
        .await
        .unwrap();
    let produced = || server.host.produced.load(Ordering::SeqCst);
    until("documents come", || produced() > 0).await;
    let mut before = 0;
    soon("no more documents come", async {
        while produced() != before {
            before = produced();
            tokio::time::sleep(Duration::from_millis(600)).await;
        }
    })
    .await;
    let mut text = Vec::new();
    soon("the end", stream.read_to_end(&mut text))
        .await
        .unwrap();
    assert_eq!(
        produced(),
        before,
        "the host was let go while the client slept"
    );
    let text = String::from_utf8(text).unwrap();
    let last = text.lines().last().unwrap();
    assert!(last.contains("RESOURCE_EXHAUSTED"), "{:.200}", last);
}

#[tokio::test]
async fn a_watcher_that_does_not_read_misses_what_is_between() {
    let server = TestServer::start().await;
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
    // Far more than any buffer on the way holds.
    const CHANGES: u64 = 100_000;
    for change in 0..CHANGES {
        server.host.change("acmeCo/a", |task| {
            task.transactions_total = change;
            task.message = "x".repeat(200);
        });
        if change % 100 == 0 {
            tokio::task::yield_now().await;
        }
    }
    server
        .host
        .change("acmeCo/a", |task| task.set_state(State::Stopped));
    let mut lines = 0;
    let read = async {
        loop {
            let mut next = String::new();
            if reader.read_line(&mut next).await.unwrap() == 0 {
                break;
            }
            (line, lines) = (next, lines + 1);
        }
    };
    soon("the end", read).await;
    assert!(line.contains("STOPPED"), "{line}");
    assert!(lines < CHANGES, "{lines}");
}

#[tokio::test]
async fn hanging_up_lets_go_of_the_wait() {
    let server = TestServer::start().await;
    let token = server.token();
    let ask = Ask {
        token: Some(&token),
        ..SYNC_NOW
    };
    let held = || server.host.held.load(Ordering::SeqCst);
    let (mut reader, _) = ask.open(&server).await;
    let mut line = String::new();
    reader.read_line(&mut line).await.unwrap();
    assert_eq!(held(), 1);
    drop(reader);
    until("the wait is over", || held() == 0).await;
    assert_eq!(server.host.commit(&Ok(done())), 0);
    let client = server.client().await;
    let request = tidegate_api::v1::SyncNowRequest {
        task: "acmeCo/a".to_owned(),
        ..Default::default()
    };
    let answers = client.task_control().sync_now(request).await.unwrap();
    assert_eq!(held(), 1);
    drop(answers);
    until("the wait is over", || held() == 0).await;
}

#[tokio::test]
async fn what_was_begun_is_done_although_the_caller_hung_up() {
    let server = TestServer::start().await;
    server.host.gate.send_replace(false);
    let token = server.token();
    let head = format!(
        "POST /v1/collections/acmeCo/orders:append HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \
         {token}\r\nContent-Length: 2\r\n\r\n{{}}"
    );
    let mut stream = tokio::net::TcpStream::connect(server.address())
        .await
        .unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stream, head.as_bytes())
        .await
        .unwrap();
    until("the append has begun", || {
        server.host.gate.receiver_count() > 0
    })
    .await;
    drop(stream);
    // Whatever the server makes of the hang-up, it has made of it by now.
    assert_eq!(send(&server, "GET", "/v1/tasks", b"").await.status, 200);
    server.host.gate.send_replace(true);
    until("the document is there", || {
        !server.host.documents(COLLECTION).is_empty()
    })
    .await;
}
