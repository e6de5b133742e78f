//! Documents on their way into one request.

use tidegate_boilerplate::ConnectorError;
use tidegate_boilerplate::text::key_text;
use tidegate_boilerplate::tuple;

use crate::config::BatchLimits;

/// A document, and what it is called in an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Document {
    /// The key's tuple.
    pub(crate) key: Vec<u8>,
    /// JSON text.
    pub(crate) text: String,
}

impl Document {
    /// Returns the key as JSON text.
    pub(crate) fn key_text(&self) -> Result<String, ConnectorError> {
        Ok(key_text(&tuple::decode(&self.key)?))
    }
}

/// Documents of one binding, in key order.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The place of the first among the binding's documents of the transaction.
    pub(crate) first: u64,
    pub(crate) documents: Vec<Document>,
    bytes: usize,
}

impl Batch {
    /// Says whether a document would make it too large. Where batches are cut depends on
    /// the documents alone, so that a replay cuts them in the same places.
    pub(crate) fn is_full_for(&self, document: &Document, limits: BatchLimits) -> bool {
        !self.documents.is_empty()
            && (self.documents.len() >= limits.documents
                || self.bytes + bytes_of(document) > limits.bytes)
    }

    /// Adds a document.
    pub(crate) fn push(&mut self, document: Document) {
        self.bytes += bytes_of(&document);
        self.documents.push(document);
    }

    /// Returns what it holds, and begins the batch that follows it.
    pub(crate) fn take(&mut self) -> Batch {
        let next = Batch {
            first: self.first + self.documents.len() as u64,
            ..Batch::default()
        };
        std::mem::replace(self, next)
    }
}

/// With a comma or bracket.
fn bytes_of(document: &Document) -> usize {
    document.text.len() + 1
}

/// Returns the body of a request: a JSON array.
pub(crate) fn body(documents: &[Document]) -> Vec<u8> {
    let bytes: usize = documents.iter().map(bytes_of).sum();
    let mut body = Vec::with_capacity(bytes + 1);
    for document in documents {
        body.push(if body.is_empty() { b'[' } else { b',' });
        body.extend_from_slice(document.text.as_bytes());
    }
    body.push(b']');
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Document {
        Document {
            key: Vec::new(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn batches_are_cut_by_bytes_and_by_documents() {
        let limits = BatchLimits {
            bytes: 10,
            documents: 3,
        };
        let texts = ["1", "2", "3", "4", "55555", "666", "7777777777777", "8"];
        let (mut batch, mut cut) = (Batch::default(), Vec::new());
        let mut end = |batch: &mut Batch| {
            let taken = batch.take();
            let body = String::from_utf8(body(&taken.documents)).unwrap();
            cut.push((taken.first, body));
        };
        for text in texts {
            let document = document(text);
            if batch.is_full_for(&document, limits) {
                end(&mut batch);
            }
            batch.push(document);
        }
        end(&mut batch);
        let want = [
            (0, "[1,2,3]"),
            (3, "[4,55555]"),
            (5, "[666]"),
            (6, "[7777777777777]"),
            (7, "[8]"),
        ];
        assert_eq!(cut, want.map(|(first, body)| (first, body.to_owned())));
    }
}
