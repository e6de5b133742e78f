//! The interface `sqlite`: databases that run in the host.
//!
//! Locks and write-ahead log are the system's own, so other programs may read
//! the file meanwhile. Inside a guest neither would work.
//!
//! ```text
//! import -> try -> done
//!            ^ |
//!            | +-> locked: wait (without a thread), try again, until it is too late
//!            +-----+
//! ```
//!
//! SQLite blocks the thread it runs on. It is not given one of its own,
//! because a statement there would outlive the call that asked for it; instead
//! the runtime is told, and moves its other work away. What would end a wait
//! elsewhere (the limit on imports, a stop) interrupts the statement.

mod authorizer;
mod database;
mod value;

#[cfg(test)]
mod tests;

use std::future::pending;
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::time::{Instant, sleep};
use wasmtime::component::Resource;

pub use self::database::Database;
use self::database::{Access, Attempt, Done, Failure, Interrupt};
use super::bindings::sqlite::{Host, HostDb};
use super::bindings::{ErrorKind, GuestError};
use super::grant::Denial;
use super::guest::Guest;
use super::limits::Limits;
use super::watchdog::ImportExceeded;

/// How long a statement waits for another program's lock. Readers never lock
/// a write-ahead log; a writer that takes longer is a second owner.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// How long to wait before trying a locked database again: short beside a
/// commit, which takes milliseconds.
const LOCK_PAUSE: Duration = Duration::from_millis(10);

impl Guest {
    /// When a statement that starts now is interrupted, and by what.
    fn interrupt(&self) -> Interrupt {
        Interrupt {
            deadline: Instant::now() + self.limits.import,
            stop: self.stop.clone(),
            grace: self.limits.stop_grace,
        }
    }

    /// Runs statements of an open database.
    async fn run<T>(
        &mut self,
        import: &'static str,
        resource: &Resource<Database>,
        mut attempt: impl FnMut(&mut Database) -> Attempt<T>,
    ) -> wasmtime::Result<Result<T, GuestError>> {
        let limit = self.limits.import;
        let interrupt = self.enter(import).interrupt();
        let database = self.table.get_mut(resource)?;
        database.interrupt_by(Some(interrupt.clone()));
        let answer = patiently(|| attempt(database), import, limit, &interrupt).await?;
        database.interrupt_by(None);
        Ok(answer)
    }
}

/// Tries until it is not locked any more, or too late.
///
/// What was interrupted has no answer: the guest's call ends.
async fn patiently<T>(
    mut attempt: impl FnMut() -> Attempt<T>,
    import: &'static str,
    limit: Duration,
    interrupt: &Interrupt,
) -> wasmtime::Result<Result<T, GuestError>> {
    let patience = Instant::now() + LOCK_WAIT;
    loop {
        match blocking(&mut attempt) {
            Ok(answer) => return Ok(Ok(answer)),
            Err(Failure::Locked(_)) if Instant::now() < patience => sleep(LOCK_PAUSE).await,
            Err(Failure::Locked(error) | Failure::Failed(error)) => return Ok(Err(error)),
            Err(Failure::Interrupted) if interrupt.is_stopped() => pending().await,
            Err(Failure::Interrupted) => return Err(ImportExceeded { import, limit }.into()),
        }
    }
}

/// Runs something that blocks, after the runtime was told so.
fn blocking<T>(run: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(run),
        // There is nobody to hand other work to.
        _ => run(),
    }
}

impl From<Denial> for GuestError {
    fn from(denial: Denial) -> GuestError {
        error(ErrorKind::Config, denial.to_string())
    }
}

fn error(kind: ErrorKind, message: String) -> GuestError {
    GuestError {
        kind,
        message,
        binding: None,
        key: None,
        field: None,
    }
}

impl Host for Guest {
    async fn open(
        &mut self,
        path: String,
    ) -> wasmtime::Result<Result<Resource<Database>, GuestError>> {
        let interrupt = self.enter("sqlite.open").interrupt();
        let file = match blocking(|| self.grants.file(&path)) {
            Ok(file) => file,
            Err(denial) => return Ok(Err(denial.into())),
        };
        let Limits {
            import,
            query_bytes,
            ..
        } = self.limits;
        let access = match self.read_only {
            true => Access::Look,
            false => Access::Write,
        };
        let open = || Database::open(&file, access, query_bytes, interrupt.clone());
        match patiently(open, "sqlite.open", import, &interrupt).await? {
            Ok(database) => Ok(Ok(self.table.push(database)?)),
            Err(error) => {
                let message = format!("{path}: {}", error.message);
                Ok(Err(GuestError { message, ..error }))
            }
        }
    }
}

impl HostDb for Guest {
    async fn execute(
        &mut self,
        database: Resource<Database>,
        sql: String,
        row: Vec<u8>,
    ) -> wasmtime::Result<Result<u64, GuestError>> {
        self.run("sqlite.execute", &database, |database| {
            database.execute(&sql, &row)
        })
        .await
    }

    async fn execute_many(
        &mut self,
        database: Resource<Database>,
        sql: String,
        rows: Vec<u8>,
    ) -> wasmtime::Result<Result<u64, GuestError>> {
        // A row that met a lock is tried again, not the rows before it.
        let mut done = Done::default();
        self.run("sqlite.execute-many", &database, |database| {
            database.execute_many(&sql, &rows, &mut done)
        })
        .await
    }

    async fn query(
        &mut self,
        database: Resource<Database>,
        sql: String,
        row: Vec<u8>,
    ) -> wasmtime::Result<Result<Vec<u8>, GuestError>> {
        self.run("sqlite.query", &database, |database| {
            database.query(&sql, &row)
        })
        .await
    }

    async fn query_many(
        &mut self,
        database: Resource<Database>,
        sql: String,
        rows: Vec<u8>,
    ) -> wasmtime::Result<Result<Vec<u8>, GuestError>> {
        self.run("sqlite.query-many", &database, |database| {
            database.query_many(&sql, &rows)
        })
        .await
    }

    async fn drop(&mut self, database: Resource<Database>) -> wasmtime::Result<()> {
        let database = self.enter("sqlite.drop").table.delete(database)?;
        // Closing folds the log into the file.
        blocking(|| drop(database));
        Ok(())
    }
}
