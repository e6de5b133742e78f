//! The filling side: documents and loaded documents in, load batches out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tidegate_wit::batch;
use tidegate_wit::message::KeyRange;
use tidegate_wit::text::key_text;
use tidegate_wit::tuple::decode;
use xxhash_rust::xxh64::xxh64;

use super::drain::{Counts, Drain, Held};
use super::entry::Entry;
use super::error::{DocumentError, DocumentProblem, LoadedError};
use super::gauge::{CombineGauges, Share};
use super::load::{LoadBatch, Loads, Unwanted};
use super::plan::{BindingPlan, Plan};
use crate::document::{Document, Locations, Tape, shown};

/// What became of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is combined.
    Combined,
    /// Its key is another shard's.
    OutOfRange,
}

/// Combines the documents of one transaction.
#[derive(Debug)]
pub struct Combiner {
    plan: Arc<Plan>,
    bindings: Vec<Filling>,
    share: Share,
    entry_bytes: u64,
    load_bytes: u64,
    keys: u64,
    /// Parses what arrives.
    arriving: Tape,
    /// Parses what is reduced meanwhile.
    reducing: Tape,
    locations: Locations,
    key: Vec<u8>,
}

/// What one binding has so far.
#[derive(Debug)]
pub(super) struct Filling {
    pub entries: BTreeMap<Box<[u8]>, Entry>,
    pub loads: Loads,
    pub counts: Counts,
    /// Keys whose documents are combined, and neither loaded nor stored.
    pub left_out: BTreeSet<Box<[u8]>>,
}

impl Combiner {
    /// Starts a transaction.
    ///
    /// `max_keys` has each binding's greatest key in the destination: a greater
    /// one is not loaded. `None` is "not known", which loads every key; a
    /// destination that is known to be empty has an empty key.
    ///
    /// # Panics
    ///
    /// If there is not one maximum a binding.
    pub fn new(
        plan: Arc<Plan>,
        max_keys: Vec<Option<Vec<u8>>>,
        gauges: Arc<CombineGauges>,
    ) -> Self {
        assert_eq!(
            plan.bindings.len(),
            max_keys.len(),
            "each binding has a maximum key, known or not"
        );
        let filling = |max_key| Filling {
            entries: BTreeMap::new(),
            loads: Loads::new(max_key),
            counts: Counts::default(),
            left_out: BTreeSet::new(),
        };
        Combiner {
            bindings: max_keys.into_iter().map(filling).collect(),
            share: Share::new(gauges),
            entry_bytes: 0,
            load_bytes: 0,
            keys: 0,
            arriving: Tape::default(),
            reducing: Tape::default(),
            locations: Locations::default(),
            key: Vec::new(),
            plan,
        }
    }

    /// Has the documents of a key left out: see [`Drain::take_left_out`].
    ///
    /// # Panics
    ///
    /// If there is no such binding.
    pub fn leave_out(&mut self, binding: u32, key: &[u8]) {
        self.bindings[binding as usize].left_out.insert(key.into());
    }

    /// Adds a document, in the order of the journals.
    ///
    /// # Errors
    ///
    /// If it is no document, has no key, or cannot be reduced with those of
    /// its key. The combiner must then be dropped: what it holds of the key is
    /// no transaction's.
    ///
    /// # Panics
    ///
    /// If there is no such binding.
    pub fn add(&mut self, binding: u32, text: &[u8]) -> Result<Added, Box<DocumentError>> {
        let mut tape = std::mem::take(&mut self.arriving);
        let added = match tape.parse(text) {
            Ok(document) => self.add_document(binding, &document),
            Err(error) => Err(document_error(&self.plan, binding, None, error)),
        };
        self.arriving = tape;
        added
    }

    /// Adds a document that is parsed already; see [`Combiner::add`].
    ///
    /// # Errors
    ///
    /// As [`Combiner::add`].
    pub fn add_document(
        &mut self,
        binding: u32,
        document: &Document<'_>,
    ) -> Result<Added, Box<DocumentError>> {
        let plan = &self.plan.bindings[binding as usize];
        let filling = &mut self.bindings[binding as usize];
        self.key.clear();
        plan.key
            .extract(document, &mut self.locations, &mut self.key)
            .map_err(|error| document_error(&self.plan, binding, None, error))?;
        if !contains(&self.plan.range, &self.key) {
            return Ok(Added::OutOfRange);
        }
        let text = document.text().as_bytes();
        let delete = plan.hard_delete && is_delete(document);
        filling.counts.documents += 1;
        filling.counts.bytes += text.len() as u64;
        let loads_before = filling.loads.bytes();
        match filling.entries.get_mut(self.key.as_slice()) {
            Some(entry) => {
                let before = entry.bytes(&self.key);
                entry
                    .add(text, delete, &plan.reducer, &mut self.reducing)
                    .map_err(|error| document_error(&self.plan, binding, Some(&self.key), error))?;
                self.entry_bytes = self.entry_bytes + entry.bytes(&self.key) - before;
            }
            None => {
                let ordinal = match plan.delta_updates || filling.leaves_out(&self.key) {
                    true => None,
                    false => filling.loads.queue(&self.key),
                };
                let entry = Entry::new(text, delete, ordinal);
                self.entry_bytes += entry.bytes(&self.key);
                self.keys += 1;
                filling.entries.insert(self.key.as_slice().into(), entry);
            }
        }
        let loads = filling.loads.bytes();
        self.load_bytes = self.load_bytes + loads - loads_before;
        self.share.set(self.bytes(), self.keys);
        Ok(Added::Combined)
    }

