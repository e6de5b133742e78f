//! A sync-now call that outlasts the host.

use std::net::TcpListener;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate_api::client::{Heard, SyncNowCall};
use tidegate_api::v1::sync_now_response::Response;
use tidegate_api::v1::task::State;
use tidegate_api::{Code, Error, v1};

use crate::host::{MemoryHost, done};
use crate::server::{TestServer, soon, until};

fn call(task: &str) -> SyncNowCall {
    SyncNowCall {
        request: v1::SyncNowRequest {
            task: task.to_owned(),
            ..Default::default()
        },
        timeout: None,
    }
}

#[tokio::test]
async fn it_is_made_again_when_the_session_ends_and_when_there_is_no_leader() {
    let server = TestServer::start().await;
    let target = server.target();
    let host = server.host.clone();
    let mut again = 0;
    let made = call("acmeCo/a");
    let called = made.run(
        || Ok(target.clone()),
        |heard| {
            if let Heard::Again(error) = heard {
                assert_eq!(error.code, Code::Unavailable);
                again += 1;
                if again == 1 {
                    host.change("acmeCo/a", |task| task.set_state(State::Pending));
                } else {
                    host.change("acmeCo/a", |task| task.set_state(State::Running));
                }
            }
            ControlFlow::Continue(())
        },
    );
    let held = || host.held.load(Ordering::SeqCst) == 1;
    let leader = async {
        until("it waits", held).await;
        host.commit(&Err(Error::new(Code::Unavailable, "the session ended")));
        until("it waits no more", || !held()).await;
        until("it waits again", held).await;
        host.commit(&Ok(done()));
    };
    let (result, ()) = soon("Done", async { tokio::join!(called, leader) }).await;
    result.unwrap();
    assert_eq!(again, 2);
}

#[tokio::test]
async fn it_follows_a_host_that_dies_and_comes_back_elsewhere() {
    let first = TestServer::start().await;
    let host = Arc::new(MemoryHost::new());
    let second = TestServer::with(host.clone(), |_| {}).await;
    let (there, elsewhere) = (first.target(), second.target());
    let died = std::sync::atomic::AtomicBool::new(false);
    let target = || {
        Ok(match died.load(Ordering::SeqCst) {
            false => there.clone(),
            true => elsewhere.clone(),
        })
    };
    let made = call("acmeCo/a");
    let called = made.run(target, |_| ControlFlow::Continue(()));
    let first_host = first.host.clone();
    let events = async {
        until("it waits", || first_host.held.load(Ordering::SeqCst) == 1).await;
        // As a killed process ends: connections just close.
        drop(first);
        died.store(true, Ordering::SeqCst);
        until("it waits again", || host.held.load(Ordering::SeqCst) == 1).await;
        host.commit(&Ok(done()));
    };
    let (result, ()) = soon("Done", async { tokio::join!(called, events) }).await;
    result.unwrap();
}

#[tokio::test]
async fn what_calling_again_does_not_mend_is_an_error_at_once() {
    let server = TestServer::start().await;
    let target = server.target();
    let made = call("acmeCo/none");
    let result = made.run(|| Ok(target.clone()), |heard| panic!("{heard:?}"));
    let error = soon("an error", result).await.unwrap_err();
    assert_eq!(error, Error::unknown_task("acmeCo/none"));
}

#[tokio::test]
async fn it_takes_no_longer_than_it_may() {
    let server = TestServer::start().await;
    let target = server.target();
    let mut made = call("acmeCo/a");
    made.timeout = Some(Duration::from_millis(200));
    let result = made.run(|| Ok(target.clone()), |_| ControlFlow::Continue(()));
    let error = soon("an error", result).await.unwrap_err();
    assert!(
        error.message.contains("was not done within 200ms"),
        "{error}"
    );
    // And where nobody listens.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut nowhere = server.target();
    nowhere.url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let result = made.run(|| Ok(nowhere.clone()), |_| ControlFlow::Continue(()));
    let error = soon("an error", result).await.unwrap_err();
    assert!(error.message.contains("no host answers at"), "{error}");
}

#[tokio::test]
async fn a_caller_may_leave_after_the_ack() {
    let server = TestServer::start().await;
    let target = server.target();
    let made = call("acmeCo/a");
    let result = made.run(
        || Ok(target.clone()),
        |heard| match heard {
            Heard::Message(message) => {
                assert!(matches!(message.response, Some(Response::Ack(_))));
                ControlFlow::Break(())
            }
            Heard::Again(error) => panic!("{error}"),
        },
    );
    soon("the Ack", result).await.unwrap();
}
