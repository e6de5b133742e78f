//! Cron expressions: read in the dialect their authors mean, and evaluated on the local clock.
//!
//! ```text
//! 5 fields   -> crontab(5) -> sets of numbers -> the crate's dialect, one or two expressions
//! 6-7 fields -> the crate's own dialect, weekdays by name only
//! ```
//!
//! The crate numbers weekdays from Sunday as 1 and lets both day fields decide together; crontab(5) numbers Sunday 0
//! and 7, and lets either day field decide when both are restricted. Handing five fields over as they are would sync
//! on other days than the author reads.

use crate::problem::{Problem, ProblemKind};
use crate::zone::{END_INSTANT, FIRST_INSTANT, Wall, Zone};
use serde_json::Value;
use std::collections::BTreeSet;

/// Bytes of an expression; lists of every minute and hour in full are shorter.
const EXPRESSION_BYTES_MAX: usize = 512;

/// A cron expression that fires at least once, in a zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cron {
    zone: Zone,
    /// The next fire is the earliest of any of these.
    schedules: Vec<cron::Schedule>,
}

impl Cron {
    /// Reads an expression; the problems carry `pointer`.
    pub(crate) fn parse(text: &str, zone: Zone, pointer: &str) -> Result<Self, Vec<Problem>> {
        let value = Value::from(text);
        let problem = |kind, refusal: Refusal| {
            Problem::new(pointer, &value, kind, refusal.message, refusal.fix)
        };
        let schedules = read(text).map_err(|refusals| {
            refusals
                .into_iter()
                .map(|refusal| problem(ProblemKind::Cron, refusal))
                .collect::<Vec<_>>()
        })?;
        let cron = Self { zone, schedules };
        match cron.next_fire(FIRST_INSTANT - 1) {
            Some(_) => Ok(cron),
            None => {
                let message = "no date matches this cron expression";
                let fix = "choose a day that its months have, or a year up to 2099";
                Err(vec![problem(
                    ProblemKind::NeverFires,
                    Refusal::new(message, fix),
                )])
            }
        }
    }

    pub(crate) fn zone(&self) -> Zone {
        self.zone
    }

    /// Returns the first fire after `after`, if it is before the end of schedules.
    pub(crate) fn next_fire(&self, after: i64) -> Option<i64> {
        self.next_wall(after)
            .map(|wall| self.zone.reached(wall))
            .filter(|fire| *fire < END_INSTANT)
    }

    /// Returns the local time that the first fire after `after` is written for; in a gap, the clock never reads it.
    pub(crate) fn next_wall(&self, after: i64) -> Option<Wall> {
        let wall = self.matching(self.zone.local(after))?;
        if self.zone.reached(wall) > after {
            return Some(wall);
        }
        // The clock is in the second pass of a fold, and what it reads again has fired.
        self.matching(self.zone.furthest(after))
    }

    fn matching(&self, after: Wall) -> Option<Wall> {
        let after = after.naive().and_utc();
        let next = |schedule: &cron::Schedule| schedule.after(&after).next();
        self.schedules
            .iter()
            .filter_map(next)
            .min()
            .map(|next| Wall(next.timestamp_millis()))
    }
}

/// Why an expression was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refusal {
    message: String,
    fix: String,
}

impl Refusal {
    fn new(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            fix: fix.into(),
        }
    }
}

fn read(text: &str) -> Result<Vec<cron::Schedule>, Vec<Refusal>> {
    if text.len() > EXPRESSION_BYTES_MAX {
        let message = format!("a cron expression has at most {EXPRESSION_BYTES_MAX} bytes");
        return Err(vec![Refusal::new(
            message,
            "write ranges and steps instead of lists",
        )]);
    }
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    if let [nickname] = fields[..]
        && let Some((_, meaning)) = NICKNAMES
            .iter()
            .find(|(name, _)| nickname.eq_ignore_ascii_case(name))
    {
        return Err(vec![Refusal::new(
            "cron expressions have no nicknames here",
            format!("write \"{meaning}\""),
        )]);
    }
    match fields.len() {
        5 => read_crontab(&fields),
        6 | 7 => read_with_seconds(&fields),
        count => Err(vec![Refusal::new(
            format!("a cron expression has 5 fields, or 6 or 7 with seconds and year, not {count}"),
            "write minute, hour, day of month, month and day of week, such as \"0 2 * * *\"",
        )]),
    }
}

