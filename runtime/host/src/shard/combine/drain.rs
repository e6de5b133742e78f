//! The emptying side: one row a key, in key order, as packed batches.
//!
//! ```text
//! sorted source -> entry + its loaded document -> reduced -> skip | delete | store
//! ```
//!
//! What is read is a *sorted source*: each key once, in order. Today that is
//! the tree in memory; runs on disk, merged, would be another.

use std::collections::{BTreeSet, btree_map};
use std::sync::Arc;

use tidegate_wit::batch::{BATCH_BYTES_MAX, BATCH_BYTES_MIN, Store, push_store};

use super::combiner::{Filling, document_error, is_delete};
use super::entry::Entry;
use super::error::{DocumentError, DocumentProblem};
use super::gauge::Share;
use super::load::Loads;
use super::plan::{BindingPlan, Plan};
use crate::document::{Document, Locations, ParseError, Tape};

/// A batch is given out when it has reached this many bytes: a thousand
/// documents or so, so that the call costs next to nothing, and the guest, who
/// keeps the memory of its largest batch, stays small.
const BATCH_BYTES_GOAL: usize = 256 << 10;
const _: () = assert!(BATCH_BYTES_MIN <= BATCH_BYTES_GOAL && BATCH_BYTES_GOAL <= BATCH_BYTES_MAX);

/// What happened to the documents of one binding in one transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Documents that arrived.
    pub documents: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Documents that the destination had.
    pub loaded: u64,
    /// Rows to be stored, not counting deletes.
    pub stored: u64,
    /// Rows to be deleted.
    pub deleted: u64,
    /// Keys left out: equal to the loaded document, or a delete of what is not
    /// there.
    pub skipped: u64,
    /// Bytes of the documents stored or deleted.
    pub stored_bytes: u64,
}

/// Rows to be stored, to be sent to the connector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreBatch {
    /// Index of the binding.
    pub binding: u32,
    /// The rows, packed.
    pub rows: Vec<u8>,
}

/// A key that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOutKey {
    /// Index of the binding.
    pub binding: u32,
    /// Tuple of the key.
    pub key: Box<[u8]>,
    /// What the transaction's documents of the key come to.
    pub document: Vec<u8>,
}

/// What is counted as held, and shown in the gauges.
#[derive(Debug)]
pub(super) struct Held {
    pub bytes: u64,
    pub keys: u64,
    pub share: Share,
}

/// Gives out what a transaction stores, binding by binding in key order, and
/// frees its memory as it goes.
#[derive(Debug)]
pub struct Drain {
    plan: Arc<Plan>,
    /// Bindings that are not drained yet, the next one last.
    remaining: Vec<Source>,
    held: Held,
    counts: Vec<Counts>,
    work: u64,
    row: Row,
    /// A row that found no place in the last batch.
    left_over: Vec<u8>,
    left_out: Vec<LeftOutKey>,
}

/// The entries of one binding, each key once, in key order.
#[derive(Debug)]
struct Source {
    binding: u32,
    entries: btree_map::IntoIter<Box<[u8]>, Entry>,
    loads: Loads,
    left_out: BTreeSet<Box<[u8]>>,
}

/// Memory for making a row.
#[derive(Debug, Default)]
struct Row {
    reducing: Tape,
    comparing: Tape,
    locations: Locations,
    reduced: Vec<u8>,
    values: Vec<u8>,
}

