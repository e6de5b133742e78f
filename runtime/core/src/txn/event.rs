//! What reaches the leader from outside.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use super::TxnId;
use crate::frontier::{Frontier, Source};
use crate::layout::{Key, ShardId};
use crate::record::{Fence, Record};
use crate::status::{HeadPhase, TailPhase};

/// A sync-now caller, as whoever drives the leader numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaiterId(pub u64);

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// There is something to read.
    ///
    /// Reported again as reading goes on: after an extension up to `upper`,
    /// nothing more is ready until somebody says so.
    Ready {
        /// Of what.
        source: Source,
        /// As far as one bounded extension may reach.
        upper: u64,
        /// The journal's end.
        end: u64,
    },
    /// A shard answered.
    Reply {
        /// The shard.
        shard: ShardId,
        /// The transaction of the message it answers.
        txn: TxnId,
        /// Its answer.
        reply: Reply,
    },
    /// The record was written, and re-read.
    Persisted {
        /// What was read.
        record: Box<Record>,
    },
    /// The triggers have run.
    TriggersRan {
        /// Of which transaction.
        txn: TxnId,
    },
    /// Somebody calls sync-now.
    ///
    /// Running until caught up is such a call, too: `through` the journals'
    /// ends, and a stop once it is done.
    Poke {
        /// The caller.
        waiter: WaiterId,
        /// What the caller wants committed.
        through: Through,
    },
    /// A caller no longer listens. What it asked for is done all the same.
    HungUp {
        /// The caller.
        waiter: WaiterId,
    },
    /// The session is to end.
    Stop,
    /// The task's spec changed: the session is to end, and soon.
    SpecChanged,
}

/// What a sync-now caller wants committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Through {
    /// Whatever is open.
    Open,
    /// Everything up to the journals' ends, which are these.
    Head {
        /// The journals' ends at the call.
        ends: Frontier,
    },
}

/// A shard's answer to one message.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// It read what it was told to.
    Extended(Extended),
    /// All loaded documents are in.
    Flushed,
    /// All combined documents are stored.
    Stored {
        /// Rows stored, by the binding's place in the layout.
        rows: BTreeMap<u32, u64>,
    },
    /// The commit has started.
    StartedCommit {
        /// How the connector's state changes.
        patch: Option<Value>,
    },
    /// The commit is acknowledged.
    Acknowledged(Acknowledged),
}

impl Reply {
    /// Returns the message's name.
    pub fn name(&self) -> &'static str {
        match self {
            Reply::Extended(_) => "Extended",
            Reply::Flushed => "Flushed",
            Reply::Stored { .. } => "Stored",
            Reply::StartedCommit { .. } => "StartedCommit",
            Reply::Acknowledged(_) => "Acknowledged",
        }
    }

    /// Iterates the bindings that the message names.
    pub(crate) fn bindings(&self) -> impl Iterator<Item = u32> {
        let (keys, rows) = match self {
            Reply::Extended(extended) => (Some(extended.max_keys.keys()), None),
            Reply::Stored { rows } => (None, Some(rows.keys())),
            _ => (None, None),
        };
        let keys = keys.into_iter().flatten();
        keys.chain(rows.into_iter().flatten()).copied()
    }
}

/// What one shard made of one extension.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extended {
    /// Documents that were this shard's, and passed the filters.
    pub documents: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes now in the shard's combiner.
    pub combiner_bytes: u64,
    /// The highest key read, by the binding's place in the layout.
    pub max_keys: BTreeMap<u32, Key>,
}

/// What one shard made of an acknowledgement.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Acknowledged {
    /// How the connector's state changes.
    pub patch: Option<Value>,
    /// Whether the acknowledgement is to be paced.
    pub pace: bool,
}

/// An answer that nobody waits for.
///
/// The session cannot go on: what the sender did is not what the leader
/// believes it did.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ProtocolError {
    /// A shard sent what it was not asked for.
    #[error("{shard} sent {message} for {txn}, which is not awaited: {doing}")]
    Unawaited {
        /// The shard.
        shard: ShardId,
        /// The message's name.
        message: &'static str,
        /// The transaction it named.
        txn: TxnId,
        /// What the leader is doing.
        doing: Doing,
    },
    /// A shard named a binding that the task does not have.
    #[error("{shard} sent {message} naming binding {binding}, which the task does not have")]
    UnknownBinding {
        /// The shard.
        shard: ShardId,
        /// The message's name.
        message: &'static str,
        /// The binding's number.
        binding: u32,
    },
    /// The answer to a write came without a write.
    #[error("a record was re-read though no write was asked for: {doing}")]
    UnawaitedRecord {
        /// What the leader is doing.
        doing: Doing,
    },
    /// The record that was re-read is another session's.
    #[error(
        "the record was written by owner epoch {}, session {}, while this is epoch {}, session \
         {}: another owner leads the task", found.owner_epoch, found.session, ours.owner_epoch,
         ours.session
    )]
    Fenced {
        /// The record's fence.
        found: Fence,
        /// This session's.
        ours: Fence,
    },
    /// Triggers were reported that nobody ran.
    #[error("triggers of {txn} were reported as run though none were asked for: {doing}")]
    UnawaitedTriggers {
        /// The transaction.
        txn: TxnId,
        /// What the leader is doing.
        doing: Doing,
    },
}

/// What a leader was doing when a message came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Doing {
    /// The open transaction's phase.
    pub head: HeadPhase,
    /// The committed transaction's phase.
    pub tail: TailPhase,
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the head is in {:?}, the tail in {:?}",
            self.head, self.tail
        )
    }
}
