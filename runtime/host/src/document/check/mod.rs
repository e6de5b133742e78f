//! Schemas: whether a document is what its collection says.

mod numbers;
mod representation;

use std::fmt;

use serde_json::Value as Schema;

use self::representation::Parsed;
use super::parse::{Document, ParseError, Tape};
use super::pointer::{Locations, Locator, Pointer};
use super::shown;

/// A schema that cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the schema is invalid at {pointer:?}: {reason}")]
pub struct SchemaError {
    /// Where, in the schema.
    pub pointer: String,
    /// What is wrong there.
    pub reason: String,
}

/// A document that its schema refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// It is not even a document.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// It breaks a rule.
    #[error("at {pointer:?}: {reason}; it is {value}; the schema's rule is {rule:?}")]
    Rule {
        /// Where, in the document.
        pointer: String,
        /// Which rule, as a pointer into the schema.
        rule: String,
        /// What the document has there.
        value: String,
        /// What the rule asks for.
        reason: String,
    },
}

/// A compiled JSON schema (draft 2020-12, unless it names another).
///
/// Numbers are compared by their decimal text: `0.01` divides `600.03`.
pub struct Checker {
    validator: jsonschema::Validator<Parsed>,
    fingerprint: u64,
}

impl Checker {
    /// Compiles a schema. Nothing is fetched: what it refers to must be in it.
    /// `reduce` annotations are none of its business.
    ///
    /// # Errors
    ///
    /// If it is not a schema, or refers to something outside.
    pub fn new(schema: &Schema) -> Result<Self, SchemaError> {
        let options = numbers::with_exact_numbers(jsonschema::options_for::<Parsed>());
        let validator = options
            .offline()
            .build(schema)
            .map_err(|error| SchemaError {
                pointer: error.instance_path().to_string(),
                reason: shown(&error.to_string()),
            })?;
        Ok(Checker {
            validator,
            fingerprint: fingerprint(schema),
        })
    }

    /// Checks the text of a document.
    ///
    /// # Errors
    ///
    /// If it is not a document, or breaks a rule; the first one is named.
    pub fn check(&self, text: &[u8]) -> Result<(), Violation> {
        let mut tape = Tape::default();
        let document = tape.parse(text)?;
        self.check_document(&document)
    }

    /// Checks a document that is parsed already.
    ///
    /// # Errors
    ///
    /// If it breaks a rule; the first one is named.
    pub fn check_document(&self, document: &Document<'_>) -> Result<(), Violation> {
        let root = document.root();
        if self.validator.is_valid(root) {
            return Ok(());
        }
        let Err(error) = self.validator.validate(root) else {
            return Ok(());
        };
        let pointer = error.instance_path().to_string();
        // The error's own copy of the value has been through serde_json, whose
        // numbers are doubles; the text has not.
        let value = Pointer::parse(&pointer).ok().and_then(|pointer| {
            let locator = Locator::new([&pointer]);
            locator.find(document, &mut Locations::default()).get(0)
        });
        Err(Violation::Rule {
            value: shown(value.unwrap_or(root).text()),
            pointer,
            rule: error.schema_path().to_string(),
            reason: shown(&error.masked_with("the value").to_string()),
        })
    }

    /// Identifies the schema: schemas with the same rules written in another
    /// order of properties have the same one.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }
}

impl fmt::Debug for Checker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checker")
            .field("fingerprint", &format_args!("{:016x}", self.fingerprint))
            .finish_non_exhaustive()
    }
}

