//! Sync schedules: when a task's open transaction may commit.
//!
//! The validator, the host and the connector boilerplate all read schedules with this crate, so that what was
//! accepted at build time is what runs. It is pure: no clock, no IO; instants come in and go out as values.
//!
//! Without the feature `evaluate` only a connector's own schedule can be read, which is all a guest needs.

mod clock;
mod interval;
mod legacy;
mod problem;
mod upload;

#[cfg(feature = "evaluate")]
mod cron;
#[cfg(feature = "evaluate")]
mod explain;
#[cfg(feature = "evaluate")]
mod model;
#[cfg(feature = "evaluate")]
mod near;
#[cfg(feature = "evaluate")]
mod pacing;
#[cfg(feature = "evaluate")]
mod week;
#[cfg(feature = "evaluate")]
mod zone;

pub use clock::{ClockTime, Day, DaySet};
pub use legacy::{Configured, ConnectorSchedule, DEFAULT_FREQUENCY, classify};
pub use problem::{Problem, ProblemKind, ScheduleError};
pub use upload::{DEFAULT_UPLOAD_INTERVAL, classify_uploads};

#[cfg(feature = "evaluate")]
pub use explain::{Entry, Regime};
#[cfg(feature = "evaluate")]
pub use model::{CompiledSchedule, seed_of};
#[cfg(feature = "evaluate")]
pub use pacing::CompiledPacing;
