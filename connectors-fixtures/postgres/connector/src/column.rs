//! Which column holds a field, and how a value gets into it.
//!
//! | JSON types, null left out | format, encoding  | column        | key column |
//! |---------------------------|-------------------|---------------|------------|
//! | string                    |                   | `text`        | `text COLLATE "C"` |
//! | string                    | date-time         | `timestamptz` | text |
//! | string                    | date              | `date`        | text |
//! | string                    | time              | `timetz`      | text |
//! | string                    | uuid              | `uuid`        | text |
//! | string                    | integer, number   | `numeric`     | text |
//! | string                    | base64            | `bytea`       | text |
//! | integer                   |                   | `numeric`     | `numeric` |
//! | number, with or without integer |             | `numeric`     | `numeric` |
//! | boolean                   |                   | `boolean`     | `boolean` |
//! | anything else             |                   | `json`        | JSON as text |
//!
//! Integers have no end in JSON, so they have none here: `bigint` would refuse 2^63.
//! Key columns are compared byte by byte and normalised in no way, so that two keys
//! never become one row.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tidegate_boilerplate::text::json_text;
use tidegate_boilerplate::tuple::Element;
use tidegate_boilerplate::{JsonType, Projection, instant};

use crate::copy::Rows;
use crate::numeric;

/// PostgreSQL counts days and microseconds from the start of the year 2000.
const DAYS_TO_2000: i32 = 10_957;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnType {
    Text,
    /// Text of a key: compared byte by byte, and never changed.
    KeyText,
    /// A key of several types, as JSON text.
    KeyJson,
    Numeric,
    /// Numbers written as text.
    FormattedNumeric,
    Boolean,
    Json,
    DateTime,
    Date,
    Time,
    Uuid,
    Base64,
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
        match (&types[..], projection.key) {
            ([JsonType::String], true) => Self::KeyText,
            ([JsonType::String], false) => Self::of_text(projection),
            ([JsonType::Integer | JsonType::Number], _)
            | ([JsonType::Integer, JsonType::Number], _) => Self::Numeric,
            ([JsonType::Boolean], _) => Self::Boolean,
            (_, true) => Self::KeyJson,
            (_, false) => Self::Json,
        }
    }

    fn of_text(projection: &Projection) -> Self {
        if projection.content_encoding.as_deref() == Some("base64") {
            return Self::Base64;
        }
        match projection.format.as_deref() {
            Some("date-time") => Self::DateTime,
            Some("date") => Self::Date,
            Some("time") => Self::Time,
            Some("uuid") => Self::Uuid,
            Some("integer" | "number") => Self::FormattedNumeric,
            _ => Self::Text,
        }
    }

    /// Returns the type as the server names it.
    pub(crate) fn sql(self) -> &'static str {
        match self {
            Self::Text | Self::KeyText | Self::KeyJson => "text",
            Self::Numeric | Self::FormattedNumeric => "numeric",
            Self::Boolean => "boolean",
            Self::Json => "json",
            Self::DateTime => "timestamp with time zone",
            Self::Date => "date",
            Self::Time => "time with time zone",
            Self::Uuid => "uuid",
            Self::Base64 => "bytea",
        }
    }

    /// Returns what follows the type where a column is made.
    pub(crate) fn collation(self) -> &'static str {
        match self {
            Self::KeyText | Self::KeyJson => " COLLATE \"C\"",
            _ => "",
        }
    }

    /// Returns the expression that makes this type of what a column of another type
    /// holds, if nothing is lost by that.
    ///
    /// Not JSON: a field of several types is not selected by itself, so that it would
    /// be left behind with its column.
    pub(crate) fn widened(self, sql_type: &str, column: &str) -> Option<String> {
        match (sql_type, self) {
            ("numeric" | "boolean", Self::Text) => Some(format!("{column}::text")),
            _ => None,
        }
    }

    /// Adds a value to a row.
    ///
    /// # Errors
    ///
    /// If the column cannot hold it; says why.
    pub(crate) fn push(self, rows: &mut Rows, element: &Element<'_>) -> Result<(), &'static str> {
        if matches!(element, Element::Nil) {
            rows.push_null();
            return Ok(());
        }
        rows.push(|out| self.write(out, element))
    }

    fn write(self, out: &mut Vec<u8>, element: &Element<'_>) -> Result<(), &'static str> {
        match (self, element) {
            (Self::Text, Element::String(text)) => out.extend(without_nul(text).as_bytes()),
            (Self::KeyText, Element::String(text)) => {
                if text.contains('\0') {
                    return Err(
                        "PostgreSQL's text has no NUL character, and without it two keys could become one",
                    );
                }
                out.extend(text.as_bytes());
            }
            (Self::Json | Self::KeyJson, _) => out.extend(json_text(element).as_bytes()),
            (Self::Numeric, Element::Int(it)) => numeric::push_decimal(out, &it.to_string())?,
            (Self::Numeric, Element::BigInt(it)) => numeric::push_decimal(out, &it.to_string())?,
            // The shortest digits that are this double and no other.
            (Self::Numeric, Element::Double(it)) => numeric::push_decimal(out, &format!("{it:e}"))?,
            (Self::Numeric, Element::Bytes(it)) => {
                let text = std::str::from_utf8(it).map_err(|_| "it is not a number")?;
                numeric::push_decimal(out, text)?;
            }
            (Self::FormattedNumeric, Element::String(text)) => {
                numeric::push_formatted(out, text)?;
            }
            (Self::Boolean, Element::Bool(it)) => out.push(u8::from(*it)),
            (Self::DateTime, Element::String(text)) => {
                let micros = instant::date_time(text)? - i64::from(DAYS_TO_2000) * instant::DAY;
                out.extend(micros.to_be_bytes());
            }
            (Self::Date, Element::String(text)) => {
                out.extend((instant::date(text)? - DAYS_TO_2000).to_be_bytes());
            }
            (Self::Time, Element::String(text)) => {
                let (micros, east) = instant::time(text)?;
                let west = i32::try_from(-east).expect("an offset is below a day");
                out.extend(micros.to_be_bytes());
                out.extend(west.to_be_bytes());
            }
            (Self::Uuid, Element::String(text)) => out.extend(uuid(text)?),
            (Self::Base64, Element::String(text)) => STANDARD
                .decode_vec(text.as_bytes(), out)
                .map_err(|_| "it is not base64 with padding")?,
            _ => return Err("it is of another type than the schema says"),
        }
        Ok(())
    }
}

/// Returns text as PostgreSQL can hold it; the document column keeps the original.
fn without_nul(text: &str) -> Cow<'_, str> {
    match text.contains('\0') {
        true => Cow::Owned(text.replace('\0', "")),
        false => Cow::Borrowed(text),
    }
}

