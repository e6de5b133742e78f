//! The open transaction, on its way to a durable commit.
//!
//! ```text
//! Idle -> Extend -> Flush -> Hint -> Store -> StartCommit -> Persist -> (Tail)
//!   \-> Stop
//! ```
//!
//! A state is entered together with the action that asks for its IO, and left
//! once all answers are in. It extends while the transaction before it is
//! finished by the Tail, and closes only when that is done, so that the two
//! never write the record at the same time.

use std::collections::BTreeMap;

use serde_json::Value;

use super::action::{Action, Persist};
use super::event::{Extended, Reply};
use super::{Awaited, CommittedTxn, Shards, TxnId};
use crate::close_policy::{self, Decision, Usage, WaitsOn};
use crate::frontier::{Extents, Frontier};
use crate::hold::Hold;
use crate::layout::{KeyRange, Layout, ShardId};
use crate::now::Now;
use crate::omission::{self, Halt, OnError, Refusal};
use crate::record::{Commit, Hint, MaxKeys, Record, StoredRows};
use crate::recover::Authority;
use crate::session::Session;
use crate::status::{Figures, HeadPhase};
use crate::sync_now;

/// The open transaction, by what it waits for.
#[derive(Debug)]
pub(crate) enum Head {
    Idle(HeadIdle),
    Extend(HeadExtend),
    Flush(HeadFlush),
    Hint(HeadHint),
    Store(HeadStore),
    StartCommit(HeadStartCommit),
    Persist(HeadPersist),
    Stop,
}

/// How far the transaction before the open one is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TailView {
    /// Whether every shard acknowledged it, and no pacing holds it.
    pub(crate) acknowledged: bool,
    /// Whether nothing is left to do.
    pub(crate) done: bool,
}

/// What is known of the open transaction in all of its states.
#[derive(Debug)]
pub(crate) struct Txn {
    pub(crate) id: TxnId,
    /// The shards that take part.
    to: Shards,
    opened: Now,
    /// Where it began to read.
    lower: Frontier,
    /// As far as it has read, or was told to.
    upper: Frontier,
    documents: u64,
    bytes: u64,
    max_keys: MaxKeys,
    /// Whether a sync-now call waits for it.
    poked: bool,
    /// Whether it repeats what an earlier session was about to store.
    replay: bool,
    /// Whether some shard held it already.
    partly_stored_before: bool,
}

/// No transaction is open.
#[derive(Debug)]
pub(crate) struct HeadIdle {
    /// What the next one is called.
    next: TxnId,
    /// What the next one repeats.
    replay: Option<Replay>,
}

/// What an earlier session was about to store.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) extents: Extents,
    /// The shards that hold it already.
    pub(crate) holding: Shards,
}

/// It reads, or waits for a reason to close.
#[derive(Debug)]
pub(crate) struct HeadExtend {
    txn: Txn,
    awaited: Awaited,
    /// Bytes in the fullest shard's combiner.
    combiner_bytes: u64,
    /// The journals' ends when it opened.
    ends: Frontier,
    /// Whether its frontier has covered them. Latched: under steady input
    /// something is always a little behind.
    caught_up: bool,
    hold: Option<Hold>,
    close_requested: bool,
    loads_allowed: bool,
}

/// The last loaded documents come in.
#[derive(Debug)]
pub(crate) struct HeadFlush {
    txn: Txn,
    awaited: Awaited,
}

/// Its extents are made durable as hinted.
#[derive(Debug)]
pub(crate) struct HeadHint {
    txn: Txn,
    persisted: bool,
}

/// Combined documents go to the destination.
#[derive(Debug)]
pub(crate) struct HeadStore {
    txn: Txn,
    awaited: Awaited,
    /// Rows stored, by binding.
    rows: BTreeMap<u32, u64>,
}

/// The destination prepares or makes the commit.
#[derive(Debug)]
pub(crate) struct HeadStartCommit {
    txn: Txn,
    awaited: Awaited,
    rows: BTreeMap<u32, u64>,
    patches: BTreeMap<KeyRange, Value>,
}

/// The commit is made durable.
#[derive(Debug)]
pub(crate) struct HeadPersist {
    txn: Txn,
    persisted: bool,
}

impl Head {
    /// Returns the head of a session that starts with `replay`, if any.
    pub(crate) fn new(replay: Option<Replay>) -> Self {
        Head::Idle(HeadIdle {
            next: TxnId::RECOVERED.following(),
            replay,
        })
    }

