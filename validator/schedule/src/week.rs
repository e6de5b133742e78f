//! The regimes of a week: which interval applies when, by the local clock.
//!
//! ```text
//! at(after) -> its regime's grid: fire -> walk the changes before the fire -> the first into a faster regime, or fire
//! ```
//!
//! A window on a day is that day's piece of it: one that straddles midnight covers the day's first hours up to its end
//! and its last hours from its start. What several regimes at one instant mean (a gap swallowed a window) is decided
//! here: the last one of them holds, the others do not happen.

use crate::clock::{ClockTime, DaySet};
use crate::zone::{Wall, Zone};
use std::time::Duration;

const MINUTE: i64 = 60_000;
const WEEK: i64 = 7 * DAY_MINUTES as i64 * MINUTE;
const DAY_MINUTES: u32 = 24 * 60;

/// Local clocks began on a Thursday, weeks here begin on Monday.
const FIRST_MONDAY: Wall = Wall(-3 * DAY_MINUTES as i64 * MINUTE);

/// A part of the week in which a window is open, in minutes since Monday's midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Piece {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) window: usize,
}

/// Cuts a window into its pieces, in order.
pub(crate) fn pieces(window: usize, start: ClockTime, end: ClockTime, days: DaySet) -> Vec<Piece> {
    let (start, end) = (start.minute_of_day(), end.minute_of_day());
    let mut pieces = Vec::new();
    for day in days.iter() {
        let midnight = u32::try_from(day.index()).expect("a week has seven days") * DAY_MINUTES;
        let mut add = |start: u32, end: u32| {
            if start < end {
                pieces.push(Piece {
                    start: midnight + start,
                    end: midnight + end,
                    window,
                });
            }
        };
        if start < end {
            add(start, end);
        } else {
            add(0, end);
            add(start, DAY_MINUTES);
        }
    }
    pieces
}

/// The instant of the week at which a regime begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Change {
    minute_of_week: u32,
    /// The window whose regime begins; `None` for the base.
    window: Option<usize>,
}

/// A base interval and windows with intervals of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Week {
    zone: Zone,
    base: Duration,
    intervals: Vec<Duration>,
    fastest: Duration,
    /// In order; each begins another regime than the one before it, the first than the last of the week before.
    changes: Vec<Change>,
}

/// A change of some week.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor {
    week: Wall,
    position: usize,
}

impl Week {
    /// Builds a week from its windows' intervals and their pieces, which must not overlap.
    pub(crate) fn new(
        zone: Zone,
        base: Duration,
        intervals: Vec<Duration>,
        mut pieces: Vec<Piece>,
    ) -> Self {
        pieces.sort_unstable();
        let mut changes: Vec<Change> = Vec::new();
        let mut end = 0;
        for piece in pieces {
            assert!(
                end <= piece.start,
                "windows that overlap are refused before a week is made of them"
            );
            if end < piece.start {
                changes.push(Change {
                    minute_of_week: end,
                    window: None,
                });
            }
            changes.push(Change {
                minute_of_week: piece.start,
                window: Some(piece.window),
            });
            end = piece.end;
        }
        if end < 7 * DAY_MINUTES {
            changes.push(Change {
                minute_of_week: end,
                window: None,
            });
        }
        changes.dedup_by_key(|change| change.window);
        if changes.len() > 1
            && changes.first().map(|it| it.window) == changes.last().map(|it| it.window)
        {
            changes.remove(0);
        }
        let fastest = intervals.iter().copied().fold(base, Duration::min);
        Self {
            zone,
            base,
            intervals,
            fastest,
            changes,
        }
    }

    pub(crate) fn zone(&self) -> Zone {
        self.zone
    }

    /// Returns the next instant of the schedule after `after`, or `None` where nothing is held.
    pub(crate) fn next_fire(&self, after: i64, jitter_nanos: i64) -> Option<i64> {
        let mut cursor = self.at(after);
        let interval = self.interval(self.window(cursor));
        let fire = next_on_grid(after, interval, jitter_nanos)?;
        if interval == self.fastest {
            return Some(fire);
        }
        loop {
            cursor = self.next_lasting(cursor);
            let begins = self.instant(cursor);
            if begins >= fire {
                return Some(fire);
            }
            if self.interval(self.window(cursor)) < interval {
                return Some(begins);
            }
        }
    }

    pub(crate) fn changes_count(&self) -> usize {
        self.changes.len()
    }

    /// Returns the change that began the regime in force at an instant.
    pub(crate) fn at(&self, at: i64) -> Cursor {
        let wall = self.zone.furthest(at);
        let in_week = (wall.0 - FIRST_MONDAY.0).rem_euclid(WEEK);
        let week = Wall(wall.0 - in_week);
        match self
            .changes
            .partition_point(|change| i64::from(change.minute_of_week) * MINUTE <= in_week)
        {
            0 => Cursor {
                week: Wall(week.0 - WEEK),
                position: self.changes.len() - 1,
            },
            begun => Cursor {
                week,
                position: begun - 1,
            },
        }
    }

