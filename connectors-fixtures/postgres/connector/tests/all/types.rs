//! What each type of field looks like in the database.

use crate::common::{INTEGER, opened, table};
use serde_json::{Value, json};
use tidegate_boilerplate::JsonType::{self, Array, Boolean, Integer, Number, Object, String};
use tidegate_boilerplate::testing::{element, projection};
use tidegate_boilerplate::tuple::{Bytes, Element};

struct Case {
    name: &'static str,
    types: &'static [JsonType],
    format: Option<&'static str>,
    values: Vec<(Element<'static>, &'static str)>,
}

fn case(
    name: &'static str,
    types: &'static [JsonType],
    format: Option<&'static str>,
    values: Vec<(Value, &'static str)>,
) -> Case {
    let values = values
        .into_iter()
        .map(|(value, want)| (element(&value), want));
    Case {
        name,
        types,
        format,
        values: values.collect(),
    }
}

fn number(text: &'static str) -> Element<'static> {
    Element::Bytes(Bytes(text.as_bytes().into()))
}

#[test]
fn values_are_what_they_were() {
    let mut cases = vec![
        case(
            "bools",
            &[Boolean],
            None,
            vec![(json!(true), "t"), (json!(false), "f"), (json!(null), "")],
        ),
        case(
            "ints",
            &[Integer],
            None,
            vec![
                (json!(0), "0"),
                (json!(-1), "-1"),
                (json!(9_007_199_254_740_993_i64), "9007199254740993"),
                (json!(u64::MAX), "18446744073709551615"),
            ],
        ),
        case(
            "numbers",
            &[Number],
            None,
            vec![
                (json!(0.1), "0.1"),
                (json!(-12345.6789), "-12345.6789"),
                (
                    json!(1e-300),
                    "0.000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001",
                ),
                (json!(123456789012.0), "123456789012"),
            ],
        ),
        case(
            "texts",
            &[String],
            None,
            vec![
                (json!("123"), "123"),
                (json!("\\u0000"), "\\u0000"),
                (json!("\u{1f600}"), "\u{1f600}"),
            ],
        ),
        case(
            "instants",
            &[String],
            Some("date-time"),
            vec![
                (
                    json!("2026-06-23 00:15:23.918411+00:00"),
                    "2026-06-23 00:15:23.918411+00",
                ),
                (json!("2025-11-29 01:05:28z"), "2025-11-29 01:05:28+00"),
                (json!("2025-11-29T01:05:28+05:30"), "2025-11-28 19:35:28+00"),
                (
                    json!("9999-12-31T23:59:59.9999999Z"),
                    "9999-12-31 23:59:59.999999+00",
                ),
                (json!("0001-01-01T00:00:00Z"), "0001-01-01 00:00:00+00"),
                (json!("2016-12-31T23:59:60Z"), "2017-01-01 00:00:00+00"),
            ],
        ),
        case(
            "dates",
            &[String],
            Some("date"),
            vec![
                (json!("2024-02-29"), "2024-02-29"),
                (json!("1582-10-15"), "1582-10-15"),
            ],
        ),
        case(
            "times",
            &[String],
            Some("time"),
            vec![(json!("23:59:59.5-01:30"), "23:59:59.5-01:30")],
        ),
        case(
            "uuids",
            &[String],
            Some("uuid"),
            vec![(
                json!("F81D4FAE-7dec-11d0-a765-00a0c91e6bf6"),
                "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
            )],
        ),
        case(
            "durations",
            &[String],
            Some("duration"),
            vec![(json!("P1M2DT3H"), "P1M2DT3H")],
        ),
        case(
            "formatted",
            &[String],
            Some("number"),
            vec![
                (json!("0.1000000000000000055"), "0.1000000000000000055"),
                (json!("NaN"), "NaN"),
                (json!("-Infinity"), "-Infinity"),
                (json!("1e5"), "100000"),
            ],
        ),
        case(
            "objects",
            &[Object, Array],
            None,
            vec![
                (
                    json!({"b": 1, "a": [1.50, null]}),
                    r#"{"a":[1.5,null],"b":1}"#,
                ),
                (json!([]), "[]"),
            ],
        ),
        case(
            "mixed",
            &[Integer, String],
            None,
            vec![(json!(1), "1"), (json!("1"), "\"1\"")],
        ),
    ];
    cases[2]
        .values
        .push((number("0.1234567890123456789"), "0.1234567890123456789"));
    let mut bindings = Vec::new();
    for case in &cases {
        let mut field = projection("v", case.types);
        field.format = case.format.map(str::to_owned);
        let mut binding = table(case.name, &[("id", INTEGER)], &[]);
        binding.values = vec![field];
        bindings.push(binding);
    }
    let mut base64 = table("base64", &[("id", INTEGER)], &[("v", &[String])]);
    base64.values[0].content_encoding = Some("base64".to_owned());
    bindings.push(base64);
    cases.push(case(
        "base64",
        &[String],
        None,
        vec![(json!("aGkA"), "\\x686900")],
    ));

    let mut fixture = opened(bindings);
    fixture.ask("ALTER ROLE tide SET timezone = 'UTC'");
    // Once as new rows, once as rows that exist.
    for checkpoint in ["one", "two"] {
        let mut rows = Vec::new();
        for (binding, case) in (0..).zip(&cases) {
            for (id, (value, _)) in (0..).zip(&case.values) {
                let id = Element::Int(id);
                rows.push(tidegate_boilerplate::testing::Row {
                    binding,
                    key: vec![id],
                    values: vec![value.clone()],
                    document: "{}".to_owned(),
                    delete: false,
                    exists: false,
                });
            }
        }
        fixture.harness.transact_rows(rows, checkpoint).unwrap();
        for case in &cases {
            let got = fixture.ask(&format!("SELECT v FROM {} ORDER BY id", case.name));
            let want: Vec<_> = case.values.iter().map(|(_, want)| *want).collect();
            assert_eq!(got, want.join("\n").trim_end(), "{}", case.name);
        }
    }
}
