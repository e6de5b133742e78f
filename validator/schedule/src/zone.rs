//! Time zones, and the two questions that schedules ask of one.
//!
//! A local clock jumps ahead (a *gap*) and back (a *fold*). Schedules follow the clock that never goes back: it stands
//! still through the second pass of a fold. `Zone::reached` is the first instant at which that clock reads a wall time
//! or later, `Zone::furthest` what it reads at an instant. Both only ever grow, so that wall times in order are
//! instants in order, whatever the zone does: a bound in a gap is the gap's end, one in a fold its first pass.
//!
//! What a zone did or will do is the zone database's knowledge, which ends with the year 2099.

use chrono::{DateTime, NaiveDateTime, Offset, TimeZone};
use chrono_tz::Tz;
use strsim::damerau_levenshtein;

const SECOND: i64 = 1_000;
const HOUR: i64 = 3_600 * SECOND;
const DAY: i64 = 24 * HOUR;

/// The first instant of schedules, in milliseconds since the Unix epoch.
pub(crate) const FIRST_INSTANT: i64 = 0;

/// The first instant that is out of reach, 2100-01-01T00:00:00Z: past it the zone database freezes summer time, and
/// any answer would be wrong for half the year.
pub(crate) const END_INSTANT: i64 = 4_102_444_800 * SECOND;

/// More than any zone has been from UTC since 1970, and than any jump: the date line was crossed by a whole day.
const OFFSET_MAX: i64 = 26 * HOUR;

/// A reading of a local clock, in milliseconds since it read 1970-01-01T00:00.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wall(pub(crate) i64);

impl Wall {
    pub(crate) fn naive(self) -> NaiveDateTime {
        naive(self.0)
    }
}

/// A change of a zone's offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transition {
    pub(crate) at: i64,
    /// What the clock would have read at `at` without the change.
    pub(crate) before: Wall,
    pub(crate) after: Wall,
}

/// Why a zone was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) message: String,
    pub(crate) fix: String,
}

/// A named zone, or a fixed offset from UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zone {
    Named(Tz),
    Fixed { offset_minutes: i64 },
}

impl Zone {
    pub(crate) const UTC: Self = Self::Named(Tz::UTC);

    /// Reads an IANA name, or an offset `+HH:MM`.
    pub(crate) fn parse(text: &str) -> Result<Self, Refusal> {
        if let Ok(tz) = text.parse::<Tz>() {
            return Ok(Self::Named(tz));
        }
        if text.starts_with(['+', '-']) {
            return parse_offset(text);
        }
        let refuse = |message: &str, fix: String| {
            Err(Refusal {
                message: message.to_owned(),
                fix,
            })
        };
        let example =
            "write an IANA name such as \"Europe/Berlin\", or an offset such as \"+02:00\"";
        if text.trim().is_empty() {
            return refuse("the timezone is empty", example.to_owned());
        }
        if text.eq_ignore_ascii_case("local") {
            let message = "a schedule cannot depend on the zone of the machine that runs it";
            return refuse(message, example.to_owned());
        }
        refuse(
            "this timezone is not known",
            near_name(text).map_or_else(
                || example.to_owned(),
                |name| format!("did you mean \"{name}\"?"),
            ),
        )
    }

    /// Returns the clock's reading at an instant.
    pub(crate) fn local(self, at: i64) -> Wall {
        Wall(at + self.offset(at))
    }

    /// Returns the first instant at which the clock reads `wall` or later.
    pub(crate) fn reached(self, wall: Wall) -> i64 {
        let tz = match self {
            Self::Fixed { .. } => return wall.0 - self.offset(wall.0),
            Self::Named(tz) => tz,
        };
        match tz.offset_from_local_datetime(&wall.naive()) {
            chrono::LocalResult::Single(offset) => wall.0 - millis(&offset),
            // The first pass has the larger offset.
            chrono::LocalResult::Ambiguous(one, other) => wall.0 - millis(&one).max(millis(&other)),
            // Bisected, as gaps are not all an hour: Troll jumps two, Lord Howe half of one, Apia a day.
            chrono::LocalResult::None => first(wall.0 - OFFSET_MAX, wall.0 + OFFSET_MAX, |at| {
                self.local(at) >= wall
            }),
        }
    }

    /// Returns the furthest that the clock has read by an instant, to the millisecond.
    pub(crate) fn furthest(self, at: i64) -> Wall {
        let local = self.local(at);
        let first_pass = self.reached(local);
        if first_pass == at {
            return local;
        }
        // A second pass: the clock stands where it went back.
        let offset = self.offset(first_pass);
        let back = first(first_pass, at, |at| self.offset(at) != offset);
        Wall(back + offset - 1)
    }

