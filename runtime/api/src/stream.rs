//! Streams of answers that no slow client holds up.
//!
//! ```text
//! backend -> pump (a task of its own) -> a few messages, or the latest -> client
//!              ^ ends when the client hangs up, does not keep up, or the host stops
//! ```

use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt};
use tokio::sync::mpsc::error::SendTimeoutError;
use tokio::sync::{mpsc, oneshot, watch};

use crate::error::{Code, Error};
use crate::limits::{HEARTBEAT_EVERY, KEEP_UP_MAX, WAITING_MAX};
use crate::v1;
use crate::v1::sync_now_response::{Done, Heartbeat, Response};
use crate::v1::watch_task_response;

/// The messages that a call answers with.
pub(crate) type Answers<T> = BoxStream<'static, Result<T, Error>>;

/// Times that only tests change.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// See [`HEARTBEAT_EVERY`].
    pub heartbeat_every: Duration,
    /// See [`KEEP_UP_MAX`].
    pub keep_up_max: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            heartbeat_every: HEARTBEAT_EVERY,
            keep_up_max: KEEP_UP_MAX,
        }
    }
}

/// Says when the server stops.
#[derive(Clone)]
pub(crate) struct Stopping(watch::Receiver<bool>);

impl Stopping {
    pub(crate) fn new(stopping: watch::Receiver<bool>) -> Stopping {
        Stopping(stopping)
    }

    pub(crate) fn is_now(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the server stops.
    pub(crate) async fn wait(&mut self) {
        // A server that is gone has stopped.
        let _ = self.0.wait_for(|stopping| *stopping).await;
    }
}

/// What callers are told when the server stops.
pub(crate) fn stopping_error() -> Error {
    Error::new(
        Code::Unavailable,
        "the host is stopping; calling again is safe",
    )
}

fn too_slow() -> Error {
    Error::new(
        Code::ResourceExhausted,
        "the client does not read what it asked for: read faster, or ask for less",
    )
}

fn broken() -> Error {
    Error::new(
        Code::Internal,
        "the call broke off: the host's log says why",
    )
}

/// Where a pump puts messages. How it ends comes after those that wait.
struct Sink<T> {
    messages: mpsc::Sender<T>,
    keep_up_max: Duration,
}

/// Why a pump ends before its source does.
enum Ended {
    HungUp,
    With(Error),
}

impl<T: Send + 'static> Sink<T> {
    async fn send(&self, message: T) -> Result<(), Ended> {
        match self.messages.send_timeout(message, self.keep_up_max).await {
            Ok(()) => Ok(()),
            Err(SendTimeoutError::Timeout(_)) => Err(Ended::With(too_slow())),
            Err(SendTimeoutError::Closed(_)) => Err(Ended::HungUp),
        }
    }
}

/// Runs a pump and returns what it sends.
fn pumped<T, F>(pace: Pace, pump: impl FnOnce(Sink<T>) -> F) -> Answers<T>
where
    T: Send + 'static,
    F: Future<Output = Result<(), Ended>> + Send + 'static,
{
    let (messages, received) = mpsc::channel(WAITING_MAX);
    let (ended, end) = oneshot::channel();
    let pump = pump(Sink {
        messages,
        keep_up_max: pace.keep_up_max,
    });
    tokio::spawn(async move {
        // Nobody is there to hear it after a hang-up.
        let _ = ended.send(pump.await);
    });
    let received = stream::unfold(received, async |mut received| {
        received.recv().await.map(|message| (Ok(message), received))
    });
    let end = stream::once(end).filter_map(async |end| match end {
        Ok(Ok(()) | Err(Ended::HungUp)) => None,
        Ok(Err(Ended::With(error))) => Some(Err(error)),
        // The pump panicked.
        Err(_) => Some(Err(broken())),
    });
    received.chain(end).boxed()
}

