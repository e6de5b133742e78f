//! What a child process takes: time, and memory at its peak.

use std::time::Duration;

use anyhow::ensure;
use serde_json::{Value, json};
use tidegate_tests::host::{Finished, Host};

/// The longest measurement.
const MEASURED_MAX: Duration = Duration::from_secs(1_800);

/// How often the memory is looked at. The kernel keeps the peak, so only what
/// the process takes in its last moments can be missed.
const LOOK: Duration = Duration::from_millis(5);

/// What a run took.
pub struct Measured {
    /// From its start to its end.
    pub took: Duration,
    /// The most memory that was resident, in KiB.
    pub peak_memory_kib: u64,
    /// What it computed, in all its threads.
    pub cpu: Duration,
    /// What it printed.
    pub finished: Finished,
}

impl Measured {
    /// Runs a process to its end.
    pub fn run(host: Host) -> anyhow::Result<Measured> {
        let measured = Measured::for_at_most(host, MEASURED_MAX);
        let finished = &measured.finished;
        ensure!(
            finished.code == Some(0),
            "{} failed:\n{}",
            finished.command,
            finished.stderr
        );
        Ok(measured)
    }

    /// Runs a process to its end, or kills it after a while.
    pub fn for_at_most(mut host: Host, limit: Duration) -> Measured {
        let mut peak_memory_kib = 0;
        let mut cpu = Duration::ZERO;
        let mut waited = Duration::ZERO;
        while waited < limit && !host.ends_within(LOOK) {
            peak_memory_kib = host.peak_memory_kib().unwrap_or(peak_memory_kib);
            cpu = cpu_of(host.id()).map_or(cpu, |of| of.own);
            waited = host.age();
        }
        let finished = host.kill();
        Measured {
            took: finished.took,
            peak_memory_kib,
            cpu,
            finished,
        }
    }

    /// Returns how many documents a second it took.
    pub fn rate(&self, documents: usize) -> f64 {
        documents as f64 / self.took.as_secs_f64()
    }

    /// Returns the figures.
    pub fn figures(&self, documents: usize) -> Value {
        json!({
            "seconds": round(self.took.as_secs_f64(), 1_000.0),
            "documentsPerSecond": self.rate(documents).round(),
            "cpuSeconds": round(self.cpu.as_secs_f64(), 100.0),
            "peakMemoryKib": self.peak_memory_kib,
        })
    }
}

/// Returns the fastest of some runs.
pub fn fastest(runs: Vec<Measured>) -> Measured {
    let fastest = runs.into_iter().min_by_key(|run| run.took);
    fastest.expect("there is at least one run")
}

/// What a process has computed.
pub struct Cpu {
    /// By itself.
    pub own: Duration,
    /// By its children that have ended.
    pub children: Duration,
}

/// Reads what a process has computed; nothing once it is over.
pub fn cpu_of(id: u32) -> Option<Cpu> {
    /// What Linux counts in, on every machine of today.
    const TICK: Duration = Duration::from_millis(10);
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name before may have blanks; what follows it are the fields from the third.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3)?.parse::<u32>().ok();
    Some(Cpu {
        own: TICK * (ticks(14)? + ticks(15)?),
        children: TICK * (ticks(16)? + ticks(17)?),
    })
}

/// Cuts digits that a measurement does not have.
pub fn round(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}
