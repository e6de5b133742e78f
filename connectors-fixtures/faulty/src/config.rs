//! Which fault, where, and when.

use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_boilerplate::{ConnectorError, ErrorKind};

use crate::reach::Reach;

/// The endpoint configuration: that of the SQLite connector, and more.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// The database file.
    pub path: String,
    /// The default of a binding's `hardDelete`.
    #[serde(default)]
    pub hard_delete: bool,
    /// The connector's own schedule.
    #[serde(default)]
    pub sync_schedule: Option<Value>,
    /// What `open` returns as the jitter key.
    #[serde(default)]
    pub jitter_key: Option<String>,
    /// What goes wrong; nothing by default.
    #[serde(default)]
    pub fault: Option<Fault>,
}

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    /// What goes wrong.
    pub kind: FaultKind,
    /// In which call.
    pub call: Call,
    /// In which of the instance's calls, from 1; in each by default.
    #[serde(default)]
    pub nth: Option<u32>,
    /// Only in calls whose keys or documents contain this text.
    #[serde(default)]
    pub on_document: Option<String>,
    /// Once the call has been made, instead of before.
    #[serde(default)]
    pub after: bool,
    /// At most this often over all instances, counted in a file beside the
    /// database; without end by default.
    #[serde(default)]
    pub times: Option<u32>,
    /// Of `error`: its kind.
    #[serde(default)]
    pub error_kind: Option<String>,
    /// Of `violate`: what is wrong with the answer.
    #[serde(default)]
    pub violation: Option<Violation>,
    /// Of `sleep` and `slow`: how long.
    #[serde(default)]
    pub milliseconds: Option<u64>,
    /// Of `hangNet`: `host:port` of a server that never answers.
    #[serde(default)]
    pub address: Option<String>,
    /// Of `reach`: what to reach for, one after the other.
    #[serde(default)]
    pub reach: Vec<Reach>,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FaultKind {
    /// Panics.
    Panic,
    /// Computes for ever.
    Spin,
    /// Sleeps by the clock of WASI.
    Sleep,
    /// Waits in steps of 100 ms, until the host ends it.
    Slow,
    /// Takes memory until there is no more.
    Hoard,
    /// Recurses until the stack is used up.
    Recurse,
    /// Logs ten thousand lines.
    Flood,
    /// Returns an error.
    Error,
    /// Answers what the protocol does not allow.
    Violate,
    /// Answers as if it had done what it was asked, and has done nothing.
    Skip,
    /// Reads from a server that never answers.
    HangNet,
    /// Reaches for things, and returns an error that tells what came of it.
    Reach,
}

/// A call of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Call {
    /// `validate`
    Validate,
    /// `apply`
    Apply,
    /// `open`
    Open,
    /// `load`
    Load,
    /// `flush`
    Flush,
    /// `store`
    Store,
    /// `start-commit`
    StartCommit,
    /// `acknowledge`
    Acknowledge,
}

/// What is wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Violation {
    /// An ordinal that was not asked for.
    Ordinal,
    /// A batch that is cut off.
    Batch,
    /// A document that is not JSON.
    Document,
    /// A message that is not JSON.
    Json,
    /// A message with a property that the host does not know.
    Property,
}

impl Config {
    /// Reads an endpoint configuration.
    ///
    /// # Errors
    ///
    /// If it is not one.
    pub fn read(config: &Value) -> Result<Self, ConnectorError> {
        let config = Self::deserialize(config).map_err(|error| {
            ConnectorError::config(format!("the endpoint configuration is wrong: {error}"))
        })?;
        config.fault.iter().try_for_each(Fault::check)?;
        Ok(config)
    }

    /// Returns the configuration of the SQLite connector.
    pub fn sqlite(&self) -> Value {
        json!({"path": self.path, "hardDelete": self.hard_delete})
    }
}

