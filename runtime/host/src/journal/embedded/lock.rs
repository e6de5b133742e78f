//! Keeps other processes out of a directory of journals.

use crate::journal::JournalError;
use std::fs::{File, TryLockError};
use std::path::Path;

/// A lock on a file, until dropped or the process ends in whatever way.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// Takes the lock, or says that another has it.
    pub(super) fn take(path: &Path) -> Result<Self, JournalError> {
        let failed = |source| JournalError::io("locking", path, source);
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(JournalError::InUse {
                path: path.to_owned(),
            }),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }
}

impl Drop for Lock {
    /// Unlocks the file, which closing it would not do while a process that is just
    /// being started from this one still has a copy of it.
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "the journals' lock is kept until the process ends");
        }
    }
}