/// XXH64 of the schema's text, its properties in order of their names.
fn fingerprint(schema: &Schema) -> u64 {
    fn write(value: &Schema, text: &mut String) {
        match value {
            Schema::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                members.sort_by_key(|(name, _)| *name);
                text.push('{');
                for (name, value) in members {
                    text.push_str(&Schema::from(name.as_str()).to_string());
                    text.push(':');
                    write(value, text);
                    text.push(',');
                }
                text.push('}');
            }
            Schema::Array(elements) => {
                text.push('[');
                for element in elements {
                    write(element, text);
                    text.push(',');
                }
                text.push(']');
            }
            scalar => text.push_str(&scalar.to_string()),
        }
    }
    let mut text = String::new();
    write(schema, &mut text);
    xxhash_rust::xxh64::xxh64(text.as_bytes(), 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_compared_by_their_decimal_text() {
        for (schema, document, valid) in [
            (json!({"multipleOf": 0.01}), "600.03", true),
            (json!({"multipleOf": 0.01}), "1.11", true),
            (json!({"multipleOf": 0.01}), "10001.12", true),
            (json!({"multipleOf": 0.01}), "2222.22", true),
            (json!({"multipleOf": 0.01}), "600.035", false),
            (json!({"multipleOf": 0.01}), "1e300", true),
            (json!({"multipleOf": 0.01}), "1e-999999999999", false),
            (json!({"multipleOf": 0.01}), "0e-999999999999", true),
            (json!({"multipleOf": 11.0}), "9007199254740995", true),
            (json!({"multipleOf": 11.0}), "9007199254740996", false),
            (
                json!({"multipleOf": 11.0}),
                "90071992547409950000000000000000000000000000",
                true,
            ),
            (json!({"multipleOf": 3}), "1e999999999", false),
            (json!({"multipleOf": 2}), "1e999999999", true),
            (json!({"multipleOf": 2}), "1e99999999999999999999", true),
            (
                json!({"multipleOf": 2}),
                "-1.5e-99999999999999999999",
                false,
            ),
            (json!({"minimum": 0}), "1e-99999999999999999999", true),
            (json!({"type": "integer"}), "1e-99999999999999999999", false),
            (json!({"maximum": 0.1}), "0.1", true),
            (json!({"maximum": 0.1}), "0.10000000000000000001", false),
            (
                json!({"exclusiveMinimum": 9_007_199_254_740_992_u64}),
                "9007199254740993",
                true,
            ),
            (
                json!({"exclusiveMinimum": 9_007_199_254_740_992_u64}),
                "9007199254740992.0",
                false,
            ),
            (json!({"minimum": 0}), "1e400", true),
            (json!({"exclusiveMaximum": 0}), "-1e-400", true),
            (json!({"type": "integer"}), "1.0", true),
            (json!({"type": "integer"}), "1e400", true),
            (json!({"type": "integer"}), "1.5e0", false),
            (
                json!({"type": "integer"}),
                "10000000000000000000000.5",
                false,
            ),
            (
                json!({"const": 9_007_199_254_740_993_u64}),
                "9007199254740993",
                true,
            ),
            (
                json!({"const": 9_007_199_254_740_993_u64}),
                "9007199254740992",
                false,
            ),
            (json!({"enum": [1, 0.5]}), "0.50", true),
            (json!({"enum": [1, 0.5]}), "0.5000000000000000000001", false),
            (json!({"uniqueItems": true}), "[1, 1.0]", false),
            (
                json!({"uniqueItems": true}),
                "[9007199254740993, 9007199254740993.5, 9007199254740992]",
                true,
            ),
            (
                json!({"uniqueItems": true}),
                r#"[{"a":1,"b":2}, {"b":2.0,"a":1}]"#,
                false,
            ),
        ] {
            let checker = Checker::new(&schema).unwrap();
            let checked = checker.check(document.as_bytes());
            assert_eq!(checked.is_ok(), valid, "{schema} {document}: {checked:?}");
        }
    }

    #[test]
    fn a_violation_names_place_rule_and_value() {
        let schema = json!({
            "type": "object",
            "required": ["id"],
            "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/item"}}},
            "$defs": {"item": {"properties": {"price": {"multipleOf": 0.01}}}},
            "reduce": {"strategy": "merge"},
        });
        let checker = Checker::new(&schema).unwrap();
        let document =
            br#"{"id":1,"items":[{"price":12345678901234567890123.45},{"price":1.005}]}"#;
        assert_eq!(
            checker.check(document).unwrap_err().to_string(),
            "at \"/items/1/price\": it is not a multiple of 0.01; it is 1.005; \
             the schema's rule is \"/$defs/item/properties/price/multipleOf\""
        );
        assert_eq!(
            checker.check(b"{}").unwrap_err().to_string(),
            "at \"\": \"id\" is a required property; it is {}; the schema's rule is \"/required\""
        );
        let Err(Violation::Rule { value, .. }) =
            checker.check(format!("\"{}\"", "x".repeat(999)).as_bytes())
        else {
            panic!("text is no object");
        };
        assert!(value.ends_with("... (1001 bytes)"), "{value}");
    }

    #[test]
    fn every_keyword_reads_our_representation() {
        for (schema, document, valid) in [
            (
                json!({"minLength": 2, "maxLength": 3}),
                r#""h\u00e9""#,
                true,
            ),
            (json!({"minLength": 3}), r#""h\u00e9""#, false),
            (
                json!({"propertyNames": {"pattern": "^[a-z\"]+$"}}),
                r#"{"ab\"c":1}"#,
                true,
            ),
            (
                json!({"propertyNames": {"pattern": "^[a-z]+$"}}),
                r#"{"A":1}"#,
                false,
            ),
            (
                json!({"properties": {"a/b": {"type": "null"}}, "additionalProperties": false}),
                r#"{"a\/b":null}"#,
                true,
            ),
            (
                json!({"properties": {"a": {"type": "null"}}, "additionalProperties": false}),
                r#"{"b":null}"#,
                false,
            ),
            (
                json!({"unevaluatedProperties": false, "allOf": [{"properties": {"a": true}}]}),
                r#"{"a":1}"#,
                true,
            ),
            (
                json!({"unevaluatedProperties": false, "allOf": [{"properties": {"a": true}}]}),
                r#"{"b":1}"#,
                false,
            ),
            (
                json!({"prefixItems": [{"type": "string"}], "items": {"type": "boolean"}}),
                r#"["x",true]"#,
                true,
            ),
            (
                json!({"prefixItems": [{"type": "string"}], "items": {"type": "boolean"}}),
                r#"["x",1]"#,
                false,
            ),
            (
                json!({"contains": {"const": {"a": [1]}}}),
                r#"[0,{"a":[1.0]}]"#,
                true,
            ),
            (
                json!({"$ref": "#/$defs/t", "$defs": {"t": {"properties": {"n": {"$ref": "#/$defs/t"}}, "type": "object"}}}),
                r#"{"n":{"n":{"n":1}}}"#,
                false,
            ),
            (
                json!({"patternProperties": {"^x": {"type": "integer"}}}),
                r#"{"x1":"no"}"#,
                false,
            ),
            (
                json!({"oneOf": [{"type": "string"}, {"type": "object", "required": ["a"]}]}),
                r#"{"a":1}"#,
                true,
            ),
            (json!({"minProperties": 2}), r#"{"a":1}"#, false),
            (
                json!({"dependentRequired": {"a": ["b"]}}),
                r#"{"a":1}"#,
                false,
            ),
        ] {
            let checker = Checker::new(&schema).unwrap();
            let checked = checker.check(document.as_bytes());
            assert_eq!(checked.is_ok(), valid, "{schema} {document}: {checked:?}");
        }
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        for schema in [
            json!({"type": "text"}),
            json!({"multipleOf": 0}),
            json!({"$ref": "https://elsewhere.example/schema"}),
        ] {
            assert!(Checker::new(&schema).is_err(), "{schema}");
        }
    }

    #[test]
    fn the_fingerprint_is_of_the_rules() {
        let of = |text: &str| {
            Checker::new(&serde_json::from_str(text).unwrap())
                .unwrap()
                .fingerprint()
        };
        let one = of(r#"{"type":"object","properties":{"a":{"maximum":1},"b":true}}"#);
        assert_eq!(
            one,
            of(r#"{"properties":{"b":true,"a":{"maximum":1}},"type":"object"}"#)
        );
        assert_ne!(
            one,
            of(r#"{"properties":{"b":true,"a":{"maximum":2}},"type":"object"}"#)
        );
        assert_ne!(of(r#"{"enum":["a","b"]}"#), of(r#"{"enum":["a,b"]}"#));
    }
}
