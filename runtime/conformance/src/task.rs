//! A task of a check: what a host keeps, over every crash of its sessions.
//!
//! ```text
//! apply -> open -> transact .. -> [killed] -> settle: open, acknowledge or replay -> ..
//! ```

use std::collections::BTreeMap;

use serde_json::Value;
use tidegate_core::merge_patch;
use tidegate_host::document::{Extractor, Locations, Tape};
use tidegate_wit::message::{
    ApplyRequest, Authority, Constraint, ConstraintKind, Fence, KeyRange, OpenRequest, Projection,
    Spec, SpecBinding,
};

use crate::bench::{Bench, Updates};
use crate::failure::Failure;
use crate::kill::Kill;
use crate::run::{Keys, Run, compare};
use crate::sample::{Collection, DOCUMENT, SEQ, Write};

/// As many counts of stored documents does a host keep.
const STORED_COUNTS: usize = 5;

/// A transaction of a check: each key once a binding.
#[derive(Clone, Debug)]
pub(crate) struct Txn {
    pub(crate) writes: Vec<Write>,
    pub(crate) checkpoint: String,
}

/// What a host keeps of a task, and what it knows to be committed.
pub(crate) struct Task<'b> {
    pub(crate) bench: &'b Bench,
    pub(crate) spec: Spec,
    pub(crate) updates: Vec<Updates>,
    names: Vec<String>,
    state: Value,
    pub(crate) checkpoint: Option<String>,
    /// Patches of the last transaction, until it is acknowledged.
    pub(crate) unacknowledged: Option<Vec<Value>>,
    pub(crate) stored_counts: Vec<u64>,
    pub(crate) fence: Fence,
    applied: Option<Spec>,
    txns: u64,
    committed: Vec<Committed>,
}

/// What is committed of a binding.
#[derive(Clone, Debug, Default)]
pub(crate) struct Committed {
    /// By key tuple, of a standard binding.
    pub(crate) documents: BTreeMap<Vec<u8>, String>,
    /// [`SEQ`] of every document, of a binding of delta updates.
    pub(crate) added: Vec<i64>,
}

