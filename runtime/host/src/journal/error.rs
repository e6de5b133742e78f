//! What can go wrong with a journal, by what the caller would do about it.

use super::{APPEND_BYTES_MAX, DOCUMENT_BYTES_MAX, InputPosition, ORIGIN_BYTES_MAX};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a journal refused or failed.
///
/// One failed write fails every append that waited for it, hence `Clone`.
#[derive(Debug, Clone, thiserror::Error)]
pub enum JournalError {
    /// The name cannot be a journal's.
    #[error("collection {collection:?} cannot have a journal: {reason}; rename the collection")]
    Name {
        /// The collection.
        collection: String,
        /// What is wrong with its name.
        reason: String,
    },
    /// There was nothing to append.
    #[error("an append to {collection} has no documents; send at least one")]
    Empty {
        /// The collection.
        collection: String,
    },
    /// A document is longer than a journal takes; nothing was written.
    #[error(
        "document {index} of an append to {collection} has {bytes} bytes, and the longest allowed \
         has {DOCUMENT_BYTES_MAX}; nothing was appended: split the document or leave it out"
    )]
    DocumentTooLong {
        /// The collection.
        collection: String,
        /// The document's place in the append, from 0.
        index: usize,
        /// The document's size.
        bytes: usize,
    },
    /// The documents are together longer than a journal takes; nothing was written.
    #[error(
        "an append to {collection} has {bytes} bytes, and the longest allowed has \
         {APPEND_BYTES_MAX}; nothing was appended: send fewer documents at a time"
    )]
    AppendTooLong {
        /// The collection.
        collection: String,
        /// The append's size.
        bytes: usize,
    },
    /// The text of an origin is missing or too long; nothing was written.
    #[error(
        "an append to {collection} has an input identity or producer key of {bytes} bytes; \
         allowed are 1 to {ORIGIN_BYTES_MAX}"
    )]
    Origin {
        /// The collection.
        collection: String,
        /// The text's size.
        bytes: usize,
    },
    /// The producer's key was used before, with other documents.
    #[error(
        "producer key {key:?} of {collection} was used for other documents, which are at offsets \
         {first} to {next}; use a new key for new documents"
    )]
    KeyConflict {
        /// The collection.
        collection: String,
        /// The producer's key.
        key: String,
        /// The first offset stored under it.
        first: u64,
        /// The offset after the last one stored under it.
        next: u64,
    },
    /// The input is not where the append expected it: somebody else appended.
    #[error(
        "input {input:?} of {collection} is at {}, not at {}: something else appends the \
         same input; make sure that only one follower reads it",
        place(actual),
        place(expected)
    )]
    PositionConflict {
        /// The collection.
        collection: String,
        /// The input's identity.
        input: String,
        /// Where the append expected the input.
        expected: Option<InputPosition>,
        /// Where the input is.
        actual: Option<InputPosition>,
    },
    /// A read reaches beyond what the journal holds.
    #[error(
        "offsets up to {upper} of {collection} were asked for, but the journal ends at {end}: a \
         checkpoint covers documents that the journal has lost; restore the journal, or backfill \
         the binding"
    )]
    BeyondEnd {
        /// The collection.
        collection: String,
        /// The offset asked for.
        upper: u64,
        /// The journal's end.
        end: u64,
    },
    /// There is no room; what was to be appended was not, and may be tried again.
    #[error("no room to append to {}: {source}; free some space and try again", path.display())]
    DiskFull {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: Arc<io::Error>,
    },
    /// The system failed.
    #[error("{action} {}: {source}", path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: Arc<io::Error>,
    },
    /// The journal takes no appends until it is opened again.
    #[error("journal of {collection} takes no appends any more: {reason}; restart the host")]
    Poisoned {
        /// The collection.
        collection: String,
        /// What happened.
        reason: Arc<str>,
    },
    /// The host is shutting down.
    #[error("{what} was interrupted: the host is shutting down; start it again")]
    Closed {
        /// What was interrupted.
        what: String,
    },
    /// The stored bytes are not what was written.
    #[error(
        "{} is corrupt at byte {byte}: {reason}; nothing was changed: restore the file from a \
         copy, or move the journal's directory away and fill the collection again", path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where in the file.
        byte: u64,
        /// What is wrong.
        reason: String,
    },
    /// The files of a journal do not make a whole.
    #[error("{}: {reason}; nothing was changed: {help}", path.display())]
    Layout {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong.
        reason: String,
        /// What to do about it.
        help: &'static str,
    },
    /// A newer program wrote the file.
    #[error(
        "{} has format version {found}, and this program reads up to {known}; use a newer program",
        path.display()
    )]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// The file's version.
        found: u32,
        /// The newest version read here.
        known: u32,
    },
    /// Another process has the journals open.
    #[error(
        "{} is in use by another process; stop it, or use another data directory", path.display()
    )]
    InUse {
        /// The lock's file.
        path: PathBuf,
    },
}

impl JournalError {
    /// Sorts a system's error about a file.
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        let source = Arc::new(source);
        match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::DiskFull { path, source },
            _ => Self::Io {
                action,
                path,
                source,
            },
        }
    }
}

fn place(position: &Option<InputPosition>) -> String {
    match position {
        Some(at) => format!("line {} (byte {})", at.line, at.byte),
        None => "its beginning".to_owned(),
    }
}
