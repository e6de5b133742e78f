//! Per-document data, typed.
//!
//! What comes in is read in place: an entry holds slices of the batch and takes
//! its tuples apart only when asked. What goes out is cut into batches of bounded
//! size; what does not fit into the answer to `load` is answered to `flush`.

use std::collections::VecDeque;

use tidegate_wit::batch::{self, BATCH_BYTES_MAX, BatchError};
use tidegate_wit::tuple::{self, Element};

use crate::error::ConnectorError;

/// A key to look up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    /// Position among the transaction's loads of the binding: what a loaded
    /// document is returned under.
    pub ordinal: u32,
    /// The key's tuple.
    pub tuple: &'a [u8],
}

impl<'a> Key<'a> {
    /// Takes the key apart, an element a field.
    ///
    /// # Errors
    ///
    /// If the host sent what is not a tuple.
    pub fn elements(&self) -> Result<Vec<Element<'a>>, ConnectorError> {
        Ok(tuple::decode(self.tuple)?)
    }
}

/// The keys of a `load`.
pub struct Keys<'a> {
    next: u32,
    rows: Box<dyn Iterator<Item = Result<&'a [u8], BatchError>> + 'a>,
}

impl<'a> Keys<'a> {
    /// Reads a batch whose first key has the ordinal `first`.
    pub fn new(batch: &'a [u8], first: u32) -> Self {
        Self {
            next: first,
            rows: Box::new(batch::rows(batch)),
        }
    }
}

impl<'a> Iterator for Keys<'a> {
    type Item = Result<Key<'a>, ConnectorError>;

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.rows.next()?.map(|tuple| {
            let ordinal = self.next;
            self.next += 1;
            Key { ordinal, tuple }
        });
        Some(key.map_err(ConnectorError::from))
    }
}

/// A document on its way into the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store<'a> {
    /// The key's tuple.
    pub key_tuple: &'a [u8],
    /// The values' tuple; after the key's it makes the row's.
    pub values_tuple: &'a [u8],
    /// The document, JSON text.
    pub document: &'a [u8],
    /// The key exists in the destination.
    pub exists: bool,
    /// The row is to be deleted; the document is the tombstone.
    pub delete: bool,
}

impl<'a> Store<'a> {
    /// Takes the key apart, an element a field.
    ///
    /// # Errors
    ///
    /// If the host sent what is not a tuple.
    pub fn key(&self) -> Result<Vec<Element<'a>>, ConnectorError> {
        Ok(tuple::decode(self.key_tuple)?)
    }

    /// Takes the values apart, an element a field.
    ///
    /// # Errors
    ///
    /// If the host sent what is not a tuple.
    pub fn values(&self) -> Result<Vec<Element<'a>>, ConnectorError> {
        Ok(tuple::decode(self.values_tuple)?)
    }

    /// Returns the document as text.
    ///
    /// # Errors
    ///
    /// If the host sent what is not UTF-8.
    pub fn document_text(&self) -> Result<&'a str, ConnectorError> {
        std::str::from_utf8(self.document)
            .map_err(|error| ConnectorError::internal(format!("a document is not text: {error}")))
    }
}

/// The documents of a `store`.
pub struct Stores<'a> {
    rows: Box<dyn Iterator<Item = Result<batch::Store<'a>, BatchError>> + 'a>,
}

impl<'a> Stores<'a> {
    /// Reads a batch.
    pub fn new(batch: &'a [u8]) -> Self {
        Self {
            rows: Box::new(batch::stores(batch)),
        }
    }
}

impl<'a> Iterator for Stores<'a> {
    type Item = Result<Store<'a>, ConnectorError>;

    fn next(&mut self) -> Option<Self::Item> {
        let store = self.rows.next()?;
        Some(store.map_err(ConnectorError::from).map(|store| Store {
            key_tuple: store.key,
            values_tuple: store.values,
            document: store.document,
            exists: store.exists,
            delete: store.delete,
        }))
    }
}

/// Loaded documents on their way to the host, cut into batches.
#[derive(Debug, Default)]
pub struct Loaded {
    batches: VecDeque<Vec<u8>>,
}

impl Loaded {
    /// Adds the document of the key with this ordinal. A key that does not exist is
    /// not pushed.
    pub fn push(&mut self, ordinal: u32, document: &[u8]) {
        /// Ordinal and length.
        const HEADER_BYTES: usize = 8;
        let fits = |batch: &Vec<u8>| batch.len() + HEADER_BYTES + document.len() <= BATCH_BYTES_MAX;
        if !self.batches.back().is_some_and(fits) {
            self.batches.push_back(Vec::new());
        }
        let last = self
            .batches
            .back_mut()
            .expect("a batch was just made sure of");
        batch::push_loaded(last, ordinal, document);
    }

    /// Says whether a whole batch waits, so that more had better be put off until
    /// `flush`: what is pushed after is held in memory.
    pub fn is_full(&self) -> bool {
        self.batches.len() > 1
    }

    /// Takes the oldest batch; empty if there is none.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.batches.pop_front().unwrap_or_default()
    }

    /// Says whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ordinals_go_on_where_the_last_batch_ended() {
        let mut batch = Vec::new();
        for id in [7, 8] {
            batch::push_row(&mut batch, &tuple::encode(&[Element::Int(id)]));
        }
        let read: Vec<_> = Keys::new(&batch, 5)
            .map(|key| key.map(|key| (key.ordinal, key.elements().unwrap())))
            .collect();
        assert_eq!(
            read,
            [
                Ok((5, vec![Element::Int(7)])),
                Ok((6, vec![Element::Int(8)]))
            ]
        );
    }

    #[test]
    fn a_torn_batch_is_an_internal_error_and_no_panic() {
        let mut batch = Vec::new();
        batch::push_row(&mut batch, b"abc");
        batch.pop();
        let error = Keys::new(&batch, 0).next().unwrap().unwrap_err();
        assert_eq!(error.kind, crate::ErrorKind::Internal);
        assert!(error.message.contains("malformed at byte 4"), "{error}");
        let error = Stores::new(&batch).next().unwrap().unwrap_err();
        assert_eq!(error.kind, crate::ErrorKind::Internal);
    }

    #[test]
    fn a_document_larger_than_a_batch_travels_alone() {
        let mut loaded = Loaded::default();
        loaded.push(0, b"small");
        loaded.push(1, &vec![b'x'; BATCH_BYTES_MAX + 1]);
        loaded.push(2, b"small");
        assert!(loaded.is_full());
        let sizes: Vec<_> = std::iter::from_fn(|| Some(loaded.take()))
            .take_while(|batch| !batch.is_empty())
            .map(|batch| batch.len())
            .collect();
        assert_eq!(sizes, [13, BATCH_BYTES_MAX + 9, 13]);
    }

    proptest! {
        #[test]
        fn what_is_pushed_comes_out_in_order_and_in_bounded_batches(
            lengths in prop::collection::vec(0_usize..400_000, 0..12),
        ) {
            let mut loaded = Loaded::default();
            for (ordinal, len) in (0..).zip(&lengths) {
                loaded.push(ordinal, &vec![b'x'; *len]);
            }
            let mut got = Vec::new();
            while !loaded.is_empty() {
                let batch = loaded.take();
                prop_assert!(batch.len() <= BATCH_BYTES_MAX);
                for entry in batch::loaded(&batch) {
                    let (ordinal, document) = entry.unwrap();
                    prop_assert_eq!(ordinal as usize, got.len());
                    got.push(document.len());
                }
            }
            prop_assert_eq!(got, lengths);
        }
    }
}
