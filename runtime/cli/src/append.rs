//! `tidegate append`: documents into a collection's journal.
//!
//! ```text
//! lines -> the journal itself, if no host holds the data directory
//!       -> parts, each with a key of its own -> a host, again until it says yes
//! ```

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;

use chrono::DateTime;
use clap::Args;
use tidegate_api::client::Client;
use tidegate_api::v1;
use tidegate_host::{DataDir, Host, clock::wall_micros};

use crate::connection::{HostOption, Place, block_on, refused};
use crate::error::CliError;

/// How much goes to a host at once: enough that the disk is synced a few times a
/// megabyte, little enough to be sent again.
const PART_BYTES: usize = 4 << 20;

/// The longest line that is read: a host refuses documents far below it, with
/// better words.
const LINE_BYTES_MAX: u64 = 20 << 20;

/// Appends documents to a collection, and returns once they are durable.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tidegate append acmeCo/orders orders.ndjson
  echo '{\"id\": 1}' | tidegate append acmeCo/orders
  tidegate append acmeCo/orders old.ndjson --published-at 2025-06-01T00:00:00Z

If a host runs on the data directory the documents go through it, and it has to know the
collection. The documents before a bad line may be appended; how many is said.")]
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
    host: HostOption,
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
        let documents = match self.host.place(true)? {
            Place::Directory(dir) => self.to_directory(dir, input, &name)?,
            Place::Host => block_on(self.to_host(input, &name))?,
        };
        println!("{documents} documents appended to {}", self.collection);
        Ok(())
    }

    fn to_directory(
        &self,
        dir: DataDir,
        input: Box<dyn Read>,
        name: &str,
    ) -> Result<u64, CliError> {
        let host = Host::open(dir)?;
        let clock = self.published_at.unwrap_or_else(wall_micros);
        let appended = host.append(&self.collection, input, name, clock)?;
        if !appended.checked {
            eprintln!(
                "note: no catalog that ran on {} has collection {}: the documents are checked against its \
                 schema when they are read",
                self.host.data_dir.data_dir.display(),
                self.collection
            );
        }
        Ok(appended.documents)
    }

    async fn to_host(&self, input: Box<dyn Read>, name: &str) -> Result<u64, CliError> {
        // Keys of another run would make new documents look like repeated ones.
        let run = format!("{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..));
        let mut parts = Parts::new(input);
        let mut appended = 0;
        loop {
            let part = parts.next();
            let part = part.map_err(|error| {
                CliError::user(format!(
                    "cannot read {name}: {error}. {appended} documents are appended"
                ))
            })?;
            let Some(part) = part else {
                return Ok(appended);
            };
            let request = v1::AppendRequest {
                collection: self.collection.clone(),
                documents: part.text.into(),
                idempotency_key: format!("{run}-{}", part.first_line),
                published_at: self.published_at.map(timestamp),
            };
            let append = async |client: Client| client.collections().append(request.clone()).await;
            match self.host.call(append).await {
                Ok(answer) => appended += answer.into_inner().appended_docs,
                Err(mut error) => {
                    let place = match part.first_line {
                        1 => name.to_owned(),
                        first => format!("{name}, in the part from line {first} on"),
                    };
                    error.message = format!(
                        "{place}: {}. {appended} documents are appended",
                        error.message
                    );
                    return Err(refused(error));
                }
            }
        }
    }
}

fn timestamp(micros: i64) -> prost_types::Timestamp {
    prost_types::Timestamp {
        seconds: micros.div_euclid(1_000_000),
        nanos: (micros.rem_euclid(1_000_000) * 1_000) as i32,
    }
}

/// Whole lines that are sent together.
struct Part {
    text: Vec<u8>,
    /// The number of its first line, counting from 1.
    first_line: u64,
}

/// Takes an input apart.
struct Parts<R> {
    input: BufReader<R>,
    lines: u64,
}

impl<R: Read> Parts<R> {
    fn new(input: R) -> Parts<R> {
        Parts {
            input: BufReader::new(input),
            lines: 0,
        }
    }

    /// Returns the next part; nothing at the end.
    fn next(&mut self) -> io::Result<Option<Part>> {
        let mut part = Part {
            text: Vec::new(),
            first_line: self.lines + 1,
        };
        while part.text.len() < PART_BYTES {
            let before = part.text.len();
            let mut line = self.input.by_ref().take(LINE_BYTES_MAX);
            let read = line.read_until(b'\n', &mut part.text)?;
            if read == 0 {
                break;
            }
            self.lines += 1;
            if read as u64 == LINE_BYTES_MAX && part.text.last() != Some(&b'\n') {
                part.text.truncate(before);
                let message = format!(
                    "line {} has more than {LINE_BYTES_MAX} bytes, which no document may have",
                    self.lines
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
        }
        Ok((!part.text.is_empty()).then_some(part))
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

    #[test]
    fn timestamps_before_the_epoch_are_whole() {
        let at = timestamp(-1);
        assert_eq!((at.seconds, at.nanos), (-1, 999_999_000));
    }

    #[test]
    fn parts_are_whole_lines() {
        let long = format!("\"{}\"", "x".repeat(PART_BYTES / 2));
        let text = format!("{long}\n{long}\n{long}\n{{}}");
        let mut parts = Parts::new(text.as_bytes());
        let first = parts.next().unwrap().unwrap();
        assert_eq!(first.first_line, 1);
        assert_eq!(first.text.iter().filter(|byte| **byte == b'\n').count(), 2);
        let second = parts.next().unwrap().unwrap();
        assert_eq!(second.first_line, 3);
        assert!(second.text.ends_with(b"\n{}"));
        assert_eq!([first.text, second.text].concat(), text.as_bytes());
        assert!(parts.next().unwrap().is_none());
    }

    #[test]
    fn a_line_without_an_end_is_not_read_for_ever() {
        let mut endless = Parts::new(io::repeat(b'x'));
        let error = endless.next().err().unwrap().to_string();
        assert!(error.starts_with("line 1 has more than"), "{error}");
    }
}