impl Fault {
    /// Refuses a fault that could not do what it says.
    fn check(&self) -> Result<(), ConnectorError> {
        let missing = |property: &str| {
            let message = format!("a fault of kind {:?} needs {property}", self.kind);
            Err(ConnectorError::config(message).of_field(property))
        };
        match self.kind {
            FaultKind::Error => self.error_kind().map(drop),
            FaultKind::Violate if self.violation.is_none() => missing("violation"),
            FaultKind::HangNet if self.address.is_none() => missing("address"),
            FaultKind::Reach if self.reach.is_empty() => missing("reach"),
            FaultKind::Sleep | FaultKind::Slow if self.milliseconds.is_none() => {
                missing("milliseconds")
            }
            _ => Ok(()),
        }
    }

    /// Returns the kind of the error to return.
    ///
    /// # Errors
    ///
    /// If it is no kind.
    pub fn error_kind(&self) -> Result<ErrorKind, ConnectorError> {
        match self.error_kind.as_deref() {
            Some("config") => Ok(ErrorKind::Config),
            Some("auth") => Ok(ErrorKind::Auth),
            Some("schema") => Ok(ErrorKind::Schema),
            Some("document") => Ok(ErrorKind::Document),
            Some("transient") => Ok(ErrorKind::Transient),
            Some("internal") => Ok(ErrorKind::Internal),
            other => Err(ConnectorError::config(format!(
                "errorKind {other:?} is none of config, auth, schema, document, transient, internal"
            ))
            .of_field("errorKind")),
        }
    }
}

/// Returns the JSON schema of a fault.
pub(crate) fn fault_schema() -> Value {
    json!({
        "title": "Fault",
        "description": "What goes wrong.",
        "type": "object",
        "required": ["kind", "call"],
        "additionalProperties": false,
        "properties": {
            "kind": {
                "description": "What goes wrong.",
                "enum": ["panic", "spin", "sleep", "slow", "hoard", "recurse", "flood", "error", "violate", "skip", "hangNet", "reach"]
            },
            "call": {
                "description": "In which call.",
                "enum": ["validate", "apply", "open", "load", "flush", "store", "start-commit", "acknowledge"]
            },
            "nth": {"description": "In which of the instance's calls.", "type": "integer", "minimum": 1},
            "onDocument": {"description": "Only where keys or documents contain this text.", "type": "string"},
            "after": {"description": "Once the call has been made, instead of before.", "type": "boolean"},
            "times": {"description": "At most this often over all instances.", "type": "integer", "minimum": 1},
            "errorKind": {
                "description": "Kind of the error.",
                "enum": ["config", "auth", "schema", "document", "transient", "internal"]
            },
            "violation": {
                "description": "What is wrong with the answer.",
                "enum": ["ordinal", "batch", "document", "json", "property"]
            },
            "milliseconds": {"description": "How long.", "type": "integer", "minimum": 0},
            "address": {"description": "A server that never answers, host:port.", "type": "string"},
            "reach": {"description": "What to reach for.", "type": "array"}
        }
    })
}

/// Returns the JSON schema of a connector's own schedule.
pub(crate) fn schedule_schema() -> Value {
    json!({
        "title": "Sync schedule",
        "description": "How often transactions are acknowledged, unless the materialization has a syncSchedule.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "syncFrequency": {
                "title": "Sync frequency",
                "description": "How often, inside the fast window if there is one; 30m by default, 0s for no pacing.",
                "type": ["string", "null"]
            },
            "timezone": {
                "title": "Time zone",
                "description": "Zone of the window's times and days.",
                "type": ["string", "null"]
            },
            "fastSyncStartTime": {
                "title": "Fast sync start time",
                "description": "When the fast window opens, HH:MM.",
                "type": ["string", "null"]
            },
            "fastSyncStopTime": {
                "title": "Fast sync stop time",
                "description": "When the fast window closes, HH:MM.",
                "type": ["string", "null"]
            },
            "fastSyncEnabledDays": {
                "title": "Fast sync enabled days",
                "description": "Days of the fast window, such as M-F; every day by default.",
                "type": ["string", "null"]
            }
        }
    })
}
