//! The committed transaction, on its way to being done.
//!
//! ```text
//! Begin -> Acknowledge -> Persist -> (Trigger -> PersistTrigger) -> Done
//! ```
//!
//! What is left to do is read from the record, so a session that finds a
//! commit of an earlier one begins just as one that made it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::action::{Action, Persist};
use super::event::Acknowledged;
use super::head::TailView;
use super::{Awaited, CommittedTxn, TxnId};
use crate::hold::Hold;
use crate::layout::{KeyRange, Layout, ShardId};
use crate::now::Now;
use crate::pacing;
use crate::session::Session;
use crate::status::{Figures, TailPhase};

/// The committed transaction, by what it waits for.
#[derive(Debug)]
pub(crate) enum Tail {
    Begin(TailBegin),
    Acknowledge(TailAcknowledge),
    Persist(TailPersist),
    Trigger(TailTrigger),
    PersistTrigger(TailPersist),
    Done,
}

/// What the committed transaction looks at of the open one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeadView {
    /// Whether a sync-now call waits for it.
    pub(crate) poked: bool,
    /// Whether it is at a ceiling of documents, bytes or memory.
    pub(crate) full: bool,
}

/// What one step came to.
#[derive(Debug)]
pub(crate) enum TailStep {
    /// Nothing: an answer, or time, has to come first.
    Wait(Tail),
    /// An action, and the state that awaits its answer.
    Act(Action, Tail),
    /// Nothing is left to do for this transaction.
    Done(CommittedTxn),
}

/// It was just committed, or found committed.
#[derive(Debug)]
pub(crate) struct TailBegin {
    txn: CommittedTxn,
}

/// The destination applies what was committed, or pacing holds it.
#[derive(Debug)]
pub(crate) struct TailAcknowledge {
    txn: CommittedTxn,
    awaited: Awaited,
    patches: BTreeMap<KeyRange, Value>,
    /// Whether some shard asked for pacing.
    pace: bool,
    hold: Option<Hold>,
}

/// A change of the record is made durable.
#[derive(Debug)]
pub(crate) struct TailPersist {
    txn: CommittedTxn,
    persisted: bool,
}

/// The triggers run.
#[derive(Debug)]
pub(crate) struct TailTrigger {
    txn: CommittedTxn,
    ran: bool,
}

impl Tail {
    /// Begins the tail of a transaction that this session committed.
    pub(crate) fn begin(txn: CommittedTxn) -> Self {
        Tail::Begin(TailBegin { txn })
    }

    /// Begins the tail of a transaction that an earlier session committed.
    pub(crate) fn recovered() -> Self {
        Tail::begin(CommittedTxn {
            id: TxnId::RECOVERED,
            figures: Figures::default(),
            poked: false,
        })
    }

    /// Takes one step.
    pub(crate) fn step(self, session: &Session, head: HeadView, now: Now) -> TailStep {
        match self {
            Tail::Begin(state) => state.step(session),
            Tail::Acknowledge(state) => state.step(session, head, now),
            Tail::Persist(state) if state.persisted => run_triggers(state.txn, session),
            Tail::Trigger(state) if state.ran => state.persist(session),
            Tail::PersistTrigger(state) if state.persisted => TailStep::Done(state.txn),
            waiting => TailStep::Wait(waiting),
        }
    }

    /// Takes a shard's acknowledgement; says whether it was awaited.
    pub(crate) fn take(
        &mut self,
        shard: ShardId,
        txn: TxnId,
        acknowledged: Acknowledged,
        layout: &Layout,
    ) -> bool {
        match self {
            Tail::Acknowledge(state) if state.txn.id == txn => {
                state.take(shard, acknowledged, layout)
            }
            _ => false,
        }
    }

    /// Takes the answer to a write; says whether one was awaited.
    pub(crate) fn take_persisted(&mut self) -> bool {
        match self {
            Tail::Persist(state) | Tail::PersistTrigger(state) => {
                !std::mem::replace(&mut state.persisted, true)
            }
            _ => false,
        }
    }

    /// Takes the report that triggers ran; says whether it was awaited.
    pub(crate) fn take_triggers_ran(&mut self, txn: TxnId) -> bool {
        match self {
            Tail::Trigger(state) if state.txn.id == txn => !std::mem::replace(&mut state.ran, true),
            _ => false,
        }
    }

    /// Marks the transaction as waited for.
    pub(crate) fn poke(&mut self) {
        match self {
            Tail::Begin(TailBegin { txn })
            | Tail::Acknowledge(TailAcknowledge { txn, .. })
            | Tail::Persist(TailPersist { txn, .. })
            | Tail::Trigger(TailTrigger { txn, .. })
            | Tail::PersistTrigger(TailPersist { txn, .. }) => txn.poked = true,
            Tail::Done => {}
        }
    }

    /// Returns the number of the transaction that is not done.
    pub(crate) fn id(&self) -> Option<TxnId> {
        match self {
            Tail::Begin(TailBegin { txn })
            | Tail::Acknowledge(TailAcknowledge { txn, .. })
            | Tail::Persist(TailPersist { txn, .. })
            | Tail::Trigger(TailTrigger { txn, .. })
            | Tail::PersistTrigger(TailPersist { txn, .. }) => Some(txn.id),
            Tail::Done => None,
        }
    }

