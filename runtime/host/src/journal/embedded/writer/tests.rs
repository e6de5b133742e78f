//! Groups that are written, refused, torn and lost.

use super::*;
use crate::journal::contract::{append, at_byte, from_input, from_producer};
use crate::journal::embedded::{recover, segment};
use std::ops::Range;
use std::sync::Mutex;
use std::{fs, path::Path};
use tokio::sync::{Semaphore, watch};

/// What a test lets a file do, and what it did.
#[derive(Debug, Default)]
struct Faults {
    /// How many bytes can be written before there is no room.
    room: Option<usize>,
    sync_fails: bool,
    truncate_fails: bool,
    syncs: usize,
}

struct Faulty {
    file: File,
    faults: Arc<Mutex<Faults>>,
}

impl Medium for Faulty {
    fn write(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        match self.faults.lock().expect("no panics").room {
            Some(room) if room < bytes.len() => {
                self.file.write_all_at(&bytes[..room], at)?;
                Err(io::ErrorKind::StorageFull.into())
            }
            _ => self.file.write_all_at(bytes, at),
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut faults = self.faults.lock().expect("no panics");
        faults.syncs += 1;
        match faults.sync_fails {
            true => Err(io::Error::other("the disk is gone")),
            false => Ok(()),
        }
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        match self.faults.lock().expect("no panics").truncate_fails {
            true => Err(io::Error::other("the disk is gone")),
            false => self.file.set_len(length),
        }
    }
}

/// Opens the writer of the journal in a directory.
fn writer(directory: &Path) -> (Writer, Arc<Mutex<Faults>>) {
    let recovered = recover(directory, "c").expect("it opens");
    let known = Arc::new(Known {
        collection: "c".to_owned(),
        directory: directory.to_owned(),
        ends: watch::Sender::new(recovered.index.end()),
        index: std::sync::RwLock::new(recovered.index),
    });
    let faults = Arc::new(Mutex::new(Faults::default()));
    let file = recovered.last.file.try_clone().expect("it clones");
    let mut writer = Writer::new(
        known,
        recovered.keys,
        recovered.last,
        recovered.length,
        1 << 20,
    );
    writer.medium = Box::new(Faulty {
        file,
        faults: faults.clone(),
    });
    (writer, faults)
}

/// Commits a group and returns its answers.
fn commit(writer: &mut Writer, group: &[Append]) -> Vec<Result<Range<u64>, JournalError>> {
    let room = Arc::new(Semaphore::new(group.len()));
    let (requests, answers): (Vec<_>, Vec<_>) = group
        .iter()
        .map(|append| {
            let (reply, answer) = oneshot::channel();
            let request = Request {
                hash: append.hash(),
                append: append.clone(),
                reply,
                room: room.clone().try_acquire_owned().expect("there is room"),
            };
            (request, answer)
        })
        .unzip();
    writer.commit(requests);
    assert_eq!(
        room.available_permits(),
        group.len(),
        "the queue has its room back"
    );
    answers
        .into_iter()
        .map(|mut answer| {
            let answer = answer.try_recv().expect("each is answered");
            answer.map(|appended| appended.first..appended.next)
        })
        .collect()
}

#[test]
fn one_sync_for_a_group() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut writer, faults) = writer(directory.path());
    let group: Vec<_> = (0..50).map(|_| append(&["a", "b"])).collect();
    let answers = commit(&mut writer, &group);
    for (answer, first) in answers.into_iter().zip((0..).step_by(2)) {
        assert_eq!(answer.expect("it appends"), first..first + 2);
    }
    assert_eq!(faults.lock().expect("no panics").syncs, 1);
}

