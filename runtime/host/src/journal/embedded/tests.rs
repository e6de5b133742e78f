//! What becomes of a journal whose files were torn, damaged, cut or filled up.

use super::*;
use crate::journal::contract::{append, at_byte, from_input, from_producer, read, texts};
use crate::journal::{Documents, contract};
use proptest::prelude::*;
use std::fs::File;
use std::process::Command;
use tempfile::TempDir;

/// A segment's size that makes every few appends begin a new one.
const SMALL: u64 = 300;

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

fn open_with(
    data: &Path,
    segment_bytes: u64,
) -> Result<(EmbeddedJournal, Option<Truncated>), JournalError> {
    make_directory(data)?;
    let lock = Arc::new(Lock::take(&data.join("lock"))?);
    EmbeddedJournal::open(data, "c", lock, segment_bytes)
}

fn open(data: &Path) -> Result<(EmbeddedJournal, Option<Truncated>), JournalError> {
    open_with(data, SEGMENT_BYTES)
}

/// Copies a data directory as a crash would leave it.
fn copy(from: &Path) -> TempDir {
    let to = directory();
    fs::create_dir(to.path().join("c")).expect("it creates");
    for entry in fs::read_dir(from.join("c")).expect("it lists") {
        let path = entry.expect("it lists").path();
        // One that is being made may have got its name by now.
        if path
            .extension()
            .is_some_and(|extension| extension == "segment")
        {
            let name = path.file_name().expect("a file");
            fs::copy(&path, to.path().join("c").join(name)).expect("it copies");
        }
    }
    to
}

fn segment_of(data: &Path, first: u64) -> PathBuf {
    segment::path(&data.join("c"), first)
}

/// Fills a journal with one frame for each of `frames`, and returns where the frames
/// of its only segment begin, and its end.
async fn fill(data: &Path, frames: &[Append]) -> Vec<u64> {
    let (journal, _) = open(data).expect("it opens");
    let length = || fs::metadata(segment_of(data, 0)).expect("there").len();
    let mut ends = vec![length()];
    for frame in frames {
        journal.append(frame.clone()).await.expect("it appends");
        ends.push(length());
    }
    ends
}

fn frames() -> Vec<Append> {
    vec![
        from_input(&["one", "two"], "input", None, at_byte(10)),
        from_producer(&["three"], "key"),
        from_input(&["four", "", "five"], "input", at_byte(10), at_byte(20)),
    ]
}

#[tokio::test]
async fn keeps_the_contract() {
    let data = directory();
    contract::all(&|| {
        let journals = EmbeddedJournals::open(data.path()).expect("it opens");
        async { Box::new(journals) as Box<dyn Journals> }.boxed()
    })
    .await;
}

#[tokio::test]
async fn keeps_the_contract_in_small_segments() {
    let data = directory();
    contract::all(&|| {
        let journals = EmbeddedJournals::with_segments(data.path(), SMALL).expect("it opens");
        async { Box::new(journals) as Box<dyn Journals> }.boxed()
    })
    .await;
    let files = fs::read_dir(data.path().join("journals/contract%2Fread")).expect("it lists");
    assert!(files.count() > 5, "the segments are small");
}

#[test]
fn one_process_at_a_time() {
    let data = directory();
    let first = EmbeddedJournals::open(data.path()).expect("it opens");
    let second = EmbeddedJournals::open(data.path()).map(|_| ());
    assert!(
        matches!(second, Err(JournalError::InUse { .. })),
        "{second:?}"
    );
    drop(first);
    EmbeddedJournals::open(data.path()).expect("it opens");
}

/// A last frame cut off at any byte is as if it had never been sent.
#[tokio::test]
async fn torn_at_every_byte() {
    let data = directory();
    let frames = frames();
    let ends = fill(data.path(), &frames).await;
    let (good, whole) = (ends[2], ends[3]);
    for length in good..whole {
        for zeros in [0, 700] {
            let crashed = copy(data.path());
            let path = segment_of(crashed.path(), 0);
            let file = File::options().write(true).open(&path).expect("it opens");
            file.set_len(length).expect("it cuts");
            // A file can also be longer than what reached it.
            file.set_len(length + zeros).expect("it grows");
            let (journal, truncated) = open(crashed.path()).expect("it opens");
            let bytes = length + zeros - good;
            let want = (bytes > 0).then_some(Truncated {
                path,
                byte: good,
                bytes,
            });
            assert_eq!(truncated, want, "{length} {zeros}");
            assert_eq!(texts(&journal).await, ["one", "two", "three"]);
            assert_eq!(journal.position("input"), at_byte(10));
            journal.append(frames[2].clone()).await.expect("it appends");
            drop(journal);
            let (journal, truncated) = open(crashed.path()).expect("it opens");
            assert_eq!(truncated, None);
            assert_eq!(
                texts(&journal).await,
                ["one", "two", "three", "four", "", "five"]
            );
            assert_eq!(journal.position("input"), at_byte(20));
        }
    }
}

