//! One open database of one guest.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{CachedStatement, Connection, ErrorCode as Code, OpenFlags};
use tidegate_wit::batch::{self, BatchError};
use tidegate_wit::tuple::{self, TupleError};
use tokio::time::Instant;

use super::authorizer::authorize;
use super::error;
use super::value::{NotText, Parameter, Unstorable, pack_row};
use crate::sandbox::bindings::{ErrorKind, GuestError};
use crate::sandbox::stop::Stop;

/// A connector has a handful of statements a binding, and tasks have tens of
/// bindings.
const STATEMENTS: usize = 256;

/// Steps of SQLite's machine between two looks at the clock: some 100 us,
/// beside which a look costs nothing.
const STEPS: i32 = 10_000;

/// A database that a guest has open.
pub struct Database {
    connection: Connection,
    interrupt: Arc<Mutex<Option<Interrupt>>>,
    result_bytes: usize,
}

/// What ends a statement that runs.
#[derive(Clone, Debug)]
pub(super) struct Interrupt {
    pub(super) deadline: Instant,
    pub(super) stop: Stop,
    pub(super) grace: Duration,
}

impl Interrupt {
    fn is_due(&self) -> bool {
        Instant::now() >= self.deadline || self.is_stopped()
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop
            .asked_at()
            .is_some_and(|asked| asked.elapsed() >= self.grace)
    }
}

/// What a guest may do with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Read it; one that is not there is as empty as a new one, and is not made.
    Look,
    /// Make it, read it and write it.
    Write,
}

/// What came of a try.
pub(super) type Attempt<T> = Result<T, Failure>;

/// Why a try failed, by what follows.
#[derive(Debug)]
pub(super) enum Failure {
    /// Another connection has a lock: try again.
    Locked(GuestError),
    /// It will not get better: tell the guest.
    Failed(GuestError),
    /// It was interrupted: the call is over.
    Interrupted,
}

/// How far an [`Database::execute_many`] has come, over all tries.
#[derive(Debug, Default)]
pub(super) struct Done {
    rows: usize,
    changed: u64,
}

impl Database {
    /// Opens a database file, or creates it if it may be written.
    pub(super) fn open(
        file: &Path,
        access: Access,
        result_bytes: usize,
        interrupt: Interrupt,
    ) -> Attempt<Database> {
        // Also to look: a write-ahead log has no readers that cannot lock.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW
            | OpenFlags::SQLITE_OPEN_EXRESCODE;
        let connection = match access {
            Access::Write => {
                Connection::open_with_flags(file, flags | OpenFlags::SQLITE_OPEN_CREATE)?
            }
            Access::Look if file.exists() => Connection::open_with_flags(file, flags)?,
            Access::Look => Connection::open_in_memory_with_flags(flags)?,
        };
        let mut database = Database {
            connection,
            interrupt: Arc::new(Mutex::new(Some(interrupt))),
            result_bytes,
        };
        database.settle(access)?;
        database.interrupt_by(None);
        Ok(database)
    }

    /// Sets everything that the guest may not.
    fn settle(&mut self, access: Access) -> Attempt<()> {
        let interrupt = self.interrupt.clone();
        let connection = &mut self.connection;
        connection.progress_handler(STEPS, Some(move || is_due(&interrupt)))?;
        // Waiting for a lock happens outside, without a thread.
        connection.busy_timeout(Duration::ZERO)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        match access {
            Access::Look => connection.pragma_update(None, "query_only", true)?,
            Access::Write => use_write_ahead_log(connection)?,
        }
        connection.pragma_update(None, "foreign_keys", false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        let length = i32::try_from(self.result_bytes).unwrap_or(i32::MAX);
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, length)?;
        connection.set_limit(Limit::SQLITE_LIMIT_WORKER_THREADS, 0)?;
        connection.authorizer(Some(authorize))?;
        Ok(())
    }

    /// Sets what ends statements from here on.
    pub(super) fn interrupt_by(&mut self, interrupt: Option<Interrupt>) {
        *self
            .interrupt
            .lock()
            .expect("nothing panics while it holds this lock") = interrupt;
    }

    /// Runs a statement with one row of parameters; returns how many rows it
    /// changed.
    pub(super) fn execute(&mut self, sql: &str, row: &[u8]) -> Attempt<u64> {
        let mut statement = self.connection.prepare_cached(sql)?;
        bind(&mut statement, row)?;
        execute(&self.connection, &mut statement)
    }

    /// Runs a statement once for each row; returns how many rows were changed
    /// in all.
    pub(super) fn execute_many(&mut self, sql: &str, rows: &[u8], done: &mut Done) -> Attempt<u64> {
        let mut statement = self.connection.prepare_cached(sql)?;
        for row in batch::rows(rows).skip(done.rows) {
            bind(&mut statement, row?)?;
            done.changed += execute(&self.connection, &mut statement)?;
            done.rows += 1;
        }
        Ok(done.changed)
    }

    /// Runs a query with one row of parameters; returns the rows found.
    pub(super) fn query(&mut self, sql: &str, row: &[u8]) -> Attempt<Vec<u8>> {
        let mut found = Vec::new();
        let mut statement = self.connection.prepare_cached(sql)?;
        bind(&mut statement, row)?;
        each_row(&mut statement, |row| {
            batch::push_row(&mut found, row);
            within(found.len(), self.result_bytes)
        })?;
        Ok(found)
    }

