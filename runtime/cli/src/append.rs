//! `tidegate append`: documents into a collection's journal.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use chrono::DateTime;
use clap::Args;
use tidegate_host::{Host, clock::wall_micros};

use crate::error::CliError;
use crate::options::DataDirOption;

/// Appends documents to a collection, and returns once they are durable.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tidegate append acmeCo/orders orders.ndjson
  echo '{\"id\": 1}' | tidegate append acmeCo/orders
  tidegate append acmeCo/orders old.ndjson --published-at 2025-06-01T00:00:00Z")]
pub struct Append {
    /// Name of the collection
    collection: String,
    /// File with a JSON document a line; - is standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// When the documents count as published, instead of now
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    published_at: Option<i64>,
    #[command(flatten)]
    data_dir: DataDirOption,
}

/// Reads an RFC 3339 instant into microseconds since the Unix epoch.
fn instant(text: &str) -> Result<i64, String> {
    match DateTime::parse_from_rfc3339(text) {
        Ok(instant) => Ok(instant.timestamp_micros()),
        Err(error) => Err(format!(
            "{error}; an instant looks like 2026-05-04T00:15:00Z"
        )),
    }
}

impl Append {
    pub fn execute(self) -> Result<(), CliError> {
        let (name, input): (String, Box<dyn Read>) = if self.file.as_os_str() == "-" {
            ("standard input".to_owned(), Box::new(io::stdin()))
        } else {
            let name = self.file.display().to_string();
            let file = File::open(&self.file)
                .map_err(|error| CliError::user(format!("cannot open {name}: {error}")))?;
            (name, Box::new(file))
        };
        let host = Host::open(self.data_dir.create()?)?;
        let clock = self.published_at.unwrap_or_else(wall_micros);
        let appended = host.append(&self.collection, input, &name, clock)?;
        if !appended.checked {
            eprintln!(
                "note: no catalog that ran on {} has collection {}: the documents are checked against its \
                 schema when they are read",
                self.data_dir.data_dir.display(),
                self.collection
            );
        }
        println!(
            "{} documents appended to {}",
            appended.documents, self.collection
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_need_an_offset() {
        assert_eq!(instant("1970-01-01T00:00:01Z"), Ok(1_000_000));
        assert_eq!(instant("1970-01-01T01:00:01+01:00"), Ok(1_000_000));
        assert!(instant("1970-01-01T00:00:01").is_err());
        assert!(instant("yesterday").is_err());
    }
}
