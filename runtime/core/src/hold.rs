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

#[cfg(test)]
mod tests {
    use super::*;

    /// Fires every hour on the hour, shifted by the seed.
    #[derive(Debug)]
    struct Hourly;

    const HOUR: i64 = 3_600_000;

    impl CommitSchedule for Hourly {
        fn next_fire(&self, after_millis: i64, seed: u64) -> Option<i64> {
            let seed = i64::try_from(seed).expect("tests use small seeds");
            Some((after_millis - seed).div_euclid(HOUR) * HOUR + HOUR + seed)
        }
    }

    /// Asks for no hold.
    #[derive(Debug)]
    struct Never;

    impl CommitSchedule for Never {
        fn next_fire(&self, _: i64, _: u64) -> Option<i64> {
            None
        }
    }

    fn hourly(seed: u64) -> SeededSchedule {
        SeededSchedule {
            schedule: Arc::new(Hourly),
            seed,
        }
    }

    fn at(wall_millis: i64) -> Now {
        Now {
            monotonic_millis: 0,
            wall_millis,
        }
    }

    #[test]
    fn begins_at_its_anchor() {
        let cases = [(10 * HOUR, 0, 11 * HOUR), (10 * HOUR, 5, 10 * HOUR + 5)];
        for (anchor, seed, want) in cases {
            let hold = Hold::begin(&hourly(seed), anchor).expect("a hold");
            assert_eq!(hold.until_millis(), want, "seed {seed}");
        }
        let never = SeededSchedule {
            schedule: Arc::new(Never),
            seed: 0,
        };
        assert!(Hold::begin(&never, 10 * HOUR).is_none());
    }

    #[test]
    fn anchors_again_to_a_clock_that_went_back_before_it() {
        let cases = [
            ("the clock went on", 10 * HOUR + 1, 11 * HOUR),
            ("the clock stands at the anchor", 10 * HOUR, 11 * HOUR),
            ("the clock jumped ahead", 99 * HOUR, 11 * HOUR),
            ("the clock went back a little", 10 * HOUR - 1, 10 * HOUR),
            ("the clock went back for days", -50 * HOUR, -49 * HOUR),
        ];
        for (name, now, want) in cases {
            let hold = Hold::begin(&hourly(0), 10 * HOUR).expect("a hold");
            let hold = hold.at(at(now)).expect("still a hold");
            assert_eq!(hold.until_millis(), want, "{name}");
            // Looking again at the same instant changes nothing.
            assert_eq!(
                hold.at(at(now)).map(|hold| hold.until_millis()),
                Some(want),
                "{name}"
            );
        }
    }

    #[test]
    fn sleeps_no_longer_than_the_clock_is_trusted() {
        let cases = [
            (1_000, 999, Some(1)),
            (1_000, 1_000, None),
            (1_000, 1_001, None),
            (40_000, 0, Some(30_000)),
            (i64::MAX, i64::MIN, Some(30_000)),
            (i64::MIN, i64::MAX, None),
        ];
        for (until, now, want) in cases {
            assert_eq!(remaining_millis(until, now), want, "{now} until {until}");
        }
    }
}
