//! Inputs that grow, are cut, replaced and repaired, under followers that come and go.

use super::*;
use crate::journal::contract::{opened, texts};
use crate::journal::{EmbeddedJournals, JournalError, Journals};
use futures::FutureExt;
use proptest::prelude::*;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// An input, its journal, and the follower between them.
struct World {
    data: TempDir,
    journals: Option<EmbeddedJournals>,
}

impl World {
    fn new(content: &str) -> Self {
        let data = tempfile::tempdir().expect("a directory");
        let world = Self {
            journals: Some(EmbeddedJournals::open(data.path()).expect("it opens")),
            data,
        };
        world.write(content);
        world
    }

    fn path(&self) -> PathBuf {
        self.data.path().join("input.ndjson")
    }

    /// Gives the file other content, in place.
    fn write(&self, content: &str) {
        fs::write(self.path(), content).expect("it writes");
    }

    fn grow(&self, content: &str) {
        let mut file = File::options()
            .append(true)
            .open(self.path())
            .expect("it opens");
        file.write_all(content.as_bytes()).expect("it writes");
    }

    /// Closes the journal and opens it again.
    fn restart(&mut self) {
        drop(self.journals.take());
        self.journals = Some(EmbeddedJournals::open(self.data.path()).expect("it opens"));
    }

    async fn journal(&self) -> Arc<dyn Journal> {
        opened(self.journals.as_ref().expect("open"), "c").await
    }

    async fn follower(&self, options: Options) -> Follower {
        let check: Check = Arc::new(|line| match line.starts_with(b"bad") {
            true => Err("it is bad".to_owned()),
            false => Ok(()),
        });
        let journal = self.journal().await;
        Follower::open(journal, &self.path(), check, 7, options).expect("the path is good")
    }

    async fn texts(&self) -> Vec<String> {
        texts(self.journal().await.as_ref()).await
    }
}

const WAIT: Options = Options {
    take_last_line_without_newline: false,
};
const TAKE: Options = Options {
    take_last_line_without_newline: true,
};

/// Steps until the input is caught up.
async fn catch_up(follower: &mut Follower) -> Result<u64, FollowError> {
    let mut documents = 0;
    loop {
        let progress = follower.step().await?;
        documents += progress.documents;
        if progress.at_end {
            return Ok(documents);
        }
    }
}

#[tokio::test]
async fn follows_as_it_grows() {
    let world = World::new("\u{FEFF}{\"a\":1}\r\n\n  {\"b\":2}\n");
    let mut follower = world.follower(WAIT).await;
    let first = follower.step().await.expect("it reads");
    assert_eq!(
        first,
        Progress {
            documents: 2,
            bytes: 14,
            at_end: true
        }
    );
    let idle = follower.step().await.expect("it reads");
    assert_eq!(
        idle,
        Progress {
            documents: 0,
            bytes: 0,
            at_end: true
        }
    );
    world.grow("{\"c\":");
    assert_eq!(catch_up(&mut follower).await.expect("it waits"), 0);
    world.grow("3}\n4\n");
    assert_eq!(catch_up(&mut follower).await.expect("it reads"), 2);
    assert_eq!(
        world.texts().await,
        ["{\"a\":1}", "{\"b\":2}", "{\"c\":3}", "4"]
    );
    let position = world
        .journal()
        .await
        .position(follower.identity())
        .expect("it has one");
    assert_eq!(
        (position.byte, position.line),
        (fs::metadata(world.path()).expect("there").len(), 5)
    );
}

#[tokio::test]
async fn many_batches() {
    let lines: Vec<String> = (0..30_000)
        .map(|line| format!("{{\"line\":{line},\"pad\":\"{line:030}\"}}"))
        .collect();
    let world = World::new(&(lines.join("\n") + "\n"));
    let mut follower = world.follower(WAIT).await;
    let first = follower.step().await.expect("it reads");
    assert!(!first.at_end && first.bytes < 300_000, "{first:?}");
    assert_eq!(
        catch_up(&mut follower).await.expect("it reads") + first.documents,
        30_000
    );
    assert!(world.texts().await == lines);
}

