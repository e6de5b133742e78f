//! Which column holds a field, and which value a column holds.
//!
//! | JSON types, null left out | column      | holds |
//! |---------------------------|-------------|-------|
//! | string                    | `TEXT`      | the text, as it is |
//! | string of format date-time | `TEXT`     | the instant, as RFC 3339 spells it; a key as it is |
//! | integer                   | `INTEGER`   | 64-bit integers |
//! | number, with or without integer | `NUMERIC` | 64-bit integers as integers, doubles as doubles |
//! | boolean                   | `BOOLEAN`   | 0, 1 |
//! | anything else             | `JSON_TEXT` | the value's JSON text, a string in its quotes |
//!
//! SQLite converts what is stored by the affinity of the column's type, so a type
//! is chosen by its affinity: `TEXT` and `JSON_TEXT` keep text that looks like a
//! number, and `INTEGER`, `NUMERIC` and `BOOLEAN` change no number's value (`REAL`
//! would round 2^53 + 1). In a column of several types a string keeps its quotes:
//! the text `"1"` and the number `1` would else be one value.

use std::borrow::Cow;

use tidegate_boilerplate::text::json_text;
use tidegate_boilerplate::tuple::Element;
use tidegate_boilerplate::{JsonType, Projection, instant};

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnType {
    Text,
    Instant,
    Integer,
    Number,
    Boolean,
    Json,
}

impl ColumnType {
    /// Returns the type of column that holds a field.
    pub(crate) fn of(projection: &Projection) -> Self {
        let mut types: Vec<_> = projection
            .types
            .iter()
            .filter(|it| **it != JsonType::Null)
            .copied()
            .collect();
        types.sort_unstable();
        types.dedup();
        match types[..] {
            [JsonType::String] => match (projection.format.as_deref(), projection.key) {
                (Some("date-time"), false) => Self::Instant,
                // Two spellings of an instant are two keys.
                _ => Self::Text,
            },
            [JsonType::Integer] => Self::Integer,
            [JsonType::Number] | [JsonType::Integer, JsonType::Number] => Self::Number,
            [JsonType::Boolean] => Self::Boolean,
            _ => Self::Json,
        }
    }

    /// Returns the type as SQL.
    pub(crate) fn sql(self) -> &'static str {
        match self {
            Self::Text | Self::Instant => "TEXT",
            Self::Integer => "INTEGER",
            Self::Number => "NUMERIC",
            Self::Boolean => "BOOLEAN",
            Self::Json => "JSON_TEXT",
        }
    }

    /// Converts a value to what the column holds.
    ///
    /// # Errors
    ///
    /// If the column cannot hold it exactly.
    pub(crate) fn hold<'a>(self, element: Element<'a>) -> Result<Element<'a>, Unholdable<'a>> {
        let reason = match (self, &element) {
            (_, Element::Nil)
            | (Self::Text, Element::String(_))
            | (Self::Integer | Self::Number, Element::Int(_))
            | (Self::Number, Element::Double(_))
            | (Self::Boolean, Element::Bool(_)) => return Ok(element),
            (Self::Instant, Element::String(text)) => match instant::rfc3339(text) {
                Ok(text) => return Ok(Element::String(Cow::Owned(text))),
                Err(reason) => reason,
            },
            (Self::Json, _) => return Ok(Element::String(Cow::Owned(json_text(&element)))),
            (Self::Integer, Element::Double(it)) => match whole(*it) {
                Some(it) => return Ok(Element::Int(it)),
                None => "SQLite's integers have 64 bits and no fraction",
            },
            (Self::Integer, Element::BigInt(_)) => "SQLite's integers have 64 bits",
            (Self::Number, Element::BigInt(it)) => match double(&it.to_string()) {
                Some(it) => return Ok(Element::Double(it)),
                None => "neither a 64-bit integer nor a double holds it exactly",
            },
            (Self::Number, Element::Bytes(_)) => {
                "neither a 64-bit integer nor a double holds it exactly"
            }
            _ => "it is of another type than the schema says",
        };
        Err(Unholdable { element, reason })
    }
}

/// A value that a column cannot hold, and why.
#[derive(Debug)]
pub(crate) struct Unholdable<'a> {
    pub(crate) element: Element<'a>,
    pub(crate) reason: &'static str,
}

/// Returns the double that an integer stands for, if there is one: the integer is
/// the double's value, or what the double is written as, such as 1e100.
fn double(integer: &str) -> Option<f64> {
    let double: f64 = integer.parse().ok()?;
    (format!("{double:.0}") == integer || double.to_string() == integer).then_some(double)
}

/// Returns the integer that a double is, if it is one of 64 bits.
fn whole(double: f64) -> Option<i64> {
    /// The first double above all 64-bit integers.
    const ABOVE: f64 = 9_223_372_036_854_775_808.0;
    (double.fract() == 0.0 && (-ABOVE..ABOVE).contains(&double)).then_some(double as i64)
}

