//! The record's text, and what each persist changes.

use serde_json::json;

use super::*;
use crate::frontier::Source;
use crate::omission::Refused;

fn source(journal: &str) -> Source {
    Source {
        resource: vec!["a".into()],
        backfill: 0,
        journal: journal.into(),
    }
}

fn binding() -> Binding {
    Binding {
        resource: vec!["a".into()],
        backfill: 0,
    }
}

fn layout(shards: &[KeyRange]) -> Layout {
    Layout {
        bindings: vec![binding()],
        shards: shards.to_vec(),
    }
}

fn hint(upper: u64) -> Hint {
    let upper = Frontier::from_iter([(source("j"), upper)]);
    Hint {
        extents: Extents::between(&Frontier::default(), &upper),
        layout: layout(&[KeyRange::ALL]),
        omissions: Vec::new(),
    }
}

fn omission(dead_letter: bool) -> Omission {
    Omission {
        binding: binding(),
        refused: Refused::Key(Key(vec![2, 255])),
        reason: "it is bad".into(),
        field: Some("f".into()),
        at_micros: 1,
        dead_letter,
    }
}

fn keys(key: u8) -> MaxKeys {
    let mut keys = MaxKeys::default();
    keys.raise(binding(), Key(vec![key]));
    keys
}

fn commit(rows: u64) -> Commit {
    let stored = StoredRows {
        resource: vec!["a".into()],
        rows,
    };
    Commit {
        patches: BTreeMap::from([(KeyRange::ALL, json!({"staged": {"f": 1}}))]),
        stored: vec![stored],
        partly_stored_before: false,
        remote: false,
        triggers: true,
    }
}

#[test]
fn each_persist_changes_its_part() {
    let opening = Record::new().opening(3, &Layout::default());
    assert_eq!((opening.fence.owner_epoch, opening.fence.session), (3, 1));
    assert_eq!(
        opening.opening(3, &Layout::default()).fence.session,
        2,
        "the fence rises at every open"
    );

    let hinted = opening.with_hint(hint(7), &keys(9));
    assert_eq!(
        hinted.committed, opening.committed,
        "nothing is committed yet"
    );
    assert_eq!(hinted.max_keys, keys(9), "rows may be stored from here on");
    assert_eq!(
        hinted.with_hint(hint(7), &keys(4)).max_keys,
        keys(9),
        "keys never lower"
    );
    assert_eq!(hinted.unfinished(), Some(&hint(7).layout));

    let committed = hinted.with_commit(commit(2));
    assert_eq!(
        Some(&committed.committed.frontier),
        hinted.hinted_frontier().as_ref()
    );
    assert!(!committed.committed.acknowledged && committed.hinted.is_none());
    assert_eq!(
        committed.states[&KeyRange::ALL],
        json!({"staged": {"f": 1}})
    );
    assert_eq!(committed.committed.patches, committed.states);
    assert_eq!(committed.stored_history, [2]);
    assert!(committed.unfinished().is_some());

    let patches = BTreeMap::from([(KeyRange::ALL, json!({"staged": null}))]);
    let acknowledged = committed.with_acknowledgement(&patches, true);
    assert_eq!(acknowledged.states[&KeyRange::ALL], json!({}));
    assert!(acknowledged.committed.patches.is_empty() && acknowledged.unfinished().is_none());
    let rows = acknowledged
        .committed
        .trigger
        .as_ref()
        .map(|stored| stored[0].rows);
    assert_eq!(rows, Some(2), "triggers are still to run");
    assert_eq!(acknowledged.with_triggers_run().committed.trigger, None);
    let untriggered = committed.with_acknowledgement(&patches, false);
    assert_eq!(
        untriggered.committed.trigger, None,
        "the task has none any more"
    );
}

#[test]
fn highest_keys_are_those_of_the_last_backfill() {
    let backfilled = Binding {
        backfill: 1,
        ..binding()
    };
    let mut keys = keys(9);
    keys.raise(backfilled.clone(), Key(vec![2]));
    assert_eq!(keys.get(&binding()), None);
    assert_eq!(keys.get(&backfilled), Some(&Key(vec![2])));
}

#[test]
fn a_backfill_of_every_binding_drops_the_work_that_is_left() {
    let backfilled = |backfill| Layout {
        bindings: vec![Binding {
            backfill,
            ..binding()
        }],
        shards: vec![KeyRange::ALL],
    };
    let hinted = Record::new().with_hint(hint(7), &keys(9));
    let committed = hinted.with_commit(commit(2));
    for left in [hinted, committed] {
        for kept in [backfilled(0), Layout::default()] {
            let opening = left.opening(1, &kept);
            assert_eq!(opening.unfinished(), left.unfinished(), "{kept:?}");
            assert_eq!(opening.states, left.states, "{kept:?}");
        }
        let opening = left.opening(1, &backfilled(1));
        assert_eq!(opening.unfinished(), None);
        assert!(
            opening.states.is_empty(),
            "nothing names staged work any more"
        );
        assert_eq!(opening.committed.trigger, None);
    }
}

