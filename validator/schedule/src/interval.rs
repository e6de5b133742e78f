//! Intervals as text: a number and a unit, several of them added up, such as `30m` or `1h 30m`.
//!
//! The crate `humantime` does the reading. What is refused here before or after it: what it reads but authors mean
//! otherwise (`M` is a month to it), what nobody can check by eye (months and years of mean length), and what reaches
//! the end of its range, where it may panic.

use std::time::Duration;

/// The longest interval, in days: a leap year. A grid coarser than that is a mistake, and instants stay far from the
/// ends of 64 bits.
pub(crate) const INTERVAL_DAYS_MAX: u64 = 366;

/// The longest interval.
pub(crate) const INTERVAL_MAX: Duration = Duration::from_secs(INTERVAL_DAYS_MAX * 86_400);

/// Digits of one number; the longest interval has eleven in milliseconds, the smallest unit of a schedule.
const NUMBER_DIGITS_MAX: usize = 11;

/// Bytes of the whole text; the longest sensible one names six units. Together with the digits it keeps every sum
/// below 2^63 seconds.
const TEXT_BYTES_MAX: usize = 64;

/// Why an interval was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) message: String,
    pub(crate) fix: String,
}

/// Reads an interval, zero included.
pub(crate) fn parse_interval(text: &str) -> Result<Duration, Refusal> {
    let refuse = |message: &str, fix: String| {
        Err(Refusal {
            message: message.to_owned(),
            fix,
        })
    };
    let text = text.trim();
    if text.is_empty() {
        return refuse(
            "the interval is empty",
            "write a number and a unit, such as \"30m\"".to_owned(),
        );
    }
    if text.len() > TEXT_BYTES_MAX || longest_number(text) > NUMBER_DIGITS_MAX {
        return refuse("the interval is too long to read", at_most());
    }
    if text.starts_with('-') {
        return refuse(
            "an interval cannot be negative",
            "write \"0s\" for as fast as possible".to_owned(),
        );
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        let fix = match text.trim_start_matches('0') {
            "" => "write \"0s\"".to_owned(),
            number => format!("write \"{number}s\", \"{number}m\" or \"{number}h\""),
        };
        return refuse("the interval has no unit", fix);
    }
    if let Some(unit) = calendar_unit(text) {
        let fix = if unit == "M" {
            "write \"m\" for minutes, or days"
        } else {
            "write days, such as \"30days\""
        };
        return refuse("months and years have no fixed length", fix.to_owned());
    }
    let duration = match humantime::parse_duration(text) {
        Ok(duration) => duration,
        Err(error) => {
            let lower = text.to_lowercase();
            let fix = match humantime::parse_duration(&lower) {
                Ok(_) if lower != text => format!("write \"{lower}\""),
                _ => "write numbers and units out of days, h, m, s and ms, such as \"1h30m\""
                    .to_owned(),
            };
            return refuse(&format!("cannot read the interval: {error}"), fix);
        }
    };
    if duration > INTERVAL_MAX {
        return refuse("the interval is too long", at_most());
    }
    if text.contains('.') {
        return refuse(
            "an interval has no fractions",
            format!("write \"{}\"", spell_interval(duration)),
        );
    }
    Ok(duration)
}

/// Writes an interval so that [`parse_interval`] reads it back.
pub(crate) fn spell_interval(interval: Duration) -> String {
    let mut rest = interval.as_nanos();
    let mut text = String::new();
    for (unit, nanos) in [
        ("days", 86_400_000_000_000),
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
    ] {
        if rest >= nanos {
            text += &format!("{}{unit}", rest / nanos);
            rest %= nanos;
        }
    }
    if text.is_empty() {
        "0s".to_owned()
    } else {
        text
    }
}

fn at_most() -> String {
    format!("an interval is at most {INTERVAL_DAYS_MAX} days")
}

fn longest_number(text: &str) -> usize {
    text.split(|c: char| !c.is_ascii_digit())
        .map(str::len)
        .max()
        .unwrap_or(0)
}

/// Finds a unit without a fixed length among those that the reader knows.
fn calendar_unit(text: &str) -> Option<&str> {
    text.split(|c: char| !c.is_alphabetic()).find(|unit| {
        matches!(
            *unit,
            "M" | "month" | "months" | "y" | "yr" | "yrs" | "year" | "years"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn intervals_read() {
        for (text, seconds) in [
            ("0s", 0),
            ("0m", 0),
            ("30s", 30),
            ("30m", 1800),
            ("4h", 14_400),
            ("1h30m", 5400),
            ("1h 30m", 5400),
            (" 90 min ", 5400),
            ("2days", 172_800),
            ("1w", 604_800),
            ("366d", 366 * 86_400),
            ("52w 2d", 366 * 86_400),
        ] {
            assert_eq!(
                parse_interval(text),
                Ok(Duration::from_secs(seconds)),
                "{text}"
            );
        }
        assert_eq!(parse_interval("1500ms"), Ok(Duration::from_millis(1500)));
    }

    #[test]
    fn refusals_say_the_spelling_that_works() {
        for (text, message, fix) in [
            ("", "empty", "\"30m\""),
            ("0", "no unit", "\"0s\""),
            ("000", "no unit", "\"0s\""),
            ("1", "no unit", "\"1s\", \"1m\" or \"1h\""),
            ("900", "no unit", "\"900m\""),
            ("1.5h", "fractions", "\"1h30m\""),
            ("0.5h", "fractions", "\"30m\""),
            ("1.50 days", "fractions", "\"1days12h\""),
            ("30M", "no fixed length", "\"m\" for minutes"),
            ("2months", "no fixed length", "days"),
            ("1y", "no fixed length", "days"),
            ("1h 1 year", "no fixed length", "days"),
            ("30MIN", "unknown time unit", "\"30min\""),
            ("5 fortnights", "unknown time unit", "1h30m"),
            ("-5m", "negative", "0s"),
            ("367d", "too long", "366"),
            ("366d 1ms", "too long", "366"),
            ("99999999999999999999h", "too long", "366"),
            ("18446744073709551615s 1000ms", "too long", "366"),
            ("PT30M", "no fixed length", "m"),
            ("every 5m", "cannot read", "1h30m"),
            ("1.h", "cannot read", "1h30m"),
        ] {
            let refusal = parse_interval(text).expect_err(text);
            assert!(refusal.message.contains(message), "{text:?}: {refusal:?}");
            assert!(refusal.fix.contains(fix), "{text:?}: {refusal:?}");
        }
    }

    proptest! {
        #[test]
        fn spelling_reads_back(nanos in 0..=366 * 86_400_000_000_000_u64) {
            let duration = Duration::from_nanos(nanos);
            prop_assert_eq!(parse_interval(&spell_interval(duration)), Ok(duration));
        }

        #[test]
        fn no_text_makes_it_panic(text in "([0-9.]{0,14} ?[a-zµMd]{0,3}){0,6}") {
            if let Ok(interval) = parse_interval(&text) {
                prop_assert!(interval <= INTERVAL_MAX);
            }
        }
    }
}
