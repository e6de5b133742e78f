//! What a catalog says to the connector: the directory and its format, and each
//! binding's folder.

use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_boilerplate::ConnectorError;

use crate::root::{MANIFEST, OWN};

/// Most bytes of a folder's name: what file systems take.
const FOLDER_BYTES_MAX: usize = 255;

/// The endpoint configuration.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// The directory.
    pub path: String,
    /// What the files are.
    pub format: Format,
    /// How they are compressed; the format's default if left out.
    #[serde(default)]
    compression: Option<Compression>,
    /// By what part of the commit's time files are kept apart.
    #[serde(default)]
    pub partition: Partition,
    /// How often transactions are acknowledged; the boilerplate reads it, not we.
    #[serde(default)]
    pub upload_interval: Option<Value>,
}

/// What files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Format {
    /// A JSON object a line.
    Ndjson,
    /// Comma-separated values, with a header.
    Csv,
    /// Apache Parquet.
    Parquet,
}

/// How files are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Compression {
    /// Not at all.
    None,
    /// The whole of a text file, or each page of a Parquet file.
    Gzip,
    /// Each page of a Parquet file.
    Snappy,
}

/// By what part of the commit's time, in UTC, files are kept apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Partition {
    /// By none.
    #[default]
    None,
    /// A directory for each day: `2026/12/01`.
    Daily,
    /// A directory for each hour: `2026/12/01/23`.
    Hourly,
}

/// A binding's resource.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Resource {
    /// The folder in the directory.
    pub folder: String,
}

impl Config {
    /// Reads an endpoint configuration.
    ///
    /// # Errors
    ///
    /// If it is not one, or asks for what the format does not have.
    pub fn read(config: &Value) -> Result<Self, ConnectorError> {
        let config = Self::deserialize(config).map_err(|error| {
            ConnectorError::config(format!("the endpoint configuration is wrong: {error}"))
        })?;
        if config.path.is_empty() {
            let message = "path is empty: write the path of a directory, such as \"/data/out\"";
            return Err(ConnectorError::config(message).of_field("path"));
        }
        if config.format != Format::Parquet && config.compression() == Compression::Snappy {
            let message =
                "compression snappy is for Parquet: text files are compressed by gzip or none";
            return Err(ConnectorError::config(message).of_field("compression"));
        }
        Ok(config)
    }

    /// Returns how files are compressed.
    pub fn compression(&self) -> Compression {
        self.compression.unwrap_or(match self.format {
            Format::Parquet => Compression::Snappy,
            Format::Ndjson | Format::Csv => Compression::None,
        })
    }

    /// Returns what the names of files end with.
    pub(crate) fn extension(&self) -> &'static str {
        match (self.format, self.compression()) {
            (Format::Parquet, _) => "parquet",
            (Format::Ndjson, Compression::Gzip) => "ndjson.gz",
            (Format::Ndjson, _) => "ndjson",
            (Format::Csv, Compression::Gzip) => "csv.gz",
            (Format::Csv, _) => "csv",
        }
    }

    /// Returns the JSON schema of the endpoint configuration.
    pub fn schema() -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Files",
            "type": "object",
            "required": ["path", "format"],
            "additionalProperties": false,
            "properties": {
                "path": {
                    "title": "Path",
                    "description": "The directory, for this task alone. It is made if it does not exist; the one that it is in must exist.",
                    "type": "string",
                    "minLength": 1,
                    "order": 0
                },
                "format": {
                    "title": "Format",
                    "description": "What the files are.",
                    "enum": ["ndjson", "csv", "parquet"],
                    "order": 1
                },
                "compression": {
                    "title": "Compression",
                    "description": "none or gzip; for Parquet also snappy, which is its default.",
                    "enum": ["none", "gzip", "snappy"],
                    "order": 2
                },
                "partition": {
                    "title": "Partition",
                    "description": "Whether files lie in a directory for each day or hour (UTC) in which they were committed.",
                    "enum": ["none", "daily", "hourly"],
                    "default": "none",
                    "order": 3
                },
                "uploadInterval": {
                    "title": "Upload interval",
                    "description": "How often transactions are acknowledged, unless the materialization has a syncSchedule; 0s for at once.",
                    "type": "string",
                    "default": "5m",
                    "pattern": "^([0-9]+(ms|s|m|h|days))*$",
                    "order": 4
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
    /// If it is not one, or the folder cannot be ours.
    pub fn read(resource: &Value) -> Result<Self, ConnectorError> {
        let resource = Self::deserialize(resource).map_err(|error| {
            ConnectorError::config(format!("the resource configuration is wrong: {error}"))
        })?;
        match refusal(&resource.folder) {
            None => Ok(resource),
            Some(reason) => Err(ConnectorError::config(format!(
                "folder {:?} cannot be used: {reason}",
                resource.folder
            ))
            .of_field("folder")),
        }
    }

    /// Returns the JSON schema of a binding's resource.
    pub fn schema() -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Folder",
            "type": "object",
            "required": ["folder"],
            "additionalProperties": false,
            "properties": {
                "folder": {
                    "title": "Folder",
                    "description": "The folder in the directory: one name, without slashes.",
                    "type": "string",
                    "minLength": 1,
                    "x-collection-name": true,
                    "order": 0
                }
            }
        })
    }
}

