//! Documents packed into one buffer.

/// Documents in one buffer: many to append, no allocation for each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Documents {
    buffer: Vec<u8>,
    ends: Vec<usize>,
}

impl Documents {
    /// Returns an empty packing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns an empty packing with room for `bytes` bytes of documents.
    pub fn with_capacity(bytes: usize) -> Self {
        Self {
            buffer: Vec::with_capacity(bytes),
            ends: Vec::new(),
        }
    }

    /// Adds a document.
    pub fn push(&mut self, document: &[u8]) {
        self.buffer.extend_from_slice(document);
        self.ends.push(self.buffer.len());
    }

    /// Returns the number of documents.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Tells whether there is no document.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns all documents' bytes, one after another.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// Returns where each document ends in [`Self::bytes`].
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// Iterates over the documents.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let document = &self.buffer[start..end];
            start = end;
            document
        })
    }
}

impl<'a> FromIterator<&'a [u8]> for Documents {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(documents: I) -> Self {
        let mut packed = Self::new();
        for document in documents {
            packed.push(document);
        }
        packed
    }
}
