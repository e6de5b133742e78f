//! Schedules whose fires are known, and instants at the ends of what a schedule can say.

use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_schedule::{CompiledPacing, CompiledSchedule, Configured, classify, seed_of};

fn at(text: &str) -> i64 {
    chrono::DateTime::parse_from_rfc3339(text)
        .expect("a test's instant")
        .timestamp_millis()
}

fn shown(millis: Option<i64>) -> String {
    match millis.map(|millis| chrono::DateTime::from_timestamp_millis(millis).expect("an instant"))
    {
        Some(instant) => instant.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true),
        None => "no hold".to_owned(),
    }
}

fn schedule(value: &Value) -> CompiledSchedule {
    CompiledSchedule::parse(value).unwrap_or_else(|error| panic!("{value}: {error}"))
}

fn pacing(value: Value) -> CompiledPacing {
    let Ok(Configured::Paced(schedule)) = classify(Some(&value)) else {
        panic!("{value} paces")
    };
    CompiledPacing::compile(&schedule).unwrap_or_else(|error| panic!("{value}: {error}"))
}

struct Case {
    name: &'static str,
    schedule: Value,
    seed: u64,
    after: &'static str,
    want: &'static str,
}

fn case(name: &'static str, schedule: Value, after: &'static str, want: &'static str) -> Case {
    Case {
        name,
        schedule,
        seed: 0,
        after,
        want,
    }
}

fn check(cases: impl IntoIterator<Item = Case>) {
    for Case {
        name,
        schedule: value,
        seed,
        after,
        want,
    } in cases
    {
        assert_eq!(
            shown(schedule(&value).next_fire_millis(at(after), seed)),
            want,
            "{name}: {value} after {after}"
        );
    }
}

fn base(interval: &str) -> Value {
    json!({ "baseInterval": interval })
}

type WindowText = (
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static str],
);

fn zoned(interval: &str, timezone: &str, windows: &[WindowText]) -> Value {
    let windows: Vec<Value> = windows
        .iter()
        .map(|(interval, start, end, days)| {
            let days = if days.is_empty() {
                Value::Null
            } else {
                json!(days)
            };
            json!({"interval": interval, "start": start, "end": end, "days": days})
        })
        .collect();
    json!({"baseInterval": interval, "timezone": timezone, "windows": windows})
}

const WORKDAYS: &[&str] = &["Mon", "Tue", "Wed", "Thu", "Fri"];

#[test]
fn fires_keep_to_a_grid_from_the_epoch() {
    let jittered = |seed, want| Case {
        seed,
        ..case("jitter", base("15m"), "2026-05-04T00:13:00Z", want)
    };
    check([
        case(
            "next quarter",
            base("15m"),
            "2026-05-04T00:13:00Z",
            "2026-05-04T00:15:00Z",
        ),
        case(
            "strictly after",
            base("15m"),
            "2026-05-04T00:15:00Z",
            "2026-05-04T00:30:00Z",
        ),
        case(
            "just before",
            base("15m"),
            "2026-05-04T00:14:59.999Z",
            "2026-05-04T00:15:00Z",
        ),
        case(
            "no daily restart",
            base("7h"),
            "2026-05-04T00:13:00Z",
            "2026-05-04T02:00:00Z",
        ),
        case(
            "a leap year",
            base("366d"),
            "2026-05-04T00:13:00Z",
            "2027-02-13T00:00:00Z",
        ),
        case(
            "zero does not hold",
            base("0s"),
            "2026-05-04T00:13:00Z",
            "no hold",
        ),
        jittered(90, "2026-05-04T00:16:30Z"),
        jittered(86_400 * 5 + 90, "2026-05-04T00:16:30Z"),
        jittered(86_399, "2026-05-04T00:14:59Z"),
        jittered(u64::MAX, "2026-05-04T00:15:15Z"),
    ]);
}

#[test]
fn a_wait_ends_where_a_faster_regime_begins() {
    let two = || {
        zoned(
            "10m",
            "+00:00",
            &[("3h", "23:00", "05:30", &[]), ("6h", "05:30", "05:45", &[])],
        )
    };
    let office = || zoned("4h", "+00:00", &[("15m", "09:00", "17:00", &[])]);
    let night = || {
        zoned(
            "15m",
            "+00:00",
            &[("0s", "22:00", "23:00", &[]), ("4h", "23:00", "05:00", &[])],
        )
    };
    check([
        case(
            "across a slower window",
            two(),
            "2026-05-04T03:10:00Z",
            "2026-05-04T05:45:00Z",
        ),
        case(
            "at the window's start",
            office(),
            "2026-05-04T08:10:00Z",
            "2026-05-04T09:00:00Z",
        ),
        case(
            "inside",
            office(),
            "2026-05-04T09:00:00Z",
            "2026-05-04T09:15:00Z",
        ),
        case(
            "over its end, the fire stands",
            office(),
            "2026-05-04T16:50:00Z",
            "2026-05-04T17:00:00Z",
        ),
        case(
            "after it",
            office(),
            "2026-05-04T17:00:00Z",
            "2026-05-04T20:00:00Z",
        ),
        Case {
            seed: 600,
            ..case(
                "into the slower one",
                office(),
                "2026-05-04T16:58:00Z",
                "2026-05-04T17:10:00Z",
            )
        },
        case(
            "zero is fastest",
            night(),
            "2026-05-04T21:50:00Z",
            "2026-05-04T22:00:00Z",
        ),
        case("inside zero", night(), "2026-05-04T22:10:00Z", "no hold"),
        case(
            "to the base again",
            night(),
            "2026-05-04T23:30:00Z",
            "2026-05-05T00:00:00Z",
        ),
        case(
            "before the base",
            night(),
            "2026-05-05T04:30:00Z",
            "2026-05-05T05:00:00Z",
        ),
    ]);
}

