//! The part of an input that has been read, recognisable later. Pure.

use xxhash_rust::xxh64::Xxh64;

/// How much of the prefix's beginning and of its end is looked at, in bytes.
///
/// Reading two blocks a resume is cheap, and rotating, truncating or rewriting a
/// file changes at least one of them; an edit far inside is not looked for.
pub(super) const EDGE_BYTES: usize = 4096;

/// The beginning and the end of what has been read.
#[derive(Debug, Clone, Default)]
pub(super) struct Prefix {
    length: u64,
    head: Vec<u8>,
    /// The last bytes, at least `EDGE_BYTES` of them if there are.
    tail: Vec<u8>,
}

impl Prefix {
    /// Returns the prefix of `length` bytes with these edges.
    pub(super) fn of(length: u64, head: Vec<u8>, tail: Vec<u8>) -> Self {
        Self { length, head, tail }
    }

    /// Returns how long the edges of a prefix of `length` bytes are.
    pub(super) fn edge(length: u64) -> usize {
        usize::try_from(length).map_or(EDGE_BYTES, |length| length.min(EDGE_BYTES))
    }

    /// Lengthens the prefix.
    pub(super) fn advance(&mut self, bytes: &[u8]) {
        let missing = EDGE_BYTES - self.head.len();
        self.head
            .extend_from_slice(&bytes[..bytes.len().min(missing)]);
        self.tail
            .extend_from_slice(&bytes[bytes.len().saturating_sub(EDGE_BYTES)..]);
        self.tail
            .drain(..self.tail.len().saturating_sub(EDGE_BYTES));
        self.length += bytes.len() as u64;
    }

    /// Returns the number of bytes.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Returns the last byte.
    pub(super) fn last(&self) -> Option<u8> {
        self.tail.last().copied()
    }

    /// Returns what tells this prefix from another of its length.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut hash = Xxh64::new(0);
        hash.update(&self.head);
        hash.update(&self.tail);
        hash.digest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn however_it_is_read(
            content in proptest::collection::vec(any::<u8>(), 0..20_000),
            step in 1_usize..9000,
        ) {
            let mut prefix = Prefix::default();
            for chunk in content.chunks(step) {
                prefix.advance(chunk);
            }
            let length = content.len() as u64;
            let edge = Prefix::edge(length);
            let head = content[..edge].to_vec();
            let tail = content[content.len() - edge..].to_vec();
            let want = Prefix::of(length, head, tail);
            prop_assert_eq!(prefix.fingerprint(), want.fingerprint());
            prop_assert_eq!(prefix.length(), length);
            prop_assert_eq!(prefix.last(), content.last().copied());
        }
    }
}
