//! A task's leader: two machines, pipelined.
//!
//! ```text
//! Head: Idle -> Extend -> Flush -> Hint -> Store -> StartCommit -> Persist -+
//! Tail:                            Begin -> Acknowledge -> ... -> Done <----+
//! ```
//!
//! Events are recorded first, and change nothing but what is known. The step
//! then decides, one action at a time, in this order: callers are answered,
//! the Tail goes on, the Head goes on. A step without anything to do waits.
//!
//! The leader does not know what carries out its actions, how many of them
//! fail, or what time it is. A failed one ends the session: the next session
//! recovers from the record.

use crate::frontier::Frontier;
use crate::input::Input;
use crate::layout::ShardId;
use crate::now::Now;
use crate::omission::{Halt, OnError, Refusal};
use crate::record::Record;
use crate::recover::{HeadStart, Recovered, TailStart};
use crate::session::{Ending, Session};
use crate::status::Status;
use crate::sync_now::{self, Target, WaitsFor};
use crate::task::Task;
use crate::txn::TxnId;
use crate::txn::action::{Action, Persist};
use crate::txn::event::{Doing, Event, ProtocolError, Reply, Through, WaiterId};
use crate::txn::head::{Head, Replay};
use crate::txn::tail::{HeadView, Tail, TailStep};
use crate::waiters::{Awaits, Poke, Waiters};

/// How long a session has to end in order after a change of spec.
///
/// What is open is usually committed within seconds. A destination that hangs
/// may be what the change repairs, so it must not hold the change up for long.
pub const SPEC_CHANGE_MILLIS_MAX: u64 = 5_000;

/// The leader of one session of a task.
///
/// ```
/// use tidegate_core::*;
///
/// let source = Source { resource: vec!["table".into()], backfill: 0, journal: "j".into() };
/// let binding = Binding { resource: vec!["table".into()], backfill: 0 };
/// let task = Task {
///     layout: Layout { bindings: vec![binding], shards: vec![KeyRange::ALL] },
///     limits: Limits::ANY,
///     schedule: None,
///     pacing: None,
///     triggers: false,
///     finish_only: false,
/// };
/// let ends = Frontier::from_iter([(source.clone(), 8)]);
/// let now = Now { monotonic_millis: 0, wall_millis: 0 };
///
/// let record = Record::new().opening(1, &task.layout);
/// let opened = Opened { authority: Authority::Log, checkpoint: None };
/// let recovered = recover(&record, &task, &[opened], &ends)?;
/// let mut leader = Leader::start(task, recovered, ends, now);
///
/// leader.record(Event::Ready { source, upper: 8, end: 8 })?;
/// let (action, leader) = leader.step(now);
/// assert!(matches!(action, Action::Extend { txn: TxnId(1), .. }));
/// let (action, leader) = leader.step(now);
/// assert!(matches!(action, Action::AllowLoads { .. }));
/// let (action, _) = leader.step(now);
/// assert_eq!(action, Action::Wait { wake_after_millis: None }, "until the shard has read");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Leader {
    session: Session,
    head: Head,
    tail: Tail,
}

impl Leader {
    /// Starts a session where recovery says. `ends` are the journals' ends as
    /// of its opening.
    pub fn start(task: Task, recovered: Recovered, ends: Frontier, now: Now) -> Self {
        let replay = match recovered.head {
            HeadStart::Idle => None,
            HeadStart::Replay { extents, holding } => Some(Replay { extents, holding }),
        };
        let tail = match recovered.tail {
            TailStart::Done => Tail::Done,
            TailStart::Acknowledge | TailStart::Trigger => Tail::recovered(),
        };
        Leader {
            session: Session {
                task,
                record: recovered.record,
                authority: recovered.authority,
                input: Input::new(ends.clone()),
                waiters: Waiters::default(),
                ending: Ending::No,
                opening_ends: ends,
                closed: now,
                acknowledged: now,
            },
            head: Head::new(replay),
            tail,
        }
    }

    /// Records an event; the next step acts on it.
    pub fn record(&mut self, event: Event) -> Result<(), ProtocolError> {
        match event {
            Event::Ready { source, upper, end } => self.session.input.record(source, upper, end),
            Event::Reply { shard, txn, reply } => return self.record_reply(shard, txn, reply),
            Event::Persisted { record } => return self.record_persisted(*record),
            Event::TriggersRan { txn } => return self.record_triggers_ran(txn),
            Event::Poke { waiter, through } => self.session.waiters.poke(waiter, through),
            Event::HungUp { waiter } => self.session.waiters.hang_up(waiter),
            Event::Stop => {
                if self.session.ending == Ending::No {
                    self.session.ending = Ending::Stop;
                }
            }
            Event::SpecChanged => {
                if !matches!(self.session.ending, Ending::SpecChange { .. }) {
                    self.session.ending = Ending::SpecChange { seen_millis: None };
                }
            }
        }
        Ok(())
    }

