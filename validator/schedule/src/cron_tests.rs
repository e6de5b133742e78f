use super::*;
use chrono::{DateTime, SecondsFormat};

fn at(text: &str) -> i64 {
    DateTime::parse_from_rfc3339(text)
        .expect("a test's instant")
        .timestamp_millis()
}

fn shown(millis: i64) -> String {
    let instant = DateTime::from_timestamp_millis(millis).expect("an instant");
    instant.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

fn cron(text: &str, zone: &str) -> Cron {
    Cron::parse(text, Zone::parse(zone).expect("a zone"), "/cron")
        .unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

/// The first of 2026 is a Thursday.
const NEW_YEAR: &str = "2026-01-01T00:00:00Z";

#[test]
fn fires_are_those_of_crontab() {
    let fires: &[(&str, &str, &[&str])] = &[
        (
            "* * * * *",
            NEW_YEAR,
            &["2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"],
        ),
        (
            "* * * * *",
            "2026-01-01T00:00:59.999Z",
            &["2026-01-01T00:01:00Z"],
        ),
        (
            "0 2 * * *",
            NEW_YEAR,
            &["2026-01-01T02:00:00Z", "2026-01-02T02:00:00Z"],
        ),
        (
            "*/15 * * * *",
            NEW_YEAR,
            &["2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z"],
        ),
        (
            "5-59/20 * * * *",
            NEW_YEAR,
            &[
                "2026-01-01T00:05:00Z",
                "2026-01-01T00:25:00Z",
                "2026-01-01T00:45:00Z",
            ],
        ),
        (
            "23 0-23/2 * * *",
            NEW_YEAR,
            &["2026-01-01T00:23:00Z", "2026-01-01T02:23:00Z"],
        ),
        (
            "0,30 8-9 * * *",
            NEW_YEAR,
            &[
                "2026-01-01T08:00:00Z",
                "2026-01-01T08:30:00Z",
                "2026-01-01T09:00:00Z",
            ],
        ),
        // Sunday has two numbers.
        (
            "0 0 * * 0",
            NEW_YEAR,
            &["2026-01-04T00:00:00Z", "2026-01-11T00:00:00Z"],
        ),
        (
            "0 0 * * 7",
            NEW_YEAR,
            &["2026-01-04T00:00:00Z", "2026-01-11T00:00:00Z"],
        ),
        ("5 4 * * sun", NEW_YEAR, &["2026-01-04T04:05:00Z"]),
        (
            "0 0 * * 1",
            NEW_YEAR,
            &["2026-01-05T00:00:00Z", "2026-01-12T00:00:00Z"],
        ),
        ("0 0 * * 6", NEW_YEAR, &["2026-01-03T00:00:00Z"]),
        (
            "0 9 * * 1-5",
            "2026-01-02T09:00:00Z",
            &["2026-01-05T09:00:00Z"],
        ),
        (
            "0 9 * * Mon-Fri",
            "2026-01-02T09:00:00Z",
            &["2026-01-05T09:00:00Z"],
        ),
        (
            "0 0 * * 5-7",
            NEW_YEAR,
            &[
                "2026-01-02T00:00:00Z",
                "2026-01-03T00:00:00Z",
                "2026-01-04T00:00:00Z",
                "2026-01-09T00:00:00Z",
            ],
        ),
        (
            "0 0 * * */2",
            NEW_YEAR,
            &[
                "2026-01-03T00:00:00Z",
                "2026-01-04T00:00:00Z",
                "2026-01-06T00:00:00Z",
            ],
        ),
        // Both day fields restricted: either is enough.
        (
            "30 4 1,15 * 5",
            NEW_YEAR,
            &[
                "2026-01-01T04:30:00Z",
                "2026-01-02T04:30:00Z",
                "2026-01-09T04:30:00Z",
                "2026-01-15T04:30:00Z",
                "2026-01-16T04:30:00Z",
            ],
        ),
        (
            "0 0 13 * 5",
            NEW_YEAR,
            &[
                "2026-01-02T00:00:00Z",
                "2026-01-09T00:00:00Z",
                "2026-01-13T00:00:00Z",
                "2026-01-16T00:00:00Z",
            ],
        ),
        (
            "0 0 1-31 * 1",
            NEW_YEAR,
            &["2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"],
        ),
        // A field that starts with a star only narrows the other one.
        (
            "0 0 */2 * 1",
            NEW_YEAR,
            &[
                "2026-01-05T00:00:00Z",
                "2026-01-19T00:00:00Z",
                "2026-02-09T00:00:00Z",
            ],
        ),
        (
            "0 0 13 * */2",
            NEW_YEAR,
            &["2026-01-13T00:00:00Z", "2026-06-13T00:00:00Z"],
        ),
        (
            "0 0 29 2 *",
            NEW_YEAR,
            &["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"],
        ),
        (
            "0 0 31 * *",
            NEW_YEAR,
            &["2026-01-31T00:00:00Z", "2026-03-31T00:00:00Z"],
        ),
        (
            "0 0 1 jan,JUL *",
            NEW_YEAR,
            &["2026-07-01T00:00:00Z", "2027-01-01T00:00:00Z"],
        ),
        ("  0\t2  *  * * ", NEW_YEAR, &["2026-01-01T02:00:00Z"]),
        // With seconds, and with a year: the other dialect, in which both day fields have to match.
        ("30 0 2 * * *", NEW_YEAR, &["2026-01-01T02:00:30Z"]),
        (
            "*/20 * * * * *",
            "2026-01-01T00:00:39.5Z",
            &["2026-01-01T00:00:40Z", "2026-01-01T00:01:00Z"],
        ),
        (
            "0 0 0 13 * Fri",
            NEW_YEAR,
            &[
                "2026-02-13T00:00:00Z",
                "2026-03-13T00:00:00Z",
                "2026-11-13T00:00:00Z",
            ],
        ),
        (
            "0 0 12 ? * Mon-Wed",
            "2026-01-01T00:00:00Z",
            &["2026-01-05T12:00:00Z", "2026-01-06T12:00:00Z"],
        ),
        (
            "0 0 0 1 1 ? 2030-2032/2",
            NEW_YEAR,
            &["2030-01-01T00:00:00Z", "2032-01-01T00:00:00Z", "none"],
        ),
        ("0 0 31 12 *", "2099-12-31T00:00:00Z", &["none"]),
        (
            "59 23 31 12 *",
            "2099-12-31T00:00:00Z",
            &["2099-12-31T23:59:00Z", "none"],
        ),
    ];
    for (text, after, want) in fires {
        let cron = cron(text, "UTC");
        let mut after = Some(at(after));
        for want in *want {
            after = cron.next_fire(after.expect("another fire"));
            assert_eq!(after.map_or("none".to_owned(), shown), *want, "{text}");
        }
    }
}

#[test]
fn fires_are_local_and_once_whatever_the_clock_does() {
    let fires: &[(&str, &str, &str, &[&str])] = &[
        (
            "0 2 * * *",
            "Asia/Tokyo",
            NEW_YEAR,
            &["2026-01-01T17:00:00Z"],
        ),
        ("0 2 * * *", "-03:30", NEW_YEAR, &["2026-01-01T05:30:00Z"]),
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00:00Z",
            &["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"],
        ),
        (
            "15,30 2 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00:00Z",
            &["2026-03-29T01:00:00Z", "2026-03-30T00:15:00Z"],
        ),
        (
            "0 2,3 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00:00Z",
            &["2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"],
        ),
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-10-24T12:00:00Z",
            &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"],
        ),
        (
            "*/30 * * * *",
            "Europe/Berlin",
            "2026-10-24T23:59:00Z",
            &[
                "2026-10-25T00:00:00Z",
                "2026-10-25T00:30:00Z",
                "2026-10-25T02:00:00Z",
                "2026-10-25T02:30:00Z",
            ],
        ),
        // Asked in the middle of the second pass.
        (
            "*/30 * * * *",
            "Europe/Berlin",
            "2026-10-25T01:15:00Z",
            &["2026-10-25T02:00:00Z"],
        ),
        (
            "30 1 * * *",
            "Antarctica/Troll",
            "2026-03-28T12:00:00Z",
            &["2026-03-29T01:00:00Z", "2026-03-29T23:30:00Z"],
        ),
        (
            "15 2 * * *",
            "Australia/Lord_Howe",
            "2026-10-03T12:00:00Z",
            &["2026-10-03T15:30:00Z"],
        ),
        (
            "0 0 * * 0",
            "America/Santiago",
            "2026-09-05T12:00:00Z",
            &["2026-09-06T04:00:00Z", "2026-09-13T03:00:00Z"],
        ),
        // The day that Samoa skipped.
        (
            "0 12 30 12 *",
            "Pacific/Apia",
            "2011-12-01T00:00:00Z",
            &["2011-12-30T10:00:00Z", "2012-12-29T22:00:00Z"],
        ),
    ];
    for (text, zone, after, want) in fires {
        let cron = cron(text, zone);
        let mut after = at(after);
        for want in *want {
            after = cron.next_fire(after).expect("another fire");
            assert_eq!(shown(after), *want, "{text} in {zone}");
        }
    }
}

