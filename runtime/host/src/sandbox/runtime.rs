//! The interface `runtime`: logging and waiting.

use std::time::Duration;

use super::bindings::runtime::{Host, Level, Wake};
use super::guest::Guest;
use super::log::LogLevel;

impl Host for Guest {
    fn log(&mut self, level: Level, message: String) -> wasmtime::Result<()> {
        let level = match level {
            Level::Error => LogLevel::Error,
            Level::Warn => LogLevel::Warn,
            Level::Info => LogLevel::Info,
            Level::Debug => LogLevel::Debug,
            Level::Trace => LogLevel::Trace,
        };
        self.enter("runtime.log").log.line(level, &message);
        Ok(())
    }

    async fn wait(&mut self, milliseconds: u64) -> wasmtime::Result<Wake> {
        self.enter("runtime.wait");
        // The host may end a wait early, and does so before it looks like an
        // import that hangs.
        let wait = Duration::from_millis(milliseconds).min(self.limits.import / 2);
        tokio::select! {
            biased;
            () = self.stop.finishing() => Ok(Wake::Shutdown),
            () = tokio::time::sleep(wait) => Ok(Wake::Elapsed),
        }
    }
}
