//! One transaction: what is known of it, from its opening to its end.

pub mod action;
pub mod event;
pub(crate) mod head;
pub(crate) mod tail;

use std::collections::BTreeSet;
use std::fmt;

use crate::layout::ShardId;
use crate::status::Figures;

/// A transaction's number within its session.
///
/// Zero is the one that an earlier session committed; the first that a session
/// opens is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TxnId(pub u64);

impl TxnId {
    /// The transaction that an earlier session committed.
    pub const RECOVERED: TxnId = TxnId(0);

    pub(crate) fn following(self) -> TxnId {
        TxnId(self.0 + 1)
    }
}

impl fmt::Display for TxnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "transaction {}", self.0)
    }
}

/// The shards that a message goes to.
pub type Shards = BTreeSet<ShardId>;

/// The shards whose reply to a message is still to come.
#[derive(Debug, Clone)]
pub(crate) struct Awaited(Shards);

impl Awaited {
    /// Begins to await one reply from each of `shards`.
    pub(crate) fn from(shards: &Shards) -> Self {
        Awaited(shards.clone())
    }

    /// Takes the reply of `shard`; says whether one was awaited.
    pub(crate) fn take(&mut self, shard: ShardId) -> bool {
        self.0.remove(&shard)
    }

    /// Says whether every reply came in.
    pub(crate) fn complete(&self) -> bool {
        self.0.is_empty()
    }
}

/// A transaction from its commit to its end.
#[derive(Debug, Clone)]
pub(crate) struct CommittedTxn {
    pub(crate) id: TxnId,
    /// What its callers are told.
    pub(crate) figures: Figures,
    /// Whether a sync-now call waits for it.
    pub(crate) poked: bool,
}