/// Relays a stream whose every message counts.
pub(crate) fn relay<T: Send + 'static>(
    mut source: Answers<T>,
    mut stopping: Stopping,
    pace: Pace,
) -> Answers<T> {
    pumped(pace, |sink| async move {
        loop {
            let next = tokio::select! {
                biased;
                () = sink.messages.closed() => return Err(Ended::HungUp),
                () = stopping.wait() => return Err(Ended::With(stopping_error())),
                next = source.next() => next,
            };
            match next {
                Some(Ok(message)) => sink.send(message).await?,
                Some(Err(error)) => return Err(Ended::With(error)),
                None => return Ok(()),
            }
        }
    })
}

/// Answers a sync-now call: its Ack, heartbeats, its Done.
///
/// A heartbeat is left out when the client is behind: those that wait for it say
/// the same.
pub(crate) fn sync_now(
    answer: crate::SyncNow,
    status: impl Fn() -> BoxFuture<'static, Option<v1::Status>> + Send + 'static,
    mut stopping: Stopping,
    pace: Pace,
) -> Answers<v1::SyncNowResponse> {
    let message = |response| v1::SyncNowResponse {
        response: Some(response),
    };
    let mut heartbeats = stream::unfold(status, move |status| async move {
        tokio::time::sleep(pace.heartbeat_every).await;
        let heartbeat = Heartbeat {
            status: status().await,
        };
        Some((heartbeat, status))
    })
    .boxed();
    pumped(pace, move |sink| async move {
        sink.send(message(Response::Ack(answer.ack))).await?;
        let mut done = answer.done;
        let done: Result<Done, Error> = loop {
            tokio::select! {
                biased;
                done = &mut done => break done,
                () = sink.messages.closed() => return Err(Ended::HungUp),
                () = stopping.wait() => return Err(Ended::With(stopping_error())),
                Some(heartbeat) = heartbeats.next() => {
                    let _ = sink.messages.try_send(message(Response::Heartbeat(heartbeat)));
                }
            }
        };
        let done = done.map_err(Ended::With)?;
        sink.send(message(Response::Done(done))).await
    })
}

/// What a watcher is to be shown.
#[derive(Clone, Default)]
struct Cell {
    task: Option<v1::Task>,
    /// Counts the tasks that were put here.
    count: u64,
    end: Option<Option<Error>>,
}

/// Follows a task: what the client has not read when the next one comes is
/// replaced by it.
pub(crate) fn latest(
    mut source: Answers<v1::Task>,
    mut stopping: Stopping,
    pace: Pace,
) -> Answers<v1::WatchTaskResponse> {
    let (cell, seen) = watch::channel(Cell::default());
    tokio::spawn(async move {
        let end = loop {
            let next = tokio::select! {
                biased;
                () = cell.closed() => return,
                () = stopping.wait() => break Some(stopping_error()),
                next = source.next() => next,
            };
            match next {
                Some(Ok(task)) => cell.send_modify(|cell| {
                    cell.task = Some(task);
                    cell.count += 1;
                }),
                Some(Err(error)) => break Some(error),
                None => break None,
            }
        };
        cell.send_modify(|cell| cell.end = Some(end));
    });
    let shown = Shown {
        cell: seen,
        count: 0,
        ended: false,
    };
    stream::unfold(shown, move |shown| shown.next(pace.heartbeat_every)).boxed()
}

struct Shown {
    cell: watch::Receiver<Cell>,
    count: u64,
    ended: bool,
}