#[test]
fn a_window_in_a_gap_opens_at_its_end_or_not_at_all() {
    let berlin = |start, end| zoned("6h", "Europe/Berlin", &[("10m", start, end, &[])]);
    let santiago = zoned("6h", "America/Santiago", &[("10m", "00:15", "08:00", &[])]);
    check([
        case(
            "starts in the gap",
            berlin("02:15", "18:00"),
            "2026-03-29T00:40:00Z",
            "2026-03-29T01:00:00Z",
        ),
        case(
            "all in the gap",
            berlin("02:10", "02:50"),
            "2026-03-29T00:40:00Z",
            "2026-03-29T06:00:00Z",
        ),
        case(
            "the day after",
            berlin("02:10", "02:50"),
            "2026-03-29T23:40:00Z",
            "2026-03-30T00:00:00Z",
        ),
        case(
            "no midnight",
            santiago,
            "2026-09-06T03:30:00Z",
            "2026-09-06T04:00:00Z",
        ),
    ]);
}

#[test]
fn a_window_in_a_fold_opens_in_the_first_pass_only() {
    let berlin = || zoned("6h", "Europe/Berlin", &[("10m", "02:15", "02:45", &[])]);
    check([
        case(
            "first pass",
            berlin(),
            "2026-10-24T23:30:00Z",
            "2026-10-25T00:00:00Z",
        ),
        case(
            "opens",
            berlin(),
            "2026-10-25T00:00:00Z",
            "2026-10-25T00:15:00Z",
        ),
        case(
            "inside",
            berlin(),
            "2026-10-25T00:20:00Z",
            "2026-10-25T00:30:00Z",
        ),
        case(
            "second pass",
            berlin(),
            "2026-10-25T01:20:00Z",
            "2026-10-25T06:00:00Z",
        ),
    ]);
}

#[test]
fn days_and_midnights_belong_to_the_zone() {
    let auckland = zoned(
        "8h",
        "Pacific/Auckland",
        &[("5m", "22:00", "02:00", WORKDAYS)],
    );
    let monday = zoned(
        "10m",
        "Pacific/Auckland",
        &[("8h", "22:00", "06:00", &["Mon"])],
    );
    let tokyo = zoned("4h", "Asia/Tokyo", &[("15m", "00:00", "06:00", &["Sat"])]);
    check([
        case(
            "Sunday evening is off",
            auckland,
            "2026-06-07T11:00:00Z",
            "2026-06-07T12:00:00Z",
        ),
        case(
            "ends at local midnight",
            monday,
            "2026-06-08T11:10:00Z",
            "2026-06-08T12:00:00Z",
        ),
        case(
            "Friday elsewhere",
            tokyo,
            "2026-06-05T14:50:00Z",
            "2026-06-05T15:00:00Z",
        ),
    ]);
}

