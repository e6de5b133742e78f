//! Why a call was not done, the same in every transport.
//!
//! ```text
//! Error -> tonic::Status
//!       -> HTTP status and {"error":{...}}
//! ```

use std::fmt;

use tonic::Status;

use crate::v1;

/// The stable code of an error.
pub use crate::v1::error::Code;

/// Why a call was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What programs branch on.
    pub code: Code,
    /// A sentence for people, with what to do about it.
    pub message: String,
}

impl Error {
    /// Returns an error.
    pub fn new(code: Code, message: impl Into<String>) -> Error {
        Error {
            code,
            message: message.into(),
        }
    }

    /// There is no such task, as far as the caller is concerned.
    pub fn unknown_task(name: &str) -> Error {
        let message =
            format!("there is no task {name} here: `tidegate tasks` lists those that there are");
        Error::new(Code::NotFound, message)
    }

    /// There is no such collection, as far as the caller is concerned.
    pub fn unknown_collection(name: &str) -> Error {
        let message = format!(
            "there is no collection {name} here: name one of the published catalog, or publish \
             one that has it"
        );
        Error::new(Code::NotFound, message)
    }

    /// Says whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.code == Code::Unavailable
    }

    /// Returns the HTTP status that goes with the code.
    pub fn http_status(&self) -> u16 {
        match self.code {
            Code::InvalidArgument => 400,
            Code::Unauthenticated => 401,
            Code::PermissionDenied => 403,
            Code::NotFound => 404,
            Code::FailedPrecondition => 409,
            Code::ResourceExhausted => 429,
            Code::Unavailable => 503,
            Code::Internal | Code::Unspecified => 500,
        }
    }

    /// Returns the error as a message.
    pub fn to_proto(&self) -> v1::Error {
        v1::Error {
            code: self.code.into(),
            message: self.message.clone(),
        }
    }

    fn grpc_code(&self) -> tonic::Code {
        match self.code {
            Code::InvalidArgument => tonic::Code::InvalidArgument,
            Code::Unauthenticated => tonic::Code::Unauthenticated,
            Code::PermissionDenied => tonic::Code::PermissionDenied,
            Code::NotFound => tonic::Code::NotFound,
            Code::FailedPrecondition => tonic::Code::FailedPrecondition,
            Code::ResourceExhausted => tonic::Code::ResourceExhausted,
            Code::Unavailable => tonic::Code::Unavailable,
            Code::Internal | Code::Unspecified => tonic::Code::Internal,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<Error> for Status {
    fn from(error: Error) -> Status {
        Status::new(error.grpc_code(), error.message)
    }
}

/// Says whether a status is not the host's own: the connection broke, or never
/// was.
pub(crate) fn is_of_the_connection(status: &Status) -> bool {
    std::error::Error::source(status).is_some()
}

/// Returns what is at the bottom of an error.
pub(crate) fn root_cause<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> &'a (dyn std::error::Error + 'static) {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause
}

impl From<Status> for Error {
    fn from(status: Status) -> Error {
        if is_of_the_connection(&status) {
            let message = format!("the connection broke: {}", root_cause(&status));
            return Error::new(Code::Unavailable, message);
        }
        let code = match status.code() {
            tonic::Code::InvalidArgument | tonic::Code::OutOfRange => Code::InvalidArgument,
            tonic::Code::Unauthenticated => Code::Unauthenticated,
            tonic::Code::PermissionDenied => Code::PermissionDenied,
            tonic::Code::NotFound => Code::NotFound,
            tonic::Code::FailedPrecondition => Code::FailedPrecondition,
            tonic::Code::ResourceExhausted => Code::ResourceExhausted,
            // A proxy says so when what is behind it goes away.
            tonic::Code::Unavailable | tonic::Code::Cancelled => Code::Unavailable,
            _ => Code::Internal,
        };
        Error::new(code, status.message())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_survive_a_status() {
        for code in 1..=8 {
            let error = Error::new(Code::try_from(code).unwrap(), "a sentence");
            assert_eq!(Error::from(Status::from(error.clone())), error);
            assert_ne!(error.http_status(), 200);
        }
        assert!(Code::try_from(9).is_err(), "a new code needs a status");
    }
}
