//! One leader, driven by hand: what it asks for, in which order, and when.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::close_policy::{Band, Limits, WaitsOn};
use crate::frontier::{Extents, Source};
use crate::hold::{CommitSchedule, SeededSchedule};
use crate::layout::{Binding, Key, KeyRange, Layout};
use crate::omission::Refused;
use crate::record::StoredRows;
use crate::recover::{Authority, Opened, recover};
use crate::status::{Figures, HeadPhase, TailPhase};
use crate::sync_now::Outcome;
use crate::txn::event::{Acknowledged, Extended};

const HOUR: i64 = 3_600_000;

/// Fires on the hour.
#[derive(Debug)]
struct Hourly;

impl CommitSchedule for Hourly {
    fn next_fire(&self, after_millis: i64, _: u64) -> Option<i64> {
        Some(after_millis.div_euclid(HOUR) * HOUR + HOUR)
    }
}

fn hourly() -> Option<SeededSchedule> {
    let schedule = Arc::new(Hourly);
    Some(SeededSchedule { schedule, seed: 0 })
}

fn source() -> Source {
    Source {
        resource: vec!["a".into()],
        backfill: 0,
        journal: "j".into(),
    }
}

fn upto(next: u64) -> Frontier {
    Frontier::from_iter([(source(), next)])
}

fn task() -> Task {
    let binding = Binding {
        resource: vec!["a".into()],
        backfill: 0,
    };
    Task {
        layout: Layout {
            bindings: vec![binding],
            shards: vec![
                KeyRange { begin: 0, end: 9 },
                KeyRange {
                    begin: 10,
                    end: u32::MAX,
                },
            ],
        },
        limits: Limits {
            documents: Band {
                floor: 0,
                ceiling: 100,
            },
            ..Limits::ANY
        },
        schedule: None,
        pacing: None,
        triggers: false,
        finish_only: false,
    }
}

/// A leader, the clock, and what was asked of its two shards.
struct Driver {
    leader: Option<Leader>,
    now: Now,
    /// What each shard reads of an extension.
    documents: u64,
}

impl Driver {
    fn new(task: Task) -> Self {
        Driver::from(task, Record::new(), 0)
    }

    fn from(task: Task, record: Record, ends: u64) -> Self {
        let opened = Opened {
            authority: Authority::Log,
            checkpoint: None,
        };
        let opened = vec![opened; task.layout.shards.len()];
        let recovered = recover(&record, &task, &opened, &upto(ends)).expect("a start");
        let now = Now {
            monotonic_millis: 1_000,
            wall_millis: 10 * HOUR,
        };
        Driver {
            leader: Some(Leader::start(task, recovered, upto(ends), now)),
            now,
            documents: 1,
        }
    }

    fn leader(&mut self) -> &mut Leader {
        self.leader.as_mut().expect("the leader is there")
    }

    fn next(&mut self) -> Action {
        let leader = self.leader.take().expect("the leader is there");
        let (action, leader) = leader.step(self.now);
        self.leader = Some(leader);
        action
    }

    fn tell(&mut self, event: Event) {
        self.leader()
            .record(event)
            .expect("an event that is awaited");
    }

    fn ready(&mut self, upper: u64) {
        let source = source();
        let end = upper;
        self.tell(Event::Ready { source, upper, end });
    }

    fn poke(&mut self, waiter: u64, through: Through) -> Outcome {
        let waiter = WaiterId(waiter);
        self.tell(Event::Poke { waiter, through });
        match self.next() {
            Action::Ack { outcome, .. } => outcome,
            action => panic!("not an Ack: {action:?}"),
        }
    }

    fn reply(&mut self, shard: u32, txn: TxnId, reply: Reply) -> Result<(), ProtocolError> {
        let shard = ShardId(shard);
        self.leader().record(Event::Reply { shard, txn, reply })
    }