/// A write that fails half-way leaves nothing behind: no document, no key, no position.
#[test]
fn a_failed_write_is_undone() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = segment::path(directory.path(), 0);
    let (mut writer, faults) = writer(directory.path());
    commit(&mut writer, &[append(&["before"])]);
    let length = fs::metadata(&path).expect("there").len();
    let group = [
        from_producer(&["a"], "key"),
        from_input(&["b"], "input", None, at_byte(10)),
        from_producer(&["c"], "key"),
    ];
    for room in [0, 1, 60, 100, 150] {
        faults.lock().expect("no panics").room = Some(room);
        for answer in commit(&mut writer, &group) {
            // The conflict too: it was with what is not there.
            assert!(
                matches!(answer, Err(JournalError::DiskFull { .. })),
                "{answer:?}"
            );
        }
        assert_eq!(fs::metadata(&path).expect("there").len(), length);
        assert_eq!(*writer.known.ends.borrow(), 1);
    }
    faults.lock().expect("no panics").room = None;
    let answers = commit(&mut writer, &group);
    assert!(
        matches!(answers[0], Ok(Range { start: 1, end: 2 })),
        "{answers:?}"
    );
    assert!(
        matches!(answers[1], Ok(Range { start: 2, end: 3 })),
        "{answers:?}"
    );
    assert!(
        matches!(answers[2], Err(JournalError::KeyConflict { .. })),
        "{answers:?}"
    );
    let recovered = recover(directory.path(), "c").expect("it opens");
    assert_eq!((recovered.index.end(), recovered.truncated), (3, None));
}

#[test]
fn poisoned() {
    struct Case {
        name: &'static str,
        faults: Faults,
        /// How many documents a new opening finds: what a failed sync covers may be there.
        found: u64,
    }
    for case in [
        Case {
            name: "a sync fails",
            faults: Faults {
                sync_fails: true,
                ..Faults::default()
            },
            found: 2,
        },
        Case {
            name: "a failed write cannot be undone",
            faults: Faults {
                room: Some(20),
                truncate_fails: true,
                ..Faults::default()
            },
            found: 1,
        },
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let (mut writer, faults) = writer(directory.path());
        commit(&mut writer, &[append(&["before"])]);
        *faults.lock().expect("no panics") = case.faults;
        let answers = commit(&mut writer, &[append(&["during"])]);
        assert!(answers[0].is_err(), "{}", case.name);
        assert_eq!(*writer.known.ends.borrow(), 1, "{}: not durable", case.name);

        *faults.lock().expect("no panics") = Faults::default();
        let answers = commit(&mut writer, &[append(&["after"])]);
        assert!(
            matches!(answers[0], Err(JournalError::Poisoned { .. })),
            "{}: {answers:?}",
            case.name
        );
        let recovered = recover(directory.path(), "c").expect("it opens");
        assert_eq!(recovered.index.end(), case.found, "{}", case.name);
    }
}

/// The frames of one write can reach the disk in any order. Where a block of it is
/// missing, what follows was never acknowledged; where bytes are wrong, it may have been.
#[test]
fn a_group_torn_inside() {
    let document = "x".repeat(2000);
    let group = [
        append(&[&document]),
        append(&[&document]),
        append(&[&document]),
    ];
    struct Case {
        name: &'static str,
        /// What of the file changes, and to what.
        bytes: (usize, usize),
        value: u8,
        /// Whether another write followed.
        later: bool,
        /// The documents left, `None` if it is refused.
        want: Option<u64>,
    }
    let mid = Case {
        name: "a block is missing",
        bytes: (512, 1024),
        value: 0,
        later: false,
        want: Some(0),
    };
    for case in [
        Case {
            name: "the second frame's is",
            bytes: (3072, 3584),
            want: Some(1),
            ..mid
        },
        Case {
            name: "not quite a block",
            bytes: (513, 1024),
            want: None,
            ..mid
        },
        Case {
            name: "not one block",
            bytes: (700, 1300),
            want: None,
            ..mid
        },
        Case {
            name: "wrong bytes",
            value: b'y',
            want: None,
            ..mid
        },
        Case {
            name: "a write followed",
            later: true,
            want: None,
            ..mid
        },
        mid,
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let (mut writer, _) = writer(directory.path());
        commit(&mut writer, &group);
        if case.later {
            commit(&mut writer, &[append(&["later"])]);
        }
        let path = segment::path(directory.path(), 0);
        let mut bytes = fs::read(&path).expect("it reads");
        bytes[case.bytes.0..case.bytes.1].fill(case.value);
        fs::write(&path, bytes).expect("it writes");
        let found = recover(directory.path(), "c").map(|recovered| recovered.index.end());
        match (case.want, found) {
            (Some(want), Ok(found)) => assert_eq!(found, want, "{}", case.name),
            (None, Err(JournalError::Corrupt { .. })) => {}
            (_, found) => panic!("{}: {found:?}", case.name),
        }
    }
}
