//! HTTP requests to the addresses that the host grants.
//!
//! ```text
//! send: request -> wasi:http -> the host resolves, checks, dials, does the TLS -> response
//! ```
//!
//! One request a call, whole in memory. Redirects are not followed: they would lead to
//! an address that nobody granted. Natively, with the feature `native-http`, requests
//! go out ungranted and without TLS.
//!
//! Errors name host and port and no path, which may hold a secret.

use ::http::uri::Scheme;
use ::http::{Request, Response};

use crate::error::ConnectorError;

/// How much of a response's body is read. Acknowledgements and error messages are
/// short; what is longer is cut off.
pub const RESPONSE_BYTES_MAX: usize = 64 << 10;

/// Sends a request, whose URI is to be absolute, and returns whatever the server
/// answers.
///
/// # Errors
///
/// Of kind `config` if the address is not granted or its certificate is refused, and
/// `transient` if the server cannot be reached or gives no answer.
pub fn send(request: &Request<Vec<u8>>) -> Result<Response<Vec<u8>>, ConnectorError> {
    imp::send(request)
}

/// Returns the host and port that a request goes to.
pub fn server(request: &Request<Vec<u8>>) -> String {
    let uri = request.uri();
    let host = uri.host().unwrap_or_default();
    let https = uri.scheme() == Some(&Scheme::HTTPS);
    let port = uri.port_u16().unwrap_or(if https { 443 } else { 80 });
    format!("{host}:{port}")
}

/// Returns the error of a request without an answer, which another may get.
fn unanswered(request: &Request<Vec<u8>>, what: &str) -> ConnectorError {
    let message = format!("{} to {}: {what}", request.method(), server(request));
    ConnectorError::transient(message)
}

#[cfg(target_family = "wasm")]
mod imp {
    use ::http::uri::Scheme;
    use ::http::{Request, Response};

    use super::{RESPONSE_BYTES_MAX, server, unanswered};
    use crate::bindings::wasi::http::outgoing_handler;
    use crate::bindings::wasi::http::types::{self, ErrorCode, Fields, OutgoingBody};
    use crate::bindings::wasi::io::streams::{OutputStream, StreamError};
    use crate::error::ConnectorError;

    pub(super) fn send(request: &Request<Vec<u8>>) -> Result<Response<Vec<u8>>, ConnectorError> {
        let refused = |code: ErrorCode| error(request, &code);
        let outgoing = outgoing(request)?;
        let body = outgoing.body().expect("a new request has its body");
        let answer = outgoing_handler::handle(outgoing, None).map_err(refused)?;
        let stream = body.write().expect("a new body has its stream");
        // A server may answer before it has read everything, and close. Then its answer is
        // what counts, and not that the rest could not be written.
        let written = write(&stream, request.body());
        drop(stream);
        if written.is_ok() {
            OutgoingBody::finish(body, None).map_err(refused)?;
        } else {
            drop(body);
        }
        answer.subscribe().block();
        let answer = answer.get().expect("it is ready");
        let answer = answer.expect("it is taken once").map_err(refused)?;
        response(&answer).ok_or_else(|| unanswered(request, "the answer is not as HTTP has it"))
    }

