//! The host's SQLite, through the generated bindings.

pub(super) use crate::bindings::tidegate::connector::sqlite::Db as Database;

use crate::bindings::tidegate::connector::sqlite;
use crate::error::ConnectorError;

pub(super) fn open(path: &str) -> Result<Database, ConnectorError> {
    Ok(sqlite::open(path)?)
}

pub(super) fn execute(db: &Database, sql: &str, row: &[u8]) -> Result<u64, ConnectorError> {
    Ok(db.execute(sql, row)?)
}

pub(super) fn execute_many(db: &Database, sql: &str, rows: &[u8]) -> Result<u64, ConnectorError> {
    Ok(db.execute_many(sql, rows)?)
}

pub(super) fn query(db: &Database, sql: &str, row: &[u8]) -> Result<Vec<u8>, ConnectorError> {
    Ok(db.query(sql, row)?)
}

pub(super) fn query_many(db: &Database, sql: &str, rows: &[u8]) -> Result<Vec<u8>, ConnectorError> {
    Ok(db.query_many(sql, rows)?)
}
