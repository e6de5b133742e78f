//! Appends the lines of a stream that is not followed.

use std::io::{self, BufRead, BufReader, Read};

use crate::journal::follow::Check;
use crate::journal::{Append, DOCUMENT_BYTES_MAX, Documents, JournalError, Origin};

/// How much is appended at once: enough that the disk is synced a few times a
/// megabyte, little enough to hold.
const APPEND_BYTES: usize = 1 << 20;

/// What was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// How many documents.
    pub documents: u64,
    /// Whether they were checked against the collection's schema.
    pub checked: bool,
}

/// Why not everything was appended.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// A line is no document of the collection.
    #[error("{input}, line {line}: {reason}. {appended} documents before it are appended")]
    Line {
        /// Where the lines come from.
        input: String,
        /// Which line, counting from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
        /// How many documents are appended.
        appended: u64,
    },
    /// The stream cannot be read.
    #[error("cannot read {input}: {source}. {appended} documents are appended")]
    Read {
        /// Where the lines come from.
        input: String,
        /// Why.
        source: io::Error,
        /// How many documents are appended.
        appended: u64,
    },
    /// The journal refused them.
    #[error("{source}. {appended} documents are appended")]
    Journal {
        /// Why.
        source: JournalError,
        /// How many documents are appended.
        appended: u64,
    },
}

/// Makes an append of documents that nobody sends again.
pub(crate) fn of(documents: Documents, schema: u64, clock: i64) -> Append {
    Append {
        documents,
        clock,
        schema,
        origin: Origin::None,
    }
}

/// Reads lines, checks them, and hands them on in batches. The lines before a
/// bad one are appended.
pub(crate) fn lines<T>(
    input: impl Read,
    name: &str,
    check: &Check,
    mut append: impl FnMut(Documents) -> Result<T, JournalError>,
) -> Result<u64, AppendError> {
    let mut input = BufReader::new(input);
    let (mut line, mut number, mut appended) = (Vec::new(), 0, 0);
    let mut ended = None;
    while ended.is_none() {
        let mut documents = Documents::new();
        while ended.is_none() && documents.bytes().len() < APPEND_BYTES {
            line.clear();
            number += 1;
            ended = match read_line(&mut input, &mut line) {
                Ok(0) => Some(Ok(())),
                Ok(_) if line.trim_ascii().is_empty() => None,
                Ok(_) => match check(line.trim_ascii()) {
                    Ok(()) => {
                        documents.push(line.trim_ascii());
                        None
                    }
                    Err(reason) => Some(Err(Bad::Line { number, reason })),
                },
                Err(error) => Some(Err(Bad::Read(error))),
            };
        }
        let count = documents.len() as u64;
        if count > 0 {
            append(documents).map_err(|source| AppendError::Journal { source, appended })?;
            appended += count;
        }
    }
    let input = name.to_owned();
    match ended.expect("the loop ends with the stream") {
        Ok(()) => Ok(appended),
        Err(Bad::Line { number, reason }) => Err(AppendError::Line {
            input,
            line: number,
            reason,
            appended,
        }),
        Err(Bad::Read(source)) => Err(AppendError::Read {
            input,
            source,
            appended,
        }),
    }
}

enum Bad {
    Line { number: u64, reason: String },
    Read(io::Error),
}

/// Reads a line of bounded length; a longer one is cut one byte past the limit,
/// where the check refuses it.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<usize> {
    input
        .take(DOCUMENT_BYTES_MAX as u64 + 1)
        .read_until(b'\n', line)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn run(input: &str) -> (Result<u64, AppendError>, Vec<String>) {
        let check: Check = Arc::new(|line: &[u8]| match line {
            b"bad" => Err("it is bad".to_owned()),
            _ => Ok(()),
        });
        let mut taken = Vec::new();
        let appended = lines(input.as_bytes(), "standard input", &check, |documents| {
            taken.extend(
                documents
                    .iter()
                    .map(|it| String::from_utf8_lossy(it).into_owned()),
            );
            Ok(())
        });
        (appended, taken)
    }

    #[test]
    fn blank_lines_are_skipped_and_the_last_one_needs_no_newline() {
        let (appended, taken) = run("a\r\n\n  \n b \nc");
        assert_eq!(appended.unwrap(), 3);
        assert_eq!(taken, ["a", "b", "c"]);
    }

    #[test]
    fn the_lines_before_a_bad_one_are_appended_and_it_is_named() {
        let (appended, taken) = run("a\n\nbad\nb\n");
        let error = appended.unwrap_err().to_string();
        assert_eq!(
            error,
            "standard input, line 3: it is bad. 1 documents before it are appended"
        );
        assert_eq!(taken, ["a"]);
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(run("").0.unwrap(), 0);
    }
}
