//! SIGINT and SIGTERM: the first one stops in order, the second one at once.

use std::process;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::CliError;

/// The exit code of a process that a second signal stopped: 128 + SIGINT.
const INTERRUPTED: i32 = 130;

/// Both signals.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Listens from now on.
    pub fn listen() -> Result<Signals, CliError> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Ends the process, with whatever is open.
pub fn stop_at_once() -> ! {
    eprintln!("stopped at once; the next run recovers");
    process::exit(INTERRUPTED);
}
