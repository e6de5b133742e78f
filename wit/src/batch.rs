//! Packed batches: how per-document data crosses the sandbox.
//!
//! Every length is an unsigned 32-bit little-endian integer. A reader never
//! trusts one: a length that points past the batch is a [`BatchError`], with
//! the offset, not a panic.

/// A batch is sent when it has reached this many bytes: below, the cost of the
/// call dominates (443 ns a document when each makes a call of its own, 27 ns
/// packed).
pub const BATCH_BYTES_MIN: usize = 64 << 10;

/// A batch grows past this only for one document that is larger by itself: an
/// idle instance keeps the memory of its largest batch.
pub const BATCH_BYTES_MAX: usize = 1 << 20;

/// A batch that its reader cannot take apart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {batch} batch is malformed at byte {at} of {len}: {reason}")]
pub struct BatchError {
    /// Which kind of batch.
    pub batch: &'static str,
    /// Where the malformed part starts.
    pub at: usize,
    /// Length of the whole batch.
    pub len: usize,
    /// What is wrong there.
    pub reason: &'static str,
}

/// One document on its way into the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store<'a> {
    /// Tuple of the key.
    pub key: &'a [u8],
    /// Tuple of the values.
    pub values: &'a [u8],
    /// The document, JSON text.
    pub document: &'a [u8],
    /// The key exists in the destination.
    pub exists: bool,
    /// The row is to be deleted; the document is the tombstone.
    pub delete: bool,
}

const FLAG_EXISTS: u32 = 1;
const FLAG_DELETE: u32 = 2;

/// Appends a document to a store batch.
pub fn push_store(batch: &mut Vec<u8>, store: &Store<'_>) {
    push_len(batch, store.key);
    push_len(batch, store.values);
    push_len(batch, store.document);
    let exists = if store.exists { FLAG_EXISTS } else { 0 };
    let delete = if store.delete { FLAG_DELETE } else { 0 };
    batch.extend_from_slice(&(exists | delete).to_le_bytes());
    batch.extend_from_slice(store.key);
    batch.extend_from_slice(store.values);
    batch.extend_from_slice(store.document);
}

/// Iterates over the documents of a store batch.
pub fn stores(batch: &[u8]) -> impl Iterator<Item = Result<Store<'_>, BatchError>> {
    read_all(batch, "store", |reader| {
        let key_len = reader.length()?;
        let values_len = reader.length()?;
        let document_len = reader.length()?;
        let flags = reader.length()? as u32;
        if flags & !(FLAG_EXISTS | FLAG_DELETE) != 0 {
            return Err(reader.error("unknown flags"));
        }
        Ok(Store {
            key: reader.bytes(key_len)?,
            values: reader.bytes(values_len)?,
            document: reader.bytes(document_len)?,
            exists: flags & FLAG_EXISTS != 0,
            delete: flags & FLAG_DELETE != 0,
        })
    })
}

/// Appends a row to rows, or a key to a load batch: `[length][bytes]`.
pub fn push_row(batch: &mut Vec<u8>, row: &[u8]) {
    push_len(batch, row);
    batch.extend_from_slice(row);
}

/// Iterates over rows, or over the keys of a load batch.
pub fn rows(batch: &[u8]) -> impl Iterator<Item = Result<&[u8], BatchError>> {
    read_all(batch, "row", |reader| {
        let len = reader.length()?;
        reader.bytes(len)
    })
}

/// Appends a loaded document, or a row found by the parameters at a position:
/// `[ordinal][length][bytes]`.
pub fn push_loaded(batch: &mut Vec<u8>, ordinal: u32, document: &[u8]) {
    batch.extend_from_slice(&ordinal.to_le_bytes());
    push_row(batch, document);
}

/// Iterates over loaded documents, or over rows with their ordinals.
pub fn loaded(batch: &[u8]) -> impl Iterator<Item = Result<(u32, &[u8]), BatchError>> {
    read_all(batch, "loaded", |reader| {
        let ordinal = reader.length()? as u32;
        let len = reader.length()?;
        Ok((ordinal, reader.bytes(len)?))
    })
}

