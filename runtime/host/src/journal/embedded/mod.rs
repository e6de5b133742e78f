//! Journals in files on this machine.
//!
//! ```text
//! DIR/journals.lock
//! DIR/journals/<collection>/<first offset>.segment
//! ```
//!
//! Opening a journal walks over its frames' headers and verifies the last segment;
//! from then on memory knows where each offset is, how far each input has come and
//! which producers' keys were used. One thread a journal writes; reads go to the
//! files, beside it. Must be used inside a tokio runtime.

mod frame;
mod index;
mod lock;
mod name;
mod reader;
mod segment;
#[cfg(test)]
mod tests;
mod writer;

pub use segment::Truncated;

use super::{
    Append, Appended, Extent, InputPosition, Journal, JournalError, Journals, Origin, Reader,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use index::Index;
use lock::Lock;
use reader::SegmentReader;
use segment::Segment;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard, mpsc};
use std::thread;
use tokio::sync::{Mutex, Semaphore, oneshot, watch};
use writer::{Keys, Request, Writer};

/// The size at which a new segment is begun, in bytes.
///
/// Opening verifies the last segment whole: this much takes a fraction of a second
/// to read. A journal of 100 GiB is then 1,600 files, which a directory bears.
const SEGMENT_BYTES: u64 = 64 << 20;

/// How many bytes of appends wait for a journal's writer.
///
/// Twice the largest append, so that one of any size can wait while one is written.
const QUEUE_BYTES_MAX: usize = 2 * super::APPEND_BYTES_MAX;

/// All journals under one data directory.
pub struct EmbeddedJournals {
    directory: PathBuf,
    lock: Arc<Lock>,
    segment_bytes: u64,
    open: Arc<Mutex<BTreeMap<String, Arc<EmbeddedJournal>>>>,
}

impl EmbeddedJournals {
    /// Takes the journals of a data directory; blocks for a moment.
    pub fn open(data: &Path) -> Result<Self, JournalError> {
        Self::with_segments(data, SEGMENT_BYTES)
    }

    fn with_segments(data: &Path, segment_bytes: u64) -> Result<Self, JournalError> {
        let directory = data.join("journals");
        make_directory(&directory)?;
        Ok(Self {
            lock: Arc::new(Lock::take(&data.join("journals.lock"))?),
            directory,
            segment_bytes,
            open: Arc::default(),
        })
    }
}

impl Journals for EmbeddedJournals {
    fn open<'a>(
        &'a self,
        collection: &'a str,
    ) -> BoxFuture<'a, Result<Arc<dyn Journal>, JournalError>> {
        async move {
            // Held until the journal is open, even if nobody waits for it any more: two
            // that open one journal would each write a file of the same name.
            let mut open = self.open.clone().lock_owned().await;
            if let Some(journal) = open.get(collection) {
                return Ok(journal.clone() as Arc<dyn Journal>);
            }
            let directory = self.directory.clone();
            let lock = self.lock.clone();
            let segment_bytes = self.segment_bytes;
            let name = collection.to_owned();
            on_blocking_thread(collection, move || {
                let (journal, _) = EmbeddedJournal::open(&directory, &name, lock, segment_bytes)?;
                let journal = Arc::new(journal);
                open.insert(name, journal.clone());
                Ok(journal as Arc<dyn Journal>)
            })
            .await
        }
        .boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<String>, JournalError>> {
        let directory = self.directory.clone();
        on_blocking_thread("listing journals", move || list(&directory)).boxed()
    }
}

/// A journal in segment files.
pub(super) struct EmbeddedJournal {
    known: Arc<Known>,
    /// `None` only while it is dropped.
    queue: Option<mpsc::Sender<Request>>,
    room: Arc<Semaphore>,
    writer: Option<thread::JoinHandle<()>>,
    /// Other processes stay out for as long as there is a journal.
    _lock: Arc<Lock>,
}

/// What the writer and the readers of a journal share.
struct Known {
    collection: String,
    directory: PathBuf,
    index: RwLock<Index>,
    ends: watch::Sender<u64>,
}

impl Known {
    fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.index
            .read()
            .expect("nobody panics while holding the index")
    }

    fn index_mut(&self) -> RwLockWriteGuard<'_, Index> {
        self.index
            .write()
            .expect("nobody panics while holding the index")
    }
}

impl EmbeddedJournal {
    /// Opens a journal, blocking; also tells what was torn off its end.
    fn open(
        journals: &Path,
        collection: &str,
        lock: Arc<Lock>,
        segment_bytes: u64,
    ) -> Result<(Self, Option<Truncated>), JournalError> {
        let escaped = name::escape(collection).map_err(|reason| JournalError::Name {
            collection: collection.to_owned(),
            reason,
        })?;
        let directory = journals.join(escaped);
        make_directory(&directory)?;
        let recovered = recover(&directory, collection)?;
        let known = Arc::new(Known {
            collection: collection.to_owned(),
            directory,
            ends: watch::Sender::new(recovered.index.end()),
            index: RwLock::new(recovered.index),
        });
        let writer = Writer::new(
            known.clone(),
            recovered.keys,
            recovered.last,
            recovered.length,
            segment_bytes,
        );
        let (queue, pending) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("journal-writer".to_owned())
            .spawn(move || writer.run(&pending))
            .map_err(|source| {
                JournalError::io("starting a thread for", &known.directory, source)
            })?;
        let journal = Self {
            known,
            queue: Some(queue),
            room: Arc::new(Semaphore::new(QUEUE_BYTES_MAX)),
            writer: Some(thread),
            _lock: lock,
        };
        Ok((journal, recovered.truncated))
    }