/// A flipped bit is found wherever it is; only in the last frame is it taken for a
/// torn write, anywhere else nothing is changed.
#[tokio::test]
async fn flipped_bits() {
    let data = directory();
    let ends = fill(data.path(), &frames()).await;
    let crashed = copy(data.path());
    let path = segment_of(crashed.path(), 0);
    let good = fs::read(&path).expect("it reads");
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        fs::write(&path, &bad).expect("it writes");
        let result = open(crashed.path()).map(|(_, truncated)| truncated);
        let at = at as u64;
        let frame = ends.iter().filter(|end| **end <= at).max().copied();
        match (frame, result) {
            (Some(byte), Ok(truncated)) if byte == ends[2] => {
                let bytes = ends[3] - byte;
                assert_eq!(
                    truncated,
                    Some(Truncated {
                        path: path.clone(),
                        byte,
                        bytes
                    })
                );
                continue;
            }
            (Some(frame), Err(JournalError::Corrupt { byte, .. })) => assert_eq!(byte, frame),
            (None, Err(JournalError::Corrupt { byte, .. })) => assert_eq!(byte, 0),
            (None, Err(JournalError::NewerFormat { .. })) => assert!((8..12).contains(&at)),
            (_, result) => panic!("byte {at}: {result:?}"),
        }
        assert!(
            fs::read(&path).expect("it reads") == bad,
            "byte {at}: the file was changed"
        );
    }
}

/// A frame that is whole but out of its place is no torn write either.
#[tokio::test]
async fn frames_out_of_place() {
    let data = directory();
    let ends = fill(data.path(), &frames()).await;
    let at = |end: usize| usize::try_from(ends[end]).expect("small");
    let path = segment_of(data.path(), 0);
    let good = fs::read(&path).expect("it reads");
    let lost = [&good[..at(1)], &good[at(2)..]].concat();
    let doubled = [&good[..], &good[at(2)..]].concat();
    for (bad, want) in [(lost, at(1)), (doubled, at(3))] {
        fs::write(&path, &bad).expect("it writes");
        match open(data.path()).map(|(_, truncated)| truncated) {
            Err(JournalError::Corrupt { byte, .. }) => assert_eq!(byte, want as u64),
            result => panic!("{result:?}"),
        }
        assert!(
            fs::read(&path).expect("it reads") == bad,
            "the file was changed"
        );
    }
}

#[tokio::test]
async fn damage_in_a_sealed_segment() {
    let data = directory();
    let (journal, _) = open_with(data.path(), 1).expect("it opens");
    for text in ["one", "two", "three"] {
        journal.append(append(&[text])).await.expect("it appends");
    }
    drop(journal);
    let path = segment_of(data.path(), 1);
    let good = fs::read(&path).expect("it reads");
    let flip = |at: usize| {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(&path, bad).expect("it writes");
    };

    // In the documents: found when they are read, and only then.
    flip(good.len() - 1);
    let (journal, _) = open_with(data.path(), 1).expect("it opens");
    let header = Segment::open(&data.path().join("c"), "c", 1)
        .expect("it opens")
        .header;
    let result = read(&journal, 0, 3, 100).await;
    match result {
        Err(JournalError::Corrupt {
            path: found, byte, ..
        }) => assert_eq!((found, byte), (path.clone(), header)),
        result => panic!("{result:?}"),
    }
    assert_eq!(read(&journal, 2, 3, 100).await.expect("it reads").len(), 1);
    drop(journal);

    // In a header, or a frame short: found when opening.
    flip(usize::try_from(header).expect("small") + 30);
    let result = open(data.path()).map(|(_, truncated)| truncated);
    assert!(
        matches!(result, Err(JournalError::Corrupt { .. })),
        "{result:?}"
    );
    fs::write(&path, &good[..good.len() - 1]).expect("it writes");
    let result = open(data.path()).map(|(_, truncated)| truncated);
    assert!(
        matches!(result, Err(JournalError::Corrupt { .. })),
        "{result:?}"
    );
    fs::write(&path, &good[..usize::try_from(header).expect("small")]).expect("it writes");
    let result = open(data.path()).map(|(_, truncated)| truncated);
    assert!(
        matches!(result, Err(JournalError::Layout { .. })),
        "{result:?}"
    );
}

