use super::*;
use serde_json::json;

fn problems(schedule: &Value) -> Vec<(String, ProblemKind)> {
    let error = CompiledSchedule::parse(schedule).expect_err(&schedule.to_string());
    error
        .into_problems()
        .into_iter()
        .map(|problem| (problem.pointer, problem.kind))
        .collect()
}

fn window(key: &str, value: Value) -> Value {
    let mut window = json!({"interval": "15m", "start": "09:00", "end": "17:00"});
    window[key] = value;
    json!({"baseInterval": "4h", "timezone": "UTC", "windows": [window]})
}

fn windows(windows: Value) -> Value {
    json!({"baseInterval": "4h", "timezone": "UTC", "windows": windows})
}

#[test]
fn right_schedules_read() {
    for schedule in [
        json!({"baseInterval": "20m"}),
        json!({"baseInterval": "0s"}),
        json!({"baseInterval": "366d"}),
        json!({"baseInterval": "30m", "timezone": "Europe/Paris"}),
        json!({"baseInterval": "30m", "timezone": null, "windows": null, "cron": null}),
        json!({"baseInterval": "30m", "windows": []}),
        json!({"cron": "0 2 * * *"}),
        json!({"cron": "0 2 * * *", "timezone": "+05:30"}),
        window("days", json!(["Mon", "tuesday", "WED"])),
        window("days", json!(null)),
        window("end", json!("00:00")),
        window("end", json!("9:30")),
        window("start", json!("22:00")),
        windows(json!([
            {"interval": "1m", "start": "09:00", "end": "17:00", "days": ["Mon", "Tue"]},
            {"interval": "2m", "start": "17:00", "end": "09:00", "days": ["Mon"]},
            {"interval": "3m", "start": "08:00", "end": "20:00", "days": ["Sat"]},
        ])),
    ] {
        CompiledSchedule::parse(&schedule).unwrap_or_else(|error| panic!("{schedule}: {error}"));
    }
}

