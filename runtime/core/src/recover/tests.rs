//! Every way in which a record and its destination can be found.

use proptest::prelude::*;

use super::*;
use crate::close_policy::Limits;
use crate::layout::Binding;
use crate::omission::{LeftOut, Omission, Refused};
use crate::record::{Commit, Hint, MaxKeys};

const LOW: KeyRange = KeyRange {
    begin: 0,
    end: 0x7fff_ffff,
};
const HIGH: KeyRange = KeyRange {
    begin: 0x8000_0000,
    end: u32::MAX,
};

fn source(resource: &str, backfill: u32) -> Source {
    Source {
        resource: vec![resource.into()],
        backfill,
        journal: "j".into(),
    }
}

fn at(next: u64) -> Frontier {
    Frontier::from_iter([(source("a", 0), next)])
}

fn layout(shards: &[KeyRange]) -> Layout {
    let binding = Binding {
        resource: vec!["a".into()],
        backfill: 0,
    };
    Layout {
        bindings: vec![binding],
        shards: shards.to_vec(),
    }
}

fn task(shards: &[KeyRange]) -> Task {
    Task {
        layout: layout(shards),
        limits: Limits::ANY,
        schedule: None,
        pacing: None,
        triggers: false,
        finish_only: false,
    }
}

fn hinted(record: Record, shards: &[KeyRange], upper: u64) -> Record {
    let hint = Hint {
        extents: Extents::between(&record.committed.frontier, &at(upper)),
        layout: layout(shards),
        omissions: Vec::new(),
    };
    record.with_hint(hint, &MaxKeys::default())
}

/// The same, leaving out one document.
fn omitting(record: Record, shards: &[KeyRange], upper: u64) -> Record {
    let omission = Omission {
        binding: layout(shards).bindings[0].clone(),
        refused: Refused::Offset(6),
        reason: "it is bad".into(),
        field: None,
        at_micros: 0,
        dead_letter: false,
    };
    let mut record = hinted(record, shards, upper);
    record.hinted.as_mut().expect("a hint").omissions = vec![omission];
    record
}

/// A record of which five documents are committed.
fn committed(shards: &[KeyRange], remote: bool, acknowledged: bool) -> Record {
    let commit = Commit {
        patches: Default::default(),
        stored: Vec::new(),
        partly_stored_before: false,
        remote,
        triggers: false,
    };
    let record = hinted(Record::new(), shards, 5).with_commit(commit);
    match acknowledged {
        true => record.with_acknowledgement(&Default::default(), false),
        false => record,
    }
}

fn remote(checkpoint: Option<u64>) -> Opened {
    Opened {
        authority: Authority::Remote,
        checkpoint: checkpoint.map(|next| at(next).to_checkpoint()),
    }
}

fn log() -> Opened {
    Opened {
        authority: Authority::Log,
        checkpoint: None,
    }
}

/// What a start comes to: committed documents, the replay with the shards that
/// hold it, and the tail.
type Found = (u64, Option<(u64, u64, Vec<u32>)>, TailStart);

fn found(recovered: &Recovered) -> Found {
    let replay = match &recovered.head {
        HeadStart::Idle => None,
        HeadStart::Replay { extents, holding } => {
            let (_, extent) = extents.iter().next().expect("a replay reads something");
            let holding = holding.iter().map(|shard| shard.0).collect();
            Some((extent.lower, extent.upper, holding))
        }
    };
    let next = recovered.record.committed.frontier.next(&source("a", 0));
    (next, replay, recovered.tail)
}

