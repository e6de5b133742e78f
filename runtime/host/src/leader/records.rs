//! What a task keeps in the store, and the conditions under which it is
//! written.
//!
//! ```text
//! tasks/NAME/record    transactions: fence, frontier, hint, connector state
//! tasks/NAME/applied   the spec that the destination was last brought to
//! tasks/NAME/outcome   how the task last ended, for `tidegate tasks`
//! tasks/NAME/stopped   whether somebody stopped the task, until it is started again
//! ```

use std::sync::Arc;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use tidegate_core::{Binding, Record, RecordError, Source};
use tidegate_wit::message::{Spec, SpecBinding};

use crate::shard::Window;
use crate::store::{Store, StoreError};

/// What a record is written by: the revision of the one that it replaces.
pub type Revision = u64;

/// The spec that a destination was last brought to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Applied {
    /// The spec, and how its bindings were read.
    pub task: TaskSpec,
    /// Bindings whose selected fields changed since their rows were first
    /// written. Their rows may lack columns, so that a stored document which
    /// equals the loaded one must be stored all the same.
    #[serde(default)]
    pub reselected: Vec<Binding>,
}

/// A spec, and how its bindings are read: all that a replay depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskSpec {
    /// What the connector is told.
    pub spec: Spec,
    /// What it is not told, a binding each.
    pub readings: Vec<Reading>,
}

/// How a binding's documents are read and combined.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reading {
    /// The collection's schema, with its reductions.
    pub schema: Value,
    /// Which publish clocks are taken.
    pub window: Window,
    /// Whether a delete deletes the row.
    pub hard_delete: bool,
}

impl Applied {
    /// Returns what is applied after `next`, given what was applied before.
    pub fn after(last: Option<&Applied>, next: &TaskSpec) -> Applied {
        // What is no longer bound keeps its mark, for when it comes back.
        let mut reselected = last.map(|last| last.reselected.clone()).unwrap_or_default();
        for binding in &next.spec.bindings {
            let id = binding_id(binding);
            let mut before = last.iter().flat_map(|last| &last.task.spec.bindings);
            let changed = before
                .find(|before| binding_id(before) == id)
                .is_some_and(|before| {
                    before.values != binding.values || before.document != binding.document
                });
            if changed && !reselected.contains(&id) {
                reselected.push(id);
            }
        }
        Applied {
            task: next.clone(),
            reselected,
        }
    }
}

/// Returns what makes a binding the same across specs.
pub fn binding_id(binding: &SpecBinding) -> Binding {
    Binding {
        resource: binding.resource_path.clone(),
        backfill: binding.backfill,
    }
}

/// Returns what a binding reads, as frontiers name it.
pub fn source_of(binding: &SpecBinding) -> Source {
    Source {
        resource: binding.resource_path.clone(),
        backfill: binding.backfill,
        journal: binding.collection.clone(),
    }
}

/// How a task last ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Outcome {
    /// Whether it failed; it was stopped otherwise.
    pub failed: bool,
    /// The error, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When, in microseconds since the Unix epoch.
    pub at_micros: i64,
}

/// Why a task's records cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    /// Somebody else wrote the record: another host leads the task.
    #[error("another host has taken the task over")]
    TakenOver,
    /// The record is not one that this host can read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// What lies under a key is not what this host wrote.
    #[error("the store's value under {key} cannot be read: restore the store from a copy")]
    Malformed {
        /// The key.
        key: String,
        /// Why.
        source: serde_json::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// One task's part of the store.
#[derive(Clone)]
pub struct Records {
    store: Arc<dyn Store>,
    task: String,
}

impl Records {
    /// Returns the records of a task.
    pub fn new(store: Arc<dyn Store>, task: &str) -> Records {
        Records {
            store,
            task: task.to_owned(),
        }
    }

    /// Returns the task's name.
    pub(crate) fn task(&self) -> &str {
        &self.task
    }

    /// Lists the tasks that have records.
    pub async fn tasks(store: &dyn Store) -> Result<Vec<String>, RecordsError> {
        let keys = store.list("tasks/").await?;
        let name = |key: String| {
            let name = key.strip_prefix("tasks/")?.strip_suffix("/record")?;
            Some(name.to_owned())
        };
        Ok(keys.into_iter().filter_map(name).collect())
    }

    fn key(&self, what: &str) -> String {
        format!("tasks/{}/{what}", self.task)
    }

    /// Reads the task's record, with the revision to write it by.
    pub async fn record(&self) -> Result<Option<(Record, Revision)>, RecordsError> {
        let Some(found) = self.store.get(&self.key("record")).await? else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(&found.value);
        Ok(Some((Record::from_json(&text)?, found.revision)))
    }

    /// Writes the record and reads it back: the state in use is always what
    /// the store holds.
    pub async fn put_record(
        &self,
        record: &Record,
        expected: Option<Revision>,
    ) -> Result<(Record, Revision), RecordsError> {
        let value = record.to_json().into_bytes();
        match self.store.put(&self.key("record"), value, expected).await {
            Ok(_) => {}
            Err(StoreError::Conflict { .. }) => return Err(RecordsError::TakenOver),
            Err(error) => return Err(error.into()),
        }
        self.record().await?.ok_or(RecordsError::TakenOver)
    }

    /// Reads the spec that was last applied.
    pub async fn applied(&self) -> Result<Option<Applied>, RecordsError> {
        self.get("applied").await
    }

    /// Writes the spec that was last applied.
    pub async fn put_applied(&self, applied: &Applied) -> Result<(), RecordsError> {
        self.put("applied", applied).await
    }

    /// Reads how the task last ended.
    pub async fn outcome(&self) -> Result<Option<Outcome>, RecordsError> {
        self.get("outcome").await
    }

    /// Writes how the task ended.
    pub async fn put_outcome(&self, outcome: &Outcome) -> Result<(), RecordsError> {
        self.put("outcome", outcome).await
    }

    /// Reads whether the task is to stay stopped.
    pub async fn stopped(&self) -> Result<bool, RecordsError> {
        Ok(self.get("stopped").await?.unwrap_or_default())
    }

    /// Writes whether the task is to stay stopped.
    pub async fn put_stopped(&self, stopped: bool) -> Result<(), RecordsError> {
        self.put("stopped", &stopped).await
    }

    async fn get<T: DeserializeOwned>(&self, what: &str) -> Result<Option<T>, RecordsError> {
        let key = self.key(what);
        let Some(found) = self.store.get(&key).await? else {
            return Ok(None);
        };
        match serde_json::from_slice(&found.value) {
            Ok(value) => Ok(Some(value)),
            Err(source) => Err(RecordsError::Malformed { key, source }),
        }
    }

    /// Writes what only the holder of the record writes: the revision that is
    /// there is the one to replace.
    async fn put<T: Serialize>(&self, what: &str, value: &T) -> Result<(), RecordsError> {
        let key = self.key(what);
        let expected = self.store.get(&key).await?.map(|found| found.revision);
        let value = serde_json::to_vec(value).expect("records are JSON");
        self.store.put(&key, value, expected).await?;
        Ok(())
    }
}
