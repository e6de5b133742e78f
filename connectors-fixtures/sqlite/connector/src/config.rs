//! What a catalog says to the connector: the file, and each binding's table.

use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_boilerplate::ConnectorError;
use tidegate_boilerplate::sql::Dialect;

use crate::dialect::Sqlite;

/// The endpoint configuration.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// The database file.
    pub path: String,
    /// The default of a binding's `hardDelete`; the host reads it, not we.
    #[serde(default)]
    pub hard_delete: bool,
}

/// A binding's resource.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resource {
    /// The table.
    pub table: String,
    /// Whether rows are only added.
    #[serde(default)]
    pub delta_updates: bool,
}

impl Config {
    /// Reads an endpoint configuration.
    ///
    /// # Errors
    ///
    /// If it is not one, or names no file.
    pub fn read(config: &Value) -> Result<Self, ConnectorError> {
        let config = Self::deserialize(config).map_err(|error| {
            ConnectorError::config(format!("the endpoint configuration is wrong: {error}"))
        })?;
        // Each of our connections would get a database of its own.
        let no_file = config.path.is_empty()
            || config.path.starts_with(":memory:")
            || config.path.starts_with("file:");
        if no_file {
            return Err(ConnectorError::config(format!(
                "path {:?} names no file: write a path such as \"/data/shop.db\"",
                config.path
            ))
            .of_field("path"));
        }
        Ok(config)
    }

    /// Returns the JSON schema of the endpoint configuration.
    pub fn schema() -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "SQLite",
            "type": "object",
            "required": ["path"],
            "additionalProperties": false,
            "properties": {
                "path": {
                    "title": "Path",
                    "description": "The database file. It is made if it does not exist; its directory must exist.",
                    "type": "string",
                    "minLength": 1,
                    "order": 0
                },
                "hardDelete": {
                    "title": "Hard delete",
                    "description": "Whether a deletion deletes the row. Otherwise the tombstone is a row like any other.",
                    "type": "boolean",
                    "default": false,
                    "order": 1
                }
            }
        })
    }
}

impl Resource {
    /// Reads a binding's resource.
    ///
    /// # Errors
    ///
    /// If it is not one, or the table cannot be ours.
    pub fn read(resource: &Value) -> Result<Self, ConnectorError> {
        let resource = Self::deserialize(resource).map_err(|error| {
            ConnectorError::config(format!("the resource configuration is wrong: {error}"))
        })?;
        let refused = |reason: &str| {
            let message = format!("table {:?} cannot be used: {reason}", resource.table);
            Err(ConnectorError::config(message).of_field("table"))
        };
        if let Some(reason) = Sqlite.refuse(&resource.table) {
            return refused(reason);
        }
        let folded = Sqlite.fold(&resource.table);
        if folded.starts_with("sqlite_") {
            return refused("SQLite keeps names that start with sqlite_ to itself");
        }
        if folded.starts_with("tidegate_") {
            return refused("names that start with tidegate_ are of the connector's own tables");
        }
        Ok(resource)
    }

    /// Returns the JSON schema of a binding's resource.
    pub fn schema() -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "SQLite table",
            "type": "object",
            "required": ["table"],
            "additionalProperties": false,
            "properties": {
                "table": {
                    "title": "Table",
                    "description": "The table. It is made by the connector; one that exists already is refused.",
                    "type": "string",
                    "minLength": 1,
                    "x-collection-name": true,
                    "order": 0
                },
                "delta_updates": {
                    "title": "Delta updates",
                    "description": "Whether rows are only added: one key may have many rows, and none is read back.",
                    "type": "boolean",
                    "default": false,
                    "x-delta-updates": true,
                    "order": 1
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_configurations_say_what_is_wrong() {
        let cases = [
            (json!({}), "missing field `path`"),
            (json!({"path": ""}), "names no file"),
            (json!({"path": ":memory:"}), "names no file"),
            (json!({"path": "file:x?mode=memory"}), "names no file"),
            (
                json!({"path": "/x", "hardDeletes": true}),
                "unknown field `hardDeletes`",
            ),
        ];
        for (config, want) in cases {
            let error = Config::read(&config).unwrap_err();
            assert!(error.message.contains(want), "{config}: {error}");
        }
        let cases = [
            (json!({}), "missing field `table`"),
            (json!({"table": ""}), "it is empty"),
            (json!({"table": "a\0b"}), "NUL"),
            (json!({"table": "SQLite_master"}), "sqlite_"),
            (json!({"table": "Tidegate_checkpoints"}), "tidegate_"),
        ];
        for (resource, want) in cases {
            let error = Resource::read(&resource).unwrap_err();
            assert!(error.message.contains(want), "{resource}: {error}");
        }
    }
}
