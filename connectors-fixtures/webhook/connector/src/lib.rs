//! Sends documents to an HTTP server in batches, at least once.
//!
//! The host's log is the authority. Batches are sent while documents are stored, and
//! a transaction commits once the server has accepted all of them.
//!
//! ```text
//! open          nothing is sent
//! store         documents -> a batch; a full one is sent
//! start_commit  the last batch is sent
//! acknowledge   nothing
//! ```
//!
//! After a crash the host reads the same extents again, so the same batches are sent
//! again, each under the same `Idempotency-Key` (module `idempotency`): a server that
//! drops a key it has seen takes every document once.

mod answer;
mod batch;
mod config;
mod connector;
mod constraint;
mod document;
mod idempotency;
mod session;
mod target;

pub use config::{Config, Resource};
pub use connector::WebhookConnector;
pub use session::Session;