    /// Returns the change after `cursor` whether or not a gap swallows it.
    pub(crate) fn next(&self, cursor: Cursor) -> Cursor {
        match cursor.position + 1 {
            position if position < self.changes.len() => Cursor { position, ..cursor },
            _ => Cursor {
                week: Wall(cursor.week.0 + WEEK),
                position: 0,
            },
        }
    }

    /// Returns the change after `cursor` whose regime lasts for any time.
    pub(crate) fn next_lasting(&self, cursor: Cursor) -> Cursor {
        let mut next = self.next(cursor);
        loop {
            let following = self.next(next);
            if self.instant(following) > self.instant(next) {
                return next;
            }
            next = following;
        }
    }

    /// Returns the local time that a change is written for.
    pub(crate) fn wall(&self, cursor: Cursor) -> Wall {
        Wall(cursor.week.0 + i64::from(self.changes[cursor.position].minute_of_week) * MINUTE)
    }

    /// Returns the instant at which a change happens.
    pub(crate) fn instant(&self, cursor: Cursor) -> i64 {
        self.zone.reached(self.wall(cursor))
    }

    /// Returns the window whose regime a change begins; `None` for the base.
    pub(crate) fn window(&self, cursor: Cursor) -> Option<usize> {
        self.changes[cursor.position].window
    }

    /// Returns the interval of a window, or of the base.
    pub(crate) fn interval(&self, window: Option<usize>) -> Duration {
        window.map_or(self.base, |window| self.intervals[window])
    }
}

/// Returns the first instant after `after` on the grid `k * interval + jitter`, rounded up to a millisecond; `None` for
/// an interval of zero. Takes instants of schedules, intervals of at most 366 days and jitters of at most a day: the
/// sums stay below half of 64 bits.
pub(crate) fn next_on_grid(after: i64, interval: Duration, jitter_nanos: i64) -> Option<i64> {
    const MILLI_NANOS: i64 = 1_000_000;
    let interval =
        i64::try_from(interval.as_nanos()).expect("intervals are bounded when they are read");
    if interval == 0 {
        return None;
    }
    let after = after * MILLI_NANOS - jitter_nanos;
    let fire = (after.div_euclid(interval) + 1) * interval + jitter_nanos;
    Some(fire.div_euclid(MILLI_NANOS) + i64::from(fire.rem_euclid(MILLI_NANOS) > 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Day;

    fn clock(text: &str) -> ClockTime {
        ClockTime::parse(text).expect("a test's time of day")
    }

    #[test]
    fn a_straddling_window_is_two_pieces_a_day() {
        let mut days = DaySet::default();
        days.insert(Day::Tue);
        let piece = |start, end| Piece {
            start,
            end,
            window: 4,
        };
        assert_eq!(
            pieces(4, clock("09:00"), clock("17:00"), days),
            [piece(1980, 2460)]
        );
        assert_eq!(
            pieces(4, clock("22:00"), clock("02:00"), days),
            [piece(1440, 1560), piece(2760, 2880)]
        );
        assert_eq!(
            pieces(4, clock("22:00"), clock("00:00"), days),
            [piece(2760, 2880)]
        );
        assert_eq!(
            pieces(4, clock("00:00"), clock("02:00"), days),
            [piece(1440, 1560)]
        );
        assert_eq!(
            pieces(0, clock("22:00"), clock("02:00"), DaySet::ALL).len(),
            14
        );
    }

    #[test]
    fn changes_are_between_different_regimes_only() {
        let week = |pieces| {
            let week = Week::new(Zone::UTC, Duration::ZERO, vec![Duration::ZERO; 2], pieces);
            week.changes
                .iter()
                .map(|it| (it.minute_of_week, it.window))
                .collect::<Vec<_>>()
        };
        let straddling = week(pieces(0, clock("22:00"), clock("02:00"), DaySet::ALL));
        assert_eq!(
            straddling.len(),
            14,
            "midnights inside the window are no change: {straddling:?}"
        );
        assert_eq!(straddling[0], (120, None));
        assert_eq!(straddling[13], (6 * 1440 + 1320, Some(0)));

        let mut touching = pieces(0, clock("00:00"), clock("12:00"), DaySet::ALL);
        touching.extend(pieces(1, clock("12:00"), clock("00:00"), DaySet::ALL));
        let touching = week(touching);
        assert_eq!(touching[..2], [(0, Some(0)), (720, Some(1))]);
        assert_eq!(touching.len(), 14);
    }

    #[test]
    fn the_grid_is_strictly_after_and_rounds_up() {
        let grid = |after, nanos, jitter| next_on_grid(after, Duration::from_nanos(nanos), jitter);
        assert_eq!(grid(0, 0, 0), None);
        assert_eq!(grid(0, 1_000_000, 0), Some(1));
        assert_eq!(grid(5, 5_000_000, 0), Some(10));
        assert_eq!(grid(4, 5_000_000, 1), Some(6));
        assert_eq!(grid(6, 5_000_000, 1), Some(11));
        assert_eq!(grid(0, 1, 0), Some(1));
        let leap_year = 366 * 86_400_000_000_000;
        assert_eq!(grid(0, leap_year, 86_399_999_999_999), Some(86_400_000));
        assert!(grid(crate::zone::END_INSTANT - 1, leap_year, 0).is_some());
    }
}
