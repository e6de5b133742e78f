//! Values between tuples and SQLite.
//!
//! ```text
//! null, integer, double, text, bytes  <->  NULL, INTEGER, REAL, TEXT, BLOB
//! boolean                              ->  INTEGER 0 or 1
//! ```

use std::borrow::Cow;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Row, ToSql};
use tidegate_wit::tuple::{self, Bytes, Element};

/// An element of a row, as a parameter.
pub(super) struct Parameter<'a>(pub(super) &'a Element<'a>);

impl ToSql for Parameter<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self.0 {
            Element::Nil => ValueRef::Null,
            Element::Bool(value) => ValueRef::Integer((*value).into()),
            Element::Int(value) => ValueRef::Integer(*value),
            Element::Float(value) => ValueRef::Real((*value).into()),
            Element::Double(value) => ValueRef::Real(*value),
            Element::String(text) => ValueRef::Text(text.as_bytes()),
            Element::Bytes(Bytes(bytes)) => ValueRef::Blob(bytes),
            Element::BigInt(value) => {
                return Err(refuse(format!(
                    "the integer {value} has more than 64 bits, and SQLite holds no larger one; \
                 store it as text"
                )));
            }
            Element::Tuple(_) | Element::Versionstamp(_) => {
                return Err(refuse("a row has no nested tuples".into()));
            }
        };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

/// A value that SQLite cannot hold.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unstorable(String);

fn refuse(reason: String) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(Unstorable(reason)))
}

/// A text that is not text.
#[derive(Debug, thiserror::Error)]
#[error("the column {column} holds text that is not UTF-8")]
pub(super) struct NotText {
    column: usize,
}

/// Packs a row that a query found into a tuple.
pub(super) fn pack_row(row: &Row<'_>, columns: usize, out: &mut Vec<u8>) -> rusqlite::Result<()> {
    for column in 0..columns {
        let element = match row.get_ref(column)? {
            ValueRef::Null => Element::Nil,
            ValueRef::Integer(value) => Element::Int(value),
            ValueRef::Real(value) => Element::Double(value),
            ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Element::String(Cow::Borrowed(text)),
                Err(_) => {
                    let kind = rusqlite::types::Type::Text;
                    let error = Box::new(NotText { column });
                    return Err(rusqlite::Error::FromSqlConversionFailure(
                        column, kind, error,
                    ));
                }
            },
            ValueRef::Blob(bytes) => Element::Bytes(Bytes(Cow::Borrowed(bytes))),
        };
        tuple::push(out, &element);
    }
    Ok(())
}
