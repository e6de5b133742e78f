//! Journals: the ordered, durable, append-only logs behind collections.
//!
//! A journal numbers its documents from 0; a document's number is its offset.
//! Documents arrive in *appends*. What must be atomic with the documents (publish
//! clock, schema fingerprint, where they came from) travels in the same frame.
//!
//! ```text
//! Append -> frame -> durable -> ends() moves -> extent() -> read()
//! ```
//!
//! Nothing above these traits knows which implementation is in use. Journals do
//! not parse documents and do not know about collections' schemas, keys or tasks.

mod append;
mod batch;
#[cfg(test)]
pub(crate) mod contract;
mod documents;
pub mod embedded;
mod error;
pub mod follow;

pub use append::{Append, Appended, InputPosition, Origin};
pub use batch::{Batch, Document, Frame};
pub use documents::Documents;
pub use embedded::EmbeddedJournals;
pub use error::JournalError;

use futures::future::BoxFuture;
use std::sync::Arc;
use tokio::sync::watch;

/// The largest document that a journal takes, in bytes.
///
/// A document is held whole in memory several times on its way (journal, combiner,
/// guest), so this bounds what one line of a file can cost a small host; real
/// documents are a thousand times smaller.
pub const DOCUMENT_BYTES_MAX: usize = 16 << 20;

/// The largest append, counting its documents and four bytes for each.
///
/// Room for one document of the greatest size beside an ordinary batch.
pub const APPEND_BYTES_MAX: usize = 32 << 20;

/// The longest input identity or producer key, in bytes.
///
/// An identity is an absolute path, which Linux ends at 4096 bytes.
pub const ORIGIN_BYTES_MAX: usize = 4096;

/// All journals of one place.
pub trait Journals: Send + Sync {
    /// Opens the journal of a collection, creating it on first use.
    fn open<'a>(
        &'a self,
        collection: &'a str,
    ) -> BoxFuture<'a, Result<Arc<dyn Journal>, JournalError>>;

    /// Lists the collections that have a journal, in order.
    fn list(&self) -> BoxFuture<'_, Result<Vec<String>, JournalError>>;
}

/// One collection's log.
pub trait Journal: Send + Sync {
    /// Returns the name of the collection.
    fn collection(&self) -> &str;

    /// Appends documents, all or none; resolves once they are durable.
    ///
    /// A future dropped before it resolves may or may not have appended: what must
    /// not be doubled carries an [`Origin`].
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended, JournalError>>;

    /// Watches the next offset, which is also the number of durable documents.
    fn ends(&self) -> watch::Receiver<u64>;

    /// Tells how far a read of about `bytes_max` bytes from `lower` reaches.
    ///
    /// At least one frame if there is any; asks no disk.
    fn extent(&self, lower: u64, bytes_max: u64) -> Extent;

    /// Reads the documents of `[lower, upper)` in batches of about `bytes_max` bytes.
    fn read(&self, lower: u64, upper: u64, bytes_max: u64) -> Box<dyn Reader>;

    /// Returns up to where an input has been appended, if anything of it was.
    fn position(&self, input: &str) -> Option<InputPosition>;
}

/// A read in progress.
pub trait Reader: Send {
    /// Reads the next batch, which holds at least one document; `None` at the end.
    ///
    /// After an error, or a future dropped before it resolved, the reader is spent.
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Batch>, JournalError>>;
}

/// How far a read reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The offset after the last document; equal to the lower one if there is nothing.
    pub upper: u64,
    /// About how many bytes the documents take.
    pub bytes: u64,
}
