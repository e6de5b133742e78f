//! Transactions: what is staged, what it will be called, and how it gets there.
//!
//! ```text
//! staged files -> Pending (in the host's log) -> renamed, each -> manifest, one rename -> there
//! ```
//!
//! Each step may be taken again after any crash: what is done already is left alone.
//! Names are decided before the host commits, so every attempt uses the same.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_boilerplate::{ConnectorError, Fence, directory, instant};

use crate::config::Partition;
use crate::disk;
use crate::owner;
use crate::root::Root;

/// The connector's state, and the form of its patches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct State {
    /// The last transaction that has a manifest, or will have; they count from 1.
    #[serde(default)]
    pub(crate) sequence: u64,
    /// That transaction, while it may lack its manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pending: Option<Pending>,
}

/// A transaction on its way to having a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Pending {
    pub(crate) manifest: Manifest,
    /// Where each of the manifest's files is staged, seen from the directory.
    pub(crate) staged: Vec<String>,
}

/// A transaction: a file of `manifest/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Manifest {
    pub(crate) sequence: u64,
    /// When it was committed, RFC 3339 in UTC.
    pub(crate) committed_at: String,
    pub(crate) files: Vec<Entry>,
}

/// A file of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Entry {
    /// Seen from the directory.
    pub(crate) path: String,
    pub(crate) folder: String,
    /// The binding's backfill counter: files of a lower one are of an older filling.
    pub(crate) backfill: u32,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

impl State {
    /// Reads the state that the host keeps.
    pub(crate) fn read(state: &Value) -> Result<Self, ConnectorError> {
        if state.is_null() {
            return Ok(State::default());
        }
        Self::deserialize(state).map_err(|error| {
            ConnectorError::internal(format!("the connector's state is not one of it: {error}"))
        })
    }

    /// Refuses a directory whose transactions are not those of the state.
    pub(crate) fn check(&self, root: &Root) -> Result<(), ConnectorError> {
        let Self { sequence, pending } = self;
        let next = root.manifest(sequence + 1);
        if disk::length(&next)?.is_some() {
            return Err(ConnectorError::schema(format!(
                "the directory holds {next:?}, and the host knows of {sequence} transactions: its data directory was \
                 lost, or is another's. Bring it back, or name another directory"
            )));
        }
        let last = root.manifest(*sequence);
        if *sequence > 0 && pending.is_none() && disk::length(&last)?.is_none() {
            return Err(ConnectorError::schema(format!(
                "the directory lacks {last:?}, which was written: it was emptied or replaced. Put it back, or name \
                 another directory and raise the bindings' backfill counters"
            )));
        }
        Ok(())
    }

    /// Says whether a staged file, seen from the directory, is still to be renamed.
    pub(crate) fn names(&self, staged: &str) -> bool {
        let mut pending = self.pending.iter().flat_map(|it| &it.staged);
        pending.any(|it| it == staged)
    }
}

impl Pending {
    /// Gives every file its name, and then the transaction its manifest.
    pub(crate) fn publish(&self, root: &Root, fence: Fence) -> Result<(), ConnectorError> {
        let Manifest {
            sequence, files, ..
        } = &self.manifest;
        let manifest = root.manifest(*sequence);
        if disk::length(&manifest)?.is_some() {
            return Ok(());
        }
        owner::check(root, fence)?;
        // Those above them, too: a session that was killed may have made them and no more.
        let mut directories = BTreeSet::from([root.path("")]);
        for (file, staged) in files.iter().zip(&self.staged) {
            let path = root.path(&file.path);
            disk::make_directory(disk::parent(&path))?;
            place(&root.path(staged), &path, file)?;
            let slashes = file.path.match_indices('/');
            directories.extend(slashes.map(|(end, _)| root.path(&file.path[..end])));
        }
        disk::make_directory(disk::parent(&manifest))?;
        for path in &directories {
            directory::synchronize(path)?;
        }
        // Once more: the files may have taken long, and the manifest is what counts.
        owner::check(root, fence)?;
        let mut text = serde_json::to_vec(&self.manifest).expect("a manifest is text and numbers");
        text.push(b'\n');
        disk::replace(&manifest, &root.aside(fence), &text)
    }
}

/// Gives a staged file its name, unless it has it.
fn place(staged: &str, path: &str, file: &Entry) -> Result<(), ConnectorError> {
    match (disk::length(staged)?, disk::length(path)?) {
        (Some(bytes), None) if bytes == file.bytes => disk::rename(staged, path),
        (None, Some(bytes)) if bytes == file.bytes => Ok(()),
        (_, Some(_)) => Err(ConnectorError::schema(format!(
            "{path:?} exists, and is not the file that is to be there: move it away"
        ))),
        _ => Err(ConnectorError::schema(format!(
            "{staged:?} is committed, and is gone or cut: restore the directory, or raise the backfill counter of the \
             binding with folder {:?}",
            file.folder
        ))),
    }
}

/// Returns the folder of a binding's files, seen from the directory, for a commit at
/// an instant.
pub(crate) fn folder(folder: &str, backfill: u32, partition: Partition, micros: i64) -> String {
    let (year, month, day) = instant::civil(micros.div_euclid(instant::DAY));
    let hour = micros.rem_euclid(instant::DAY) / instant::HOUR;
    match partition {
        Partition::None => format!("{folder}/v{backfill}"),
        Partition::Daily => format!("{folder}/v{backfill}/{year:04}/{month:02}/{day:02}"),
        Partition::Hourly => {
            format!("{folder}/v{backfill}/{year:04}/{month:02}/{day:02}/{hour:02}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_named_by_the_commit_in_utc() {
        let micros = instant::date_time("2026-12-01T23:59:59+00:00").unwrap();
        let cases = [
            (Partition::None, 0, "orders/v0"),
            (Partition::Daily, 0, "orders/v0/2026/12/01"),
            (Partition::Hourly, 3, "orders/v3/2026/12/01/23"),
        ];
        for (partition, backfill, want) in cases {
            assert_eq!(folder("orders", backfill, partition, micros), want);
        }
    }
}