#[test]
fn a_connectors_schedule_paces_as_it_always_has() {
    let fixed = pacing(json!({"syncFrequency": "30m"}));
    assert_eq!(
        shown(fixed.next_fire_millis(at("2026-05-04T00:13:00Z"), 0)),
        "2026-05-04T00:30:00Z"
    );
    // The jitter is half of the seed, in nanoseconds: five minutes, and five minutes and a bit.
    let five_minutes = 2 * 300_000_000_000;
    assert_eq!(
        shown(fixed.next_fire_millis(at("2026-05-04T00:13:00Z"), five_minutes)),
        "2026-05-04T00:35:00Z"
    );
    let later = shown(fixed.next_fire_millis(at("2026-05-04T00:13:00Z"), five_minutes + 2));
    assert_eq!(
        later, "2026-05-04T00:35:00.001Z",
        "never before the instant"
    );
    let whole_days = five_minutes + 2 * 86_400_000_000_000 * 17;
    assert_eq!(
        shown(fixed.next_fire_millis(at("2026-05-04T00:13:00Z"), whole_days)),
        "2026-05-04T00:35:00Z"
    );

    let fast = pacing(
        json!({"syncFrequency": "5m", "timezone": "Pacific/Auckland", "fastSyncStartTime": "22:00",
                             "fastSyncStopTime": "02:00", "fastSyncEnabledDays": "M-F"}),
    );
    for (after, want) in [
        ("2026-06-07T11:00:00Z", "2026-06-07T12:00:00Z"),
        ("2026-06-07T12:00:00Z", "2026-06-07T12:05:00Z"),
        ("2026-06-07T13:58:00Z", "2026-06-07T14:00:00Z"),
        ("2026-06-07T14:00:00Z", "2026-06-07T16:00:00Z"),
        ("2026-06-08T09:00:00Z", "2026-06-08T10:00:00Z"),
    ] {
        assert_eq!(
            shown(fast.next_fire_millis(at(after), 0)),
            want,
            "after {after}"
        );
    }

    let off_when_fast = pacing(
        json!({"syncFrequency": "0s", "timezone": "UTC", "fastSyncStartTime": "09:00",
                                      "fastSyncStopTime": "17:00"}),
    );
    assert_eq!(
        shown(off_when_fast.next_fire_millis(at("2026-05-04T10:00:00Z"), 0)),
        "no hold"
    );
    assert_eq!(
        shown(off_when_fast.next_fire_millis(at("2026-05-04T06:00:00Z"), 0)),
        "2026-05-04T08:00:00Z"
    );
    assert_eq!(
        shown(off_when_fast.next_fire_millis(at("2026-05-04T08:30:00Z"), 0)),
        "2026-05-04T09:00:00Z"
    );

    // More than the slow interval: then outside the window is the faster regime.
    let slow = pacing(
        json!({"syncFrequency": "8h", "timezone": "UTC", "fastSyncStartTime": "01:00",
                             "fastSyncStopTime": "07:00"}),
    );
    assert_eq!(
        shown(slow.next_fire_millis(at("2026-05-04T02:00:00Z"), 0)),
        "2026-05-04T07:00:00Z"
    );
}

#[test]
fn a_connectors_zone_is_checked_with_the_rest() {
    let value = json!({"syncFrequency": "5m", "timezone": "Mars", "fastSyncStartTime": "9am"});
    let Ok(Configured::Paced(schedule)) = classify(Some(&value)) else {
        panic!("it paces")
    };
    let error = CompiledPacing::compile(&schedule).expect_err("three problems");
    let pointers: Vec<_> = error
        .problems()
        .iter()
        .map(|problem| problem.pointer.as_str())
        .collect();
    assert_eq!(
        pointers,
        ["/fastSyncStopTime", "/fastSyncStartTime", "/timezone"]
    );
}

#[test]
fn every_seed_of_one_text_is_one_phase() {
    let schedule = schedule(&base("30m"));
    let after = at("2026-05-04T00:13:00Z");
    let fire = |text| {
        schedule
            .next_fire_millis(after, seed_of(text))
            .expect("a fire")
    };
    assert_eq!(fire("postgres://warehouse"), fire("postgres://warehouse"));
    assert_ne!(fire("acme/orders"), fire("acme/invoices"));
}

fn schedules() -> Vec<CompiledSchedule> {
    [
        base("1ms"),
        base("1s"),
        base("366d"),
        zoned(
            "366d",
            "America/New_York",
            &[("1ms", "02:00", "02:01", &["Sun"])],
        ),
        zoned("0s", "Pacific/Apia", &[("366d", "00:00", "23:59", &[])]),
        zoned("4h", "-23:59", &[("1h", "23:00", "22:59", &[])]),
        json!({"cron": "* * * * *", "timezone": "+23:59"}),
        json!({"cron": "0 0 29 2 *", "timezone": "Africa/Monrovia"}),
        json!({"cron": "* * * * * *"}),
    ]
    .iter()
    .map(schedule)
    .collect()
}

fn any_instant() -> impl Strategy<Value = i64> {
    let end = at("2100-01-01T00:00:00Z");
    prop_oneof![
        any::<i64>(),
        0..end,
        (-86_400_000..86_400_000_i64),
        (end - 400 * 86_400_000..end + 86_400_000),
        Just(i64::MIN),
        Just(i64::MAX),
    ]
}

proptest! {
    #[test]
    fn any_instant_and_seed_are_answered(after in any_instant(), seed in any::<u64>()) {
        let years = 0..at("2100-01-01T00:00:00Z");
        for schedule in schedules() {
            let fire = schedule.next_fire_millis(after, seed);
            prop_assert!(fire.is_none_or(|fire| fire > after && years.contains(&after) && years.contains(&fire)));
        }
        let steady = schedule(&base("1s")).next_fire_millis(after, seed);
        prop_assert_eq!(steady.is_some(), (0..years.end - 1_000).contains(&after));
        for pacing in [
            pacing(json!({"syncFrequency": "1ns"})),
            pacing(json!({"syncFrequency": "8784h", "timezone": "Asia/Gaza", "fastSyncStartTime": "00:00",
                          "fastSyncStopTime": "23:59"})),
        ] {
            let fire = pacing.next_fire_millis(after, seed);
            prop_assert!(fire.is_none_or(|fire| fire > after && years.contains(&fire)));
        }
    }
}