#[rustfmt::skip]
#[test]
fn starts_where_record_and_destination_say() {
    struct Case { name: &'static str, record: Record, opened: Vec<Opened>, want: Found }
    use TailStart::{Acknowledge, Done};
    let one = &[KeyRange::ALL][..];
    let two = &[LOW, HIGH][..];
    let done = |shards, remote| committed(shards, remote, true);
    let cases = [
        Case { name: "log, fresh", record: Record::new(), opened: vec![log()], want: (0, None, Done) },
        Case { name: "log, plain resume", record: done(one, false), opened: vec![log()], want: (5, None, Done) },
        Case { name: "log, hinted", record: hinted(done(one, false), one, 9), opened: vec![log()],
            want: (5, Some((5, 9, vec![])), Done) },
        Case { name: "log, committed and not acknowledged", record: committed(one, false, false), opened: vec![log()],
            want: (5, None, Acknowledge) },
        Case { name: "log, several shards, hinted", record: hinted(done(two, false), two, 9), opened: vec![log(), log()],
            want: (5, Some((5, 9, vec![])), Done) },
        Case { name: "remote, fresh", record: Record::new(), opened: vec![remote(None)], want: (0, None, Done) },
        Case { name: "remote, plain resume", record: done(one, true), opened: vec![remote(Some(5))], want: (5, None, Done) },
        Case { name: "remote, committed and not acknowledged", record: committed(one, true, false), opened: vec![remote(Some(5))],
            want: (5, None, Acknowledge) },
        Case { name: "remote, hinted and not committed", record: hinted(done(one, true), one, 9), opened: vec![remote(Some(5))],
            want: (5, None, Done) },
        Case { name: "remote, hinted and committed", record: hinted(done(one, true), one, 9), opened: vec![remote(Some(9))],
            want: (9, None, Acknowledge) },
        Case { name: "remote, hinted with an omission and not committed", record: omitting(done(one, true), one, 9), opened: vec![remote(Some(5))],
            want: (5, Some((5, 9, vec![])), Done) },
        Case { name: "remote, hinted with an omission and committed", record: omitting(done(one, true), one, 9), opened: vec![remote(Some(9))],
            want: (9, None, Acknowledge) },
        Case { name: "remote, the first one committed, not recorded", record: hinted(Record::new(), one, 5), opened: vec![remote(Some(5))],
            want: (5, None, Acknowledge) },
        Case { name: "remote, ahead of the record", record: done(one, true), opened: vec![remote(Some(12))],
            want: (12, None, Acknowledge) },
        Case { name: "remote, behind the record", record: done(one, true), opened: vec![remote(Some(3))],
            want: (3, None, Acknowledge) },
        Case { name: "remote, behind the record with a hint", record: hinted(done(one, true), one, 9), opened: vec![remote(Some(3))],
            want: (3, None, Acknowledge) },
        Case { name: "was log, now remote without a checkpoint", record: done(one, false), opened: vec![remote(None)],
            want: (0, None, Acknowledge) },
        Case { name: "two shards, neither committed", record: hinted(done(two, true), two, 9), opened: vec![remote(Some(5)), remote(Some(5))],
            want: (5, None, Done) },
        Case { name: "two shards, one committed", record: hinted(done(two, true), two, 9), opened: vec![remote(Some(5)), remote(Some(9))],
            want: (5, Some((5, 9, vec![1])), Done) },
        Case { name: "two shards, the other committed", record: hinted(done(two, true), two, 9), opened: vec![remote(Some(9)), remote(Some(5))],
            want: (5, Some((5, 9, vec![0])), Done) },
        Case { name: "two shards, both committed", record: hinted(done(two, true), two, 9), opened: vec![remote(Some(9)), remote(Some(9))],
            want: (9, None, Acknowledge) },
        Case { name: "two shards, one made its first commit", record: hinted(Record::new(), two, 5), opened: vec![remote(Some(5)), remote(None)],
            want: (0, Some((0, 5, vec![0])), Done) },
    ];
    for Case { name, record, opened, want } in cases {
        let task = task(if opened.len() == 1 { one } else { two });
        let recovered = recover(&record, &task, &opened, &at(20)).expect(name);
        assert_eq!(found(&recovered), want, "{name}");
        let again = recover(&recovered.record, &task, &opened, &at(20)).expect(name);
        assert_eq!(again, recovered, "{name}: recovering twice");
    }
}

#[rustfmt::skip]
#[test]
fn refuses_what_no_crash_explains() {
    struct Case { name: &'static str, record: Record, opened: Vec<Opened>, ends: u64, want: &'static str }
    let one = &[KeyRange::ALL][..];
    let two = &[LOW, HIGH][..];
    let done = |shards| committed(shards, true, true);
    let torn = Opened { checkpoint: Some("{\"version\":1,".into()), ..remote(None) };
    let newer = Opened { checkpoint: Some("{\"version\":9}".into()), ..remote(None) };
    let cases = [
        Case { name: "lost", record: done(one), opened: vec![remote(None)], ends: 20,
            want: "shard 0 (00000000-ffffffff): the destination has no checkpoint" },
        Case { name: "one of two lost", record: done(two), opened: vec![remote(Some(5)), remote(None)], ends: 20,
            want: "shard 1 (80000000-ffffffff): the destination has no checkpoint" },
        Case { name: "torn", record: done(one), opened: vec![torn], ends: 20, want: "shard 0 (00000000-ffffffff): the destination's checkpoint cannot be used" },
        Case { name: "newer", record: done(one), opened: vec![newer], ends: 20, want: "shard 0 (00000000-ffffffff): the destination's checkpoint cannot be used" },
        Case { name: "uneven without a hint", record: done(two), opened: vec![remote(Some(5)), remote(Some(9))], ends: 20,
            want: "shard 0 (00000000-7fffffff): the destination's checkpoint" },
        Case { name: "one is elsewhere", record: hinted(done(two), two, 9), opened: vec![remote(Some(5)), remote(Some(7))], ends: 20,
            want: "shard 1 (80000000-ffffffff): the destination's checkpoint" },
        Case { name: "mixed", record: done(two), opened: vec![remote(Some(5)), log()], ends: 20,
            want: "shard 1 (80000000-ffffffff) keeps its checkpoint elsewhere" },
        Case { name: "the journal is shorter", record: done(one), opened: vec![remote(Some(5))], ends: 4,
            want: "journal j of resource a ends at document 4, but 5 were committed" },
        Case { name: "the journal is shorter than a replay", record: hinted(committed(one, false, true), one, 9), opened: vec![log()], ends: 8,
            want: "journal j of resource a ends at document 8, but 9 were committed" },
    ];
    for Case { name, record, opened, ends, want } in cases {
        let task = task(if opened.len() == 1 { one } else { two });
        let error = recover(&record, &task, &opened, &at(ends)).expect_err(name).to_string();
        assert!(error.starts_with(want), "{name}: {error}");
    }
}

#[test]
fn what_was_left_out_is_counted_where_the_destination_committed_it() {
    let one = &[KeyRange::ALL][..];
    let record = omitting(committed(one, true, true), one, 9);
    for (checkpoint, skipped) in [(5, 0), (8, 0), (9, 1), (12, 1)] {
        let opened = [remote(Some(checkpoint))];
        let recovered = recover(&record, &task(one), &opened, &at(20)).expect("a start");
        let left_out = LeftOut {
            skipped,
            dead_letters: 0,
        };
        assert_eq!(recovered.record.left_out, left_out, "at {checkpoint}");
    }
}

#[test]
fn a_backfill_of_every_binding_goes_on_without_a_checkpoint() {
    let mut task = task(&[KeyRange::ALL]);
    task.layout.bindings[0].backfill = 1;
    let record = committed(&[KeyRange::ALL], true, true);
    let recovered = recover(&record, &task, &[remote(None)], &at(20)).expect("a fresh start");
    assert_eq!(recovered.record.committed.frontier.next(&source("a", 1)), 0);
    assert_eq!(
        (recovered.head, recovered.tail),
        (HeadStart::Idle, TailStart::Done)
    );
}

#[test]
fn unfinished_work_is_finished_under_its_own_layout() {
    let (one, two) = (layout(&[KeyRange::ALL]), layout(&[LOW, HIGH]));
    let cases = [
        (
            "nothing left",
            committed(&one.shards, false, true),
            Scope::Current,
        ),
        (
            "not acknowledged",
            committed(&one.shards, false, false),
            Scope::FinishFirst(one.clone()),
        ),
        (
            "hinted",
            hinted(committed(&one.shards, false, true), &one.shards, 9),
            Scope::FinishFirst(one.clone()),
        ),
        (
            "hinted under the same",
            hinted(committed(&one.shards, false, true), &two.shards, 9),
            Scope::Current,
        ),
        ("fresh", Record::new(), Scope::Current),
    ];
    for (name, record, want) in cases {
        assert_eq!(scope(&record, &two), want, "{name}");
    }
}

#[test]
fn triggers_that_did_not_run_run() {
    let mut task = task(&[KeyRange::ALL]);
    let mut record = committed(&[KeyRange::ALL], false, true);
    record.committed.trigger = Some(Vec::new());
    for (triggers, want) in [(true, TailStart::Trigger), (false, TailStart::Done)] {
        task.triggers = triggers;
        let recovered = recover(&record, &task, &[log()], &at(20)).expect("a start");
        assert_eq!(recovered.tail, want, "the task has triggers: {triggers}");
    }
}

proptest! {
    #[test]
    fn recovering_twice_gives_what_recovering_once_gives(
        base in 0..4u64, acknowledged: bool, hint in proptest::option::of(1..4u64),
        seen: bool, triggers: bool,
        checkpoints in proptest::collection::vec(proptest::option::of(0..8u64), 1..=2),
        log_authority: bool,
    ) {
        let shards = if checkpoints.len() == 1 { vec![KeyRange::ALL] } else { vec![LOW, HIGH] };
        let mut record = Record::new();
        record.committed.frontier = at(base);
        record.committed.acknowledged = acknowledged;
        record.remote_checkpoint_seen = seen;
        if let Some(hint) = hint {
            record = hinted(record, &shards, base + hint);
        }
        let opened: Vec<_> = checkpoints
            .iter()
            .map(|checkpoint| if log_authority { log() } else { remote(*checkpoint) })
            .collect();
        let task = Task { triggers, ..task(&shards) };
        if let Ok(once) = recover(&record, &task, &opened, &at(20)) {
            let twice = recover(&once.record, &task, &opened, &at(20));
            prop_assert_eq!(twice.expect("what recovered once recovers again"), once);
        }
    }
}
