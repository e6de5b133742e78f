//! Fields: from a document to the tuples of its key and of its values.
//!
//! A value's element depends on the value alone, never on the schema: `1`,
//! `1.0` and `1e0` are one integer and so one key; a fraction that a double
//! holds exactly is a double; any other number, an array or an object is its
//! JSON text, as bytes.

use std::borrow::Cow;

use tidegate_wit::message::Projection;
use tidegate_wit::tuple::{Bytes, Element, push};

use super::decimal::{Decimal, Integer};
use super::parse::{Document, Tape};
use super::pointer::{Locations, Locator, Pointer, PointerError};
use super::value::{Kind, Value};
use super::{INTEGER_DIGITS_MAX, shown};

/// A field that no document can be extracted with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProjectionError {
    /// Its location is not a pointer.
    #[error("field {field:?}: {source}")]
    Pointer {
        /// Name of the field.
        field: String,
        /// What is wrong.
        source: PointerError,
    },
    /// Its default cannot be what it stands for.
    #[error("the default of {0}")]
    Default(FieldError),
}

/// A document that has no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("key field {field:?} at {pointer:?}{}: {problem}", .value.as_ref().map(|value| format!(" is {value}")).unwrap_or_default())]
pub struct FieldError {
    /// Name of the field.
    pub field: String,
    /// Its location.
    pub pointer: String,
    /// What the document has there.
    pub value: Option<String>,
    /// Why that is no key.
    pub problem: FieldProblem,
}

/// Why a value cannot be part of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldProblem {
    /// There is none.
    #[error(
        "the document has nothing there, and the schema no `default`; require the location or give it one"
    )]
    Absent,
    /// It is null.
    #[error("a key cannot be null; many destinations have no null keys")]
    Null,
    /// It has a fraction.
    #[error("a key cannot have a fraction; destinations would round it differently")]
    Fraction,
    /// It is an array or an object.
    #[error("a key cannot be an array or an object")]
    Container,
    /// It is an integer with too many digits.
    #[error("a key cannot have more than {INTEGER_DIGITS_MAX} digits")]
    Digits,
}

/// Makes a tuple of a document's fields.
#[derive(Clone, Debug)]
pub struct Extractor {
    fields: Vec<Field>,
    locator: Locator,
    key: bool,
}

#[derive(Clone, Debug)]
struct Field {
    name: String,
    pointer: String,
    /// The element of the default, packed.
    default: Option<Vec<u8>>,
}

impl Extractor {
    /// Prepares to extract keys.
    ///
    /// # Errors
    ///
    /// If a field is no field, or its default no key.
    pub fn key(projections: &[Projection]) -> Result<Self, ProjectionError> {
        Self::new(projections, true)
    }

    /// Prepares to extract values, of which any may be absent.
    ///
    /// # Errors
    ///
    /// If a field is no field.
    pub fn values(projections: &[Projection]) -> Result<Self, ProjectionError> {
        Self::new(projections, false)
    }

    fn new(projections: &[Projection], key: bool) -> Result<Self, ProjectionError> {
        let mut pointers = Vec::new();
        let mut fields = Vec::new();
        for projection in projections {
            let pointer = Pointer::parse(&projection.pointer);
            pointers.push(pointer.map_err(|source| ProjectionError::Pointer {
                field: projection.field.clone(),
                source,
            })?);
            let mut field = Field {
                name: projection.field.clone(),
                pointer: projection.pointer.clone(),
                default: None,
            };
            if let Some(default) = &projection.default {
                field.default = Some(field.pack_default(default, key)?);
            }
            fields.push(field);
        }
        Ok(Extractor {
            locator: Locator::new(&pointers),
            fields,
            key,
        })
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Appends the tuple of a document's fields.
    ///
    /// # Errors
    ///
    /// If a field of a key is not what a key can hold; values never fail. What
    /// was appended until then stays.
    pub fn extract(
        &self,
        document: &Document<'_>,
        locations: &mut Locations,
        tuple: &mut Vec<u8>,
    ) -> Result<(), FieldError> {
        let found = self.locator.find(document, locations);
        for (at, field) in self.fields.iter().enumerate() {
            match (found.get(at), &field.default) {
                (Some(value), _) if self.key => field.push_key(value, tuple)?,
                (Some(value), _) => push_value(value, tuple),
                (None, Some(default)) => tuple.extend_from_slice(default),
                (None, None) if self.key => return Err(field.error(None, FieldProblem::Absent)),
                (None, None) => push(tuple, &Element::Nil),
            }
        }
        Ok(())
    }
}

impl Field {
    fn pack_default(
        &self,
        default: &serde_json::Value,
        key: bool,
    ) -> Result<Vec<u8>, ProjectionError> {
        let text = default.to_string();
        let mut tape = Tape::default();
        let document = tape.parse(text.as_bytes());
        let value = document.expect("a value's own text is JSON").root();
        let mut tuple = Vec::new();
        match key {
            true => self
                .push_key(value, &mut tuple)
                .map_err(ProjectionError::Default)?,
            false => push_value(value, &mut tuple),
        }
        Ok(tuple)
    }