    /// Returns the first change of offset in `(after, until]`, of those that last for more than a day.
    pub(crate) fn next_transition(self, after: i64, until: i64) -> Option<Transition> {
        let mut from = after;
        while from < until {
            let to = (from + DAY).min(until);
            let offset = self.offset(from);
            if self.offset(to) != offset {
                let at = first(from, to, |at| self.offset(at) != offset);
                return Some(Transition {
                    at,
                    before: Wall(at + offset),
                    after: self.local(at),
                });
            }
            from = to;
        }
        None
    }

    fn offset(self, at: i64) -> i64 {
        match self {
            Self::Named(tz) => millis(&tz.offset_from_utc_datetime(&naive(at))),
            Self::Fixed { offset_minutes } => offset_minutes * 60 * SECOND,
        }
    }
}

impl std::fmt::Display for Zone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Named(tz) => f.write_str(tz.name()),
            Self::Fixed { offset_minutes } => {
                f.write_str(&offset_text(offset_minutes * 60 * SECOND))
            }
        }
    }
}

/// Writes an offset as `+HH:MM`.
pub(crate) fn offset_text(offset: i64) -> String {
    let minutes = offset.abs() / (60 * SECOND);
    format!(
        "{}{:02}:{:02}",
        if offset < 0 { '-' } else { '+' },
        minutes / 60,
        minutes % 60
    )
}

fn naive(millis: i64) -> NaiveDateTime {
    DateTime::from_timestamp_millis(millis)
        .expect("schedules keep to the years about 1970 to 2100")
        .naive_utc()
}

fn millis(offset: &impl Offset) -> i64 {
    i64::from(offset.fix().local_minus_utc()) * SECOND
}

/// Finds the first whole second in `(low, high]`, counted from `low`, at which `reached` holds, given that it does not
/// at `low`, does at `high`, and does not cease in between. Offsets change on whole seconds only.
fn first(low: i64, high: i64, reached: impl Fn(i64) -> bool) -> i64 {
    let start = low.div_euclid(SECOND);
    let (mut low, mut high) = (
        start,
        high.div_euclid(SECOND) + i64::from(high.rem_euclid(SECOND) > 0),
    );
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if reached(middle * SECOND) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high * SECOND
}

fn parse_offset(text: &str) -> Result<Zone, Refusal> {
    let refuse = |message: &str, fix: String| {
        Err(Refusal {
            message: message.to_owned(),
            fix,
        })
    };
    let (sign, rest) = text.split_at(1);
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let example = "write an offset as sign, hours and minutes, such as \"+02:00\"".to_owned();
    let Some((hours, minutes)) = rest
        .split_once(':')
        .filter(|(hours, minutes)| digits(hours) && digits(minutes))
    else {
        return refuse("this offset is not of the form +HH:MM", example);
    };
    if hours.len() == 1 && minutes.len() == 2 {
        return refuse(
            "this offset is not of the form +HH:MM",
            format!("write \"{sign}0{hours}:{minutes}\""),
        );
    }
    if hours.len() != 2 || minutes.len() != 2 {
        return refuse("this offset is not of the form +HH:MM", example);
    }
    let number = |part: &str| part.parse::<i64>().expect("two digits are a number");
    let (hours, minutes) = (number(hours), number(minutes));
    if hours > 23 || minutes > 59 {
        return refuse(
            "this offset is out of range",
            "offsets go from \"-23:59\" to \"+23:59\"".to_owned(),
        );
    }
    let minutes = hours * 60 + minutes;
    Ok(Zone::Fixed {
        offset_minutes: if sign == "-" { -minutes } else { minutes },
    })
}

