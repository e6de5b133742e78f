use proptest::prelude::*;
use proptest::strategy::Strategy;
use serde_json::{Value as Schema, json};

use super::super::Tape;
use super::strategy::StrategyProblem;
use super::*;

fn reduce(schema: &Schema, documents: &[&str]) -> Result<String, ReduceError> {
    let reducer = Reducer::new(schema).unwrap();
    let texts: Vec<_> = documents.iter().map(|text| text.as_bytes()).collect();
    let mut reduced = Vec::new();
    reducer.reduce(&mut Tape::default(), &texts, &mut reduced)?;
    Ok(String::from_utf8(reduced).unwrap())
}

/// A schema that merges, with one strategy for property `v`.
fn with(strategy: &str) -> Schema {
    json!({
        "reduce": {"strategy": "merge"},
        "properties": {"v": {"reduce": {"strategy": strategy}}},
    })
}

#[test]
fn strategies() {
    let nested = json!({
        "reduce": {"strategy": "merge"},
        "properties": {
            "totals": {
                "reduce": {"strategy": "merge"},
                "additionalProperties": {"reduce": {"strategy": "sum"}},
            },
            "list": {
                "reduce": {"strategy": "merge"},
                "prefixItems": [{"reduce": {"strategy": "maximize"}}],
                "items": {"reduce": {"strategy": "sum"}},
            },
        },
    });
    for (schema, documents, want) in [
        (
            &json!({}),
            &[r#"{"a":1}"#, r#" {"b":2}"#][..],
            r#" {"b":2}"#,
        ),
        (&json!(true), &["1", "2"], "2"),
        (
            &json!({"reduce": {"strategy": "firstWriteWins"}}),
            &["1", "2"],
            "1",
        ),
        (
            &json!({"reduce": {"strategy": "lastWriteWins", "delete": true}}),
            &["1", "2"],
            "2",
        ),
        (
            &with("lastWriteWins"),
            &[r#"{"v":1,"a":1}"#, r#"{"v":2,"b":2}"#],
            r#"{"v":2,"a":1,"b":2}"#,
        ),
        (
            &with("firstWriteWins"),
            &[r#"{"a":1}"#, r#"{"v":2}"#, r#"{"v":3}"#],
            r#"{"a":1,"v":2}"#,
        ),
        (
            &with("sum"),
            &[r#"{"v":0.1}"#, r#"{"v":0.2}"#],
            r#"{"v":0.3}"#,
        ),
        (
            &with("sum"),
            &[r#"{"v":18446744073709551615}"#, r#"{"v":1}"#, r#"{}"#],
            r#"{"v":18446744073709551616}"#,
        ),
        (&with("sum"), &[r#"{"v":1.50}"#, r#"{}"#], r#"{"v":1.50}"#),
        (
            &with("minimize"),
            &[r#"{"v":2}"#, r#"{"v":10}"#, r#"{"v":2.0}"#],
            r#"{"v":2}"#,
        ),
        (
            &with("maximize"),
            &[r#"{"v":"2"}"#, r#"{"v":10}"#, r#"{"v":"10"}"#],
            r#"{"v":"2"}"#,
        ),
        (
            &with("maximize"),
            &[r#"{"v":9007199254740992}"#, r#"{"v":9007199254740993}"#],
            r#"{"v":9007199254740993}"#,
        ),
        (
            &with("append"),
            &[r#"{"v":[1, 2 ]}"#, r#"{"v":[ ]}"#, r#"{"v":["x"]}"#],
            r#"{"v":[1, 2,"x"]}"#,
        ),
        (
            &with("append"),
            &[r#"{"v":[]}"#, r#"{"v":[]}"#],
            r#"{"v":[]}"#,
        ),
        (
            &nested,
            &[
                r#"{"totals":{"x":1,"y":1}}"#,
                r#"{"totals":{"y":0.5,"z":2}}"#,
            ],
            r#"{"totals":{"x":1,"y":1.5,"z":2}}"#,
        ),
        (
            &nested,
            &[
                r#"{"list":[1,1]}"#,
                r#"{"list":[0,2,3]}"#,
                r#"{"list":[5]}"#,
            ],
            r#"{"list":[5,3,3]}"#,
        ),
        (
            &with("sum"),
            &[r#"{"\u0076":1}"#, r#"{"v":2}"#],
            r#"{"\u0076":3}"#,
        ),
        // Not merged on the way down: the annotation does not count.
        (
            &json!({"properties": {"v": {"reduce": {"strategy": "sum"}}}}),
            &[r#"{"v":1}"#, r#"{"v":2}"#],
            r#"{"v":2}"#,
        ),
    ] {
        assert_eq!(
            reduce(schema, documents).as_deref(),
            Ok(want),
            "{schema} {documents:?}"
        );
    }
}

#[test]
fn annotations_are_found_through_references_and_branches() {
    let sum = json!({"reduce": {"strategy": "sum"}});
    let merge = json!({"strategy": "merge"});
    for schema in [
        json!({"reduce": merge, "properties": {"v": {"$ref": "#/$defs/total"}}, "$defs": {"total": sum}}),
        json!({"reduce": merge, "properties": {"v": {"$ref": "#total"}}, "$defs": {"t": {"$anchor": "total", "reduce": {"strategy": "sum"}}}}),
        json!({"reduce": merge, "properties": {"v": {"$ref": "acme/total"}}, "$defs": {"t": {"$id": "acme/total", "reduce": {"strategy": "sum"}}}}),
        json!({"reduce": merge, "properties": {"v": {"$ref": "#/$defs/a%20b~1c"}}, "$defs": {"a b/c": sum}}),
        json!({"allOf": [{"reduce": merge}, {"properties": {"v": sum}}]}),
        json!({"reduce": merge, "oneOf": [{"properties": {"v": sum}}, {"properties": {"v": {"type": "number"}}}]}),
        json!({"reduce": merge, "if": {"required": ["v"]}, "then": {"properties": {"v": sum}}}),
        json!({"$ref": "#/$defs/tree", "$defs": {"tree": {
            "reduce": merge, "properties": {"v": sum, "child": {"$ref": "#/$defs/tree"}}}}}),
        json!({"reduce": merge, "additionalProperties": {"anyOf": [sum, {"type": "object"}]}}),
    ] {
        let reduced = reduce(&schema, &[r#"{"v":1}"#, r#"{"v":2}"#]);
        assert_eq!(reduced.as_deref(), Ok(r#"{"v":3}"#), "{schema}");
    }
    let tree = json!({"reduce": merge, "properties": {"v": sum, "child": {"$ref": "#"}}});
    assert_eq!(
        reduce(
            &tree,
            &[
                r#"{"child":{"child":{"v":1}}}"#,
                r#"{"child":{"child":{"v":2}}}"#
            ]
        )
        .as_deref(),
        Ok(r#"{"child":{"child":{"v":3}}}"#)
    );
}

#[test]
fn annotations_that_cannot_be_used_are_named() {
    let error = |pointer: &str, problem| StrategyError {
        pointer: pointer.to_owned(),
        problem,
    };
    let merge = json!({"strategy": "merge"});
    for (schema, want) in [
        (json!({"reduce": "sum"}), error("", StrategyProblem::Form)),
        (json!({"reduce": {}}), error("", StrategyProblem::Form)),
        (
            json!({"reduce": {"strategy": "average"}}),
            error("", StrategyProblem::Unknown("average".to_owned())),
        ),
        (
            with("set"),
            error("/properties/v", StrategyProblem::NotOffered("set")),
        ),
        (
            json!({"reduce": merge, "properties": {"l": {"reduce": {"strategy": "merge", "key": ["/id"]}}}}),
            error("/properties/l", StrategyProblem::Option("key".to_owned())),
        ),
        (
            json!({"reduce": merge, "properties": {"v": {"reduce": {"strategy": "lastWriteWins", "delete": true}}}}),
            error(
                "/properties/v",
                StrategyProblem::Option("delete".to_owned()),
            ),
        ),
        (
            json!({"anyOf": [{"reduce": {"strategy": "sum"}}, {"reduce": merge}]}),
            error("/anyOf/1", StrategyProblem::Conflict("merge", "sum")),
        ),
        (
            json!({"reduce": merge, "properties": {"v": {"$ref": "https://elsewhere.example/x"}}}),
            error(
                "/properties/v",
                StrategyProblem::Reference("https://elsewhere.example/x".to_owned()),
            ),
        ),
        (
            json!({"reduce": merge, "patternProperties": {"^x": {"reduce": {"strategy": "sum"}}}}),
            error("/patternProperties", StrategyProblem::Pattern),
        ),
    ] {
        assert_eq!(Reducer::new(&schema).unwrap_err(), want, "{schema}");
    }
}

#[test]
fn what_does_not_fit_its_strategy_is_named() {
    for (schema, documents, want) in [
        (
            with("sum"),
            [r#"{"v":1}"#, r#"{"v":"2"}"#],
            r#"sum at "/v" takes numbers only, and the document has "2""#,
        ),
        (
            with("append"),
            [r#"{"v":null}"#, r#"{"v":[]}"#],
            r#"append at "/v" takes arrays only, and the document has null"#,
        ),
        (
            with("merge"),
            [r#"{"v":[]}"#, r#"{"v":{}}"#],
            r#"merge at "/v" takes objects only, or arrays only, and the document has {}"#,
        ),
        (
            with("merge"),
            [r#"{"v":{}}"#, r#"{"v":5}"#],
            r#"merge at "/v" takes objects only, or arrays only, and the document has 5"#,
        ),
        (
            with("sum"),
            [r#"{"v":1e2000}"#, r#"{"v":1}"#],
            r#"the sum at "/v" would have more than 1000 digits; one of its parts is 1e2000"#,
        ),
    ] {
        assert_eq!(reduce(&schema, &documents).unwrap_err().to_string(), want);
    }
    let deep = json!({"reduce": {"strategy": "merge"}, "properties": {"a/b": {
        "reduce": {"strategy": "merge"}, "items": {"reduce": {"strategy": "sum"}}}}});
    let error = reduce(&deep, &[r#"{"a/b":[1,true]}"#, r#"{"a/b":[1,2]}"#]).unwrap_err();
    assert!(
        error.to_string().starts_with(r#"sum at "/a~1b/1""#),
        "{error}"
    );
}

/// Everything that documents of the property tests may contain.
fn every_strategy() -> Schema {
    let of = |strategy: &str| json!({"reduce": {"strategy": strategy}});
    json!({
        "reduce": {"strategy": "merge"},
        "properties": {
            "last": of("lastWriteWins"),
            "first": of("firstWriteWins"),
            "sum": of("sum"),
            "min": of("minimize"),
            "max": of("maximize"),
            "append": of("append"),
            "list": {"reduce": {"strategy": "merge"}, "items": of("sum")},
            "tree": {"$ref": "#"},
        },
    })
}

fn document() -> impl Strategy<Value = Schema> {
    let scalar = || {
        prop_oneof![
            (-5i64..5).prop_map(Schema::from),
            "[ab]{0,2}".prop_map(Schema::from),
            Just(json!(1.0))
        ]
    };
    let leaf = (
        prop::option::of(scalar()),
        prop::option::of(scalar()),
        prop::option::of(prop_oneof![
            any::<i64>().prop_map(Schema::from),
            (-99i64..99).prop_map(|v| json!(v as f64 / 8.0))
        ]),
        prop::option::of(scalar()),
        prop::option::of(prop::collection::vec(scalar(), 0..3)),
        prop::option::of(prop::collection::vec(-9i64..9, 0..3)),
        prop::option::of(scalar()),
    );
    let object = leaf.prop_map(|(last, first, sum, extreme, append, list, other)| {
        let mut object = serde_json::Map::new();
        let mut put = |name: &str, value: Option<Schema>| {
            if let Some(value) = value {
                object.insert(name.to_owned(), value);
            }
        };
        put("last", last);
        put("first", first);
        put("sum", sum);
        put("min", extreme.clone());
        put("max", extreme);
        put("append", append.map(Schema::from));
        put("list", list.map(Schema::from));
        put("other", other);
        Schema::Object(object)
    });
    object.prop_recursive(2, 6, 1, move |inner| {
        (inner.clone(), inner).prop_map(|(mut outer, tree)| {
            outer["tree"] = tree;
            outer
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn grouping_does_not_change_the_text(documents in prop::collection::vec(document(), 3..6), cut in 1usize..3) {
        let texts: Vec<_> = documents.iter().map(Schema::to_string).collect();
        let texts: Vec<_> = texts.iter().map(String::as_str).collect();
        for strategy in ["merge", "lastWriteWins", "firstWriteWins", "minimize", "maximize"] {
            let mut schema = every_strategy();
            schema["reduce"]["strategy"] = strategy.into();
            let all = reduce(&schema, &texts).unwrap();
            let left = reduce(&schema, &texts[..cut]).unwrap();
            let right = reduce(&schema, &texts[cut..]).unwrap();
            prop_assert_eq!(reduce(&schema, &[&left, &right]).unwrap(), all.clone());
            let one_by_one = texts[1..].iter().fold(texts[0].to_owned(), |reduced, text| {
                reduce(&schema, &[&reduced, text]).unwrap()
            });
            prop_assert_eq!(one_by_one, all);
        }
    }

    #[test]
    fn misfits_are_errors_however_they_are_grouped(order in Just(vec!["{}", "5", "{}", "[]"]).prop_shuffle(), cut in 1usize..4) {
        let schema = json!({"reduce": {"strategy": "merge"}});
        prop_assert!(reduce(&schema, &order).is_err());
        let grouped = reduce(&schema, &order[..cut])
            .and_then(|left| Ok((left, reduce(&schema, &order[cut..])?)))
            .and_then(|(left, right)| reduce(&schema, &[&left, &right]));
        prop_assert!(grouped.is_err());
    }
}
