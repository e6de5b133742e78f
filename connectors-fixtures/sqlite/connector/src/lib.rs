//! Materializes into tables of a SQLite file, exactly once.
//!
//! The file is the authority: rows, checkpoint and fence are written in one SQLite
//! transaction.
//!
//! ```text
//! open          BEGIN IMMEDIATE, raise the fence, read the checkpoint, COMMIT
//! load          SELECT the document by primary key
//! store         BEGIN IMMEDIATE (the first), INSERT, upsert, DELETE
//! start_commit  UPDATE the checkpoint where the fence is still ours, COMMIT
//! acknowledge   nothing
//! ```
//!
//! Beside the bindings' tables there are two of our own: `tidegate_checkpoints`
//! (module `checkpoint`) and `tidegate_bindings` (module `record`). Several tasks
//! may share a file; they take turns.

mod apply;
mod checkpoint;
mod column;
mod config;
mod connector;
mod constraint;
mod dialect;
mod record;
mod session;

pub use config::{Config, Resource};
pub use connector::SqliteConnector;
pub use session::Session;
