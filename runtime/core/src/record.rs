//! A task's durable record, and how each persist changes it.
//!
//! ```text
//! opening -> hinted -> committed -> acknowledged (-> triggered) -> hinted ...
//! ```
//!
//! Every function here takes the record in use and returns the next one; the
//! record in use is always the one that was re-read after the last write.
//! Whether a write is allowed, by owner epoch and revision, is the store's to
//! say.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::frontier::{Extents, Frontier};
use crate::layout::{Binding, Key, KeyRange, Layout};
use crate::merge_patch::merge_patch;
use crate::omission::{LeftOut, Omission};

/// The version written into every record.
///
/// A record is read by whichever host takes the task over, older ones
/// included: one that does not know the version must refuse, not guess.
pub const RECORD_VERSION: u64 = 1;

/// How many stored counts of non-empty transactions are kept.
///
/// Five small ones in a row are what connectors take for "not backfilling".
pub const STORED_HISTORY_MAX: usize = 5;

/// What stops an older session from writing: strictly higher at every open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fence {
    /// Raised whenever the task changes hands.
    pub owner_epoch: u64,
    /// Raised whenever a session opens.
    pub session: u64,
}

/// Everything durable about a task's transactions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Record {
    version: u64,
    /// The fence of the session that wrote the record.
    pub fence: Fence,
    /// The last commit.
    pub committed: Committed,
    /// The transaction that was about to be stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hinted: Option<Hint>,
    /// The connector's state, by key range.
    #[serde(default)]
    pub states: BTreeMap<KeyRange, Value>,
    /// The highest key of each binding that may be at the destination.
    #[serde(default)]
    pub max_keys: MaxKeys,
    /// Rows stored by the last non-empty transactions, oldest first.
    #[serde(default)]
    pub stored_history: Vec<u64>,
    /// Whether the destination ever held a checkpoint of this task.
    #[serde(default)]
    pub remote_checkpoint_seen: bool,
    /// Documents that commits left out.
    #[serde(default, skip_serializing_if = "LeftOut::is_none")]
    pub left_out: LeftOut,
}

/// A commit, and what is left to do after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Committed {
    /// What it covers.
    pub frontier: Frontier,
    /// What it was read under.
    pub layout: Layout,
    /// Whether every shard has acknowledged it.
    pub acknowledged: bool,
    /// The state patches of its start-commit, by key range.
    #[serde(default)]
    pub patches: BTreeMap<KeyRange, Value>,
    /// What it stored, if triggers are still to run over it. Empty where a
    /// part of it was stored before a crash, and is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Vec<StoredRows>>,
}

/// The rows that a transaction stored for one binding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StoredRows {
    /// The binding's resource.
    pub resource: Vec<String>,
    /// How many rows.
    pub rows: u64,
}

/// A transaction that was about to be stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Hint {
    /// What it read.
    pub extents: Extents,
    /// What it was read under.
    pub layout: Layout,
    /// What it leaves out, in the order in which it was refused. With any, it is
    /// replayed also where nothing of it was stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub omissions: Vec<Omission>,
}

impl Hint {
    /// Says whether a commit up to `frontier` is this transaction's.
    fn is_within(&self, frontier: &Frontier) -> bool {
        let mut extents = self.extents.iter();
        extents.all(|(source, extent)| extent.upper <= frontier.next(source))
    }
}

/// The highest key of each binding.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<MaxKey>", into = "Vec<MaxKey>")]
pub struct MaxKeys {
    keys: BTreeMap<Binding, Key>,
}

impl MaxKeys {
    /// Returns the highest key of `binding`, if it has any.
    pub fn get(&self, binding: &Binding) -> Option<&Key> {
        self.keys.get(binding)
    }

    /// Raises the highest key of `binding` to `key`; never lowers it. Those of
    /// its earlier backfills are dropped.
    pub fn raise(&mut self, binding: Binding, key: Key) {
        self.keys.retain(|older, _| {
            older.resource != binding.resource || older.backfill >= binding.backfill
        });
        let highest = self.keys.entry(binding).or_insert_with(|| key.clone());
        if *highest < key {
            *highest = key;
        }
    }

    fn raised(&self, other: &MaxKeys) -> MaxKeys {
        let mut raised = self.clone();
        for (binding, key) in &other.keys {
            raised.raise(binding.clone(), key.clone());
        }
        raised
    }
}

