//! Files, so that they are there after a power loss.
//!
//! ```text
//! replace: write aside -> synchronize -> rename -> synchronize the directory
//! ```

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;

use tidegate_boilerplate::{ConnectorError, directory};

/// Returns the error of a step on a file.
pub(crate) fn failed(step: &str, path: &str, error: &std::io::Error) -> ConnectorError {
    let message = format!("{path:?} cannot be {step}: {error}");
    match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => ConnectorError::config(
            format!("{message}; the host needs the right to write there"),
        ),
        _ => ConnectorError::transient(message),
    }
}

/// Returns the length of a file, if there is one.
pub(crate) fn length(path: &str) -> Result<Option<u64>, ConnectorError> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("looked at", path, &error)),
    }
}

/// Reads a file, if there is one.
pub(crate) fn read(path: &str) -> Result<Option<Vec<u8>>, ConnectorError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("read", path, &error)),
    }
}

/// Writes a file in place of what is there: whole or not at all, and durably.
pub(crate) fn replace(path: &str, aside: &str, bytes: &[u8]) -> Result<(), ConnectorError> {
    let write = || {
        let mut file = File::create(aside)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(|error| failed("written", aside, &error))?;
    rename(aside, path)?;
    directory::synchronize(parent(path))
}

/// Renames a file. The name is durable once its directory is synchronized.
pub(crate) fn rename(from: &str, to: &str) -> Result<(), ConnectorError> {
    fs::rename(from, to).map_err(|error| failed("renamed", from, &error))
}

/// Makes a directory, and those that it is in, durably.
pub(crate) fn make_directory(path: &str) -> Result<(), ConnectorError> {
    if Path::new(path).is_dir() {
        return Ok(());
    }
    let above = parent(path);
    if above != path {
        make_directory(above)?;
    }
    match fs::create_dir(path) {
        Ok(()) => directory::synchronize(above),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(failed("made", path, &error)),
    }
}

/// Returns the names in a directory, in order; none if it does not exist.
pub(crate) fn names(path: &str) -> Result<Vec<String>, ConnectorError> {
    let listed = match fs::read_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.and_then(|entries| {
            let name = |entry: std::io::Result<fs::DirEntry>| {
                Ok(entry?.file_name().to_string_lossy().into_owned())
            };
            entries.map(name).collect::<std::io::Result<Vec<_>>>()
        }),
    };
    let mut names = listed.map_err(|error| failed("listed", path, &error))?;
    names.sort();
    Ok(names)
}

/// Removes a file, if there is one.
pub(crate) fn remove(path: &str) -> Result<(), ConnectorError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed("removed", path, &error)),
        _ => Ok(()),
    }
}

/// Returns the directory that a path is in.
pub(crate) fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) => "/",
        Some((parent, _)) => parent,
        None => ".",
    }
}

/// Removes an empty directory.
pub(crate) fn remove_directory(path: &str) -> Result<(), ConnectorError> {
    match fs::remove_dir(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed("removed", path, &error)),
        _ => Ok(()),
    }
}
