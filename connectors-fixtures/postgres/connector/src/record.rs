//! What was applied: one record a table, in `tidegate_bindings`.
//!
//! It says which tables are ours, and what their columns are; a table without a
//! record is somebody else's.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidegate_boilerplate::ConnectorError;
use tidegate_boilerplate::sql::Dialect;

use crate::client::Client;
use crate::dialect::Postgres;
use crate::table::{Column, Table, qualified};

const TABLE: &str = "tidegate_bindings";

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
    /// Type of each other column by its name as the server keeps it, those that are no
    /// longer selected included.
    pub(crate) values: BTreeMap<String, String>,
    /// Which of them holds the document.
    pub(crate) document: Option<String>,
}

/// A column as the server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Actual {
    pub(crate) sql_type: String,
    pub(crate) not_null: bool,
}

/// A table as the server has it: its columns by name, or none if there is no table.
pub(crate) type ActualTable = Option<BTreeMap<String, Actual>>;

impl Shape {
    /// Returns the shape of a table that holds the binding and nothing else.
    pub(crate) fn of(table: &Table) -> Self {
        let column = |it: &Column| (Postgres.fold(&it.name), it.column_type.sql().to_owned());
        Self {
            delta_updates: table.delta_updates,
            key: table.key.iter().map(column).collect(),
            values: table.values.iter().map(column).collect(),
            document: table.document.as_deref().map(|name| Postgres.fold(name)),
        }
    }
}

/// Makes the table of records if there is none.
pub(crate) fn create(client: &mut Client, schema: &str) -> Result<(), ConnectorError> {
    let sql = format!(
        "CREATE TABLE IF NOT EXISTS {} (
            schema_name text COLLATE \"C\" NOT NULL,
            table_name text COLLATE \"C\" NOT NULL,
            task text NOT NULL,
            backfill bigint NOT NULL,
            shape text NOT NULL,
            PRIMARY KEY (schema_name, table_name)
        )",
        qualified(schema, TABLE)
    );
    client.run(&sql).map(drop)
}

/// Reads the record of a table, and the table as it is.
pub(crate) fn read(
    client: &mut Client,
    schema: &str,
    table: &Table,
) -> Result<(Option<Record>, ActualTable), ConnectorError> {
    let actual = actual(client, &table.schema, &table.name)?;
    if self::actual(client, schema, TABLE)?.is_none() {
        return Ok((None, actual));
    }
    let sql = format!(
        "SELECT task, backfill, shape FROM {} WHERE schema_name = $1 AND table_name = $2",
        qualified(schema, TABLE)
    );
    let found = client.query(&sql, &[Some(&table.schema), Some(&table.name)])?;
    let record = found.rows.into_iter().next().map(|row| {
        record(row).ok_or_else(|| {
            ConnectorError::schema(format!(
                "the record of table {:?} in {TABLE} is damaged: restore it from a copy, or delete both the record \
                 and the table and raise the binding's backfill counter",
                table.name
            ))
        })
    });
    Ok((record.transpose()?, actual))
}

fn record(row: Vec<Option<String>>) -> Option<Record> {
    let [task, backfill, shape] = row.try_into().ok()?;
    Some(Record {
        task: task?,
        backfill: backfill?.parse().ok()?,
        shape: serde_json::from_str(&shape?).ok()?,
    })
}

/// Writes the record of a table.
pub(crate) fn write(
    client: &mut Client,
    schema: &str,
    table: &Table,
    record: &Record,
) -> Result<(), ConnectorError> {
    let shape = serde_json::to_string(&record.shape).expect("a shape is text under text");
    let sql = format!(
        "INSERT INTO {} (schema_name, table_name, task, backfill, shape) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (schema_name, table_name) DO UPDATE
        SET task = excluded.task, backfill = excluded.backfill, shape = excluded.shape",
        qualified(schema, TABLE)
    );
    let parameters = [
        &table.schema,
        &table.name,
        &record.task,
        &record.backfill.to_string(),
        &shape,
    ];
    client
        .query(&sql, &parameters.map(|it| Some(&**it)))
        .map(drop)
}

/// Says whether a schema exists.
pub(crate) fn schema_exists(client: &mut Client, schema: &str) -> Result<bool, ConnectorError> {
    let sql = "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1";
    Ok(client.query(sql, &[Some(schema)])?.count > 0)
}

/// Reads the columns of whatever has a table's name.
pub(crate) fn actual(
    client: &mut Client,
    schema: &str,
    name: &str,
) -> Result<ActualTable, ConnectorError> {
    let sql = "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull
        FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        LEFT JOIN pg_catalog.pg_attribute a
            ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE n.nspname = $1 AND c.relname = $2";
    let found = client.query(sql, &[Some(schema), Some(name)])?;
    if found.rows.is_empty() {
        return Ok(None);
    }
    let columns = found.rows.into_iter().filter_map(|row| {
        // A relation without columns is one row of nulls.
        let [name, sql_type, not_null] = row.try_into().ok()?;
        let actual = Actual {
            sql_type: sql_type?,
            not_null: not_null? == "t",
        };
        Some((name?, actual))
    });
    Ok(Some(columns.collect()))
}