    /// Takes one step: at most one action, and the state it leads to.
    pub(crate) fn step(
        self,
        session: &Session,
        tail: TailView,
        now: Now,
    ) -> (Option<Action>, Head) {
        match self {
            Head::Idle(state) => state.step(session, tail, now),
            Head::Extend(state) => state.step(session, tail, now),
            Head::Flush(state) => state.step(session),
            Head::Hint(state) => state.step(),
            Head::Store(state) => state.step(&session.record),
            Head::StartCommit(state) => state.step(session),
            Head::Persist(_) => (None, self),
            Head::Stop => (Some(Action::Stop), self),
        }
    }

    /// Takes a shard's reply; says whether it was awaited.
    pub(crate) fn take(
        &mut self,
        shard: ShardId,
        txn: TxnId,
        reply: Reply,
        layout: &Layout,
    ) -> bool {
        if self.id() != Some(txn) {
            return false;
        }
        match (self, reply) {
            (Head::Extend(state), Reply::Extended(extended)) => state.take(shard, extended, layout),
            (Head::Flush(state), Reply::Flushed) => state.awaited.take(shard),
            (Head::Store(state), Reply::Stored { rows }) => state.take(shard, rows),
            (Head::StartCommit(state), Reply::StartedCommit { patch }) => {
                state.take(shard, patch, layout)
            }
            _ => false,
        }
    }

    /// Takes the answer to a write; says whether one was awaited.
    pub(crate) fn take_persisted(&mut self) -> bool {
        let persisted = match self {
            Head::Hint(state) => &mut state.persisted,
            Head::Persist(state) => &mut state.persisted,
            _ => return false,
        };
        !std::mem::replace(persisted, true)
    }

    /// Hands over the transaction once its commit is durable.
    pub(crate) fn rotate(self, now: Now) -> (Head, Option<CommittedTxn>) {
        let Head::Persist(HeadPersist {
            txn,
            persisted: true,
        }) = self
        else {
            return (self, None);
        };
        let idle = HeadIdle {
            next: txn.id.following(),
            replay: None,
        };
        (Head::Idle(idle), Some(txn.into_committed(now)))
    }

    /// Marks the open transaction as waited for, perhaps to close at once.
    pub(crate) fn poke(&mut self, close: bool) {
        if let Head::Extend(state) = self {
            state.close_requested |= close;
        }
        if let Some(txn) = self.txn_mut() {
            txn.poked = true;
        }
    }

    /// Returns the open transaction's number.
    pub(crate) fn id(&self) -> Option<TxnId> {
        self.txn().map(|txn| txn.id)
    }

    /// Returns how far the open transaction reads.
    pub(crate) fn upper(&self) -> Option<&Frontier> {
        self.txn().map(|txn| &txn.upper)
    }

    /// Says whether its close was decided, and commits through `target`.
    pub(crate) fn closes_through(&self, target: &Frontier) -> bool {
        let closing = !matches!(self, Head::Idle(_) | Head::Extend(_) | Head::Stop);
        closing && self.upper().is_some_and(|upper| upper.covers(target))
    }

    /// Says whether a sync-now call waits for the open transaction.
    pub(crate) fn is_poked(&self) -> bool {
        self.txn().is_some_and(|txn| txn.poked)
    }

    /// Says whether the open transaction can take no more.
    pub(crate) fn is_full(&self, session: &Session) -> bool {
        match self {
            Head::Extend(state) => state.is_full(session),
            _ => false,
        }
    }

    /// Says how a sync-now call finds the open transaction.
    pub(crate) fn for_poke(&self, session: &Session, tail: TailView, now: Now) -> sync_now::Head {
        match self {
            Head::Idle(_) | Head::Stop => sync_now::Head::Idle,
            Head::Extend(state) => sync_now::Head::Open {
                held: close_policy::is_held(&state.inputs(session, tail, now)),
                close_requested: state.close_requested || session.is_ending(),
            },
            _ => sync_now::Head::Closing,
        }
    }

    /// Says what the open transaction waits for, other than an answer.
    pub(crate) fn waits(
        &self,
        session: &Session,
        tail: TailView,
        now: Now,
    ) -> Option<(WaitsOn, Option<u64>)> {
        let Head::Extend(state) = self else {
            return None;
        };
        let Decision::Wait {
            on,
            wake_after_millis,
        } = close_policy::evaluate(&state.inputs(session, tail, now))
        else {
            return None;
        };
        state.awaited.complete().then_some((on, wake_after_millis))
    }

