//! Writes a journal: one thread, one write and one sync for all that is pending.
//!
//! ```text
//! take what is pending -> stage (offsets, conflicts) -> write -> sync -> index -> answer
//!                                                         |       |
//!                          truncate back, answer errors <-+       +-> poisoned
//! ```
//!
//! Nothing is answered before the sync, not even a conflict: it may be a conflict
//! with an append that is only staged. A failed write is undone and the journal
//! goes on. After a failed sync it cannot: the system may have dropped the unwritten
//! pages and marked them clean, so that the next sync would succeed without them.

#[cfg(test)]
mod tests;

use super::Known;
use super::frame::{self, StoredOrigin};
use super::index::Index;
use super::segment::Segment;
use crate::journal::{Append, Appended, InputPosition, JournalError, Origin};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// The size that a group stops growing at, in bytes.
///
/// By then a sync's fixed cost hardly counts; a greater group would only make its
/// first appends wait longer.
const GROUP_BYTES_MAX: usize = 8 << 20;

/// An append on its way to the writer.
pub(super) struct Request {
    pub append: Append,
    /// The hash of a producer's bytes.
    pub hash: u64,
    pub reply: oneshot::Sender<Result<Appended, JournalError>>,
    /// Its room in the queue.
    pub room: OwnedSemaphorePermit,
}

/// What a segment's file must be able to do; tests put a failing one in its place.
pub(super) trait Medium: Send {
    /// Writes all bytes at a place.
    fn write(&mut self, bytes: &[u8], at: u64) -> io::Result<()>;
    /// Makes what was written durable.
    fn sync(&mut self) -> io::Result<()>;
    /// Cuts the file off, durably.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
}

impl Medium for File {
    fn write(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        // Else a crash could bring back what its sender was told had failed.
        self.sync_data()
    }
}

/// What was stored under a producer's key.
#[derive(Debug, Clone, Copy)]
struct Stored {
    hash: u64,
    appended: Appended,
}

/// What producers' keys were used for. Never iterated, so its order does not matter.
#[derive(Debug, Default)]
pub(super) struct Keys(HashMap<String, Stored>);

impl Keys {
    pub(super) fn insert(&mut self, key: String, hash: u64, first: u64, next: u64) {
        let appended = Appended { first, next };
        self.0.insert(key, Stored { hash, appended });
    }
}

/// The one who writes a journal.
pub(super) struct Writer {
    known: Arc<Known>,
    keys: Keys,
    medium: Box<dyn Medium>,
    path: PathBuf,
    /// The durable length of the segment.
    length: u64,
    next: u64,
    segment_bytes: u64,
    poisoned: Option<Arc<str>>,
    buffer: Vec<u8>,
}

/// A group on its way to be durable.
#[derive(Default)]
struct Staged<'a> {
    next: u64,
    /// The offset after each frame, and its length.
    frames: Vec<(u64, u64)>,
    keys: BTreeMap<&'a str, Stored>,
    positions: BTreeMap<&'a str, InputPosition>,
}

impl Writer {
    pub(super) fn new(
        known: Arc<Known>,
        keys: Keys,
        segment: Segment,
        length: u64,
        segment_bytes: u64,
    ) -> Self {
        let next = known.index().end();
        Self {
            known,
            keys,
            medium: Box::new(segment.file),
            path: segment.path,
            length,
            next,
            segment_bytes,
            poisoned: None,
            buffer: Vec::new(),
        }
    }

    /// Writes until the queue's other end is gone and it is empty.
    pub(super) fn run(mut self, queue: &mpsc::Receiver<Request>) {
        while let Ok(request) = queue.recv() {
            let mut bytes = request.append.bytes();
            let mut group = vec![request];
            while bytes < GROUP_BYTES_MAX
                && let Ok(request) = queue.try_recv()
            {
                bytes += request.append.bytes();
                group.push(request);
            }
            self.commit(group);
        }
    }

    /// Appends a group and answers it.
    fn commit(&mut self, group: Vec<Request>) {
        let answers = match self.append(&group) {
            Ok(answers) => answers,
            Err(error) => group.iter().map(|_| Err(error.clone())).collect(),
        };
        for (request, answer) in group.into_iter().zip(answers) {
            drop(request.room);
            // Whoever does not wait for the answer any more does not need it.
            drop(request.reply.send(answer));
        }
    }

