//! What a catalog says to the connector: the server, and each binding's table.

use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_boilerplate::ConnectorError;
use tidegate_boilerplate::sql::Dialect;

use crate::address::Address;
use crate::dialect::Postgres;

/// The schema of a database that has no other.
const DEFAULT_SCHEMA: &str = "public";

/// Tables whose names start so are our own.
const OWN_PREFIX: &str = "tidegate_";

/// The endpoint configuration. It has no `Debug`: it holds the password.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// `host:port` or a URL.
    address: String,
    /// Who we are to the server.
    pub user: String,
    /// How we prove it; a server may ask for none.
    #[serde(default)]
    pub password: Option<String>,
    /// The database.
    pub database: String,
    /// The schema of tables that name none, and of our own tables.
    #[serde(default = "default_schema")]
    pub schema: String,
    /// Whether and how the connection is encrypted.
    #[serde(default)]
    pub sslmode: SslMode,
    /// PEM of the only authorities to trust.
    #[serde(default)]
    pub sslrootcert: Option<String>,
    /// The default of a binding's `hardDelete`; the host reads it, not we.
    #[serde(default)]
    pub hard_delete: bool,
}

/// Whether and how a connection is encrypted, in PostgreSQL's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SslMode {
    /// Never.
    Disable,
    /// If the server refuses us otherwise.
    Allow,
    /// If the server can.
    #[default]
    Prefer,
    /// Always; with `sslrootcert` as `verify-ca`.
    Require,
    /// Always, and the certificate is of a trusted authority.
    VerifyCa,
    /// And it names the server.
    VerifyFull,
}

/// A binding's resource.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resource {
    /// The table.
    pub table: String,
    /// Its schema; the endpoint's if it is not said.
    #[serde(default)]
    schema: Option<String>,
    /// Whether rows are only added.
    #[serde(default)]
    pub delta_updates: bool,
}

fn default_schema() -> String {
    DEFAULT_SCHEMA.to_owned()
}

impl Config {
    /// Reads an endpoint configuration.
    ///
    /// # Errors
    ///
    /// If it is not one, or something in it cannot be meant.
    pub fn read(config: &Value) -> Result<Self, ConnectorError> {
        // The general error would repeat the value.
        if config
            .get("password")
            .is_some_and(|it| !it.is_string() && !it.is_null())
        {
            return Err(
                ConnectorError::config("the password is not text: write it in quotes")
                    .of_field("password"),
            );
        }
        let config = Self::deserialize(config).map_err(|error| {
            ConnectorError::config(format!("the endpoint configuration is wrong: {error}"))
        })?;
        config.address()?;
        for (field, text) in [("user", &config.user), ("database", &config.database)] {
            if text.is_empty() || text.contains('\0') {
                return Err(ConnectorError::config(format!(
                    "{field} {text:?} names nothing: write a name"
                ))
                .of_field(field));
            }
        }
        if let Some(reason) = refuse_name(&config.schema) {
            return Err(ConnectorError::config(format!(
                "schema {:?} cannot be used: {reason}",
                config.schema
            ))
            .of_field("schema"));
        }
        Ok(config)
    }

    /// Returns where the server is.
    pub(crate) fn address(&self) -> Result<Address, ConnectorError> {
        Address::parse(&self.address).map_err(|error| {
            // The text may hold a password, so it is not repeated.
            ConnectorError::config(format!("the address cannot be used: {error}"))
                .of_field("address")
        })
    }

    /// Returns the JSON schema of the endpoint configuration.
    pub fn schema() -> Value {
        let text = |order: u32, title: &str, description: &str| {
            json!({
                "title": title, "description": description, "type": "string", "minLength": 1,
                "order": order,
            })
        };
        let mut properties = json!({
            "address": text(0, "Address", "The server: host:port, or a URL such as postgres://db.example.com:5432. User, password and database have fields of their own."),
            "user": text(1, "User", "The role to log in as. It needs the right to create tables in the schema."),
            "password": text(2, "Password", "The role's password."),
            "database": text(3, "Database", "The database."),
            "schema": text(4, "Schema", "The schema of bindings that name none, and of the connector's own tables."),
            "sslmode": text(5, "TLS", "Whether the connection is encrypted, and how far the server's certificate is checked."),
            "sslrootcert": text(6, "Authority", "The certificates, as PEM text, of the only authorities to trust; without it, the usual ones."),
        });
        properties["password"]["secret"] = true.into();
        properties["schema"]["default"] = DEFAULT_SCHEMA.into();
        properties["sslmode"]["default"] = "prefer".into();
        properties["sslmode"]["enum"] = json!([
            "disable",
            "allow",
            "prefer",
            "require",
            "verify-ca",
            "verify-full"
        ]);
        properties["sslrootcert"]["multiline"] = true.into();
        properties["hardDelete"] = json!({
            "title": "Hard delete",
            "description": "Whether a deletion deletes the row. Otherwise the tombstone is a row like any other.",
            "type": "boolean",
            "default": false,
            "order": 7
        });
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "PostgreSQL",
            "type": "object",
            "required": ["address", "user", "database"],
            "additionalProperties": false,
            "properties": properties,
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
        let refused = |field: &str, name: &str, reason: &str| {
            let message = format!("{field} {name:?} cannot be used: {reason}");
            Err(ConnectorError::config(message).of_field(field))
        };
        if let Some(reason) = refuse_name(&resource.table) {
            return refused("table", &resource.table, reason);
        }
        if resource.table.starts_with(OWN_PREFIX) {
            let reason = "names that start with tidegate_ are of the connector's own tables";
            return refused("table", &resource.table, reason);
        }
        if let Some(schema) = &resource.schema
            && let Some(reason) = refuse_name(schema)
        {
            return refused("schema", schema, reason);
        }
        Ok(resource)
    }