    /// Returns the commit instant of the hold that keeps it open.
    pub(crate) fn held_until_millis(
        &self,
        session: &Session,
        tail: TailView,
        now: Now,
    ) -> Option<i64> {
        let Head::Extend(state) = self else {
            return None;
        };
        let inputs = state.inputs(session, tail, now);
        inputs
            .hold_until_millis
            .filter(|_| close_policy::is_held(&inputs))
    }

    /// Returns the record in which the open transaction leaves a document out. It
    /// is hinted by that, if it was not before.
    pub(crate) fn leaving_out(
        &self,
        session: &Session,
        refusal: Refusal,
        on_error: OnError,
    ) -> Result<Record, Halt> {
        let Some(txn) = self.txn() else {
            // Of an acknowledgement: what it is about is committed.
            return Err(Halt::Unidentified);
        };
        // What is hinted already is the very transaction, and a replay may not have
        // read all of it yet.
        let hinted = session.record.hinted.clone();
        let mut hint = hinted.unwrap_or_else(|| txn.hint(session));
        let binding = hint.layout.binding(refusal.binding);
        let binding = binding.ok_or(Halt::Unidentified)?;
        let omission = omission::decide(on_error, refusal, binding, &hint.omissions)?;
        hint.omissions.push(omission);
        Ok(session.record.with_hint(hint, &txn.max_keys))
    }

    /// Returns the documents and bytes it has read, and for how long it is
    /// open.
    pub(crate) fn sourced(&self, now: Now) -> Figures {
        self.txn().map_or_else(Figures::default, |txn| Figures {
            documents: txn.documents,
            bytes: txn.bytes,
            duration_millis: now.millis_since(txn.opened),
        })
    }

    /// Returns the phase that a watcher is shown.
    pub(crate) fn phase(&self) -> HeadPhase {
        match self {
            Head::Idle(_) => HeadPhase::Idle,
            Head::Extend(_) => HeadPhase::Extend,
            Head::Flush(_) => HeadPhase::Flush,
            Head::Hint(_) => HeadPhase::PersistHint,
            Head::Store(_) => HeadPhase::Store,
            Head::StartCommit(_) => HeadPhase::StartCommit,
            Head::Persist(_) => HeadPhase::Persist,
            Head::Stop => HeadPhase::Stop,
        }
    }

    fn txn(&self) -> Option<&Txn> {
        match self {
            Head::Idle(_) | Head::Stop => None,
            Head::Extend(HeadExtend { txn, .. })
            | Head::Flush(HeadFlush { txn, .. })
            | Head::Hint(HeadHint { txn, .. })
            | Head::Store(HeadStore { txn, .. })
            | Head::StartCommit(HeadStartCommit { txn, .. })
            | Head::Persist(HeadPersist { txn, .. }) => Some(txn),
        }
    }

    fn txn_mut(&mut self) -> Option<&mut Txn> {
        match self {
            Head::Idle(_) | Head::Stop => None,
            Head::Extend(HeadExtend { txn, .. })
            | Head::Flush(HeadFlush { txn, .. })
            | Head::Hint(HeadHint { txn, .. })
            | Head::Store(HeadStore { txn, .. })
            | Head::StartCommit(HeadStartCommit { txn, .. })
            | Head::Persist(HeadPersist { txn, .. }) => Some(txn),
        }
    }
}

impl HeadIdle {
    fn step(mut self, session: &Session, tail: TailView, now: Now) -> (Option<Action>, Head) {
        let finished = session.task.finish_only && self.replay.is_none();
        if session.is_ending() || finished {
            return match tail.done {
                true => (Some(Action::Stop), Head::Stop),
                false => (None, Head::Idle(self)),
            };
        }
        if let Some(replay) = self.replay.take() {
            return self.open(session, Some(replay.holding), replay.extents, now);
        }
        let extents = session.input.beyond(&session.record.committed.frontier);
        match extents.is_empty() {
            true => (None, Head::Idle(self)),
            false => self.open(session, None, extents, now),
        }
    }

