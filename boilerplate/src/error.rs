//! The one error that a connector returns.
//!
//! What the host does about an error depends on its kind alone; the rest is for
//! people.

use tidegate_wit::batch::BatchError;
use tidegate_wit::tuple::TupleError;

/// What the host does about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    /// The configuration is wrong. Not retried.
    Config,
    /// The destination refused our credentials. Not retried.
    Auth,
    /// A table, column or type does not fit the binding. Not retried.
    Schema,
    /// The destination cannot hold one document. Not retried.
    Document,
    /// It may work later: a new session starts after a pause.
    Transient,
    /// The connector or the host broke the protocol.
    Internal,
}

/// An error of a connector. Its message says what happened and what to do, and
/// never a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConnectorError {
    /// What the host does about it.
    pub kind: ErrorKind,
    /// What happened and what to do, for the operator.
    pub message: String,
    /// Index of the binding in the spec.
    pub binding: Option<u32>,
    /// The document's key, as JSON text.
    pub key: Option<String>,
    /// Name of the field.
    pub field: Option<String>,
}

impl ConnectorError {
    /// Returns an error that concerns no binding, key or field yet.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            binding: None,
            key: None,
            field: None,
        }
    }

    /// Returns an error of the configuration.
    pub fn config(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Config, message)
    }

    /// Returns an error of a table, column or type that does not fit.
    pub fn schema(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Schema, message)
    }

    /// Returns an error of a document that the destination cannot hold.
    pub fn document(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Document, message)
    }

    /// Returns an error that may be gone later.
    pub fn transient(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Transient, message)
    }

    /// Returns an error of a broken protocol.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// Says which binding it concerns, unless that is said already.
    pub fn of_binding(mut self, binding: u32) -> Self {
        self.binding.get_or_insert(binding);
        self
    }

    /// Says which key it concerns, as JSON text.
    pub fn of_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Says which field it concerns.
    pub fn of_field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }
}

impl From<BatchError> for ConnectorError {
    fn from(error: BatchError) -> Self {
        Self::internal(error.to_string())
    }
}

impl From<TupleError> for ConnectorError {
    fn from(error: TupleError) -> Self {
        Self::internal(error.to_string())
    }
}

#[cfg(target_family = "wasm")]
mod generated {
    //! To and from the error of the generated bindings, which has the same parts.

    use super::{ConnectorError, ErrorKind};
    use crate::bindings::tidegate::connector::types;

    impl From<types::ErrorKind> for ErrorKind {
        fn from(kind: types::ErrorKind) -> Self {
            match kind {
                types::ErrorKind::Config => Self::Config,
                types::ErrorKind::Auth => Self::Auth,
                types::ErrorKind::Schema => Self::Schema,
                types::ErrorKind::Document => Self::Document,
                types::ErrorKind::Transient => Self::Transient,
                types::ErrorKind::Internal => Self::Internal,
            }
        }
    }

    impl From<ErrorKind> for types::ErrorKind {
        fn from(kind: ErrorKind) -> Self {
            match kind {
                ErrorKind::Config => Self::Config,
                ErrorKind::Auth => Self::Auth,
                ErrorKind::Schema => Self::Schema,
                ErrorKind::Document => Self::Document,
                ErrorKind::Transient => Self::Transient,
                ErrorKind::Internal => Self::Internal,
            }
        }
    }

    impl From<types::Error> for ConnectorError {
        fn from(error: types::Error) -> Self {
            Self {
                kind: error.kind.into(),
                message: error.message,
                binding: error.binding,
                key: error.key,
                field: error.field,
            }
        }
    }

    impl From<ConnectorError> for types::Error {
        fn from(error: ConnectorError) -> Self {
            Self {
                kind: error.kind.into(),
                message: error.message,
                binding: error.binding,
                key: error.key,
                field: error.field,
            }
        }
    }
}
