//! The schedule inside a connector's own config: what it says, and whether it says anything.
//!
//! ```text
//! config.syncSchedule -> classify -> Absent   the connector's default of 30m applies
//!                                 -> AllZero  switched off: commits follow each other at once
//!                                 -> Paced    as configured; `check` says what is wrong with it
//! ```
//!
//! The reading is tolerant: an emptied form leaves nulls and empty text behind, which mean the same as nothing at all.
//! Whether a time zone exists is not known here: that needs the zone database, which a guest does not carry.

use crate::clock::{ClockTime, Day, DaySet};
use crate::interval::{INTERVAL_DAYS_MAX, INTERVAL_MAX, parse_interval};
use crate::problem::{Problem, ProblemKind, ScheduleError, type_name};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// The frequency of a connector whose config does not name one: what such connectors have always done.
pub const DEFAULT_FREQUENCY: &str = "30m";

const SYNC_FREQUENCY: &str = "syncFrequency";
const TIMEZONE: &str = "timezone";
const FAST_SYNC_START_TIME: &str = "fastSyncStartTime";
const FAST_SYNC_STOP_TIME: &str = "fastSyncStopTime";
const FAST_SYNC_ENABLED_DAYS: &str = "fastSyncEnabledDays";

/// A connector's own schedule: a frequency, or two that alternate by time of day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectorSchedule {
    /// How often to commit, inside the fast window if there is one; such as `5m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_frequency: Option<String>,
    /// The zone of the window's times and days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// When the fast window opens, `HH:MM`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fast_sync_start_time: Option<String>,
    /// When the fast window closes, `HH:MM`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fast_sync_stop_time: Option<String>,
    /// Days of the fast window, such as `M-F` or `Su-T,Th`; every day if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fast_sync_enabled_days: Option<String>,
}

impl Default for ConnectorSchedule {
    /// Returns the schedule of a connector that was not given one.
    fn default() -> Self {
        Self::every(DEFAULT_FREQUENCY)
    }
}

impl ConnectorSchedule {
    /// Returns a schedule of one frequency, all day.
    pub fn every(frequency: &str) -> Self {
        Self {
            sync_frequency: Some(frequency.to_owned()),
            timezone: None,
            fast_sync_start_time: None,
            fast_sync_stop_time: None,
            fast_sync_enabled_days: None,
        }
    }
}

/// What a connector's `syncSchedule` amounts to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Configured {
    /// Nothing is configured: no value, null, `{}`, or only nulls and empty text.
    Absent,
    /// The frequency is zero and nothing else is set: the connector does not pace.
    AllZero,
    /// Anything else, a zero frequency with a fast window included: outside the window that still paces.
    Paced(ConnectorSchedule),
}

impl Configured {
    /// Returns the schedule that the connector paces by when the host has none: its own, its default, or nothing.
    pub fn into_pacing(self) -> Option<ConnectorSchedule> {
        match self {
            Self::Absent => Some(ConnectorSchedule::default()),
            Self::AllZero => None,
            Self::Paced(schedule) => Some(schedule),
        }
    }
}

/// Reads a config's `syncSchedule` and says what it amounts to.
///
/// Keys that are not part of a schedule are left to the config's own schema. An error means that the question has no
/// answer: something is not text, or the frequency cannot be read. What else may be wrong with a schedule that paces,
/// [`ConnectorSchedule::check`] tells.
pub fn classify(sync_schedule: Option<&Value>) -> Result<Configured, ScheduleError> {
    let fields = match sync_schedule {
        None | Some(Value::Null) => return Ok(Configured::Absent),
        Some(Value::Object(fields)) => fields,
        Some(other) => {
            let message = format!(
                "a connector's syncSchedule is an object, not {}",
                type_name(other)
            );
            return Err(Problem::new(
                "",
                other,
                ProblemKind::Type,
                message,
                "write {\"syncFrequency\": \"30m\"}, or leave syncSchedule out",
            )
            .into());
        }
    };

    let mut problems = Vec::new();
    let mut text = |key: &str| match fields.get(key) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) if text.trim().is_empty() => None,
        Some(Value::String(text)) => Some(text.trim().to_owned()),
        // An unquoted zero is a spelling of zero, not a mistake.
        Some(Value::Number(number)) if key == SYNC_FREQUENCY && number.as_f64() == Some(0.0) => {
            Some("0".to_owned())
        }
        Some(other) => {
            let (kind, message) = match key {
                FAST_SYNC_START_TIME | FAST_SYNC_STOP_TIME => (
                    ProblemKind::Clock,
                    "expected HH:MM text; quote it".to_owned(),
                ),
                _ => (
                    ProblemKind::Type,
                    format!("{key} is text, not {}", type_name(other)),
                ),
            };
            problems.push(Problem::new(
                format!("/{key}"),
                other,
                kind,
                message,
                example(key),
            ));
            None
        }
    };
    let schedule = ConnectorSchedule {
        sync_frequency: text(SYNC_FREQUENCY),
        timezone: text(TIMEZONE),
        fast_sync_start_time: text(FAST_SYNC_START_TIME),
        fast_sync_stop_time: text(FAST_SYNC_STOP_TIME),
        fast_sync_enabled_days: text(FAST_SYNC_ENABLED_DAYS),
    };

    let frequency = schedule.frequency(&mut problems);
    ScheduleError::check(problems)?;
    Ok(match (frequency, schedule.has_fast_window()) {
        (None, false) => Configured::Absent,
        (Some(Duration::ZERO), false) => Configured::AllZero,
        _ => Configured::Paced(schedule),
    })
}

