//! The world: what is durable, the session that runs, and the clocks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tidegate_core::{
    Acknowledged, Action, Band, Binding, CommitSchedule, Event, Extended, Extents, Frontier,
    HeadPhase, HeadStart, Key, KeyRange, Layout, Leader, Limits, Now, Persist, Record, Reply,
    Scope, SeededSchedule, ShardId, Source, TailPhase, Task, Through, TxnId, WaiterId, recover,
    scope,
};

use crate::destination::{Destination, Document};
use crate::model;
use crate::session::{Message, Session};

/// One entry of a script.
#[derive(Debug, Clone)]
pub enum Op {
    /// A piece of IO takes effect, if it did not yet, and its answer arrives.
    Deliver(usize),
    /// A piece of IO takes effect; its answer is still on its way.
    Perform(usize),
    /// The session hears how far it may read, so many documents a source.
    Report(u64),
    Append {
        journal: usize,
        documents: u64,
    },
    Advance(u64),
    JumpWallClock(i64),
    Poke {
        through_head: bool,
    },
    HangUp(usize),
    Stop,
    /// The first so many bindings start over, and the shards may be others.
    ChangeSpec {
        backfill: usize,
        split: bool,
    },
    /// The session is lost: its host, a shard or the store failed.
    Crash,
}

/// What kind of task it is.
#[derive(Debug, Clone)]
pub struct Config {
    /// Whether the destination keeps the checkpoint.
    pub remote: bool,
    /// Whether it has two shards.
    pub split: bool,
    pub triggers: bool,
    pub hold_every: Option<i64>,
    pub pace_every: Option<i64>,
    pub documents_max: u64,
}

#[derive(Debug)]
struct Every(i64);

impl CommitSchedule for Every {
    fn next_fire(&self, after_millis: i64, _seed: u64) -> Option<i64> {
        Some(after_millis.div_euclid(self.0) * self.0 + self.0)
    }
}

/// Documents of which the filters pass nothing.
const FILTERED_EVERY: u64 = 5;

/// More steps than any script leaves to do; one more is a livelock.
const SETTLE_STEPS_MAX: usize = 2_000;

pub struct World {
    config: Config,
    /// The layout that the next session is to run under.
    layout: Layout,
    journals: BTreeMap<String, u64>,
    /// The store's one record, as text.
    record: String,
    destination: Destination,
    session: Option<Session>,
    now: Now,
    callers: u64,
    /// As far as any session has read.
    ever_read: Frontier,
    /// Callers who were told that they are done.
    done: BTreeSet<WaiterId>,
}

impl World {
    pub fn new(config: Config) -> Self {
        let binding = |resource: &str| Binding {
            resource: vec![resource.into()],
            backfill: 0,
        };
        let journals = ["j0", "j1", "j2"].map(|journal| (journal.to_string(), 0));
        World {
            layout: Layout {
                bindings: vec![binding("a"), binding("b")],
                shards: shards(config.split),
            },
            journals: journals.into(),
            record: Record::new().to_json(),
            destination: Destination::new(config.remote),
            session: None,
            now: Now {
                monotonic_millis: 5,
                wall_millis: 1_700_000_000_000,
            },
            callers: 0,
            ever_read: Frontier::default(),
            done: BTreeSet::new(),
            config,
        }
    }

    pub fn run(&mut self, op: Op) {
        match op {
            Op::Append { journal, documents } => {
                let end = self.journals.get_mut(&format!("j{journal}"));
                *end.expect("scripts name journals that exist") += documents;
            }
            Op::Advance(millis) => {
                self.now.monotonic_millis += millis;
                self.now.wall_millis += millis as i64;
            }
            Op::JumpWallClock(millis) => self.now.wall_millis += millis,
            Op::Crash => self.session = None,
            op => self.run_in_session(op),
        }
        self.drive();
    }