    #[cold]
    fn error(&self, value: Option<Value<'_>>, problem: FieldProblem) -> FieldError {
        FieldError {
            field: self.name.clone(),
            pointer: self.pointer.clone(),
            value: value.map(|value| shown(value.text())),
            problem,
        }
    }

    #[inline]
    fn push_key(&self, value: Value<'_>, tuple: &mut Vec<u8>) -> Result<(), FieldError> {
        let problem = match value.kind() {
            Kind::Null => FieldProblem::Null,
            Kind::Array | Kind::Object => FieldProblem::Container,
            Kind::Number => match number(value) {
                Element::Double(_) => FieldProblem::Fraction,
                Element::Bytes(_) => {
                    let integer = value.number().is_some_and(|number| number.is_integer());
                    match integer {
                        true => FieldProblem::Digits,
                        false => FieldProblem::Fraction,
                    }
                }
                integer => {
                    push(tuple, &integer);
                    return Ok(());
                }
            },
            _ => {
                push_value(value, tuple);
                return Ok(());
            }
        };
        Err(self.error(Some(value), problem))
    }
}

/// Appends the element of any value.
#[inline]
fn push_value(value: Value<'_>, tuple: &mut Vec<u8>) {
    let element = match value.kind() {
        Kind::Null => Element::Nil,
        Kind::False => Element::Bool(false),
        Kind::True => Element::Bool(true),
        Kind::Number => number(value),
        Kind::String | Kind::EscapedString => Element::String(value.string().unwrap_or_default()),
        Kind::Array | Kind::Object => text(value),
    };
    push(tuple, &element);
}

fn text<'d>(value: Value<'d>) -> Element<'d> {
    Element::Bytes(Bytes(Cow::Borrowed(value.text().as_bytes())))
}

