//! A store in one file on this machine.
//!
//! ```text
//! DIR/state.redb:  values: key -> (revision, value)   numbers: format, revision
//! ```
//!
//! One thread writes: what is pending goes into one transaction, so that a hundred
//! tasks that commit at once wait for one sync. After a failure the file is opened
//! anew, which is how it finds out what of the failed transaction is there. Must be
//! used inside a tokio runtime.

use super::{KEY_BYTES_MAX, Store, StoreError, VALUE_BYTES_MAX, Versioned};
use futures::FutureExt;
use futures::future::BoxFuture;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, mpsc};
use std::thread;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

const VALUES: TableDefinition<&str, (u64, &[u8])> = TableDefinition::new("values");
const NUMBERS: TableDefinition<&str, u64> = TableDefinition::new("numbers");

const FORMAT: &str = "format";
const FORMAT_VERSION: u64 = 1;

/// The last revision given. One count for all keys, so that no key ever has a
/// revision twice, whatever becomes of it in between.
const REVISION: &str = "revision";

/// How much of the file is kept in memory at most, in bytes.
///
/// State is small and read rarely; the library's own default is a gigabyte.
const CACHE_BYTES_MAX: usize = 64 << 20;

/// How many bytes of values wait for the writer: twice the largest, so that one of
/// any size can wait while one is written.
const QUEUE_BYTES_MAX: usize = 2 * VALUE_BYTES_MAX;

/// How many writes share a transaction at most: enough for every task of a large
/// host, and a bound on the memory that an unfinished transaction takes.
const GROUP_WRITES_MAX: usize = 1024;

/// A store in one file.
pub struct EmbeddedStore {
    file: Arc<StateFile>,
    /// `None` only while it is dropped.
    queue: Option<mpsc::Sender<Put>>,
    room: Arc<Semaphore>,
    writer: Option<thread::JoinHandle<()>>,
}

/// The file, open unless opening it anew failed.
struct StateFile {
    path: PathBuf,
    database: RwLock<Option<Database>>,
}

/// A write on its way to the writer.
struct Put {
    key: String,
    value: Vec<u8>,
    expected: Option<u64>,
    reply: oneshot::Sender<Result<u64, StoreError>>,
    /// Its room in the queue.
    room: OwnedSemaphorePermit,
}

impl EmbeddedStore {
    /// Takes the store of a data directory; blocks for a moment.
    pub fn open(data: &Path) -> Result<Self, StoreError> {
        let path = data.join("state.redb");
        fs::create_dir_all(data)
            .map_err(|source| failed("creating the directory of", &path, source.into()))?;
        let database = open(&path)?;
        let file = Arc::new(StateFile {
            path,
            database: RwLock::new(Some(database)),
        });
        let (queue, pending) = mpsc::channel();
        let writes = file.clone();
        let writer = thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || write(&writes, &pending))
            .map_err(|source| failed("starting a thread for", &file.path, source.into()))?;
        Ok(Self {
            file,
            queue: Some(queue),
            room: Arc::new(Semaphore::new(QUEUE_BYTES_MAX)),
            writer: Some(writer),
        })
    }

    async fn submit(
        &self,
        key: &str,
        value: Vec<u8>,
        expected: Option<u64>,
    ) -> Result<u64, StoreError> {
        check(key)?;
        let bytes = value.len();
        if bytes > VALUE_BYTES_MAX {
            let key = key.to_owned();
            return Err(StoreError::ValueTooLong { key, bytes });
        }
        let bytes = u32::try_from(bytes + key.len()).expect("both are limited");
        let room = self.room.clone().acquire_many_owned(bytes).await;
        let (reply, answer) = oneshot::channel();
        let put = Put {
            key: key.to_owned(),
            value,
            expected,
            reply,
            room: room.expect("the queue's room is never closed"),
        };
        let closed = || StoreError::Closed {
            path: self.file.path.clone(),
        };
        let queue = self
            .queue
            .as_ref()
            .expect("nobody writes while it is dropped");
        queue.send(put).map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    /// Runs a read where waiting for a disk is allowed.
    async fn read<T: Send + 'static>(
        &self,
        read: impl Fn(&Database) -> Result<T, redb::Error> + Send + 'static,
    ) -> Result<T, StoreError> {
        let file = self.file.clone();
        match tokio::task::spawn_blocking(move || file.with("reading", read)).await {
            Ok(result) => result,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(StoreError::Closed {
                    path: self.file.path.clone(),
                }),
            },
        }
    }
}