    /// Returns the table's schema.
    pub(crate) fn schema_name<'a>(&'a self, config: &'a Config) -> &'a str {
        self.schema.as_deref().unwrap_or(&config.schema)
    }

    /// Returns the JSON schema of a binding's resource.
    pub fn schema() -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "PostgreSQL table",
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
                "schema": {
                    "title": "Schema",
                    "description": "The table's schema; the endpoint's if it is left out. It is made if it does not exist.",
                    "type": "string",
                    "minLength": 1,
                    "x-schema-name": true,
                    "order": 1
                },
                "delta_updates": {
                    "title": "Delta updates",
                    "description": "Whether rows are only added: one key may have many rows, and none is read back.",
                    "type": "boolean",
                    "default": false,
                    "x-delta-updates": true,
                    "order": 2
                }
            }
        })
    }
}

/// Says why a table or schema cannot have a name. Unlike a field's, it is not cut.
fn refuse_name(name: &str) -> Option<&'static str> {
    if Postgres.fold(name) != name {
        return Some("PostgreSQL keeps 63 bytes of a name, and it has more");
    }
    if name.is_empty() {
        return Some("it is empty");
    }
    name.contains('\0').then_some("it contains a NUL character")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(changes: &[(&str, Value)]) -> Value {
        let mut config = json!({
            "address": "db:5432", "user": "u", "password": "hunter2", "database": "d",
        });
        for (name, value) in changes {
            config[*name] = value.clone();
        }
        config
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let read = Config::read(&config(&[])).unwrap();
        assert_eq!(read.schema, "public");
        assert_eq!(read.sslmode, SslMode::Prefer);
        let resource = Resource::read(&json!({"table": "t"})).unwrap();
        assert_eq!(resource.schema_name(&read), "public");
        let resource = Resource::read(&json!({"table": "t", "schema": "s"})).unwrap();
        assert_eq!(resource.schema_name(&read), "s");
    }

    #[test]
    fn wrong_configurations_say_what_is_wrong_and_no_secret() {
        let long = "x".repeat(64);
        let cases = [
            (json!({}), "missing field `address`"),
            (config(&[("address", json!("db"))]), "host:port"),
            (
                config(&[("address", json!("postgres://u:hunter2@db/d"))]),
                "password",
            ),
            (config(&[("password", json!(5_318_008))]), "in quotes"),
            (config(&[("user", json!(""))]), "user \"\" names nothing"),
            (config(&[("database", json!("a\0"))]), "names nothing"),
            (config(&[("schema", json!(long))]), "63 bytes"),
            (config(&[("sslmode", json!("on"))]), "verify-full"),
            (
                config(&[("hardDeletes", json!(true))]),
                "unknown field `hardDeletes`",
            ),
        ];
        for (config, want) in cases {
            let Err(error) = Config::read(&config) else {
                panic!("{want}: {config} was read");
            };
            assert!(error.message.contains(want), "{config}: {error}");
            for secret in ["hunter2", "5318008"] {
                assert!(!error.message.contains(secret), "{error}");
            }
        }
        let cases = [
            (json!({}), "missing field `table`"),
            (json!({"table": ""}), "it is empty"),
            (json!({"table": "a\0b"}), "NUL"),
            (json!({"table": long}), "63 bytes"),
            (json!({"table": "t", "schema": ""}), "it is empty"),
            (json!({"table": "tidegate_checkpoints"}), "tidegate_"),
        ];
        for (resource, want) in cases {
            let error = Resource::read(&resource).unwrap_err();
            assert!(error.message.contains(want), "{resource}: {error}");
        }
    }
}
