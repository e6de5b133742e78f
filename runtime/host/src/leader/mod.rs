//! Leading tasks: everything here runs on the control runtime.
//!
//! ```text
//! host -> task -> startup -> actor -> (actions) -> shards, store
//!          ^ restart              <---- (events) <--
//! ```
//!
//! No document is parsed here, no connector is called, no disk is waited for:
//! those are messages to the data runtime.

mod actor;
mod apply;
mod config;
mod error;
mod records;
pub mod restart;
mod schedule;
mod startup;
mod stop;
mod sync_now;
mod task;

pub(crate) use apply::preview;
pub(crate) use config::{TaskConfig, TxnDurations};
pub use error::SessionError;
pub(crate) use records::source_of;
pub use records::{Applied, Outcome, Reading, Records, RecordsError, TaskSpec};
pub(crate) use startup::TaskContext;
pub use sync_now::{SyncNowAnswer, SyncNowCall, SyncNowError, Through};
pub(crate) use task::Progress;
pub use task::{TaskHandle, TaskState, TaskView};