    fn run_in_session(&mut self, op: Op) {
        if self.session.is_none() {
            self.open();
        }
        match op {
            Op::Perform(index) => self.perform(index),
            Op::Deliver(index) => self.deliver(index),
            Op::Report(bound) => self.report(bound),
            Op::Poke { through_head } => {
                self.poke(through_head);
            }
            Op::HangUp(index) => self.hang_up(index),
            Op::Stop => {
                self.tell(Event::Stop);
                self.session.as_mut().expect("it is there").ending = true;
            }
            Op::ChangeSpec { backfill, split } => {
                for binding in self.layout.bindings.iter_mut().take(backfill) {
                    binding.backfill += 1;
                }
                self.layout.shards = shards(split);
                self.tell(Event::SpecChanged);
                self.session.as_mut().expect("it is there").ending = true;
            }
            op => panic!("{op:?} needs no session"),
        }
    }

    /// Opens a session, as a host does after a start, a crash or a change.
    fn open(&mut self) {
        let record = self.read_record().opening(1, &self.layout);
        self.record = record.to_json();
        let (layout, finish_only) = match scope(&record, &self.layout) {
            Scope::Current => (self.layout.clone(), false),
            Scope::FinishFirst(layout) => (layout, true),
        };
        let task = self.task(layout.clone(), finish_only);
        let opened = self.destination.open(&layout.shards, &record.states);
        let ends = self.ends(&layout);
        let recovered = recover(&record, &task, &opened, &ends).expect("nothing was lost");

        self.record = recovered.record.to_json();
        let again = recover(&self.read_record(), &task, &opened, &ends);
        let again = again.expect("recovering again");
        assert_eq!(again, recovered, "recovering twice differs from once");

        let replay = match &recovered.head {
            HeadStart::Idle => None,
            HeadStart::Replay { extents, .. } => Some(extents.clone()),
        };
        let read = recovered.record.committed.frontier.clone();
        self.session = Some(Session {
            leader: Some(Leader::start(task, recovered, ends.clone(), self.now)),
            layout,
            flights: Vec::new(),
            combined: BTreeMap::new(),
            read,
            replay,
            open: None,
            loads_allowed: false,
            opening_ends: ends,
            close_requested: false,
            ending: false,
            barriers: BTreeMap::new(),
            callers: BTreeMap::new(),
        });
    }

    fn task(&self, layout: Layout, finish_only: bool) -> Task {
        let every = |every: Option<i64>| {
            every.map(|every| SeededSchedule {
                schedule: Arc::new(Every(every)) as Arc<dyn CommitSchedule>,
                seed: 0,
            })
        };
        Task {
            layout,
            limits: Limits {
                open_millis: Band {
                    floor: 0,
                    ceiling: 5_000,
                },
                documents: Band {
                    floor: 0,
                    ceiling: self.config.documents_max,
                },
                ..Limits::ANY
            },
            schedule: every(self.config.hold_every),
            pacing: every(self.config.pace_every),
            triggers: self.config.triggers,
            finish_only,
        }
    }

    /// Takes steps until the leader waits, or its session ends.
    fn drive(&mut self) {
        while let Some(session) = &mut self.session {
            let leader = session.leader.take().expect("the leader is there");
            let (action, leader) = leader.step(self.now);
            session.leader = Some(leader);
            match action {
                Action::Wait { wake_after_millis } => {
                    assert_ne!(wake_after_millis, Some(0), "a wait that is over would spin");
                    return;
                }
                Action::Stop => {
                    self.check_stop();
                    self.session = None;
                }
                Action::Abandon => self.session = None,
                action => self.start(action),
            }
        }
    }

    /// Starts one piece of IO, after checking that it may start.
    fn start(&mut self, action: Action) {
        self.check(&action);
        let session = self.session.as_mut().expect("actions come from a session");
        match action {
            Action::Extend { txn, to, extents } => {
                session.send(txn, to, &Message::Extend(extents));
            }
            Action::AllowLoads { .. } => session.loads_allowed = true,
            Action::Flush { txn, to } => session.send(txn, to, &Message::Flush),
            Action::Store { txn, to } => session.send(txn, to, &Message::Store),
            Action::StartCommit {
                txn,
                to,
                checkpoint,
            } => {
                session.send(txn, to, &Message::StartCommit(checkpoint));
            }
            Action::Acknowledge { txn, to, .. } => {
                for (shard, patch) in to {
                    session.send(txn, [shard], &Message::Acknowledge(patch));
                }
            }
            Action::RunTriggers { txn, .. } => {
                session.send(txn, [ShardId(0)], &Message::RunTriggers);
            }
            Action::Persist { record, .. } => {
                session.send(TxnId::RECOVERED, [ShardId(0)], &Message::Persist(record));
            }
            Action::Ack { .. } => {}
            Action::Done { waiters, .. } => self.check_done(waiters),
            Action::Wait { .. } | Action::Stop | Action::Abandon => panic!("not IO: {action:?}"),
        }
    }

