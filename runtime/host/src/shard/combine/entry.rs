//! One key of a transaction: its documents, reduced as far as it pays.

use tidegate_wit::batch::{push_row, rows};

use crate::document::{ReduceError, Reducer, Tape};

/// What one allocation costs beyond the bytes asked for.
pub(super) const ALLOCATION_BYTES: u64 = 16;

/// The share of a tree's node that one entry takes. Nodes are between half and
/// entirely full: half as much again as the entry itself.
pub(super) const SLOT_BYTES: u64 = (size_of::<(Box<[u8]>, Entry)>() * 3 / 2) as u64;

/// The documents of one key.
///
/// Documents that must be reduced are set aside until there are as many bytes
/// of them as of what they will be reduced onto. Reducing at once would read
/// the result again for each document, and an object that grows by a property
/// a document would take time by the square of their number.
#[derive(Debug)]
pub(super) struct Entry {
    /// What has been reduced; of a delete, the tombstone.
    base: Box<[u8]>,
    /// What came after it, oldest first, as rows.
    later: Vec<u8>,
    ordinal: u32,
    tombstone: bool,
    barrier: bool,
}

/// Stands for "need not be loaded".
const NO_ORDINAL: u32 = u32::MAX;

impl Entry {
    /// The entry of a key's first document.
    pub(super) fn new(text: &[u8], delete: bool, ordinal: Option<u32>) -> Self {
        Entry {
            base: text.into(),
            later: Vec::new(),
            ordinal: ordinal.unwrap_or(NO_ORDINAL),
            tombstone: delete,
            barrier: delete,
        }
    }

    /// Adds a later document.
    pub(super) fn add(
        &mut self,
        text: &[u8],
        delete: bool,
        reducer: &Reducer,
        tape: &mut Tape,
    ) -> Result<(), ReduceError> {
        if delete || self.tombstone || reducer.replaces() {
            self.base = text.into();
            self.later = Vec::new();
            self.tombstone = delete;
            self.barrier |= delete;
            return Ok(());
        }
        push_row(&mut self.later, text);
        if self.later.len() < self.base.len() {
            return Ok(());
        }
        let mut reduced = Vec::with_capacity(self.base.len() + self.later.len());
        self.reduce_onto(None, reducer, tape, &mut reduced)?;
        self.base = reduced.into();
        self.later = Vec::new();
        Ok(())
    }

    /// Appends what all documents reduce to, on top of the loaded one.
    pub(super) fn reduce_onto(
        &self,
        loaded: Option<&[u8]>,
        reducer: &Reducer,
        tape: &mut Tape,
        reduced: &mut Vec<u8>,
    ) -> Result<(), ReduceError> {
        let later = rows(&self.later).map(|row| row.expect("the rows are our own"));
        let texts: Vec<&[u8]> = loaded
            .into_iter()
            .chain([&*self.base])
            .chain(later)
            .collect();
        reducer.reduce(tape, &texts, reduced)
    }

    /// What its documents come to by themselves, or as far as they can be reduced.
    pub(super) fn alone(&self, reducer: &Reducer, tape: &mut Tape) -> Vec<u8> {
        let mut reduced = Vec::new();
        match self.reduce_onto(None, reducer, tape, &mut reduced) {
            Ok(()) => reduced,
            Err(_) => self.base.to_vec(),
        }
    }

    /// The document, if there is only one.
    pub(super) fn only(&self) -> Option<&[u8]> {
        self.later.is_empty().then_some(&*self.base)
    }

    /// Whether the last document deletes.
    pub(super) fn is_tombstone(&self) -> bool {
        self.tombstone
    }

    /// Whether there was a delete: nothing before it counts any more, the
    /// loaded document included.
    pub(super) fn has_barrier(&self) -> bool {
        self.barrier
    }

    /// The key's position among those to be loaded, if it is to be.
    pub(super) fn ordinal(&self) -> Option<u32> {
        (self.ordinal != NO_ORDINAL).then_some(self.ordinal)
    }

    /// Bytes of memory, its place in the tree included.
    pub(super) fn bytes(&self, key: &[u8]) -> u64 {
        let later = match self.later.capacity() {
            0 => 0,
            capacity => capacity as u64 + ALLOCATION_BYTES,
        };
        (key.len() + self.base.len()) as u64 + 2 * ALLOCATION_BYTES + SLOT_BYTES + later
    }
}
