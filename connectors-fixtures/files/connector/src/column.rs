//! The columns of a Parquet file, and how each takes a value.
//!
//! | schema                        | column                  |
//! |-------------------------------|-------------------------|
//! | `boolean`                     | BOOLEAN                 |
//! | `integer`                     | INT64                   |
//! | `number`                      | DOUBLE                  |
//! | `string`, `format: date-time` | TIMESTAMP(MICROS, UTC)  |
//! | `string`                      | STRING                  |
//! | anything else                 | JSON                    |
//!
//! A value is held exactly, or refused.

use tidegate_boilerplate::text::push_json;
use tidegate_boilerplate::tuple::Element;
use tidegate_boilerplate::{JsonType, Projection, instant};

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnType {
    Boolean,
    Integer,
    Number,
    Instant,
    Text,
    Json,
}

/// The values of a column's rows that are not null.
#[derive(Debug)]
pub(crate) enum Values {
    Booleans(Vec<bool>),
    Integers(Vec<i64>),
    Doubles(Vec<f64>),
    Texts(Texts),
}

/// Texts, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    pub(crate) text: String,
    pub(crate) ends: Vec<usize>,
}

impl ColumnType {
    /// Returns the type of column that holds a field.
    pub(crate) fn of(projection: &Projection) -> Self {
        let types = projection.types.iter().filter(|it| **it != JsonType::Null);
        let types: Vec<_> = types.copied().collect();
        match types[..] {
            [JsonType::Boolean] => Self::Boolean,
            [JsonType::Integer] => Self::Integer,
            [JsonType::Number] | [JsonType::Integer, JsonType::Number] => Self::Number,
            [JsonType::String] if projection.format.as_deref() == Some("date-time") => {
                Self::Instant
            }
            [JsonType::String] => Self::Text,
            _ => Self::Json,
        }
    }

    /// Returns the type as Parquet calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Boolean => "BOOLEAN",
            Self::Integer => "INT64",
            Self::Number => "DOUBLE",
            Self::Instant => "TIMESTAMP",
            Self::Text => "STRING",
            Self::Json => "JSON",
        }
    }

    /// Returns a column of this type without rows.
    pub(crate) fn empty(self) -> Values {
        match self {
            Self::Boolean => Values::Booleans(Vec::new()),
            Self::Integer | Self::Instant => Values::Integers(Vec::new()),
            Self::Number => Values::Doubles(Vec::new()),
            Self::Text | Self::Json => Values::Texts(Texts::default()),
        }
    }

    /// Appends a value that is not null; returns how many bytes of memory it takes.
    ///
    /// # Errors
    ///
    /// If the column cannot hold it: why.
    pub(crate) fn push(
        self,
        values: &mut Values,
        element: &Element<'_>,
    ) -> Result<usize, &'static str> {
        const OTHER_TYPE: &str = "it is of another type than the schema says";
        match (values, element) {
            (Values::Booleans(values), Element::Bool(it)) => {
                values.push(*it);
                Ok(1)
            }
            (Values::Integers(values), element) => {
                values.push(match (self, element) {
                    (Self::Instant, Element::String(text)) => instant::date_time(text)?,
                    (Self::Integer, element) => integer(element)?,
                    _ => return Err(OTHER_TYPE),
                });
                Ok(size_of::<i64>())
            }
            (Values::Doubles(values), element) => {
                values.push(double(element)?);
                Ok(size_of::<f64>())
            }
            (Values::Texts(texts), element) => {
                let before = texts.text.len();
                match (self, element) {
                    (Self::Json, element) => push_json(&mut texts.text, element),
                    (_, Element::String(text)) => texts.text.push_str(text),
                    _ => return Err(OTHER_TYPE),
                }
                texts.ends.push(texts.text.len());
                Ok(texts.text.len() - before + size_of::<usize>())
            }
            _ => Err(OTHER_TYPE),
        }
    }
}