    /// Checks that an action may start now.
    fn check(&mut self, action: &Action) {
        let session = self.session.as_mut().expect("actions come from a session");
        let leader = session.leader.as_ref().expect("the leader is there");
        let tail = leader.status(self.now).tail_phase;
        match action {
            Action::Extend { txn, extents, .. } => check_extend(session, *txn, extents),
            Action::AllowLoads { txn, .. } => {
                let acknowledging = session.is_in_flight(|m| matches!(m, Message::Acknowledge(_)));
                assert!(!acknowledging, "loads before the acknowledgement");
                assert_eq!(session.open, Some(*txn));
                assert!(!session.loads_allowed, "allowed twice");
            }
            Action::Flush { .. } => {
                assert_eq!(tail, TailPhase::Done, "closed before the tail was done");
                assert!(session.loads_allowed, "flushed before loads were allowed");
            }
            Action::Persist { why, record } => check_persist(session, *why, record),
            Action::Ack {
                waiter,
                outcome,
                status,
            } => {
                let record = Record::from_json(&self.record).expect("the record reads back");
                let expected = model::acknowledge(session, *waiter, &record, status);
                assert_eq!(*outcome, expected, "{status:?}");
            }
            _ => {}
        }
    }

    /// Lets a piece of IO take effect.
    fn perform(&mut self, index: usize) {
        let session = self.session.as_mut().expect("IO is in flight in a session");
        if session.flights.is_empty() {
            return;
        }
        let index = index % session.flights.len();
        let flight = &mut session.flights[index];
        if flight.answer.is_some() {
            return;
        }
        let (shard, txn, message) = (flight.shard, flight.txn, flight.message.clone());
        let answer = match message {
            Message::Persist(record) => self.persist(&record),
            Message::RunTriggers => Event::TriggersRan { txn },
            message => Event::Reply {
                shard,
                txn,
                reply: self.call(shard, txn, message),
            },
        };
        let session = self.session.as_mut().expect("still there");
        session.flights[index].answer = Some(answer);
    }

    fn persist(&mut self, record: &Record) -> Event {
        assert_eq!(
            record.fence,
            self.read_record().fence,
            "another session's record"
        );
        self.record = record.to_json();
        Event::Persisted {
            record: Box::new(self.read_record()),
        }
    }

    /// Carries out one shard's message.
    fn call(&mut self, shard: ShardId, txn: TxnId, message: Message) -> Reply {
        let session = self.session.as_mut().expect("shards belong to a session");
        let range = session.layout.range(shard).expect("the shard exists");
        let combined = session.combined.entry(shard).or_default();
        let fence = Record::from_json(&self.record)
            .expect("the record reads back")
            .fence;
        let name = format!("{}-{}", fence.session, txn.0);
        match message {
            Message::Extend(extents) => {
                let read = documents(&extents, range);
                let bindings = session.layout.bindings.iter();
                let key = |source: &Source| bindings.clone().position(|b| b.reads(source));
                let keys = read.iter().map(|(source, at)| {
                    let binding = key(source).expect("only bindings are read");
                    (binding as u32, Key(at.to_be_bytes().to_vec()))
                });
                let extended = Extended {
                    documents: read.len() as u64,
                    bytes: read.len() as u64 * 10,
                    combiner_bytes: (combined.len() + read.len()) as u64 * 10,
                    max_keys: keys.collect(),
                };
                combined.extend(read);
                for (source, extent) in extents.iter() {
                    self.ever_read.raise(source.clone(), extent.upper);
                }
                Reply::Extended(extended)
            }
            Message::Flush => Reply::Flushed,
            Message::Store => {
                self.destination.stage(range, name, combined.clone());
                let rows = combined.len() as u64;
                Reply::Stored {
                    rows: BTreeMap::from([(0, rows)]),
                }
            }
            Message::StartCommit(checkpoint) => {
                let documents = std::mem::take(combined);
                let patch = self
                    .destination
                    .start_commit(range, name, documents, checkpoint);
                Reply::StartedCommit { patch }
            }
            Message::Acknowledge(patch) => Reply::Acknowledged(Acknowledged {
                patch: self.destination.acknowledge(range, patch),
                pace: true,
            }),
            Message::Persist(_) | Message::RunTriggers => panic!("not a shard's: {message:?}"),
        }
    }