    /// Opens a transaction by its first extension. `holding` are the shards
    /// that hold it already, if it is a replay.
    fn open(
        self,
        session: &Session,
        holding: Option<Shards>,
        extents: Extents,
        now: Now,
    ) -> (Option<Action>, Head) {
        let replay = holding.is_some();
        let holding = holding.unwrap_or_default();
        let all = session.task.layout.shards().map(|(shard, _)| shard);
        let committed = &session.record.committed.frontier;
        let txn = Txn {
            id: self.next,
            to: all.filter(|shard| !holding.contains(shard)).collect(),
            opened: now,
            lower: committed.clone(),
            upper: committed.clone(),
            documents: 0,
            bytes: 0,
            max_keys: MaxKeys::default(),
            poked: false,
            replay,
            partly_stored_before: !holding.is_empty(),
        };
        let schedule = session.task.schedule.as_ref();
        let state = HeadExtend {
            awaited: Awaited::from(&txn.to),
            txn,
            combiner_bytes: 0,
            ends: session.input.ends().clone(),
            caught_up: false,
            hold: schedule.and_then(|schedule| Hold::begin(schedule, now.wall_millis)),
            close_requested: false,
            loads_allowed: false,
        };
        state.extend(extents)
    }
}

impl HeadExtend {
    fn step(mut self, session: &Session, tail: TailView, now: Now) -> (Option<Action>, Head) {
        if tail.acknowledged && !self.loads_allowed {
            self.loads_allowed = true;
            let action = Action::AllowLoads {
                txn: self.txn.id,
                to: self.txn.to.clone(),
            };
            return (Some(action), Head::Extend(self));
        }
        if !self.awaited.complete() {
            return (None, Head::Extend(self));
        }
        self.hold = self.hold.take().and_then(|hold| hold.at(now));
        match close_policy::evaluate(&self.inputs(session, tail, now)) {
            Decision::Extend => {
                let extents = session.input.beyond(&self.txn.upper);
                self.extend(extents)
            }
            Decision::Close => self.close(session),
            Decision::Wait { .. } => (None, Head::Extend(self)),
        }
    }

    fn extend(mut self, extents: Extents) -> (Option<Action>, Head) {
        self.txn.upper = self.txn.upper.advanced(&extents);
        self.caught_up |= self.txn.upper.covers(&self.ends);
        self.awaited = Awaited::from(&self.txn.to);
        self.combiner_bytes = 0;
        let action = Action::Extend {
            txn: self.txn.id,
            to: self.txn.to.clone(),
            extents,
        };
        (Some(action), Head::Extend(self))
    }

    fn close(mut self, session: &Session) -> (Option<Action>, Head) {
        // Whoever set a barrier waits for every transaction up to it.
        self.txn.poked |= session.waiters.has_barrier();
        let action = Action::Flush {
            txn: self.txn.id,
            to: self.txn.to.clone(),
        };
        let state = HeadFlush {
            awaited: Awaited::from(&self.txn.to),
            txn: self.txn,
        };
        (Some(action), Head::Flush(state))
    }

    fn take(&mut self, shard: ShardId, extended: Extended, layout: &Layout) -> bool {
        if !self.awaited.take(shard) {
            return false;
        }
        let txn = &mut self.txn;
        txn.documents = txn.documents.saturating_add(extended.documents);
        txn.bytes = txn.bytes.saturating_add(extended.bytes);
        self.combiner_bytes = self.combiner_bytes.max(extended.combiner_bytes);
        for (index, key) in extended.max_keys {
            let binding = layout.binding(index).expect("bindings were checked");
            txn.max_keys.raise(binding.clone(), key);
        }
        true
    }

    fn is_full(&self, session: &Session) -> bool {
        close_policy::is_full(&session.task.limits, self.usage())
    }

    fn usage(&self) -> Usage {
        Usage {
            documents: self.txn.documents,
            bytes: self.txn.bytes,
            combiner_bytes: self.combiner_bytes,
        }
    }

    fn inputs<'a>(
        &self,
        session: &'a Session,
        tail: TailView,
        now: Now,
    ) -> close_policy::Inputs<'a> {
        close_policy::Inputs {
            limits: &session.task.limits,
            open_millis: now.millis_since(self.txn.opened),
            since_close_millis: now.millis_since(session.closed),
            usage: self.usage(),
            input_ready: session.input.reaches_beyond(&self.txn.upper),
            tail_done: tail.done,
            close_requested: self.close_requested,
            stopping: session.is_ending(),
            barrier: session.waiters.barrier(&self.txn.upper),
            replay: self.txn.replay,
            caught_up: self.caught_up,
            hold_until_millis: self.hold.as_ref().map(Hold::until_millis),
            wall_millis: now.wall_millis,
        }
    }
}