/// A bad line stops its input with the lines before it in the journal, and is where
/// reading goes on once it is fixed.
#[tokio::test]
async fn a_bad_line() {
    let mut world = World::new("1\n2\n\nbad\n5\n");
    for _ in 0..2 {
        match catch_up(&mut world.follower(WAIT).await).await {
            Err(error @ FollowError::BadLine { line: 4, .. }) => {
                let said = error.to_string();
                let path = world.path();
                for part in [
                    "line 4",
                    "it is bad",
                    path.to_str().expect("text"),
                    "restart",
                ] {
                    assert!(said.contains(part), "{said}");
                }
            }
            result => panic!("{result:?}"),
        }
        assert_eq!(world.texts().await, ["1", "2"]);
        world.restart();
    }
    // Fixed in place, even with another length.
    world.write("1\n2\n\nfour\n5\n");
    catch_up(&mut world.follower(WAIT).await)
        .await
        .expect("it reads");
    assert_eq!(world.texts().await, ["1", "2", "four", "5"]);
    // The same follower can also go on by itself.
    let mut follower = world.follower(WAIT).await;
    world.grow("6\nbad");
    assert_eq!(
        catch_up(&mut follower).await.expect("the last line waits"),
        1
    );
    world.grow("\n");
    let result = catch_up(&mut follower).await;
    assert!(
        matches!(result, Err(FollowError::BadLine { line: 7, .. })),
        "{result:?}"
    );
    world.write("1\n2\n\nfour\n5\n6\n7\n");
    assert_eq!(catch_up(&mut follower).await.expect("it reads"), 1);
    assert_eq!(world.texts().await, ["1", "2", "four", "5", "6", "7"]);
}

#[tokio::test]
async fn a_line_too_long() {
    let world = World::new("1\n2\n");
    world.grow(&"x".repeat(crate::journal::DOCUMENT_BYTES_MAX + 1));
    let mut follower = world.follower(WAIT).await;
    world.grow(&"x".repeat(2000));
    let result = catch_up(&mut follower).await;
    assert!(
        matches!(result, Err(FollowError::LineTooLong { line: 3, .. })),
        "{result:?}"
    );
    assert_eq!(world.texts().await, ["1", "2"]);
}

/// A file that is not the one that was read is refused, whether it changed under a
/// running follower or a stopped one; nothing of it is appended.
#[tokio::test]
async fn another_file() {
    #[derive(Debug, PartialEq)]
    enum Want {
        Truncated,
        Replaced,
        Missing,
        NotAFile,
        Extended,
        Documents(u64),
    }
    struct Case {
        name: &'static str,
        change: fn(&World),
        want: Want,
    }
    fn put_in_place(world: &World, content: &str) {
        let new = world.data.path().join("new");
        fs::write(&new, content).expect("it writes");
        fs::rename(new, world.path()).expect("it renames");
    }
    for case in [
        Case {
            name: "truncated",
            change: |world| world.write("1\n"),
            want: Want::Truncated,
        },
        Case {
            name: "emptied",
            change: |world| world.write(""),
            want: Want::Truncated,
        },
        Case {
            name: "rotated",
            change: |world| put_in_place(world, "4\n"),
            want: Want::Truncated,
        },
        Case {
            name: "rewritten",
            change: |world| world.write("1\n9\n3\n4\n"),
            want: Want::Replaced,
        },
        Case {
            name: "same length",
            change: |world| put_in_place(world, "1\n2\n4"),
            want: Want::Replaced,
        },
        Case {
            name: "removed",
            change: |world| fs::remove_file(world.path()).expect("there"),
            want: Want::Missing,
        },
        Case {
            name: "a directory",
            change: |world| {
                fs::remove_file(world.path()).expect("there");
                fs::create_dir(world.path()).expect("it creates");
            },
            want: Want::NotAFile,
        },
        Case {
            name: "goes on in the last line",
            change: |world| world.grow("3\n"),
            want: Want::Extended,
        },
        Case {
            name: "the same",
            change: |_| {},
            want: Want::Documents(0),
        },
        Case {
            name: "grown",
            change: |world| world.grow("\n4\n"),
            want: Want::Documents(1),
        },
        Case {
            name: "copied and grown",
            change: |world| put_in_place(world, "1\n2\n3\n4\n"),
            want: Want::Documents(1),
        },
    ] {
        for restart in [false, true] {
            let mut world = World::new("1\n2\n3");
            let mut follower = world.follower(TAKE).await;
            assert_eq!(catch_up(&mut follower).await.expect("it reads"), 3);
            (case.change)(&world);
            if restart {
                drop(follower);
                world.restart();
                follower = world.follower(TAKE).await;
            }
            let found = match catch_up(&mut follower).await {
                Err(FollowError::Truncated {
                    line: 3, byte: 5, ..
                }) => Want::Truncated,
                Err(FollowError::Replaced {
                    line: 3, byte: 5, ..
                }) => Want::Replaced,
                Err(FollowError::Missing { .. }) => Want::Missing,
                Err(FollowError::NotAFile { .. }) => Want::NotAFile,
                Err(FollowError::Extended { line: 3, .. }) => Want::Extended,
                Ok(documents) => Want::Documents(documents),
                result => panic!("{}: {result:?}", case.name),
            };
            assert_eq!(found, case.want, "{} {restart}", case.name);
            let want = match found {
                Want::Documents(1) => &["1", "2", "3", "4"][..],
                _ => &["1", "2", "3"],
            };
            assert_eq!(world.texts().await, want, "{} {restart}", case.name);
        }
    }
}

fn is_position_conflict(error: &FollowError) -> bool {
    let FollowError::Journal { source, .. } = error else {
        return false;
    };
    matches!(**source, JournalError::PositionConflict { .. })
}