    /// Lets an answer arrive.
    fn deliver(&mut self, index: usize) {
        self.perform(index);
        let session = self.session.as_mut().expect("IO is in flight in a session");
        if session.flights.is_empty() {
            return;
        }
        let flight = session.flights.remove(index % session.flights.len());
        let answer = flight.answer.expect("it was just performed");
        if let Message::Persist(record) = &flight.message
            && !record.committed.acknowledged
        {
            session.open = None;
            session.loads_allowed = false;
        }
        self.tell(answer);
    }

    fn tell(&mut self, event: Event) {
        let session = self.session.as_mut().expect("events reach a session");
        let leader = session.leader.as_mut().expect("the leader is there");
        leader
            .record(event)
            .expect("the world keeps to the protocol");
    }

    fn report(&mut self, bound: u64) {
        let session = self.session.as_ref().expect("a session reads");
        let leader = session.leader.as_ref().expect("the leader is there");
        let read = leader.read_frontier().clone();
        for (source, end) in self.ends(&session.layout.clone()).iter() {
            let upper = end.min(read.next(source) + bound);
            self.tell(Event::Ready {
                source: source.clone(),
                upper,
                end,
            });
        }
    }

    fn poke(&mut self, through_head: bool) -> WaiterId {
        self.callers += 1;
        let waiter = WaiterId(self.callers);
        let session = self.session.as_mut().expect("callers reach a session");
        let layout = session.layout.clone();
        let ends = self.ends(&layout);
        let (needed, through) = match through_head {
            true => (ends.clone(), Through::Head { ends }),
            false => {
                let read = self.ever_read.restricted(|source| layout.reads(source));
                (read, Through::Open)
            }
        };
        let barrier = match &through {
            Through::Head { ends } => Some(ends.clone()),
            Through::Open => None,
        };
        let needed = documents(
            &Extents::between(&Frontier::default(), &needed),
            KeyRange::ALL,
        );
        let session = self.session.as_mut().expect("still there");
        session.barriers.insert(waiter, barrier);
        session.callers.insert(waiter, needed.into_iter().collect());
        self.tell(Event::Poke { waiter, through });
        waiter
    }

    fn hang_up(&mut self, index: usize) {
        let session = self.session.as_mut().expect("callers reach a session");
        let waiter = session.callers.keys().nth(index).copied();
        if let Some(waiter) = waiter {
            self.tell(Event::HungUp { waiter });
        }
    }

    /// Runs everything to its end, and checks that nothing is missing.
    pub fn settle(&mut self) {
        let mut waiter = None;
        for _ in 0..SETTLE_STEPS_MAX {
            if self.session.is_none() {
                self.open();
                waiter = None;
            }
            let finish_only = self
                .session
                .as_ref()
                .is_some_and(|s| s.layout != self.layout);
            if waiter.is_none() && !finish_only {
                waiter = Some(self.poke(true));
            }
            if waiter.is_some_and(|waiter| self.done.contains(&waiter)) {
                return self.check_complete();
            }
            self.report(7);
            self.deliver(0);
            self.run(Op::Advance(1));
        }
        panic!("did not settle: {:?}", self.status());
    }

    fn status(&self) -> Option<String> {
        let session = self.session.as_ref()?;
        let status = session.leader.as_ref()?.status(self.now);
        Some(format!("{status:?}, in flight: {:?}", session.flights))
    }

    fn check_complete(&self) {
        let ends = self.ends(&self.layout);
        let all = Extents::between(&Frontier::default(), &ends);
        for document in documents(&all, KeyRange::ALL) {
            assert!(
                self.destination.applied.contains(&document),
                "{document:?} was lost"
            );
        }
    }