impl Store for EmbeddedStore {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Versioned>, StoreError>> {
        async move {
            check(key)?;
            let key = key.to_owned();
            self.read(move |database| {
                let table = database.begin_read()?.open_table(VALUES)?;
                let found = table.get(key.as_str())?;
                Ok(found.map(|found| {
                    let (revision, value) = found.value();
                    Versioned {
                        value: value.to_vec(),
                        revision,
                    }
                }))
            })
            .await
        }
        .boxed()
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        value: Vec<u8>,
        expected: Option<u64>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.submit(key, value, expected).boxed()
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        let prefix = prefix.to_owned();
        self.read(move |database| {
            let table = database.begin_read()?.open_table(VALUES)?;
            let mut keys = Vec::new();
            for entry in table.range(prefix.as_str()..)? {
                let (key, _) = entry?;
                if !key.value().starts_with(&prefix) {
                    break;
                }
                keys.push(key.value().to_owned());
            }
            Ok(keys)
        })
        .boxed()
    }
}

impl Drop for EmbeddedStore {
    /// Waits for the writer to finish what it has, so that the file can be opened
    /// again at once.
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            tracing::error!(path = %self.file.path.display(), "store's writer panicked");
        }
    }
}

impl StateFile {
    /// Works on the database, opening it anew if it failed before.
    fn with<T>(
        &self,
        action: &'static str,
        work: impl Fn(&Database) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        let open_now = self.database.read().unwrap_or_else(PoisonError::into_inner);
        let result = open_now.as_ref().map(&work);
        drop(open_now);
        match result {
            Some(Ok(done)) => return Ok(done),
            Some(Err(error)) => {
                let error = failed(action, &self.path, error);
                tracing::error!(%error, "the store's file will be opened anew");
                drop(self.write_lock().take());
                return Err(error);
            }
            None => {}
        }
        let mut database = self.write_lock();
        if database.is_none() {
            *database = Some(open(&self.path)?);
        }
        let database = database.as_ref().expect("it was opened above");
        work(database).map_err(|error| failed(action, &self.path, error))
    }

