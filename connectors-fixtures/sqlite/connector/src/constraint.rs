//! Which fields a table can hold, and which it must.
//!
//! Decided from the request alone: the database is not opened.

use tidegate_boilerplate::sql::{Dialect, constraint, constraint::constraints};
use tidegate_boilerplate::{ConnectorError, Projection, ValidateRequest, ValidateResponse};

use crate::column::ColumnType;
use crate::config::{Config, Resource};
use crate::dialect::Sqlite;

/// Answers a request.
pub(crate) fn validate(request: &ValidateRequest) -> Result<ValidateResponse, ConnectorError> {
    Config::read(&request.config)?;
    let bindings = (0..).zip(&request.bindings).map(|(index, binding)| {
        let resource =
            Resource::read(&binding.resource).map_err(|error| error.of_binding(index))?;
        // Folded, so that two spellings of one table are seen to be one.
        let path = vec![Sqlite.fold(&resource.table)];
        let (delta, last) = (resource.delta_updates, request.last.as_ref());
        Ok(constraints::<ColumnType>(
            &Sqlite, binding, path, delta, last,
        ))
    });
    Ok(ValidateResponse {
        bindings: bindings.collect::<Result<_, ConnectorError>>()?,
    })
}

impl constraint::ColumnType for ColumnType {
    fn of(projection: &Projection) -> Self {
        ColumnType::of(projection)
    }

    fn name(&self) -> &'static str {
        self.sql()
    }

    fn is_json(&self) -> bool {
        matches!(self, ColumnType::Json)
    }
}