#[test]
fn only_what_stored_rows_counts_and_triggers() {
    let mut record = Record::new();
    for rows in [1, 0, 2, 3, 0, 4, 5, 6] {
        record = record
            .with_hint(hint(7), &keys(0))
            .with_commit(commit(rows));
        assert_eq!(record.committed.trigger.is_some(), rows > 0, "{rows} rows");
    }
    assert_eq!(record.stored_history, [2, 3, 4, 5, 6]);

    let uncounted = Commit {
        partly_stored_before: true,
        ..commit(0)
    };
    let record = record.with_hint(hint(7), &keys(0)).with_commit(uncounted);
    assert_eq!(
        record.committed.trigger,
        Some(vec![]),
        "rows of before a crash trigger, too"
    );
}

#[test]
fn a_patch_touches_its_own_shard() {
    let (low, high) = (
        KeyRange { begin: 0, end: 9 },
        KeyRange {
            begin: 10,
            end: u32::MAX,
        },
    );
    let state = |range, state| BTreeMap::from([(range, state)]);
    let mut record = Record::new();
    record.patch_states(&state(low, json!({"a": 1})));
    record.patch_states(&state(high, json!({"b": 2})));
    record.patch_states(&state(low, json!({"a": null, "c": 3})));
    assert_eq!(record.states[&low], json!({"c": 3}));
    assert_eq!(record.states[&high], json!({"b": 2}));

    let split = Hint {
        layout: layout(&[high]),
        ..hint(7)
    };
    let record = record.with_hint(split, &keys(0));
    assert_eq!(
        record.states,
        state(high, json!({"b": 2})),
        "a shard that is gone leaves no state"
    );
}

#[test]
fn what_is_left_out_is_counted_once_it_is_committed() {
    let omitting = Hint {
        omissions: vec![omission(true), omission(false), omission(false)],
        ..hint(7)
    };
    let hinted = Record::new().with_hint(omitting, &keys(9));
    assert!(hinted.left_out.is_none());
    let committed = hinted.with_commit(commit(1));
    let want = LeftOut {
        skipped: 2,
        dead_letters: 1,
    };
    assert_eq!(committed.left_out, want);
    let next = committed
        .with_hint(hint(9), &keys(9))
        .with_commit(commit(1));
    assert_eq!(next.left_out, want, "and stays counted");
    let read = Record::from_json(&next.to_json()).expect("a record");
    assert_eq!(read.left_out, want);
}

#[test]
fn reads_back_as_written() {
    let records = [
        Record::new(),
        Record::new().with_hint(hint(7), &keys(9)),
        Record::new().with_hint(
            Hint {
                omissions: vec![omission(true), omission(false)],
                ..hint(7)
            },
            &keys(9),
        ),
        Record::new()
            .with_hint(hint(7), &keys(9))
            .with_commit(commit(2)),
    ];
    for record in records {
        let read = Record::from_json(&record.to_json()).expect("what was written reads back");
        assert_eq!(read, record);
    }
}

#[test]
fn a_record_is_this_text() {
    let record = Record::new()
        .opening(3, &Layout::default())
        .with_hint(hint(7), &keys(255));
    let want = concat!(
        r#"{"version":1,"fence":{"ownerEpoch":3,"session":1},"#,
        r#""committed":{"frontier":[],"layout":{"bindings":[],"shards":[]},"#,
        r#""acknowledged":true,"patches":{}},"#,
        r#""hinted":{"extents":[{"resource":["a"],"backfill":0,"journal":"j","lower":0,"upper":7}],"#,
        r#""layout":{"bindings":[{"resource":["a"],"backfill":0}],"shards":["00000000-ffffffff"]}},"#,
        r#""states":{},"maxKeys":[{"binding":{"resource":["a"],"backfill":0},"key":"ff"}],"#,
        r#""storedHistory":[],"remoteCheckpointSeen":false}"#,
    );
    assert_eq!(record.to_json(), want, "stores hold texts such as this one");
}

#[test]
fn refuses_what_it_does_not_know() {
    let newer = Record::from_json(r#"{"version":2,"everything":"else"}"#);
    assert!(matches!(newer, Err(RecordError::Version { found: 2 })));
    let text = Record::new().to_json();
    let texts = [
        "".to_string(),
        "[]".into(),
        r#"{"version":1}"#.into(),
        text.replace("\"hinted\"", "\"hint\"")
            .replace("states", "state"),
        text.replace("00000000-ffffffff", "all")
            .replace("\"session\":0", "\"session\":-1"),
    ];
    for text in texts {
        let read = Record::from_json(&text);
        assert!(
            matches!(read, Err(RecordError::Malformed(_))),
            "{text}: {read:?}"
        );
    }
}
