//! What can stop a follower, by what an operator would do about it.

use super::lines::LineFault;
use super::resume::Refusal;
use crate::journal::{DOCUMENT_BYTES_MAX, InputPosition, JournalError};
use std::io;
use std::path::{Path, PathBuf};

/// Why an input cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The path cannot be an input's.
    #[error("input {}: {reason}; name the file otherwise", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no such file.
    #[error("input {} does not exist; create it, or correct the path", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// It is a directory, a pipe or a device.
    #[error(
        "input {} is not a regular file, and only those can be read again after a restart; copy \
         what it gives into one", path.display()
    )]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The system failed.
    #[error("{action} input {}: {source}", path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file is shorter than what was read of it.
    #[error(
        "input {} was truncated: {line} lines (up to byte {byte}) were read before, and it has \
         {length} bytes now; put the lines back, or give new content a new file name",
        path.display()
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// How many lines were read.
        line: u64,
        /// How many bytes were read.
        byte: u64,
        /// How many bytes there are.
        length: u64,
    },
    /// The file has other content where it was read.
    #[error(
        "input {} was replaced: its first {line} lines (up to byte {byte}) are not those that \
         were read before; put the old content back, or give new content a new file name",
        path.display()
    )]
    Replaced {
        /// The file.
        path: PathBuf,
        /// How many lines were read.
        line: u64,
        /// How many bytes were read.
        byte: u64,
    },
    /// A line that was taken without its newline goes on.
    #[error(
        "line {line} of input {} was read before it ended, when the input was to be caught up, \
         and is longer now; end it where it ended then, and write what is new on a line of its own",
        path.display()
    )]
    Extended {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
    },
    /// A line is longer than a document may be.
    #[error(
        "line {line} of input {} is longer than the {DOCUMENT_BYTES_MAX} bytes allowed; the lines \
         before it were read: split or remove it, and restart the host", path.display()
    )]
    LineTooLong {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
    },
    /// A line is not a document of the collection.
    #[error(
        "line {line} of input {}: {reason}; the lines before it were read: fix or remove it, and \
         restart the host", path.display()
    )]
    BadLine {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// The journal refused or failed.
    #[error("appending lines of input {}: {source}", path.display())]
    Journal {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<JournalError>,
    },
    /// The host is shutting down.
    #[error("reading input {} was interrupted: the host is shutting down", path.display())]
    Closed {
        /// The file.
        path: PathBuf,
    },
}

impl FollowError {
    pub(super) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => Self::Missing { path },
            _ => Self::Io {
                action,
                path,
                source,
            },
        }
    }

    pub(super) fn refused(
        refusal: Refusal,
        path: &Path,
        position: InputPosition,
        length: u64,
    ) -> Self {
        let path = path.to_owned();
        let InputPosition { line, byte, .. } = position;
        match refusal {
            Refusal::Truncated => Self::Truncated {
                path,
                line,
                byte,
                length,
            },
            Refusal::Replaced => Self::Replaced { path, line, byte },
        }
    }

    pub(super) fn line(fault: LineFault, path: &Path) -> Self {
        let path = path.to_owned();
        match fault {
            LineFault::TooLong { line } => Self::LineTooLong { path, line },
            LineFault::Extended { line } => Self::Extended { path, line },
        }
    }
}
