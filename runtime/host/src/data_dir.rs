//! The data directory: who may use it, and where things are in it.
//!
//! ```text
//! DIR/format            the version of everything below
//! DIR/lock              held by the host that runs on it
//! DIR/state.redb        the embedded store
//! DIR/journals/         the embedded journals
//! DIR/cache/            compiled connectors; may be deleted
//! ```

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The version of the layout that this host reads and writes.
pub const FORMAT_VERSION: u32 = 1;

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// Another process holds it.
    #[error(
        "{} is in use by process {holder}: stop that host, or name another directory with --data-dir",
        dir.display()
    )]
    InUse {
        /// The directory.
        dir: PathBuf,
        /// The process id that the holder wrote, or `unknown`.
        holder: String,
    },
    /// A newer host made it.
    #[error(
        "{} has format {found}, and this host knows formats up to {FORMAT_VERSION}: run a host at \
         least as new as the one that wrote it",
        dir.display()
    )]
    Newer {
        /// The directory.
        dir: PathBuf,
        /// Its version.
        found: u32,
    },
    /// It is a directory of something else.
    #[error(
        "{} is not a data directory of tidegate, and not empty: name another one with --data-dir",
        dir.display()
    )]
    Foreign {
        /// The directory.
        dir: PathBuf,
    },
    /// It does not exist, and is not to be made.
    #[error(
        "there is no data directory at {}: `tidegate run` or `tidegate append` makes one; \
         --data-dir or TIDEGATE_DATA_DIR names another",
        dir.display()
    )]
    Missing {
        /// The directory.
        dir: PathBuf,
    },
    /// It cannot be read or written.
    #[error("cannot use {} as data directory", path.display())]
    Io {
        /// What could not be read or written.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A data directory that this process holds until the value is dropped.
#[derive(Debug)]
pub struct DataDir {
    dir: PathBuf,
    // The lock ends with the process at the latest, also after kill -9.
    _lock: File,
}

impl DataDir {
    /// Makes the directory if need be, checks it, and takes its lock.
    pub fn create(dir: &Path) -> Result<DataDir, DataDirError> {
        // Configurations have passwords, and they are kept here.
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(dir).map_err(at(dir))?;
        Self::open(dir)
    }

    /// Checks the directory and takes its lock.
    pub fn open(dir: &Path) -> Result<DataDir, DataDirError> {
        let dir = match dir.canonicalize() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(DataDirError::Missing { dir: dir.into() });
            }
            canonical => canonical.map_err(at(dir))?,
        };
        let format = dir.join("format");
        let known = format.try_exists().map_err(at(&format))?;
        if !known && !is_empty(&dir)? {
            return Err(DataDirError::Foreign { dir });
        }
        // Before the lock: a newer host that runs may lock otherwise.
        if known {
            check_format(&dir, &format)?;
        }
        let lock = lock(&dir)?;
        if !known {
            write_format(&format)?;
        }
        Ok(DataDir { dir, _lock: lock })
    }

    /// Returns the directory.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Returns where compiled connectors are kept.
    pub fn cache(&self) -> PathBuf {
        self.dir.join("cache")
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> DataDirError {
    let path = path.to_owned();
    |source| DataDirError::Io { path, source }
}

/// A directory that a host locked and was killed in before it wrote the format
/// is as good as empty.
fn is_empty(dir: &Path) -> Result<bool, DataDirError> {
    for entry in fs::read_dir(dir).map_err(at(dir))? {
        let name = entry.map_err(at(dir))?.file_name();
        if name != "lock" && name != "format.new" {
            return Ok(false);
        }
    }
    Ok(true)
}

fn lock(dir: &Path) -> Result<File, DataDirError> {
    let path = dir.join("lock");
    let mut options = File::options();
    let options = options.read(true).write(true).create(true).truncate(false);
    let mut file = options.open(&path).map_err(at(&path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // Only for the message; the holder may be about to write it.
            let _ = file.read_to_string(&mut holder);
            let holder = match holder.trim() {
                "" => "unknown".to_owned(),
                holder => holder.to_owned(),
            };
            return Err(DataDirError::InUse {
                dir: dir.into(),
                holder,
            });
        }
        Err(TryLockError::Error(source)) => return Err(at(&path)(source)),
    }
    let written = file
        .set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{}", std::process::id()));
    written.map_err(at(&path))?;
    Ok(file)
}

fn check_format(dir: &Path, format: &Path) -> Result<(), DataDirError> {
    let text = fs::read_to_string(format).map_err(at(format))?;
    match text.trim().parse::<u32>() {
        Ok(found) if found > FORMAT_VERSION => Err(DataDirError::Newer {
            dir: dir.into(),
            found,
        }),
        Ok(_) => Ok(()),
        Err(_) => Err(DataDirError::Foreign { dir: dir.into() }),
    }
}

/// Writes the version whole or not at all: half a number would be another one.
fn write_format(format: &Path) -> Result<(), DataDirError> {
    let new = format.with_extension("new");
    let write = || {
        let mut file = File::create(&new)?;
        writeln!(file, "{FORMAT_VERSION}")?;
        file.sync_all()?;
        fs::rename(&new, format)
    };
    write().map_err(at(format))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holder_at_a_time_and_the_next_one_after() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("data");
        let held = DataDir::create(&dir).unwrap();
        let error = DataDir::create(&dir).unwrap_err().to_string();
        assert!(
            error.contains(&format!("process {}", std::process::id())),
            "{error}"
        );
        drop(held);
        DataDir::open(&dir).unwrap();
    }

    #[test]
    fn what_is_not_ours_is_left_alone() {
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join("thesis.tex"), "years of work").unwrap();
        let error = DataDir::create(temp.path()).unwrap_err();
        assert!(matches!(error, DataDirError::Foreign { .. }), "{error}");
        assert_eq!(
            fs::read_dir(temp.path()).unwrap().count(),
            1,
            "nothing was written"
        );
    }

    #[test]
    fn a_newer_format_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        drop(DataDir::create(temp.path()).unwrap());
        fs::write(temp.path().join("format"), "2\n").unwrap();
        let error = DataDir::open(temp.path()).unwrap_err();
        assert!(
            matches!(error, DataDirError::Newer { found: 2, .. }),
            "{error}"
        );
    }

    #[test]
    fn a_missing_one_is_not_made_by_open() {
        let temp = tempfile::tempdir().unwrap();
        let error = DataDir::open(&temp.path().join("no")).unwrap_err();
        assert!(matches!(error, DataDirError::Missing { .. }), "{error}");
    }
}
