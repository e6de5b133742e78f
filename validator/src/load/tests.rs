use super::tree::Kind;
use super::yaml::Parsed;
use super::{json, yaml};
use crate::Code;
use proptest::prelude::*;
use serde_json::{Value, json};

fn yaml_value(text: &str) -> Value {
    let Parsed { tree, flaws, .. } = yaml::read(0, text);
    assert_eq!(flaws, [], "{text}");
    tree.expect("it reads").to_value()
}

fn codes(text: &str) -> Vec<Code> {
    let flaws = yaml::read(0, text).flaws;
    flaws.into_iter().map(|it| it.code).collect()
}

#[test]
fn scalars_follow_the_core_schema() {
    for (text, want) in [
        ("10:00", json!("10:00")),
        ("on", json!("on")),
        ("no", json!("no")),
        ("yes", json!("yes")),
        ("~", Value::Null),
        ("null", Value::Null),
        ("True", json!(true)),
        ("1e19", json!(1e19)),
        ("1_000", json!("1_000")),
        ("0x1F", json!(31)),
        ("0o17", json!(15)),
        ("017", json!(17)),
        ("+5", json!(5)),
        ("-5", json!(-5)),
        (".5", json!(0.5)),
        ("5.", json!(5)),
        ("1.5e3", json!(1500.0)),
        ("2026-01-01", json!("2026-01-01")),
        ("\"5\"", json!("5")),
        ("'true'", json!("true")),
        ("!!str 5", json!("5")),
        ("!!int \"5\"", json!(5)),
        ("18446744073709551615", json!(u64::MAX)),
        ("e5", json!("e5")),
        ("-", json!([null])),
        ("1.2.3", json!("1.2.3")),
        ("", Value::Null),
    ] {
        assert_eq!(yaml_value(text), want, "{text}");
    }
}

#[test]
fn numbers_keep_their_text() {
    let Parsed { tree, .. } = yaml::read(0, "[600.030, 1e19, 123456789012345678901234567890]");
    let texts: Vec<_> = tree
        .expect("it reads")
        .list()
        .expect("it is a list")
        .iter()
        .map(|it| it.kind.clone())
        .collect();
    let number = |text: &str| Kind::Number(text.to_owned());
    assert_eq!(
        texts,
        [
            number("600.030"),
            number("1e19"),
            number("123456789012345678901234567890")
        ]
    );
}

#[test]
fn anchors_and_merge_keys() {
    let text = "
base: &base {a: 1, b: 2}
more: &more {b: 3, c: 4}
one: {<<: *base, a: 9}
list: {<<: [*base, *more], d: 5}
quoted: {\"<<\": 1}
copy: *base
";
    let value = yaml_value(text);
    assert_eq!(value["one"], json!({"a": 9, "b": 2}));
    assert_eq!(value["list"], json!({"a": 1, "b": 2, "c": 4, "d": 5}));
    assert_eq!(value["quoted"], json!({"<<": 1}));
    assert_eq!(value["copy"], json!({"a": 1, "b": 2}));
}

#[test]
fn what_is_refused() {
    for (text, want) in [
        ("a: 1\na: 2", vec![Code::DuplicateKey]),
        ("1: a\n'1': b", vec![Code::DuplicateKey]),
        ("{a: 1, a: 2, a: 3}", vec![Code::DuplicateKey; 2]),
        ("<<: 5", vec![Code::WrongType]),
        ("<<: {a: 1}\n<<: {b: 1}", vec![Code::DuplicateKey]),
        ("a: &a [*a]", vec![Code::Syntax]),
        ("*none", vec![Code::Syntax]),
        ("? [a]\n: 1", vec![Code::Syntax]),
        ("--- 1\n--- 2", vec![Code::Syntax]),
        ("a: .inf", vec![Code::InvalidValue]),
        ("a: 1e999", vec![Code::InvalidValue]),
        ("a: [", vec![Code::Syntax]),
        ("a: \"", vec![Code::Syntax]),
        ("a:\n\t- b", vec![Code::Syntax]),
    ] {
        assert_eq!(codes(text), want, "{text}");
    }
}

#[test]
fn depth_is_bounded() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(codes(&deep(100)), []);
    assert_eq!(codes(&deep(200)), [Code::TooLarge]);
    // A million brackets end at the limit, not at the end.
    assert_eq!(codes(&"[".repeat(1_000_000)), [Code::TooLarge]);
    assert_eq!(json::read(0, &deep(100)).flaws, []);
    assert_eq!(
        json::read(0, &"[".repeat(1_000_000)).flaws[0].code,
        Code::TooLarge
    );
    // Aliases that nest deeper than what they repeat.
    let mut text = "a0: &a0 [[[[[[[[[[x]]]]]]]]]]\n".to_owned();
    for level in 1..30 {
        text.push_str(&format!("a{level}: &a{level} [[[[[*a{}]]]]]\n", level - 1));
    }
    assert_eq!(codes(&text), [Code::TooLarge]);
}

