//! What is appended, and where it came from.

use super::{APPEND_BYTES_MAX, DOCUMENT_BYTES_MAX, Documents, JournalError, ORIGIN_BYTES_MAX};
use xxhash_rust::xxh64::Xxh64;

/// Documents to append together, with what must be atomic with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Append {
    /// The documents, at least one.
    pub documents: Documents,
    /// The publish clock: microseconds since the Unix epoch, UTC.
    pub clock: i64,
    /// The fingerprint of the collection schema that the documents were checked against.
    pub schema: u64,
    /// Where the documents came from.
    pub origin: Origin,
}

/// Where an append came from: what keeps it from being stored twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody will send it again.
    None,
    /// Lines of an input that is followed.
    Input {
        /// The identity of the input.
        input: String,
        /// Where the journal must believe the input to be, `None` for not begun.
        ///
        /// Two followers of one input cannot both append: the second one finds
        /// another position and gets [`JournalError::PositionConflict`].
        expected: Option<InputPosition>,
        /// Where the input is after these documents.
        position: InputPosition,
    },
    /// A producer that may send the append again.
    Producer {
        /// The producer's key for this append: with the same bytes it is acknowledged
        /// and stored once, with others it is [`JournalError::KeyConflict`].
        key: String,
    },
}

/// How far an input has been appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputPosition {
    /// The byte after the last line appended.
    pub byte: u64,
    /// The number of lines before that byte, blank ones included.
    pub line: u64,
    /// The fingerprint of the input's content before that byte.
    pub fingerprint: u64,
}

/// Where an append's documents are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The offset of the first document.
    pub first: u64,
    /// The offset after the last one.
    pub next: u64,
}

impl Append {
    /// Checks the limits, before anything is written.
    pub(crate) fn check(&self, collection: &str) -> Result<(), JournalError> {
        let collection = || collection.to_owned();
        if self.documents.is_empty() {
            return Err(JournalError::Empty {
                collection: collection(),
            });
        }
        for (index, document) in self.documents.iter().enumerate() {
            if document.len() > DOCUMENT_BYTES_MAX {
                return Err(JournalError::DocumentTooLong {
                    collection: collection(),
                    index,
                    bytes: document.len(),
                });
            }
        }
        let bytes = self.bytes();
        if bytes > APPEND_BYTES_MAX {
            return Err(JournalError::AppendTooLong {
                collection: collection(),
                bytes,
            });
        }
        let (Origin::Input { input: text, .. } | Origin::Producer { key: text }) = &self.origin
        else {
            return Ok(());
        };
        if text.is_empty() || text.len() > ORIGIN_BYTES_MAX {
            return Err(JournalError::Origin {
                collection: collection(),
                bytes: text.len(),
            });
        }
        Ok(())
    }

    /// Returns the size that [`APPEND_BYTES_MAX`] limits.
    pub(crate) fn bytes(&self) -> usize {
        self.documents.bytes().len() + 4 * self.documents.len()
    }

    /// Returns the hash by which a producer's bytes are recognised.
    pub(crate) fn hash(&self) -> u64 {
        let mut hash = Xxh64::new(0);
        for document in self.documents.iter() {
            // The lengths too: ["ab", "c"] is not ["a", "bc"].
            hash.update(&(document.len() as u64).to_le_bytes());
            hash.update(document);
        }
        hash.digest()
    }
}
