//! Materializes into tables of a PostgreSQL database, exactly once.
//!
//! The database is the authority: rows, checkpoint and fence are written in one
//! transaction.
//!
//! ```text
//! open          lock tidegate_checkpoints, raise the fence, read the checkpoint, COMMIT
//! load          keys wait, or go to a temporary table by COPY
//! flush         SELECT the documents of the keys, read as far as there is room
//! store         BEGIN (the first); new rows by COPY into the table, others by COPY into a temporary one
//! start_commit  INSERT .. ON CONFLICT DO UPDATE, DELETE; checkpoint where the fence is still ours, COMMIT
//! acknowledge   nothing
//! ```
//!
//! A transaction is open from the first store to the commit only: one that is held
//! open for hours to gather documents holds nothing open in the database.
//!
//! Beside the bindings' tables there are two of our own, in the endpoint's schema:
//! `tidegate_checkpoints` (module `checkpoint`) and `tidegate_bindings` (module
//! `record`). Several tasks may share a database.

mod address;
mod apply;
mod checkpoint;
mod client;
mod column;
mod config;
mod connector;
mod constraint;
mod copy;
mod dialect;
mod login;
mod numeric;
mod record;
mod refusal;
mod session;
mod table;

pub use config::{Config, Resource, SslMode};
pub use connector::PostgresConnector;
pub use session::Session;