    /// The next keys to be loaded: a full batch, or with `partial` whatever
    /// there is. Each key is handed out once.
    pub fn next_load(&mut self, partial: bool) -> Option<LoadBatch> {
        let bindings = self.bindings.iter_mut().enumerate();
        let (binding, (keys, count)) = bindings
            .filter_map(|(binding, filling)| Some((binding, filling.loads.next(partial)?)))
            .next()?;
        self.count_loads();
        Some(LoadBatch {
            binding: u32::try_from(binding).expect("bindings are few"),
            keys,
            count,
        })
    }

    /// Takes a batch of loaded documents.
    ///
    /// # Errors
    ///
    /// If the connector broke the protocol: a malformed batch, or an ordinal
    /// that was not asked for or came before.
    ///
    /// # Panics
    ///
    /// If there is no such binding.
    pub fn add_loaded(&mut self, binding: u32, loaded: &[u8]) -> Result<(), LoadedError> {
        let filling = &mut self.bindings[binding as usize];
        for row in batch::loaded(loaded) {
            let (ordinal, document) = row?;
            match filling.loads.answer(ordinal, document) {
                Ok(()) => filling.counts.loaded += 1,
                Err(Unwanted::Twice) => return Err(LoadedError::Twice { ordinal }),
                Err(Unwanted::Unasked) => {
                    let asked = filling.loads.asked();
                    return Err(LoadedError::Unasked { ordinal, asked });
                }
            }
        }
        self.count_loads();
        Ok(())
    }

    /// Bytes of memory that the combiner holds.
    pub fn bytes(&self) -> u64 {
        self.entry_bytes + self.load_bytes
    }

    /// Whether the transaction should close: it holds as much as it may.
    pub fn over_budget(&self) -> bool {
        self.bytes() >= self.plan.budget_bytes
    }

    /// Whether no document has been combined.
    pub fn is_empty(&self) -> bool {
        self.keys == 0
    }

    /// Each binding's greatest key in the destination once this transaction is
    /// committed; unknown ones stay unknown.
    pub fn max_keys(&self) -> Vec<Option<Vec<u8>>> {
        let max_key = |filling: &Filling| filling.loads.max_key().map(<[u8]>::to_vec);
        self.bindings.iter().map(max_key).collect()
    }

    /// Ends the filling, and starts giving out what is to be stored.
    ///
    /// # Panics
    ///
    /// If keys were queued to be loaded and not handed out: their documents
    /// would be taken for new.
    pub fn drain(self) -> Drain {
        assert!(
            self.bindings
                .iter()
                .all(|filling| !filling.loads.is_queued()),
            "all keys are handed out before the drain"
        );
        let held = Held {
            bytes: self.bytes(),
            keys: self.keys,
            share: self.share,
        };
        let work = self.arriving.bytes_read();
        Drain::new(self.plan, self.bindings, held, work, self.reducing)
    }

    fn count_loads(&mut self) {
        self.load_bytes = self
            .bindings
            .iter()
            .map(|filling| filling.loads.bytes())
            .sum();
        self.share.set(self.bytes(), self.keys);
    }
}

impl Filling {
    fn leaves_out(&self, key: &[u8]) -> bool {
        !self.left_out.is_empty() && self.left_out.contains(key)
    }
}

/// Whether a key belongs to a shard.
fn contains(range: &KeyRange, key: &[u8]) -> bool {
    if *range == KeyRange::FULL {
        return true;
    }
    let hash = (xxh64(key, 0) >> 32) as u32;
    (range.begin..=range.end).contains(&hash)
}

/// Whether a document says of itself that it is deleted.
pub(super) fn is_delete(document: &Document<'_>) -> bool {
    let meta = document.root().get("_meta");
    let operation = meta.and_then(|meta| meta.get("op"));
    operation.is_some_and(|operation| operation.string().as_deref() == Some("d"))
}

#[cold]
pub(super) fn document_error(
    plan: &Plan,
    binding: u32,
    key: Option<&[u8]>,
    problem: impl Into<DocumentProblem>,
) -> Box<DocumentError> {
    let BindingPlan { collection, .. } = &plan.bindings[binding as usize];
    Box::new(DocumentError {
        binding,
        collection: collection.clone(),
        key: key.map(shown_key),
        tuple: key.map(Into::into),
        problem: problem.into(),
    })
}

/// A key for people: JSON text of its elements, cut.
pub(crate) fn shown_key(key: &[u8]) -> String {
    match decode(key) {
        Ok(elements) => shown(&key_text(&elements)),
        Err(error) => error.to_string(),
    }
}
