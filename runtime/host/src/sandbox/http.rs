//! `wasi:http`: requests to granted addresses.
//!
//! ```text
//! handle -> granted? resolve, check, dial -> TLS -> request -> head -> body, as the guest reads it
//! ```
//!
//! Each request has a connection of its own, of HTTP/1.1, and no redirect is followed.
//! While one is under way, a guest that waits in `wasi:io` waits for it, and the limit
//! on imports says so.
//!
//! The error codes of `wasi:http` have no words, but for `internal-error`. It stands
//! here for what no other attempt would change, with a sentence for the operator; a
//! denial is logged as well, for guests that keep the sentence to themselves.

use std::error::Error as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::uri::{PathAndQuery, Scheme};
use http::{Request, Response, Uri};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use hyper::client::conn::http1;
use tokio::time::{Sleep, sleep, timeout};
use wasmtime_wasi_http::io::TokioIo;
use wasmtime_wasi_http::p2::bindings::http::types::ErrorCode;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

use super::bindings::net::Verify;
use super::dial::{DialError, dial};
use super::grant::Grants;
use super::log::GuestLog;
use super::stream::Stream;
use super::tls;

/// Name, connection and TLS take a second between continents; a server that is
/// restarting takes some.
const CONNECT_MAX: Duration = Duration::from_secs(30);

/// From the request to the beginning of its answer. Gateways give up after this, so
/// servers answer before.
const FIRST_BYTE_MAX: Duration = Duration::from_secs(60);

/// Between two parts of an answer's body.
const BETWEEN_BYTES_MAX: Duration = Duration::from_secs(60);

/// Twice the largest document that destinations take, as for batches.
const RESPONSE_BYTES_MAX: u64 = 64 << 20;

/// Half of a guest's memory. Larger files are uploaded in parts everywhere.
const REQUEST_BYTES_MAX: u64 = 256 << 20;

/// What a guest waits for while a request is under way.
const WAIT: &str = "wasi:http/outgoing-handler";

/// How a request is sent for one guest.
pub(super) struct Http {
    grants: Arc<Grants>,
    log: Arc<GuestLog>,
    /// Requests without the end of their answer.
    under_way: Arc<AtomicUsize>,
}

impl Http {
    pub(super) fn new(grants: &Grants, log: &Arc<GuestLog>) -> Http {
        Http {
            grants: Arc::new(grants.clone()),
            log: log.clone(),
            under_way: Arc::default(),
        }
    }

    /// Returns what an import waits for: an answer, if one is to come.
    pub(super) fn name_wait(&self, import: &'static str) -> &'static str {
        match import {
            "wasi:io/poll" | "wasi:io/streams" if self.under_way.load(Ordering::Relaxed) > 0 => {
                WAIT
            }
            other => other,
        }
    }
}

/// The rest of an answer's connection, which ends when it is dropped.
type Driving = Box<dyn Future<Output = Result<(), Error>> + Send>;

impl WasiHttpHooks for Http {
    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Result<(Response<WasiBody>, Driving), Error>> + Send> {
        let exchange = Exchange {
            grants: self.grants.clone(),
            log: self.log.clone(),
            patience: Patience::of(options.unwrap_or_default()),
            under_way: UnderWay::begin(&self.under_way),
        };
        Box::new(exchange.send(request))
    }

    fn p2_error_from_hyper(&mut self, error: &hyper::Error) -> ErrorCode {
        match lost(error) {
            Error::HttpRequestBodySize(size) => ErrorCode::HttpRequestBodySize(size),
            Error::ConnectionTerminated => ErrorCode::ConnectionTerminated,
            _ => ErrorCode::HttpProtocolError,
        }
    }
}

/// How long each wait may be: as the guest says, up to our own limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Patience {
    connect: Duration,
    first_byte: Duration,
    between_bytes: Duration,
}

impl Patience {
    fn of(options: RequestOptions) -> Patience {
        let at_most = |max: Duration, asked: Option<Duration>| asked.map_or(max, |it| it.min(max));
        Patience {
            connect: at_most(CONNECT_MAX, options.connect_timeout),
            first_byte: at_most(FIRST_BYTE_MAX, options.first_byte_timeout),
            between_bytes: at_most(BETWEEN_BYTES_MAX, options.between_bytes_timeout),
        }
    }
}

/// Counts a request as under way for as long as it lives.
struct UnderWay(Arc<AtomicUsize>);

