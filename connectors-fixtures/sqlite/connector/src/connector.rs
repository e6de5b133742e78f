//! What the connector is, and how a session begins.

use tidegate_boilerplate::sqlite::Database;
use tidegate_boilerplate::{
    ApplyRequest, ApplyResponse, Authority, Connector, ConnectorError, Guarantee, NameLimits,
    OpenRequest, Opened, SpecResponse, ValidateRequest, ValidateResponse, Wants,
};

use crate::config::{Config, Resource};
use crate::session::Session;
use crate::{apply, checkpoint, constraint, record};

/// The SQLite connector.
#[derive(Clone, Copy, Debug, Default)]
pub struct SqliteConnector;

impl Connector for SqliteConnector {
    type Transactor = Session;

    fn spec(&self) -> SpecResponse {
        SpecResponse {
            config_schema: Config::schema(),
            resource_schema: Resource::schema(),
            documentation_url: "https://www.sqlite.org/docs.html".to_owned(),
            wants: Wants {
                network: Vec::new(),
                directory: vec!["/path".to_owned()],
            },
            defers_to_schedule: true,
            hard_delete_pointer: Some("/hardDelete".to_owned()),
            name_limits: NameLimits::default(),
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
        let db = Database::open(&Config::read(&spec.config)?.path)?;
        // An error drops the connection, which rolls back.
        db.execute("BEGIN IMMEDIATE", &[])?;
        checkpoint::create(&db)?;
        check_applied(&db, request)?;
        let (claim, checkpoint) = checkpoint::open(&db, &spec.task, &request.range, request.fence)?;
        db.execute("COMMIT", &[])?;
        let opened = Opened {
            authority: Authority::Remote,
            guarantee: Guarantee::ExactlyOnce,
            checkpoint,
            jitter_key: None,
        };
        Ok((opened, Session::new(db, claim, spec)?))
    }
}

/// Refuses a spec that was not applied to this file: a file that was moved away
/// would else be filled without what it held.
fn check_applied(db: &Database, request: &OpenRequest) -> Result<(), ConnectorError> {
    for (index, binding) in (0..).zip(&request.spec.bindings) {
        let resource = Resource::read(&binding.resource)?;
        let (record, exists) = record::read(db, &resource.table)?;
        let ours = record.is_some_and(|record| {
            record.task == request.spec.task && record.backfill == binding.backfill
        });
        if !(ours && exists) {
            return Err(ConnectorError::schema(format!(
                "table {:?} of backfill counter {} is not in the file: it was never applied, or the file has been \
                 replaced; apply the spec again, with a raised counter if the table was filled before",
                resource.table, binding.backfill
            ))
            .of_binding(index));
        }
    }
    Ok(())
}
