//! Gauges: how much all combiners of a process hold at this moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What combiners hold, summed over all that share it.
#[derive(Debug, Default)]
pub struct CombineGauges {
    bytes: AtomicU64,
    keys: AtomicU64,
}

impl CombineGauges {
    /// Bytes of memory.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Keys that have not been stored yet.
    pub fn keys(&self) -> u64 {
        self.keys.load(Ordering::Relaxed)
    }
}

/// What one combiner has added to the gauges; dropping it takes that back.
#[derive(Debug)]
pub(super) struct Share {
    gauges: Arc<CombineGauges>,
    bytes: u64,
    keys: u64,
}

impl Share {
    pub(super) fn new(gauges: Arc<CombineGauges>) -> Self {
        Share {
            gauges,
            bytes: 0,
            keys: 0,
        }
    }

    pub(super) fn set(&mut self, bytes: u64, keys: u64) {
        adjust(&self.gauges.bytes, &mut self.bytes, bytes);
        adjust(&self.gauges.keys, &mut self.keys, keys);
    }
}

fn adjust(gauge: &AtomicU64, have: &mut u64, want: u64) {
    match want.checked_sub(*have) {
        Some(0) => {}
        Some(more) => {
            gauge.fetch_add(more, Ordering::Relaxed);
        }
        None => {
            gauge.fetch_sub(*have - want, Ordering::Relaxed);
        }
    }
    *have = want;
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0, 0);
    }
}