    /// Answers an action as both shards, the store or the triggers would.
    fn answer(&mut self, action: &Action) {
        let rows = BTreeMap::from([(0, self.documents)]);
        let (txn, reply) = match action.clone() {
            Action::Persist { record, .. } => return self.tell(Event::Persisted { record }),
            Action::RunTriggers { txn, .. } => return self.tell(Event::TriggersRan { txn }),
            Action::Extend { txn, .. } => {
                let extended = Extended {
                    documents: self.documents,
                    bytes: 10 * self.documents,
                    ..Extended::default()
                };
                (txn, Reply::Extended(extended))
            }
            Action::Flush { txn, .. } => (txn, Reply::Flushed),
            Action::Store { txn, .. } => (txn, Reply::Stored { rows }),
            Action::StartCommit { txn, .. } => {
                let patch = Some(json!({ "staged": 1 }));
                (txn, Reply::StartedCommit { patch })
            }
            Action::Acknowledge { txn, .. } => {
                let patch = Some(json!({ "staged": null }));
                (txn, Reply::Acknowledged(Acknowledged { patch, pace: true }))
            }
            _ => return,
        };
        for shard in 0..2 {
            self.reply(shard, txn, reply.clone())
                .expect("an awaited reply");
        }
    }

    /// Steps and answers until the leader waits or ends; names the actions.
    fn run(&mut self) -> Vec<String> {
        self.run_until(|_| false).0
    }

    /// The same, but stops before answering the first action that `is` it.
    fn run_until(&mut self, is: impl Fn(&Action) -> bool) -> (Vec<String>, Action) {
        let mut names = Vec::new();
        loop {
            let action = self.next();
            if let Action::Wait { .. } = action {
                return (names, action);
            }
            names.push(name(&action));
            let ends = matches!(action, Action::Stop | Action::Abandon);
            if ends || is(&action) {
                return (names, action);
            }
            self.answer(&action);
        }
    }

    fn wait(&mut self) -> Option<u64> {
        match self.next() {
            Action::Wait { wake_after_millis } => wake_after_millis,
            action => panic!("not a Wait: {action:?}"),
        }
    }

    fn sleep(&mut self, millis: u64) {
        self.now.monotonic_millis += millis;
        self.now.wall_millis += i64::try_from(millis).expect("a short sleep");
    }

    fn status(&self) -> Status {
        self.leader
            .as_ref()
            .expect("the leader is there")
            .status(self.now)
    }
}

/// Names an action as the tables below do.
fn name(action: &Action) -> String {
    match action {
        Action::Persist { why, .. } => format!("Persist {why:?}"),
        Action::Done { waiters, .. } => format!("Done {}", waiters.len()),
        action => {
            let debug = format!("{action:?}");
            debug
                .split([' ', '{'])
                .next()
                .unwrap_or_default()
                .to_string()
        }
    }
}

const TRANSACTION: [&str; 9] = [
    "Extend",
    "AllowLoads",
    "Flush",
    "Persist Hint",
    "Store",
    "StartCommit",
    "Persist Commit",
    "Acknowledge",
    "Persist Acknowledged",
];

fn is_acknowledge(action: &Action) -> bool {
    matches!(action, Action::Acknowledge { .. })
}

fn is_store(action: &Action) -> bool {
    matches!(action, Action::Store { .. })
}

/// A record that a session left between its commit and its acknowledgement.
fn unacknowledged(task: &Task) -> Record {
    let mut driver = Driver::new(task.clone());
    driver.ready(5);
    driver.run_until(is_acknowledge);
    driver.leader().session.record.clone()
}

#[test]
fn one_transaction_takes_these_actions() {
    let mut driver = Driver::new(task());
    assert_eq!(driver.wait(), None, "nothing to read");
    driver.ready(5);
    assert_eq!(driver.run(), TRANSACTION);
    assert_eq!(driver.wait(), None);
    let record = &driver.leader().session.record;
    assert_eq!(record.committed.frontier, upto(5));
    assert_eq!(record.stored_history, [2]);
}