fn integer(element: &Element<'_>) -> Result<i64, &'static str> {
    /// The first double above all 64-bit integers.
    const ABOVE: f64 = 9_223_372_036_854_775_808.0;
    match element {
        Element::Int(it) => Ok(*it),
        Element::Double(it) if it.fract() == 0.0 && (-ABOVE..ABOVE).contains(it) => Ok(*it as i64),
        Element::Double(_) | Element::BigInt(_) | Element::Bytes(_) => {
            Err("the column holds integers of 64 bits")
        }
        _ => Err("it is of another type than the schema says"),
    }
}

fn double(element: &Element<'_>) -> Result<f64, &'static str> {
    const INEXACT: &str = "the column holds doubles, which change its digits";
    match element {
        Element::Double(it) => Ok(*it),
        Element::Int(it) => {
            let double = *it as f64;
            match double as i128 == i128::from(*it) {
                true => Ok(double),
                false => Err(INEXACT),
            }
        }
        Element::BigInt(it) => {
            let text = it.to_string();
            // The shortest digits that are the double, with zeros behind: 1e40 comes back as it was.
            match text.parse::<f64>() {
                Ok(double) if double.to_string() == text => Ok(double),
                _ => Err(INEXACT),
            }
        }
        Element::Bytes(_) => Err(INEXACT),
        _ => Err("it is of another type than the schema says"),
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use tidegate_boilerplate::tuple::{Bytes, Element};

    use super::*;

    fn held(column: ColumnType, element: &Element<'_>) -> Option<String> {
        let mut values = column.empty();
        column.push(&mut values, element).ok()?;
        Some(match values {
            Values::Booleans(it) => it[0].to_string(),
            Values::Integers(it) => it[0].to_string(),
            Values::Doubles(it) => format!("{:?}", it[0]),
            Values::Texts(it) => it.text,
        })
    }

    #[test]
    fn a_column_holds_a_value_exactly_or_not_at_all() {
        use ColumnType::{Boolean, Instant, Integer, Json, Number, Text};
        let text = |it: &str| Element::String(Cow::Owned(it.to_owned()));
        let bytes = |it: &str| Element::Bytes(Bytes(Cow::Owned(it.as_bytes().to_vec())));
        let power = |exponent| Element::BigInt(10_i128.pow(exponent).into());
        let cases = [
            (Boolean, Element::Bool(true), Some("true")),
            (Boolean, Element::Int(1), None),
            (
                Integer,
                Element::Int((1 << 53) + 1),
                Some("9007199254740993"),
            ),
            (Integer, Element::Double(3.0), Some("3")),
            (Integer, Element::Double(1.5), None),
            (Integer, Element::Double(9_223_372_036_854_775_808.0), None),
            (Integer, power(19), None),
            (Integer, text("1"), None),
            (Number, Element::Double(0.1), Some("0.1")),
            (Number, Element::Int(1 << 53), Some("9007199254740992.0")),
            (Number, Element::Int((1 << 53) + 1), None),
            (Number, Element::Int(i64::MAX), None),
            (Number, power(30), Some("1e30")),
            (Number, Element::BigInt((10_i128.pow(30) + 1).into()), None),
            (Number, bytes("0.1234567890123456789"), None),
            (Instant, text("1970-01-01 00:00:00.000001+00:00"), Some("1")),
            (Instant, text("2025-11-29 01:05:28"), None),
            (Instant, Element::Int(1), None),
            (Text, text("1"), Some("1")),
            (Text, Element::Int(1), None),
            (Json, text("1"), Some("\"1\"")),
            (Json, Element::Int(1), Some("1")),
            (Json, bytes("{\"a\":1}"), Some("{\"a\":1}")),
        ];
        for (column, element, want) in cases {
            let got = held(column, &element);
            assert_eq!(got.as_deref(), want, "{column:?} {element:?}");
        }
    }
}
