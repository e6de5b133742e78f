//! What ends a session early.

use tidegate_core::{Halt, ProtocolError, RecoverError};
use tidegate_schedule::ScheduleError;

use super::records::RecordsError;
use super::restart::Failure;
use crate::document::SchemaError;
use crate::journal::JournalError;
use crate::shard::ShardError;

/// Why a session ended before it was stopped.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// A shard's work failed: the connector, a document, a journal.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// A document cannot be stored, and its binding or the circumstances have the
    /// task halt.
    #[error("{cause}; {halt}")]
    Halted {
        /// What happened.
        cause: Box<ShardError>,
        /// Why it is not left out.
        halt: Halt,
    },
    /// A document cannot be stored, and the next session leaves it out.
    #[error("{cause}; the transaction begins anew, and leaves the document out")]
    LeftOut {
        /// What happened.
        cause: ShardError,
    },
    /// What is on disk and at the destination does not go together.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// An answer came that nobody waited for.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The task's records failed.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// A journal could not be opened.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A binding's collection cannot be used.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The connector's own schedule cannot be read.
    #[error("the connector's schedule: {0}")]
    Schedule(#[from] ScheduleError),
    /// The session was told to end, and did not come to an end in time.
    #[error("the session could not end in order in time; the next one recovers it")]
    Abandoned,
    /// The session was told to stop, and its connector showed no sign of work.
    #[error(
        "told to stop, and the connector did not finish the open transaction; \
         nothing is lost: the next run takes it up"
    )]
    Stuck,
}

impl SessionError {
    /// Says what kind of failure it is.
    pub fn failure(&self) -> Failure {
        match self {
            SessionError::Shard(error) => error.failure(),
            SessionError::LeftOut { .. } => Failure::LeftOut,
            SessionError::Halted { .. }
            | SessionError::Recover(_)
            | SessionError::Journal(_)
            | SessionError::Schema(_)
            | SessionError::Schedule(_) => Failure::Lasting,
            SessionError::Protocol(ProtocolError::Fenced { .. })
            | SessionError::Records(RecordsError::TakenOver) => Failure::Fenced,
            SessionError::Protocol(_) => Failure::Fault,
            SessionError::Records(RecordsError::Store(_))
            | SessionError::Abandoned
            | SessionError::Stuck => Failure::Transient,
            SessionError::Records(_) => Failure::Lasting,
        }
    }
}