/// Says why a name cannot be a folder, if it cannot. One name, not a path: a folder
/// in another binding's folder would be taken for its files.
fn refusal(folder: &str) -> Option<&'static str> {
    if folder.is_empty() {
        Some("it is empty")
    } else if folder.contains(['/', '\\']) {
        Some("it is a path, and must be one name without slashes")
    } else if folder.starts_with(['.', '-']) {
        Some(
            "names that start with a dot are hidden or lead elsewhere, and with a dash are options to programs",
        )
    } else if folder.chars().any(char::is_control) {
        Some("it contains a control character")
    } else if folder.len() > FOLDER_BYTES_MAX {
        Some("it has more than 255 bytes")
    } else if [MANIFEST, OWN].contains(&&*folder.to_lowercase()) {
        Some("the connector keeps its own files under that name")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_configurations_say_what_is_wrong() {
        let cases = [
            (json!({"format": "csv"}), "missing field `path`"),
            (json!({"path": "", "format": "csv"}), "path is empty"),
            (json!({"path": "x"}), "missing field `format`"),
            (
                json!({"path": "x", "format": "avro"}),
                "unknown variant `avro`",
            ),
            (
                json!({"path": "x", "format": "csv", "compression": "snappy"}),
                "snappy is for Parquet",
            ),
            (
                json!({"path": "x", "format": "csv", "partition": "weekly"}),
                "unknown variant `weekly`",
            ),
            (
                json!({"path": "x", "format": "csv", "interval": "5m"}),
                "unknown field",
            ),
        ];
        for (config, want) in cases {
            let error = Config::read(&config).unwrap_err();
            assert!(error.message.contains(want), "{config}: {error}");
        }
        let long = "x".repeat(256);
        for folder in [
            "",
            "..",
            ".",
            "../x",
            "/x",
            "a/b",
            "a\\b",
            ".tidegate",
            "manifest",
            "Manifest",
            "-rf",
            "a\nb",
            "a\0b",
            &long,
        ] {
            assert!(
                Resource::read(&json!({"folder": folder})).is_err(),
                "{folder:?}"
            );
        }
        for folder in ["orders", "orders 2026", "K\u{e4}ufe", "a.b"] {
            assert!(
                Resource::read(&json!({"folder": folder})).is_ok(),
                "{folder:?}"
            );
        }
    }

    #[test]
    fn names_end_with_what_is_in_the_files() {
        let cases = [
            ("ndjson", None, "ndjson"),
            ("ndjson", Some("gzip"), "ndjson.gz"),
            ("csv", Some("none"), "csv"),
            ("csv", Some("gzip"), "csv.gz"),
            ("parquet", None, "parquet"),
            ("parquet", Some("gzip"), "parquet"),
        ];
        for (format, compression, want) in cases {
            let mut config = json!({"path": "x", "format": format});
            if let Some(compression) = compression {
                config["compression"] = compression.into();
            }
            assert_eq!(Config::read(&config).unwrap().extension(), want);
        }
    }
}
