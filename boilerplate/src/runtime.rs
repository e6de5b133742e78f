//! What the host does for every connector: logs, and waits that it can end early.
//!
//! Natively, log lines go to standard error, and time passes at once.

use std::time::Duration;

/// How important a log line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something failed.
    Error,
    /// Something may fail.
    Warn,
    /// Something happened that an operator wants to see.
    Info,
    /// Something for whoever looks for a fault.
    Debug,
}

/// Why a wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The time has passed.
    Elapsed,
    /// The session is ending: return from the call soon.
    Shutdown,
}

#[cfg(target_family = "wasm")]
mod guest {
    use super::{Duration, Level, Wake};
    use crate::bindings::tidegate::connector::runtime;

    /// Writes a line to the host's log.
    pub fn log(level: Level, message: &str) {
        let level = match level {
            Level::Error => runtime::Level::Error,
            Level::Warn => runtime::Level::Warn,
            Level::Info => runtime::Level::Info,
            Level::Debug => runtime::Level::Debug,
        };
        runtime::log(level, message);
    }

    /// Waits, for polling loops; it does not count as computing.
    pub fn wait(time: Duration) -> Wake {
        let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        match runtime::wait(milliseconds) {
            runtime::Wake::Elapsed => Wake::Elapsed,
            runtime::Wake::Shutdown => Wake::Shutdown,
        }
    }
}

#[cfg(not(target_family = "wasm"))]
mod native {
    use std::cell::RefCell;

    use super::{Duration, Level, Wake};

    thread_local! {
        static WAITED: RefCell<Vec<Duration>> = const { RefCell::new(Vec::new()) };
    }

    /// Writes a line to the host's log.
    pub fn log(level: Level, message: &str) {
        eprintln!("{level:?}: {message}");
    }

    /// Waits, for polling loops; it does not count as computing.
    pub fn wait(time: Duration) -> Wake {
        WAITED.with_borrow_mut(|waited| waited.push(time));
        Wake::Elapsed
    }

    /// Returns the waits of this thread since it was asked last, for tests.
    pub fn waited() -> Vec<Duration> {
        WAITED.take()
    }
}

#[cfg(target_family = "wasm")]
pub use guest::{log, wait};
#[cfg(not(target_family = "wasm"))]
pub use native::{log, wait, waited};