    /// Returns what the open transaction looks at.
    pub(crate) fn view(&self) -> TailView {
        TailView {
            acknowledged: !matches!(self, Tail::Begin(_) | Tail::Acknowledge(_)),
            done: matches!(self, Tail::Done),
        }
    }

    /// Returns the instant until which pacing holds it, and when to look again.
    pub(crate) fn paced(&self, session: &Session, head: HeadView, now: Now) -> Option<(i64, u64)> {
        let Tail::Acknowledge(state) = self else {
            return None;
        };
        if !state.awaited.complete() {
            return None;
        }
        let until = state.hold.as_ref()?.until_millis();
        match pacing::evaluate(&state.inputs(session, head, now)) {
            pacing::Decision::Hold { wake_after_millis } => Some((until, wake_after_millis)),
            pacing::Decision::Release => None,
        }
    }

    /// Returns the phase that a watcher is shown.
    pub(crate) fn phase(&self) -> TailPhase {
        match self {
            Tail::Begin(_) => TailPhase::Begin,
            Tail::Acknowledge(_) => TailPhase::Acknowledge,
            Tail::Persist(_) => TailPhase::Persist,
            Tail::Trigger(_) => TailPhase::Trigger,
            Tail::PersistTrigger(_) => TailPhase::PersistTrigger,
            Tail::Done => TailPhase::Done,
        }
    }
}

impl TailBegin {
    fn step(self, session: &Session) -> TailStep {
        let committed = &session.record.committed;
        if committed.acknowledged {
            return run_triggers(self.txn, session);
        }
        let layout = &session.task.layout;
        let patch = |range| committed.patches.get(&range).cloned();
        let to: BTreeMap<_, _> = layout
            .shards()
            .map(|(shard, range)| (shard, patch(range)))
            .collect();
        let paced_by = session.task.paced_by();
        let state = TailAcknowledge {
            awaited: Awaited::from(&to.keys().copied().collect()),
            patches: BTreeMap::new(),
            pace: false,
            hold: paced_by
                .and_then(|schedule| Hold::begin(schedule, session.acknowledged.wall_millis)),
            txn: self.txn,
        };
        let action = Action::Acknowledge {
            txn: state.txn.id,
            to,
            recovery: state.recovery(),
            stored_history: session.record.stored_history.clone(),
        };
        TailStep::Act(action, Tail::Acknowledge(state))
    }
}

impl TailAcknowledge {
    fn take(&mut self, shard: ShardId, acknowledged: Acknowledged, layout: &Layout) -> bool {
        if !self.awaited.take(shard) {
            return false;
        }
        let range = layout.range(shard).expect("an awaited shard has a range");
        let patch = acknowledged.patch.map(|patch| (range, patch));
        self.patches.extend(patch);
        self.pace |= acknowledged.pace;
        true
    }

    fn step(mut self, session: &Session, head: HeadView, now: Now) -> TailStep {
        if !self.awaited.complete() {
            return TailStep::Wait(Tail::Acknowledge(self));
        }
        self.hold = self.hold.take().and_then(|hold| hold.at(now));
        if let pacing::Decision::Hold { .. } = pacing::evaluate(&self.inputs(session, head, now)) {
            return TailStep::Wait(Tail::Acknowledge(self));
        }
        let triggers = session.task.triggers;
        let action = Action::Persist {
            why: Persist::Acknowledged,
            record: Box::new(session.record.with_acknowledgement(&self.patches, triggers)),
        };
        let state = TailPersist {
            txn: self.txn,
            persisted: false,
        };
        TailStep::Act(action, Tail::Persist(state))
    }

    fn recovery(&self) -> bool {
        self.txn.id == TxnId::RECOVERED
    }

    fn inputs(&self, session: &Session, head: HeadView, now: Now) -> pacing::Inputs {
        pacing::Inputs {
            pace: self.pace,
            until_millis: self.hold.as_ref().map(Hold::until_millis),
            wall_millis: now.wall_millis,
            recovery: self.recovery(),
            poked: self.txn.poked || head.poked || session.waiters.has_barrier(),
            stopping: session.is_ending(),
            usage_ceiling: head.full,
        }
    }
}

impl TailTrigger {
    fn persist(self, session: &Session) -> TailStep {
        let action = Action::Persist {
            why: Persist::Triggered,
            record: Box::new(session.record.with_triggers_run()),
        };
        let state = TailPersist {
            txn: self.txn,
            persisted: false,
        };
        TailStep::Act(action, Tail::PersistTrigger(state))
    }
}

/// Runs the triggers that the record says are to run, if any.
fn run_triggers(txn: CommittedTxn, session: &Session) -> TailStep {
    let pending = session.record.committed.trigger.as_ref();
    match pending.filter(|_| session.task.triggers) {
        None => TailStep::Done(txn),
        Some(stored) => {
            let action = Action::RunTriggers {
                txn: txn.id,
                stored: stored.clone(),
            };
            TailStep::Act(action, Tail::Trigger(TailTrigger { txn, ran: false }))
        }
    }
}
