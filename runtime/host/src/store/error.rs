//! What can go wrong with a store, by what the caller would do about it.

use super::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Why a store refused or failed.
///
/// One failed commit fails every write that waited for it, hence `Clone`.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The key was written since: read it again and judge again.
    #[error(
        "key {key:?} is at {}, not at {}: somebody else wrote it",
        at(actual),
        at(expected)
    )]
    Conflict {
        /// The key.
        key: String,
        /// The revision that the write was to replace.
        expected: Option<u64>,
        /// The revision found.
        actual: Option<u64>,
    },
    /// The key is empty or too long.
    #[error("a key has {bytes} bytes; allowed are 1 to {KEY_BYTES_MAX}")]
    Key {
        /// The key's size.
        bytes: usize,
    },
    /// The value is too long; nothing was written.
    #[error(
        "the value of key {key:?} has {bytes} bytes, and the longest allowed has \
         {VALUE_BYTES_MAX}; make what is kept there smaller"
    )]
    ValueTooLong {
        /// The key.
        key: String,
        /// The value's size.
        bytes: usize,
    },
    /// There is no room; reading tells whether the write took place.
    #[error("no room to write {}: {source}; free some space and try again", path.display())]
    DiskFull {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: Arc<io::Error>,
    },
    /// The system failed; reading tells whether a write took place.
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
    /// The store is closed: the host is shutting down, or an earlier failure closed it.
    #[error("{} is closed; try again", path.display())]
    Closed {
        /// The file.
        path: PathBuf,
    },
    /// The stored bytes are not what was written.
    #[error("{} is corrupt: {reason}; restore it from a copy", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Another version of this program wrote the file.
    #[error(
        "{} has format version {found}, and this program reads version {known}; use the program \
         that wrote it", path.display()
    )]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// The file's version.
        found: u64,
        /// The version read here.
        known: u64,
    },
    /// Another process has the store open.
    #[error(
        "{} is in use by another process; stop it, or use another data directory", path.display()
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
}

fn at(revision: &Option<u64>) -> String {
    match revision {
        Some(revision) => format!("revision {revision}"),
        None => "no revision (absent)".to_owned(),
    }
}
