//! The SQLite connector, with a schedule of its own.

use serde_json::Value;
use sqlite_connector::{Session, SqliteConnector};
use tidegate_boilerplate::{
    ApplyRequest, ApplyResponse, Connector, ConnectorError, OpenRequest, Opened, SpecResponse,
    ValidateRequest, ValidateResponse, pacing,
};

use crate::config::{Config, fault_schema, schedule_schema};

/// The SQLite connector, with `syncSchedule`, `jitterKey` and `fault` in its
/// config.
#[derive(Clone, Copy, Debug, Default)]
pub struct FaultyConnector {
    sqlite: SqliteConnector,
}

impl Connector for FaultyConnector {
    type Transactor = Session;

    fn spec(&self) -> SpecResponse {
        let mut spec = self.sqlite.spec();
        spec.config_schema["title"] = "SQLite, with faults".into();
        let properties = &mut spec.config_schema["properties"];
        properties[pacing::CONFIG_PROPERTY] = schedule_schema();
        properties["jitterKey"] = serde_json::json!({
            "title": "Jitter key",
            "description": "Tasks of one key commit at the same instants.",
            "type": "string",
        });
        properties["fault"] = fault_schema();
        spec.wants.network.push("/fault/address".to_owned());
        spec
    }

    fn validate(&self, request: &ValidateRequest) -> Result<ValidateResponse, ConnectorError> {
        let mut request = request.clone();
        request.config = sqlite_config(&request.config)?;
        self.sqlite.validate(&request)
    }

    fn apply(&self, request: &ApplyRequest) -> Result<ApplyResponse, ConnectorError> {
        let mut request = request.clone();
        request.next.config = sqlite_config(&request.next.config)?;
        self.sqlite.apply(&request)
    }

    fn open(&self, request: &OpenRequest) -> Result<(Opened, Session), ConnectorError> {
        let mut request = request.clone();
        let config = Config::read(&request.spec.config)?;
        request.spec.config = config.sqlite();
        let (mut opened, session) = self.sqlite.open(&request)?;
        opened.jitter_key = config.jitter_key;
        Ok((opened, session))
    }
}

fn sqlite_config(config: &Value) -> Result<Value, ConnectorError> {
    Ok(Config::read(config)?.sqlite())
}