/// A connector's schedule in parts that cannot be wrong, its zone excepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) frequency: Duration,
    pub(crate) fast: Option<FastWindow>,
}

/// When a connector's frequency applies; outside, it syncs slowly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FastWindow {
    pub(crate) timezone: String,
    pub(crate) start: ClockTime,
    pub(crate) stop: ClockTime,
    pub(crate) days: DaySet,
}

impl ConnectorSchedule {
    /// Reports everything that keeps the schedule from running, an unknown time zone excepted.
    pub fn check(&self) -> Result<(), ScheduleError> {
        self.parts().map(|_| ())
    }

    fn has_fast_window(&self) -> bool {
        let Self {
            sync_frequency: _,
            timezone,
            fast_sync_start_time,
            fast_sync_stop_time,
            fast_sync_enabled_days,
        } = self;
        [
            timezone,
            fast_sync_start_time,
            fast_sync_stop_time,
            fast_sync_enabled_days,
        ]
        .iter()
        .any(|it| it.is_some())
    }

    fn frequency(&self, problems: &mut Vec<Problem>) -> Option<Duration> {
        let text = self.sync_frequency.as_deref()?;
        parse_frequency(text)
            .map_err(|message| {
                problems.push(Problem::new(
                    format!("/{SYNC_FREQUENCY}"),
                    &Value::from(text),
                    ProblemKind::Interval,
                    message,
                    example(SYNC_FREQUENCY),
                ));
            })
            .ok()
    }

    pub(crate) fn parts(&self) -> Result<Parts, ScheduleError> {
        let mut problems = Vec::new();
        let frequency = self.frequency(&mut problems);
        if !self.has_fast_window() {
            ScheduleError::check(problems)?;
            // A frequency that could not be read is among the problems, so what is left is one that was not given.
            let default =
                || parse_frequency(DEFAULT_FREQUENCY).expect("the default frequency reads");
            return Ok(Parts {
                frequency: frequency.unwrap_or_else(default),
                fast: None,
            });
        }

        for (key, value) in [
            (SYNC_FREQUENCY, &self.sync_frequency),
            (TIMEZONE, &self.timezone),
            (FAST_SYNC_START_TIME, &self.fast_sync_start_time),
            (FAST_SYNC_STOP_TIME, &self.fast_sync_stop_time),
        ] {
            if value.is_none() {
                problems.push(Problem::absent(
                    format!("/{key}"),
                    ProblemKind::Missing,
                    format!("a fast sync window needs {key}"),
                    format!(
                        "{}, or remove timezone and every fastSync field",
                        example(key)
                    ),
                ));
            }
        }
        let start = clock(
            FAST_SYNC_START_TIME,
            self.fast_sync_start_time.as_deref(),
            &mut problems,
        );
        let stop = clock(
            FAST_SYNC_STOP_TIME,
            self.fast_sync_stop_time.as_deref(),
            &mut problems,
        );
        if let (Some(start), Some(stop)) = (start, stop)
            && start == stop
        {
            problems.push(Problem::new(
                format!("/{FAST_SYNC_STOP_TIME}"),
                &Value::from(stop.to_string()),
                ProblemKind::EmptyWindow,
                "a fast sync window that starts and stops at one time is never open",
                "choose another stop, or remove timezone and every fastSync field to be fast all day",
            ));
        }
        let days = enabled_days(self.fast_sync_enabled_days.as_deref(), &mut problems);
        ScheduleError::check(problems)?;
        let timezone = self.timezone.clone();
        match (frequency, timezone, start, stop) {
            (Some(frequency), Some(timezone), Some(start), Some(stop)) => Ok(Parts {
                frequency,
                fast: Some(FastWindow {
                    timezone,
                    start,
                    stop,
                    days,
                }),
            }),
            parts => panic!("a part of {parts:?} is missing and no problem says so"),
        }
    }
}

