use super::infer::infer;
use super::shape::{Shape, Types};
use crate::load::{Kind, Node, Span};
use serde_json::{Value, json};

fn node(value: &Value) -> Node {
    let kind = match value {
        Value::Null => Kind::Null,
        Value::Bool(it) => Kind::Bool(*it),
        Value::Number(it) => Kind::Number(it.to_string()),
        Value::String(it) => Kind::Text(it.clone()),
        Value::Array(items) => Kind::List(items.iter().map(node).collect()),
        Value::Object(fields) => Kind::Object(
            fields
                .iter()
                .map(|(key, value)| crate::load::Entry {
                    key: key.clone(),
                    key_span: Span::default(),
                    value: node(value),
                })
                .collect(),
        ),
    };
    Node {
        kind,
        span: Span::default(),
    }
}

fn shape(schema: &Value) -> Shape {
    infer(&node(schema)).expect("the schema is small")
}

/// Writes each location as `pointer: types`, a star behind what is always there.
fn locations(schema: &Value) -> Vec<String> {
    fn walk(root: &Shape, shape: &Shape, pointer: &str, found: &mut Vec<String>) {
        for (name, property) in &shape.properties {
            let pointer = crate::load::join(pointer, name);
            let located = root.locate(&pointer).expect("a property can be located");
            let star = if located.required { "*" } else { "" };
            found.push(format!("{pointer}: {}{star}", located.shape.types));
            walk(root, &property.shape, &pointer, found);
        }
    }
    let shape = shape(schema);
    let mut found = Vec::new();
    walk(&shape, &shape, "", &mut found);
    found
}

#[test]
fn shapes_of_schemas() {
    struct Case {
        name: &'static str,
        schema: Value,
        want: &'static [&'static str],
    }
    let cases = [
        Case {
            name: "types, and what is required",
            schema: json!({"type": "object", "properties": {"a": {"type": ["integer", "null"]}, "b": {"type": "number"}}, "required": ["b"]}),
            want: &["/a: integer, null", "/b: number*"],
        },
        Case {
            name: "a location is always there if all above it is",
            schema: json!({
                "properties": {
                    "a": {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]},
                    "c": {"type": ["object", "null"], "properties": {"d": {"type": "string"}}, "required": ["d"]},
                },
                "required": ["a", "c"],
            }),
            want: &[
                "/a: object*",
                "/a/b: string*",
                "/c: null, object*",
                "/c/d: string",
            ],
        },
        Case {
            name: "a required location that is not described may be anything",
            schema: json!({"required": ["a"]}),
            want: &["/a: array, boolean, null, number, object, string*"],
        },
        Case {
            name: "one like the additional ones is like them",
            schema: json!({"required": ["a"], "additionalProperties": {"type": "integer"}}),
            want: &["/a: integer*"],
        },
        Case {
            name: "references and all of several",
            schema: json!({
                "$defs": {"t": {"type": ["string", "integer"]}},
                "allOf": [{"properties": {"a": {"$ref": "#/$defs/t"}}}, {"properties": {"a": {"type": ["string", "null"]}}, "required": ["a"]}],
            }),
            want: &["/a: string*"],
        },
        Case {
            name: "either of two closed objects",
            schema: json!({"oneOf": [
                {"properties": {"a": {"type": "string"}, "k": {"const": 1}}, "required": ["a", "k"], "additionalProperties": false},
                {"properties": {"b": {"type": "integer"}, "k": {"const": "x"}}, "required": ["k"], "additionalProperties": false},
            ]}),
            want: &["/a: string", "/b: integer", "/k: integer, string*"],
        },
        Case {
            name: "either of two open objects: what one does not name may be anything there",
            schema: json!({
                "properties": {"a": {"type": ["string", "null"]}},
                "anyOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"required": ["b"]}],
            }),
            want: &[
                "/a: null, string",
                "/b: array, boolean, null, number, object, string",
            ],
        },
        Case {
            name: "enumerations say types",
            schema: json!({"properties": {"a": {"enum": ["x", null]}, "b": {"const": 1.5}, "c": {"const": 2.0}}}),
            want: &["/a: null, string", "/b: number", "/c: integer"],
        },
        Case {
            name: "a recursive schema ends",
            schema: json!({"$defs": {"n": {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/n"}}}}, "$ref": "#/$defs/n"}),
            want: &["/next: object", "/v: integer"],
        },
        Case {
            name: "an impossible location is none",
            schema: json!({"properties": {"a": {"type": "string"}, "b": false}, "allOf": [{"properties": {"a": {"type": "integer"}}}]}),
            want: &[],
        },
    ];
    for case in cases {
        assert_eq!(locations(&case.schema), case.want, "{}", case.name);
    }
}

#[test]
fn schemas_that_multiply_end() {
    let mut definitions = serde_json::Map::new();
    for level in 0..60 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        definitions.insert(format!("d{level}"), json!({"allOf": [next, next]}));
    }
    definitions.insert("d60".to_owned(), json!({"type": "object"}));
    let schema = json!({"$defs": definitions, "$ref": "#/$defs/d0"});
    assert!(infer(&node(&schema)).is_err());

    let mut definitions = serde_json::Map::new();
    for level in 0..10_000 {
        definitions.insert(
            format!("d{level}"),
            json!({"$ref": format!("#/$defs/d{}", level + 1)}),
        );
    }
    definitions.insert("d10000".to_owned(), json!({"type": "object"}));
    let schema = json!({"$defs": definitions, "$ref": "#/$defs/d0"});
    assert_eq!(shape(&schema).types, Types::OBJECT);
}

#[test]
fn locations_that_may_be() {
    let schema = json!({
        "properties": {"closed": {"type": "object", "additionalProperties": false}, "text": {"type": "string"}},
    });
    let shape = shape(&schema);
    for (pointer, want) in [
        ("/closed", true),
        ("/closed/x", false),
        ("/text/x", false),
        ("/other/x", true),
    ] {
        assert_eq!(shape.admits(pointer), want, "{pointer}");
    }
}