#[test]
fn triggers_run_over_what_was_stored() {
    let task = Task {
        triggers: true,
        ..task()
    };
    let mut driver = Driver::new(task.clone());
    driver.ready(5);
    let (_, action) = driver.run_until(|action| matches!(action, Action::RunTriggers { .. }));
    let resource = vec!["a".into()];
    let stored = vec![StoredRows { resource, rows: 2 }];
    assert_eq!(
        action,
        Action::RunTriggers {
            txn: TxnId(1),
            stored
        }
    );

    // A session that dies here runs them again.
    let record = driver.leader().session.record.clone();
    let mut next = Driver::from(task, record, 5);
    assert_eq!(next.run(), ["RunTriggers", "Persist Triggered"]);
    driver.answer(&action);
    assert_eq!(driver.run(), ["Persist Triggered"]);
    assert_eq!(driver.status().tail_phase, TailPhase::Done);
}

#[test]
fn a_transaction_whose_documents_were_all_filtered_out_commits() {
    let mut driver = Driver::new(Task {
        triggers: true,
        ..task()
    });
    driver.documents = 0;
    driver.ready(5);
    assert_eq!(driver.run(), TRANSACTION, "and triggers nothing");
    let record = &driver.leader().session.record;
    assert_eq!(record.committed.frontier, upto(5));
    assert!(record.stored_history.is_empty());
}

#[test]
fn the_head_reads_on_while_the_tail_works() {
    let mut driver = Driver::new(task());
    driver.ready(5);
    let (_, acknowledge) = driver.run_until(is_acknowledge);
    driver.ready(7);
    assert_eq!(
        driver.run(),
        ["Extend"],
        "no loads and no close before the acknowledgement"
    );
    driver.ready(9);
    assert_eq!(driver.run(), ["Extend"]);
    let status = driver.status();
    assert_eq!(status.waits_on, Some(WaitsOn::Tail));
    assert_eq!(
        (status.head_phase, status.tail_phase),
        (HeadPhase::Extend, TailPhase::Acknowledge)
    );
    assert_eq!((status.sourced_documents, status.sourced_bytes), (4, 40));

    driver.answer(&acknowledge);
    let (names, _) = driver.run_until(is_store);
    assert_eq!(
        names,
        [
            "Persist Acknowledged",
            "AllowLoads",
            "Flush",
            "Persist Hint",
            "Store"
        ]
    );
}

#[test]
fn a_full_head_stops_reading_until_the_tail_is_done() {
    let mut driver = Driver::new(task());
    driver.ready(5);
    driver.run_until(is_acknowledge);
    driver.documents = 50;
    driver.ready(7);
    assert_eq!(driver.run(), ["Extend"]);
    driver.ready(9);
    assert_eq!(driver.run(), Vec::<String>::new());
}

#[test]
fn a_hold_ends_at_its_instant() {
    let mut driver = Driver::new(Task {
        schedule: hourly(),
        ..task()
    });
    driver.ready(5);
    assert_eq!(driver.run(), ["Extend", "AllowLoads"]);
    assert_eq!(
        driver.wait(),
        Some(30_000),
        "the wall clock is looked at again"
    );
    assert_eq!(driver.status().held_until_millis, Some(11 * HOUR));
    driver.ready(6);
    assert_eq!(driver.run(), ["Extend"], "a held transaction keeps reading");
    driver.sleep(3_600_000 - 1);
    assert_eq!(driver.wait(), Some(1));
    driver.sleep(1);
    assert_eq!(driver.run(), TRANSACTION[2..]);
}

#[test]
fn a_hold_follows_a_clock_that_jumps() {
    let cases = [
        ("ahead, past the instant", 2 * HOUR, None),
        ("ahead, before the instant", HOUR / 2, Some(11 * HOUR)),
        ("back, before the opening", -3 * HOUR - 1, Some(7 * HOUR)),
    ];
    for (name, jump_millis, want) in cases {
        let mut driver = Driver::new(Task {
            schedule: hourly(),
            ..task()
        });
        driver.ready(5);
        driver.run();
        driver.now.wall_millis += jump_millis;
        let closes = driver.run().contains(&"Flush".to_string());
        assert_eq!(closes, want.is_none(), "{name}");
        assert_eq!(driver.status().held_until_millis, want, "{name}");
    }
}