#[test]
fn wrong_schedules_say_where_and_what_to_do() {
    use ProblemKind::{
        Clock, Cron, Days, EmptyWindow, Exclusive, Interval, Missing, NeverFires, Overlap,
        Timezone, Type, UnknownKey,
    };
    struct Case {
        schedule: Value,
        pointer: &'static str,
        kind: ProblemKind,
        message: &'static str,
        fix: &'static str,
    }
    let case = |schedule, pointer, kind, message, fix| Case {
        schedule,
        pointer,
        kind,
        message,
        fix,
    };
    let base = |value: Value| json!({ "baseInterval": value });
    for Case {
        schedule,
        pointer,
        kind,
        message,
        fix,
    } in [
        case(json!(null), "", Type, "not null", "baseInterval"),
        case(
            json!("30m"),
            "",
            Type,
            "not text",
            "{\"baseInterval\": \"30m\"}",
        ),
        case(
            json!({}),
            "",
            Missing,
            "needs baseInterval or cron",
            "\"30m\"",
        ),
        case(
            json!({"timezone": "UTC"}),
            "",
            Missing,
            "needs baseInterval or cron",
            "\"30m\"",
        ),
        case(
            json!({"baseInterval": "1h", "cron": "0 2 * * *"}),
            "/cron",
            Exclusive,
            "not both",
            "remove one",
        ),
        case(
            json!({"cron": "0 2 * * *", "windows": []}),
            "/windows",
            Exclusive,
            "baseInterval",
            "remove windows",
        ),
        case(
            json!({"baseInterval": "1h", "window": []}),
            "/window",
            UnknownKey,
            "window is not",
            "mean windows?",
        ),
        case(
            json!({"baseInterval": "1h", "timeZone": "UTC"}),
            "/timeZone",
            UnknownKey,
            "timeZone",
            "mean timezone?",
        ),
        case(
            json!({"baseInterval": "1h", "a/b~c": 1}),
            "/a~1b~0c",
            UnknownKey,
            "not a key",
            "remove it",
        ),
        case(
            base(json!("0")),
            "/baseInterval",
            Interval,
            "no unit",
            "\"0s\"",
        ),
        case(
            base(json!("1")),
            "/baseInterval",
            Interval,
            "no unit",
            "\"1m\"",
        ),
        case(
            base(json!("1.5h")),
            "/baseInterval",
            Interval,
            "fractions",
            "\"1h30m\"",
        ),
        case(
            base(json!("1month")),
            "/baseInterval",
            Interval,
            "no fixed length",
            "days",
        ),
        case(
            base(json!("2y")),
            "/baseInterval",
            Interval,
            "no fixed length",
            "days",
        ),
        case(
            base(json!("367d")),
            "/baseInterval",
            Interval,
            "too long",
            "366",
        ),
        case(
            base(json!("1500us")),
            "/baseInterval",
            Interval,
            "whole milliseconds",
            "ms",
        ),
        case(
            base(json!(0)),
            "/baseInterval",
            Interval,
            "not a number",
            "\"0s\"",
        ),
        case(
            base(json!(900)),
            "/baseInterval",
            Interval,
            "not a number",
            "\"900s\"",
        ),
        case(
            base(json!(-1.5)),
            "/baseInterval",
            Interval,
            "not a number",
            "\"30m\"",
        ),
        case(
            json!({"baseInterval": "1h", "timezone": ""}),
            "/timezone",
            Timezone,
            "empty",
            "Europe/Berlin",
        ),
        case(
            json!({"baseInterval": "1h", "timezone": "Local"}),
            "/timezone",
            Timezone,
            "machine",
            "Europe/Berlin",
        ),
        case(
            json!({"baseInterval": "1h", "timezone": 1}),
            "/timezone",
            Type,
            "not a number",
            "quotes",
        ),
        case(
            json!({"cron": "0 2 * * *", "timezone": "Europe/Pari"}),
            "/timezone",
            Timezone,
            "not known",
            "\"Europe/Paris\"",
        ),
        case(
            json!({"cron": ["0", "2"]}),
            "/cron",
            Type,
            "not a list",
            "one text",
        ),
        case(
            json!({"cron": "0 25 * * *"}),
            "/cron",
            Cron,
            "hour: 25",
            "0 to 23",
        ),
        case(
            json!({"cron": "0 0 30 2 *"}),
            "/cron",
            NeverFires,
            "no date",
            "months",
        ),
        case(
            json!({"baseInterval": "1h", "windows": [{"interval": "1m", "start": "09:00", "end": "10:00"}]}),
            "/timezone",
            Missing,
            "need a timezone",
            "\"UTC\"",
        ),
        case(
            windows(json!({})),
            "/windows",
            Type,
            "not an object",
            "list",
        ),
        case(
            windows(json!(["09:00"])),
            "/windows/0",
            Type,
            "not text",
            "\"start\"",
        ),
        case(
            window("dyas", json!([])),
            "/windows/0/dyas",
            UnknownKey,
            "dyas",
            "mean days?",
        ),
        case(
            window("interval", json!("x")),
            "/windows/0/interval",
            Interval,
            "cannot read",
            "1h30m",
        ),
        case(
            window("interval", json!(null)),
            "/windows/0/interval",
            Missing,
            "needs interval",
            "15m",
        ),
        case(
            window("start", json!(600)),
            "/windows/0/start",
            Clock,
            "expected HH:MM text; quote it",
            "\"10:00\"",
        ),
        case(
            window("end", json!(99_999)),
            "/windows/0/end",
            Clock,
            "expected HH:MM text; quote it",
            "\"09:00\"",
        ),
        case(
            window("end", json!("24:00")),
            "/windows/0/end",
            Clock,
            "expected HH:MM text",
            "\"00:00\"",
        ),
        case(
            window("end", json!("5pm")),
            "/windows/0/end",
            Clock,
            "expected HH:MM text",
            "23:59",
        ),
        case(
            window("end", json!("9:00")),
            "/windows/0/end",
            EmptyWindow,
            "never open",
            "another end",
        ),
        case(
            window("days", json!("Mon")),
            "/windows/0/days",
            Days,
            "not text",
            "list",
        ),
        case(
            window("days", json!([])),
            "/windows/0/days",
            Days,
            "no days",
            "leave days out",
        ),
        case(
            window("days", json!(["Mon", "Monday"])),
            "/windows/0/days/1",
            Days,
            "already",
            "remove",
        ),
        case(
            window("days", json!(["Tues"])),
            "/windows/0/days/0",
            Days,
            "not a day",
            "\"Tue\"",
        ),
        case(
            window("days", json!([1])),
            "/windows/0/days/0",
            Days,
            "not a day",
            "Sun",
        ),
        case(
            windows(json!([
                {"interval": "1m", "start": "09:00", "end": "17:00"},
                {"interval": "2m", "start": "16:00", "end": "20:00", "days": ["Wed"]},
            ])),
            "/windows/1",
            Overlap,
            "window 0 on Wed at 16:00",
            "start where another ends",
        ),
        case(
            windows(json!([
                {"interval": "1m", "start": "22:00", "end": "06:00"},
                {"interval": "2m", "start": "05:00", "end": "07:00", "days": ["Sun"]},
            ])),
            "/windows/1",
            Overlap,
            "window 0 on Sun at 05:00",
            "start where another ends",
        ),
    ] {
        let error = CompiledSchedule::parse(&schedule).expect_err(&schedule.to_string());
        let [problem] = error.problems() else {
            panic!("one problem in {schedule}, not {error}")
        };
        assert_eq!(
            (problem.pointer.as_str(), problem.kind),
            (pointer, kind),
            "{schedule}: {problem}"
        );
        assert!(problem.message.contains(message), "{schedule}: {problem}");
        assert!(problem.fix.contains(fix), "{schedule}: {problem}");
    }
}

