//! The two runtimes: scheduling and data work do not share threads.
//!
//! The control runtime leads tasks; it must answer while every core parses
//! documents. The data runtime parses, combines, calls connectors and waits for
//! disk.

use std::io;

use tokio::runtime::{Builder, Handle, Runtime};

/// Control threads. Leaders exchange messages and decide; one thread leads
/// thousands of tasks.
const CONTROL_THREADS: usize = 1;

/// Both runtimes. Dropping it ends everything that runs on them.
#[derive(Debug)]
pub struct Runtimes {
    // Fields drop in this order: what asks goes before what answers.
    control: Runtime,
    data: Runtime,
}

impl Runtimes {
    /// Starts the threads: one data thread a core.
    pub fn start() -> io::Result<Runtimes> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = |name: &str, threads| {
            Builder::new_multi_thread()
                .worker_threads(threads)
                .thread_name(name)
                .enable_all()
                .build()
        };
        Ok(Runtimes {
            control: runtime("control", CONTROL_THREADS)?,
            data: runtime("data", cores)?,
        })
    }

    /// Runs a future on the calling thread, with the control runtime around it.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.control.block_on(future)
    }

    /// Returns the control runtime.
    pub fn control(&self) -> &Handle {
        self.control.handle()
    }

    /// Returns the data runtime.
    pub fn data(&self) -> &Handle {
        self.data.handle()
    }
}
