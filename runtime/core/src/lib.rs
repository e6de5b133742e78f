//! The leader's decisions, pure.
//!
//! A task's transactions are led by one state machine. This crate is that
//! machine and everything it decides: when a transaction opens, how far it
//! reads, when it closes, what is made durable in which order, whom a sync-now
//! call waits for, and what a new session finds after any crash.
//!
//! ```text
//! record + what the shards opened with -> recover -> Leader::start
//!                                                        |
//!                 outside events -> Leader::record       v
//!                                        one Action <- Leader::step(now)
//! ```
//!
//! It has no clock, performs no IO, awaits nothing, logs nothing and iterates
//! no hash map: equal inputs give equal actions. Whoever drives it turns each
//! [`Action`] into one piece of IO and feeds the answer back as an [`Event`].

pub mod close_policy;
mod frontier;
mod hold;
mod input;
mod layout;
mod leader;
mod merge_patch;
mod now;
mod omission;
pub mod pacing;
mod record;
mod recover;
mod session;
mod status;
pub mod sync_now;
mod task;
mod txn;
mod waiters;

pub use close_policy::{Band, Limits};
pub use frontier::{CheckpointError, Extent, Extents, Frontier, Source};
pub use hold::{CommitSchedule, REEVALUATE_MILLIS_MAX, SeededSchedule};
pub use layout::{Binding, Key, KeyRange, Layout, LayoutError, ShardId};
pub use leader::{Leader, SPEC_CHANGE_MILLIS_MAX};
pub use merge_patch::merge_patch;
pub use now::Now;
pub use omission::{
    Halt, LeftOut, OMISSION_BYTES_MAX, OMISSIONS_MAX, Omission, OnError, Refusal, Refused,
};
pub use record::{
    Committed, Fence, Hint, MaxKeys, RECORD_VERSION, Record, RecordError, STORED_HISTORY_MAX,
    StoredRows,
};
pub use recover::{
    Authority, HeadStart, Opened, RecoverError, Recovered, Scope, TailStart, recover, scope,
};
pub use status::{Figures, HeadPhase, Status, TailPhase};
pub use sync_now::Outcome;
pub use task::Task;
pub use txn::action::{Action, Persist};
pub use txn::event::{
    Acknowledged, Doing, Event, Extended, ProtocolError, Reply, Through, WaiterId,
};
pub use txn::{Shards, TxnId};
