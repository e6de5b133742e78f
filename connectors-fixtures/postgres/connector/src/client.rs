//! A connection to the server: statements out, rows and refusals in.
//!
//! ```text
//! run          Query ----------------------> CommandComplete, ReadyForQuery
//! query        Parse Bind Execute Sync ----> DataRow*, CommandComplete, ReadyForQuery
//! copy         Query CopyData CopyDone ----> CommandComplete, ReadyForQuery
//! stream       Parse Bind Execute Sync
//!   next_row   ----------------------------> DataRow .. until CommandComplete, ReadyForQuery
//! ```
//!
//! Everything a statement needs goes out in one write, so that each costs one round
//! trip. It knows nothing of tables or documents.

use fallible_iterator::FallibleIterator;
use postgres_protocol::IsNull;
use postgres_protocol::message::backend::{DataRowBody, Message};
use postgres_protocol::message::frontend;
use tidegate_boilerplate::ConnectorError;
use tidegate_boilerplate::net::Connection;

use crate::refusal::Refusal;

/// Most bytes of one read. The host returns no more at once.
const READ_BYTES: u32 = 256 << 10;

/// Formats of the wire protocol.
const TEXT: i16 = 0;
const BINARY: i16 = 1;

/// The buffer that `postgres-protocol` reads from and writes to.
type Buffer = bytes::BytesMut;

/// A connection that has logged in, or is about to.
#[derive(Debug)]
pub(crate) struct Client {
    connection: Connection,
    input: Buffer,
    output: Buffer,
    /// Whether rows of a query are still to be read.
    streaming: bool,
    /// What the server has refused since it was last ready.
    refused: Option<Refusal>,
}

/// What a statement came to.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The rows that were found, as text.
    pub(crate) rows: Vec<Vec<Option<String>>>,
    /// How many rows were found or changed.
    pub(crate) count: u64,
}

impl Client {
    /// Returns a client of a connection on which nothing has been said yet.
    pub(crate) fn new(connection: Connection) -> Self {
        Self {
            connection,
            input: Buffer::new(),
            output: Buffer::new(),
            streaming: false,
            refused: None,
        }
    }

    /// Returns what is written next; [`send`](Self::send) sends it.
    pub(crate) fn output(&mut self) -> &mut Buffer {
        &mut self.output
    }

    /// Sends what has been written.
    pub(crate) fn send(&mut self) -> Result<(), ConnectorError> {
        let bytes = self.output.split();
        self.connection.write(&bytes)
    }

    /// Reads the next message, those that concern nobody left out.
    pub(crate) fn receive(&mut self) -> Result<Message, ConnectorError> {
        loop {
            let message = Message::parse(&mut self.input).map_err(|error| {
                ConnectorError::transient(format!("the server does not speak PostgreSQL: {error}"))
            })?;
            match message {
                Some(
                    Message::NoticeResponse(_)
                    | Message::NotificationResponse(_)
                    | Message::ParameterStatus(_),
                ) => {}
                Some(message) => return Ok(message),
                None => {
                    let bytes = self.connection.read(READ_BYTES)?;
                    if bytes.is_empty() {
                        // The server says why before it closes.
                        return Err(match self.refused.take() {
                            Some(refusal) => refusal.into(),
                            None => ConnectorError::transient("the server closed the connection"),
                        });
                    }
                    self.input.extend_from_slice(&bytes);
                }
            }
        }
    }

    /// Runs statements without parameters; returns how many rows the last one changed.
    pub(crate) fn run(&mut self, sql: &str) -> Result<u64, ConnectorError> {
        self.is_free()?;
        frontend::query(sql, &mut self.output).map_err(unsendable)?;
        self.send()?;
        Ok(self.outcome()?.count)
    }

    /// Runs one statement with parameters, all of them text.
    pub(crate) fn query(
        &mut self,
        sql: &str,
        parameters: &[Option<&str>],
    ) -> Result<Outcome, ConnectorError> {
        self.ask(sql, parameters, TEXT)?;
        self.outcome()
    }

    /// Runs one `COPY ... FROM STDIN` with all of its rows.
    pub(crate) fn copy(&mut self, sql: &str, rows: &[u8]) -> Result<(), ConnectorError> {
        self.is_free()?;
        frontend::query(sql, &mut self.output).map_err(unsendable)?;
        // A server that refuses the statement skips the rows.
        frontend::CopyData::new(rows)
            .map_err(unsendable)?
            .write(&mut self.output);
        frontend::copy_done(&mut self.output);
        self.send()?;
        self.outcome().map(drop)
    }