#[test]
fn all_problems_are_said_at_once() {
    use ProblemKind::{Clock, Days, Exclusive, Interval, Missing, Overlap, Timezone, UnknownKey};
    let schedule = json!({
        "baseInterval": "1",
        "cron": "* * * * *",
        "timezone": "Mars",
        "jitter": true,
        "windows": [
            {"interval": "15m", "start": 540, "end": "25:00", "days": ["Mon", "x"]},
            {"start": "01:00", "end": "02:00"},
            {"interval": "15m", "start": "01:00", "end": "02:00"},
            {"interval": "15m", "start": "01:30", "end": "03:00"},
        ],
    });
    let want = [
        ("/jitter", UnknownKey),
        ("/timezone", Timezone),
        ("/cron", Exclusive),
        ("/baseInterval", Interval),
        ("/windows/0/start", Clock),
        ("/windows/0/end", Clock),
        ("/windows/0/days/1", Days),
        ("/windows/1/interval", Missing),
        ("/windows/3", Overlap),
    ];
    assert_eq!(
        problems(&schedule),
        want.map(|(pointer, kind)| (pointer.to_owned(), kind))
    );
    let many = vec![json!({"interval": "1m", "start": "00:00", "end": "00:01"}); WINDOWS_MAX + 1];
    assert_eq!(
        problems(&windows(Value::from(many))),
        [("/windows".to_owned(), ProblemKind::TooMany)]
    );
}

#[test]
fn an_exhausted_cron_is_known_from_an_instant() {
    let schedule =
        CompiledSchedule::parse(&json!({"cron": "0 0 0 1 1 ? 2020"})).expect("it fired once");
    let at = |text: &str| {
        DateTime::parse_from_rfc3339(text)
            .expect("an instant")
            .to_utc()
    };
    assert!(!schedule.is_exhausted(at("2019-06-01T00:00:00Z")));
    assert!(schedule.is_exhausted(at("2026-06-01T00:00:00Z")));
    assert_eq!(schedule.next_fire(at("2026-06-01T00:00:00Z"), 0), None);
    let plain =
        CompiledSchedule::parse(&json!({"baseInterval": "0s"})).expect("as fast as possible");
    assert!(!plain.is_exhausted(at("2026-06-01T00:00:00Z")));
}

#[test]
fn seeds_are_the_published_hash() {
    assert_eq!(seed_of(""), 0xef46_db37_51d8_e999);
    assert_eq!(seed_of("a"), 0xd24e_c4f1_a98c_6e5b);
}
