//! What a schedule will do, as data for people to read.
//!
//! Each entry is a hold that a transaction would see if it opened at the end of the entry before. Where summer time
//! makes an answer odd, the entry says so in words.

use crate::cron::Cron;
use crate::model::{CompiledSchedule, Plan};
use crate::week::{Cursor, Week};
use crate::zone::{END_INSTANT, FIRST_INSTANT, Transition, Wall, Zone, offset_text};
use chrono::{DateTime, Utc};

/// Entries of one answer; more than anyone reads, and a bound on the work that a request can ask for.
const ENTRIES_MAX: usize = 1_000;

/// What is in force at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Regime {
    /// The base interval.
    Base,
    /// The interval of a window, by its position in the schedule, counted from 0 as in `/windows/0`.
    Window(usize),
    /// A cron expression.
    Cron,
}

impl std::fmt::Display for Regime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Base => f.write_str("base"),
            Self::Window(position) => write!(f, "window {position}"),
            Self::Cron => f.write_str("cron"),
        }
    }
}

/// One thing that a schedule does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The instant of the fire; where nothing is held, the instant from which that is so.
    pub at: DateTime<Utc>,
    /// `at` on the schedule's clock, with its offset.
    pub local: String,
    /// What is in force at `at`.
    pub regime: Regime,
    /// Whether commits follow each other at once from `at` on, until the next entry if there is one.
    pub unheld: bool,
    /// Oddities of the local clock between the entry before and this one.
    pub notes: Vec<String>,
}

impl CompiledSchedule {
    /// Returns what the schedule does after `after`, at most `count` entries of it, in order.
    pub fn explain(&self, after: DateTime<Utc>, seed: u64, count: usize) -> Vec<Entry> {
        let mut entries = Vec::new();
        let mut from = after.timestamp_millis();
        while entries.len() < count.min(ENTRIES_MAX) {
            let Some((entry, next)) = self.entry(from, seed) else {
                break;
            };
            entries.push(entry);
            match next {
                Some(next) => from = next,
                None => break,
            }
        }
        entries
    }

    /// Returns the entry after an instant, and the instant from which to go on.
    fn entry(&self, from: i64, seed: u64) -> Option<(Entry, Option<i64>)> {
        if !(FIRST_INSTANT..END_INSTANT).contains(&from) {
            return None;
        }
        let zone = self.zone();
        let (at, notes) = match (self.next_fire_millis(from, seed), self.plan()) {
            (Some(fire), Plan::Interval(_)) => (fire, Vec::new()),
            (Some(fire), Plan::Week(week)) => {
                let mut notes = clock_notes(zone, from, fire);
                notes.extend(window_notes(week, from, fire));
                (fire, notes)
            }
            (Some(fire), Plan::Cron(cron)) => {
                let mut notes = clock_notes(zone, from, fire);
                notes.extend(cron_note(cron, from, fire));
                (fire, notes)
            }
            // Without a fire the interval in force is zero, or the years are over.
            (None, _) if self.is_unheld(from) => (from, Vec::new()),
            (None, _) => return None,
        };
        let unheld = self.is_unheld(at);
        let next = match self.plan() {
            _ if !unheld => Some(at),
            Plan::Week(week) => unheld_until(week, at),
            Plan::Interval(_) | Plan::Cron(_) => None,
        };
        let instant = DateTime::from_timestamp_millis(at)?;
        let local = zone.local(at);
        let local = format!(
            "{}{}",
            local.naive().format("%a %Y-%m-%dT%H:%M:%S%.f"),
            offset_text(local.0 - at)
        );
        Some((
            Entry {
                at: instant,
                local,
                regime: self.regime(at),
                unheld,
                notes,
            },
            next,
        ))
    }

    fn zone(&self) -> Zone {
        match self.plan() {
            Plan::Interval(_) => Zone::UTC,
            Plan::Week(week) => week.zone(),
            Plan::Cron(cron) => cron.zone(),
        }
    }

    fn is_unheld(&self, at: i64) -> bool {
        match self.plan() {
            Plan::Interval(interval) => interval.is_zero(),
            Plan::Week(week) => week.interval(week.window(week.at(at))).is_zero(),
            Plan::Cron(_) => false,
        }
    }

    fn regime(&self, at: i64) -> Regime {
        match self.plan() {
            Plan::Interval(_) => Regime::Base,
            Plan::Week(week) => week
                .window(week.at(at))
                .map_or(Regime::Base, Regime::Window),
            Plan::Cron(_) => Regime::Cron,
        }
    }
}

/// Finds the end of a time without holds, if it has one within the years of schedules.
fn unheld_until(week: &Week, from: i64) -> Option<i64> {
    let mut cursor = week.at(from);
    // A regime that holds comes within a week, or never; a gap can swallow it once.
    let changes_of_weeks = 3 * week.changes_count();
    for _ in 0..changes_of_weeks {
        cursor = week.next_lasting(cursor);
        if !week.interval(week.window(cursor)).is_zero() {
            return Some(week.instant(cursor)).filter(|until| *until < END_INSTANT);
        }
    }
    None
}

fn clock_notes(zone: Zone, from: i64, to: i64) -> Vec<String> {
    let mut notes = Vec::new();
    let mut from = from;
    while let Some(Transition { at, before, after }) = zone.next_transition(from, to) {
        let minutes = (after.0 - before.0).abs() / 60_000;
        let way = if after > before { "forward" } else { "back" };
        notes.push(format!(
            "the clock of {zone} goes {way} by {minutes} minutes, from {} to {}",
            day_and_time(before),
            day_and_time(after)
        ));
        from = at;
    }
    notes
}

fn window_notes(week: &Week, from: i64, to: i64) -> Vec<String> {
    let mut notes = Vec::new();
    let mut cursor: Cursor = week.next(week.at(from));
    loop {
        let at = week.instant(cursor);
        if at > to {
            return notes;
        }
        let following = week.next(cursor);
        let regime = week.window(cursor).map_or(Regime::Base, Regime::Window);
        let written = week.wall(cursor);
        if week.instant(following) == at {
            notes.push(format!(
                "{regime} does not happen at {}: all of it falls into a time that the clock skips",
                day_and_time(written)
            ));
        } else if week.zone().local(at) != written {
            notes.push(format!(
                "{regime} begins at {}, as the clock skips {}",
                day_and_time(week.zone().local(at)),
                day_and_time(written)
            ));
        }
        cursor = following;
    }
}

fn cron_note(cron: &Cron, from: i64, fire: i64) -> Option<String> {
    let written = cron.next_wall(from)?;
    let local = cron.zone().local(fire);
    (local != written).then(|| {
        format!(
            "fires at {}, as the clock skips {}",
            day_and_time(local),
            day_and_time(written)
        )
    })
}

fn day_and_time(wall: Wall) -> String {
    wall.naive().format("%Y-%m-%d %H:%M").to_string()
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
