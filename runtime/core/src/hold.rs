//! How a schedule holds something until an instant of the wall clock.
//!
//! The same hold serves both uses: an open transaction held until its commit
//! instant, and a committed one whose acknowledgement is held (see `pacing`).
//!
//! ```text
//! anchor --next_fire--> until        now < anchor: anchored again to now
//! ```
//!
//! What a schedule looks like is deliberately unknown here; it is asked for
//! the next instant and for nothing else.

use std::fmt;
use std::sync::Arc;

use crate::now::Now;

/// How long a wall-clock hold may go without being looked at again.
///
/// A wall clock can be set while a timer sleeps. Half a minute bounds how late
/// a commit then is, and costs two wake-ups a minute.
pub const REEVALUATE_MILLIS_MAX: u64 = 30_000;

/// Something that knows when to commit next.
pub trait CommitSchedule: fmt::Debug + Send + Sync {
    /// Returns the first instant after `after_millis`, both since the Unix
    /// epoch; none if nothing is to be held.
    fn next_fire(&self, after_millis: i64, seed: u64) -> Option<i64>;
}

/// A schedule with the seed of its jitter.
#[derive(Debug, Clone)]
pub struct SeededSchedule {
    /// The schedule.
    pub schedule: Arc<dyn CommitSchedule>,
    /// What its jitter is derived from.
    pub seed: u64,
}

/// A hold: from when, until when, and what says so.
#[derive(Debug, Clone)]
pub(crate) struct Hold {
    schedule: SeededSchedule,
    anchor_millis: i64,
    until_millis: i64,
}

impl Hold {
    /// Begins the hold that `schedule` asks for at `anchor`, if it asks for one.
    pub(crate) fn begin(schedule: &SeededSchedule, anchor_millis: i64) -> Option<Hold> {
        let until_millis = schedule.schedule.next_fire(anchor_millis, schedule.seed)?;
        Some(Hold {
            schedule: schedule.clone(),
            anchor_millis,
            until_millis,
        })
    }

    /// Returns the hold as it stands at `now`.
    ///
    /// A clock that went back before the anchor anchors again: otherwise a
    /// clock that was years ahead when the hold began would hold for years.
    pub(crate) fn at(self, now: Now) -> Option<Hold> {
        if now.wall_millis < self.anchor_millis {
            return Hold::begin(&self.schedule, now.wall_millis);
        }
        Some(self)
    }

    /// Returns the instant it ends at, in milliseconds since the Unix epoch.
    pub(crate) fn until_millis(&self) -> i64 {
        self.until_millis
    }
}

/// Says how long to sleep for `until`, at most [`REEVALUATE_MILLIS_MAX`].
///
/// Returns none once the instant has come.
pub(crate) fn remaining_millis(until_millis: i64, wall_millis: i64) -> Option<u64> {
    if wall_millis >= until_millis {
        return None;
    }
    Some(
        until_millis
            .abs_diff(wall_millis)
            .min(REEVALUATE_MILLIS_MAX),
    )
}