/// Reads `8-4-4-4-12` hexadecimal digits.
fn uuid(text: &str) -> Result<[u8; 16], &'static str> {
    const SHAPE: &str = "it is not a uuid: 8-4-4-4-12 hexadecimal digits";
    let bytes = text.as_bytes();
    let hyphens_fit = [8, 13, 18, 23]
        .iter()
        .all(|at| bytes.get(*at) == Some(&b'-'));
    if bytes.len() != 36 || !hyphens_fit {
        return Err(SHAPE);
    }
    let mut digits = bytes
        .iter()
        .enumerate()
        .filter(|(at, _)| ![8, 13, 18, 23].contains(at))
        .map(|(_, byte)| char::from(*byte).to_digit(16));
    let mut digit = || digits.next().flatten().ok_or(SHAPE);
    let mut uuid = [0; 16];
    for byte in &mut uuid {
        *byte = u8::try_from(digit()? * 16 + digit()?).expect("two digits make a byte");
    }
    Ok(uuid)
}

#[cfg(test)]
mod tests {
    use tidegate_boilerplate::testing::projection;
    use tidegate_boilerplate::tuple::Bytes;

    use super::*;

    #[test]
    fn types_of_columns() {
        use JsonType::{Array, Boolean, Integer, Null, Number, Object, String};
        let cases: [(&[JsonType], ColumnType, ColumnType); 11] = [
            (&[String], ColumnType::Text, ColumnType::KeyText),
            (&[Null, String], ColumnType::Text, ColumnType::KeyText),
            (&[Integer], ColumnType::Numeric, ColumnType::Numeric),
            (&[Integer, Null], ColumnType::Numeric, ColumnType::Numeric),
            (&[Number], ColumnType::Numeric, ColumnType::Numeric),
            (&[Number, Integer], ColumnType::Numeric, ColumnType::Numeric),
            (&[Boolean, Null], ColumnType::Boolean, ColumnType::Boolean),
            (&[Object], ColumnType::Json, ColumnType::KeyJson),
            (&[Array, Null], ColumnType::Json, ColumnType::KeyJson),
            (&[Integer, String], ColumnType::Json, ColumnType::KeyJson),
            (&[Null], ColumnType::Json, ColumnType::KeyJson),
        ];
        for (types, value, key) in cases {
            let mut projection = projection("f", types);
            assert_eq!(ColumnType::of(&projection), value, "{types:?}");
            projection.key = true;
            assert_eq!(ColumnType::of(&projection), key, "key {types:?}");
        }
    }