#[tokio::test]
async fn two_followers() {
    let world = World::new("1\n");
    let mut one = world.follower(WAIT).await;
    let mut two = world.follower(WAIT).await;
    catch_up(&mut one).await.expect("it reads");
    catch_up(&mut two)
        .await
        .expect("nothing to append is no conflict");
    world.grow("2\n");
    catch_up(&mut one).await.expect("it reads");
    let result = catch_up(&mut two).await;
    let error = result.expect_err("somebody else appended");
    assert!(is_position_conflict(&error), "{error}");
    assert_eq!(world.texts().await, ["1", "2"]);
}

#[tokio::test]
async fn runs_until_stopped() {
    let world = World::new("1\n");
    let mut follower = world.follower(WAIT).await;
    let mut ends = world.journal().await.ends();
    let stop = watch::Sender::new(false);
    let stopped = stop.subscribe();
    let running = tokio::spawn(async move { follower.run(stopped).await });
    for end in 1..4 {
        ends.wait_for(|found| *found == end)
            .await
            .expect("it is there");
        world.grow("more\n");
    }
    stop.send_replace(true);
    running.await.expect("it does not panic").expect("it stops");
}

#[derive(Debug, Clone)]
enum Event {
    Grow(String),
    Step,
    /// A step that is begun and dropped.
    Interrupt,
    Restart,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => "[a-c\\r\\n ]{1,12}".prop_map(Event::Grow),
        4 => Just(Event::Step),
        1 => Just(Event::Interrupt),
        1 => Just(Event::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(25))]

    /// Whoever is stopped when: in the end each line is there once.
    #[test]
    fn neither_lost_nor_doubled(events in proptest::collection::vec(event(), 1..30)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let (content, found) = runtime.block_on(async {
            let mut world = World::new("");
            let mut follower = world.follower(WAIT).await;
            for event in events {
                match event {
                    Event::Grow(content) => world.grow(&content),
                    Event::Step => match follower.step().await {
                        // What an interrupted step had begun.
                        Err(error) if is_position_conflict(&error) => {}
                        result => drop(result.expect("it reads")),
                    },
                    Event::Interrupt => drop(follower.step().now_or_never()),
                    Event::Restart => {
                        drop(follower);
                        world.restart();
                        follower = world.follower(WAIT).await;
                    }
                }
            }
            world.grow("\nend\n");
            drop(follower);
            world.restart();
            catch_up(&mut world.follower(WAIT).await).await.expect("it reads");
            (fs::read_to_string(world.path()).expect("it reads"), world.texts().await)
        });
        let blank = |c| matches!(c, ' ' | '\r');
        let want = content.split('\n').map(|line| line.trim_matches(blank));
        let want = want.filter(|line| !line.is_empty());
        prop_assert!(want.eq(found.iter().map(String::as_str)), "{content:?} {found:?}");
    }
}

/// Follows in a process of its own, which is killed again and again.
#[test]
fn killed_at_any_moment() {
    const DATA: &str = "FOLLOW_TEST_KILLED";
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    if let Some(data) = std::env::var_os(DATA) {
        return runtime.block_on(follow_and_tell(Path::new(&data)));
    }
    let lines: Vec<String> = (0..60_000)
        .map(|line| format!("{{\"line\":{line:040}}}"))
        .collect();
    let world = World::new(&(lines.join("\n") + "\n"));
    let World { data, journals } = world;
    drop(journals);
    let itself = std::env::current_exe().expect("a path");
    let mut finished = false;
    for round in 0..40 {
        let mut child = Command::new(&itself)
            .arg("--exact")
            .arg(
                std::thread::current()
                    .name()
                    .expect("a test's thread has its name"),
            )
            .arg("--nocapture")
            .env(DATA, data.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        // Each step says so, before and after.
        let said = output
            .lines()
            .map_while(Result::ok)
            .filter(|line| line.contains("step"));
        for line in said.take(1 + round % 5) {
            finished |= line.contains("last");
        }
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        if finished {
            break;
        }
    }
    assert!(finished, "the input was caught up with");
    let journals = EmbeddedJournals::open(data.path()).expect("it opens");
    let found = runtime.block_on(async { texts(opened(&journals, "c").await.as_ref()).await });
    assert!(
        found == lines,
        "{} documents of {}",
        found.len(),
        lines.len()
    );
}

async fn follow_and_tell(data: &Path) {
    let journals = EmbeddedJournals::open(data).expect("it opens");
    let journal = journals.open("c").await.expect("it opens");
    let path = data.join("input.ndjson");
    let mut follower =
        Follower::open(journal, &path, Arc::new(|_| Ok(())), 7, WAIT).expect("a good path");
    loop {
        println!("\nstep begins");
        let progress = follower.step().await.expect("it reads");
        println!("\nstep done");
        if progress.at_end {
            return println!("\nlast step");
        }
    }
}