    fn check_done(&mut self, waiters: Vec<WaiterId>) {
        let session = self.session.as_mut().expect("callers wait in a session");
        for waiter in waiters {
            let needed = session.callers.remove(&waiter).expect("resolved once");
            let missing = needed.difference(&self.destination.applied).next();
            assert_eq!(missing, None, "{waiter:?} was told Done too early");
            self.done.insert(waiter);
        }
    }

    fn check_stop(&self) {
        let session = self.session.as_ref().expect("a session stops");
        assert!(session.flights.is_empty(), "stopped with IO in flight");
        assert_eq!(session.open, None, "stopped with a transaction open");
        assert!(
            self.read_record().committed.acknowledged,
            "stopped before the acknowledgement"
        );
    }

    fn read_record(&self) -> Record {
        Record::from_json(&self.record).expect("the record reads back")
    }

    fn ends(&self, layout: &Layout) -> Frontier {
        let sources = layout.bindings.iter().flat_map(|binding| {
            self.journals.iter().map(|(journal, end)| {
                let source = Source {
                    resource: binding.resource.clone(),
                    backfill: binding.backfill,
                    journal: journal.clone(),
                };
                (source, *end)
            })
        });
        sources.collect()
    }
}

/// Checks that an extension goes on exactly where the last one ended, in the
/// only transaction that is open.
fn check_extend(session: &mut Session, txn: TxnId, extents: &Extents) {
    assert!(!extents.is_empty(), "an extension by nothing");
    if session.open.is_none() {
        session.open = Some(txn);
        session.loads_allowed = false;
        session.close_requested = false;
        if let Some(replay) = session.replay.take() {
            assert_eq!(*extents, replay, "a replay of something else");
        }
    }
    assert_eq!(session.open, Some(txn), "two open at once");
    for (source, extent) in extents.iter() {
        assert_eq!(
            extent.lower,
            session.read.next(source),
            "{source}: lower is not the last upper"
        );
        session.read.raise(source.clone(), extent.upper);
    }
}

fn check_persist(session: &Session, why: Persist, record: &Record) {
    let persisting = session.is_in_flight(|message| matches!(message, Message::Persist(_)));
    assert!(!persisting, "two writes at once");
    let leader = session.leader.as_ref().expect("the leader is there");
    let now = Now {
        monotonic_millis: 0,
        wall_millis: 0,
    };
    let (head, tail) = (leader.status(now).head_phase, leader.status(now).tail_phase);
    match why {
        Persist::Hint => {
            assert_eq!((head, tail), (HeadPhase::PersistHint, TailPhase::Done));
            assert!(record.hinted.is_some());
        }
        Persist::Commit => {
            assert_eq!((head, tail), (HeadPhase::Persist, TailPhase::Done));
            assert!(record.hinted.is_none() && !record.committed.acknowledged);
            // What a backfill superseded is no longer in the frontier.
            let read = session
                .read
                .restricted(|source| session.layout.reads(source));
            assert!(record.committed.frontier.covers(&read));
        }
        Persist::Acknowledged => assert!(record.committed.acknowledged),
        Persist::Triggered => assert!(record.committed.trigger.is_none()),
    }
}

fn shards(split: bool) -> Vec<KeyRange> {
    match split {
        false => vec![KeyRange::ALL],
        true => vec![
            KeyRange {
                begin: 0,
                end: u32::MAX / 2,
            },
            KeyRange {
                begin: u32::MAX / 2 + 1,
                end: u32::MAX,
            },
        ],
    }
}

/// Returns the documents of `extents` that pass the filters and belong to
/// `range`.
fn documents(extents: &Extents, range: KeyRange) -> Vec<Document> {
    let hash = |at: u64| (at as u32).wrapping_mul(2_654_435_761);
    let read = extents.iter().flat_map(|(source, extent)| {
        (extent.lower..extent.upper).map(move |at| (source.clone(), at))
    });
    read.filter(|(_, at)| at % FILTERED_EVERY != 0)
        .filter(|(_, at)| (range.begin..=range.end).contains(&hash(*at)))
        .collect()
}
