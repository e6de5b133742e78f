//! The clocks, as the only place where they are read.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tidegate_core::Now;

/// Tells the time.
pub trait Clock: Send + Sync + 'static {
    /// Reads both clocks.
    fn now(&self) -> Now;
}

/// The machine's own clocks.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// Returns a clock whose monotonic origin is now.
    pub fn new() -> Self {
        SystemClock {
            start: Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Now {
        Now {
            monotonic_millis: self.start.elapsed().as_millis() as u64,
            wall_millis: wall_micros() / 1_000,
        }
    }
}

/// Reads the wall clock, in microseconds since the Unix epoch: the unit of
/// publish clocks.
pub fn wall_micros() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_micros() as i64,
        Err(before) => -(before.duration().as_micros() as i64),
    }
}
