//! What the connector is, and how a session begins.

use tidegate_boilerplate::{
    ApplyRequest, ApplyResponse, Authority, Connector, ConnectorError, Guarantee, NameLimits,
    OpenRequest, Opened, SpecResponse, ValidateRequest, ValidateResponse, Wants,
};

use crate::config::{Config, Resource};
use crate::constraint;
use crate::session::Session;

/// The webhook connector.
#[derive(Clone, Copy, Debug, Default)]
pub struct WebhookConnector;

impl Connector for WebhookConnector {
    type Transactor = Session;

    fn spec(&self) -> SpecResponse {
        SpecResponse {
            config_schema: Config::schema(),
            resource_schema: Resource::schema(),
            documentation_url: "https://www.rfc-editor.org/rfc/rfc9110".to_owned(),
            wants: Wants {
                network: vec!["/address".to_owned()],
                directory: Vec::new(),
            },
            defers_to_schedule: true,
            hard_delete_pointer: None,
            name_limits: NameLimits::default(),
        }
    }

    fn validate(&self, request: &ValidateRequest) -> Result<ValidateResponse, ConnectorError> {
        constraint::validate(request)
    }

    /// There is nothing to make at a server.
    fn apply(&self, request: &ApplyRequest) -> Result<ApplyResponse, ConnectorError> {
        Config::read(&request.next.config)?;
        Ok(ApplyResponse {
            actions: Vec::new(),
            patch: None,
        })
    }

    /// Nobody can be fenced off at a server: an older session that is still at work sends
    /// what this one sends, under the same keys.
    fn open(&self, request: &OpenRequest) -> Result<(Opened, Session), ConnectorError> {
        let opened = Opened {
            authority: Authority::Log,
            guarantee: Guarantee::AtLeastOnce,
            checkpoint: None,
            jitter_key: None,
        };
        Ok((opened, Session::new(request)?))
    }
}