#[test]
fn aliases_expand_to_a_bound() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..40 {
        let alias = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{alias}]\n"));
    }
    assert_eq!(codes(&text), [Code::TooLarge]);
}

#[test]
fn places_are_lines_and_columns() {
    let Parsed { tree, flaws, .. } = yaml::read(0, "a:\n  - x\n  - {ü: 10, \"b\": t}\n");
    assert_eq!(flaws, []);
    let tree = tree.expect("it reads");
    let node = tree.at("/a/1/b").expect("it is there");
    assert_eq!((node.span.line, node.span.column), (3, 18));
    let Parsed { tree, .. } = json::read(0, "{\"a\":\n [1, {\"ü\": \"😀\", \"b\": null}]}");
    let tree = tree.expect("it reads");
    let node = tree.at("/a/1/b").expect("it is there");
    assert_eq!((node.span.line, node.span.column), (2, 22));
    assert_eq!(tree.nearest("/a/7/x").span.line, 2);
}

#[test]
fn json_reads_what_json_is() {
    let text = "\t{\"a\\u00e9\\ud83d\\ude00\": [1, -0.5e-3, true, null, \"\\n\\/\"], \"\": {}}\n";
    let Parsed { tree, flaws, .. } = json::read(0, text);
    assert_eq!(flaws, []);
    let want: Value = serde_json::from_str(text).expect("it is JSON");
    assert_eq!(tree.expect("it reads").to_value(), want);
    for bad in [
        "",
        "{",
        "[1,]",
        "{a: 1}",
        "{\"a\" 1}",
        "01",
        "1.",
        "+1",
        "tru",
        "nulls",
        "\"\\x\"",
        "\"\\ud800\"",
        "\"\\ud800\\u0041\"",
        "\"a\nb\"",
        "1 2",
        "'a'",
        "[1 2]",
        "NaN",
        "\"",
        "-",
        "1e",
        "\u{0}",
    ] {
        let Parsed { tree, flaws, .. } = json::read(0, bad);
        assert!(tree.is_none(), "{bad}");
        assert_eq!(flaws.len(), 1, "{bad}");
        assert_eq!(flaws[0].code, Code::Syntax, "{bad}");
    }
}

proptest! {
    #[test]
    fn json_reads_as_the_other_reader_does(text in "[\\[\\]{}\",:0-9eE.+\\-a-z\\\\ ]{0,24}") {
        let Parsed { tree, flaws, .. } = json::read(0, &text);
        if flaws.iter().all(|it| it.code == Code::Syntax) {
            match serde_json::from_str::<Value>(&text) {
                Ok(want) => prop_assert_eq!(tree.map(|it| it.to_value()), Some(want)),
                Err(_) => prop_assert!(tree.is_none()),
            }
        }
    }

    #[test]
    fn no_text_makes_yaml_panic(text in "[\\[\\]{}\",:0-9a-c&*<!|>?%@#~.\\n\\t'\\- ]{0,60}") {
        yaml::read(0, &text);
    }
}