#[test]
fn a_hold_does_not_bind_a_backfill() {
    let task = Task {
        schedule: hourly(),
        ..task()
    };
    let mut driver = Driver::from(task, Record::new(), 1_000);
    driver.documents = 50;
    driver.ready(500);
    let names = driver.run();
    assert_eq!(names, TRANSACTION, "it is full, and closes");
    driver.documents = 1;
    driver.ready(999);
    assert_eq!(driver.run(), TRANSACTION, "still not caught up");
    driver.ready(1_000);
    assert_eq!(driver.run(), ["Extend", "AllowLoads"], "caught up: held");
    driver.ready(1_001);
    driver.run();
    let source = source();
    let (upper, end) = (1_001, 9_000);
    driver.tell(Event::Ready { source, upper, end });
    assert_eq!(
        driver.wait(),
        Some(30_000),
        "and it stays so, though input goes on"
    );
}

#[test]
fn pokes_meet_what_is_there() {
    let mut driver = Driver::new(Task {
        schedule: hourly(),
        ..task()
    });
    assert_eq!(driver.poke(1, Through::Open), Outcome::Idle);
    assert_eq!(driver.run(), ["Done 1"]);
    driver.ready(5);
    driver.run();
    assert_eq!(driver.poke(2, Through::Open), Outcome::HeldCollapsed);
    assert_eq!(driver.poke(3, Through::Open), Outcome::AlreadyClosing);
    let (_, store) = driver.run_until(is_store);
    assert_eq!(driver.poke(4, Through::Open), Outcome::AlreadyClosing);
    driver.tell(Event::HungUp {
        waiter: WaiterId(3),
    });
    driver.answer(&store);
    let (_, acknowledge) = driver.run_until(is_acknowledge);
    assert_eq!(driver.poke(5, Through::Open), Outcome::AlreadyClosing);
    driver.sleep(250);
    driver.answer(&acknowledge);
    let (names, done) = driver.run_until(|action| matches!(action, Action::Done { .. }));
    assert_eq!(names, ["Persist Acknowledged", "Done 3"]);
    let figures = Figures {
        documents: 2,
        bytes: 20,
        duration_millis: 0,
    };
    let waiters = vec![WaiterId(2), WaiterId(4), WaiterId(5)];
    assert_eq!(done, Action::Done { waiters, figures });

    driver.ready(6);
    driver.run();
    assert_eq!(
        driver.status().held_until_millis,
        Some(11 * HOUR),
        "a poke is one-shot"
    );
}

#[test]
fn figures_cover_the_whole_open_age() {
    let mut driver = Driver::new(Task {
        schedule: hourly(),
        ..task()
    });
    driver.ready(5);
    driver.run();
    driver.sleep(60_000);
    driver.poke(1, Through::Open);
    let (_, store) = driver.run_until(is_store);
    driver.sleep(40);
    driver.answer(&store);
    let (_, done) = driver.run_until(|action| matches!(action, Action::Done { .. }));
    let Action::Done { figures, .. } = done else {
        panic!("not a Done: {done:?}");
    };
    assert_eq!(figures.duration_millis, 60_040);
}

#[test]
fn a_read_through_poke_commits_what_was_there() {
    let mut driver = Driver::new(Task {
        schedule: hourly(),
        ..task()
    });
    let through = || Through::Head { ends: upto(9) };
    assert_eq!(
        driver.poke(1, through()),
        Outcome::CloseRequested,
        "idle, and not covered"
    );
    driver.ready(5);
    assert_eq!(driver.run(), ["Extend", "AllowLoads"]);
    assert_eq!(driver.status().waits_on, Some(WaitsOn::Input));
    driver.ready(9);
    let names = driver.run();
    assert_eq!(names.last().map(String::as_str), Some("Done 1"));
    assert_eq!(driver.poke(2, through()), Outcome::Idle, "and again");
}

