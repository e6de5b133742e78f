//! What every implementation of [`Journals`] must do; run against each of them.

use super::{
    APPEND_BYTES_MAX, Append, Appended, DOCUMENT_BYTES_MAX, Documents, Extent, InputPosition,
    Journal, JournalError, Journals, ORIGIN_BYTES_MAX, Origin,
};
use futures::future::{BoxFuture, join_all};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Opens the same journals again, after the ones before were dropped.
pub(crate) type Open<'a> = &'a (dyn Fn() -> BoxFuture<'a, Box<dyn Journals>> + Sync);

/// A document as it was read, owned.
pub(crate) type Read = (u64, i64, u64, String);

/// Runs the whole suite.
pub(crate) async fn all(open: Open<'_>) {
    let journals = open().await;
    appends_and_reads_back(journals.as_ref()).await;
    extents_reach_far_enough(journals.as_ref()).await;
    ends_move(journals.as_ref()).await;
    producer_keys(journals.as_ref()).await;
    input_positions(journals.as_ref()).await;
    limits(journals.as_ref()).await;
    reads_beyond_the_end(journals.as_ref()).await;
    concurrent_appends(journals.as_ref()).await;
    names(journals.as_ref()).await;
    // Only one may have it open.
    drop(journals);
    survives_reopening(open).await;
}

pub(crate) async fn opened(journals: &dyn Journals, collection: &str) -> Arc<dyn Journal> {
    journals.open(collection).await.expect("the journal opens")
}

pub(crate) fn append(documents: &[&str]) -> Append {
    Append {
        documents: documents
            .iter()
            .map(|document| document.as_bytes())
            .collect(),
        clock: 1,
        schema: 2,
        origin: Origin::None,
    }
}

pub(crate) fn from_producer(documents: &[&str], key: &str) -> Append {
    Append {
        origin: Origin::Producer {
            key: key.to_owned(),
        },
        ..append(documents)
    }
}

pub(crate) fn at_byte(byte: u64) -> Option<InputPosition> {
    Some(InputPosition {
        byte,
        line: byte / 10,
        fingerprint: byte * 3,
    })
}

pub(crate) fn from_input(
    documents: &[&str],
    input: &str,
    expected: Option<InputPosition>,
    position: Option<InputPosition>,
) -> Append {
    Append {
        origin: Origin::Input {
            input: input.to_owned(),
            expected,
            position: position.expect("a position is given"),
        },
        ..append(documents)
    }
}

/// Reads `[lower, upper)`.
pub(crate) async fn read(
    journal: &dyn Journal,
    lower: u64,
    upper: u64,
    bytes_max: u64,
) -> Result<Vec<Read>, JournalError> {
    let mut reader = journal.read(lower, upper, bytes_max);
    let mut documents = Vec::new();
    while let Some(batch) = reader.next().await? {
        assert!(!batch.is_empty(), "a batch holds documents");
        documents.extend(batch.documents().map(|document| {
            let text = String::from_utf8(document.bytes.to_vec()).expect("text");
            (document.offset, document.clock, document.schema, text)
        }));
    }
    Ok(documents)
}

/// Reads the texts of the whole journal.
pub(crate) async fn texts(journal: &dyn Journal) -> Vec<String> {
    let end = *journal.ends().borrow();
    let documents = read(journal, 0, end, 1 << 20).await.expect("it reads");
    assert!(documents.iter().map(|document| document.0).eq(0..end));
    documents.into_iter().map(|document| document.3).collect()
}

async fn appends_and_reads_back(journals: &dyn Journals) {
    let journal = opened(journals, "contract/read").await;
    let mut want = Vec::new();
    for frame in 0..10 {
        let texts: Vec<String> = (0..frame % 4 + 1)
            .map(|document| "x".repeat(document * 700 + frame))
            .collect();
        let first = want.len() as u64;
        let clock = frame.cast_signed() as i64 - 10;
        let schema = u64::MAX - frame as u64;
        want.extend(
            texts
                .iter()
                .zip(first..)
                .map(|(text, offset)| (offset, clock, schema, text.clone())),
        );
        let appended = journal
            .append(Append {
                documents: texts.iter().map(|text| text.as_bytes()).collect(),
                clock,
                schema,
                origin: Origin::None,
            })
            .await
            .expect("it appends");
        assert_eq!(
            appended,
            Appended {
                first,
                next: want.len() as u64
            }
        );
    }
    for lower in 0..want.len() {
        for upper in lower..=want.len() {
            for bytes_max in [0, 1000, u64::MAX] {
                let found = read(journal.as_ref(), lower as u64, upper as u64, bytes_max).await;
                assert_eq!(
                    found.expect("it reads"),
                    want[lower..upper],
                    "{lower}..{upper}"
                );
            }
        }
    }
}

async fn extents_reach_far_enough(journals: &dyn Journals) {
    let journal = opened(journals, "contract/extent").await;
    let nothing = Extent { upper: 0, bytes: 0 };
    assert_eq!(journal.extent(0, u64::MAX), nothing);
    let text = "x".repeat(100_000);
    for _ in 0..20 {
        journal
            .append(append(&[&text, &text]))
            .await
            .expect("it appends");
    }
    for lower in 0..40 {
        let least = journal.extent(lower, 0);
        assert!(
            least.upper > lower && least.upper <= lower + 2,
            "one frame, not none or all"
        );
        let some = journal.extent(lower, 1_000_000);
        assert!(
            some.bytes <= 1_000_000 && some.upper >= (lower + 7).min(40),
            "{lower} {some:?}"
        );
        let all = journal.extent(lower, u64::MAX);
        assert_eq!(all.upper, 40);
        assert!(all.bytes >= (40 - lower) * 100_000);
    }
    let nothing = Extent {
        upper: 40,
        bytes: 0,
    };
    assert_eq!(journal.extent(40, u64::MAX), nothing);
}

async fn ends_move(journals: &dyn Journals) {
    let journal = opened(journals, "contract/ends").await;
    let mut ends = journal.ends();
    assert_eq!(*ends.borrow_and_update(), 0);
    let waiting = tokio::spawn(async move { ends.wait_for(|end| *end >= 3).await.map(|end| *end) });
    journal.append(append(&["a"])).await.expect("it appends");
    journal
        .append(append(&["b", "c"]))
        .await
        .expect("it appends");
    assert_eq!(
        waiting
            .await
            .expect("it does not panic")
            .expect("it is there"),
        3
    );
    assert_eq!(*journal.ends().borrow(), 3);
}

async fn producer_keys(journals: &dyn Journals) {
    let journal = opened(journals, "contract/keys").await;
    journal.append(append(&["x"])).await.expect("it appends");
    let want = Appended { first: 1, next: 3 };
    for _ in 0..3 {
        let again = journal.append(from_producer(&["a", "b"], "k")).await;
        assert_eq!(again.expect("it is acknowledged"), want);
    }
    for other in [&["ab"][..], &["a"], &["a", "b", ""], &["", "ab"]] {
        match journal.append(from_producer(other, "k")).await {
            Err(JournalError::KeyConflict {
                key,
                first: 1,
                next: 3,
                ..
            }) => assert_eq!(key, "k"),
            result => panic!("{other:?}: {result:?}"),
        }
    }
    journal
        .append(from_producer(&["a", "b"], "l"))
        .await
        .expect("another key is another append");
    assert_eq!(texts(journal.as_ref()).await, ["x", "a", "b", "a", "b"]);

    // Also while the first is on its way.
    let (one, two, three) = futures::join!(
        journal.append(from_producer(&["c"], "m")),
        journal.append(from_producer(&["c"], "m")),
        journal.append(from_producer(&["d"], "m")),
    );
    assert_eq!(one.expect("it appends"), two.expect("it is acknowledged"));
    assert!(
        matches!(three, Err(JournalError::KeyConflict { .. })),
        "{three:?}"
    );
    assert_eq!(*journal.ends().borrow(), 6);
}

async fn input_positions(journals: &dyn Journals) {
    let journal = opened(journals, "contract/inputs").await;
    assert_eq!(journal.position("one"), None);
    let first = journal
        .append(from_input(&["a"], "one", None, at_byte(10)))
        .await;
    first.expect("it appends");
    let second = journal
        .append(from_input(&["b"], "one", at_byte(10), at_byte(20)))
        .await;
    second.expect("it appends");
    let other = journal
        .append(from_input(&["c"], "two", None, at_byte(10)))
        .await;
    other.expect("inputs are independent");
    for wrong in [None, at_byte(10), at_byte(30)] {
        match journal
            .append(from_input(&["d"], "one", wrong, at_byte(40)))
            .await
        {
            Err(JournalError::PositionConflict {
                expected, actual, ..
            }) => {
                assert_eq!((expected, actual), (wrong, at_byte(20)));
            }
            result => panic!("{result:?}"),
        }
    }
    assert_eq!(journal.position("one"), at_byte(20));
    assert_eq!(journal.position("two"), at_byte(10));
    assert_eq!(texts(journal.as_ref()).await, ["a", "b", "c"]);

    // Of two followers of one input, one wins.
    let (left, right) = futures::join!(
        journal.append(from_input(&["left"], "one", at_byte(20), at_byte(30))),
        journal.append(from_input(&["right"], "one", at_byte(20), at_byte(30))),
    );
    assert_ne!(left.is_ok(), right.is_ok());
    assert_eq!(*journal.ends().borrow(), 4);
}

async fn limits(journals: &dyn Journals) {
    let journal = opened(journals, "contract/limits").await;
    let longest = "x".repeat(DOCUMENT_BYTES_MAX);
    let longer = "x".repeat(DOCUMENT_BYTES_MAX + 1);
    let many = Documents::from_iter(std::iter::repeat_n(&b""[..], APPEND_BYTES_MAX / 4 + 1));
    let key = "k".repeat(ORIGIN_BYTES_MAX + 1);

    let result = journal.append(append(&[])).await;
    assert!(
        matches!(result, Err(JournalError::Empty { .. })),
        "{result:?}"
    );
    let result = journal.append(append(&["ok", &longer])).await;
    match result {
        Err(JournalError::DocumentTooLong {
            index: 1, bytes, ..
        }) => assert_eq!(bytes, longer.len()),
        result => panic!("{result:?}"),
    }
    for documents in [
        [longest.as_bytes(), longest.as_bytes()]
            .into_iter()
            .collect(),
        many,
    ] {
        let result = journal
            .append(Append {
                documents,
                ..append(&[])
            })
            .await;
        assert!(
            matches!(result, Err(JournalError::AppendTooLong { .. })),
            "{result:?}"
        );
    }
    for key in ["", &key] {
        let result = journal.append(from_producer(&["a"], key)).await;
        assert!(
            matches!(result, Err(JournalError::Origin { .. })),
            "{result:?}"
        );
    }
    assert_eq!(*journal.ends().borrow(), 0, "nothing was written");

    journal
        .append(append(&[&longest, "a"]))
        .await
        .expect("it appends");
    journal
        .append(from_producer(&["b"], &key[1..]))
        .await
        .expect("it appends");
    assert_eq!(texts(journal.as_ref()).await, [longest.as_str(), "a", "b"]);
}

async fn reads_beyond_the_end(journals: &dyn Journals) {
    let journal = opened(journals, "contract/beyond").await;
    journal
        .append(append(&["a", "b"]))
        .await
        .expect("it appends");
    let result = read(journal.as_ref(), 0, 3, 100).await;
    assert!(
        matches!(
            result,
            Err(JournalError::BeyondEnd {
                upper: 3,
                end: 2,
                ..
            })
        ),
        "{result:?}"
    );
    let result = read(journal.as_ref(), 2, 2, 100).await;
    assert!(result.expect("nothing is no error").is_empty());
}

async fn concurrent_appends(journals: &dyn Journals) {
    let journal = opened(journals, "contract/concurrent").await;
    let appends = (0..100).map(|sender| {
        let journal = journal.clone();
        tokio::spawn(async move {
            let texts = [format!("{sender} 0"), format!("{sender} 1")];
            let append = append(&[&texts[0], &texts[1]]);
            let appended = journal.append(append).await.expect("it appends");
            assert!(
                *journal.ends().borrow() >= appended.next,
                "acknowledged means readable"
            );
            (appended.first, texts)
        })
    });
    let mut firsts = BTreeSet::new();
    let found = texts_after(join_all(appends).await, &mut firsts);
    assert!(
        firsts.into_iter().eq((0..200).step_by(2)),
        "each has a place of its own"
    );
    let read = texts(journal.as_ref()).await;
    for (first, want) in found {
        assert_eq!(read[first..first + 2], want);
    }
}

fn texts_after(
    answers: Vec<Result<(u64, [String; 2]), tokio::task::JoinError>>,
    firsts: &mut BTreeSet<u64>,
) -> Vec<(usize, [String; 2])> {
    answers
        .into_iter()
        .map(|answer| {
            let (first, texts) = answer.expect("it does not panic");
            assert!(firsts.insert(first), "offset {first} was given twice");
            (usize::try_from(first).expect("small"), texts)
        })
        .collect()
}

async fn names(journals: &dyn Journals) {
    let names = ["names/a", "names/a.b", "names/ü %2F", "names/.."];
    for name in names {
        let journal = opened(journals, name).await;
        assert_eq!(journal.collection(), name);
        journal.append(append(&[name])).await.expect("it appends");
    }
    let listed = journals.list().await.expect("it lists");
    assert!(listed.is_sorted());
    for name in names {
        assert!(listed.iter().any(|listed| listed == name), "{name}");
        assert_eq!(texts(opened(journals, name).await.as_ref()).await, [name]);
    }
    for name in ["", &"x".repeat(1000)] {
        let result = journals.open(name).await.map(|_| ());
        assert!(
            matches!(result, Err(JournalError::Name { .. })),
            "{result:?}"
        );
    }
}

async fn survives_reopening(open: Open<'_>) {
    const NAME: &str = "contract/reopen";
    for round in 0..4_u64 {
        let journals = open().await;
        let journal = opened(journals.as_ref(), NAME).await;
        let here = (round > 0).then(|| at_byte(round * 10)).flatten();
        assert_eq!(journal.position("input"), here);
        assert_eq!(*journal.ends().borrow(), round + u64::from(round > 0));
        let text = format!("round {round}");
        let next = at_byte(round * 10 + 10);
        journal
            .append(from_input(&[&text], "input", here, next))
            .await
            .expect("it appends");
        let keyed = journal.append(from_producer(&["once"], "key")).await;
        assert_eq!(
            keyed.expect("it is acknowledged"),
            Appended { first: 1, next: 2 }
        );
        let conflict = journal.append(from_producer(&["twice"], "key")).await;
        assert!(
            matches!(conflict, Err(JournalError::KeyConflict { .. })),
            "{conflict:?}"
        );
    }
    let journals = open().await;
    let journal = opened(journals.as_ref(), NAME).await;
    let want = ["round 0", "once", "round 1", "round 2", "round 3"];
    assert_eq!(texts(journal.as_ref()).await, want);
}