/// Finds the name that `text` seems to mean: in another case, with spaces, by its city alone, or misspelt.
fn near_name(text: &str) -> Option<&'static str> {
    let wanted = text.trim().to_lowercase().replace(' ', "_");
    let city = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
    let distance = |name: &str| {
        let name = name.to_lowercase();
        let by_city = if wanted.contains('/') {
            usize::MAX
        } else {
            damerau_levenshtein(&wanted, &city(&name))
        };
        damerau_levenshtein(&wanted, &name).min(by_city)
    };
    // Of names as near, the shortest: `UTC` before `Etc/UTC`.
    let near = |name: &'static str| (distance(name), name.len(), name);
    let (edits, _, name) = chrono_tz::TZ_VARIANTS
        .iter()
        .map(|tz| near(tz.name()))
        .min()?;
    crate::near::is_near(edits, &wanted).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> i64 {
        DateTime::parse_from_rfc3339(text)
            .expect("a test's instant")
            .timestamp_millis()
    }

    fn wall(text: &str) -> Wall {
        Wall(at(&format!("{text}Z")))
    }

    #[test]
    fn names_and_offsets_read() {
        for (text, name) in [
            ("Europe/Berlin", "Europe/Berlin"),
            ("UTC", "UTC"),
            ("Etc/GMT+5", "Etc/GMT+5"),
            ("+00:00", "+00:00"),
            ("-00:30", "-00:30"),
            ("+14:00", "+14:00"),
            ("-09:45", "-09:45"),
        ] {
            assert_eq!(
                Zone::parse(text).map(|zone| zone.to_string()),
                Ok(name.to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn refusals_say_what_was_probably_meant() {
        for (text, message, fix) in [
            ("", "empty", "Europe/Berlin"),
            (" ", "empty", "Europe/Berlin"),
            ("Local", "machine", "Europe/Berlin"),
            (
                "Europe/Berlni",
                "not known",
                "did you mean \"Europe/Berlin\"",
            ),
            (
                "europe/berlin",
                "not known",
                "did you mean \"Europe/Berlin\"",
            ),
            ("Berlin", "not known", "did you mean \"Europe/Berlin\""),
            ("New York", "not known", "did you mean \"America/New_York\""),
            (
                "Ameria/New_York",
                "not known",
                "did you mean \"America/New_York\"",
            ),
            ("utc", "not known", "did you mean \"UTC\""),
            ("Mars/Olympus_Mons", "not known", "write an IANA name"),
            ("xq", "not known", "write an IANA name"),
            ("+24:00", "out of range", "+23:59"),
            ("+99:99", "out of range", "+23:59"),
            ("-00:60", "out of range", "-23:59"),
            ("+5:30", "form", "\"+05:30\""),
            ("+0530", "form", "+02:00"),
            ("+05", "form", "+02:00"),
            ("+", "form", "+02:00"),
            ("+é:00", "form", "+02:00"),
            ("+05:30:00", "form", "+02:00"),
            ("+99999999999999999999:00", "form", "+02:00"),
        ] {
            let refusal = Zone::parse(text).expect_err(text);
            assert!(refusal.message.contains(message), "{text:?}: {refusal:?}");
            assert!(refusal.fix.contains(fix), "{text:?}: {refusal:?}");
        }
    }

    #[test]
    fn a_gap_is_reached_at_its_end_and_a_fold_in_its_first_pass() {
        for (zone, wall_text, want) in [
            (
                "Europe/Berlin",
                "2026-03-29T01:59:59",
                "2026-03-29T00:59:59Z",
            ),
            (
                "Europe/Berlin",
                "2026-03-29T02:00:00",
                "2026-03-29T01:00:00Z",
            ),
            (
                "Europe/Berlin",
                "2026-03-29T02:59:59.999",
                "2026-03-29T01:00:00Z",
            ),
            (
                "Europe/Berlin",
                "2026-03-29T03:00:00",
                "2026-03-29T01:00:00Z",
            ),
            (
                "Europe/Berlin",
                "2026-10-25T02:30:00",
                "2026-10-25T00:30:00Z",
            ),
            (
                "Europe/Berlin",
                "2026-10-25T03:00:00",
                "2026-10-25T02:00:00Z",
            ),
            (
                "Antarctica/Troll",
                "2026-03-29T01:30:00",
                "2026-03-29T01:00:00Z",
            ),
            (
                "Australia/Lord_Howe",
                "2026-10-04T02:10:00",
                "2026-10-03T15:30:00Z",
            ),
            (
                "America/Santiago",
                "2026-09-06T00:00:00",
                "2026-09-06T04:00:00Z",
            ),
            (
                "Pacific/Apia",
                "2011-12-30T12:00:00",
                "2011-12-30T10:00:00Z",
            ),
            (
                "Africa/Monrovia",
                "1972-01-07T00:20:00",
                "1972-01-07T00:44:30Z",
            ),
            ("+05:30", "2026-03-29T02:00:00", "2026-03-28T20:30:00Z"),
        ] {
            let zone = Zone::parse(zone).expect("a zone");
            assert_eq!(
                zone.reached(wall(wall_text)),
                at(want),
                "{zone} {wall_text}"
            );
        }
    }

    #[test]
    fn the_furthest_reading_stands_still_through_a_second_pass() {
        let berlin = Zone::parse("Europe/Berlin").expect("a zone");
        for (instant, want) in [
            ("2026-10-25T00:30:00Z", "2026-10-25T02:30:00"),
            ("2026-10-25T00:59:59.999Z", "2026-10-25T02:59:59.999"),
            ("2026-10-25T01:00:00Z", "2026-10-25T02:59:59.999"),
            ("2026-10-25T01:59:59.999Z", "2026-10-25T02:59:59.999"),
            ("2026-10-25T02:00:00Z", "2026-10-25T03:00:00"),
            ("2026-03-29T01:00:00Z", "2026-03-29T03:00:00"),
        ] {
            assert_eq!(berlin.furthest(at(instant)), wall(want), "{instant}");
        }
    }

    #[test]
    fn the_database_reaches_to_2099() {
        let berlin = Zone::parse("Europe/Berlin").expect("a zone");
        let mut from = at("2099-01-01T00:00:00Z");
        let mut changes = 0;
        while let Some(transition) = berlin.next_transition(from, END_INSTANT) {
            (from, changes) = (transition.at, changes + 1);
        }
        assert_eq!(changes, 2);
        assert_eq!(at("2100-01-01T00:00:00Z"), END_INSTANT);
    }
}