#[tokio::test]
async fn files_that_do_not_make_a_whole() {
    let data = directory();
    let (journal, _) = open_with(data.path(), 1).expect("it opens");
    for text in ["one", "two", "three"] {
        journal.append(append(&[text])).await.expect("it appends");
    }
    drop(journal);
    struct Case {
        name: &'static str,
        change: fn(&Path),
        /// The offset of the segment that the error names.
        want: &'static str,
    }
    fn rename(directory: &Path, from: u64, to: &str) {
        let to = directory.join(to);
        fs::rename(segment::path(directory, from), to).expect("it renames");
    }
    for case in [
        Case {
            name: "the first is missing",
            change: |directory| rename(directory, 0, "../gone"),
            want: "00000000000000000001.segment",
        },
        Case {
            name: "one between is missing",
            change: |directory| rename(directory, 1, "../gone"),
            want: "00000000000000000002.segment",
        },
        Case {
            name: "one has another's name",
            change: |directory| {
                rename(directory, 2, "old");
                rename(directory, 1, "00000000000000000002.segment");
                fs::rename(directory.join("old"), segment::path(directory, 1)).expect("it renames");
            },
            want: "00000000000000000001.segment",
        },
        Case {
            name: "a name is too short",
            change: |directory| rename(directory, 2, "2.segment"),
            want: "2.segment",
        },
        Case {
            name: "a foreign file",
            change: |directory| fs::write(directory.join("notes.txt"), "x").expect("it writes"),
            want: "notes.txt",
        },
    ] {
        let changed = copy(data.path());
        (case.change)(&changed.path().join("c"));
        match open(changed.path()).map(|(_, truncated)| truncated) {
            Err(JournalError::Layout { path, .. }) => {
                assert_eq!(
                    path.file_name().expect("a file"),
                    case.want,
                    "{}",
                    case.name
                );
            }
            result => panic!("{}: {result:?}", case.name),
        }
    }

    // Another collection's directory under this one's name.
    let other = directory();
    fs::rename(copy(data.path()).path().join("c"), other.path().join("d")).expect("it renames");
    let held = Arc::new(Lock::take(&other.path().join("lock")).expect("it locks"));
    let result = EmbeddedJournal::open(other.path(), "d", held, SMALL).map(|_| ());
    assert!(
        matches!(result, Err(JournalError::Layout { .. })),
        "{result:?}"
    );

    // What a crash left of a segment that was being made is no harm.
    let left = data.path().join("c/00000000000000000003.segment.new");
    fs::write(&left, "TG").expect("it writes");
    let (journal, _) = open(data.path()).expect("it opens");
    assert!(!left.exists());
    assert_eq!(texts(&journal).await, ["one", "two", "three"]);
}

/// Whoever stops waiting for a journal to open must not leave a second writer behind.
#[tokio::test]
async fn opening_interrupted() {
    let data = directory();
    for round in 0..10_u64 {
        let journals = EmbeddedJournals::open(data.path()).expect("it opens");
        // Given up at once; seldom is the disk so fast that there is nothing to give up.
        drop(journals.open("a").now_or_never());
        let journal = journals.open("a").await.expect("it opens");
        let appended = journal.append(append(&["x"])).await.expect("it appends");
        assert_eq!(appended.first, round);
    }
}

#[tokio::test]
async fn foreign_directories_are_named() {
    let data = directory();
    let journals = EmbeddedJournals::open(data.path()).expect("it opens");
    journals.open("a/b").await.expect("it opens");
    assert_eq!(journals.list().await.expect("it lists"), ["a/b"]);
    fs::create_dir(data.path().join("journals/a b")).expect("it creates");
    let result = journals.list().await;
    assert!(
        matches!(result, Err(JournalError::Layout { .. })),
        "{result:?}"
    );
}

