//! What there is to read, as it was last reported.

use crate::frontier::{Extents, Frontier, Source};

/// For every source, how far may be read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Input {
    /// As far as one bounded extension reaches.
    reach: Frontier,
    /// As far as the journals go.
    ends: Frontier,
}

impl Input {
    /// Returns an input of which only the journals' ends are known.
    pub(crate) fn new(ends: Frontier) -> Self {
        Input {
            reach: Frontier::default(),
            ends,
        }
    }

    /// Records that `source` may be read up to `upper`, and goes up to `end`.
    pub(crate) fn record(&mut self, source: Source, upper: u64, end: u64) {
        self.ends.raise(source.clone(), end.max(upper));
        self.reach.raise(source, upper);
    }

    /// Returns what may be read beyond `frontier`.
    pub(crate) fn beyond(&self, frontier: &Frontier) -> Extents {
        Extents::between(frontier, &self.reach)
    }

    /// Says whether anything may be read beyond `frontier`.
    pub(crate) fn reaches_beyond(&self, frontier: &Frontier) -> bool {
        !frontier.covers(&self.reach)
    }

    /// Returns the journals' ends, as last reported.
    pub(crate) fn ends(&self) -> &Frontier {
        &self.ends
    }
}
