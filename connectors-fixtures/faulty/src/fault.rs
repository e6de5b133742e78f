//! What each fault does.

use std::hint::black_box;
use std::time::Duration;

use tidegate_boilerplate::net::Connection;
use tidegate_boilerplate::runtime::{self, Level, Wake};
use tidegate_boilerplate::sqlite::Database;
use tidegate_boilerplate::{ConnectorError, packed};

use crate::config::{Call, Fault, FaultKind, Violation};
use crate::reach;

/// Taken at once by `hoard`; small enough to come close to any limit.
const HOARD_STEP_BYTES: usize = 1 << 20;

/// Lines of `flood`: more than any sensible rate allows at once.
const FLOOD_LINES: u32 = 10_000;

/// A step of `slow`.
const SLOW_STEP: Duration = Duration::from_millis(100);

impl Fault {
    /// Lets it happen. Returns an error for the call to return, or nothing for the
    /// call to go on.
    pub(crate) fn happen(&self, call: Call) -> Result<(), ConnectorError> {
        let time = Duration::from_millis(self.milliseconds.unwrap_or_default());
        match self.kind {
            FaultKind::Panic => panic!("faulty: told to panic in {call:?}"),
            FaultKind::Spin => spin(),
            FaultKind::Hoard => hoard(),
            FaultKind::Recurse => {
                recurse(0);
            }
            FaultKind::Sleep => sleep(time),
            FaultKind::Slow => slow(time),
            FaultKind::Flood => flood(),
            FaultKind::Error => {
                let message = format!("faulty: told to fail in {call:?}");
                return Err(ConnectorError::new(self.error_kind()?, message));
            }
            FaultKind::HangNet => hang(self.address.as_deref().unwrap_or_default())?,
            FaultKind::Reach => return Err(reach::all(&self.reach)),
            // Their time is when there is an answer, or none.
            FaultKind::Violate | FaultKind::Skip => {}
        }
        Ok(())
    }

    /// Spoils the answer to `load` or `flush`, if that is the fault.
    pub(crate) fn spoil_batch(&self, answer: &mut Vec<u8>) {
        match self.violation {
            Some(Violation::Ordinal) => packed::push_loaded(answer, u32::MAX, b"{}"),
            Some(Violation::Batch) => answer.extend_from_slice(&[0, 0, 0]),
            Some(Violation::Document) => {
                answer.clear();
                packed::push_loaded(answer, 0, b"{\"id\":");
            }
            Some(Violation::Json | Violation::Property) | None => {}
        }
    }

    /// Spoils an answer that is JSON text, if that is the fault.
    pub(crate) fn spoil_message(&self, answer: &mut String) {
        match self.violation {
            Some(Violation::Json) => answer.insert(0, '{'),
            Some(Violation::Property) => *answer = r#"{"unheardOf":1}"#.to_owned(),
            Some(Violation::Ordinal | Violation::Batch | Violation::Document) | None => {}
        }
    }
}

fn spin() {
    let mut turns = 0_u64;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}

fn hoard() {
    let mut hoard = Vec::new();
    loop {
        // Not zeroes: those may be memory that nobody has touched yet.
        hoard.push(black_box(vec![1_u8; HOARD_STEP_BYTES]));
    }
}

#[allow(unconditional_recursion)] // It is the point.
fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 64]);
    recurse(frame[0] + 1).wrapping_add(black_box(frame[1]))
}

fn slow(time: Duration) {
    let mut left = time;
    while !left.is_zero() && runtime::wait(SLOW_STEP) == Wake::Elapsed {
        left = left.saturating_sub(SLOW_STEP);
    }
}

fn flood() {
    for line in 0..FLOOD_LINES {
        runtime::log(
            Level::Info,
            &format!("faulty: line {line} of {FLOOD_LINES}"),
        );
    }
}

fn hang(address: &str) -> Result<(), ConnectorError> {
    let (host, port) = reach::split(address)?;
    let read = Connection::open(host, port)?.read(1)?;
    Err(ConnectorError::transient(format!(
        "faulty: {address} was to say nothing, and said {} bytes",
        read.len()
    )))
}

#[cfg(target_family = "wasm")]
fn sleep(time: Duration) {
    use tidegate_boilerplate::bindings::wasi::clocks::monotonic_clock;
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    monotonic_clock::subscribe_duration(nanos).block();
}

#[cfg(not(target_family = "wasm"))]
fn sleep(time: Duration) {
    // Natively there is no clock of WASI; the time passes at once.
    runtime::wait(time);
}

/// Counts how often a fault has happened over all instances, in a file of its own:
/// what is written in the session's database would be rolled back with it.
pub(crate) struct Counter(Database);

impl Counter {
    /// Opens the counter beside a database.
    pub(crate) fn beside(path: &str) -> Result<Self, ConnectorError> {
        let db = Database::open(&format!("{path}.faults"))?;
        db.execute(
            "CREATE TABLE IF NOT EXISTS faults (nth INTEGER PRIMARY KEY)",
            &[],
        )?;
        Ok(Self(db))
    }

    /// Takes one of `times`; none may be left.
    pub(crate) fn take(&self, times: u32) -> Result<bool, ConnectorError> {
        let sql = format!(
            "INSERT INTO faults (nth) SELECT count(*) + 1 FROM faults HAVING count(*) < {times}"
        );
        Ok(self.0.execute(&sql, &[])? > 0)
    }
}
