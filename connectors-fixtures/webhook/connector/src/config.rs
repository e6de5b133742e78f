//! What a catalog says to the connector: the server, and each binding's path.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_boilerplate::ConnectorError;

use crate::target::Target;

/// A request's body, unless the catalog says otherwise: what servers take without
/// being told to take more.
const BATCH_BYTES: u64 = 1 << 20;

/// The largest body that a catalog may ask for: it is held in memory a few times over.
const BATCH_BYTES_MAX: u64 = 16 << 20;

/// Documents of a request, unless the catalog says otherwise.
const BATCH_DOCUMENTS: u64 = 1000;

/// The most documents that a catalog may ask for.
const BATCH_DOCUMENTS_MAX: u64 = 100_000;

/// How a request is made, unless the catalog says otherwise.
const METHOD: &str = "POST";

/// The methods of requests that have a body.
const METHODS: [&str; 3] = ["POST", "PUT", "PATCH"];

/// The endpoint configuration. It has no `Debug`: address and headers may be secret.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    address: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default = "method")]
    method: String,
    #[serde(default = "batch_bytes")]
    batch_bytes: u64,
    #[serde(default = "batch_documents")]
    batch_documents: u64,
}

/// A binding's resource.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Resource {
    /// What is appended to the address.
    #[serde(default)]
    pub path: String,
}

/// How much goes into one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchLimits {
    /// Bytes of the body; one larger document is a batch of its own.
    pub(crate) bytes: usize,
    /// Documents.
    pub(crate) documents: usize,
}

fn method() -> String {
    METHOD.to_owned()
}

fn batch_bytes() -> u64 {
    BATCH_BYTES
}

fn batch_documents() -> u64 {
    BATCH_DOCUMENTS
}

impl Config {
    /// Reads an endpoint configuration.
    ///
    /// # Errors
    ///
    /// If it is not one, or something in it cannot be meant.
    pub fn read(config: &Value) -> Result<Self, ConnectorError> {
        refuse_other_types(config)?;
        let config = Self::deserialize(config).map_err(|error| {
            ConnectorError::config(format!("the endpoint configuration is wrong: {error}"))
        })?;
        for (field, value, max) in [
            ("batchBytes", config.batch_bytes, BATCH_BYTES_MAX),
            (
                "batchDocuments",
                config.batch_documents,
                BATCH_DOCUMENTS_MAX,
            ),
        ] {
            if value == 0 || value > max {
                return Err(ConnectorError::config(format!(
                    "{field} is {value}: write a number from 1 to {max}"
                ))
                .of_field(field));
            }
        }
        if !METHODS.contains(&&*config.method) {
            return Err(ConnectorError::config(format!(
                "method {:?} is none of {}",
                config.method,
                METHODS.join(", ")
            ))
            .of_field("method"));
        }
        config.target()?;
        Ok(config)
    }

    /// Returns where requests go, and what all of them have.
    pub(crate) fn target(&self) -> Result<Target, ConnectorError> {
        Target::new(&self.address, &self.method, &self.headers)
    }

    /// Returns how much goes into one request.
    pub(crate) fn limits(&self) -> BatchLimits {
        let size = |it| usize::try_from(it).expect("it is at most 16 MiB");
        BatchLimits {
            bytes: size(self.batch_bytes),
            documents: size(self.batch_documents),
        }
    }