    fn write_lock(&self) -> std::sync::RwLockWriteGuard<'_, Option<Database>> {
        // What a panic may have left behind is a closed file, which is opened anew.
        self.database
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes until the queue's other end is gone and it is empty.
fn write(file: &StateFile, queue: &mpsc::Receiver<Put>) {
    while let Ok(put) = queue.recv() {
        let mut bytes = put.value.len();
        let mut group = vec![put];
        while bytes < VALUE_BYTES_MAX
            && group.len() < GROUP_WRITES_MAX
            && let Ok(put) = queue.try_recv()
        {
            bytes += put.value.len();
            group.push(put);
        }
        let answers = match file.with("writing", |database| commit(database, &group)) {
            Ok(answers) => answers,
            Err(error) => group.iter().map(|_| Err(error.clone())).collect(),
        };
        for (put, answer) in group.into_iter().zip(answers) {
            drop(put.room);
            // Whoever does not wait for the answer any more does not need it.
            drop(put.reply.send(answer));
        }
    }
}

/// Writes a group in one transaction; conflicts are answers, not failures.
fn commit(database: &Database, group: &[Put]) -> Result<Vec<Result<u64, StoreError>>, redb::Error> {
    let txn = database.begin_write()?;
    let mut answers = Vec::with_capacity(group.len());
    {
        let mut values = txn.open_table(VALUES)?;
        let mut numbers = txn.open_table(NUMBERS)?;
        let mut revision = numbers.get(REVISION)?.map_or(0, |number| number.value());
        for put in group {
            let found = values.get(put.key.as_str())?;
            let actual = found.map(|found| found.value().0);
            if actual != put.expected {
                answers.push(Err(StoreError::Conflict {
                    key: put.key.clone(),
                    expected: put.expected,
                    actual,
                }));
                continue;
            }
            revision += 1;
            values.insert(put.key.as_str(), (revision, put.value.as_slice()))?;
            answers.push(Ok(revision));
        }
        numbers.insert(REVISION, revision)?;
    }
    txn.commit()?;
    Ok(answers)
}

fn open(path: &Path) -> Result<Database, StoreError> {
    let prepare = || -> Result<(Database, u64), redb::Error> {
        let database = Database::builder()
            .set_cache_size(CACHE_BYTES_MAX)
            .create(path)?;
        let txn = database.begin_write()?;
        let format = {
            let mut numbers = txn.open_table(NUMBERS)?;
            let found = numbers.get(FORMAT)?.map(|number| number.value());
            if found.is_none() {
                numbers.insert(FORMAT, FORMAT_VERSION)?;
            }
            txn.open_table(VALUES)?;
            found.unwrap_or(FORMAT_VERSION)
        };
        txn.commit()?;
        Ok((database, format))
    };
    let (database, found) = prepare().map_err(|error| failed("opening", path, error))?;
    if found != FORMAT_VERSION {
        return Err(StoreError::OtherFormat {
            path: path.to_owned(),
            found,
            known: FORMAT_VERSION,
        });
    }
    Ok(database)
}

fn check(key: &str) -> Result<(), StoreError> {
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Err(StoreError::Key { bytes: key.len() });
    }
    Ok(())
}