/// A copy made at any moment has all that was acknowledged before, and nothing torn
/// that cannot be cut off.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn copies_made_while_appending() {
    let data = directory();
    let (journal, _) = open_with(data.path(), 20_000).expect("it opens");
    let journal = Arc::new(journal);
    let senders: Vec<_> = (0..4)
        .map(|sender| {
            let journal = journal.clone();
            tokio::spawn(async move {
                for number in 0..100 {
                    let text = format!("{sender} {number} {}", "x".repeat(number * 10));
                    journal
                        .append(append(&[&text, "and"]))
                        .await
                        .expect("it appends");
                }
            })
        })
        .collect();
    for _ in 0..20 {
        let acknowledged = *journal.ends().borrow();
        let crashed = copy(data.path());
        let (opened, _) = open(crashed.path()).expect("it opens");
        let found = texts(&opened).await;
        assert!(found.len() as u64 >= acknowledged);
        let want = read(journal.as_ref(), 0, acknowledged, 1 << 20)
            .await
            .expect("it reads");
        let want = want.into_iter().map(|document| document.3);
        assert!(
            found
                .into_iter()
                .take(usize::try_from(acknowledged).expect("small"))
                .eq(want)
        );
        tokio::task::yield_now().await;
    }
    for sender in senders {
        sender.await.expect("it does not panic");
    }
    assert_eq!(*journal.ends().borrow(), 800);
}

/// What a limit on the file's size does to a write, a full disk does too: part of it
/// is written and then the system refuses. Runs itself in a process with the limit.
#[test]
fn full_disk() {
    const DATA: &str = "JOURNAL_TEST_FULL_DISK";
    if let Some(data) = std::env::var_os(DATA) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        return runtime.block_on(fill_the_disk(Path::new(&data)));
    }
    let data = directory();
    let itself = std::env::current_exe().expect("a path");
    // 64 KiB; without the trap the signal would end the process.
    let output = Command::new("sh")
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 128; exec \"$0\" --exact \"$1\" --nocapture",
        ])
        .arg(itself)
        .arg(
            std::thread::current()
                .name()
                .expect("a test's thread has its name"),
        )
        .env(DATA, data.path())
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
    let (journal, truncated) = open(data.path()).expect("it opens");
    assert_eq!(truncated, None);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let found = runtime.block_on(texts(&journal));
    assert!(found.iter().map(String::len).eq([50_000, 10, 10]));
}

async fn fill_the_disk(data: &Path) {
    let (journal, _) = open(data).expect("it opens");
    let large = "x".repeat(150_000);
    let half = &large[..50_000];
    journal.append(append(&[half])).await.expect("it appends");
    for _ in 0..3 {
        let result = journal.append(from_producer(&[&large], "key")).await;
        assert!(
            matches!(result, Err(JournalError::DiskFull { .. })),
            "{result:?}"
        );
    }
    // What fits still does, and what failed left no trace.
    for key in ["key", "other", "other"] {
        journal
            .append(from_producer(&[&large[..10]], key))
            .await
            .expect("it appends");
    }
    assert_eq!(*journal.ends().borrow(), 3);
}

#[derive(Debug, Clone)]
enum Step {
    Append { lengths: Vec<usize> },
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => proptest::collection::vec(0_usize..3000, 1..5)
            .prop_map(|lengths| Step::Append { lengths }),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    /// Whatever is appended and wherever segments end, reads and extents tell the same.
    #[test]
    fn tells_what_it_was_told(
        steps in proptest::collection::vec(step(), 1..40),
        segment_bytes in 1_u64..200_000,
        ranges in proptest::collection::vec((0.0..1.0, 0.0..1.0, 0_u64..300_000), 10),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let data = directory();
        let (mut journal, _) = open_with(data.path(), segment_bytes).expect("it opens");
        let mut want: Vec<String> = Vec::new();
        for step in steps {
            match step {
                Step::Append { lengths } => {
                    let text = |length: &usize| format!("{:0>length$}", want.len());
                    let texts: Vec<_> = lengths.iter().map(text).collect();
                    let documents: Documents = texts.iter().map(|text| text.as_bytes()).collect();
                    let append = Append { documents, ..append(&[]) };
                    runtime.block_on(journal.append(append)).expect("it appends");
                    want.extend(texts);
                }
                Step::Reopen => {
                    drop(journal);
                    journal = open_with(data.path(), segment_bytes).expect("it opens").0;
                }
            }
        }
        for (lower, share, bytes_max) in ranges {
            let at = |share: f64| (share * want.len() as f64) as usize;
            let (lower, upper) = (at(lower), at(lower + share * (1.0 - lower)));
            let reading = read(&journal, lower as u64, upper as u64, bytes_max);
            let found = runtime.block_on(reading).expect("it reads");
            prop_assert!(found.iter().map(|document| &document.3).eq(&want[lower..upper]));
            let extent = journal.extent(lower as u64, bytes_max);
            if lower < want.len() {
                prop_assert!(extent.upper > lower as u64 && extent.upper <= want.len() as u64);
            }
        }
    }
}
