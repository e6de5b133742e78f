//! What one session of the host holds in memory, and loses in a crash.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tidegate_core::{Event, Extents, Frontier, Layout, Leader, Record, ShardId, TxnId, WaiterId};

use crate::destination::Document;

/// One piece of IO that was asked for.
#[derive(Debug, Clone)]
pub enum Message {
    Extend(Extents),
    Flush,
    Store,
    StartCommit(String),
    Acknowledge(Option<Value>),
    Persist(Box<Record>),
    RunTriggers,
}

/// A message on its way, or its answer.
#[derive(Debug)]
pub struct Flight {
    pub shard: ShardId,
    pub txn: TxnId,
    pub message: Message,
    /// The answer, once the message has taken effect.
    pub answer: Option<Event>,
}

/// A session.
pub struct Session {
    /// Taken out only while it steps.
    pub leader: Option<Leader>,
    pub layout: Layout,
    pub flights: Vec<Flight>,
    /// What each shard has combined for the open transaction.
    pub combined: BTreeMap<ShardId, Vec<Document>>,
    /// How far the leader has told the shards to read.
    pub read: Frontier,
    /// As far as the open transaction is to repeat an earlier one.
    pub replay: Option<Extents>,
    pub open: Option<TxnId>,
    pub loads_allowed: bool,
    /// The journals' ends when it opened.
    pub opening_ends: Frontier,
    /// Whether a caller asked the open transaction to close.
    pub close_requested: bool,
    /// Whether it was told to stop, or that its spec has changed.
    pub ending: bool,
    /// What calls that are not acknowledged yet want committed, if they say so.
    pub barriers: BTreeMap<WaiterId, Option<Frontier>>,
    /// Callers who were acknowledged or are about to be, and what they need.
    pub callers: BTreeMap<WaiterId, BTreeSet<Document>>,
}

impl Session {
    /// Sends a message to `shards`.
    pub fn send(
        &mut self,
        txn: TxnId,
        shards: impl IntoIterator<Item = ShardId>,
        message: &Message,
    ) {
        let flights = shards.into_iter().map(|shard| Flight {
            shard,
            txn,
            message: message.clone(),
            answer: None,
        });
        self.flights.extend(flights);
    }

    pub fn is_in_flight(&self, is: impl Fn(&Message) -> bool) -> bool {
        self.flights.iter().any(|flight| is(&flight.message))
    }
}
