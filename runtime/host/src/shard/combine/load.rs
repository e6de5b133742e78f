//! Loads: which keys the connector is asked for, and what it answers.

use std::collections::VecDeque;

use tidegate_wit::batch::{BATCH_BYTES_MAX, BATCH_BYTES_MIN, push_row};

use super::entry::ALLOCATION_BYTES;

/// Keys to be loaded, to be sent to the connector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadBatch {
    /// Index of the binding.
    pub binding: u32,
    /// The keys, packed.
    pub keys: Vec<u8>,
    /// How many there are.
    pub count: u32,
}

/// Why a loaded document is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unwanted {
    Unasked,
    Twice,
}

/// The loads of one binding in one transaction.
#[derive(Debug)]
pub(super) struct Loads {
    /// The greatest key that the destination may have; without it, any.
    known_max: Option<Vec<u8>>,
    /// The greatest key of this transaction.
    own_max: Vec<u8>,
    /// Batches not handed out yet; keys are added to the last.
    queue: VecDeque<(Vec<u8>, u32)>,
    /// Keys that have an ordinal.
    queued: u32,
    /// By ordinal, for each key handed out.
    loaded: Vec<Option<Box<[u8]>>>,
    bytes: u64,
}

impl Loads {
    pub(super) fn new(known_max: Option<Vec<u8>>) -> Self {
        Loads {
            known_max,
            own_max: Vec::new(),
            queue: VecDeque::new(),
            queued: 0,
            loaded: Vec::new(),
            bytes: 0,
        }
    }

    /// Queues a new key, unless the destination cannot have it. Returns the
    /// key's ordinal.
    pub(super) fn queue(&mut self, key: &[u8]) -> Option<u32> {
        if key > self.own_max.as_slice() {
            self.own_max.clear();
            self.own_max.extend_from_slice(key);
        }
        if self
            .known_max
            .as_ref()
            .is_some_and(|max| key > max.as_slice())
        {
            return None;
        }
        let row = size_of::<u32>() + key.len();
        let full = |(keys, _): &(Vec<u8>, u32)| {
            keys.len() >= BATCH_BYTES_MIN || keys.len() + row > BATCH_BYTES_MAX
        };
        if self.queue.back().is_none_or(full) {
            self.queue.push_back((Vec::new(), 0));
        }
        let (keys, count) = self
            .queue
            .back_mut()
            .expect("a batch was just made sure of");
        let before = keys.capacity();
        push_row(keys, key);
        self.bytes += (keys.capacity() - before) as u64;
        *count += 1;
        let ordinal = self.queued;
        self.queued += 1;
        Some(ordinal)
    }

    /// Hands out the next batch of keys: a full one, or any if `partial`.
    pub(super) fn next(&mut self, partial: bool) -> Option<(Vec<u8>, u32)> {
        let (keys, _) = self.queue.front()?;
        if !partial && self.queue.len() == 1 && keys.len() < BATCH_BYTES_MIN {
            return None;
        }
        let (keys, count) = self.queue.pop_front()?;
        let before = self.loaded.capacity();
        self.loaded.resize(self.loaded.len() + count as usize, None);
        let slots = self.loaded.capacity() - before;
        self.bytes += (slots * size_of::<Option<Box<[u8]>>>()) as u64;
        self.bytes -= keys.capacity() as u64;
        Some((keys, count))
    }

    /// Whether keys are queued that were not handed out.
    pub(super) fn is_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// How many keys were handed out.
    pub(super) fn asked(&self) -> u32 {
        u32::try_from(self.loaded.len()).expect("ordinals have 32 bits")
    }

    /// Takes a loaded document.
    pub(super) fn answer(&mut self, ordinal: u32, document: &[u8]) -> Result<(), Unwanted> {
        match self.loaded.get_mut(ordinal as usize) {
            None => Err(Unwanted::Unasked),
            Some(Some(_)) => Err(Unwanted::Twice),
            Some(place) => {
                *place = Some(document.into());
                self.bytes += document_bytes(document);
                Ok(())
            }
        }
    }

    /// Gives away the loaded document of an ordinal.
    pub(super) fn take(&mut self, ordinal: u32) -> Option<Box<[u8]>> {
        let document = self.loaded.get_mut(ordinal as usize)?.take()?;
        self.bytes -= document_bytes(&document);
        Some(document)
    }

    /// The greatest key that the destination may have after this transaction.
    pub(super) fn max_key(&self) -> Option<&[u8]> {
        let known = self.known_max.as_deref()?;
        Some(known.max(self.own_max.as_slice()))
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

fn document_bytes(document: &[u8]) -> u64 {
    document.len() as u64 + ALLOCATION_BYTES
}