#[test]
fn a_plain_poke_reads_through_to_the_opening_of_the_session() {
    let mut driver = Driver::from(task(), Record::new(), 9);
    assert_eq!(driver.poke(1, Through::Open), Outcome::CloseRequested);
    driver.ready(9);
    assert_eq!(driver.run().last().map(String::as_str), Some("Done 1"));
    assert_eq!(driver.poke(2, Through::Open), Outcome::Idle);
}

#[test]
fn pacing_holds_an_acknowledgement_until_somebody_waits() {
    type Tell = fn(&mut Driver);
    let cases: [(&str, Tell, bool); 7] = [
        ("nothing happens", |_| {}, true),
        ("the instant comes", |driver| driver.sleep(3_600_000), false),
        (
            "a poke",
            |driver| assert_eq!(driver.poke(1, Through::Open), Outcome::AlreadyClosing),
            false,
        ),
        ("a stop", |driver| driver.tell(Event::Stop), false),
        (
            "a change of spec",
            |driver| driver.tell(Event::SpecChanged),
            false,
        ),
        ("input, not much", |driver| driver.ready(6), true),
        (
            "input, up to a ceiling",
            |driver| {
                driver.documents = 50;
                driver.ready(6)
            },
            false,
        ),
    ];
    for (name, tell, paced) in cases {
        let mut driver = Driver::new(Task {
            pacing: hourly(),
            ..task()
        });
        driver.ready(5);
        assert_eq!(driver.run(), TRANSACTION[..8], "{name}");
        assert_eq!(driver.wait(), Some(30_000), "{name}");
        let until = driver.status().acknowledgement_held_until_millis;
        assert_eq!(until, Some(11 * HOUR), "{name}");
        tell(&mut driver);
        let names = driver.run();
        assert_eq!(
            !names.contains(&"Persist Acknowledged".into()),
            paced,
            "{name}: {names:?}"
        );
    }
}

#[test]
fn pacing_spares_these_acknowledgements() {
    let paced = Task {
        pacing: hourly(),
        ..task()
    };
    let record = unacknowledged(&paced);
    let acknowledged = ["Acknowledge", "Persist Acknowledged"];
    let mut recovered = Driver::from(paced.clone(), record.clone(), 5);
    assert_eq!(
        recovered.run(),
        acknowledged,
        "one that an earlier session committed"
    );

    let finish = Task {
        finish_only: true,
        ..paced.clone()
    };
    let hinted = {
        let mut driver = Driver::new(paced.clone());
        driver.ready(5);
        driver.run_until(is_store);
        driver.leader().session.record.clone()
    };
    let mut replayed = Driver::from(finish, hinted, 5);
    let names = replayed.run();
    assert_eq!(
        names.last().map(String::as_str),
        Some("Stop"),
        "a session that only finishes"
    );

    let mut poked = Driver::new(paced.clone());
    poked.ready(5);
    poked.run_until(is_store);
    poked.poke(1, Through::Open);
    let store = Action::Store {
        txn: TxnId(1),
        to: Default::default(),
    };
    poked.answer(&store);
    let names = poked.run();
    assert_eq!(
        names.last().map(String::as_str),
        Some("Done 1"),
        "one that was poked"
    );

    let mut scheduled = Driver::new(Task {
        schedule: hourly(),
        ..paced
    });
    scheduled.ready(5);
    scheduled.run();
    scheduled.sleep(3_600_000);
    assert_eq!(
        scheduled.run(),
        TRANSACTION[2..],
        "one of a task whose spec has a schedule"
    );
}

fn refusal(key: u8) -> Refusal {
    Refusal {
        binding: 0,
        refused: Some(Refused::Key(Key(vec![key]))),
        reason: "it is bad".into(),
        field: None,
        at_micros: 0,
    }
}