/// An entry of [`MaxKeys`], as it is written.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct MaxKey {
    binding: Binding,
    key: Key,
}

impl From<MaxKeys> for Vec<MaxKey> {
    fn from(keys: MaxKeys) -> Self {
        let entry = |(binding, key)| MaxKey { binding, key };
        keys.keys.into_iter().map(entry).collect()
    }
}

impl From<Vec<MaxKey>> for MaxKeys {
    fn from(entries: Vec<MaxKey>) -> Self {
        let mut keys = MaxKeys::default();
        for MaxKey { binding, key } in entries {
            keys.raise(binding, key);
        }
        keys
    }
}

/// Why a record could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It was written by a newer host.
    #[error(
        "the task's record has version {found}, and this host knows versions up to \
         {RECORD_VERSION}: run a host at least as new as the one that wrote it"
    )]
    Version {
        /// The version it carries.
        found: u64,
    },
    /// It is not a record.
    #[error("the task's record cannot be read: restore the store from a copy")]
    Malformed(#[source] serde_json::Error),
}

/// The part of a record that every version has.
#[derive(Deserialize)]
struct Header {
    version: u64,
}

/// What a commit brings to the record.
pub(crate) struct Commit {
    pub(crate) patches: BTreeMap<KeyRange, Value>,
    pub(crate) stored: Vec<StoredRows>,
    /// Whether some shard had stored its part before a crash.
    pub(crate) partly_stored_before: bool,
    pub(crate) remote: bool,
    pub(crate) triggers: bool,
}

impl Record {
    /// Returns the record of a task that never ran.
    pub fn new() -> Self {
        Record {
            version: RECORD_VERSION,
            fence: Fence {
                owner_epoch: 0,
                session: 0,
            },
            committed: Committed {
                frontier: Frontier::default(),
                layout: Layout::default(),
                acknowledged: true,
                patches: BTreeMap::new(),
                trigger: None,
            },
            hinted: None,
            states: BTreeMap::new(),
            max_keys: MaxKeys::default(),
            stored_history: Vec::new(),
            remote_checkpoint_seen: false,
            left_out: LeftOut::default(),
        }
    }

