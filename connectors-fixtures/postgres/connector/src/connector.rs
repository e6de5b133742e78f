//! What the connector is, and how a session begins.

use tidegate_boilerplate::{
    ApplyRequest, ApplyResponse, Authority, Connector, ConnectorError, Guarantee, NameLimits,
    OpenRequest, Opened, SpecResponse, ValidateRequest, ValidateResponse, Wants,
};

use crate::client::Client;
use crate::config::{Config, Resource};
use crate::dialect::NAME_BYTES_MAX;
use crate::session::Session;
use crate::table::Table;
use crate::{apply, checkpoint, constraint, login, record};

/// The PostgreSQL connector.
#[derive(Clone, Copy, Debug, Default)]
pub struct PostgresConnector;

impl Connector for PostgresConnector {
    type Transactor = Session;

    fn spec(&self) -> SpecResponse {
        SpecResponse {
            config_schema: Config::schema(),
            resource_schema: Resource::schema(),
            documentation_url: "https://www.postgresql.org/docs/".to_owned(),
            wants: Wants {
                network: vec!["/address".to_owned()],
                directory: Vec::new(),
            },
            defers_to_schedule: true,
            hard_delete_pointer: Some("/hardDelete".to_owned()),
            name_limits: NameLimits {
                field_bytes_max: u32::try_from(NAME_BYTES_MAX).ok(),
            },
        }
    }

    fn validate(&self, request: &ValidateRequest) -> Result<ValidateResponse, ConnectorError> {
        constraint::validate(request)
    }

    fn apply(&self, request: &ApplyRequest) -> Result<ApplyResponse, ConnectorError> {
        apply::apply(request)
    }

    fn open(&self, request: &OpenRequest) -> Result<(Opened, Session), ConnectorError> {
        let spec = &request.spec;
        let config = Config::read(&spec.config)?;
        let mut client = login::connect(&config)?;
        client.run("BEGIN ISOLATION LEVEL READ COMMITTED")?;
        // An error drops the connection, which rolls back.
        checkpoint::lock(&mut client, &config.schema)?;
        let tables = applied_tables(&mut client, &config, request)?;
        let (claim, checkpoint) = checkpoint::open(
            &mut client,
            &config.schema,
            &spec.task,
            &request.range,
            request.fence,
        )?;
        client.run("COMMIT")?;
        let opened = Opened {
            authority: Authority::Remote,
            guarantee: Guarantee::ExactlyOnce,
            checkpoint,
            jitter_key: None,
        };
        Ok((opened, Session::new(client, claim, tables)))
    }
}

/// Returns the tables of a spec that was applied to this database, and refuses another:
/// a database that was restored from a copy would else be filled without what it held.
fn applied_tables(
    client: &mut Client,
    config: &Config,
    request: &OpenRequest,
) -> Result<Vec<Table>, ConnectorError> {
    let mut tables = Vec::new();
    for (index, binding) in (0..).zip(&request.spec.bindings) {
        let resource = Resource::read(&binding.resource)?;
        let table = Table::of(binding, &resource, config);
        let (record, actual) = record::read(client, &config.schema, &table)?;
        let ours = record.is_some_and(|record| {
            record.task == request.spec.task && record.backfill == binding.backfill
        });
        if !ours || actual.is_none() {
            return Err(ConnectorError::schema(format!(
                "table {:?} of backfill counter {} is not in the database: it was never applied, or the database \
                 has been replaced; apply the spec again, with a raised counter if the table was filled before",
                resource.table, binding.backfill
            ))
            .of_binding(index));
        }
        tables.push(table);
    }
    Ok(tables)
}