/// Wherever a document is refused, the next session replays what was read, leaves
/// the document out, and what it left out before.
#[test]
fn what_is_refused_is_left_out_of_a_replay() {
    let is = |wanted: &'static str| move |action: &Action| name(action) == wanted;
    for refused_at in ["Extend", "Flush", "Store", "StartCommit"] {
        let mut driver = Driver::new(task());
        driver.ready(5);
        driver.run_until(is(refused_at));
        let record = driver.leader().refuse(refusal(1), OnError::Skip);
        let mut record = record.expect("it is left out");
        for key in 2..4 {
            driver = Driver::from(task(), record, 9);
            driver.ready(9);
            let (_, action) = driver.run_until(is("Extend"));
            let Action::Extend { extents, .. } = &action else {
                panic!("not an Extend: {action:?}");
            };
            assert_eq!(*extents, Extents::between(&upto(0), &upto(5)));
            if refused_at != "Extend" {
                driver.answer(&action);
                driver.run_until(is(refused_at));
            }
            let again = driver.leader().refuse(refusal(1), OnError::Skip);
            assert_eq!(again, Err(Halt::LeftOutAlready), "{refused_at}");
            let halting = driver.leader().halting().expect("something is left out");
            let hint = halting.hinted.expect("a hint");
            assert_eq!((hint.omissions, hint.extents), (vec![], extents.clone()));
            let next = driver.leader().refuse(refusal(key), OnError::Skip);
            record = next.expect("it is left out");
        }
        let mut driver = Driver::from(task(), record, 5);
        driver.run();
        let record = &driver.leader().session.record;
        assert_eq!(record.left_out.skipped, 3, "{refused_at}");
        assert_eq!(
            (&record.committed.frontier, &record.hinted),
            (&upto(5), &None)
        );
    }
}

#[test]
fn nothing_is_left_out_of_what_is_not_open() {
    let mut driver = Driver::new(task());
    driver.ready(5);
    driver.run_until(is_acknowledge);
    let halt = driver.leader().refuse(refusal(1), OnError::Skip);
    assert_eq!(halt, Err(Halt::Unidentified));
    let mut driver = Driver::new(task());
    driver.ready(5);
    driver.run_until(is_store);
    let halt = driver.leader().refuse(refusal(1), OnError::Halt);
    assert_eq!(halt, Err(Halt::OnError));
    assert_eq!(driver.leader().halting(), None);
}

#[test]
fn a_recovered_commit_is_acknowledged_with_its_patches() {
    let record = unacknowledged(&task());
    let mut driver = Driver::from(task(), record, 5);
    assert_eq!(driver.poke(1, Through::Open), Outcome::AlreadyClosing);
    let Action::Acknowledge {
        txn,
        to,
        recovery,
        stored_history,
    } = driver.next()
    else {
        panic!("the first action acknowledges");
    };
    let patch = Some(json!({ "staged": 1 }));
    let want = BTreeMap::from([(ShardId(0), patch.clone()), (ShardId(1), patch)]);
    assert_eq!((txn, to, recovery), (TxnId::RECOVERED, want, true));
    assert_eq!(stored_history, [2]);
    driver.answer(&Action::Acknowledge {
        txn,
        to: BTreeMap::new(),
        recovery,
        stored_history,
    });
    let (_, done) = driver.run_until(|action| matches!(action, Action::Done { .. }));
    let (waiters, figures) = (vec![WaiterId(1)], Figures::default());
    assert_eq!(done, Action::Done { waiters, figures });
}

#[test]
fn a_stop_finishes_what_is_open() {
    let mut driver = Driver::new(Task {
        schedule: hourly(),
        ..task()
    });
    driver.ready(5);
    driver.run();
    driver.tell(Event::Stop);
    let mut want = TRANSACTION[2..].to_vec();
    want.push("Stop");
    assert_eq!(driver.run(), want);
    driver.ready(6);
    assert_eq!(driver.run(), ["Stop"], "and opens nothing more");
}