    /// Writes the record as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a record's keys are all strings")
    }

    /// Reads what [`Record::to_json`] wrote.
    pub fn from_json(text: &str) -> Result<Record, RecordError> {
        let header: Header = serde_json::from_str(text).map_err(RecordError::Malformed)?;
        if header.version != RECORD_VERSION {
            return Err(RecordError::Version {
                found: header.version,
            });
        }
        serde_json::from_str(text).map_err(RecordError::Malformed)
    }

    /// Returns the frontier that the hinted transaction would commit.
    pub fn hinted_frontier(&self) -> Option<Frontier> {
        let hint = self.hinted.as_ref()?;
        Some(self.committed.frontier.advanced(&hint.extents))
    }

    /// Returns the layout of the work that is left: a transaction that was about
    /// to be stored, or a commit that was not acknowledged.
    pub fn unfinished(&self) -> Option<&Layout> {
        match &self.hinted {
            Some(hint) => Some(&hint.layout),
            None if !self.committed.acknowledged => Some(&self.committed.layout),
            None => None,
        }
    }

    /// Returns the record of the next session, to be written before any
    /// connector opens: it is what makes the fence rise.
    ///
    /// If all bindings of the work that is left were backfilled since, it is
    /// dropped, as their rows are all written again. That is the way on from
    /// work that cannot be finished.
    #[must_use]
    pub fn opening(&self, owner_epoch: u64, current: &Layout) -> Record {
        let superseded = self
            .unfinished()
            .is_some_and(|left| left.is_superseded_by(current));
        let mut next = match superseded {
            true => self.without_unfinished(),
            false => self.clone(),
        };
        next.fence = Fence {
            owner_epoch,
            session: self.fence.session + 1,
        };
        next
    }

    /// Returns the record in which a transaction is about to be stored.
    ///
    /// The highest keys rise here, not at the commit: a destination that is
    /// not atomic may keep rows of a transaction that never committed.
    #[must_use]
    pub(crate) fn with_hint(&self, hint: Hint, max_keys: &MaxKeys) -> Record {
        let mut next = self.clone();
        // The state of a shard that is gone must not come back with a later
        // layout: what it names as staged is long applied.
        next.states
            .retain(|range, _| hint.layout.shards.contains(range));
        next.max_keys = self.max_keys.raised(max_keys);
        next.hinted = Some(hint);
        next
    }

    /// Returns the record in which the hinted transaction is committed.
    #[must_use]
    pub(crate) fn with_commit(&self, commit: Commit) -> Record {
        let hint = self.hinted.clone().expect("a commit follows its hint");
        let rows: u64 = commit.stored.iter().map(|stored| stored.rows).sum();
        let mut next = self.clone();
        next.committed = Committed {
            frontier: self.committed.frontier.advanced(&hint.extents),
            layout: hint.layout,
            acknowledged: false,
            trigger: trigger(&commit, rows),
            patches: commit.patches.clone(),
        };
        next.hinted = None;
        next.left_out.count(&hint.omissions);
        next.patch_states(&commit.patches);
        next.remember_stored(rows);
        next.remote_checkpoint_seen |= commit.remote;
        next
    }

    /// Returns the record in which the commit is acknowledged.
    #[must_use]
    pub(crate) fn with_acknowledgement(
        &self,
        patches: &BTreeMap<KeyRange, Value>,
        triggers: bool,
    ) -> Record {
        let mut next = self.clone();
        next.committed.acknowledged = true;
        next.committed.patches.clear();
        next.committed.trigger = next.committed.trigger.filter(|_| triggers);
        next.patch_states(patches);
        next
    }

    /// Returns the record in which the commit's triggers have run.
    #[must_use]
    pub(crate) fn with_triggers_run(&self) -> Record {
        let mut next = self.clone();
        next.committed.trigger = None;
        next
    }

    /// Returns the record in which the destination's own checkpoint is the
    /// last commit.
    #[must_use]
    pub(crate) fn with_adopted(
        &self,
        frontier: Frontier,
        layout: Layout,
        triggers: bool,
    ) -> Record {
        let mut next = self.without_hint();
        if let Some(hint) = self.hinted.as_ref().filter(|it| it.is_within(&frontier)) {
            next.left_out.count(&hint.omissions);
        }
        next.committed = Committed {
            frontier,
            layout,
            acknowledged: false,
            patches: BTreeMap::new(),
            trigger: triggers.then(Vec::new),
        };
        next
    }

    /// Returns the record without its hint.
    #[must_use]
    pub(crate) fn without_hint(&self) -> Record {
        Record {
            hinted: None,
            ..self.clone()
        }
    }

    /// Returns the record whose hinted transaction leaves nothing out.
    #[must_use]
    pub(crate) fn without_omissions(&self) -> Record {
        let mut next = self.clone();
        if let Some(hint) = &mut next.hinted {
            hint.omissions.clear();
        }
        next
    }

    fn without_unfinished(&self) -> Record {
        let mut next = self.without_hint();
        next.committed.acknowledged = true;
        next.committed.patches.clear();
        next.committed.trigger = None;
        // What the states name as staged must not be applied any more.
        next.states.clear();
        next
    }

    fn patch_states(&mut self, patches: &BTreeMap<KeyRange, Value>) {
        for (range, patch) in patches {
            let state = self.states.remove(range).unwrap_or(Value::Null);
            self.states.insert(*range, merge_patch(state, patch));
        }
    }

    fn remember_stored(&mut self, rows: u64) {
        if rows == 0 {
            return;
        }
        self.stored_history.push(rows);
        let excess = self.stored_history.len().saturating_sub(STORED_HISTORY_MAX);
        self.stored_history.drain(..excess);
    }
}

impl Default for Record {
    fn default() -> Self {
        Record::new()
    }
}

/// Decides what a commit's triggers run over.
///
/// A transaction that stored nothing triggers nothing. One that a crash
/// interrupted may have stored rows that were not counted, and triggers.
fn trigger(commit: &Commit, rows: u64) -> Option<Vec<StoredRows>> {
    let runs = commit.triggers && (rows > 0 || commit.partly_stored_before);
    runs.then(|| match commit.partly_stored_before {
        true => Vec::new(),
        false => commit.stored.clone(),
    })
}

#[cfg(test)]
mod tests;