    /// Takes one step: the next action, and the leader after it.
    ///
    /// Steps are taken until one waits. A wait ends with the next event.
    pub fn step(mut self, now: Now) -> (Action, Leader) {
        self.rotate(now);
        if let Some(action) = self.answer(now) {
            return (action, self);
        }
        if self.is_overdue(now) {
            return (Action::Abandon, self);
        }
        if let Some(action) = self.step_tail(now) {
            return (action, self);
        }
        // The Tail may have come to its end just now, which lets callers go.
        if let Some(action) = self.answer(now) {
            return (action, self);
        }
        if let Some(action) = self.step_head(now) {
            return (action, self);
        }
        let wake_after_millis = self.wake_after_millis(now);
        (Action::Wait { wake_after_millis }, self)
    }

    /// Returns how far shards were told to read: where a bounded extension
    /// begins.
    pub fn read_frontier(&self) -> &Frontier {
        let committed = &self.session.record.committed.frontier;
        self.head.upper().unwrap_or(committed)
    }

    /// Returns what a watcher is shown.
    pub fn status(&self, now: Now) -> Status {
        let (session, tail) = (&self.session, self.tail.view());
        let sourced = self.head.sourced(now);
        let waits = self.head.waits(session, tail, now);
        let paced = self.tail.paced(session, self.head_view(), now);
        Status {
            head_phase: self.head.phase(),
            tail_phase: self.tail.phase(),
            open_age_millis: sourced.duration_millis,
            sourced_documents: sourced.documents,
            sourced_bytes: sourced.bytes,
            waits_on: waits.map(|(on, _)| on),
            held_until_millis: self.head.held_until_millis(session, tail, now),
            acknowledgement_held_until_millis: paced.map(|(until, _)| until),
        }
    }

    /// Decides what becomes of a document that cannot be stored. The session is over
    /// in either case; if the document is left out, the record that is returned is
    /// written first, and the next session begins with that transaction.
    ///
    /// # Errors
    ///
    /// If it is not left out, and the task halts. What [`Leader::halting`] returns is
    /// written first.
    pub fn refuse(&self, refusal: Refusal, on_error: OnError) -> Result<Record, Halt> {
        self.head.leaving_out(&self.session, refusal, on_error)
    }

    /// Returns the record in which nothing is left out after all, if anything was to
    /// be. Whoever mends what halted the task is then not bound to the transaction.
    pub fn halting(&self) -> Option<Record> {
        let hint = self.session.record.hinted.as_ref();
        let omits = hint.is_some_and(|hint| !hint.omissions.is_empty());
        omits.then(|| self.session.record.without_omissions())
    }

    /// Ends the session, for whatever reason, and returns the callers who were
    /// not told Done. Each gets an error that says to call again: a poke is
    /// idempotent.
    pub fn end(self) -> Vec<WaiterId> {
        self.session.waiters.into_unresolved()
    }
}

/// Recording what came from outside.
impl Leader {
    fn record_reply(
        &mut self,
        shard: ShardId,
        txn: TxnId,
        reply: Reply,
    ) -> Result<(), ProtocolError> {
        let message = reply.name();
        let layout = &self.session.task.layout;
        let unknown = reply
            .bindings()
            .find(|index| layout.binding(*index).is_none());
        if let Some(binding) = unknown {
            return Err(ProtocolError::UnknownBinding {
                shard,
                message,
                binding,
            });
        }
        let taken = match reply {
            Reply::Acknowledged(reply) => self.tail.take(shard, txn, reply, layout),
            reply => self.head.take(shard, txn, reply, layout),
        };
        match taken {
            true => Ok(()),
            false => Err(ProtocolError::Unawaited {
                shard,
                message,
                txn,
                doing: self.doing(),
            }),
        }
    }

    fn record_persisted(&mut self, record: Record) -> Result<(), ProtocolError> {
        let ours = self.session.record.fence;
        if record.fence != ours {
            return Err(ProtocolError::Fenced {
                found: record.fence,
                ours,
            });
        }
        // Only one of the two ever writes, so the answer is that one's.
        if !self.head.take_persisted() && !self.tail.take_persisted() {
            return Err(ProtocolError::UnawaitedRecord {
                doing: self.doing(),
            });
        }
        self.session.record = record;
        Ok(())
    }

    fn record_triggers_ran(&mut self, txn: TxnId) -> Result<(), ProtocolError> {
        match self.tail.take_triggers_ran(txn) {
            true => Ok(()),
            false => Err(ProtocolError::UnawaitedTriggers {
                txn,
                doing: self.doing(),
            }),
        }
    }

    fn doing(&self) -> Doing {
        Doing {
            head: self.head.phase(),
            tail: self.tail.phase(),
        }
    }
}

/// Deciding what to do next.
impl Leader {
    /// Answers the next caller who can be answered.
    fn answer(&mut self, now: Now) -> Option<Action> {
        if let Some(resolved) = self.session.waiters.next_resolved() {
            return Some(Action::Done {
                waiters: resolved.waiters,
                figures: resolved.figures,
            });
        }
        let poke = self.session.waiters.next_poke()?;
        Some(self.acknowledge_poke(poke, now))
    }