/// Sorts the library's errors by what an operator would do about them.
fn failed(action: &'static str, path: &Path, error: redb::Error) -> StoreError {
    let path = path.to_owned();
    let full = |source: &io::Error| {
        matches!(
            source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        )
    };
    match error {
        redb::Error::DatabaseAlreadyOpen => StoreError::InUse { path },
        redb::Error::PreviousIo | redb::Error::DatabaseClosed => StoreError::Closed { path },
        redb::Error::Corrupted(reason) => StoreError::Corrupt { path, reason },
        redb::Error::UpgradeRequired(found) => StoreError::OtherFormat {
            path,
            found: found.into(),
            known: FORMAT_VERSION,
        },
        redb::Error::Io(source) if source.kind() == io::ErrorKind::InvalidData => {
            StoreError::Corrupt {
                path,
                reason: source.to_string(),
            }
        }
        redb::Error::Io(source) if full(&source) => StoreError::DiskFull {
            path,
            source: Arc::new(source),
        },
        other => StoreError::Io {
            action,
            path,
            source: Arc::new(io::Error::other(other)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::contract;
    use std::process::Command;

    #[tokio::test]
    async fn keeps_the_contract() {
        let data = tempfile::tempdir().expect("a directory");
        contract::all(&|| {
            let store = EmbeddedStore::open(data.path()).expect("it opens");
            async { Box::new(store) as Box<dyn Store> }.boxed()
        })
        .await;
    }

    #[test]
    fn one_process_at_a_time() {
        let data = tempfile::tempdir().expect("a directory");
        let first = EmbeddedStore::open(data.path()).expect("it opens");
        let second = EmbeddedStore::open(data.path()).map(|_| ());
        assert!(
            matches!(second, Err(StoreError::InUse { .. })),
            "{second:?}"
        );
        drop(first);
        EmbeddedStore::open(data.path()).expect("it opens");
    }

    #[test]
    fn refuses_what_it_did_not_write() {
        let data = tempfile::tempdir().expect("a directory");
        let path = data.path().join("state.redb");
        let text = "not a database\n".repeat(1000);
        fs::write(&path, &text).expect("it writes");
        let result = EmbeddedStore::open(data.path()).map(|_| ());
        assert!(
            matches!(result, Err(StoreError::Corrupt { .. })),
            "{result:?}"
        );
        assert_eq!(
            fs::read_to_string(&path).expect("it is there"),
            text,
            "nothing was changed"
        );

        fs::remove_file(&path).expect("it is there");
        drop(EmbeddedStore::open(data.path()).expect("it opens"));
        let database = Database::open(&path).expect("it opens");
        let txn = database.begin_write().expect("it begins");
        let mut numbers = txn.open_table(NUMBERS).expect("it opens");
        numbers
            .insert(FORMAT, FORMAT_VERSION + 1)
            .expect("it writes");
        drop(numbers);
        txn.commit().expect("it commits");
        drop(database);
        let result = EmbeddedStore::open(data.path()).map(|_| ());
        assert!(
            matches!(
                result,
                Err(StoreError::OtherFormat {
                    found: 2,
                    known: 1,
                    ..
                })
            ),
            "{result:?}"
        );
    }

    /// A full disk refuses writes, not reads, and once there is room goes on. Runs
    /// itself in a process whose files are limited in size.
    #[test]
    fn full_disk() {
        const DATA: &str = "STORE_TEST_FULL_DISK";
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        if let Some(data) = std::env::var_os(DATA) {
            return runtime.block_on(fill_the_disk(Path::new(&data)));
        }
        let data = tempfile::tempdir().expect("a directory");
        let itself = std::env::current_exe().expect("a path");
        // 4 MiB; without the trap the signal would end the process.
        let output = Command::new("sh")
            .args([
                "-c",
                "trap '' XFSZ; ulimit -f 8192; exec \"$0\" --exact \"$1\" --nocapture",
            ])
            .arg(itself)
            .arg(
                thread::current()
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
        let store = EmbeddedStore::open(data.path()).expect("it opens");
        let found = runtime
            .block_on(store.get("key"))
            .expect("it reads")
            .expect("there");
        assert_eq!(found.value, [3; 10]);
        runtime
            .block_on(store.put("key", vec![4; 10_000_000], Some(found.revision)))
            .expect("there is room here");
    }

    async fn fill_the_disk(data: &Path) {
        let store = EmbeddedStore::open(data).expect("it opens");
        let first = store
            .put("key", vec![1; 10], None)
            .await
            .expect("it writes");
        for _ in 0..3 {
            let result = store.put("key", vec![2; 10_000_000], Some(first)).await;
            assert!(
                matches!(result, Err(StoreError::DiskFull { .. })),
                "{result:?}"
            );
            let found = store.get("key").await.expect("it reads").expect("there");
            assert_eq!((found.value, found.revision), (vec![1; 10], first));
        }
        store
            .put("key", vec![3; 10], Some(first))
            .await
            .expect("this fits");
    }

    /// What is acknowledged is in a copy of the file made right then, as after a crash.
    #[tokio::test]
    async fn acknowledged_is_durable() {
        let data = tempfile::tempdir().expect("a directory");
        let store = EmbeddedStore::open(data.path()).expect("it opens");
        let mut revision = None;
        for round in 0..10_u8 {
            let put = store.put("key", vec![round; 10_000], revision).await;
            revision = Some(put.expect("it writes"));
            let copy = tempfile::tempdir().expect("a directory");
            let from = data.path().join("state.redb");
            fs::copy(from, copy.path().join("state.redb")).expect("it copies");
            let crashed = EmbeddedStore::open(copy.path()).expect("it opens");
            let found = crashed.get("key").await.expect("it reads").expect("there");
            assert_eq!((found.value[0], Some(found.revision)), (round, revision));
        }
    }
}
