//! Reports about other schedulers that must not become reports about this one.
//!
//! The name of each test begins with the case's number. Each answer is checked twice: as the next fire, and as the
//! first entry that `explain` shows.

use chrono::DateTime;
use serde_json::{Value, json};
use tidegate_schedule::CompiledSchedule;

#[track_caller]
fn check(rows: impl IntoIterator<Item = (Value, &'static str, &'static str)>) {
    for (schedule, after, want) in rows {
        let compiled = CompiledSchedule::parse(&schedule)
            .unwrap_or_else(|error| panic!("{schedule}: {error}"));
        let instant = |text| {
            DateTime::parse_from_rfc3339(text)
                .expect("a test's instant")
                .to_utc()
        };
        let (after, want) = (instant(after), instant(want));
        assert_eq!(
            compiled.next_fire(after, 0),
            Some(want),
            "{schedule} after {after}"
        );
        let explained = compiled.explain(after, 0, 1);
        assert_eq!(
            explained.first().map(|it| it.at),
            Some(want),
            "{schedule} after {after}"
        );
    }
}

#[test]
fn c01_a_grid_from_the_epoch_and_not_the_time_since_a_start() {
    check([
        (
            json!({"baseInterval": "15m"}),
            "2026-05-04T00:13:00Z",
            "2026-05-04T00:15:00Z",
        ),
        // Strictly after.
        (
            json!({"baseInterval": "15m"}),
            "2026-05-04T00:15:00Z",
            "2026-05-04T00:30:00Z",
        ),
        // No restart at midnight.
        (
            json!({"baseInterval": "7h"}),
            "2026-05-04T00:13:00Z",
            "2026-05-04T02:00:00Z",
        ),
        // The grid of 3h says 06:00, but the base returns at 05:45, across a slower window in between.
        (
            json!({"baseInterval": "10m", "timezone": "+00:00", "windows": [
                {"interval": "3h", "start": "23:00", "end": "05:30"},
                {"interval": "6h", "start": "05:30", "end": "05:45"},
            ]}),
            "2026-05-04T03:10:00Z",
            "2026-05-04T05:45:00Z",
        ),
    ]);
}

#[test]
fn c02_a_window_that_starts_in_the_hour_that_spring_skips() {
    let window = |timezone: &str, start: &str, end: &str| json!({"baseInterval": "6h", "timezone": timezone, "windows": [{"interval": "10m", "start": start, "end": end}]});
    check([
        // It opens at the end of what is skipped.
        (
            window("Europe/Berlin", "02:15", "18:00"),
            "2026-03-29T00:40:00Z",
            "2026-03-29T01:00:00Z",
        ),
        // Both ends are skipped: no window that day, and none of a whole day either.
        (
            window("Europe/Berlin", "02:10", "02:50"),
            "2026-03-29T00:40:00Z",
            "2026-03-29T06:00:00Z",
        ),
        // There is no midnight that day.
        (
            window("America/Santiago", "00:15", "08:00"),
            "2026-09-06T03:30:00Z",
            "2026-09-06T04:00:00Z",
        ),
    ]);
}

#[test]
fn c03_days_and_midnight_are_those_of_the_zone() {
    check([
        // Sunday evening is off; Monday begins at 12:00Z.
        (
            json!({"baseInterval": "8h", "timezone": "Pacific/Auckland", "windows": [
                {"interval": "5m", "start": "22:00", "end": "02:00", "days": ["Mon", "Tue", "Wed", "Thu", "Fri"]},
            ]}),
            "2026-06-07T11:00:00Z",
            "2026-06-07T12:00:00Z",
        ),
        // The slow window ends with the local day.
        (
            json!({"baseInterval": "10m", "timezone": "Pacific/Auckland", "windows": [
                {"interval": "8h", "start": "22:00", "end": "06:00", "days": ["Mon"]},
            ]}),
            "2026-06-08T11:10:00Z",
            "2026-06-08T12:00:00Z",
        ),
        // Friday in UTC, Saturday in Tokyo.
        (
            json!({"baseInterval": "4h", "timezone": "Asia/Tokyo", "windows": [
                {"interval": "15m", "start": "00:00", "end": "06:00", "days": ["Sat"]},
            ]}),
            "2026-06-05T14:50:00Z",
            "2026-06-05T15:00:00Z",
        ),
    ]);
}
