use super::*;
use serde_json::{Value, json};

fn explained(schedule: &Value, after: &str, count: usize) -> Vec<String> {
    let schedule =
        CompiledSchedule::parse(schedule).unwrap_or_else(|error| panic!("{schedule}: {error}"));
    let after = DateTime::parse_from_rfc3339(after)
        .expect("a test's instant")
        .to_utc();
    let entries = schedule.explain(after, 0, count);
    for pair in entries.windows(2) {
        assert!(pair[0].at < pair[1].at);
    }
    let line = |entry: &Entry| {
        let unheld = if entry.unheld { " unheld" } else { "" };
        let notes: String = entry
            .notes
            .iter()
            .map(|note| format!(" | {note}"))
            .collect();
        format!("{} {}{unheld}{notes}", entry.local, entry.regime)
    };
    entries.iter().map(line).collect()
}

fn berlin(base: &str, interval: &str, start: &str, end: &str) -> Value {
    json!({"baseInterval": base, "timezone": "Europe/Berlin",
           "windows": [{"interval": interval, "start": start, "end": end}]})
}

#[test]
fn entries_name_what_is_in_force() {
    assert_eq!(
        explained(&json!({"baseInterval": "8h"}), "2026-05-04T00:13:00Z", 2),
        [
            "Mon 2026-05-04T08:00:00+00:00 base",
            "Mon 2026-05-04T16:00:00+00:00 base"
        ]
    );
    assert_eq!(
        explained(
            &berlin("6h", "1h", "09:30", "11:00"),
            "2026-05-04T07:00:00Z",
            4
        ),
        [
            "Mon 2026-05-04T09:30:00+02:00 window 0",
            "Mon 2026-05-04T10:00:00+02:00 window 0",
            "Mon 2026-05-04T11:00:00+02:00 base",
            "Mon 2026-05-04T14:00:00+02:00 base",
        ]
    );
    assert_eq!(
        explained(
            &json!({"cron": "0 2 * * *", "timezone": "Asia/Tokyo"}),
            "2026-05-04T00:00:00Z",
            1
        ),
        ["Tue 2026-05-05T02:00:00+09:00 cron"]
    );
    assert_eq!(
        explained(&json!({"baseInterval": "8h"}), "2026-05-04T00:13:00Z", 0),
        Vec::<String>::new()
    );
    assert_eq!(
        explained(
            &json!({"baseInterval": "8h"}),
            "2026-05-04T00:13:00Z",
            usize::MAX
        )
        .len(),
        ENTRIES_MAX
    );
}

#[test]
fn times_without_holds_are_entries_that_end() {
    assert_eq!(
        explained(
            &berlin("0s", "4h", "09:00", "17:00"),
            "2026-05-04T04:00:00Z",
            3
        ),
        [
            "Mon 2026-05-04T06:00:00+02:00 base unheld",
            "Mon 2026-05-04T10:00:00+02:00 window 0",
            "Mon 2026-05-04T14:00:00+02:00 window 0",
        ]
    );
    assert_eq!(
        explained(
            &berlin("4h", "0s", "09:00", "17:00"),
            "2026-05-04T04:30:00Z",
            3
        ),
        [
            "Mon 2026-05-04T09:00:00+02:00 window 0 unheld",
            "Mon 2026-05-04T18:00:00+02:00 base",
            "Mon 2026-05-04T22:00:00+02:00 base",
        ]
    );
    assert_eq!(
        explained(&json!({"baseInterval": "0s"}), "2026-05-04T04:30:00Z", 3),
        ["Mon 2026-05-04T04:30:00+00:00 base unheld"]
    );
    assert_eq!(
        explained(
            &berlin("0s", "0s", "09:00", "17:00"),
            "2026-05-04T04:30:00Z",
            3
        ),
        ["Mon 2026-05-04T06:30:00+02:00 base unheld"]
    );
}

#[test]
fn oddities_of_the_clock_are_said_in_words() {
    assert_eq!(
        explained(
            &json!({"cron": "30 2 * * *", "timezone": "Europe/Berlin"}),
            "2026-03-28T12:00:00Z",
            2
        ),
        [
            "Sun 2026-03-29T03:00:00+02:00 cron | the clock of Europe/Berlin goes forward by 60 minutes, from 2026-03-29 \
             02:00 to 2026-03-29 03:00 | fires at 2026-03-29 03:00, as the clock skips 2026-03-29 02:30",
            "Mon 2026-03-30T02:30:00+02:00 cron",
        ]
    );
    assert_eq!(
        explained(
            &json!({"cron": "30 2 * * *", "timezone": "Europe/Berlin"}),
            "2026-10-25T00:30:00Z",
            1
        ),
        [
            "Mon 2026-10-26T02:30:00+01:00 cron | the clock of Europe/Berlin goes back by 60 minutes, from 2026-10-25 \
             03:00 to 2026-10-25 02:00"
        ]
    );
    assert_eq!(
        explained(
            &berlin("6h", "10m", "02:15", "18:00"),
            "2026-03-29T00:40:00Z",
            1
        ),
        [
            "Sun 2026-03-29T03:00:00+02:00 window 0 | the clock of Europe/Berlin goes forward by 60 minutes, from \
             2026-03-29 02:00 to 2026-03-29 03:00 | window 0 begins at 2026-03-29 03:00, as the clock skips 2026-03-29 \
             02:15"
        ]
    );
    let skipped = explained(
        &berlin("6h", "10m", "02:10", "02:50"),
        "2026-03-29T00:40:00Z",
        1,
    );
    assert!(
        skipped[0].starts_with("Sun 2026-03-29T08:00:00+02:00 base")
            && skipped[0].contains("window 0 does not happen at 2026-03-29 02:10"),
        "{skipped:?}"
    );
}

#[test]
fn what_is_out_of_reach_has_no_entries() {
    for after in [
        "1969-12-31T23:59:59Z",
        "2100-01-01T00:00:00Z",
        "-9999-01-01T00:00:00Z",
        "+12026-01-01T00:00:00Z",
    ] {
        let Ok(after) = after.parse::<DateTime<Utc>>() else {
            continue;
        };
        for schedule in [
            json!({"baseInterval": "0s"}),
            berlin("0s", "4h", "09:00", "17:00"),
            json!({"cron": "* * * * *"}),
        ] {
            let schedule = CompiledSchedule::parse(&schedule).expect("it reads");
            assert_eq!(schedule.explain(after, 0, 3), []);
        }
    }
    let last = DateTime::parse_from_rfc3339("2099-12-31T23:00:00Z")
        .expect("an instant")
        .to_utc();
    let schedule = CompiledSchedule::parse(&json!({"baseInterval": "20m"})).expect("it reads");
    assert_eq!(schedule.explain(last, 0, 9).len(), 2);
}