    async fn submit(&self, append: Append) -> Result<Appended, JournalError> {
        append.check(&self.known.collection)?;
        let hash = match append.origin {
            Origin::Producer { .. } => append.hash(),
            Origin::None | Origin::Input { .. } => 0,
        };
        let bytes = u32::try_from(append.bytes()).expect("an append's size is checked");
        let room = self.room.clone().acquire_many_owned(bytes).await;
        let (reply, answer) = oneshot::channel();
        let request = Request {
            append,
            hash,
            reply,
            room: room.expect("the queue's room is never closed"),
        };
        let closed = || JournalError::Closed {
            what: format!("an append to {}", self.known.collection),
        };
        let queue = self
            .queue
            .as_ref()
            .expect("nobody appends while it is dropped");
        queue.send(request).map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }
}

impl Journal for EmbeddedJournal {
    fn collection(&self) -> &str {
        &self.known.collection
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended, JournalError>> {
        self.submit(append).boxed()
    }

    fn ends(&self) -> watch::Receiver<u64> {
        self.known.ends.subscribe()
    }

    fn extent(&self, lower: u64, bytes_max: u64) -> Extent {
        self.known.index().extent(lower, bytes_max)
    }

    fn read(&self, lower: u64, upper: u64, bytes_max: u64) -> Box<dyn Reader> {
        Box::new(SegmentReader::new(
            self.known.clone(),
            lower..upper,
            bytes_max,
        ))
    }

    fn position(&self, input: &str) -> Option<InputPosition> {
        self.known.index().position(input)
    }
}

impl Drop for EmbeddedJournal {
    /// Waits for the writer to finish what it has, so that the directory can be
    /// opened again at once.
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            tracing::error!(
                collection = self.known.collection,
                "journal's writer panicked"
            );
        }
    }
}

/// A journal as found on disk.
struct Recovered {
    index: Index,
    keys: Keys,
    last: Segment,
    length: u64,
    truncated: Option<Truncated>,
}

fn recover(directory: &Path, collection: &str) -> Result<Recovered, JournalError> {
    let firsts = segment::list(directory)?;
    let mut index = Index::default();
    let mut keys = Keys::default();
    let Some((&last, sealed)) = firsts.split_last() else {
        let last = Segment::create(directory, collection, 0)?;
        index.add_segment(last.header);
        return Ok(Recovered {
            length: last.header,
            index,
            keys,
            last,
            truncated: None,
        });
    };
    for &first in sealed {
        let segment = open_next(directory, collection, first, &mut index)?;
        let end = scan(&segment, false, &mut index, &mut keys)?;
        if let Some(damage) = end.damage {
            return Err(segment.corrupt(end.byte, damage));
        }
    }
    let last = open_next(directory, collection, last, &mut index)?;
    let end = scan(&last, true, &mut index, &mut keys)?;
    let truncated = match end.damage {
        None => None,
        Some(_) => Some(segment::repair(&last, &end)?),
    };
    if let Some(Truncated { path, byte, bytes }) = &truncated {
        tracing::warn!(
            collection, path = %path.display(), byte, bytes,
            "cut a torn write off the end of a journal",
        );
    }
    // A killed process leaves frames that only the system's memory has.
    last.file
        .sync_data()
        .map_err(|source| last.failed("syncing", source))?;
    Ok(Recovered {
        length: end.byte,
        index,
        keys,
        last,
        truncated,
    })
}

/// Opens the segment that must follow what `index` has.
fn open_next(
    directory: &Path,
    collection: &str,
    first: u64,
    index: &mut Index,
) -> Result<Segment, JournalError> {
    if first != index.end() {
        return Err(JournalError::Layout {
            path: segment::path(directory, first),
            reason: format!(
                "this segment begins with offset {first}, and the one before ends at {}",
                index.end()
            ),
            help: "restore the missing segments from a copy, or move the journal's directory away \
                   and fill the collection again",
        });
    }
    let segment = Segment::open(directory, collection, first)?;
    index.add_segment(segment.header);
    Ok(segment)
}

fn scan(
    segment: &Segment,
    verify: bool,
    index: &mut Index,
    keys: &mut Keys,
) -> Result<segment::ScanEnd, JournalError> {
    segment::scan(segment, verify, |frame| {
        let header = frame.header;
        index.add_frame(header.next(), header.frame_length() as u64);
        writer::recall(frame.origin, header.first, header.next(), keys, index);
    })
}

/// Makes a directory and the ones above it, durably.
fn make_directory(directory: &Path) -> Result<(), JournalError> {
    if directory.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(directory)
        .map_err(|source| JournalError::io("creating", directory, source))?;
    directory.parent().map_or(Ok(()), segment::sync_directory)
}

fn list(directory: &Path) -> Result<Vec<String>, JournalError> {
    let failed = |source| JournalError::io("listing", directory, source);
    let mut collections = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or("");
        let Some(collection) = name::unescape(name) else {
            return Err(JournalError::Layout {
                path,
                reason: "not the directory of a journal".to_owned(),
                help: "move it somewhere else",
            });
        };
        collections.push(collection);
    }
    collections.sort_unstable();
    Ok(collections)
}

/// Runs what waits for a disk where waiting is allowed.
async fn on_blocking_thread<T: Send + 'static>(
    what: &str,
    work: impl FnOnce() -> Result<T, JournalError> + Send + 'static,
) -> Result<T, JournalError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(JournalError::Closed {
                what: what.to_owned(),
            }),
        },
    }
}