impl UnderWay {
    fn begin(count: &Arc<AtomicUsize>) -> UnderWay {
        count.fetch_add(1, Ordering::Relaxed);
        UnderWay(count.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request and its answer.
struct Exchange {
    grants: Arc<Grants>,
    log: Arc<GuestLog>,
    patience: Patience,
    under_way: UnderWay,
}

impl Exchange {
    async fn send(
        self,
        mut request: Request<WasiBody>,
    ) -> Result<(Response<WasiBody>, Driving), Error> {
        let Patience {
            connect,
            first_byte,
            between_bytes,
        } = self.patience;
        let uri = request.uri().clone();
        let stream = timeout(connect, self.connect(&uri)).await;
        let stream = stream.map_err(|_| Error::ConnectionTimeout)??;
        let shaken = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = shaken.map_err(|error| lost(&error))?;
        let driving = wasmtime_wasi::runtime::spawn(connection);

        *request.uri_mut() = origin_form(&uri);
        let request = request.map(|body| Limited::new(body, REQUEST_BYTES_MAX, Side::Request));
        let answer = timeout(first_byte, sender.send_request(request)).await;
        let answer = answer.map_err(|_| Error::ConnectionReadTimeout)?;
        let answer = answer.map_err(|error| lost(&error))?;
        let answer = answer.map(|body| {
            let body = body.map_err(|error| lost(&error));
            let patience = Some(between_bytes);
            let limited = Limited::new(body, RESPONSE_BYTES_MAX, Side::Response { patience });
            Tracked(limited, Some(self.under_way)).boxed_unsync()
        });
        // How it ended, the answer's body says.
        let driving = async move {
            let _ = driving.await;
            Ok(())
        };
        Ok((answer, Box::new(driving)))
    }

    async fn connect(&self, uri: &Uri) -> Result<Stream, Error> {
        let host = uri.host().ok_or(Error::HttpRequestUriInvalid)?;
        let https = uri.scheme() == Some(&Scheme::HTTPS);
        let port = uri.port_u16().unwrap_or(if https { 443 } else { 80 });
        let plain = dial(&self.grants, host, port).await;
        let plain = plain.map_err(|refused| self.undialled(refused))?;
        if !https {
            return Ok(Stream::Plain(plain));
        }
        let refused = |error: &dyn std::fmt::Display| {
            Error::InternalError(Some(format!("TLS with {host}:{port}: {error}")))
        };
        let connector = tls::connector(Verify::Full, None).map_err(|error| refused(&error))?;
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let name = tls::server_name(bare).map_err(|error| refused(&error))?;
        match connector.connect(name, plain).await {
            Ok(stream) => Ok(Stream::Tls(Box::new(stream))),
            Err(error) if tls::is_refusal(&error) => Err(refused(&error)),
            Err(_) => Err(Error::ConnectionTerminated),
        }
    }

    fn undialled(&self, refused: DialError) -> Error {
        match refused {
            DialError::Denied(denial) => {
                self.log.denied("wasi:http", &denial);
                Error::InternalError(Some(denial.to_string()))
            }
            DialError::Resolve { source, .. } => Error::DnsError {
                rcode: Some(source.to_string()),
                info_code: None,
            },
            DialError::Connect { source, .. } => match source.kind() {
                io::ErrorKind::ConnectionRefused => Error::ConnectionRefused,
                io::ErrorKind::TimedOut => Error::ConnectionTimeout,
                _ => Error::DestinationUnavailable,
            },
        }
    }
}

/// A server is told the path; host and port are in a header.
fn origin_form(uri: &Uri) -> Uri {
    let path = uri.path_and_query().cloned();
    Uri::from(path.unwrap_or(PathAndQuery::from_static("/")))
}

/// Says how a connection was lost.
fn lost(error: &hyper::Error) -> Error {
    if let Some(Error::HttpRequestBodySize(size)) = error.source().and_then(|it| it.downcast_ref())
    {
        return Error::HttpRequestBodySize(*size);
    }
    let broken = error.source().is_some_and(|it| it.is::<io::Error>());
    match error.is_incomplete_message() || error.is_canceled() || error.is_closed() || broken {
        true => Error::ConnectionTerminated,
        false => Error::HttpProtocolError,
    }
}

/// Which of the two bodies it is.
enum Side {
    Request,
    Response {
        /// How long a part may take; none without a limit.
        patience: Option<Duration>,
    },
}

/// A body that ends with an error where it becomes too long, or takes too long.
struct Limited<B> {
    body: B,
    max: u64,
    seen: u64,
    side: Side,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<B> Limited<B> {
    fn new(body: B, max: u64, side: Side) -> Limited<B> {
        Limited {
            body,
            max,
            seen: 0,
            side,
            waiting: None,
        }
    }

    /// Counts a part.
    fn count(&mut self, frame: &Frame<Bytes>) -> Result<(), Error> {
        self.seen += frame.data_ref().map_or(0, |data| data.len() as u64);
        match (self.seen > self.max, &self.side) {
            (false, _) => Ok(()),
            (true, Side::Request) => Err(Error::HttpRequestBodySize(Some(self.max))),
            (true, Side::Response { .. }) => Err(Error::HttpResponseBodySize(Some(self.max))),
        }
    }

    /// Completes when the next part has taken too long.
    fn poll_patience(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Side::Response {
            patience: Some(patience),
        } = self.side
        else {
            return Poll::Pending;
        };
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(sleep(patience)));
        waiting.as_mut().poll(context)
    }
}

impl<B: Body<Data = Bytes, Error = Error> + Unpin> Body for Limited<B> {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                self.waiting = None;
                Poll::Ready(Some(self.count(&frame).map(|()| frame)))
            }
            Poll::Ready(other) => Poll::Ready(other),
            Poll::Pending => self
                .poll_patience(context)
                .map(|()| Some(Err(Error::ConnectionReadTimeout))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

/// An answer's body, under way until its end.
struct Tracked<B>(B, Option<UnderWay>);

impl<B: Body<Data = Bytes, Error = Error> + Unpin> Body for Tracked<B> {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let polled = Pin::new(&mut self.0).poll_frame(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.1 = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.0.size_hint()
    }
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
