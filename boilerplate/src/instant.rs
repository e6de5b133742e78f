//! Dates and times of text, as destinations count them.
//!
//! ```text
//! "2026-01-31T23:59:59.5+01:00" -> microseconds since 1970 in UTC -> "2026-01-31T22:59:59.500000Z"
//! ```
//!
//! A date is a number of days, an instant one of microseconds, from the start of the
//! year 1970. Digits beyond microseconds are cut off: the document keeps them.

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
/// Microseconds of an hour.
pub const HOUR: i64 = 60 * MINUTE;
/// Microseconds of a day.
pub const DAY: i64 = 24 * HOUR;

/// Days from the first of March of the year 0 to the first of January 1970.
const DAYS_TO_1970: i64 = 719_468;

/// Days of four centuries: after so many the calendar repeats itself.
const ERA_DAYS: i64 = 146_097;

/// Reads an instant: a date, `T` or a space, a time and an offset, in either case of
/// letters. Returns microseconds since 1970.
///
/// # Errors
///
/// If it is none, or has no offset: which instant it is, is not known then.
pub fn date_time(text: &str) -> Result<i64, &'static str> {
    const SHAPE: &str = "it is not a date, T, and a time with an offset: 2026-01-31T23:59:59Z";
    let (date_text, time_text) = text.split_at_checked(10).ok_or(SHAPE)?;
    let clock = time_text.strip_prefix(['T', 't', ' ']).ok_or(SHAPE)?;
    let days = date(date_text)?;
    let (micros, offset) = time(clock)?;
    Ok(i64::from(days) * DAY + micros - offset * SECOND)
}

/// Spells an instant as RFC 3339 does, for destinations that keep it as text: with `T`
/// and `Z`. Its digits and its offset stay; `+00:00` is `Z`.
///
/// # Errors
///
/// As [`date_time`].
pub fn rfc3339(text: &str) -> Result<String, &'static str> {
    date_time(text)?;
    let (date, clock) = (&text[..10], &text[11..]);
    let zero = ["z", "Z", "+00:00"];
    match zero.iter().find_map(|zero| clock.strip_suffix(zero)) {
        Some(time) => Ok(format!("{date}T{time}Z")),
        None => Ok(format!("{date}T{clock}")),
    }
}

/// Reads a date: `2026-01-31`. Returns days since 1970.
///
/// # Errors
///
/// If it is none.
pub fn date(text: &str) -> Result<i32, &'static str> {
    const SHAPE: &str = "it is not a date: 2026-01-31";
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return Err(SHAPE);
    }
    let part = |from: usize, to: usize| number(&bytes[from..to]).ok_or(SHAPE);
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return Err("there is no such month"),
    };
    if day < 1 || day > length {
        return Err("there is no such day");
    }
    // Counted from March, so that the leap day is the last of its year.
    let (year, month) = match month {
        1 | 2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (153 * month + 2) / 5
        + day
        - 1;
    Ok(i32::try_from(days - DAYS_TO_1970).expect("a year of four digits has few days"))
}

/// Reads a time with its offset: `23:59:59.5+01:00`. Returns microseconds since
/// midnight, and the offset in seconds east of Greenwich.
///
/// # Errors
///
/// If it is none, or has no offset.
pub fn time(text: &str) -> Result<(i64, i64), &'static str> {
    const SHAPE: &str = "it is not a time: 23:59:59Z";
    let bytes = text.as_bytes();
    if bytes.len() < 8 || bytes[2] != b':' || bytes[5] != b':' {
        return Err(SHAPE);
    }
    let part = |from: usize, to: usize| number(&bytes[from..to]).ok_or(SHAPE);
    let (hour, minute, second) = (part(0, 2)?, part(3, 5)?, part(6, 8)?);
    // A leap second is the next minute's first, as databases have it.
    if hour > 23 || minute > 59 || second > 60 {
        return Err("there is no such time of day");
    }
    let mut rest = &bytes[8..];
    let mut micros = 0;
    if let Some(fraction) = rest.strip_prefix(b".") {
        let digits = fraction
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if digits == 0 {
            return Err(SHAPE);
        }
        for position in 0..6 {
            let digit = fraction[..digits].get(position).map_or(0, |it| it - b'0');
            micros = micros * 10 + i64::from(digit);
        }
        rest = &fraction[digits..];
    }
    let of_day = hour * HOUR + minute * MINUTE + second * SECOND + micros;
    Ok((of_day, offset(rest)?))
}

/// Returns the year, month and day that is so many days after the start of 1970.
pub fn civil(days: i64) -> (i64, i64, i64) {
    // Counted from March, as in `date`.
    let days = days + DAYS_TO_1970;
    let (era, of_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..=9 => (year, month + 3),
        _ => (year + 1, month - 9),
    };
    (era * 400 + year, month, day)
}

/// Writes an instant, in UTC: `2026-01-31T22:59:59.500000Z`.
pub fn text(micros: i64) -> String {
    let (year, month, day) = civil(micros.div_euclid(DAY));
    let of_day = micros.rem_euclid(DAY);
    let (hour, minute) = (of_day / HOUR, of_day / MINUTE % 60);
    let (second, fraction) = (of_day / SECOND % 60, of_day % SECOND);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:06}Z")
}

