//! How much a connector may use, and the limiter that holds it to it.
//!
//! A limit on memory is an error, not a failed allocation: a guest that sees
//! its allocation fail aborts without a word, so the limiter says in its place
//! what the limit is and how much was asked for.

use std::time::Duration;

use wasmtime::ResourceLimiter;

/// A connector holds its batches and its buffers for the destination, a few
/// MiB; one that brings an interpreter along holds 100 MiB more. Beyond this
/// it leaks.
const MEMORY_BYTES: usize = 512 << 20;

/// Tables hold a component's function pointers: hundreds in a small connector,
/// some ten thousand in one with an interpreter.
const TABLE_ELEMENTS: usize = 100_000;

/// A component is 2 to 20 core instances: its own module, adapters, shims.
const INSTANCES: usize = 64;

/// Open files, streams, connections and databases, together. A connector keeps
/// a handful open; the limit stays under the usual 1024 file descriptors of a
/// process.
const RESOURCES: usize = 512;

/// A batch of 1 MiB takes milliseconds. 30 s is far beyond any honest batch
/// and short enough that an operator still looks at the right event.
const COMPUTE: Duration = Duration::from_secs(30);

/// Warehouses run a large merge in minutes; a quarter of an hour without any
/// answer is a connection that died without a word.
const IMPORT: Duration = Duration::from_secs(15 * 60);

/// A polling loop that asked `wait` learns of a stop at once and needs a moment
/// to return. An operator who stops a task should not notice.
const STOP_GRACE: Duration = Duration::from_millis(500);

/// Batches are up to 1 MiB, or one larger document. Twice the largest
/// document that destinations take (16 to 32 MiB).
const BATCH_BYTES: usize = 64 << 20;

/// A batch of keys may ask for many large documents at once. Half of a guest's
/// memory, into which the rows are copied.
const QUERY_BYTES: usize = 256 << 20;

/// More is noise that nobody reads and that costs the host its disk.
const LOG_LINES_PER_SECOND: u32 = 100;

/// Enough for a failed statement with its error.
const LOG_LINE_BYTES: usize = 4 << 10;

/// How much a connector may use. [`Limits::default`] has the numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Memory of one session, in all.
    pub memory_bytes: usize,
    /// Elements of one table.
    pub table_elements: usize,
    /// Core instances of one session.
    pub instances: usize,
    /// Open files, streams, connections and databases of one session.
    pub resources: usize,
    /// Computing without a call to the host in between.
    pub compute: Duration,
    /// Waiting for one import.
    pub import: Duration,
    /// One whole call; off by default.
    pub call: Option<Duration>,
    /// From a stop to the end of a call that does not return by itself.
    pub stop_grace: Duration,
    /// One batch that a connector returns.
    pub batch_bytes: usize,
    /// The rows of one query, and one value in it.
    pub query_bytes: usize,
    /// Lines to the log, on average; ten seconds' worth may come at once.
    pub log_lines_per_second: u32,
    /// One line to the log; the rest is cut.
    pub log_line_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: MEMORY_BYTES,
            table_elements: TABLE_ELEMENTS,
            instances: INSTANCES,
            resources: RESOURCES,
            compute: COMPUTE,
            import: IMPORT,
            call: None,
            stop_grace: STOP_GRACE,
            batch_bytes: BATCH_BYTES,
            query_bytes: QUERY_BYTES,
            log_lines_per_second: LOG_LINES_PER_SECOND,
            log_line_bytes: LOG_LINE_BYTES,
        }
    }
}

/// A guest asked for more memory than it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{asked} bytes of memory were asked for, and the limit is {limit}")]
pub(super) struct MemoryExceeded {
    pub(super) limit: usize,
    /// All that the session would hold.
    pub(super) asked: usize,
}

/// A guest asked for a larger table than it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a table of {asked} elements was asked for, and the limit is {limit}")]
pub(super) struct TableExceeded {
    limit: usize,
    asked: usize,
}

/// Holds one session to its limits.
pub(super) struct Limiter {
    memory_bytes: usize,
    table_elements: usize,
    instances: usize,
    /// Of all memories of the session.
    used: usize,
}

impl Limiter {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            memory_bytes: limits.memory_bytes,
            table_elements: limits.table_elements,
            instances: limits.instances,
            used: 0,
        }
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let asked = self.used.saturating_add(desired.saturating_sub(current));
        if asked > self.memory_bytes {
            return Err(MemoryExceeded {
                limit: self.memory_bytes,
                asked,
            }
            .into());
        }
        self.used = asked;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if desired > self.table_elements {
            return Err(TableExceeded {
                limit: self.table_elements,
                asked: desired,
            }
            .into());
        }
        Ok(true)
    }

    fn instances(&self) -> usize {
        self.instances
    }

    // A core instance seldom has more than one of each.
    fn tables(&self) -> usize {
        self.instances
    }

    fn memories(&self) -> usize {
        self.instances
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_count_together_and_the_error_says_how_much_was_asked_for() {
        let limits = Limits {
            memory_bytes: 100,
            table_elements: 10,
            ..Limits::default()
        };
        let mut limiter = Limiter::new(&limits);
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(limiter.memory_growing(0, 40, None).unwrap());
        let error = limiter.memory_growing(40, 41, None).unwrap_err();
        let want = MemoryExceeded {
            limit: 100,
            asked: 101,
        };
        assert_eq!(error.downcast_ref(), Some(&want));
        assert!(limiter.table_growing(0, 10, None).unwrap());
        assert!(limiter.table_growing(10, 11, None).is_err());
    }
}
