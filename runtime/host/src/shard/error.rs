//! What ends a shard's work early.

use tidegate_core::Refusal;

use super::combine::{DocumentError, PlanError};
use crate::document::Violation;
use crate::journal::JournalError;
use crate::leader::restart::Failure;
use crate::sandbox::{ErrorKind, Fault, FaultKind};

/// Why a shard cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ShardError {
    /// The connector failed: its error, a trap, a limit.
    #[error("{fault}{}", .collection.as_ref().map(|it| format!(" (the binding of collection {it})")).unwrap_or_default())]
    Connector {
        /// What happened, in which call.
        fault: Box<Fault>,
        /// The collection of the binding that the call was about.
        collection: Option<String>,
    },
    /// A binding cannot be combined as its schema says.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A document cannot be combined: its author must correct it.
    #[error(transparent)]
    Document(#[from] Box<DocumentError>),
    /// A document does not fit the collection's schema any more.
    #[error(
        "document {offset} of collection {collection} does not fit the collection's schema, which \
         changed after it was appended: {violation}. Widen the schema, or bind with a later \
         notBefore"
    )]
    Schema {
        /// The collection.
        collection: String,
        /// The document's offset.
        offset: u64,
        /// What does not fit.
        violation: Box<Violation>,
    },
    /// A document is larger than the task takes.
    #[error(
        "document {offset} of collection {collection} has {bytes} bytes, and the task's limit is \
         {limit}: raise the limit `document`, or bind with a later notBefore"
    )]
    DocumentSize {
        /// The collection.
        collection: String,
        /// The document's offset.
        offset: u64,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A document cannot be stored.
    #[error("{cause}")]
    Refused {
        /// Which one, and why.
        refusal: Box<Refusal>,
        /// What happened.
        cause: Box<ShardError>,
    },
    /// A journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The shard's task ended without a word.
    #[error("the shard ended before it answered")]
    Gone,
}

impl From<Fault> for ShardError {
    fn from(fault: Fault) -> ShardError {
        ShardError::Connector {
            fault: Box::new(fault),
            collection: None,
        }
    }
}

impl ShardError {
    /// Says what kind of failure it is.
    pub fn failure(&self) -> Failure {
        match self {
            ShardError::Connector { fault, .. } => match &fault.kind {
                FaultKind::Error(error) => match error.kind {
                    ErrorKind::Transient => Failure::Transient,
                    ErrorKind::Internal => Failure::Fault,
                    ErrorKind::Config
                    | ErrorKind::Auth
                    | ErrorKind::Schema
                    | ErrorKind::Document => Failure::Lasting,
                },
                FaultKind::Grant(_) => Failure::Lasting,
                FaultKind::Stopped => Failure::Transient,
                _ => Failure::Fault,
            },
            ShardError::Refused { .. }
            | ShardError::Document(_)
            | ShardError::Plan(_)
            | ShardError::Schema { .. }
            | ShardError::DocumentSize { .. }
            | ShardError::Journal(_) => Failure::Lasting,
            ShardError::Gone => Failure::Fault,
        }
    }
}