impl Shown {
    async fn next(
        mut self,
        heartbeat_every: Duration,
    ) -> Option<(Result<v1::WatchTaskResponse, Error>, Shown)> {
        use watch_task_response::{Heartbeat, Response};
        let message = |response| {
            Ok(v1::WatchTaskResponse {
                response: Some(response),
            })
        };
        if self.ended {
            return None;
        }
        loop {
            let cell = self.cell.borrow_and_update().clone();
            if let Some(task) = cell.task.filter(|_| cell.count > self.count) {
                self.count = cell.count;
                return Some((message(Response::Task(task)), self));
            }
            if let Some(end) = cell.end {
                self.ended = true;
                return end.map(|error| (Err(error), self));
            }
            match tokio::time::timeout(heartbeat_every, self.cell.changed()).await {
                Ok(Ok(())) => {}
                // The pump put its end here, or panicked.
                Ok(Err(_)) if self.cell.borrow().end.is_some() => {}
                Ok(Err(_)) => {
                    self.ended = true;
                    return Some((Err(broken()), self));
                }
                Err(_) => return Some((message(Response::Heartbeat(Heartbeat {})), self)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::FutureExt;
    use tokio::sync::watch;

    use super::*;
    use crate::SyncNow;

    const QUICK: Pace = Pace {
        heartbeat_every: Duration::from_millis(20),
        keep_up_max: Duration::from_millis(40),
    };

    fn server() -> (watch::Sender<bool>, Stopping) {
        let (stop, stopping) = watch::channel(false);
        (stop, Stopping::new(stopping))
    }

    fn task(read: u64) -> v1::Task {
        v1::Task {
            read_docs_total: read,
            ..Default::default()
        }
    }

    #[tokio::test]
    async fn a_relay_hands_on_everything_and_the_error_last() {
        let (_stop, stopping) = server();
        let error = Error::new(Code::Internal, "no more");
        let source = stream::iter((0..100).map(Ok)).chain(stream::iter([Err(error.clone())]));
        let got: Vec<_> = relay(source.boxed(), stopping, QUICK).collect().await;
        assert_eq!(got.len(), 101);
        assert!(got[..100].iter().enumerate().all(|(at, it)| *it == Ok(at)));
        assert_eq!(got[100], Err(error));
    }

    #[tokio::test]
    async fn a_relay_gives_a_client_up_that_does_not_read() {
        let (_stop, stopping) = server();
        let produced = Arc::new(AtomicUsize::new(0));
        let counted = produced.clone();
        let source = stream::repeat_with(move || Ok(counted.fetch_add(1, Ordering::Relaxed)));
        let (gone, mut over) = mpsc::channel::<()>(1);
        let source = source.inspect(move |_| {
            let _held = &gone;
        });
        let relayed = relay(source.boxed(), stopping, QUICK);
        // The source is dropped although the client still holds its end.
        assert_eq!(over.recv().await, None);
        assert_eq!(produced.load(Ordering::Relaxed), WAITING_MAX + 1);
        let got: Vec<_> = relayed.collect().await;
        assert_eq!(got.len(), WAITING_MAX + 1);
        let last = got.last().unwrap().as_ref().unwrap_err();
        assert_eq!(last.code, Code::ResourceExhausted);
    }

    #[tokio::test]
    async fn a_relay_lets_go_of_its_source_when_the_client_hangs_up() {
        let (_stop, stopping) = server();
        let (gone, mut over) = mpsc::channel::<()>(1);
        let source = stream::pending::<Result<(), Error>>().inspect(move |_| {
            let _held = &gone;
        });
        drop(relay(source.boxed(), stopping, QUICK));
        assert_eq!(over.recv().await, None);
    }

    #[tokio::test]
    async fn streams_end_when_the_server_stops() {
        let (stop, stopping) = server();
        let mut relayed = relay(
            stream::pending::<Result<(), Error>>().boxed(),
            stopping.clone(),
            Pace::default(),
        );
        let mut watched = latest(stream::pending().boxed(), stopping.clone(), Pace::default());
        let ack = Default::default();
        let done = futures::future::pending().boxed();
        let status = || futures::future::ready(None).boxed();
        let mut synced = sync_now(SyncNow { ack, done }, status, stopping, Pace::default());
        assert!(synced.next().await.unwrap().is_ok());
        stop.send_replace(true);
        let code = |error: Error| error.code;
        assert_eq!(
            relayed.next().await.unwrap().map_err(code),
            Err(Code::Unavailable)
        );
        assert_eq!(
            watched.next().await.unwrap().map_err(code),
            Err(Code::Unavailable)
        );
        assert_eq!(
            synced.next().await.unwrap().map_err(code),
            Err(Code::Unavailable)
        );
        assert!(watched.next().await.is_none() && synced.next().await.is_none());
    }

    #[tokio::test]
    async fn a_watcher_is_shown_the_latest_and_the_last() {
        let (_stop, stopping) = server();
        let source = stream::iter((1..=1000).map(|read| Ok(task(read))));
        let mut watched = latest(source.boxed(), stopping, Pace::default());
        // Everything was produced before the client reads.
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        let mut last = 0;
        let mut count = 0;
        while let Some(message) = watched.next().await {
            let Some(watch_task_response::Response::Task(task)) = message.unwrap().response else {
                continue;
            };
            assert!(task.read_docs_total > last);
            (last, count) = (task.read_docs_total, count + 1);
        }
        assert_eq!(last, 1000);
        assert!(count < 1000, "what was not read was replaced");
    }

    #[tokio::test]
    async fn a_silent_stream_has_heartbeats() {
        let (_stop, stopping) = server();
        let source = stream::once(async { Ok(task(1)) }).chain(stream::pending());
        let watched = latest(source.boxed(), stopping.clone(), QUICK);
        let got: Vec<_> = watched.take(3).collect().await;
        let is_heartbeat = |message: &Result<v1::WatchTaskResponse, Error>| {
            matches!(
                message.as_ref().unwrap().response,
                Some(watch_task_response::Response::Heartbeat(_))
            )
        };
        assert_eq!(
            got.iter().map(is_heartbeat).collect::<Vec<_>>(),
            [false, true, true]
        );
        let (finish, finished) = oneshot::channel();
        let done = finished.map(|_| Ok(Done::default())).boxed();
        let ack = Default::default();
        let status = || futures::future::ready(Some(v1::Status::default())).boxed();
        let mut synced = sync_now(SyncNow { ack, done }, status, stopping, QUICK);
        let mut finish = Some(finish);
        let mut said = Vec::new();
        while let Some(message) = synced.next().await {
            said.push(match message.unwrap().response.unwrap() {
                Response::Ack(_) => "ack",
                Response::Heartbeat(heartbeat) => {
                    assert!(heartbeat.status.is_some());
                    finish.take().map(|finish| finish.send(()));
                    "heartbeat"
                }
                Response::Done(_) => "done",
            });
        }
        assert_eq!(said.first(), Some(&"ack"));
        assert_eq!(said.last(), Some(&"done"));
        assert!(said.len() >= 3, "{said:?}");
    }

    #[tokio::test]
    async fn heartbeats_never_push_done_out() {
        let (_stop, stopping) = server();
        let (finish, finished) = oneshot::channel();
        let done = finished.map(|_| Ok(Done::default())).boxed();
        let (beats, mut beaten) = mpsc::unbounded_channel();
        let status = move || {
            let _ = beats.send(());
            futures::future::ready(None).boxed()
        };
        let pace = Pace {
            heartbeat_every: Duration::from_millis(1),
            keep_up_max: Duration::from_secs(60),
        };
        let ack = Default::default();
        let synced = sync_now(SyncNow { ack, done }, status, stopping, pace);
        // Nobody reads while far more heartbeats come than there is room for.
        for _ in 0..4 * WAITING_MAX {
            beaten.recv().await.unwrap();
        }
        finish.send(()).unwrap();
        let got: Vec<_> = synced.collect().await;
        assert!(got.len() <= WAITING_MAX + 1);
        let last = got.last().unwrap().as_ref().unwrap();
        assert!(matches!(last.response, Some(Response::Done(_))));
    }

    #[tokio::test]
    async fn a_source_that_panics_is_an_error_of_the_host() {
        let (_stop, stopping) = server();
        let source: Answers<()> = stream::once(async { panic!("the source is broken") }).boxed();
        let got: Vec<_> = relay(source, stopping.clone(), QUICK).collect().await;
        assert_eq!(got[0].as_ref().unwrap_err().code, Code::Internal);
        let source: Answers<v1::Task> =
            stream::once(async { panic!("the source is broken") }).boxed();
        let got: Vec<_> = latest(source, stopping, QUICK).collect().await;
        assert_eq!(got[0].as_ref().unwrap_err().code, Code::Internal);
    }
}
