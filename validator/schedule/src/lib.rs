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

pub use clock::{ClockTime, Day, DaySet};
pub use legacy::{Configured, ConnectorSchedule, DEFAULT_FREQUENCY, classify};
pub use problem::{Problem, ProblemKind, ScheduleError};