    fn acknowledge_poke(&mut self, poke: Poke, now: Now) -> Action {
        let status = Box::new(self.status(now));
        let barrier = self.barrier(poke.through);
        let committed = &self.session.record.committed.frontier;
        let inputs = sync_now::Inputs {
            head: self.head.for_poke(&self.session, self.tail.view(), now),
            tail_done: self.tail.view().done,
            target: match &barrier {
                None => Target::Open,
                Some(target) if committed.covers(target) => Target::Committed,
                Some(_) => Target::Ahead,
            },
        };
        let decision = sync_now::evaluate(&inputs);
        self.head.poke(decision.sets_close_requested);
        self.tail.poke();
        self.park(poke.waiter, decision.waits_for, barrier);
        Action::Ack {
            waiter: poke.waiter,
            outcome: decision.outcome,
            status,
        }
    }

    /// Returns the frontier that a poke wants committed, unless it wants
    /// whatever is open.
    fn barrier(&self, through: Through) -> Option<Frontier> {
        let session = &self.session;
        let ends = match through {
            Through::Head { ends } => ends,
            // The caller may know of documents that an earlier session read.
            Through::Open if !session.has_committed_through_opening() => {
                session.opening_ends.clone()
            }
            Through::Open => return None,
        };
        Some(match self.head.upper() {
            Some(upper) => ends.joined(upper),
            None => ends,
        })
    }

    fn park(&mut self, waiter: WaiterId, waits_for: WaitsFor, barrier: Option<Frontier>) {
        let waiters = &mut self.session.waiters;
        let awaits = match waits_for {
            WaitsFor::Nothing => return waiters.resolve_at_once(waiter),
            WaitsFor::Tail => Awaits::Txn(self.tail.id().expect("a tail that is not done")),
            WaitsFor::Head => Awaits::Txn(self.head.id().expect("a head that is open")),
            WaitsFor::Target => Awaits::Frontier(barrier.expect("a target is a barrier")),
        };
        if let Awaits::Frontier(target) = &awaits
            && !self.head.closes_through(target)
        {
            waiters.set_barrier(target.clone());
        }
        waiters.park(waiter, awaits);
    }

    fn step_tail(&mut self, now: Now) -> Option<Action> {
        let head = self.head_view();
        let tail = std::mem::replace(&mut self.tail, Tail::Done);
        match tail.step(&self.session, head, now) {
            TailStep::Wait(tail) => {
                self.tail = tail;
                None
            }
            TailStep::Act(action, tail) => {
                self.tail = tail;
                if let Action::Persist {
                    why: Persist::Acknowledged,
                    ..
                } = action
                {
                    self.session.acknowledged = now;
                }
                Some(action)
            }
            TailStep::Done(txn) => {
                let committed = &self.session.record.committed.frontier;
                let waiters = &mut self.session.waiters;
                waiters.resolve(txn.id, committed, txn.figures);
                None
            }
        }
    }

    /// Hands a transaction whose commit is durable from the Head to the Tail.
    fn rotate(&mut self, now: Now) {
        let head = std::mem::replace(&mut self.head, Head::Stop);
        let (head, committed) = head.rotate(now);
        self.head = head;
        if let Some(committed) = committed {
            self.tail = Tail::begin(committed);
        }
    }

    fn step_head(&mut self, now: Now) -> Option<Action> {
        let head = std::mem::replace(&mut self.head, Head::Stop);
        let (action, head) = head.step(&self.session, self.tail.view(), now);
        self.head = head;
        if let Some(Action::Flush { .. }) = action {
            let upper = self.head.upper().expect("a head that closes is open");
            self.session.waiters.drop_reached(upper);
            self.session.closed = now;
        }
        action
    }

    /// Says whether a change of spec has waited for too long.
    fn is_overdue(&mut self, now: Now) -> bool {
        let Ending::SpecChange { seen_millis } = &mut self.session.ending else {
            return false;
        };
        let seen = *seen_millis.get_or_insert(now.monotonic_millis);
        let finished = self.head.id().is_none() && self.tail.view().done;
        !finished && now.monotonic_millis.saturating_sub(seen) >= SPEC_CHANGE_MILLIS_MAX
    }

    fn wake_after_millis(&self, now: Now) -> Option<u64> {
        let (session, tail) = (&self.session, self.tail.view());
        let head = self.head.waits(session, tail, now);
        let paced = self.tail.paced(session, self.head_view(), now);
        let overdue = match session.ending {
            Ending::SpecChange {
                seen_millis: Some(seen),
            } => Some((seen + SPEC_CHANGE_MILLIS_MAX).saturating_sub(now.monotonic_millis)),
            _ => None,
        };
        let wakes = [
            head.and_then(|(_, wake)| wake),
            paced.map(|(_, wake)| wake),
            overdue,
        ];
        wakes.into_iter().flatten().min()
    }

    fn head_view(&self) -> HeadView {
        HeadView {
            poked: self.head.is_poked(),
            full: self.head.is_full(&self.session),
        }
    }
}

#[cfg(test)]
mod tests;
