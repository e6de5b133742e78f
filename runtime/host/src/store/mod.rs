//! Stores: small values under keys, each with a revision.
//!
//! A write names the revision that it replaces, so whoever acts on what it has read
//! finds out that somebody wrote in between. One key a write; predicates over a
//! value's content (a task's state, its epoch) are the business of those who write
//! it: read, judge, put, and on a conflict read and judge again.

#[cfg(test)]
pub(crate) mod contract;
pub mod embedded;
mod error;

pub use embedded::EmbeddedStore;
pub use error::StoreError;

use futures::future::BoxFuture;

/// The largest value, in bytes.
///
/// The largest thing stored is a connector's state, which outgrows memory long
/// before this; beyond it something accumulates that should not.
pub const VALUE_BYTES_MAX: usize = 64 << 20;

/// The longest key, in bytes: four names of a task's length and their separators.
pub const KEY_BYTES_MAX: usize = 1024;

/// Values under keys.
pub trait Store: Send + Sync {
    /// Reads a value.
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Versioned>, StoreError>>;

    /// Writes a value in place of the revision `expected`, `None` for a new key.
    ///
    /// Resolves once durable, with the new revision, which is greater than all of
    /// the key before. A future dropped before it resolves may or may not have written.
    fn put<'a>(
        &'a self,
        key: &'a str,
        value: Vec<u8>,
        expected: Option<u64>,
    ) -> BoxFuture<'a, Result<u64, StoreError>>;

    /// Lists the keys that begin with a prefix, in order.
    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<String>, StoreError>>;
}

/// A value and its revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned {
    /// The value.
    pub value: Vec<u8>,
    /// The revision to name when replacing it.
    pub revision: u64,
}