impl HeadFlush {
    fn step(self, session: &Session) -> (Option<Action>, Head) {
        if !self.awaited.complete() {
            return (None, Head::Flush(self));
        }
        let hint = self.txn.hint(session);
        let action = Action::Persist {
            why: Persist::Hint,
            record: Box::new(session.record.with_hint(hint, &self.txn.max_keys)),
        };
        let state = HeadHint {
            txn: self.txn,
            persisted: false,
        };
        (Some(action), Head::Hint(state))
    }
}

impl HeadHint {
    fn step(self) -> (Option<Action>, Head) {
        if !self.persisted {
            return (None, Head::Hint(self));
        }
        let action = Action::Store {
            txn: self.txn.id,
            to: self.txn.to.clone(),
        };
        let state = HeadStore {
            awaited: Awaited::from(&self.txn.to),
            txn: self.txn,
            rows: BTreeMap::new(),
        };
        (Some(action), Head::Store(state))
    }
}

impl HeadStore {
    fn take(&mut self, shard: ShardId, rows: BTreeMap<u32, u64>) -> bool {
        if !self.awaited.take(shard) {
            return false;
        }
        for (binding, rows) in rows {
            let stored = self.rows.entry(binding).or_default();
            *stored = stored.saturating_add(rows);
        }
        true
    }

    fn step(self, record: &Record) -> (Option<Action>, Head) {
        if !self.awaited.complete() {
            return (None, Head::Store(self));
        }
        let frontier = record.hinted_frontier().expect("a store follows its hint");
        let action = Action::StartCommit {
            txn: self.txn.id,
            to: self.txn.to.clone(),
            checkpoint: frontier.to_checkpoint(),
        };
        let state = HeadStartCommit {
            awaited: Awaited::from(&self.txn.to),
            txn: self.txn,
            rows: self.rows,
            patches: BTreeMap::new(),
        };
        (Some(action), Head::StartCommit(state))
    }
}

impl HeadStartCommit {
    fn take(&mut self, shard: ShardId, patch: Option<Value>, layout: &Layout) -> bool {
        if !self.awaited.take(shard) {
            return false;
        }
        let range = layout.range(shard).expect("an awaited shard has a range");
        self.patches.extend(patch.map(|patch| (range, patch)));
        true
    }

    fn step(self, session: &Session) -> (Option<Action>, Head) {
        if !self.awaited.complete() {
            return (None, Head::StartCommit(self));
        }
        let layout = &session.task.layout;
        let stored = |(binding, rows)| StoredRows {
            resource: layout
                .binding(binding)
                .expect("bindings were checked")
                .resource
                .clone(),
            rows,
        };
        let rows = self.rows.into_iter().filter(|(_, rows)| *rows > 0);
        let commit = Commit {
            patches: self.patches,
            stored: rows.map(stored).collect(),
            partly_stored_before: self.txn.partly_stored_before,
            remote: session.authority == Authority::Remote,
            triggers: session.task.triggers,
        };
        let action = Action::Persist {
            why: Persist::Commit,
            record: Box::new(session.record.with_commit(commit)),
        };
        let state = HeadPersist {
            txn: self.txn,
            persisted: false,
        };
        (Some(action), Head::Persist(state))
    }
}

impl Txn {
    /// Returns what it has read. A replay leaves out what it left out before.
    fn hint(&self, session: &Session) -> Hint {
        let before = session.record.hinted.as_ref();
        Hint {
            extents: Extents::between(&self.lower, &self.upper),
            layout: session.task.layout.clone(),
            omissions: before.map_or_else(Vec::new, |hint| hint.omissions.clone()),
        }
    }

    fn into_committed(self, now: Now) -> CommittedTxn {
        // Of a replay, the earlier session's part is not known.
        let figures = match self.replay {
            true => Figures::default(),
            false => Figures {
                documents: self.documents,
                bytes: self.bytes,
                duration_millis: now.millis_since(self.opened),
            },
        };
        CommittedTxn {
            id: self.id,
            figures,
            poked: self.poked,
        }
    }
}