#[cfg(test)]
mod tests {
    use tidegate_boilerplate::testing::projection;
    use tidegate_boilerplate::tuple::Bytes;

    use super::*;

    #[test]
    fn types_of_columns() {
        use JsonType::{Array, Boolean, Integer, Null, Number, Object, String};
        let cases: [(&[JsonType], ColumnType); 11] = [
            (&[String], ColumnType::Text),
            (&[Null, String], ColumnType::Text),
            (&[Integer], ColumnType::Integer),
            (&[Integer, Null], ColumnType::Integer),
            (&[Number], ColumnType::Number),
            (&[Number, Integer], ColumnType::Number),
            (&[Boolean, Null], ColumnType::Boolean),
            (&[Object], ColumnType::Json),
            (&[Array, Null], ColumnType::Json),
            (&[Integer, String], ColumnType::Json),
            (&[Null], ColumnType::Json),
        ];
        for (types, want) in cases {
            assert_eq!(ColumnType::of(&projection("f", types)), want, "{types:?}");
        }
    }

    #[test]
    fn an_instant_is_respelled_in_a_value_and_never_in_a_key() {
        let mut instant = projection("f", &[JsonType::String]);
        instant.format = Some("date-time".to_owned());
        assert_eq!(ColumnType::of(&instant), ColumnType::Instant);
        instant.key = true;
        assert_eq!(ColumnType::of(&instant), ColumnType::Text);
        instant.format = Some("date".to_owned());
        instant.key = false;
        assert_eq!(ColumnType::of(&instant), ColumnType::Text);
    }

    #[test]
    fn a_column_holds_a_value_exactly_or_not_at_all() {
        let text = |it: &str| Element::String(Cow::Owned(it.to_owned()));
        let bytes = |it: &str| Element::Bytes(Bytes(Cow::Owned(it.as_bytes().to_vec())));
        let beyond = || Element::BigInt((i128::from(i64::MAX) + 1).into());
        let power_of_ten = |power: usize| {
            let digits = format!("1{}", "0".repeat(power));
            Element::BigInt(digits.parse().unwrap())
        };
        let integer = |it| Some(Element::Int(it));
        let cases = [
            (ColumnType::Text, text("123"), Some(text("123"))),
            (ColumnType::Text, Element::Int(1), None),
            (
                ColumnType::Instant,
                text("2025-11-29 01:05:28z"),
                Some(text("2025-11-29T01:05:28Z")),
            ),
            (ColumnType::Instant, text("2025-11-29 01:05:28"), None),
            (ColumnType::Instant, Element::Nil, Some(Element::Nil)),
            (
                ColumnType::Integer,
                Element::Int((1 << 53) + 1),
                integer((1 << 53) + 1),
            ),
            (ColumnType::Integer, Element::Double(3.0), integer(3)),
            (
                ColumnType::Integer,
                Element::Double(-9_223_372_036_854_775_808.0),
                integer(i64::MIN),
            ),
            (
                ColumnType::Integer,
                Element::Double(9_223_372_036_854_775_808.0),
                None,
            ),
            (ColumnType::Integer, Element::Double(1.5), None),
            (ColumnType::Integer, beyond(), None),
            (
                ColumnType::Number,
                Element::Int((1 << 53) + 1),
                integer((1 << 53) + 1),
            ),
            (
                ColumnType::Number,
                Element::Double(0.1),
                Some(Element::Double(0.1)),
            ),
            (
                ColumnType::Number,
                beyond(),
                Some(Element::Double(9_223_372_036_854_775_808.0)),
            ),
            (
                ColumnType::Number,
                power_of_ten(100),
                Some(Element::Double(1e100)),
            ),
            (ColumnType::Number, power_of_ten(400), None),
            (
                ColumnType::Number,
                Element::BigInt((i128::from(i64::MAX) + 2).into()),
                None,
            ),
            (ColumnType::Number, bytes("0.1000000000000000055"), None),
            (
                ColumnType::Boolean,
                Element::Bool(true),
                Some(Element::Bool(true)),
            ),
            (ColumnType::Boolean, Element::Int(1), None),
            (ColumnType::Json, text("1"), Some(text("\"1\""))),
            (ColumnType::Json, Element::Int(1), Some(text("1"))),
            (
                ColumnType::Json,
                beyond(),
                Some(text("9223372036854775808")),
            ),
            (
                ColumnType::Json,
                bytes("{\"a\":1}"),
                Some(text("{\"a\":1}")),
            ),
            (ColumnType::Json, Element::Bool(false), Some(text("false"))),
            (ColumnType::Json, Element::Nil, Some(Element::Nil)),
        ];
        for (column, element, want) in cases {
            let got = column.hold(element.clone()).ok();
            assert_eq!(got, want, "{column:?} {element:?}");
        }
    }
}