impl Drain {
    pub(super) fn new(
        plan: Arc<Plan>,
        bindings: Vec<Filling>,
        held: Held,
        work: u64,
        reducing: Tape,
    ) -> Self {
        let mut counts = Vec::with_capacity(bindings.len());
        let mut remaining = Vec::with_capacity(bindings.len());
        for (
            binding,
            Filling {
                entries,
                loads,
                counts: filled,
                left_out,
            },
        ) in bindings.into_iter().enumerate()
        {
            counts.push(filled);
            remaining.push(Source {
                binding: u32::try_from(binding).expect("bindings are few"),
                entries: entries.into_iter(),
                loads,
                left_out,
            });
        }
        remaining.reverse();
        let row = Row {
            reducing,
            ..Row::default()
        };
        Drain {
            plan,
            remaining,
            held,
            counts,
            work,
            row,
            left_over: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// The next batch, or none at the end.
    ///
    /// # Errors
    ///
    /// If documents cannot be reduced. The drain must then be dropped.
    pub fn next_batch(&mut self) -> Result<Option<StoreBatch>, Box<DocumentError>> {
        while let Some(source) = self.remaining.last_mut() {
            let binding = source.binding;
            let plan = &self.plan.bindings[binding as usize];
            let counts = &mut self.counts[binding as usize];
            let mut rows = std::mem::take(&mut self.left_over);
            while rows.len() < BATCH_BYTES_GOAL {
                let Some((key, entry)) = source.entries.next() else {
                    break;
                };
                let loads_before = source.loads.bytes();
                let loaded = entry
                    .ordinal()
                    .and_then(|ordinal| source.loads.take(ordinal));
                let freed = entry.bytes(&key) + loads_before - source.loads.bytes();
                let begin = rows.len();
                self.held.bytes -= freed;
                self.held.keys -= 1;
                if source.left_out.remove(&key) {
                    let document = entry.alone(&plan.reducer, &mut self.row.reducing);
                    self.left_out.push(LeftOutKey {
                        binding,
                        key,
                        document,
                    });
                    continue;
                }
                self.row
                    .push(plan, &key, &entry, loaded.as_deref(), counts, &mut rows)
                    .map_err(|problem| document_error(&self.plan, binding, Some(&key), problem))?;
                if rows.len() > BATCH_BYTES_MAX && begin > 0 {
                    self.left_over = rows.split_off(begin);
                    break;
                }
            }
            self.held.share.set(self.held.bytes, self.held.keys);
            if !rows.is_empty() {
                return Ok(Some(StoreBatch { binding, rows }));
            }
            self.held.bytes -= source.loads.bytes();
            self.remaining.pop();
            self.held.share.set(self.held.bytes, self.held.keys);
        }
        Ok(None)
    }

    /// Takes the keys that were left out until now.
    pub fn take_left_out(&mut self) -> Vec<LeftOutKey> {
        std::mem::take(&mut self.left_out)
    }

    /// What happened in the transaction, by binding. Complete once
    /// [`Drain::next_batch`] has returned none.
    pub fn counts(&self) -> &[Counts] {
        &self.counts
    }

    /// Bytes of memory that are still held.
    pub fn bytes(&self) -> u64 {
        self.held.bytes
    }

    /// How many bytes the whole transaction has parsed until now: a measure of
    /// its work that no clock disturbs.
    pub fn work(&self) -> u64 {
        self.work + self.row.reducing.bytes_read() + self.row.comparing.bytes_read()
    }
}

impl Row {
    /// Appends the row of one key, unless there is none to be stored.
    fn push(
        &mut self,
        plan: &BindingPlan,
        key: &[u8],
        entry: &Entry,
        loaded: Option<&[u8]>,
        counts: &mut Counts,
        rows: &mut Vec<u8>,
    ) -> Result<(), DocumentProblem> {
        let exists = loaded.is_some();
        let delete = entry.is_tombstone();
        if delete && !exists && !plan.delta_updates {
            counts.skipped += 1;
            return Ok(());
        }
        // A destination without the document's field says that the key exists,
        // and nothing more.
        let loaded = loaded.filter(|loaded| !loaded.is_empty());
        let onto = match loaded {
            Some(loaded) if !entry.has_barrier() && !plan.reducer.replaces() => {
                let parsed = self
                    .comparing
                    .parse(loaded)
                    .map_err(DocumentProblem::Loaded)?;
                // A row that says that it is deleted, from before `hardDelete`
                // was on, is nothing to reduce onto.
                (!(plan.hard_delete && is_delete(&parsed))).then_some(loaded)
            }
            _ => None,
        };
        let text = match (onto, entry.only()) {
            (None, Some(only)) => only,
            _ => {
                self.reduced.clear();
                entry.reduce_onto(onto, &plan.reducer, &mut self.reducing, &mut self.reduced)?;
                &self.reduced
            }
        };
        let document = self.reducing.parse(text)?;
        if !delete && !plan.delta_updates && plan.skip_equal {
            let equal = loaded.map(|loaded| equal(&document, loaded, &mut self.comparing));
            if equal.transpose().map_err(DocumentProblem::Loaded)? == Some(true) {
                counts.skipped += 1;
                return Ok(());
            }
        }
        self.values.clear();
        plan.values
            .extract(&document, &mut self.locations, &mut self.values)?;
        let stored = Store {
            key,
            values: &self.values,
            document: if plan.document { text } else { &[] },
            exists,
            delete,
        };
        push_store(rows, &stored);
        counts.stored += u64::from(!delete);
        counts.deleted += u64::from(delete);
        counts.stored_bytes += text.len() as u64;
        Ok(())
    }
}

fn equal(document: &Document<'_>, loaded: &[u8], tape: &mut Tape) -> Result<bool, ParseError> {
    if document.text().as_bytes() == loaded {
        return Ok(true);
    }
    Ok(document.root().equals(&tape.parse(loaded)?.root()))
}
