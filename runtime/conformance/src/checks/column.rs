//! Whether a column holds a value, which it may spell otherwise.

use chrono::DateTime;
use tidegate_wit::message::{JsonType, Projection};

use crate::run::equal;

/// Says whether what a column holds is the document's value, both as JSON.
///
/// Columns that have a type spell values in its way: an instant in another offset and
/// to the microsecond, a uuid in small letters, a number with other digits of the same
/// value, or as text.
pub(super) fn holds(field: &Projection, want: &str, found: &str) -> bool {
    if equal(want, found) {
        return true;
    }
    if want == "null" || found == "null" {
        return false;
    }
    let (want, found) = (text(want), text(found));
    match field.format.as_deref() {
        Some("date-time") => same(instant(&want), instant(&found)),
        Some("time") => same(time(&want), time(&found)),
        Some("uuid") => want.eq_ignore_ascii_case(&found),
        Some("integer" | "number") => same_number(&want, &found),
        None if field.types == [JsonType::Number] => same_number(&want, &found),
        _ => false,
    }
}

/// Returns what a string says, or the JSON of anything else.
fn text(json: &str) -> String {
    serde_json::from_str(json).unwrap_or_else(|_| json.to_owned())
}

fn same(want: Option<i64>, found: Option<i64>) -> bool {
    want.is_some() && want == found
}

/// Returns the microseconds of an instant: more digits hold few columns.
fn instant(text: &str) -> Option<i64> {
    let instant = DateTime::parse_from_rfc3339(text);
    // PostgreSQL, among others, leaves the minutes of an offset out.
    let instant = instant.or_else(|_| DateTime::parse_from_rfc3339(&format!("{text}:00")));
    instant.ok().map(|instant| instant.timestamp_micros())
}

fn time(text: &str) -> Option<i64> {
    instant(&format!("1970-01-01T{text}"))
}

/// Says whether two numbers are the same: to the last digit, unless the one that is
/// wanted is what a double is called by. Then any digits of that double will do.
fn same_number(want: &str, found: &str) -> bool {
    if equal(want, found) {
        return true;
    }
    match (want.parse::<f64>(), found.parse::<f64>()) {
        (Ok(double), Ok(other)) => double == other && equal(want, &double.to_string()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Described, field};

    #[test]
    fn a_column_has_a_spelling_of_its_own() {
        let of = |types: &[JsonType]| field("f", types);
        let format = |format: &str| of(&[JsonType::String]).format(format);
        let (integer, number) = (of(&[JsonType::Integer]), of(&[JsonType::Number]));
        let several = of(&[JsonType::Integer, JsonType::String]);
        let instant = format("date-time");
        let cases = [
            (&integer, "9007199254740993", "9007199254740993", true),
            (&integer, "9007199254740993", "9007199254740992", false),
            (&integer, "1", "null", false),
            (&integer, "null", "0", false),
            (&number, "1e3", "1000", true),
            (&number, "5e-324", "4.9406564584124654e-324", true),
            (&number, "0.1", "\"0.10000000000000001\"", true),
            (&number, "0.1", "0.1000000000000001", false),
            (&number, "9007199254740993", "9007199254740992", false),
            (&number, "1e100", "1.0e+100", true),
            (&several, "1", "\"1\"", false),
            (&format("number"), "\"1.50\"", "1.5", true),
            (&format("number"), "\"NaN\"", "\"NaN\"", true),
            (&format("number"), "\"NaN\"", "\"nan\"", false),
            (
                &instant,
                "\"2026-03-29t01:02:03.123456789z\"",
                "\"2026-03-29 03:02:03.123456+02\"",
                true,
            ),
            (
                &instant,
                "\"2026-03-29T01:02:03Z\"",
                "\"2026-03-29T01:02:03+01:00\"",
                false,
            ),
            (&instant, "\"2026-03-29T01:02:03Z\"", "\"\"", false),
            (
                &format("time"),
                "\"00:00:00.5+01:00\"",
                "\"00:00:00.5+01\"",
                true,
            ),
            (&format("time"), "\"23:59:59Z\"", "\"23:59:58+00\"", false),
            (&format("uuid"), "\"0A\"", "\"0a\"", true),
            (&format("duration"), "\"PT1H\"", "\"PT60M\"", false),
        ];
        for (field, want, found, holds) in cases {
            assert_eq!(super::holds(field, want, found), holds, "{want} as {found}");
        }
    }
}
