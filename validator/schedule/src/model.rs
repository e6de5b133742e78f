//! The `syncSchedule` of a materialization: its grammar, and when it fires.
//!
//! ```text
//! JSON -> parse -> every problem | CompiledSchedule -> next_fire(opened at, seed) -> hold until | no hold
//! ```
//!
//! A schedule is read once into a type that cannot be wrong; evaluating one cannot fail. What a hold is, and what ends
//! it early, is the close policy's business.

use crate::clock::{ClockTime, Day, DaySet};
use crate::cron::Cron;
use crate::interval::parse_interval;
use crate::near::nearest;
use crate::problem::{Problem, ProblemKind, ScheduleError, type_name};
use crate::week::{Piece, Week, next_on_grid, pieces};
use crate::zone::{END_INSTANT, FIRST_INSTANT, Zone};
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use std::time::Duration;

/// Windows of one schedule; one for each hour of a week is 168, and the check for overlap compares pairs.
const WINDOWS_MAX: usize = 256;

/// Jitters are whole seconds of a day, so that a grid stays on the instants that people read.
const JITTER_SECONDS: u64 = 86_400;

const SCHEDULE_KEYS: [&str; 4] = ["baseInterval", "timezone", "windows", "cron"];
const WINDOW_KEYS: [&str; 4] = ["interval", "start", "end", "days"];

/// A sync schedule that is known to be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompiledSchedule {
    plan: Plan,
}

/// What a schedule goes by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Plan {
    Interval(Duration),
    Week(Week),
    Cron(Cron),
}

impl CompiledSchedule {
    /// Reads a schedule, or says everything that is wrong with it.
    pub fn parse(schedule: &Value) -> Result<Self, ScheduleError> {
        let mut reader = Reader::default();
        let plan = reader.schedule(schedule);
        ScheduleError::check(reader.problems)?;
        Ok(Self {
            plan: plan.expect("a schedule without problems has a plan"),
        })
    }

    /// Returns the instant until which a transaction opened at `after` is held.
    ///
    /// It is after `after`. `None` means no hold: the interval in force is zero, a cron expression has no fire left, or
    /// the instants lie outside 1970 to 2099. Equal seeds coincide; a zero seed keeps to the plain grid.
    pub fn next_fire(&self, after: DateTime<Utc>, seed: u64) -> Option<DateTime<Utc>> {
        self.next_fire_millis(after.timestamp_millis(), seed)
            .and_then(DateTime::from_timestamp_millis)
    }

    /// Does as [`Self::next_fire`] with milliseconds since the Unix epoch; takes any number.
    pub fn next_fire_millis(&self, after_millis: i64, seed: u64) -> Option<i64> {
        if !(FIRST_INSTANT..END_INSTANT).contains(&after_millis) {
            return None;
        }
        let fire = match &self.plan {
            Plan::Interval(interval) => next_on_grid(after_millis, *interval, jitter_nanos(seed)),
            Plan::Week(week) => week.next_fire(after_millis, jitter_nanos(seed)),
            Plan::Cron(cron) => cron.next_fire(after_millis),
        };
        fire.filter(|fire| *fire < END_INSTANT)
    }

    /// Returns whether a cron expression has no fire left after `after`, such as one with a year that is over.
    pub fn is_exhausted(&self, after: DateTime<Utc>) -> bool {
        matches!(&self.plan, Plan::Cron(cron) if cron.next_fire(after.timestamp_millis()).is_none())
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }
}

/// Returns the seed of a text: the XXH64 of the connector's jitter key, or of the task's name.
pub fn seed_of(text: &str) -> u64 {
    xxhash_rust::xxh64::xxh64(text.as_bytes(), 0)
}

fn jitter_nanos(seed: u64) -> i64 {
    let seconds = i64::try_from(seed % JITTER_SECONDS).expect("a day's seconds are a small number");
    seconds * 1_000_000_000
}

/// A window as it is written, once all of it reads.
struct Window {
    position: usize,
    interval: Duration,
    pieces: Vec<Piece>,
}

#[derive(Default)]
struct Reader {
    problems: Vec<Problem>,
}

impl Reader {
    fn refuse(
        &mut self,
        pointer: &str,
        value: &Value,
        kind: ProblemKind,
        message: &str,
        fix: &str,
    ) {
        self.problems
            .push(Problem::new(pointer, value, kind, message, fix));
    }

