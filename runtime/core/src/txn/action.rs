//! What the leader asks of whoever drives it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::event::WaiterId;
use super::{Shards, TxnId};
use crate::frontier::Extents;
use crate::layout::ShardId;
use crate::record::{Record, StoredRows};
use crate::status::{Figures, Status};
use crate::sync_now::Outcome;

/// Exactly one piece of IO.
///
/// A message to shards is answered by one [`Reply`](super::event::Reply) from
/// each, except where said otherwise.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Wait for the next event, or until the time has passed.
    Wait {
        /// When to ask again if no event comes.
        wake_after_millis: Option<u64>,
    },
    /// Tell a caller what its poke met.
    Ack {
        /// The caller.
        waiter: WaiterId,
        /// What its poke met.
        outcome: Outcome,
        /// The leader as it stood.
        status: Box<Status>,
    },
    /// Tell callers that what they waited for can be queried.
    Done {
        /// The callers.
        waiters: Vec<WaiterId>,
        /// What the transaction came to.
        figures: Figures,
    },
    /// Read `extents`, which begin where the transaction's last ones ended.
    /// The first one opens the transaction.
    Extend {
        /// The transaction.
        txn: TxnId,
        /// The shards that take part.
        to: Shards,
        /// What to read.
        extents: Extents,
    },
    /// The transaction before is acknowledged: queued keys may be loaded. Not
    /// answered, and sent once a transaction.
    AllowLoads {
        /// The open transaction.
        txn: TxnId,
        /// The shards that take part.
        to: Shards,
    },
    /// Finish the loads.
    Flush {
        /// The transaction.
        txn: TxnId,
        /// The shards that take part.
        to: Shards,
    },
    /// Write the task's record, re-read it, and answer with what was read.
    Persist {
        /// Why it is written.
        why: Persist,
        /// What is written, conditionally on its owner epoch.
        record: Box<Record>,
    },
    /// Store the combined documents.
    Store {
        /// The transaction.
        txn: TxnId,
        /// The shards that take part.
        to: Shards,
    },
    /// Start the commit.
    StartCommit {
        /// The transaction.
        txn: TxnId,
        /// The shards that take part.
        to: Shards,
        /// What the destination remembers.
        checkpoint: String,
    },
    /// Acknowledge the commit.
    Acknowledge {
        /// The committed transaction.
        txn: TxnId,
        /// All shards, each with the patch of its start-commit, if any.
        to: BTreeMap<ShardId, Option<Value>>,
        /// Whether an earlier session committed it.
        recovery: bool,
        /// Rows stored by the last non-empty transactions, oldest first.
        stored_history: Vec<u64>,
    },
    /// Run the task's triggers.
    RunTriggers {
        /// The committed transaction.
        txn: TxnId,
        /// What it stored; empty where that is not known after a crash.
        stored: Vec<StoredRows>,
    },
    /// End the session: nothing is open, and all that was committed is done.
    Stop,
    /// End the session as it is: its work did not come to an end in time, and
    /// the next session recovers it.
    Abandon,
}

/// Why the record is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persist {
    /// A transaction is about to be stored.
    Hint,
    /// A transaction is committed.
    Commit,
    /// A commit is acknowledged.
    Acknowledged,
    /// A commit's triggers have run.
    Triggered,
}
