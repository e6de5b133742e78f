//! An instant, as it enters the core.

/// One instant, read from both clocks by whoever drives the core.
///
/// Ages are measured on the monotonic clock. The wall clock serves schedules
/// alone, because it may jump either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds on a clock that never goes back; its origin means nothing.
    pub monotonic_millis: u64,
    /// Milliseconds since the Unix epoch.
    pub wall_millis: i64,
}

impl Now {
    /// Says how many milliseconds passed since `earlier`, zero if none did.
    pub fn millis_since(self, earlier: Now) -> u64 {
        self.monotonic_millis
            .saturating_sub(earlier.monotonic_millis)
    }
}
