//! Answers in JSON.

use axum::body::Body;
use axum::http::{HeaderValue, Method, Response, StatusCode, header};
use bytes::Bytes;
use futures::StreamExt;
use prost::{Message, Name};

use crate::error::{Code, Error};
use crate::json::to_json;
use crate::stream::Answers;
use crate::v1;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const LINES: HeaderValue = HeaderValue::from_static("application/x-ndjson");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

fn response(
    status: StatusCode,
    content_type: HeaderValue,
    body: impl Into<Body>,
) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, content_type);
    // Answers are of the moment, and some of them are secret.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    response
}

pub(super) fn text(status: StatusCode, text: &str) -> Response<Body> {
    response(status, TEXT, text.to_owned())
}

pub(super) fn json(status: StatusCode, text: impl Into<Body>) -> Response<Body> {
    response(status, JSON, text)
}

/// One message.
pub(super) fn one<M: Message + Name>(message: &M) -> Response<Body> {
    with_status(StatusCode::OK, message)
}

/// One message, under a status of its own.
pub(super) fn with_status<M: Message + Name>(status: StatusCode, message: &M) -> Response<Body> {
    let mut text = to_json(message);
    text.push(b'\n');
    json(status, text)
}

/// A message a line. An error is the last line.
pub(super) fn lines<M: Message + Name + 'static>(answers: Answers<M>) -> Response<Body> {
    let lines = answers.map(|answer| {
        let line = match answer {
            Ok(message) => [b"{\"result\":", to_json(&message).as_slice(), b"}\n"].concat(),
            Err(error) => error_line(&error),
        };
        Ok::<_, std::convert::Infallible>(Bytes::from(line))
    });
    response(StatusCode::OK, LINES, Body::from_stream(lines))
}

/// An error that comes before anything else.
pub(super) fn error(error: &Error) -> Response<Body> {
    let status = StatusCode::from_u16(error.http_status());
    error_with_status(status.expect("every code has a status"), error)
}

/// An error under another status than its code's.
pub(super) fn error_with_status(status: StatusCode, error: &Error) -> Response<Body> {
    let mut response = json(status, error_line(error));
    let headers = response.headers_mut();
    if error.code == Code::Unauthenticated {
        let scheme = HeaderValue::from_static("Bearer");
        headers.insert(header::WWW_AUTHENTICATE, scheme);
    }
    if error.is_retryable() {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

pub(super) fn method_not_allowed(allowed: &[Method]) -> Response<Body> {
    let allowed = allowed.iter().map(Method::as_str).collect::<Vec<_>>();
    let allowed = allowed.join(", ");
    let error = Error::new(
        Code::InvalidArgument,
        format!("the route has only the methods {allowed}"),
    );
    let mut response = error_with_status(StatusCode::METHOD_NOT_ALLOWED, &error);
    let allowed = HeaderValue::from_str(&allowed).expect("methods are ASCII");
    response.headers_mut().insert(header::ALLOW, allowed);
    response
}

fn error_line(error: &Error) -> Vec<u8> {
    let mut line = to_json(&v1::ErrorResponse {
        error: Some(error.to_proto()),
    });
    line.push(b'\n');
    line
}