const NICKNAMES: [(&str, &str); 8] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
    ("@reboot", "* * * * *"),
];

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// One of the fields of crontab(5).
struct Field {
    name: &'static str,
    low: u32,
    high: u32,
    /// Names of its numbers from `low`.
    names: &'static [&'static str],
}

const CRONTAB_FIELDS: [Field; 5] = [
    Field {
        name: "minute",
        low: 0,
        high: 59,
        names: &[],
    },
    Field {
        name: "hour",
        low: 0,
        high: 23,
        names: &[],
    },
    Field {
        name: "day of month",
        low: 1,
        high: 31,
        names: &[],
    },
    Field {
        name: "month",
        low: 1,
        high: 12,
        names: &MONTHS,
    },
    Field {
        name: "day of week",
        low: 0,
        high: 7,
        names: &WEEKDAYS,
    },
];

fn read_crontab(fields: &[&str]) -> Result<Vec<cron::Schedule>, Vec<Refusal>> {
    let (mut sets, mut refusals) = (Vec::new(), Vec::new());
    for (field, text) in CRONTAB_FIELDS.iter().zip(fields) {
        match field.read(text) {
            Ok(set) => sets.push(set),
            Err(refusal) => refusals.push(refusal),
        }
    }
    let Ok([minutes, hours, days, months, weekdays]) = <[BTreeSet<u32>; 5]>::try_from(sets) else {
        return Err(refusals);
    };
    // Sunday is 0 and 7; the crate's Sunday is 1.
    let weekdays: BTreeSet<u32> = weekdays.into_iter().map(|day| day % 7 + 1).collect();
    let expression = |days: &str, weekdays: &str| {
        let text = format!(
            "0 {} {} {days} {} {weekdays} *",
            list(&minutes),
            list(&hours),
            list(&months)
        );
        text.parse::<cron::Schedule>()
            .expect("sets of numbers within their fields are in the crate's dialect")
    };
    let (days, weekdays) = (list(&days), list(&weekdays));
    // A field that starts with a star is no restriction of its own: its steps narrow what the other day field says.
    Ok(
        if fields[2].starts_with('*') || fields[4].starts_with('*') {
            vec![expression(&days, &weekdays)]
        } else {
            vec![expression(&days, "*"), expression("*", &weekdays)]
        },
    )
}