    fn append(
        &mut self,
        group: &[Request],
    ) -> Result<Vec<Result<Appended, JournalError>>, JournalError> {
        if let Some(reason) = &self.poisoned {
            return Err(JournalError::Poisoned {
                collection: self.known.collection.clone(),
                reason: reason.clone(),
            });
        }
        if self.length >= self.segment_bytes {
            self.roll()?;
        }
        let mut staged = Staged {
            next: self.next,
            ..Staged::default()
        };
        self.buffer.clear();
        let answers = group
            .iter()
            .map(|request| self.stage(request, &mut staged))
            .collect();
        if !staged.frames.is_empty() {
            self.write()?;
            self.publish(staged);
        }
        Ok(answers)
    }

    /// Begins a new segment; the old one is durable, as each group was synced.
    fn roll(&mut self) -> Result<(), JournalError> {
        let segment = Segment::create(&self.known.directory, &self.known.collection, self.next)?;
        self.known.index_mut().add_segment(segment.header);
        self.length = segment.header;
        self.path = segment.path;
        self.medium = Box::new(segment.file);
        Ok(())
    }

    /// Decides about one append of a group, and encodes it if it is to be written.
    fn stage<'a>(
        &mut self,
        request: &'a Request,
        staged: &mut Staged<'a>,
    ) -> Result<Appended, JournalError> {
        let append = &request.append;
        let appended = Appended {
            first: staged.next,
            next: staged.next + append.documents.len() as u64,
        };
        match &append.origin {
            Origin::None => {}
            Origin::Input {
                input,
                expected,
                position,
            } => {
                let actual = staged
                    .positions
                    .get(input.as_str())
                    .copied()
                    .or_else(|| self.known.index().position(input));
                if actual != *expected {
                    return Err(JournalError::PositionConflict {
                        collection: self.known.collection.clone(),
                        input: input.clone(),
                        expected: *expected,
                        actual,
                    });
                }
                staged.positions.insert(input, *position);
            }
            Origin::Producer { key } => {
                let stored = staged
                    .keys
                    .get(key.as_str())
                    .or_else(|| self.keys.0.get(key));
                match stored {
                    Some(stored) if stored.hash == request.hash => return Ok(stored.appended),
                    Some(stored) => {
                        return Err(JournalError::KeyConflict {
                            collection: self.known.collection.clone(),
                            key: key.clone(),
                            first: stored.appended.first,
                            next: stored.appended.next,
                        });
                    }
                    None => {}
                }
                let hash = request.hash;
                staged.keys.insert(key, Stored { hash, appended });
            }
        }
        let start = self.buffer.len();
        frame::encode(
            append,
            request.hash,
            staged.next,
            self.length,
            &mut self.buffer,
        );
        let length = (self.buffer.len() - start) as u64;
        staged.frames.push((appended.next, length));
        staged.next = appended.next;
        Ok(appended)
    }

    /// Makes the buffer's frames durable, or leaves the file as it was.
    fn write(&mut self) -> Result<(), JournalError> {
        if let Err(source) = self.medium.write(&self.buffer, self.length) {
            if let Err(second) = self.medium.truncate(self.length) {
                self.poison(format!(
                    "a write to {} failed ({source}) and could not be undone ({second})",
                    self.path.display()
                ));
            }
            return Err(JournalError::io("writing", &self.path, source));
        }
        if let Err(source) = self.medium.sync() {
            self.poison(format!(
                "syncing {} failed ({source}), and what the system keeps in memory of it cannot \
                 be trusted any more",
                self.path.display()
            ));
            return Err(JournalError::io("syncing", &self.path, source));
        }
        Ok(())
    }

    fn poison(&mut self, reason: String) {
        tracing::error!(collection = self.known.collection, reason, "journal closed");
        self.poisoned = Some(reason.into());
    }

    /// Makes a durable group known.
    fn publish(&mut self, staged: Staged<'_>) {
        self.length += self.buffer.len() as u64;
        self.next = staged.next;
        for (key, stored) in staged.keys {
            self.keys.0.insert(key.to_owned(), stored);
        }
        let index: &mut Index = &mut self.known.index_mut();
        for (next, length) in staged.frames {
            index.add_frame(next, length);
        }
        for (input, position) in staged.positions {
            index.set_position(input, position);
        }
        self.known.ends.send_replace(staged.next);
    }
}

/// Records a frame that was found when opening.
pub(super) fn recall(
    origin: StoredOrigin,
    first: u64,
    next: u64,
    keys: &mut Keys,
    index: &mut Index,
) {
    match origin {
        StoredOrigin::None => {}
        StoredOrigin::Input { input, position } => index.set_position(&input, position),
        StoredOrigin::Producer { key, hash } => keys.insert(key, hash, first, next),
    }
}
