//! A SQLite that is linked in, for native tests of connectors.

pub(super) use rusqlite::Connection as Database;

use std::borrow::Cow;
use std::time::Duration;

use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{ErrorCode, Row, Statement};
use tidegate_wit::batch;
use tidegate_wit::tuple::{self, Bytes, Element};

use crate::error::ConnectorError;

/// Tests that mean to collide would otherwise wait for each other.
const BUSY_TIMEOUT: Duration = Duration::from_millis(50);

pub(super) fn open(path: &str) -> Result<Database, ConnectorError> {
    let db = Database::open(path).map_err(refused)?;
    db.busy_timeout(BUSY_TIMEOUT).map_err(refused)?;
    db.pragma_update(None, "journal_mode", "wal")
        .map_err(refused)?;
    // Tests kill sessions, not machines; syncing each of their commits takes a busy disk minutes.
    db.pragma_update(None, "synchronous", "off")
        .map_err(refused)?;
    Ok(db)
}

pub(super) fn execute(db: &Database, sql: &str, row: &[u8]) -> Result<u64, ConnectorError> {
    let mut statement = db.prepare_cached(sql).map_err(refused)?;
    bind(&mut statement, row)?;
    Ok(statement.raw_execute().map_err(refused)? as u64)
}

pub(super) fn execute_many(db: &Database, sql: &str, rows: &[u8]) -> Result<u64, ConnectorError> {
    batch::rows(rows).map(|row| execute(db, sql, row?)).sum()
}

pub(super) fn query(db: &Database, sql: &str, row: &[u8]) -> Result<Vec<u8>, ConnectorError> {
    let mut found = Vec::new();
    each(db, sql, row, |row| batch::push_row(&mut found, &row))?;
    Ok(found)
}

pub(super) fn query_many(db: &Database, sql: &str, rows: &[u8]) -> Result<Vec<u8>, ConnectorError> {
    let mut found = Vec::new();
    for (ordinal, row) in (0..).zip(batch::rows(rows)) {
        each(db, sql, row?, |row| {
            batch::push_loaded(&mut found, ordinal, &row);
        })?;
    }
    Ok(found)
}

fn each(
    db: &Database,
    sql: &str,
    row: &[u8],
    mut found: impl FnMut(Vec<u8>),
) -> Result<(), ConnectorError> {
    let mut statement = db.prepare_cached(sql).map_err(refused)?;
    bind(&mut statement, row)?;
    let columns = statement.column_count();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(refused)? {
        found(read(row, columns)?);
    }
    Ok(())
}

fn bind(statement: &mut Statement<'_>, row: &[u8]) -> Result<(), ConnectorError> {
    let elements = tuple::decode(row)?;
    // SQLite takes parameters that are not given for NULL.
    if elements.len() != statement.parameter_count() {
        return Err(ConnectorError::internal(format!(
            "the statement takes {} parameters, and the row has {}",
            statement.parameter_count(),
            elements.len()
        )));
    }
    for (position, element) in (1_usize..).zip(elements) {
        let value = match &element {
            Element::Nil => ToSqlOutput::Owned(Value::Null),
            Element::Bool(it) => ToSqlOutput::Owned(Value::Integer((*it).into())),
            Element::Int(it) => ToSqlOutput::Owned(Value::Integer(*it)),
            Element::Double(it) => ToSqlOutput::Owned(Value::Real(*it)),
            Element::String(it) => ToSqlOutput::Borrowed(ValueRef::Text(it.as_bytes())),
            Element::Bytes(it) => ToSqlOutput::Borrowed(ValueRef::Blob(it)),
            other => {
                return Err(ConnectorError::document(format!(
                    "SQLite cannot hold {other:?}"
                )));
            }
        };
        statement
            .raw_bind_parameter(position, value)
            .map_err(refused)?;
    }
    Ok(())
}

fn read(row: &Row<'_>, columns: usize) -> Result<Vec<u8>, ConnectorError> {
    let mut packed = Vec::new();
    for column in 0..columns {
        let element = match row.get_ref(column).map_err(refused)? {
            ValueRef::Null => Element::Nil,
            ValueRef::Integer(it) => Element::Int(it),
            ValueRef::Real(it) => Element::Double(it),
            ValueRef::Text(it) => Element::String(String::from_utf8_lossy(it)),
            ValueRef::Blob(it) => Element::Bytes(Bytes(Cow::Borrowed(it))),
        };
        tuple::push(&mut packed, &element);
    }
    Ok(packed)
}

fn refused(error: rusqlite::Error) -> ConnectorError {
    let message = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            ConnectorError::transient(message)
        }
        Some(ErrorCode::CannotOpen | ErrorCode::NotADatabase | ErrorCode::ReadOnly) => {
            ConnectorError::config(message)
        }
        _ => ConnectorError::schema(message),
    }
}