fn list(set: &BTreeSet<u32>) -> String {
    set.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

impl Field {
    fn read(&self, text: &str) -> Result<BTreeSet<u32>, Refusal> {
        let mut set = BTreeSet::new();
        for part in text.split(',') {
            let (range, step) = match part.split_once('/') {
                Some((range, step)) => (range, Some(step)),
                None => (part, None),
            };
            let (low, high) = match range.split_once('-') {
                _ if range == "*" => (self.low, self.high),
                Some((low, high)) => (self.number(low)?, self.number(high)?),
                None => {
                    let number = self.number(range)?;
                    if let Some(step) = step {
                        let message = format!(
                            "{}: a step follows a star or a range, not {range}",
                            self.name
                        );
                        return Err(Refusal::new(
                            message,
                            format!("write \"{range}-{}/{step}\"", self.high),
                        ));
                    }
                    (number, number)
                }
            };
            if low > high {
                let message = format!("{}: the range {range} runs backwards", self.name);
                return Err(Refusal::new(message, self.unwrapped(low, high)));
            }
            let step = step.map_or(Ok(1), |step| self.step(step))?;
            set.extend((low..=high).step_by(step));
        }
        Ok(set)
    }

    fn number(&self, text: &str) -> Result<u32, Refusal> {
        let named = self
            .names
            .iter()
            .position(|name| text.eq_ignore_ascii_case(name));
        if let Some(position) = named {
            return Ok(self.low + u32::try_from(position).expect("there are few names"));
        }
        let number = text
            .parse::<u32>()
            .ok()
            .filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
        let fix = match text {
            "?" => "write \"*\"".to_owned(),
            _ if self.names.is_empty() => {
                format!("write a number from {} to {}", self.low, self.high)
            }
            _ => format!(
                "write a number from {} to {}, or a name such as \"{}\"",
                self.low, self.high, self.names[1]
            ),
        };
        match number {
            Some(number) if (self.low..=self.high).contains(&number) => Ok(number),
            Some(_) => Err(Refusal::new(
                format!("{}: {text} is out of range", self.name),
                fix,
            )),
            None => Err(Refusal::new(
                format!("{}: cannot read \"{text}\"", self.name),
                fix,
            )),
        }
    }

    fn step(&self, text: &str) -> Result<usize, Refusal> {
        let step = text
            .parse::<u32>()
            .ok()
            .filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
        match step {
            Some(step) if (1..=self.high).contains(&step) => {
                Ok(usize::try_from(step).expect("a step is a small number"))
            }
            // Every such step means the first number alone, which nobody writes so.
            _ => Err(Refusal::new(
                format!(
                    "{}: a step is a number from 1 to {}, not \"{text}\"",
                    self.name, self.high
                ),
                "for a step across hours or days use baseInterval instead of cron",
            )),
        }
    }

    /// Says how to write a range that goes past the end of its field.
    fn unwrapped(&self, low: u32, high: u32) -> String {
        match (self.name, high) {
            ("day of week", 0) => format!("write \"{low}-7\"; 7 is Sunday, too"),
            ("day of week", _) => format!("write \"{low}-6,0-{high}\""),
            _ => format!("write \"{low}-{},{}-{high}\"", self.high, self.low),
        }
    }
}

/// Names of the crate's fields, each with an expression in which only that field can be wrong.
const CRATE_FIELDS: [&str; 7] = [
    "second",
    "minute",
    "hour",
    "day of month",
    "month",
    "day of week",
    "year",
];

fn read_with_seconds(fields: &[&str]) -> Result<Vec<cron::Schedule>, Vec<Refusal>> {
    let mut refusals = Vec::new();
    for (position, text) in fields.iter().enumerate() {
        let name = CRATE_FIELDS[position];
        let mut alone = ["*"; 7];
        alone[position] = text;
        if name == "day of week"
            && let Some(number) = numbered_weekday(text)
        {
            let day = number
                .parse()
                .ok()
                .and_then(|number: usize| WEEKDAYS.get(number % 7))
                .unwrap_or(&"mon");
            refusals.push(Refusal::new(
                format!("{name}: with seconds, weekdays are written by name, as 1 is Sunday to some and Monday to others"),
                format!("write a name such as \"{day}\" for {number}"),
            ));
        } else if alone.join(" ").parse::<cron::Schedule>().is_err() {
            refusals.push(Refusal::new(
                format!("{name}: cannot read \"{text}\""),
                "fields are second, minute, hour, day of month, month, day of week and year; leave out second and year \
                 for crontab's five",
            ));
        }
    }
    if !refusals.is_empty() {
        return Err(refusals);
    }
    let schedule = fields.join(" ").parse::<cron::Schedule>();
    schedule
        .map(|schedule| vec![schedule])
        .map_err(|error| vec![Refusal::new(error.to_string(), "write five fields")])
}

/// Finds a weekday that is a number, steps aside.
fn numbered_weekday(text: &str) -> Option<&str> {
    let ranges = text
        .split(',')
        .map(|part| part.split_once('/').map_or(part, |(range, _)| range));
    ranges
        .flat_map(|range| range.split('-'))
        .find(|day| day.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
#[path = "cron_tests.rs"]
mod tests;
