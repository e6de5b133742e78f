//! The SQLite that runs in the host.
//!
//! A row is a tuple, an element a parameter or column; rows are packed as in
//! `wit/connector.wit`. Natively, with the feature `native-sqlite`, the same calls go to
//! a SQLite that is linked in.

use tidegate_wit::batch;
use tidegate_wit::tuple::{self, Element};

use crate::error::ConnectorError;

#[cfg(target_family = "wasm")]
mod guest;
#[cfg(not(target_family = "wasm"))]
mod native;

#[cfg(target_family = "wasm")]
use guest as imp;
#[cfg(not(target_family = "wasm"))]
use native as imp;

/// An open database.
#[derive(Debug)]
pub struct Database(imp::Database);

impl Database {
    /// Opens or creates a database file: write-ahead log, `synchronous=FULL`.
    ///
    /// # Errors
    ///
    /// If the path is not granted, or is not a database.
    pub fn open(path: &str) -> Result<Self, ConnectorError> {
        imp::open(path).map(Self)
    }

    /// Runs a statement; returns how many rows it changed.
    ///
    /// # Errors
    ///
    /// If SQLite refuses.
    pub fn execute(&self, sql: &str, row: &[Element<'_>]) -> Result<u64, ConnectorError> {
        imp::execute(&self.0, sql, &tuple::encode(row))
    }

    /// Runs a statement once for each packed row; returns how many rows it changed.
    ///
    /// # Errors
    ///
    /// If SQLite refuses one.
    pub fn execute_many(&self, sql: &str, rows: &[u8]) -> Result<u64, ConnectorError> {
        imp::execute_many(&self.0, sql, rows)
    }

    /// Runs a query and reads each row that it finds.
    ///
    /// # Errors
    ///
    /// If SQLite or `read` refuses.
    pub fn query<T>(
        &self,
        sql: &str,
        row: &[Element<'_>],
        mut read: impl FnMut(Vec<Element<'_>>) -> Result<T, ConnectorError>,
    ) -> Result<Vec<T>, ConnectorError> {
        let found = imp::query(&self.0, sql, &tuple::encode(row))?;
        batch::rows(&found)
            .map(|row| read(tuple::decode(row?)?))
            .collect()
    }

    /// Runs a query once for each packed row of parameters; returns packed rows, each
    /// with the position of the parameters that found it.
    ///
    /// # Errors
    ///
    /// If SQLite refuses.
    pub fn query_many(&self, sql: &str, rows: &[u8]) -> Result<Vec<u8>, ConnectorError> {
        imp::query_many(&self.0, sql, rows)
    }
}
