//! Connections: accepted while there is room, kept while they are used.
//!
//! ```text
//! accept -> (TLS) -> HTTP/1 or HTTP/2 -> requests
//!             idle, or the server stops -> no more requests -> closed
//! ```

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::limits::{
    ACCEPT_PAUSE, CONNECTIONS_MAX, HEADER_BYTES_MAX, HEADER_TIME_MAX, IDLE_MAX, PING_EVERY,
    PING_TIME_MAX, SEND_BUFFER_BYTES, STOP_TIME_MAX, STREAMS_MAX,
};
use crate::stream::Stopping;

/// Answers until the server stops, and then until every call has ended, for some
/// seconds at most.
pub(super) async fn serve(
    listener: &TcpListener,
    tls: Option<&TlsAcceptor>,
    router: Router,
    mut stopping: Stopping,
) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let accepted = async {
            let place = room.clone().acquire_owned().await;
            (
                place.expect("the semaphore is never closed"),
                listener.accept().await,
            )
        };
        let (place, accepted) = tokio::select! {
            biased;
            () = stopping.wait() => break,
            // Only so that those that have ended are forgotten.
            Some(_) = connections.join_next() => continue,
            accepted = accepted => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // Without it a heartbeat waits for an acknowledgement of what was before.
        let _ = stream.set_nodelay(true);
        let (tls, router, stopping) = (tls.cloned(), router.clone(), stopping.clone());
        connections.spawn(async move {
            let _place = place;
            match tls {
                None => converse(stream, router, stopping).await,
                Some(tls) => {
                    let secured = tokio::time::timeout(HEADER_TIME_MAX, tls.accept(stream));
                    match secured.await {
                        Ok(Ok(stream)) => converse(stream, router, stopping).await,
                        Ok(Err(error)) => tracing::debug!("no TLS with a client: {error}"),
                        Err(_) => tracing::debug!("no TLS with a client: it took too long"),
                    }
                }
            }
        });
    }
    let ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(STOP_TIME_MAX, ended).await.is_err() {
        tracing::warn!("calls that did not end were cut off");
    }
}

/// Answers the requests of one connection.
async fn converse<S>(stream: S, router: Router, mut stopping: Stopping)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let activity = Activity::new();
    let counted = activity.clone();
    let service = tower::service_fn(move |request: Request<_>| {
        let (router, call) = (router.clone(), counted.begin());
        async move {
            let response: Response<Body> = router.oneshot(request.map(Body::new)).await?;
            Ok::<_, std::convert::Infallible>(response.map(|body| Counted { body, _call: call }))
        }
    });
    let builder = builder();
    let connection =
        builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = async { tokio::select! { () = activity.idle() => {}, () = stopping.wait() => {} } } => {
            // No more requests; those that there are get their answers.
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        // Clients break off all the time.
        tracing::debug!("a connection ended: {error}");
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME_MAX)
        .max_buf_size(HEADER_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEADER_BYTES_MAX as u32)
        .max_send_buf_size(SEND_BUFFER_BYTES)
        .adaptive_window(true)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIME_MAX);
    builder
}

/// Counts the calls of a connection.
#[derive(Clone)]
struct Activity(Arc<watch::Sender<Calls>>);

#[derive(Clone, Copy, Default)]
struct Calls {
    now: usize,
    ever: bool,
}

/// A call, until its answer is sent or given up.
struct Call(Activity);

impl Activity {
    fn new() -> Activity {
        Activity(Arc::new(watch::Sender::new(Calls::default())))
    }

    fn begin(&self) -> Call {
        self.0.send_modify(|calls| {
            calls.now += 1;
            calls.ever = true;
        });
        Call(self.clone())
    }

    /// Resolves once the connection was without a call for long; sooner if it never
    /// had one.
    async fn idle(&self) {
        let mut calls = self.0.subscribe();
        loop {
            let Calls { now, ever } = *calls.borrow_and_update();
            let patience = match (now, ever) {
                (0, false) => HEADER_TIME_MAX,
                (0, true) => IDLE_MAX,
                _ => Duration::MAX,
            };
            let changed = calls.changed();
            if tokio::time::timeout(patience, changed).await.is_err() {
                return;
            }
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.0.0.send_modify(|calls| calls.now -= 1);
    }
}

/// The body of an answer, which keeps its call going.
struct Counted {
    body: Body,
    _call: Call,
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
