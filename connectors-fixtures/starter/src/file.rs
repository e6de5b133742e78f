//! The destination: a JSON file, read whole and written whole.
//!
//! ```text
//! write: FILE.new, flushed -> renamed to FILE
//! ```
//!
//! A rename replaces the file at once: after a crash there is the old content or
//! the new one, and nothing in between.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tidegate_boilerplate::{ConnectorError, Fence};

/// What the file holds.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Contents {
    pub(crate) tasks: BTreeMap<String, Task>,
    pub(crate) tables: BTreeMap<String, Table>,
}

/// How far a task is, and who may go on.
#[derive(Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) fence: Fence,
    pub(crate) checkpoint: Option<String>,
}

/// The documents of a binding.
#[derive(Serialize, Deserialize)]
pub(crate) struct Table {
    pub(crate) task: String,
    pub(crate) backfill: u32,
    pub(crate) rows: BTreeMap<String, Box<RawValue>>,
}

impl Table {
    /// Returns an empty one.
    pub(crate) fn of(task: &str, backfill: u32) -> Table {
        Table {
            task: task.to_owned(),
            backfill,
            rows: BTreeMap::new(),
        }
    }
}

impl Contents {
    /// Reads the file; one that is not there yet is empty.
    pub(crate) fn read(path: &str) -> Result<Contents, ConnectorError> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Contents::default()),
            Err(error) => {
                let message = format!("{path} cannot be read: {error}");
                return Err(ConnectorError::transient(message));
            }
        };
        serde_json::from_str(&text).map_err(|error| {
            ConnectorError::schema(format!(
                "{path} is not a file of this connector: {error}; name another one, or move it away"
            ))
        })
    }

    /// Replaces the file.
    pub(crate) fn write(&self, path: &str) -> Result<(), ConnectorError> {
        let failed = |error: std::io::Error| {
            ConnectorError::transient(format!("{path} cannot be written: {error}"))
        };
        let text = serde_json::to_vec(self).map_err(|error| failed(error.into()))?;
        let new = format!("{path}.new");
        let mut file = File::create(&new).map_err(failed)?;
        file.write_all(&text).map_err(failed)?;
        // Else a crash of the machine could leave the name with nothing under it.
        file.sync_all().map_err(failed)?;
        fs::rename(&new, path).map_err(failed)
    }

    /// Returns a binding's table.
    pub(crate) fn table(&self, name: &str) -> Result<&Table, ConnectorError> {
        self.tables.get(name).ok_or_else(|| gone(name))
    }

    /// Returns a binding's table, to change it.
    pub(crate) fn table_mut(&mut self, name: &str) -> Result<&mut Table, ConnectorError> {
        self.tables.get_mut(name).ok_or_else(|| gone(name))
    }
}

fn gone(name: &str) -> ConnectorError {
    ConnectorError::schema(format!(
        "table {name:?} is gone: raise the binding's backfill counter to fill it anew"
    ))
}

/// Returns a key as text that sorts as the key does.
pub(crate) fn key_text(tuple: &[u8]) -> String {
    let mut text = String::with_capacity(2 * tuple.len());
    for byte in tuple {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