fn clock(key: &str, text: Option<&str>, problems: &mut Vec<Problem>) -> Option<ClockTime> {
    let text = text?;
    let time = ClockTime::parse(text);
    if time.is_none() {
        problems.push(Problem::new(
            format!("/{key}"),
            &Value::from(text),
            ProblemKind::Clock,
            "expected HH:MM text",
            ClockTime::advice(text),
        ));
    }
    time
}

/// Days as a connector writes them, in its order: a week begins on Sunday.
const DAY_CODES: [(&str, Day); 7] = [
    ("Su", Day::Sun),
    ("M", Day::Mon),
    ("T", Day::Tue),
    ("W", Day::Wed),
    ("Th", Day::Thu),
    ("F", Day::Fri),
    ("S", Day::Sat),
];

fn enabled_days(text: Option<&str>, problems: &mut Vec<Problem>) -> DaySet {
    let Some(text) = text else { return DaySet::ALL };
    let mut days = DaySet::default();
    // The position after the last day seen: connectors take days in ascending order only.
    let mut next = 0;
    let mut wrong = |message: String| {
        problems.push(Problem::new(
            format!("/{FAST_SYNC_ENABLED_DAYS}"),
            &Value::from(text),
            ProblemKind::Days,
            message,
            "write days and ranges from Su, M, T, W, Th, F, S in this order, such as \"M-F\" or \"Su,T-Th\"",
        ));
    };
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let position = |code: &str| DAY_CODES.iter().position(|(name, _)| *name == code.trim());
        match (position(first), position(last)) {
            (Some(first), Some(last))
                if next <= first && first <= last && (first < last || !part.contains('-')) =>
            {
                DAY_CODES[first..=last].iter().for_each(|(_, day)| {
                    days.insert(*day);
                });
                next = last + 1;
            }
            (Some(_), Some(_)) => wrong(format!(
                "days repeat or run backwards at \"{}\"",
                part.trim()
            )),
            _ => wrong(format!(
                "\"{}\" is not a day or a range of days",
                part.trim()
            )),
        }
    }
    days
}

fn example(key: &str) -> &'static str {
    match key {
        SYNC_FREQUENCY => "write a number and a unit, such as \"30m\"; \"0s\" switches pacing off",
        TIMEZONE => "write an IANA name such as \"Europe/Berlin\", or an offset such as \"+02:00\"",
        FAST_SYNC_START_TIME => "write a time of day such as \"09:00\"",
        FAST_SYNC_STOP_TIME => "write a time of day such as \"17:00\"",
        FAST_SYNC_ENABLED_DAYS => "write days such as \"M-F\"",
        other => panic!("{other} is not a key of a connector's schedule"),
    }
}

/// Reads a frequency as connectors take it (`1h30m`, `1.5h`, `0`), and in the longer spellings of model schedules.
pub(crate) fn parse_frequency(text: &str) -> Result<Duration, String> {
    match connector_duration_nanos(text) {
        Some(nanos) if nanos > INTERVAL_MAX.as_nanos() => {
            Err(format!("a frequency is at most {INTERVAL_DAYS_MAX} days"))
        }
        Some(nanos) => {
            let nanos = u64::try_from(nanos).expect("a leap year of nanoseconds fits 64 bits");
            Ok(Duration::from_nanos(nanos))
        }
        None => parse_interval(text).map_err(|refusal| refusal.message),
    }
}

const HOUR_NANOS: u128 = 3_600_000_000_000;

/// Digits of one number in a frequency; the longest frequency has as many in nanoseconds, the smallest unit.
const FREQUENCY_DIGITS_MAX: usize = 17;

/// Bytes of a frequency; the longest sensible one names seven units.
const FREQUENCY_BYTES_MAX: usize = 64;

/// Reads the connectors' spelling: numbers with a unit from `ns` to `h`, perhaps with a fraction, or a bare zero; a
/// sign only on a zero. Anything else, a number out of all bounds included, is `None`.
fn connector_duration_nanos(text: &str) -> Option<u128> {
    let longest_number = text
        .split(|c: char| !c.is_ascii_digit())
        .map(str::len)
        .max()
        .unwrap_or(0);
    if text.len() > FREQUENCY_BYTES_MAX || longest_number > FREQUENCY_DIGITS_MAX {
        return None;
    }
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0_u128;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(number_end);
        let unit_end = tail
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let unit_nanos = match unit {
            "ns" => 1,
            "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => HOUR_NANOS / 60,
            "h" => HOUR_NANOS,
            _ => return None,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return None;
        }
        let digits = |text: &str| {
            if text.is_empty() {
                Some(0)
            } else {
                text.parse::<u128>().ok()
            }
        };
        let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
        total += digits(whole)? * unit_nanos + digits(fraction)? * unit_nanos / scale;
        rest = tail;
    }
    (!negative || total == 0).then_some(total)
}

#[cfg(test)]
#[path = "legacy_tests.rs"]
mod tests;