    fn schedule(&mut self, schedule: &Value) -> Option<Plan> {
        let Value::Object(fields) = schedule else {
            let message = format!("a syncSchedule is an object, not {}", type_name(schedule));
            let fix = match schedule.as_str().map(parse_interval) {
                Some(Ok(_)) => format!("write {{\"baseInterval\": {schedule}}}"),
                _ => "write {\"baseInterval\": \"30m\"}, or {\"cron\": \"0 2 * * *\"}".to_owned(),
            };
            self.refuse("", schedule, ProblemKind::Type, &message, &fix);
            return None;
        };
        self.unknown_keys("", fields, &SCHEDULE_KEYS);
        let [base, timezone, windows, cron] = SCHEDULE_KEYS.map(|key| present(fields, key));
        let zone = timezone.map(|value| self.timezone(value));
        match (base, cron) {
            (Some(base), None) => {
                let base = self.interval("/baseInterval", base);
                let windows = windows.map(|value| self.windows(value));
                match windows {
                    Some(Some(windows)) if !windows.is_empty() => self.week(zone, base?, windows),
                    Some(None) => None,
                    _ => base.map(Plan::Interval),
                }
            }
            (None, Some(cron)) => {
                if let Some(windows) = windows {
                    let message = "windows belong to a baseInterval; cron has none";
                    let fix = "remove windows, or replace cron by a baseInterval";
                    self.refuse("/windows", windows, ProblemKind::Exclusive, message, fix);
                }
                self.cron(cron, zone.unwrap_or(Some(Zone::UTC)))
            }
            (Some(base), Some(cron)) => {
                let message = "a schedule has either baseInterval or cron, not both";
                self.refuse(
                    "/cron",
                    cron,
                    ProblemKind::Exclusive,
                    message,
                    "remove one of the two",
                );
                // Both are still read: what is kept has to be right as well.
                self.interval("/baseInterval", base);
                windows.map(|value| self.windows(value));
                self.cron(cron, zone.unwrap_or(Some(Zone::UTC)))
            }
            (None, None) => {
                self.problems.push(Problem::absent(
                    "",
                    ProblemKind::Missing,
                    "a schedule needs baseInterval or cron",
                    "write baseInterval: \"30m\", or cron: \"0 2 * * *\"",
                ));
                windows.map(|value| self.windows(value));
                None
            }
        }
    }

    fn week(
        &mut self,
        zone: Option<Option<Zone>>,
        base: Duration,
        windows: Vec<Window>,
    ) -> Option<Plan> {
        let Some(zone) = zone else {
            self.problems.push(Problem::absent(
                "/timezone",
                ProblemKind::Missing,
                "windows are local times and need a timezone",
                "write timezone: \"UTC\", or the zone that the windows are meant in",
            ));
            return None;
        };
        let pieces = windows
            .iter()
            .flat_map(|window| window.pieces.iter().copied())
            .collect();
        let intervals = windows.iter().map(|window| window.interval).collect();
        // A schedule with any problem is given up, and windows that overlap cannot be laid out.
        self.problems.is_empty().then_some(())?;
        Some(Plan::Week(Week::new(zone?, base, intervals, pieces)))
    }

    fn timezone(&mut self, value: &Value) -> Option<Zone> {
        let text = self.text(
            "/timezone",
            value,
            "write an IANA name such as \"Europe/Berlin\", in quotes",
        )?;
        Zone::parse(text)
            .map_err(|refusal| {
                self.refuse(
                    "/timezone",
                    value,
                    ProblemKind::Timezone,
                    &refusal.message,
                    &refusal.fix,
                );
            })
            .ok()
    }

    fn cron(&mut self, value: &Value, zone: Option<Zone>) -> Option<Plan> {
        let text = self.text(
            "/cron",
            value,
            "write five fields as one text, such as \"0 2 * * *\"",
        )?;
        match Cron::parse(text, zone.unwrap_or(Zone::UTC), "/cron") {
            Ok(cron) => Some(Plan::Cron(cron)),
            Err(problems) => {
                self.problems.extend(problems);
                None
            }
        }
    }

