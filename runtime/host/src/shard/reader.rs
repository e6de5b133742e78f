//! Reads the described extents of the shard's journals.
//!
//! It decides nothing but which documents are the binding's: those that were
//! published within the binding's window. A document that was checked against
//! the collection's schema when it was appended is not checked again; one that
//! was checked against an older schema is.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tidegate_core::Extent;

use super::error::ShardError;
use crate::document::Checker;
use crate::journal::{Batch, Document, Journal};

/// How much is read at once: large enough that the disk is asked seldom, small
/// enough that a shard holds little more than its combiner.
const READ_BYTES: u64 = 1 << 20;

/// The publish clocks that a binding takes: `notBefore` up to, but without,
/// `notAfter`, in microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Window {
    /// The first instant, if there is one.
    pub not_before: Option<i64>,
    /// The instant that is too late, if there is one.
    pub not_after: Option<i64>,
}

impl Window {
    /// Says whether a publish clock is within.
    pub fn contains(&self, clock: i64) -> bool {
        self.not_before.is_none_or(|first| clock >= first)
            && self.not_after.is_none_or(|end| clock < end)
    }
}

/// What a binding reads.
#[derive(Clone)]
pub(crate) struct Reader {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) window: Window,
    pub(crate) checker: Arc<Checker>,
    /// The largest document that the task takes, in bytes.
    pub(crate) document_bytes_max: usize,
}

impl Reader {
    /// Reads an extent and hands each batch on.
    pub(crate) async fn read(
        &self,
        extent: Extent,
        mut take: impl FnMut(&Reader, &Batch) -> Result<(), ShardError>,
    ) -> Result<(), ShardError> {
        let mut reader = self.journal.read(extent.lower, extent.upper, READ_BYTES);
        while let Some(batch) = reader.next().await? {
            take(self, &batch)?;
            // Parsing a megabyte takes milliseconds: other shards run between.
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Iterates the documents of a batch that the binding takes.
    pub(crate) fn documents<'a>(&self, batch: &'a Batch) -> impl Iterator<Item = Document<'a>> {
        let window = self.window;
        let within = batch
            .frames()
            .filter(move |frame| window.contains(frame.clock));
        within.flat_map(|frame| frame.documents())
    }

    /// Checks a document's size, and that it fits the schema unless it was
    /// checked against this very one.
    pub(crate) fn check(&self, document: &Document<'_>) -> Result<(), ShardError> {
        if document.bytes.len() > self.document_bytes_max {
            return Err(ShardError::DocumentSize {
                collection: self.journal.collection().to_owned(),
                offset: document.offset,
                bytes: document.bytes.len(),
                limit: self.document_bytes_max,
            });
        }
        if document.schema == self.checker.fingerprint() {
            return Ok(());
        }
        self.checker
            .check(document.bytes)
            .map_err(|violation| ShardError::Schema {
                collection: self.journal.collection().to_owned(),
                offset: document.offset,
                violation: Box::new(violation),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_takes_its_start_and_not_its_end() {
        let window = Window {
            not_before: Some(10),
            not_after: Some(20),
        };
        let taken: Vec<i64> = (8..23).filter(|clock| window.contains(*clock)).collect();
        assert_eq!(taken, (10..20).collect::<Vec<_>>());
        assert!(Window::default().contains(i64::MIN));
    }
}