impl<'b> Task<'b> {
    /// Asks the connector how the bindings can be held.
    pub(crate) async fn new(
        bench: &'b Bench,
        check: &str,
        bindings: &[(Updates, Collection)],
    ) -> Result<Task<'b>, Failure> {
        let mut asked = Vec::new();
        let mut names = Vec::new();
        for (nth, (updates, collection)) in bindings.iter().enumerate() {
            names.push(bench.name(check, nth));
            asked.push((bench.resource(*updates, check, nth)?, collection.clone()));
        }
        let answer = bench.validate(&asked).await?;
        let mut spec = Spec {
            task: format!("conformance/{}", bench.name(check, 0)),
            config: bench.config(check),
            bindings: Vec::new(),
            sync_schedule: None,
        };
        if answer.bindings.len() != asked.len() {
            return Err(Failure::wrong(format!(
                "validate answered for {} bindings, and was asked about {}",
                answer.bindings.len(),
                asked.len()
            )));
        }
        for ((resource, collection), validated) in asked.into_iter().zip(answer.bindings) {
            let key = held(&collection.key, &validated.constraints, true)?;
            let values = held(&collection.values, &validated.constraints, false)?;
            let root = validated.constraints.get(DOCUMENT);
            spec.bindings.push(SpecBinding {
                collection: "conformance/documents".to_owned(),
                resource,
                resource_path: validated.resource_path,
                delta_updates: validated.delta_updates,
                backfill: 0,
                key,
                values,
                document: root
                    .is_some_and(|it| it.kind != ConstraintKind::Forbidden)
                    .then(|| DOCUMENT.to_owned()),
            });
        }
        Ok(Task {
            bench,
            updates: bindings.iter().map(|(updates, _)| *updates).collect(),
            names,
            state: Value::Object(Default::default()),
            checkpoint: None,
            unacknowledged: None,
            stored_counts: Vec::new(),
            fence: Fence {
                epoch: 1,
                session: 0,
            },
            applied: None,
            txns: 0,
            committed: vec![Committed::default(); spec.bindings.len()],
            spec,
        })
    }

    /// Brings the destination to the spec; returns what was done.
    pub(crate) async fn apply(&mut self) -> Result<Vec<String>, Failure> {
        let last = self.applied.clone();
        self.apply_from(last, false).await
    }

    /// Applies the spec from another one, perhaps only for show.
    pub(crate) async fn apply_from(
        &mut self,
        last: Option<Spec>,
        dry_run: bool,
    ) -> Result<Vec<String>, Failure> {
        let request = ApplyRequest {
            last,
            next: self.spec.clone(),
            state: self.state.clone(),
            dry_run,
        };
        let mut session = self.bench.start(&self.spec).await?;
        let response = session.apply(&request).await?;
        match (dry_run, response.patch) {
            (true, Some(patch)) => {
                return Err(Failure::wrong(format!(
                    "a dry run of apply returned a state patch, {patch}"
                )));
            }
            (true, None) => {}
            (false, patch) => {
                patch.iter().for_each(|patch| self.merge(patch));
                self.applied = Some(self.spec.clone());
            }
        }
        Ok(response.actions)
    }

    /// Raises the backfill counter of every binding: what was committed is gone.
    pub(crate) fn raise_backfill(&mut self) {
        for binding in &mut self.spec.bindings {
            binding.backfill += 1;
        }
        self.committed.fill(Committed::default());
    }

    /// Starts a session, with the next fence.
    pub(crate) async fn open(&mut self) -> Result<Run, Failure> {
        self.open_killed(None).await
    }

    /// Starts a session that is killed at some point.
    pub(crate) async fn open_killed(&mut self, kill: Option<Kill>) -> Result<Run, Failure> {
        self.fence.session += 1;
        let session = self.bench.start(&self.spec).await?;
        Run::open(session, self.open_request(self.fence), kill).await
    }

    /// Returns what a session is opened with.
    pub(crate) fn open_request(&self, fence: Fence) -> OpenRequest {
        OpenRequest {
            spec: self.spec.clone(),
            range: KeyRange::FULL,
            state: self.state.clone(),
            checkpoint: self.checkpoint.clone(),
            fence,
        }
    }

    /// Returns a transaction of some writes. Its checkpoint is text that only the
    /// host understands, with signs that careless code would trip over.
    pub(crate) fn txn(&mut self, writes: Vec<Write>) -> Txn {
        self.txns += 1;
        Txn {
            writes,
            checkpoint: format!("{{\"it's/ä\\n;--\":{}}}", self.txns),
        }
    }

    /// Runs a transaction in a session.
    pub(crate) async fn transact(
        &mut self,
        run: &mut Run,
        writes: Vec<Write>,
    ) -> Result<(), Failure> {
        let txn = self.txn(writes);
        run.transact(self, &txn).await
    }

    /// Compares everything that is committed with what a new session loads.
    pub(crate) async fn check_committed(&mut self) -> Result<(), Failure> {
        let mut run = self.open().await?;
        let mut keys = Keys::new();
        for (binding, updates) in (0..).zip(&self.updates) {
            if *updates == Updates::Standard {
                let committed = self.committed(binding).documents.keys();
                keys.insert(binding, committed.cloned().collect());
            }
        }
        let loaded = run.load(self, &keys).await?;
        compare(self, &keys, &loaded)
    }

    /// Recovers as a host does from whatever a session has left of a transaction.
    pub(crate) async fn settle(&mut self, txn: &Txn) -> Result<(), Failure> {
        let mut run = self.open().await?;
        if run.opened.authority == Authority::Remote {
            self.adopt(&run, txn)?;
        }
        if self.unacknowledged.is_some() {
            run.acknowledge(self, true).await?;
        }
        if self.checkpoint.as_deref() != Some(&txn.checkpoint) {
            run.transact(self, txn).await?;
        }
        Ok(())
    }

    /// Takes the destination's word for whether a transaction is committed.
    fn adopt(&mut self, run: &Run, txn: &Txn) -> Result<(), Failure> {
        let found = run.opened.checkpoint.as_deref();
        if found == self.checkpoint.as_deref() {
            return Ok(());
        }
        if found != Some(&txn.checkpoint) {
            return Err(Failure::wrong(format!(
                "open returned the checkpoint {found:?}, and what was committed last is {:?}",
                self.checkpoint
            )));
        }
        self.persist(txn, None);
        Ok(())
    }

    /// Keeps what a host keeps before it acknowledges.
    pub(crate) fn persist(&mut self, txn: &Txn, patch: Option<Value>) {
        patch.iter().for_each(|patch| self.merge(patch));
        self.unacknowledged = Some(patch.into_iter().collect());
        self.checkpoint = Some(txn.checkpoint.clone());
        if !txn.writes.is_empty() {
            self.stored_counts.push(txn.writes.len() as u64);
            let surplus = self.stored_counts.len().saturating_sub(STORED_COUNTS);
            self.stored_counts.drain(..surplus);
        }
        for write in &txn.writes {
            let key = self.key(write);
            let binding = write.binding as usize;
            let committed = &mut self.committed[binding];
            match self.updates[binding] {
                Updates::Delta => committed.added.push(seq(&write.document)),
                Updates::Standard if write.delete => {
                    committed.documents.remove(&key);
                }
                Updates::Standard => {
                    committed.documents.insert(key, write.document.clone());
                }
            }
        }
    }

    /// Merges a patch into the connector's state.
    pub(crate) fn merge(&mut self, patch: &Value) {
        self.state = merge_patch(std::mem::take(&mut self.state), patch);
    }

    /// Returns what is committed of a binding.
    pub(crate) fn committed(&self, binding: u32) -> &Committed {
        &self.committed[binding as usize]
    }

    /// Returns the name of a binding's resource.
    pub(crate) fn name(&self, binding: u32) -> &str {
        &self.names[binding as usize]
    }

    /// Returns the key tuple of a document.
    pub(crate) fn key(&self, write: &Write) -> Vec<u8> {
        self.tuple(write, true)
    }

    /// Returns the values tuple of a document.
    pub(crate) fn values(&self, write: &Write) -> Vec<u8> {
        self.tuple(write, false)
    }

    fn tuple(&self, write: &Write, key: bool) -> Vec<u8> {
        let binding = &self.spec.bindings[write.binding as usize];
        let extractor = match key {
            true => Extractor::key(&binding.key),
            false => Extractor::values(&binding.values),
        };
        let mut tape = Tape::default();
        let document = tape.parse(write.document.as_bytes());
        let mut tuple = Vec::new();
        extractor
            .expect("the samples' fields have pointers and no defaults")
            .extract(
                &document.expect("the samples are JSON"),
                &mut Locations::default(),
                &mut tuple,
            )
            .expect("the samples have keys");
        tuple
    }
}

/// Returns the fields that the connector can hold.
fn held(
    projections: &[Projection],
    constraints: &BTreeMap<String, Constraint>,
    key: bool,
) -> Result<Vec<Projection>, Failure> {
    let mut held = Vec::new();
    for projection in projections {
        let field = &projection.field;
        let Some(constraint) = constraints.get(field) else {
            return Err(Failure::wrong(format!(
                "validate says nothing of the field {field:?}"
            )));
        };
        match constraint.kind {
            ConstraintKind::Forbidden | ConstraintKind::Incompatible if key => {
                return Err(Failure::not_applicable(format!(
                    "the connector takes no key such as {field:?}: {}",
                    constraint.reason
                )));
            }
            ConstraintKind::Forbidden | ConstraintKind::Incompatible => {}
            _ => held.push(projection.clone()),
        }
    }
    Ok(held)
}

/// Returns the number that tells a document apart.
fn seq(document: &str) -> i64 {
    let mut tape = Tape::default();
    let document = tape.parse(document.as_bytes());
    let seq = document.expect("the samples are JSON").root().get(SEQ);
    let seq = seq.and_then(|seq| seq.text().parse().ok());
    seq.expect("a delta update has a number")
}