    fn interval(&mut self, pointer: &str, value: &Value) -> Option<Duration> {
        let Value::String(text) = value else {
            let message = format!("an interval is text with a unit, not {}", type_name(value));
            let fix = match value.as_u64() {
                Some(0) => "write \"0s\"".to_owned(),
                Some(number) => format!("write \"{number}s\", \"{number}m\" or \"{number}h\""),
                None => "write a number and a unit, such as \"30m\"".to_owned(),
            };
            self.refuse(pointer, value, ProblemKind::Interval, &message, &fix);
            return None;
        };
        let refusal = match parse_interval(text) {
            Ok(interval) if interval.subsec_nanos().is_multiple_of(1_000_000) => {
                return Some(interval);
            }
            Ok(_) => (
                "an interval is whole milliseconds".to_owned(),
                "write it in ms or longer units".to_owned(),
            ),
            Err(refusal) => (refusal.message, refusal.fix),
        };
        self.refuse(
            pointer,
            value,
            ProblemKind::Interval,
            &refusal.0,
            &refusal.1,
        );
        None
    }

    /// Reads windows; those that read at all are checked for overlap, and `None` says that some did not.
    fn windows(&mut self, value: &Value) -> Option<Vec<Window>> {
        let Value::Array(windows) = value else {
            let message = format!("windows are a list, not {}", type_name(value));
            self.refuse(
                "/windows",
                value,
                ProblemKind::Type,
                &message,
                "put the window into a list",
            );
            return None;
        };
        if windows.len() > WINDOWS_MAX {
            let message = format!(
                "a schedule has at most {WINDOWS_MAX} windows, not {}",
                windows.len()
            );
            let fix = "one window can name several days; merge those that differ by day only";
            self.problems.push(Problem::absent(
                "/windows",
                ProblemKind::TooMany,
                message,
                fix,
            ));
            return None;
        }
        let read: Vec<Window> = windows
            .iter()
            .enumerate()
            .filter_map(|(position, value)| self.window(position, value))
            .collect();
        self.overlaps(&read, windows);
        (read.len() == windows.len()).then_some(read)
    }

    fn window(&mut self, position: usize, value: &Value) -> Option<Window> {
        let pointer = format!("/windows/{position}");
        let Value::Object(fields) = value else {
            let message = format!("a window is an object, not {}", type_name(value));
            let fix = "write {\"interval\": \"15m\", \"start\": \"09:00\", \"end\": \"17:00\"}";
            self.refuse(&pointer, value, ProblemKind::Type, &message, fix);
            return None;
        };
        self.unknown_keys(&pointer, fields, &WINDOW_KEYS);
        let interval = self.required(&pointer, fields, "interval", "write interval: \"15m\"");
        let interval =
            interval.and_then(|value| self.interval(&format!("{pointer}/interval"), value));
        let start = self.required(&pointer, fields, "start", "write start: \"09:00\"");
        let start = start.and_then(|value| self.clock(&format!("{pointer}/start"), value));
        let end = self.required(&pointer, fields, "end", "write end: \"17:00\"");
        let end = end.and_then(|value| self.clock(&format!("{pointer}/end"), value));
        let days = match present(fields, "days") {
            Some(value) => self.days(&format!("{pointer}/days"), value),
            None => Some(DaySet::ALL),
        };
        if start.is_some() && start == end {
            let message = "a window that starts and ends at one time is never open";
            let fix = "choose another end; for a whole day use \"00:00\" to \"12:00\" and \"12:00\" to \"00:00\"";
            self.refuse(
                &format!("{pointer}/end"),
                &fields["end"],
                ProblemKind::EmptyWindow,
                message,
                fix,
            );
            return None;
        }
        Some(Window {
            position,
            interval: interval?,
            pieces: pieces(position, start?, end?, days?),
        })
    }

    fn clock(&mut self, pointer: &str, value: &Value) -> Option<ClockTime> {
        let Value::String(text) = value else {
            self.refuse(
                pointer,
                value,
                ProblemKind::Clock,
                "expected HH:MM text; quote it",
                &unquoted_clock(value),
            );
            return None;
        };
        let time = ClockTime::parse(text);
        if time.is_none() {
            self.refuse(
                pointer,
                value,
                ProblemKind::Clock,
                "expected HH:MM text",
                &ClockTime::advice(text),
            );
        }
        time
    }

