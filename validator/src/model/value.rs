//! Values that are written as text: names, sizes, durations, instants.

use chrono::DateTime;
use std::time::Duration;

/// Longest name; it must fit file names and subjects with room for what is put around it.
const NAME_BYTES_MAX: usize = 200;

/// Longest duration of a setting, in days; anything longer is a slip of the unit.
const DURATION_DAYS_MAX: u64 = 366;

/// Says what is wrong with the name of a collection or task.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("a name is not empty".to_owned());
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(format!("a name has at most {NAME_BYTES_MAX} bytes"));
    }
    if name.split('/').any(str::is_empty) {
        return Err(
            "a name is made of parts with one \"/\" between them, and none around them".to_owned(),
        );
    }
    if name.split('/').any(|part| matches!(part, "." | "..")) {
        return Err("no part of a name is \".\" or \"..\"".to_owned());
    }
    match name
        .chars()
        .find(|c| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/')))
    {
        Some(c) => Err(format!(
            "a name is made of letters, digits, \"-\", \"_\", \".\" and \"/\", and {c:?} is none of them"
        )),
        None => Ok(()),
    }
}

/// Reads a duration such as `30s`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|_| {
        "a duration is written as a number and a unit, such as \"30s\" or \"5m\"".to_owned()
    })?;
    if duration > Duration::from_secs(DURATION_DAYS_MAX * 86_400) {
        return Err(format!("a duration is at most {DURATION_DAYS_MAX} days"));
    }
    Ok(duration)
}

/// Reads a size such as `256MiB` into bytes.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let advice = || {
        "a size is written as a whole number and a unit (B, KiB, MiB, GiB), such as \"256MiB\""
            .to_owned()
    };
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let factor: u64 = match unit.trim() {
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "KB" | "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        _ => return Err(advice()),
    };
    let number: u64 = digits.parse().map_err(|_| advice())?;
    number
        .checked_mul(factor)
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "a size is more than nothing, and fits 64 bits".to_owned())
}

/// Reads an RFC 3339 instant into microseconds since the Unix epoch.
pub(super) fn instant(text: &str) -> Result<i64, String> {
    DateTime::parse_from_rfc3339(text)
        .map(|instant| instant.timestamp_micros())
        .map_err(|_| {
            "an instant is written as date, time and offset, such as \"2026-01-31T00:00:00Z\""
                .to_owned()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_grammar() {
        for good in [
            "a",
            "acmeCo/tests/materialize-postgres",
            "ops.us-central1.v1/x",
            "Größe/表",
        ] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "/a",
            "a/",
            "a//b",
            "a b",
            "a/../b",
            "a:b",
            "a\nb",
            &"x".repeat(201),
        ] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("256MiB"), Ok(256 << 20));
        assert_eq!(size("1 GB"), Ok(1_000_000_000));
        for bad in [
            "256",
            "MiB",
            "-1MiB",
            "0B",
            "1.5GiB",
            "99999999999999999999B",
            "18446744073709551615GiB",
        ] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn instants_have_offsets() {
        assert_eq!(instant("1970-01-01T00:00:01.000002Z"), Ok(1_000_002));
        assert_eq!(instant("1970-01-01T01:00:00+01:00"), Ok(0));
        assert!(instant("2026-01-01T00:00:00").is_err());
        assert!(instant("2026-01-01").is_err());
    }

    #[test]
    fn durations_are_bounded() {
        assert_eq!(duration("1m 30s"), Ok(Duration::from_secs(90)));
        assert!(duration("30").is_err());
        assert!(duration("2years").is_err());
    }
}