    #[test]
    fn columns_become_wider_where_nothing_is_lost() {
        let cases = [
            ("numeric", ColumnType::Text, Some("c::text")),
            ("boolean", ColumnType::Text, Some("c::text")),
            ("numeric", ColumnType::Json, None),
            ("text", ColumnType::Numeric, None),
            ("json", ColumnType::Text, None),
            ("timestamp with time zone", ColumnType::Text, None),
            ("uuid", ColumnType::Text, None),
            ("numeric", ColumnType::KeyText, None),
        ];
        for (sql_type, column, want) in cases {
            let got = column.widened(sql_type, "c");
            assert_eq!(got.as_deref(), want, "{sql_type} to {column:?}");
        }
    }

    #[test]
    fn formats_of_text_are_columns_but_not_of_keys() {
        let cases = [
            ("date-time", ColumnType::DateTime),
            ("date", ColumnType::Date),
            ("time", ColumnType::Time),
            ("uuid", ColumnType::Uuid),
            ("integer", ColumnType::FormattedNumeric),
            ("number", ColumnType::FormattedNumeric),
            ("duration", ColumnType::Text),
            ("email", ColumnType::Text),
        ];
        for (format, want) in cases {
            let mut projection = projection("f", &[JsonType::String]);
            projection.format = Some(format.to_owned());
            assert_eq!(ColumnType::of(&projection), want, "{format}");
            projection.key = true;
            assert_eq!(ColumnType::of(&projection), ColumnType::KeyText, "{format}");
        }
    }

    #[test]
    fn a_column_holds_a_value_exactly_or_not_at_all() {
        let text = |it: &str| Element::String(Cow::Owned(it.to_owned()));
        let bytes = |it: &str| Element::Bytes(Bytes(Cow::Owned(it.as_bytes().to_vec())));
        let beyond = || Element::BigInt((i128::from(i64::MAX) + 1).into());
        let numeric = |it: &str| {
            let mut bytes = Vec::new();
            numeric::push_decimal(&mut bytes, it).unwrap();
            Some(bytes)
        };
        let plain = |it: &[u8]| Some(it.to_vec());
        let cases = [
            (ColumnType::Text, text("123"), plain(b"123")),
            (ColumnType::Text, text("a\0b"), plain(b"ab")),
            (ColumnType::Text, text("\\u0000"), plain(b"\\u0000")),
            (ColumnType::Text, Element::Int(1), None),
            (ColumnType::KeyText, text("a"), plain(b"a")),
            (ColumnType::KeyText, text("a\0b"), None),
            (ColumnType::KeyJson, text("1"), plain(b"\"1\"")),
            (ColumnType::KeyJson, Element::Int(1), plain(b"1")),
            (
                ColumnType::Numeric,
                Element::Int((1 << 53) + 1),
                numeric("9007199254740993"),
            ),
            (
                ColumnType::Numeric,
                beyond(),
                numeric("9223372036854775808"),
            ),
            (ColumnType::Numeric, Element::Double(0.1), numeric("0.1")),
            (
                ColumnType::Numeric,
                Element::Double(1e300),
                numeric("1e300"),
            ),
            (
                ColumnType::Numeric,
                bytes("0.1000000000000000055"),
                numeric("0.1000000000000000055"),
            ),
            (ColumnType::Numeric, bytes("[1]"), None),
            (ColumnType::Numeric, text("1"), None),
            (ColumnType::FormattedNumeric, text("1.5"), numeric("1.5")),
            (ColumnType::FormattedNumeric, text("one"), None),
            (ColumnType::Boolean, Element::Bool(true), plain(&[1])),
            (ColumnType::Boolean, Element::Int(1), None),
            (ColumnType::Json, text("1\0"), plain(b"\"1\\u0000\"")),
            (ColumnType::Json, bytes("{\"a\":1}"), plain(b"{\"a\":1}")),
            (
                ColumnType::DateTime,
                text("2000-01-01T00:00:01Z"),
                plain(&1_000_000_i64.to_be_bytes()),
            ),
            (ColumnType::DateTime, text("2000-01-01"), None),
            (
                ColumnType::Date,
                text("2000-01-02"),
                plain(&1_i32.to_be_bytes()),
            ),
            (
                ColumnType::Time,
                text("00:00:01+01:00"),
                plain(b"\0\0\0\0\0\x0f\x42\x40\xff\xff\xf1\xf0"),
            ),
            (
                ColumnType::Uuid,
                text("00010203-0405-0607-0809-0A0b0c0d0e0f"),
                plain(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]),
            ),
            (
                ColumnType::Uuid,
                text("0001020304050607-0809-0A0b0c0d0e0f--"),
                None,
            ),
            (ColumnType::Base64, text("aGk="), plain(b"hi")),
            (ColumnType::Base64, text("aGk"), None),
        ];
        for (column, element, want) in cases {
            let mut out = Vec::new();
            let got = column.write(&mut out, &element).ok().map(|()| out);
            assert_eq!(got, want, "{column:?} {element:?}");
        }
    }
}