#[test]
fn a_change_of_spec_waits_five_seconds() {
    let mut driver = Driver::new(task());
    driver.ready(5);
    let (_, acknowledge) = driver.run_until(is_acknowledge);
    driver.poke(1, Through::Open);
    driver.tell(Event::SpecChanged);
    assert_eq!(driver.wait(), Some(SPEC_CHANGE_MILLIS_MAX));
    driver.tell(Event::Stop);
    driver.sleep(SPEC_CHANGE_MILLIS_MAX - 1);
    assert_eq!(driver.wait(), Some(1), "a stop does not extend it");
    driver.sleep(1);
    assert_eq!(driver.run(), ["Abandon"]);
    let leader = driver.leader.take().expect("the leader is there");
    assert_eq!(leader.end(), [WaiterId(1)], "who waited has to call again");

    let mut driver = Driver::new(task());
    driver.ready(5);
    driver.run_until(is_acknowledge);
    driver.tell(Event::SpecChanged);
    driver.wait();
    driver.answer(&acknowledge);
    assert_eq!(driver.run(), ["Persist Acknowledged", "Stop"]);
    driver.sleep(SPEC_CHANGE_MILLIS_MAX);
    assert_eq!(driver.run(), ["Stop"], "in time is in time");
}

#[test]
fn whoever_waits_is_returned_when_the_session_ends() {
    let mut driver = Driver::new(Task {
        schedule: hourly(),
        ..task()
    });
    driver.ready(5);
    driver.run();
    driver.poke(1, Through::Open);
    driver.poke(2, Through::Head { ends: upto(9) });
    let (waiter, through) = (WaiterId(3), Through::Open);
    driver.tell(Event::Poke { waiter, through });
    driver.tell(Event::HungUp {
        waiter: WaiterId(1),
    });
    let leader = driver.leader.take().expect("the leader is there");
    assert_eq!(leader.end(), [WaiterId(2), WaiterId(3)]);
}

#[test]
fn refuses_messages_that_nobody_waits_for() {
    let mut driver = Driver::new(task());
    driver.ready(5);
    driver.run_until(|action| matches!(action, Action::Flush { .. }));
    driver
        .reply(0, TxnId(1), Reply::Flushed)
        .expect("awaited once");
    let key = Key(vec![1]);
    let keys = Extended {
        max_keys: BTreeMap::from([(7, key)]),
        ..Extended::default()
    };
    let acknowledged = Reply::Acknowledged(Acknowledged::default());
    let cases = [
        (
            0,
            1,
            Reply::Flushed,
            "shard 0 sent Flushed for transaction 1, which is not awaited",
        ),
        (
            1,
            2,
            Reply::Flushed,
            "shard 1 sent Flushed for transaction 2, which is not awaited",
        ),
        (
            7,
            1,
            Reply::Flushed,
            "shard 7 sent Flushed for transaction 1, which is not awaited",
        ),
        (
            1,
            1,
            acknowledged,
            "shard 1 sent Acknowledged for transaction 1, which is not",
        ),
        (
            1,
            1,
            Reply::StartedCommit { patch: None },
            "shard 1 sent StartedCommit for",
        ),
        (
            1,
            1,
            Reply::Extended(keys),
            "shard 1 sent Extended naming binding 7",
        ),
        (
            1,
            1,
            Reply::Stored {
                rows: BTreeMap::from([(1, 1)]),
            },
            "shard 1 sent Stored naming",
        ),
    ];
    for (shard, txn, reply, want) in cases {
        let error = driver
            .reply(shard, TxnId(txn), reply)
            .expect_err(want)
            .to_string();
        assert!(error.starts_with(want), "{error}");
    }
    let record = Box::new(driver.leader().session.record.clone());
    let error = driver.leader().record(Event::Persisted {
        record: record.clone(),
    });
    assert!(
        matches!(error, Err(ProtocolError::UnawaitedRecord { .. })),
        "{error:?}"
    );
    let record = Box::new(record.opening(9, &task().layout));
    let error = driver.leader().record(Event::Persisted { record });
    assert!(
        matches!(error, Err(ProtocolError::Fenced { .. })),
        "{error:?}"
    );
    let error = driver.leader().record(Event::TriggersRan { txn: TxnId(1) });
    assert!(
        matches!(error, Err(ProtocolError::UnawaitedTriggers { .. })),
        "{error:?}"
    );
}