#[inline]
fn number(value: Value<'_>) -> Element<'_> {
    // Most numbers are plain integers, and need no second look.
    if let Some(small) = plain_integer(value.text()) {
        return Element::Int(small);
    }
    let number = Decimal::of_text(value.text());
    match number.to_integer() {
        Some(Integer::Small(small)) => Element::Int(small),
        Some(Integer::Big(big)) => Element::BigInt(big),
        None if number.is_integer() => text(value),
        None => number
            .to_exact_double()
            .map_or_else(|| text(value), Element::Double),
    }
}

/// Digits that surely fit 64 bits.
const PLAIN_DIGITS_MAX: usize = 18;

#[inline]
fn plain_integer(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let (negative, digits) = match bytes.split_first() {
        Some((b'-', digits)) => (true, digits),
        _ => (false, bytes),
    };
    if digits.len() > PLAIN_DIGITS_MAX {
        return None;
    }
    let mut value: i64 = 0;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tidegate_wit::tuple::{decode, encode};

    use super::*;

    fn projection(field: &str, pointer: &str, default: Option<serde_json::Value>) -> Projection {
        Projection {
            field: field.to_owned(),
            pointer: pointer.to_owned(),
            types: Vec::new(),
            required: false,
            format: None,
            content_encoding: None,
            default,
            key: false,
            description: None,
        }
    }

    fn extract(extractor: &Extractor, document: &str) -> Result<Vec<u8>, FieldError> {
        let mut tape = Tape::default();
        let document = tape.parse(document.as_bytes()).unwrap();
        let mut tuple = Vec::new();
        extractor.extract(&document, &mut Locations::default(), &mut tuple)?;
        Ok(tuple)
    }

    fn string(text: &str) -> Element<'_> {
        Element::String(Cow::Borrowed(text))
    }

    fn bytes(text: &str) -> Element<'_> {
        Element::Bytes(Bytes(Cow::Borrowed(text.as_bytes())))
    }

    #[test]
    fn every_kind_of_value_has_its_element() {
        let values = Extractor::values(&[projection("v", "/v", None)]).unwrap();
        let big: num_bigint::BigInt = "123456789012345678901234567890".parse().unwrap();
        let long = "1".repeat(INTEGER_DIGITS_MAX + 1);
        for (text, want) in [
            ("null", Element::Nil),
            ("true", Element::Bool(true)),
            ("false", Element::Bool(false)),
            ("1", Element::Int(1)),
            ("1.0", Element::Int(1)),
            ("1e0", Element::Int(1)),
            ("-0", Element::Int(0)),
            ("-0.0", Element::Int(0)),
            ("9007199254740993", Element::Int(9_007_199_254_740_993)),
            ("9223372036854775807", Element::Int(i64::MAX)),
            ("-9223372036854775808", Element::Int(i64::MIN)),
            (
                "9223372036854775808",
                Element::BigInt(9_223_372_036_854_775_808_u64.into()),
            ),
            ("123456789012345678901234567890", Element::BigInt(big)),
            (&long, bytes(&long)),
            ("0.1", Element::Double(0.1)),
            ("-2.50", Element::Double(-2.5)),
            ("3.14159265358979323846", bytes("3.14159265358979323846")),
            ("1e-400", bytes("1e-400")),
            ("1e999999999", bytes("1e999999999")),
            (r#""a\u0000\n""#, string("a\0\n")),
            (r#""h\u00e9""#, string("hé")),
            (r#"[1, 2.0]"#, bytes("[1, 2.0]")),
            (r#"{"b":1,"a":[]}"#, bytes(r#"{"b":1,"a":[]}"#)),
        ] {
            let tuple = extract(&values, &format!(r#"{{"v": {text} }}"#)).unwrap();
            assert_eq!(tuple, encode(&[want]), "{text}");
        }
        assert_eq!(
            decode(&extract(&values, "{}").unwrap()).unwrap(),
            [Element::Nil]
        );
    }

    #[test]
    fn integers_above_two_to_the_53_stay_apart() {
        let key = Extractor::key(&[projection("id", "/id", None)]).unwrap();
        let odd = extract(&key, r#"{"id":9007199254740993}"#).unwrap();
        let even = extract(&key, r#"{"id":9007199254740992}"#).unwrap();
        assert!(even < odd);
        assert_eq!(odd, extract(&key, r#"{"id":9007199254740993.0}"#).unwrap());
    }

    #[test]
    fn defaults_stand_for_what_is_absent_only() {
        let fields = [
            projection("k", "/k", Some(json!("value"))),
            projection("n", "/deep/n", Some(json!(7))),
        ];
        let key = Extractor::key(&fields).unwrap();
        assert_eq!(
            extract(&key, "{}").unwrap(),
            encode(&[string("value"), Element::Int(7)])
        );
        let error = extract(&key, r#"{"k":null}"#).unwrap_err();
        assert_eq!(error.problem, FieldProblem::Null);
    }

    #[test]
    fn what_cannot_be_a_key_is_named() {
        let key = Extractor::key(&[projection("part", "/a/b", None)]).unwrap();
        let digits = "9".repeat(INTEGER_DIGITS_MAX + 1);
        for (text, problem) in [
            ("null", FieldProblem::Null),
            ("0.5", FieldProblem::Fraction),
            ("1e-7", FieldProblem::Fraction),
            ("[1]", FieldProblem::Container),
            ("{}", FieldProblem::Container),
            (&digits, FieldProblem::Digits),
            ("1e999999999", FieldProblem::Digits),
        ] {
            let error = extract(&key, &format!(r#"{{"a":{{"b":{text}}}}}"#)).unwrap_err();
            assert_eq!(
                (error.problem, error.field.as_str(), error.pointer.as_str()),
                (problem, "part", "/a/b")
            );
            assert_eq!(error.value, Some(shown(text)));
        }
        let error = extract(&key, r#"{"a":{}}"#).unwrap_err();
        assert_eq!(
            error.to_string(),
            "key field \"part\" at \"/a/b\": the document has nothing there, and the schema no `default`; \
             require the location or give it one"
        );
        let default = Extractor::key(&[projection("k", "/k", Some(json!(1.5)))]).unwrap_err();
        assert!(
            default
                .to_string()
                .starts_with("the default of key field \"k\" at \"/k\" is 1.5"),
            "{default}"
        );
    }

    #[test]
    fn fields_may_overlap_and_repeat() {
        let fields = [
            projection("all", "", None),
            projection("a", "/a", None),
            projection("b", "/a/b", None),
            projection("second", "/l/1", None),
            projection("b_again", "/a/b", None),
        ];
        let values = Extractor::values(&fields).unwrap();
        let document = r#"{"l":[5,6],"a":{"b":true}}"#;
        let want = [
            bytes(document),
            bytes(r#"{"b":true}"#),
            Element::Bool(true),
            Element::Int(6),
            Element::Bool(true),
        ];
        assert_eq!(extract(&values, document).unwrap(), encode(&want));
    }
}
