use super::*;
use proptest::prelude::*;
use serde_json::json;

fn paced(value: Value) -> ConnectorSchedule {
    match classify(Some(&value)) {
        Ok(Configured::Paced(schedule)) => schedule,
        other => panic!("{value} should pace, not {other:?}"),
    }
}

#[test]
fn nothing_configured_is_absent() {
    assert_eq!(classify(None), Ok(Configured::Absent));
    for value in [
        json!(null),
        json!({}),
        json!({"syncFrequency": null}),
        json!({"syncFrequency": "", "timezone": null}),
        json!({"syncFrequency": null, "timezone": ""}),
        json!({"syncFrequency": "  ", "timezone": "", "fastSyncStartTime": "", "fastSyncStopTime": null,
               "fastSyncEnabledDays": "\t"}),
        json!({"advanced": {"anything": 1}}),
    ] {
        assert_eq!(classify(Some(&value)), Ok(Configured::Absent), "{value}");
    }
    let default = Configured::Absent
        .into_pacing()
        .expect("a connector without a schedule paces");
    assert_eq!(default.sync_frequency.as_deref(), Some("30m"));
    assert!(default.check().is_ok());
}

#[test]
fn zero_in_any_spelling_switches_pacing_off() {
    for zero in [
        "0",
        "0s",
        "0m",
        "0h",
        "0ms",
        "0h0m",
        "0h0m0s",
        "00s",
        "0.0s",
        ".0s",
        "0.s",
        "+0",
        "-0",
        "-0s",
        "0us",
        "0µs",
        "0ns",
        " 0s ",
        "0 s",
        "0sec",
        "0 seconds",
        "0min",
        "0 minutes",
        "0 hours",
        "0days",
        "0h 0m",
        "0000000s",
    ] {
        assert_eq!(
            classify(Some(&json!({"syncFrequency": zero}))),
            Ok(Configured::AllZero),
            "{zero:?}"
        );
    }
    for zero in [json!(0), json!(0.0), json!(-0.0)] {
        assert_eq!(
            classify(Some(&json!({"syncFrequency": zero}))),
            Ok(Configured::AllZero),
            "{zero}"
        );
    }
    let beside = json!({"syncFrequency": "0s", "timezone": "", "fastSyncStartTime": null});
    assert_eq!(classify(Some(&beside)), Ok(Configured::AllZero));
    assert_eq!(Configured::AllZero.into_pacing(), None);
}

#[test]
fn anything_else_paces() {
    let fast = json!({"syncFrequency": "0s", "timezone": "UTC", "fastSyncStartTime": "09:00",
                      "fastSyncStopTime": "17:00", "fastSyncEnabledDays": "M-F"});
    let schedule = paced(fast.clone());
    assert!(schedule.check().is_ok());
    assert_eq!(
        serde_json::to_value(&schedule).expect("a schedule is JSON"),
        fast
    );
    assert_eq!(
        serde_json::from_value::<ConnectorSchedule>(fast).expect("and back"),
        schedule
    );

    for frequency in [
        "30s",
        "5m",
        "15m",
        "30m",
        "1h",
        "2h",
        "4h",
        "20m",
        "1h30m",
        "1.5h",
        "30 minutes",
        "1ns",
    ] {
        let schedule = paced(json!({"syncFrequency": frequency}));
        assert!(schedule.check().is_ok(), "{frequency}");
        assert_eq!(
            Configured::Paced(schedule.clone()).into_pacing(),
            Some(schedule)
        );
    }
    // Zero with a single other field is not the sanctioned way to switch off.
    for key in [
        "timezone",
        "fastSyncStartTime",
        "fastSyncStopTime",
        "fastSyncEnabledDays",
    ] {
        for frequency in [json!("0s"), json!(null), json!("5m")] {
            let schedule = paced(json!({"syncFrequency": frequency, key: "UTC"}));
            assert!(schedule.check().is_err(), "{key}, {frequency}");
        }
    }
}