/// # Panics
///
/// If one part has 4 GiB or more. Limits on documents and batches keep every
/// part far below.
fn push_len(batch: &mut Vec<u8>, part: &[u8]) {
    let len = u32::try_from(part.len()).expect("limits keep every part under 4 GiB");
    batch.extend_from_slice(&len.to_le_bytes());
}

struct Reader<'a> {
    batch: &'static str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn error(&self, reason: &'static str) -> BatchError {
        BatchError {
            batch: self.batch,
            at: self.at,
            len: self.bytes.len(),
            reason,
        }
    }

    fn bytes(&mut self, len: usize) -> Result<&'a [u8], BatchError> {
        match self.bytes[self.at..].get(..len) {
            Some(part) => {
                self.at += len;
                Ok(part)
            }
            None => Err(self.error("a part reaches past the end")),
        }
    }

    fn length(&mut self) -> Result<usize, BatchError> {
        let bytes = self.bytes(4)?;
        let bytes: [u8; 4] = bytes.try_into().expect("four bytes were taken");
        Ok(u32::from_le_bytes(bytes) as usize)
    }
}

/// Reads entries until the end of the batch or the first error.
fn read_all<'a, T>(
    bytes: &'a [u8],
    batch: &'static str,
    mut read: impl FnMut(&mut Reader<'a>) -> Result<T, BatchError>,
) -> impl Iterator<Item = Result<T, BatchError>> {
    let mut reader = Reader {
        batch,
        bytes,
        at: 0,
    };
    std::iter::from_fn(move || {
        if reader.at >= bytes.len() {
            return None;
        }
        let entry = read(&mut reader);
        if entry.is_err() {
            reader.at = bytes.len();
        }
        Some(entry)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_length_past_the_end_is_an_error_and_ends_the_batch() {
        let mut batch = Vec::new();
        push_row(&mut batch, b"abc");
        push_row(&mut batch, b"de");
        batch.pop();
        let read: Vec<_> = rows(&batch).collect();
        let want = BatchError {
            batch: "row",
            at: 11,
            len: 12,
            reason: "a part reaches past the end",
        };
        assert_eq!(read, [Ok(&b"abc"[..]), Err(want)]);
    }

    #[test]
    fn unknown_flags_are_refused() {
        let store = Store {
            key: b"k",
            values: b"",
            document: b"{}",
            exists: true,
            delete: true,
        };
        let mut batch = Vec::new();
        push_store(&mut batch, &store);
        assert_eq!(stores(&batch).collect::<Vec<_>>(), [Ok(store)]);
        batch[12] |= 4;
        assert_eq!(
            stores(&batch).next().unwrap().unwrap_err().reason,
            "unknown flags"
        );
    }

    proptest! {
        #[test]
        fn what_was_pushed_is_read(
            docs in prop::collection::vec((any::<[Vec<u8>; 3]>(), any::<[bool; 2]>()), 0..8),
            ordinals in prop::collection::vec((any::<u32>(), any::<Vec<u8>>()), 0..8),
        ) {
            let mut batch = Vec::new();
            let want: Vec<_> = docs.iter().map(|([key, values, document], [exists, delete])| Store {
                key, values, document, exists: *exists, delete: *delete,
            }).collect();
            want.iter().for_each(|store| push_store(&mut batch, store));
            prop_assert_eq!(stores(&batch).collect::<Result<Vec<_>, _>>().unwrap(), want);

            let mut batch = Vec::new();
            ordinals.iter().for_each(|(ordinal, doc)| push_loaded(&mut batch, *ordinal, doc));
            let want: Vec<_> = ordinals.iter().map(|(ordinal, doc)| (*ordinal, &doc[..])).collect();
            prop_assert_eq!(loaded(&batch).collect::<Result<Vec<_>, _>>().unwrap(), want);
        }

        #[test]
        fn no_bytes_panic_a_reader(bytes in any::<Vec<u8>>()) {
            stores(&bytes).for_each(drop);
            rows(&bytes).for_each(drop);
            loaded(&bytes).for_each(drop);
        }
    }
}
