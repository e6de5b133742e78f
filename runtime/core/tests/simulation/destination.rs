//! A destination, and what its shards' connectors stage there.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tidegate_core::{Authority, KeyRange, Opened, Source};

/// One document, by where it was read.
pub type Document = (Source, u64);

/// What survives any crash at the destination.
pub struct Destination {
    pub remote: bool,
    /// Every document that a query would see.
    pub applied: BTreeSet<Document>,
    /// Checkpoints, where the destination keeps them.
    checkpoints: BTreeMap<KeyRange, String>,
    /// Staged work, by the name that connector state gives it.
    staged: BTreeMap<KeyRange, BTreeMap<String, Vec<Document>>>,
}

impl Destination {
    pub fn new(remote: bool) -> Self {
        Destination {
            remote,
            applied: BTreeSet::new(),
            checkpoints: BTreeMap::new(),
            staged: BTreeMap::new(),
        }
    }

    /// Opens the shards of one layout; `states` are their connectors' states.
    pub fn open(&mut self, shards: &[KeyRange], states: &BTreeMap<KeyRange, Value>) -> Vec<Opened> {
        let before = std::mem::take(&mut self.checkpoints);
        let overlaps = |a: &KeyRange, b: &KeyRange| a.begin <= b.end && b.begin <= a.end;
        for shard in shards {
            let own = before.get(shard);
            let inherited = || before.iter().find(|(range, _)| overlaps(range, shard));
            let checkpoint = own.or_else(|| inherited().map(|(_, checkpoint)| checkpoint));
            if let Some(checkpoint) = checkpoint {
                self.checkpoints.insert(*shard, checkpoint.clone());
            }
        }
        // Work that no state names was staged by a session that died.
        self.staged.retain(|range, _| shards.contains(range));
        for (range, staged) in &mut self.staged {
            let state = states.get(range).unwrap_or(&Value::Null);
            staged.retain(|name, _| state["staged"].get(name).is_some());
        }
        let authority = match self.remote {
            true => Authority::Remote,
            false => Authority::Log,
        };
        let opened = |range: &KeyRange| Opened {
            authority,
            checkpoint: self.checkpoints.get(range).cloned(),
        };
        shards.iter().map(opened).collect()
    }

    /// Stages documents, where the commit is the record's.
    pub fn stage(&mut self, range: KeyRange, name: String, documents: Vec<Document>) {
        if !self.remote {
            self.staged
                .entry(range)
                .or_default()
                .insert(name, documents);
        }
    }

    /// Commits here and now, or returns the patch that names the staged work.
    pub fn start_commit(
        &mut self,
        range: KeyRange,
        name: String,
        documents: Vec<Document>,
        checkpoint: String,
    ) -> Option<Value> {
        if !self.remote {
            return Some(json!({ "staged": { name: true } }));
        }
        self.checkpoints.insert(range, checkpoint);
        self.apply(documents);
        None
    }

    /// Applies what `patch` names, unless that was done already.
    pub fn acknowledge(&mut self, range: KeyRange, patch: Option<Value>) -> Option<Value> {
        let patch = patch?;
        let names = patch["staged"]
            .as_object()
            .expect("a patch names staged work");
        for name in names.keys() {
            let staged = self.staged.entry(range).or_default().remove(name);
            self.apply(staged.unwrap_or_default());
        }
        Some(json!({ "staged": null }))
    }

    fn apply(&mut self, documents: Vec<Document>) {
        for document in documents {
            let new = self.applied.insert(document.clone());
            assert!(new, "{document:?} was applied twice");
        }
    }
}