#[test]
fn what_cannot_be_read_is_an_error() {
    struct Case {
        value: Value,
        pointer: &'static str,
        kind: ProblemKind,
        message: &'static str,
    }
    use ProblemKind::{Clock, Interval, Type};
    for Case {
        value,
        pointer,
        kind,
        message,
    } in [
        Case {
            value: json!("30m"),
            pointer: "",
            kind: Type,
            message: "an object, not text",
        },
        Case {
            value: json!([]),
            pointer: "",
            kind: Type,
            message: "an object, not a list",
        },
        Case {
            value: json!(false),
            pointer: "",
            kind: Type,
            message: "an object, not a boolean",
        },
        Case {
            value: json!({"syncFrequency": 30}),
            pointer: "/syncFrequency",
            kind: Type,
            message: "not a number",
        },
        Case {
            value: json!({"timezone": true}),
            pointer: "/timezone",
            kind: Type,
            message: "not a boolean",
        },
        Case {
            value: json!({"fastSyncStartTime": 600}),
            pointer: "/fastSyncStartTime",
            kind: Clock,
            message: "expected HH:MM text; quote it",
        },
        Case {
            value: json!({"syncFrequency": "soon"}),
            pointer: "/syncFrequency",
            kind: Interval,
            message: "cannot",
        },
        Case {
            value: json!({"syncFrequency": "5"}),
            pointer: "/syncFrequency",
            kind: Interval,
            message: "unit",
        },
        Case {
            value: json!({"syncFrequency": "-5m"}),
            pointer: "/syncFrequency",
            kind: Interval,
            message: "negative",
        },
        Case {
            value: json!({"syncFrequency": "."}),
            pointer: "/syncFrequency",
            kind: Interval,
            message: "cannot",
        },
        Case {
            value: json!({"syncFrequency": "-"}),
            pointer: "/syncFrequency",
            kind: Interval,
            message: "cannot",
        },
        Case {
            value: json!({"syncFrequency": "8785h"}),
            pointer: "/syncFrequency",
            kind: Interval,
            message: "366",
        },
        Case {
            value: json!({"syncFrequency": "18446744073709551615s 1000ms"}),
            pointer: "/syncFrequency",
            kind: Interval,
            message: "too long",
        },
    ] {
        let error = classify(Some(&value)).expect_err(&value.to_string());
        let [problem] = error.problems() else {
            panic!("one problem in {value}, not {error}")
        };
        assert_eq!(
            (problem.pointer.as_str(), problem.kind),
            (pointer, kind),
            "{value}"
        );
        assert!(problem.message.contains(message), "{value}: {problem}");
        assert!(!problem.fix.is_empty());
    }

    let many = json!({"syncFrequency": [], "timezone": 1, "fastSyncStartTime": 1, "fastSyncStopTime": {},
                      "fastSyncEnabledDays": 5});
    assert_eq!(
        classify(Some(&many))
            .expect_err("five problems")
            .problems()
            .len(),
        5
    );
}

#[test]
fn check_reports_every_problem_of_a_paced_schedule() {
    let schedule = paced(
        json!({"syncFrequency": "5m", "fastSyncStartTime": "9am", "fastSyncStopTime": "24:00",
                                "fastSyncEnabledDays": "F-M,Tu"}),
    );
    let error = schedule.check().expect_err("five problems");
    let found: Vec<_> = error
        .problems()
        .iter()
        .map(|it| (it.pointer.as_str(), it.kind))
        .collect();
    assert_eq!(
        found,
        [
            ("/timezone", ProblemKind::Missing),
            ("/fastSyncStartTime", ProblemKind::Clock),
            ("/fastSyncStopTime", ProblemKind::Clock),
            ("/fastSyncEnabledDays", ProblemKind::Days),
            ("/fastSyncEnabledDays", ProblemKind::Days),
        ]
    );

    let same = paced(
        json!({"syncFrequency": "5m", "timezone": "UTC", "fastSyncStartTime": "9:00",
                            "fastSyncStopTime": "09:00"}),
    );
    assert_eq!(
        same.check().expect_err("empty window").problems()[0].kind,
        ProblemKind::EmptyWindow
    );
}

#[test]
fn enabled_days_read_as_connectors_do() {
    use Day::{Fri, Mon, Sat, Sun, Thu, Tue, Wed};
    for (text, want) in [
        ("M-F", vec![Mon, Tue, Wed, Thu, Fri]),
        ("M,W,F", vec![Mon, Wed, Fri]),
        ("Su-T,Th-S", vec![Mon, Tue, Thu, Fri, Sat, Sun]),
        ("Su-S", Day::ALL.to_vec()),
        ("S", vec![Sat]),
        ("M, W - F", vec![Mon, Wed, Thu, Fri]),
    ] {
        let mut problems = Vec::new();
        let days = enabled_days(Some(text), &mut problems);
        assert_eq!(
            (days.iter().collect::<Vec<_>>(), problems),
            (want, vec![]),
            "{text}"
        );
    }
    assert_eq!(enabled_days(None, &mut Vec::new()), DaySet::ALL);
    for text in [
        "F,M", "M,M", "M-M", "S-Su", "M-W,W-F", "Mon", "m", "M--F", "M-", ",", "M,", "1-5", "M-W-F",
    ] {
        let mut problems = Vec::new();
        enabled_days(Some(text), &mut problems);
        assert!(!problems.is_empty(), "{text:?}");
    }
}

#[test]
fn frequencies_have_the_value_they_say() {
    for (text, seconds) in [
        ("30s", 30.0),
        ("1h30m", 5400.0),
        ("1.5h", 5400.0),
        ("+5m", 300.0),
        ("250ms", 0.25),
        ("2 hours", 7200.0),
    ] {
        assert_eq!(
            parse_frequency(text),
            Ok(Duration::from_secs_f64(seconds)),
            "{text}"
        );
    }
    assert_eq!(
        parse_frequency("8784h"),
        Ok(Duration::from_secs(366 * 86_400))
    );
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[-+]?([0-9.]{0,20} ?[a-zµ]{0,3}){0,6}", other in "\\PC{0,12}") {
        let _ = classify(Some(&json!({"syncFrequency": text, "fastSyncEnabledDays": other, "timezone": other})))
            .map(|configured| configured.into_pacing().map(|schedule| schedule.check()));
    }
}
