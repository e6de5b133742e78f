//! Another program that reads the file all the while.
//!
//! ```text
//! wait for the tables -> (BEGIN, check, COMMIT)* -> last check -> Seen
//! ```
//!
//! It holds its connection open over every kill of the host, as a dashboard
//! would, and the first snapshot that fails its check ends it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;

use crate::table;

/// The pause between snapshots: it leaves the processor to the host, and is
/// shorter than a commit.
const PAUSE: Duration = Duration::from_millis(2);

/// A check of one snapshot. An error of SQLite's before the first snapshot means
/// that the tables are not there yet; a message is always a failure.
pub type Check = Box<dyn FnMut(&Connection) -> rusqlite::Result<Result<(), String>> + Send>;

/// A thread that reads.
pub struct Watch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Seen, String>>,
}

/// What a watch has seen.
#[derive(Debug, Default)]
pub struct Seen {
    /// How many snapshots it took.
    pub snapshots: u64,
    /// How many of them differed from the one before.
    pub changes: u64,
}

impl Watch {
    /// Starts to read a file, which need not exist yet.
    pub fn start(file: &Path, check: Check) -> Watch {
        let stop = Arc::new(AtomicBool::new(false));
        let file = file.to_owned();
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || watch(&file, check, &stopped));
        Watch { stop, thread }
    }

    /// Fails the test at once if a check has failed.
    #[track_caller]
    pub fn still_good(self) -> Watch {
        if self.thread.is_finished() {
            self.finish();
            panic!("the reader ended early");
        }
        self
    }

    /// Takes one more snapshot, and ends.
    #[track_caller]
    pub fn finish(self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        match self.thread.join().expect("a check returns its failures") {
            Ok(seen) => seen,
            Err(message) => panic!("an outside reader saw: {message}"),
        }
    }
}

fn watch(file: &Path, mut check: Check, stop: &AtomicBool) -> Result<Seen, String> {
    let mut seen = Seen::default();
    let mut version = None;
    let mut connection = None;
    loop {
        let last = stop.load(Ordering::Relaxed);
        match snapshot(file, &mut connection, &mut check) {
            Ok(Ok(found)) => {
                seen.snapshots += 1;
                if version.replace(found) != Some(found) {
                    seen.changes += 1;
                }
            }
            Ok(Err(message)) => return Err(message),
            Err(_) if seen.snapshots == 0 && !last => connection = None,
            Err(error) => return Err(format!("snapshot {}: {error}", seen.snapshots)),
        }
        if last {
            return Ok(seen);
        }
        thread::park_timeout(PAUSE);
    }
}

/// Checks one snapshot; returns its version.
fn snapshot(
    file: &Path,
    kept: &mut Option<Connection>,
    check: &mut Check,
) -> rusqlite::Result<Result<i64, String>> {
    let connection = match kept {
        Some(connection) => connection,
        None => kept.insert(table::open(file)?),
    };
    let snapshot = connection.transaction()?;
    let checked = check(&snapshot)?;
    // It changes when another connection commits.
    let version = snapshot.query_row("PRAGMA data_version", [], |row| row.get(0))?;
    snapshot.commit()?;
    Ok(checked.map(|()| version))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;
    use crate::fold::Fold;
    use crate::prefix::Prefix;

    const LINES: usize = 40;

    fn lines() -> Arc<[String]> {
        (0..LINES)
            .map(|n| format!(r#"{{"id":{},"n":{n}}}"#, n % 7))
            .collect()
    }

    /// Writes each line into two tables, and waits until the reader has looked
    /// in between: after the transaction, and before its end.
    fn write(file: &Path, whole: bool, looked: &dyn Fn()) {
        let connection = Connection::open(file).unwrap();
        connection
            .pragma_update(None, "journal_mode", "WAL")
            .unwrap();
        for table in ["one", "two"] {
            let create =
                format!("CREATE TABLE {table} (id INTEGER PRIMARY KEY, flow_document TEXT)");
            connection.execute(&create, []).unwrap();
        }
        for (n, line) in (0_i64..).zip(lines().iter()) {
            if whole {
                connection.execute_batch("BEGIN").unwrap();
            }
            for table in ["one", "two"] {
                let store = format!("INSERT OR REPLACE INTO {table} VALUES (?1, ?2)");
                connection.execute(&store, (n % 7, line)).unwrap();
                looked();
            }
            if whole {
                connection.execute_batch("COMMIT").unwrap();
            }
        }
    }

    fn watched(whole: bool) -> Result<Seen, String> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("rows.db");
        let fold = Fold::last_write_wins(&["id"]);
        let mut check = Prefix::new(lines(), fold).check(&["one", "two"], &["id"]);
        let (look, looked) = sync_channel(0);
        let check: Check = Box::new(move |connection| {
            let checked = check(connection);
            // A writer that is done listens no more.
            let _ = look.send(());
            checked
        });
        let watch = Watch::start(&file, check);
        write(&file, whole, &|| {
            // Two looks: the first may have begun before the write. A reader
            // that has failed looks no more.
            let _ = looked.recv().and_then(|()| looked.recv());
        });
        drop(looked);
        watch.stop.store(true, Ordering::Relaxed);
        watch.thread.join().unwrap()
    }

    #[test]
    fn whole_transactions_pass() {
        let seen = watched(true).unwrap();
        assert!(seen.changes >= LINES as u64, "{seen:?}");
    }

    #[test]
    fn half_a_transaction_is_seen() {
        let message = watched(false).unwrap_err();
        assert!(message.contains("two differs from one"), "{message}");
    }
}