    /// Runs a query once for each row of parameters; returns the rows found,
    /// with the ordinals of their parameters.
    pub(super) fn query_many(&mut self, sql: &str, rows: &[u8]) -> Attempt<Vec<u8>> {
        let mut found = Vec::new();
        let mut statement = self.connection.prepare_cached(sql)?;
        for (ordinal, row) in (0..).zip(batch::rows(rows)) {
            bind(&mut statement, row?)?;
            each_row(&mut statement, |row| {
                batch::push_loaded(&mut found, ordinal, row);
                within(found.len(), self.result_bytes)
            })?;
        }
        Ok(found)
    }
}

/// Has commits survive a loss of power, and readers not wait for them.
fn use_write_ahead_log(connection: &Connection) -> Attempt<()> {
    let journal: String =
        connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if journal != "wal" {
        // A network file system without shared memory, mostly.
        let message = format!(
            "the file system holds no write-ahead log (its journal stays {journal}); \
             use a local disk"
        );
        return Err(Failure::Failed(error(ErrorKind::Config, message)));
    }
    connection.pragma_update(None, "synchronous", "full")?;
    Ok(())
}

fn is_due(interrupt: &Mutex<Option<Interrupt>>) -> bool {
    interrupt
        .lock()
        .is_ok_and(|interrupt| interrupt.as_ref().is_some_and(Interrupt::is_due))
}

fn bind(statement: &mut CachedStatement<'_>, row: &[u8]) -> Attempt<()> {
    let elements = tuple::decode(row)?;
    let want = statement.parameter_count();
    if elements.len() != want {
        return Err(internal(format!(
            "the statement takes {want} parameters, and the row has {}",
            elements.len()
        )));
    }
    for (index, element) in (1..).zip(&elements) {
        statement.raw_bind_parameter::<usize, _>(index, Parameter(element))?;
    }
    Ok(())
}

fn execute(connection: &Connection, statement: &mut CachedStatement<'_>) -> Attempt<u64> {
    let before = connection.total_changes();
    statement.raw_execute()?;
    // A statement that changes nothing, like COMMIT, leaves the count of the
    // last one that did.
    match connection.total_changes() == before {
        true => Ok(0),
        false => Ok(connection.changes()),
    }
}

fn each_row(
    statement: &mut CachedStatement<'_>,
    mut take: impl FnMut(&[u8]) -> Attempt<()>,
) -> Attempt<()> {
    let columns = statement.column_count();
    let mut packed = Vec::new();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        packed.clear();
        pack_row(row, columns, &mut packed)?;
        take(&packed)?;
    }
    Ok(())
}

fn within(bytes: usize, limit: usize) -> Attempt<()> {
    if bytes <= limit {
        return Ok(());
    }
    Err(internal(format!(
        "the rows of one query have more than {limit} bytes; ask for fewer at once, or raise \
         the limit `query_bytes`"
    )))
}

fn internal(message: String) -> Failure {
    Failure::Failed(error(ErrorKind::Internal, message))
}

impl From<TupleError> for Failure {
    fn from(malformed: TupleError) -> Failure {
        internal(malformed.to_string())
    }
}

impl From<BatchError> for Failure {
    fn from(malformed: BatchError) -> Failure {
        internal(malformed.to_string())
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(failed: rusqlite::Error) -> Failure {
        use rusqlite::Error as Sqlite;
        let fail = |kind, message| Failure::Failed(error(kind, message));
        match &failed {
            Sqlite::SqliteFailure(code, message) => {
                by_code(code.code, message.clone().unwrap_or(code.to_string()))
            }
            Sqlite::SqlInputError {
                error, msg, sql, ..
            } => by_code(error.code, format!("{msg} (in: {sql})")),
            Sqlite::ToSqlConversionFailure(source) if source.is::<Unstorable>() => {
                fail(ErrorKind::Document, source.to_string())
            }
            Sqlite::FromSqlConversionFailure(_, _, source) if source.is::<NotText>() => {
                fail(ErrorKind::Schema, source.to_string())
            }
            Sqlite::ExecuteReturnedResults => internal(
                "the statement returns rows: run it with `query` instead of `execute`".into(),
            ),
            Sqlite::MultipleStatement => {
                internal("there is more than one statement: run them one by one".into())
            }
            _ => internal(failed.to_string()),
        }
    }
}

fn by_code(code: Code, message: String) -> Failure {
    let fail = |kind, message| Failure::Failed(error(kind, message));
    match code {
        Code::DatabaseBusy | Code::DatabaseLocked => Failure::Locked(error(
            ErrorKind::Transient,
            format!("another program has the database locked: {message}"),
        )),
        Code::OperationInterrupted => Failure::Interrupted,
        Code::DiskFull => fail(
            ErrorKind::Transient,
            format!("the disk is full: {message}; make room"),
        ),
        Code::SystemIoFailure | Code::OutOfMemory | Code::FileLockingProtocolFailed => {
            fail(ErrorKind::Transient, message)
        }
        Code::CannotOpen | Code::PermissionDenied | Code::ReadOnly | Code::NotADatabase => {
            fail(ErrorKind::Config, message)
        }
        Code::ConstraintViolation | Code::TypeMismatch | Code::SchemaChanged => {
            fail(ErrorKind::Schema, message)
        }
        Code::TooBig => fail(ErrorKind::Document, message),
        Code::AuthorizationForStatementDenied => fail(
            ErrorKind::Internal,
            format!(
                "a connector may not attach files, load extensions or set this pragma: {message}"
            ),
        ),
        _ if is_missing(&message) => fail(ErrorKind::Schema, message),
        _ => fail(ErrorKind::Internal, message),
    }
}

/// Whether SQLite says that a table or column is not there; it has no code of
/// its own for it.
fn is_missing(message: &str) -> bool {
    message.starts_with("no such table")
        || message.starts_with("no such column")
        || message.contains("has no column named")
}
