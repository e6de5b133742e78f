//! The bodies of requests: so long, so large, and no more.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::{Response, StatusCode};
use bytes::Bytes;
use http_body::Frame;
use http_body_util::{BodyExt, Limited};
use tokio::time::Sleep;

use super::answer::error_with_status;
use crate::error::{Code, Error};
use crate::limits::{BODY_BYTES_MAX, BODY_TIME_MAX};

/// Why a body was not read.
pub(super) enum Refused {
    TooLarge,
    TooSlow,
    Broken,
}

impl Refused {
    pub(super) fn response(&self) -> Response<Body> {
        let (status, code, message) = match self {
            Refused::TooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                Code::ResourceExhausted,
                format!("the body has more than {BODY_BYTES_MAX} bytes: send it in parts"),
            ),
            Refused::TooSlow => (
                StatusCode::REQUEST_TIMEOUT,
                Code::ResourceExhausted,
                format!(
                    "the body took longer than {} s: send it in parts",
                    BODY_TIME_MAX.as_secs()
                ),
            ),
            Refused::Broken => (
                StatusCode::BAD_REQUEST,
                Code::InvalidArgument,
                "the body broke off".to_owned(),
            ),
        };
        error_with_status(status, &Error::new(code, message))
    }
}

/// Reads a body.
pub(super) async fn read(body: Body) -> Result<Bytes, Refused> {
    let read = Limited::new(body, BODY_BYTES_MAX).collect();
    match tokio::time::timeout(BODY_TIME_MAX, read).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(Refused::TooLarge),
        Ok(Err(_)) => Err(Refused::Broken),
        Err(_) => Err(Refused::TooSlow),
    }
}

/// A body that breaks off when it takes too long, for gRPC, which reads its
/// messages itself.
pub(crate) struct Bounded {
    body: Body,
    over: Pin<Box<Sleep>>,
}

impl Bounded {
    pub(crate) fn new(body: Body) -> Bounded {
        Bounded {
            body,
            over: Box::pin(tokio::time::sleep(BODY_TIME_MAX)),
        }
    }
}

impl http_body::Body for Bounded {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.over.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err("the request took too long".into())));
        }
        Pin::new(&mut self.body)
            .poll_frame(context)
            .map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}