    /// Returns the JSON schema of the endpoint configuration.
    pub fn schema() -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Webhook",
            "type": "object",
            "required": ["address"],
            "additionalProperties": false,
            "properties": {
                "address": {
                    "title": "Address",
                    "description": "The server: a URL that starts with https:// or http://. The paths of the bindings are appended to its path.",
                    "type": "string",
                    "minLength": 1,
                    "secret": true,
                    "order": 0
                },
                "headers": {
                    "title": "Headers",
                    "description": "Headers of each request, such as Authorization. Their values are kept secret.",
                    "type": "object",
                    "additionalProperties": {"type": "string", "secret": true},
                    "default": {},
                    "order": 1
                },
                "method": {
                    "title": "Method",
                    "description": "The method of each request.",
                    "type": "string",
                    "enum": METHODS,
                    "default": METHOD,
                    "order": 2
                },
                "batchBytes": {
                    "title": "Batch bytes",
                    "description": "The most bytes in the body of a request. A larger document is sent alone.",
                    "type": "integer",
                    "minimum": 1,
                    "maximum": BATCH_BYTES_MAX,
                    "default": BATCH_BYTES,
                    "order": 3
                },
                "batchDocuments": {
                    "title": "Batch documents",
                    "description": "The most documents in a request.",
                    "type": "integer",
                    "minimum": 1,
                    "maximum": BATCH_DOCUMENTS_MAX,
                    "default": BATCH_DOCUMENTS,
                    "order": 4
                }
            }
        })
    }
}

/// Refuses what is of another type where a secret may be: the general error would
/// repeat the value.
fn refuse_other_types(config: &Value) -> Result<(), ConnectorError> {
    let refused = |field: &str, message: &str| {
        Err(ConnectorError::config(message.to_owned()).of_field(field))
    };
    if config.get("address").is_some_and(|it| !it.is_string()) {
        return refused("address", "the address is not text: write it in quotes");
    }
    match config.get("headers") {
        None => Ok(()),
        Some(Value::Object(headers)) if headers.values().all(Value::is_string) => Ok(()),
        Some(Value::Object(_)) => refused(
            "headers",
            "a header's value is not text: write it in quotes",
        ),
        Some(_) => refused(
            "headers",
            "the headers are not an object of names and values",
        ),
    }
}

impl Resource {
    /// Reads a binding's resource.
    ///
    /// # Errors
    ///
    /// If it is not one. Whether the path can be part of a URL is the target's to say.
    pub fn read(resource: &Value) -> Result<Self, ConnectorError> {
        Self::deserialize(resource).map_err(|error| {
            ConnectorError::config(format!("the resource configuration is wrong: {error}"))
        })
    }

    /// Returns the JSON schema of a binding's resource.
    pub fn schema() -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Webhook path",
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "path": {
                    "title": "Path",
                    "description": "The path of the requests, appended to the address; each binding has another. Empty is the address itself.",
                    "type": "string",
                    "default": "",
                    "order": 0
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_has_a_default() {
        let config = Config::read(&json!({"address": "https://h"})).ok().unwrap();
        assert_eq!(config.method, "POST");
        let want = BatchLimits {
            bytes: 1 << 20,
            documents: 1000,
        };
        assert_eq!(config.limits(), want);
        assert_eq!(Resource::read(&json!({})).unwrap().path, "");
    }

    #[test]
    fn wrong_configurations_say_what_is_wrong_and_no_secret() {
        let with = |name: &str, value: Value| {
            let mut config = json!({"address": "https://h/s3cret"});
            config[name] = value;
            config
        };
        let cases = [
            (json!({}), "missing field `address`"),
            (with("address", json!({"s3cret": 1})), "in quotes"),
            (with("headers", json!("s3cret")), "names and values"),
            (with("headers", json!({"x": 5_318_008})), "in quotes"),
            (with("headers", json!({"x": "s3cret\n"})), "cannot be sent"),
            (with("method", json!("GET")), "POST, PUT, PATCH"),
            (with("batchBytes", json!(0)), "from 1 to 16777216"),
            (with("batchDocuments", json!(100_001)), "from 1 to 100000"),
            (with("batch", json!(1)), "unknown field `batch`"),
        ];
        for (config, want) in cases {
            let error = Config::read(&config).err().unwrap();
            assert!(error.message.contains(want), "{config}: {error}");
            for secret in ["s3cret", "5318008"] {
                assert!(!error.message.contains(secret), "{error}");
            }
        }
        let error = Resource::read(&json!({"paths": "/"})).unwrap_err();
        assert!(error.message.contains("unknown field `paths`"), "{error}");
    }
}