    fn days(&mut self, pointer: &str, value: &Value) -> Option<DaySet> {
        let Value::Array(items) = value else {
            let message = format!("days are a list, not {}", type_name(value));
            self.refuse(
                pointer,
                value,
                ProblemKind::Days,
                &message,
                "write a list such as [\"Mon\", \"Fri\"]",
            );
            return None;
        };
        if items.is_empty() {
            let message = "a window with no days is never open";
            self.refuse(
                pointer,
                value,
                ProblemKind::Days,
                message,
                "leave days out for every day",
            );
            return None;
        }
        let mut days = DaySet::default();
        let problems_before = self.problems.len();
        for (position, item) in items.iter().enumerate() {
            let pointer = format!("{pointer}/{position}");
            match item.as_str().and_then(Day::parse) {
                None => self.refuse(
                    &pointer,
                    item,
                    ProblemKind::Days,
                    "this is not a day of the week",
                    &near_day(item),
                ),
                Some(day) if !days.insert(day) => {
                    let message = format!("{day} is in the list already");
                    self.refuse(
                        &pointer,
                        item,
                        ProblemKind::Days,
                        &message,
                        "remove one of the two",
                    );
                }
                Some(_) => {}
            }
        }
        (self.problems.len() == problems_before).then_some(days)
    }

    fn overlaps(&mut self, windows: &[Window], values: &[Value]) {
        for (index, later) in windows.iter().enumerate() {
            for earlier in &windows[..index] {
                let shared = later.pieces.iter().find_map(|one| {
                    let other = earlier
                        .pieces
                        .iter()
                        .find(|other| one.start < other.end && other.start < one.end)?;
                    Some(one.start.max(other.start))
                });
                let Some(minute) = shared else { continue };
                let day = Day::ALL[usize::try_from(minute / 1440).expect("a week has seven days")];
                let message = format!(
                    "this window overlaps with window {} on {day} at {:02}:{:02}",
                    earlier.position,
                    minute % 1440 / 60,
                    minute % 60
                );
                let pointer = format!("/windows/{}", later.position);
                let fix = "change start, end or days of one of the two; a window may start where another ends";
                self.refuse(
                    &pointer,
                    &values[later.position],
                    ProblemKind::Overlap,
                    &message,
                    fix,
                );
            }
        }
    }

    fn text<'value>(
        &mut self,
        pointer: &str,
        value: &'value Value,
        fix: &str,
    ) -> Option<&'value str> {
        if !value.is_string() {
            self.refuse(
                pointer,
                value,
                ProblemKind::Type,
                &format!("expected text, not {}", type_name(value)),
                fix,
            );
        }
        value.as_str()
    }

    fn required<'fields>(
        &mut self,
        pointer: &str,
        fields: &'fields Map<String, Value>,
        key: &str,
        fix: &str,
    ) -> Option<&'fields Value> {
        let value = present(fields, key);
        if value.is_none() {
            let message = format!("a window needs {key}");
            self.problems.push(Problem::absent(
                format!("{pointer}/{key}"),
                ProblemKind::Missing,
                message,
                fix,
            ));
        }
        value
    }

    fn unknown_keys(&mut self, pointer: &str, fields: &Map<String, Value>, known: &[&str]) {
        for (key, value) in fields
            .iter()
            .filter(|(key, _)| !known.contains(&key.as_str()))
        {
            let fix = match nearest(key, known) {
                Some(name) => format!("did you mean {name}?"),
                None => format!("remove it; the keys here are {}", known.join(", ")),
            };
            let place = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
            self.refuse(
                &place,
                value,
                ProblemKind::UnknownKey,
                &format!("{key} is not a key of a schedule"),
                &fix,
            );
        }
    }
}

/// Returns a key's value; a null is as good as no key.
fn present<'fields>(fields: &'fields Map<String, Value>, key: &str) -> Option<&'fields Value> {
    fields.get(key).filter(|value| !value.is_null())
}

/// Says what an unquoted time of day was: YAML 1.1 reads `10:00` as 600, a number to the base of 60.
fn unquoted_clock(value: &Value) -> String {
    match value.as_u64() {
        Some(minutes) if minutes < 24 * 60 => {
            format!("write \"{:02}:{:02}\"", minutes / 60, minutes % 60)
        }
        _ => "write hours and minutes, such as \"09:00\"".to_owned(),
    }
}

fn near_day(value: &Value) -> String {
    let start = value.as_str().and_then(|text| text.trim().get(..3));
    match start.and_then(Day::parse) {
        Some(day) => format!("write \"{day}\""),
        None => "write Mon, Tue, Wed, Thu, Fri, Sat or Sun".to_owned(),
    }
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
