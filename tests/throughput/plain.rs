//! The baseline: what somebody would write who needs this once, and does not mind
//! to run it again from the start when it fails.
//!
//! ```text
//! lines -> map by key, the last one wins -> one prepared upsert, one transaction
//! ```

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::Context;
use rusqlite::{Connection, params};
use serde_json::Value;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS orders (
    id INTEGER PRIMARY KEY, status TEXT, total REAL, line INTEGER, flow_document TEXT NOT NULL)";

const UPSERT: &str = "INSERT INTO orders VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (id) DO UPDATE SET
    status = excluded.status, total = excluded.total, line = excluded.line,
    flow_document = excluded.flow_document";

/// Brings a file of orders into a table.
pub fn run(input: &Path, database: &Path) -> anyhow::Result<()> {
    let mut orders: BTreeMap<i64, (String, Value)> = BTreeMap::new();
    for line in BufReader::new(File::open(input)?).lines() {
        let line = line?;
        let order: Value = serde_json::from_str(&line)?;
        let id = order["id"].as_i64().context("an order has an id")?;
        orders.insert(id, (line, order));
    }
    let mut connection = Connection::open(database)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute(TABLE, [])?;
    let transaction = connection.transaction()?;
    let mut upsert = transaction.prepare(UPSERT)?;
    for (id, (text, order)) in &orders {
        let (status, total) = (order["status"].as_str(), order["total"].as_f64());
        upsert.execute(params![id, status, total, order["line"].as_i64(), text])?;
    }
    drop(upsert);
    transaction.commit()?;
    Ok(())
}