#[test]
fn refusals_name_the_field_and_what_to_write() {
    use ProblemKind::{Cron as Read, NeverFires};
    let refusals: &[(&str, ProblemKind, &str, &str)] = &[
        ("", Read, "not 0", "0 2 * * *"),
        ("* * * *", Read, "not 4", "0 2 * * *"),
        ("* * * * * * * *", Read, "not 8", "0 2 * * *"),
        ("@daily", Read, "nicknames", "\"0 0 * * *\""),
        ("@Hourly", Read, "nicknames", "\"0 * * * *\""),
        ("@often", Read, "not 1", "0 2 * * *"),
        ("60 * * * *", Read, "minute: 60 is out of range", "0 to 59"),
        ("* 24 * * *", Read, "hour: 24 is out of range", "0 to 23"),
        (
            "* * 0 * *",
            Read,
            "day of month: 0 is out of range",
            "1 to 31",
        ),
        ("* * * 13 *", Read, "month: 13 is out of range", "\"feb\""),
        (
            "* * * * 8",
            Read,
            "day of week: 8 is out of range",
            "\"mon\"",
        ),
        ("* * * * Tues", Read, "cannot read \"Tues\"", "\"mon\""),
        (
            "* * ? * *",
            Read,
            "day of month: cannot read \"?\"",
            "\"*\"",
        ),
        ("* * L * *", Read, "cannot read \"L\"", "1 to 31"),
        ("* * * * 5#2", Read, "cannot read \"5#2\"", "name"),
        (
            "5/15 * * * *",
            Read,
            "a step follows a star or a range",
            "\"5-59/15\"",
        ),
        ("*/0 * * * *", Read, "a step is a number", "baseInterval"),
        ("*/90 * * * *", Read, "a step is a number", "baseInterval"),
        ("*/+5 * * * *", Read, "a step is a number", "baseInterval"),
        ("+5 * * * *", Read, "cannot read", "0 to 59"),
        ("5- * * * *", Read, "cannot read \"\"", "0 to 59"),
        (", * * * *", Read, "cannot read \"\"", "0 to 59"),
        ("1-2-3 * * * *", Read, "cannot read \"2-3\"", "0 to 59"),
        (
            "0 22-6 * * *",
            Read,
            "hour: the range 22-6 runs backwards",
            "\"22-23,0-6\"",
        ),
        ("0 0 * * fri-sun", Read, "runs backwards", "\"5-7\""),
        ("0 0 * * 5-1", Read, "runs backwards", "\"5-6,0-1\""),
        (
            "99999999999999999999 * * * *",
            Read,
            "cannot read",
            "0 to 59",
        ),
        ("0 0 30 2 *", NeverFires, "no date", "months"),
        ("0 0 31 4,6,9,11 *", NeverFires, "no date", "months"),
        ("0 0 0 29 2 ? 2027", NeverFires, "no date", "year"),
        ("0 0 0 1 1 ? 2100", NeverFires, "no date", "year"),
        ("0 0 0 * * 1", Read, "by name", "\"mon\" for 1"),
        ("0 0 0 * * Mon,7", Read, "by name", "\"sun\" for 7"),
        ("0 0 0 * * 1-5/2", Read, "by name", "\"mon\" for 1"),
        (
            "60 0 0 * * *",
            Read,
            "second: cannot read \"60\"",
            "leave out second",
        ),
        (
            "0 0 0 * * * 1969",
            Read,
            "year: cannot read \"1969\"",
            "leave out second",
        ),
        (
            "0 0 0 * * Mon- Fri",
            Read,
            "day of week: cannot read \"Mon-\"",
            "leave out second",
        ),
    ];
    for (text, kind, message, fix) in refusals {
        let problems = Cron::parse(text, Zone::UTC, "/cron").expect_err(text);
        let problem = &problems[0];
        assert_eq!(
            (problem.kind, problem.pointer.as_str()),
            (*kind, "/cron"),
            "{text}"
        );
        assert!(problem.message.contains(message), "{text}: {problem}");
        assert!(problem.fix.contains(fix), "{text}: {problem}");
    }
    let all = Cron::parse("60 24 0 13 8", Zone::UTC, "/cron").expect_err("five problems");
    assert_eq!(all.len(), 5);
    let long = format!("{}0 * * * *", "0,".repeat(EXPRESSION_BYTES_MAX));
    assert!(
        Cron::parse(&long, Zone::UTC, "/cron").expect_err("too long")[0]
            .message
            .contains("at most")
    );
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "([-0-9*/?,A-Za-z#]{1,6}[ \t]?){0,9}", fields in "([0-9*/,-]{1,5} ){4,6}[a-z0-9]{1,3}") {
        for text in [text, fields] {
            if let Ok(cron) = Cron::parse(&text, Zone::UTC, "/cron") {
                proptest::prop_assert!(cron.next_fire(at(NEW_YEAR)).is_none_or(|fire| fire > at(NEW_YEAR)));
            }
        }
    }
}