    /// Starts a query whose rows are read one by one, in binary.
    pub(crate) fn stream(&mut self, sql: &str) -> Result<(), ConnectorError> {
        self.ask(sql, &[], BINARY)?;
        self.streaming = true;
        Ok(())
    }

    /// Reads the next row of [`stream`](Self::stream); none after the last.
    pub(crate) fn next_row(&mut self) -> Result<Option<DataRowBody>, ConnectorError> {
        loop {
            match self.receive()? {
                Message::DataRow(row) => return Ok(Some(row)),
                Message::ErrorResponse(body) => self.refused = Some(Refusal::read(&body)),
                Message::ReadyForQuery(_) => {
                    self.streaming = false;
                    return match self.refused.take() {
                        Some(refusal) => Err(refusal.into()),
                        None => Ok(None),
                    };
                }
                _ => {}
            }
        }
    }

    fn ask(
        &mut self,
        sql: &str,
        parameters: &[Option<&str>],
        format: i16,
    ) -> Result<(), ConnectorError> {
        self.is_free()?;
        frontend::parse("", sql, [], &mut self.output).map_err(unsendable)?;
        let write = |parameter: &Option<&str>, buffer: &mut Buffer| {
            Ok(match parameter {
                Some(text) => {
                    buffer.extend_from_slice(text.as_bytes());
                    IsNull::No
                }
                None => IsNull::Yes,
            })
        };
        frontend::bind(
            "",
            "",
            [TEXT],
            parameters,
            write,
            [format],
            &mut self.output,
        )
        .map_err(|error| match error {
            frontend::BindError::Conversion(error) => {
                ConnectorError::internal(format!("a statement cannot be sent: {error}"))
            }
            frontend::BindError::Serialization(error) => unsendable(error),
        })?;
        frontend::execute("", 0, &mut self.output).map_err(unsendable)?;
        frontend::sync(&mut self.output);
        self.send()
    }

    /// Reads until the server is ready for the next statement.
    fn outcome(&mut self) -> Result<Outcome, ConnectorError> {
        let mut outcome = Outcome::default();
        loop {
            match self.receive()? {
                Message::DataRow(row) => outcome.rows.push(texts(&row)?),
                Message::CommandComplete(body) => {
                    // "INSERT 0 5", "UPDATE 5", "BEGIN": a count is the last word.
                    let tag = body.tag().unwrap_or_default();
                    let count = tag.rsplit(' ').next().and_then(|it| it.parse().ok());
                    outcome.count = count.unwrap_or(0);
                }
                Message::ErrorResponse(body) => {
                    self.refused.get_or_insert(Refusal::read(&body));
                }
                Message::ReadyForQuery(_) => {
                    return match self.refused.take() {
                        Some(refusal) => Err(refusal.into()),
                        None => Ok(outcome),
                    };
                }
                _ => {}
            }
        }
    }

    /// Refuses to start a statement while rows of another are unread.
    fn is_free(&self) -> Result<(), ConnectorError> {
        match self.streaming {
            true => Err(ConnectorError::internal(
                "loaded documents of one binding are still being read: flush it to its end first",
            )),
            false => Ok(()),
        }
    }
}

impl Drop for Client {
    /// Says goodbye, so that the server does not log a lost connection.
    fn drop(&mut self) {
        self.output.clear();
        frontend::terminate(&mut self.output);
        let _ = self.send();
    }
}

/// Returns the columns of a row that came in text.
fn texts(row: &DataRowBody) -> Result<Vec<Option<String>>, ConnectorError> {
    let buffer = row.buffer();
    row.ranges()
        .map(|range| Ok(range.map(|range| String::from_utf8_lossy(&buffer[range]).into_owned())))
        .collect()
        .map_err(unreadable)
}

/// Returns the error of a row that cannot be taken apart.
pub(crate) fn unreadable(error: std::io::Error) -> ConnectorError {
    ConnectorError::transient(format!("the server sent a malformed row: {error}"))
}

/// Only a NUL in a statement, or one of 2 GiB.
fn unsendable(error: std::io::Error) -> ConnectorError {
    ConnectorError::internal(format!("a statement cannot be sent: {error}"))
}
