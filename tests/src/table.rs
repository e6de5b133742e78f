//! What a table holds, read with a SQLite of our own.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::fold::{Row, Rows, key_of, row};

/// The column that holds the document.
pub const DOCUMENT: &str = "flow_document";

/// How long a reader waits for a lock. Readers of a write-ahead log wait only
/// while somebody recovers it.
const BUSY_MAX: Duration = Duration::from_secs(10);

/// Opens a file for reading.
pub fn open(file: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(BUSY_MAX)?;
    Ok(connection)
}

/// Reads the documents of a table whose key is `key`.
pub fn rows(connection: &Connection, table: &str, key: &[String]) -> rusqlite::Result<Rows> {
    let mut rows = Rows::new();
    for document in documents(connection, table)? {
        let document: Row = row(&document);
        let key = key_of(&document, key);
        let twice = rows.insert(key.clone(), document);
        assert_eq!(twice, None, "{table} holds two rows of the key {key}");
    }
    Ok(rows)
}

/// Reads the documents of a table as they are written.
pub fn documents(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut query = connection.prepare_cached(&format!("SELECT {DOCUMENT} FROM \"{table}\""))?;
    query.query_map([], |row| row.get(0))?.collect()
}

/// Reads the documents of a table of a file.
#[track_caller]
pub fn read(file: &Path, table: &str, key: &[&str]) -> Rows {
    let key: Vec<String> = key.iter().map(|&name| name.to_owned()).collect();
    let read = open(file).and_then(|connection| rows(&connection, table, &key));
    read.unwrap_or_else(|error| panic!("{table} of {} cannot be read: {error}", file.display()))
}

/// Runs a query for one text, with a null as "NULL".
#[track_caller]
pub fn ask(file: &Path, sql: &str) -> String {
    try_ask(file, sql).unwrap_or_else(|error| panic!("{sql} on {}: {error}", file.display()))
}

/// Runs a query for one text, if the file and its tables are there yet.
pub fn try_ask(file: &Path, sql: &str) -> rusqlite::Result<String> {
    let connection = open(file)?;
    let mut query = connection.prepare(sql)?;
    let columns = query.column_count();
    let mut lines = Vec::new();
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let values: Result<Vec<String>, _> = (0..columns)
            .map(|column| Ok(text(&row.get_ref(column)?)))
            .collect();
        lines.push(values.map_err(|error: rusqlite::Error| error)?.join("|"));
    }
    Ok(lines.join("\n"))
}

fn text(value: &rusqlite::types::ValueRef<'_>) -> String {
    use rusqlite::types::ValueRef;
    match value {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Integer(integer) => integer.to_string(),
        ValueRef::Real(real) => format!("{real:?}"),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        ValueRef::Blob(blob) => format!("{} bytes", blob.len()),
    }
}