fn offset(text: &[u8]) -> Result<i64, &'static str> {
    const SHAPE: &str = "its offset is not Z or like +01:00";
    let (sign, rest) = match text {
        b"Z" | b"z" => return Ok(0),
        [] => {
            return Err("it has no offset, so which instant it is, is not known: add Z or +01:00");
        }
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return Err(SHAPE),
    };
    let [h, hh, b':', m, mm] = rest else {
        return Err(SHAPE);
    };
    let hours = number(&[*h, *hh]).ok_or(SHAPE)?;
    let minutes = number(&[*m, *mm]).ok_or(SHAPE)?;
    // PostgreSQL's own limit for an offset is just below 16 hours.
    if hours > 15 || minutes > 59 {
        return Err("there is no such offset");
    }
    Ok(sign * (hours * 3600 + minutes * 60))
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |number, digit| {
        digit
            .is_ascii_digit()
            .then(|| number * 10 + i64::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cases count from 2000, whose leap years are easier to see.
    const Y2000: i64 = 10_957 * DAY;

    #[test]
    fn spellings() {
        for (text, want) in [
            (
                "2026-06-23 00:15:23.918411+00:00",
                Ok("2026-06-23T00:15:23.918411Z"),
            ),
            ("2025-11-29 01:05:28z", Ok("2025-11-29T01:05:28Z")),
            ("2025-11-29t01:05:28.5Z", Ok("2025-11-29T01:05:28.5Z")),
            ("2025-11-29T01:05:28+05:30", Ok("2025-11-29T01:05:28+05:30")),
            (
                "2025-11-29 01:05:28.123456789-00:30",
                Ok("2025-11-29T01:05:28.123456789-00:30"),
            ),
            ("2025-11-29 01:05:28", Err(())),
            ("2025-11-29", Err(())),
        ] {
            let got = rfc3339(text);
            assert_eq!(got.as_deref().map_err(drop), want, "{text}");
        }
    }

    #[test]
    fn instants() {
        let cases = [
            ("2000-01-01T00:00:00Z", Some(0)),
            ("2000-01-01T00:00:00.000001z", Some(1)),
            ("1999-12-31T23:59:59.9999999Z", Some(-1)),
            ("2000-01-01t01:00:00+01:00", Some(0)),
            ("1999-12-31 18:30:00-05:30", Some(0)),
            ("2000-03-01T00:00:00Z", Some(60 * DAY)),
            ("2024-02-29T00:00:00Z", Some(8_825 * DAY)),
            (
                "2026-06-23 00:15:23.918411+00:00",
                Some(835_488_923_918_411),
            ),
            ("2016-12-31T23:59:60Z", Some(6_210 * DAY)),
            ("0000-01-01T00:00:00Z", Some(-730_485 * DAY)),
            ("9999-12-31T23:59:59Z", Some(2_921_940 * DAY - SECOND)),
            ("2025-11-29 01:05:28", None),
            ("2025-11-29T01:05:28", None),
            ("2025-11-29", None),
            ("2025-02-29T00:00:00Z", None),
            ("2100-02-29T00:00:00Z", None),
            ("2025-13-01T00:00:00Z", None),
            ("2025-01-01T24:00:00Z", None),
            ("2025-01-01T00:00:00.Z", None),
            ("2025-01-01T00:00:00+1:00", None),
            ("2025-01-01T00:00:00+24:00", None),
            ("20250-01-01T00:00:00Z", None),
            ("2025-01-01T00:00:00Z ", None),
            ("\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}T00:00:00Z", None),
        ];
        for (text, want) in cases {
            let want = want.map(|micros| micros + Y2000);
            assert_eq!(date_time(text).ok(), want, "{text}");
            if let Some(micros) = want {
                assert_eq!(date_time(&super::text(micros)), Ok(micros), "{text}");
            }
        }
    }

    #[test]
    fn each_day_follows_the_last() {
        let mut last = date("1599-12-31").unwrap();
        for year in 1600..2401 {
            for month in 1..=12 {
                for day in 1..=31 {
                    if let Ok(days) = date(&format!("{year:04}-{month:02}-{day:02}")) {
                        assert_eq!(days, last + 1, "{year}-{month}-{day}");
                        assert_eq!(civil(days.into()), (year, month, day));
                        last = days;
                    }
                }
            }
        }
    }

    #[test]
    fn instants_are_written_in_utc() {
        assert_eq!(text(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(text(-1), "1969-12-31T23:59:59.999999Z");
        let micros = date_time("2026-01-31T23:59:59.5+01:00").unwrap();
        assert_eq!(text(micros), "2026-01-31T22:59:59.500000Z");
    }

    #[test]
    fn times() {
        assert_eq!(time("01:02:03Z"), Ok((HOUR + 2 * MINUTE + 3 * SECOND, 0)));
        assert_eq!(
            time("00:00:00.25-01:30"),
            Ok((SECOND / 4, -(3600 + 30 * 60)))
        );
        assert!(time("01:02Z").is_err());
        assert!(time("01:02:03").is_err());
    }
}