    fn outgoing(request: &Request<Vec<u8>>) -> Result<types::OutgoingRequest, ConnectorError> {
        let headers: Vec<_> = request
            .headers()
            .iter()
            .map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()))
            .collect();
        let headers = Fields::from_list(&headers).map_err(|_| {
            ConnectorError::config(
                "a header is set that the host sets itself, or that is malformed",
            )
        })?;
        let outgoing = types::OutgoingRequest::new(headers);
        let uri = request.uri();
        let scheme = match uri.scheme() == Some(&Scheme::HTTPS) {
            true => types::Scheme::Https,
            false => types::Scheme::Http,
        };
        let method = types::Method::Other(request.method().to_string());
        let authority = uri.authority().map(|it| it.as_str());
        let path = uri.path_and_query().map(|it| it.as_str());
        let set = outgoing
            .set_method(&method)
            .and_then(|()| outgoing.set_scheme(Some(&scheme)))
            .and_then(|()| outgoing.set_authority(authority))
            .and_then(|()| outgoing.set_path_with_query(path));
        // Each is of a type that admits nothing else.
        set.map_err(|()| ConnectorError::internal("a request is not as HTTP has it"))?;
        Ok(outgoing)
    }

    fn write(stream: &OutputStream, mut bytes: &[u8]) -> Result<(), StreamError> {
        while !bytes.is_empty() {
            let room = usize::try_from(stream.check_write()?).unwrap_or(usize::MAX);
            let (now, rest) = bytes.split_at(room.min(bytes.len()));
            match now.is_empty() {
                true => stream.subscribe().block(),
                false => stream.write(now)?,
            }
            bytes = rest;
        }
        stream.blocking_flush()
    }

    /// Reads a response. A body that breaks off is read as far as it came: by then the
    /// server has said what it did.
    fn response(answer: &types::IncomingResponse) -> Option<Response<Vec<u8>>> {
        let mut response = Response::builder().status(answer.status());
        for (name, value) in answer.headers().entries() {
            response = response.header(name, value);
        }
        let body = answer.consume().ok()?;
        let stream = body.stream().ok()?;
        let mut bytes = Vec::new();
        while bytes.len() < RESPONSE_BYTES_MAX {
            let room = RESPONSE_BYTES_MAX - bytes.len();
            match stream.blocking_read(room as u64) {
                Ok(read) => bytes.extend(read),
                Err(_) => break,
            }
        }
        response.body(bytes).ok()
    }

    /// What the host cannot say in a code of its own, it says in words, and that is what
    /// no other attempt would change: see docs/connectors.md.
    fn error(request: &Request<Vec<u8>>, code: &ErrorCode) -> ConnectorError {
        let what = match code {
            ErrorCode::InternalError(Some(words)) => {
                return ConnectorError::config(format!(
                    "{} to {}: {words}",
                    request.method(),
                    server(request)
                ));
            }
            ErrorCode::DnsError(dns) => match &dns.rcode {
                Some(words) => format!("its name cannot be resolved: {words}"),
                None => "its name cannot be resolved".to_owned(),
            },
            ErrorCode::ConnectionRefused => "it refuses connections".to_owned(),
            ErrorCode::DestinationUnavailable => "it cannot be reached".to_owned(),
            ErrorCode::ConnectionTimeout => "no connection in time".to_owned(),
            ErrorCode::ConnectionReadTimeout | ErrorCode::HttpResponseTimeout => {
                "no answer in time".to_owned()
            }
            ErrorCode::ConnectionTerminated => "the connection was lost".to_owned(),
            other => format!("{other:?}"),
        };
        unanswered(request, &what)
    }
}

#[cfg(not(target_family = "wasm"))]
mod imp {
    use std::io::Read;
    use std::time::Duration;

    use ::http::{Request, Response};
    use ureq::Agent;

    use super::{RESPONSE_BYTES_MAX, unanswered};
    use crate::error::ConnectorError;

    /// Tests that mean not to be answered would otherwise wait for ever.
    const ANSWER_MAX: Duration = Duration::from_secs(2);

    pub(super) fn send(request: &Request<Vec<u8>>) -> Result<Response<Vec<u8>>, ConnectorError> {
        let agent: Agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_global(Some(ANSWER_MAX))
            .build()
            .into();
        let answer = agent.run(request.clone());
        let answer = answer.map_err(|error| unanswered(request, &error.to_string()))?;
        let (head, body) = answer.into_parts();
        let mut bytes = Vec::new();
        // A body that breaks off is read as far as it came.
        let _ = body
            .into_reader()
            .take(RESPONSE_BYTES_MAX as u64)
            .read_to_end(&mut bytes);
        Ok(Response::from_parts(head, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_without_what_may_be_secret() {
        let cases = [
            (
                "https://hooks.example.com/s3cret?key=x",
                "hooks.example.com:443",
            ),
            ("http://127.0.0.1:8080/", "127.0.0.1:8080"),
            ("http://[::1]/x", "[::1]:80"),
        ];
        for (uri, want) in cases {
            let request = Request::post(uri).body(Vec::new()).unwrap();
            assert_eq!(server(&request), want);
            let error = unanswered(&request, "gone");
            assert_eq!(error.message, format!("POST to {want}: gone"));
        }
    }
}
