//! Reads an input's file and checks its lines; blocks.
//!
//! ```text
//! open -> is it still the same? -> read -> lines -> check -> prepared batch
//!  ^                                  |
//!  +---- the file changed <- its end -+
//! ```
//!
//! Whenever reading goes on after an end, the file is opened again and must be the
//! one that was read before: this is how a running follower notices what a
//! restarted one would.

use super::lines::Lines;
use super::prefix::Prefix;
use super::resume::{Facts, resume};
use super::{Check, FollowError};
use crate::journal::{Documents, InputPosition};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

/// The size at which a batch of lines is appended, in bytes of documents.
///
/// Large enough that a frame's header and a sync cost nothing beside it, small
/// enough that checking one batch overlaps with syncing the last.
const BATCH_BYTES: usize = 256 << 10;

/// How much is read at a time, in bytes: a batch's worth.
const READ_BYTES: u64 = BATCH_BYTES as u64;

/// An input's file, and how far it has been read.
pub(super) struct Input {
    path: PathBuf,
    check: Check,
    take_last: bool,
    /// Up to where the file was read, `None` for not begun.
    position: Option<InputPosition>,
    reading: Option<Reading>,
}

/// The file as it was when it was opened.
struct Reading {
    file: File,
    state: FileState,
    lines: Lines,
    at_end: bool,
}

/// What changes when a file is written or another takes its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileState {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
}

impl From<&Metadata> for FileState {
    fn from(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// Lines that have been checked.
pub(super) struct Prepared {
    pub documents: Documents,
    /// The position behind them.
    pub position: InputPosition,
    /// Whether there was nothing more.
    pub at_end: bool,
}

impl Input {
    pub(super) fn new(
        path: PathBuf,
        check: Check,
        take_last: bool,
        position: Option<InputPosition>,
    ) -> Self {
        Self {
            path,
            check,
            take_last,
            position,
            reading: None,
        }
    }

    /// Reads and checks the next batch, which has no documents if there are no more lines.
    pub(super) fn prepare(&mut self) -> Result<Prepared, FollowError> {
        let mut reading = match self.reading.take() {
            Some(reading) if !reading.at_end => reading,
            Some(reading) if self.state()? == reading.state => reading,
            _ => self.open()?,
        };
        let documents = self.read_batch(&mut reading)?;
        let prepared = Prepared {
            documents,
            position: reading.lines.position(),
            at_end: reading.at_end,
        };
        self.position = Some(prepared.position);
        self.reading = Some(reading);
        Ok(prepared)
    }

    /// Reads lines until a batch is full, the input ends or a line is bad.
    ///
    /// A bad line is an error only when it is the first: so the lines before it are
    /// appended, and it is found again.
    fn read_batch(&self, reading: &mut Reading) -> Result<Documents, FollowError> {
        let mut documents = Documents::new();
        while documents.bytes().len() < BATCH_BYTES {
            let fault = match reading.lines.next(self.take_last && reading.at_end) {
                Some(Ok(line)) => {
                    let text = reading.lines.text(&line);
                    match (self.check)(text) {
                        Ok(()) => {
                            documents.push(text);
                            reading.lines.accept(&line);
                            continue;
                        }
                        Err(reason) => FollowError::BadLine {
                            path: self.path.clone(),
                            line: line.number,
                            reason,
                        },
                    }
                }
                Some(Err(fault)) => FollowError::line(fault, &self.path),
                None if reading.at_end => break,
                None => {
                    self.read(reading)?;
                    continue;
                }
            };
            reading.at_end = false;
            if documents.is_empty() {
                return Err(fault);
            }
            break;
        }
        Ok(documents)
    }

    fn read(&self, reading: &mut Reading) -> Result<(), FollowError> {
        let file = &reading.file;
        let read = reading
            .lines
            .fill(|buffer| file.take(READ_BYTES).read_to_end(buffer));
        reading.at_end = self.failed("reading", read)? == 0;
        Ok(())
    }

    fn state(&self) -> Result<FileState, FollowError> {
        let metadata = self.failed("looking at", fs::metadata(&self.path))?;
        if !metadata.is_file() {
            // Opening a pipe would wait for its writer.
            return Err(FollowError::NotAFile {
                path: self.path.clone(),
            });
        }
        Ok(FileState::from(&metadata))
    }

    /// Opens the file where it was left, if it is still the same.
    fn open(&self) -> Result<Reading, FollowError> {
        self.state()?;
        let file = self.failed("opening", File::open(&self.path))?;
        let state = FileState::from(&self.failed("looking at", file.metadata())?);
        let facts = self.failed("reading", facts(&file, state.length, self.position))?;
        let resumed = resume(self.position, facts).map_err(|refusal| {
            let position = self.position.expect("what was not begun is not refused");
            FollowError::refused(refusal, &self.path, position, state.length)
        })?;
        let from = io::SeekFrom::Start(resumed.prefix.length());
        self.failed("reading", io::Seek::seek(&mut &file, from))?;
        Ok(Reading {
            file,
            state,
            lines: Lines::new(resumed),
            at_end: false,
        })
    }

    fn failed<T>(&self, action: &'static str, result: io::Result<T>) -> Result<T, FollowError> {
        result.map_err(|source| FollowError::io(action, &self.path, source))
    }
}

/// Reads what the decision to resume needs to know.
fn facts(file: &File, length: u64, position: Option<InputPosition>) -> io::Result<Facts> {
    let byte = position.map_or(0, |position| position.byte);
    if length < byte {
        return Ok(Facts {
            length,
            prefix: None,
        });
    }
    let mut head = vec![0; Prefix::edge(byte)];
    let mut tail = head.clone();
    file.read_exact_at(&mut head, 0)?;
    file.read_exact_at(&mut tail, byte - head.len() as u64)?;
    Ok(Facts {
        length,
        prefix: Some(Prefix::of(byte, head, tail)),
    })
}
