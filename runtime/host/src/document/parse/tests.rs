use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> Result<String, ParseError> {
    let mut tape = Tape::default();
    let document = tape.parse(text.as_bytes())?;
    Ok(document.root().text().to_owned())
}

#[test]
fn values_keep_their_text() {
    let text =
        r#" {"n" : 9007199254740993.10e+5 ,"a":[ 1, -0.0 ,true,false,null,"x\"y\u00e9"],"":{}} "#;
    let mut tape = Tape::default();
    let document = tape.parse(text.as_bytes()).unwrap();
    let root = document.root();
    assert_eq!(root.text(), text.trim());
    assert_eq!(root.get("n").unwrap().text(), "9007199254740993.10e+5");
    let elements: Vec<_> = root
        .get("a")
        .unwrap()
        .elements()
        .map(|value| value.text())
        .collect();
    assert_eq!(
        elements,
        ["1", "-0.0", "true", "false", "null", r#""x\"y\u00e9""#]
    );
    let last = root.get("a").unwrap().elements().last().unwrap();
    assert_eq!(last.string().as_deref(), Some("x\"yé"));
    assert_eq!(root.get("").unwrap().kind(), Kind::Object);
    assert!(root.get("missing").is_none());
    assert_eq!(root.members().count(), 3);
}

#[test]
fn what_is_not_one_json_value_is_refused() {
    for text in [
        "",
        " ",
        "{",
        "[1",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,",
        "{\"a\":1,}",
        "[1,]",
        "[,1]",
        "{,}",
        "{1:2}",
        "{\"a\" 1}",
        "[1 2]",
        "01",
        "-",
        "1.",
        ".5",
        "+1",
        "1e",
        "1e+",
        "0x1",
        "nul",
        "True",
        "NaN",
        "\"",
        "\"\\x\"",
        "\"\\ud800\"",
        "\"\n\"",
        "1 2",
        "{} x",
        "[1]]",
        "\u{feff}1",
        "'a'",
        "1-2",
        "1.2.3",
        "1234567890123456789012345678901234567890.1.2",
        "12345678901234567890123456789012345678-1",
    ] {
        let error = parse(text).unwrap_err();
        assert!(
            matches!(error, ParseError::Syntax { at, .. } if at <= text.len()),
            "{text:?}: {error}"
        );
    }
    assert_eq!(
        Tape::default().parse(b"\"\xff\"").unwrap_err().to_string(),
        "not JSON at byte 1: not UTF-8"
    );
}

#[test]
fn a_property_that_occurs_twice_is_named() {
    let many = |last: &str| {
        let names: String = (0..200).map(|at| format!("\"p{at}\":{at},")).collect();
        format!("{{{names}\"{last}\":0}}")
    };
    for (text, name, at) in [
        (r#"{"a":1,"b":2,"a":1}"#.to_owned(), "a", 0),
        (r#"{"a":{"a":1},"x":[{"b":1,"b":2}]}"#.to_owned(), "b", 18),
        (r#"{"a":1,"\u0061":2}"#.to_owned(), "a", 0),
        (r#"{"":1,"":2}"#.to_owned(), "", 0),
        (many("p7"), "p7", 0),
        (many("p199"), "p199", 0),
    ] {
        let want = ParseError::Duplicate {
            name: name.to_owned(),
            at,
        };
        assert_eq!(parse(&text), Err(want), "{text}");
    }
    assert!(parse(&many("p200")).is_ok());
    assert!(parse(r#"{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}"#).is_ok());
}

#[test]
fn names_that_collide_are_no_duplicates() {
    // The hash sees the first and last eight bytes only.
    assert_eq!(
        hash_name("abcdefgh1abcdefgh"),
        hash_name("abcdefgh2abcdefgh")
    );
    let text = r#"{"abcdefgh1abcdefgh":1,"abcdefgh2abcdefgh":2}"#;
    let mut tape = Tape::default();
    let document = tape.parse(text.as_bytes()).unwrap();
    assert_eq!(
        document.root().get("abcdefgh2abcdefgh").unwrap().text(),
        "2"
    );
}

#[test]
fn limits_are_named() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(parse(&nested(DEPTH_MAX)).is_ok());
    assert_eq!(
        parse(&nested(DEPTH_MAX + 1)),
        Err(ParseError::Depth { at: DEPTH_MAX })
    );
    let mixed = "{\"a\":[".repeat(DEPTH_MAX);
    assert!(matches!(parse(&mixed), Err(ParseError::Depth { .. })));
    let digits = "7".repeat(NUMBER_BYTES_MAX);
    assert!(parse(&digits).is_ok());
    assert_eq!(
        parse(&format!("[{digits}0]")),
        Err(ParseError::Number {
            at: 1,
            len: NUMBER_BYTES_MAX + 1
        })
    );
    let long = " ".repeat(DOCUMENT_BYTES_MAX + 1);
    assert_eq!(
        parse(&long),
        Err(ParseError::Size {
            len: DOCUMENT_BYTES_MAX + 1
        })
    );
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let scalar = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    scalar.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::btree_map(any::<String>(), inner, 0..6).prop_map(|members| {
                members
                    .into_iter()
                    .collect::<serde_json::Map<_, _>>()
                    .into()
            }),
        ]
    })
}

/// Whether a parsed value is what another parser reads.
fn is(value: Value<'_>, want: &serde_json::Value) -> bool {
    match want {
        serde_json::Value::Object(members) => {
            value.members().count() == members.len()
                && members
                    .iter()
                    .all(|(name, want)| value.get(name).is_some_and(|value| is(value, want)))
        }
        serde_json::Value::Array(elements) => {
            value.elements().count() == elements.len()
                && value
                    .elements()
                    .zip(elements)
                    .all(|(value, want)| is(value, want))
        }
        serde_json::Value::String(text) => value.string().as_deref() == Some(text),
        scalar => {
            let text = scalar.to_string();
            value.text() == text
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn two_parsers_read_the_same(value in json()) {
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let mut tape = Tape::default();
            let document = tape.parse(text.as_bytes()).unwrap();
            prop_assert!(is(document.root(), &value), "{}", text);
        }
    }

    #[test]
    fn no_bytes_panic_and_what_parses_is_json(text in "[\\[\\]{}:,\"\\\\0-9eE+.atrufl -]{0,60}") {
        let ours = parse(&text);
        let theirs = serde_json::from_str::<serde::de::IgnoredAny>(&text);
        if ours.is_ok() {
            prop_assert!(theirs.is_ok(), "{}", text);
        } else if theirs.is_ok() {
            prop_assert!(matches!(ours, Err(ParseError::Duplicate { .. })), "{}: {:?}", text, ours);
        }
    }

    #[test]
    fn no_bytes_panic(bytes in any::<Vec<u8>>()) {
        let _ = Tape::default().parse(&bytes);
    }
}
