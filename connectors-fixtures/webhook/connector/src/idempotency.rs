//! Idempotency keys: what a server knows a repeated request by.
//!
//! ```text
//! task, key range, checkpoint before the transaction -> transaction
//! transaction, path, place in it, body -> key
//! ```
//!
//! A replay begins at the same checkpoint and reads the same documents, so its keys are
//! the same. The body is part of the key because a key must never stand for two
//! bodies: if limits or fields were changed between a crash and its replay, batches are
//! cut otherwise, and a server that dropped them by their place alone would lose
//! documents.

use sha2::{Digest, Sha256};
use tidegate_boilerplate::KeyRange;

/// A transaction, by where it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transaction {
    task: String,
    range: KeyRange,
    /// The checkpoint before it; none before the first.
    from: Option<String>,
}

impl Transaction {
    /// Returns the one that a session begins with.
    pub(crate) fn first(task: &str, range: &KeyRange, from: Option<&str>) -> Self {
        Self {
            task: task.to_owned(),
            range: range.clone(),
            from: from.map(str::to_owned),
        }
    }

    /// Goes on to the next one, which begins at a checkpoint.
    pub(crate) fn next(&mut self, checkpoint: &str) {
        self.from = Some(checkpoint.to_owned());
    }

    /// Returns the key of a request: of the documents from the `first`-th of the path's.
    pub(crate) fn key(&self, path: &str, first: u64, body: &[u8]) -> String {
        let mut hash = Sha256::new();
        let (begin, end) = (self.range.begin, self.range.end);
        let place = format!("{begin:08x}-{end:08x}/{first}");
        let parts = [
            self.task.as_bytes(),
            self.from.as_deref().unwrap_or_default().as_bytes(),
            path.as_bytes(),
            place.as_bytes(),
            body,
        ];
        for part in parts {
            // Lengths keep two neighbours from being read as two others.
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.finalize()
            .iter()
            .map(|it| format!("{it:02x}"))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_wherever_requests_do_and_nowhere_else() {
        let range = KeyRange::FULL;
        let half = KeyRange {
            begin: 0,
            end: 0x7fff_ffff,
        };
        let first = || Transaction::first("a/b", &range, None);
        let mut second = first();
        second.next("one");
        let reopened = Transaction::first("a/b", &range, Some("one"));
        assert_eq!(second, reopened, "a replay is the same transaction");
        assert_eq!(second.key("/p", 7, b"[]"), reopened.key("/p", 7, b"[]"));

        let keys = [
            first().key("/p", 0, b"[1]"),
            first().key("/p", 0, b"[2]"),
            first().key("/p", 1, b"[1]"),
            first().key("/q", 0, b"[1]"),
            second.key("/p", 0, b"[1]"),
            Transaction::first("a/b", &half, None).key("/p", 0, b"[1]"),
            Transaction::first("a/c", &range, None).key("/p", 0, b"[1]"),
            Transaction::first("a/b/", &range, None).key("p", 0, b"[1]"),
        ];
        for (index, key) in keys.iter().enumerate() {
            assert_eq!(key.len(), 64);
            assert!(!keys[..index].contains(key), "{index}");
        }
    }

    /// A server may still know keys of a version before.
    #[test]
    fn a_key_is_this_text() {
        let key = Transaction::first("a/b", &KeyRange::FULL, Some("one")).key("/p", 2, b"[]");
        assert_eq!(
            key,
            "9e0b91aeea3a66c60153c1b0982dfba2819cac430b7616c825e8d2495aa9da17"
        );
    }
}
