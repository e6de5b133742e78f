//! Which fields a table can hold, and which it must.
//!
//! Decided from the request alone: the server is not asked. Names over 63 bytes are
//! the validator's to judge, which knows the limit and sees all fields at once.

use tidegate_boilerplate::sql::constraint::{self, constraints};
use tidegate_boilerplate::{ConnectorError, Projection, ValidateRequest, ValidateResponse};

use crate::column::ColumnType;
use crate::config::{Config, Resource};
use crate::dialect::Postgres;

/// Answers a request.
pub(crate) fn validate(request: &ValidateRequest) -> Result<ValidateResponse, ConnectorError> {
    let config = Config::read(&request.config)?;
    let bindings = (0..).zip(&request.bindings).map(|(index, binding)| {
        let resource =
            Resource::read(&binding.resource).map_err(|error| error.of_binding(index))?;
        let path = vec![
            resource.schema_name(&config).to_owned(),
            resource.table.clone(),
        ];
        let (delta, last) = (resource.delta_updates, request.last.as_ref());
        Ok(constraints::<ColumnType>(
            &Postgres, binding, path, delta, last,
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
        matches!(self, ColumnType::Json | ColumnType::KeyJson)
    }

    fn widens_to(&self, other: &Self) -> bool {
        other.widened(self.sql(), "").is_some()
    }
}
