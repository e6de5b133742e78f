//! What was applied: one record a table, in `tidegate_bindings`.
//!
//! It says which tables are ours, and what their columns are; a table without a
//! record is somebody else's.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidegate_boilerplate::sql::{Column, Dialect, Table};
use tidegate_boilerplate::sqlite::Database;
use tidegate_boilerplate::tuple::Element;
use tidegate_boilerplate::{ConnectorError, SpecBinding};

use crate::column::ColumnType;
use crate::config::Resource;
use crate::dialect::Sqlite;

const CREATE: &str = "CREATE TABLE IF NOT EXISTS tidegate_bindings (
    table_name TEXT NOT NULL COLLATE NOCASE PRIMARY KEY,
    task TEXT NOT NULL,
    backfill INTEGER NOT NULL,
    shape TEXT NOT NULL
)";

/// What was applied of one binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// The task that the table belongs to.
    pub(crate) task: String,
    /// The backfill counter that the table was made for.
    pub(crate) backfill: u32,
    /// What the table looks like.
    pub(crate) shape: Shape,
}

/// The columns of a table, and what they are for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Shape {
    pub(crate) delta_updates: bool,
    /// Name and type of each key column, in order.
    pub(crate) key: Vec<(String, String)>,
    /// Type of each other column by its folded name, those that are no longer
    /// selected included.
    pub(crate) values: BTreeMap<String, String>,
    /// Which of them holds the document.
    pub(crate) document: Option<String>,
}

/// Returns the table of a binding.
pub(crate) fn table(binding: &SpecBinding, resource: &Resource) -> Table {
    let column = |name: &str, column: ColumnType| Column {
        name: name.to_owned(),
        sql_type: column.sql().to_owned(),
    };
    let columns = |projections: &[tidegate_boilerplate::Projection]| {
        let of = |it: &tidegate_boilerplate::Projection| column(&it.field, ColumnType::of(it));
        projections.iter().map(of).collect::<Vec<_>>()
    };
    let document = binding
        .document
        .as_ref()
        .map(|name| column(name, ColumnType::Json));
    Table {
        name: resource.table.clone(),
        key: columns(&binding.key),
        values: columns(&binding.values)
            .into_iter()
            .chain(document)
            .collect(),
        unique: !resource.delta_updates,
    }
}

impl Shape {
    /// Returns the shape of a table that holds the binding and nothing else.
    pub(crate) fn of(binding: &SpecBinding, resource: &Resource) -> Self {
        let table = table(binding, resource);
        let name_and_type = |column: Column| (column.name, column.sql_type);
        let folded = |column: Column| (Sqlite.fold(&column.name), column.sql_type);
        Self {
            delta_updates: resource.delta_updates,
            key: table.key.into_iter().map(name_and_type).collect(),
            values: table.values.into_iter().map(folded).collect(),
            document: binding.document.as_deref().map(|name| Sqlite.fold(name)),
        }
    }
}

/// Makes the table of records if there is none.
pub(crate) fn create(db: &Database) -> Result<(), ConnectorError> {
    db.execute(CREATE, &[]).map(drop)
}

/// Reads the record of a table, and whether the table exists.
pub(crate) fn read(db: &Database, table: &str) -> Result<(Option<Record>, bool), ConnectorError> {
    let exists = exists(db, table)?;
    if !self::exists(db, "tidegate_bindings")? {
        return Ok((None, exists));
    }
    let records = db.query(
        "SELECT task, backfill, shape FROM tidegate_bindings WHERE table_name = ?1",
        &[Element::String(table.into())],
        |row| match &row[..] {
            [
                Element::String(task),
                Element::Int(backfill),
                Element::String(shape),
            ] => {
                let record = u32::try_from(*backfill)
                    .ok()
                    .zip(serde_json::from_str(shape).ok());
                let (backfill, shape) = record.ok_or_else(|| unreadable(table))?;
                Ok(Record {
                    task: task.to_string(),
                    backfill,
                    shape,
                })
            }
            _ => Err(unreadable(table)),
        },
    )?;
    Ok((records.into_iter().next(), exists))
}

/// Writes the record of a table.
pub(crate) fn write(db: &Database, table: &str, record: &Record) -> Result<(), ConnectorError> {
    let shape = serde_json::to_string(&record.shape).expect("a shape is text under text");
    db.execute(
        "INSERT INTO tidegate_bindings (table_name, task, backfill, shape) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (table_name) DO UPDATE
         SET task = excluded.task, backfill = excluded.backfill, shape = excluded.shape",
        &[
            Element::String(table.into()),
            Element::String((&*record.task).into()),
            Element::Int(record.backfill.into()),
            Element::String(shape.into()),
        ],
    )
    .map(drop)
}

pub(crate) fn exists(db: &Database, table: &str) -> Result<bool, ConnectorError> {
    let found = db.query(
        "SELECT 1 FROM sqlite_master WHERE type IN ('table', 'view') AND name = ?1 COLLATE NOCASE",
        &[Element::String(table.into())],
        |_| Ok(()),
    )?;
    Ok(!found.is_empty())
}

fn unreadable(table: &str) -> ConnectorError {
    ConnectorError::schema(format!(
        "the record of table {table:?} in tidegate_bindings is damaged: restore it from a copy of the \
         file, or delete both the record and the table and raise the binding's backfill counter"
    ))
}
