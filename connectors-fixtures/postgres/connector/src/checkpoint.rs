//! Checkpoints and fences: one row a task and key range, in `tidegate_checkpoints`.
//!
//! ```text
//! open    BEGIN -> LOCK against opens and commits -> what was applied, rows that overlap the range -> raise, inherit -> write our row -> COMMIT
//! commit  LOCK against opens -> UPDATE our row where fence and applies are ours and no later session overlaps
//! ```
//!
//! The table's lock, not a row's, keeps opens and commits apart: an open may add a row
//! that a commit's snapshot would not see. A commit holds it until its transaction
//! ends, and commits do not keep each other waiting.

use tidegate_boilerplate::claim::{self, Held};
use tidegate_boilerplate::{ConnectorError, Fence, KeyRange};

use crate::client::Client;
use crate::record;
use crate::table::qualified;

const TABLE: &str = "tidegate_checkpoints";

/// A session's claim to a part of a task, and where it is written.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    /// The table, quoted.
    table: String,
    claim: claim::Claim,
}

/// Makes the table if there is none.
pub(crate) fn create(client: &mut Client, schema: &str) -> Result<(), ConnectorError> {
    let table = qualified(schema, TABLE);
    let sql = format!(
        "CREATE TABLE IF NOT EXISTS {table} (
            task text COLLATE \"C\" NOT NULL,
            range_begin bigint NOT NULL,
            range_end bigint NOT NULL,
            fence_epoch bigint NOT NULL,
            fence_session bigint NOT NULL,
            applies bigint NOT NULL,
            checkpoint text,
            PRIMARY KEY (task, range_begin, range_end)
        )"
    );
    client.run(&sql).map(drop)
}

/// Keeps sessions of a task from committing that began before its tables changed.
/// To be called after the changes, in their transaction: a session that commits takes
/// its locks in that order too.
pub(crate) fn end_sessions(
    client: &mut Client,
    schema: &str,
    task: &str,
) -> Result<(), ConnectorError> {
    lock(client, schema)?;
    let table = qualified(schema, TABLE);
    let sql = format!("UPDATE {table} SET applies = applies + 1 WHERE task = $1");
    client.query(&sql, &[Some(task)]).map(drop)
}

/// Keeps other opens, commits and applies waiting until the transaction ends.
pub(crate) fn lock(client: &mut Client, schema: &str) -> Result<(), ConnectorError> {
    if record::actual(client, schema, TABLE)?.is_none() {
        return Err(ConnectorError::schema(format!(
            "schema {schema:?} has no table {TABLE}: the spec was never applied, or the database has been replaced; \
             apply the spec, with raised backfill counters if its tables were filled before"
        )));
    }
    let table = qualified(schema, TABLE);
    client
        .run(&format!("LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE"))
        .map(drop)
}

/// Raises the fence and reads the checkpoint. To be called after [`lock`].
pub(crate) fn open(
    client: &mut Client,
    schema: &str,
    task: &str,
    range: &KeyRange,
    own: Fence,
) -> Result<(Claim, Option<String>), ConnectorError> {
    let table = qualified(schema, TABLE);
    let held = overlapping(client, &table, task, range)?;
    let (claim, checkpoint) = claim::Claim::open(task, range, own, &held)?;
    let claim = Claim { table, claim };
    let sql = format!(
        "INSERT INTO {} (task, range_begin, range_end, fence_epoch, fence_session, applies, checkpoint)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (task, range_begin, range_end) DO UPDATE
        SET fence_epoch = excluded.fence_epoch, fence_session = excluded.fence_session,
            applies = excluded.applies, checkpoint = excluded.checkpoint",
        claim.table
    );
    claim.write(client, &sql, checkpoint.as_deref())?;
    Ok((claim, checkpoint))
}

fn overlapping(
    client: &mut Client,
    table: &str,
    task: &str,
    range: &KeyRange,
) -> Result<Vec<Held>, ConnectorError> {
    let sql = format!(
        "SELECT range_begin, range_end, fence_epoch, fence_session, applies, checkpoint
        FROM {table} WHERE task = $1 AND range_begin <= $3 AND range_end >= $2"
    );
    let (begin, end) = (range.begin.to_string(), range.end.to_string());
    let found = client.query(&sql, &[Some(task), Some(&begin), Some(&end)])?;
    let held = found.rows.into_iter().map(held);
    held.collect::<Option<_>>().ok_or_else(|| {
        ConnectorError::schema(format!(
            "{table} is damaged: restore it from a copy, or drop it and raise each binding's backfill counter"
        ))
    })
}

fn held(row: Vec<Option<String>>) -> Option<Held> {
    let [begin, end, epoch, session, applies, checkpoint] = row.try_into().ok()?;
    Some(Held {
        range: KeyRange {
            begin: begin?.parse().ok()?,
            end: end?.parse().ok()?,
        },
        fence: Fence {
            epoch: epoch?.parse().ok()?,
            session: session?.parse().ok()?,
        },
        applies: applies?.parse().ok()?,
        checkpoint,
    })
}

impl Claim {
    /// Writes the checkpoint, if the claim still holds. To be called within the
    /// transaction that it covers, as its last step.
    pub(crate) fn commit(
        &self,
        client: &mut Client,
        checkpoint: &str,
    ) -> Result<(), ConnectorError> {
        let table = &self.table;
        // A statement of its own: the next one's snapshot is then of after the wait.
        client.run(&format!("LOCK TABLE {table} IN ROW EXCLUSIVE MODE"))?;
        let sql = format!(
            "UPDATE {table} SET checkpoint = $7
            WHERE task = $1 AND range_begin = $2 AND range_end = $3
            AND fence_epoch = $4 AND fence_session = $5 AND applies = $6
            AND NOT EXISTS (
                SELECT 1 FROM {table} AS other
                WHERE other.task = $1 AND other.range_begin <= $3 AND other.range_end >= $2
                AND (other.fence_epoch, other.fence_session) > ($4, $5)
            )"
        );
        if self.write(client, &sql, Some(checkpoint))? == 1 {
            return Ok(());
        }
        Err(self.claim.refused(&self.held(client)?))
    }

    /// Refuses a session that a later one has fenced off.
    pub(crate) fn check(&self, client: &mut Client) -> Result<(), ConnectorError> {
        self.claim.check(&self.held(client)?)
    }

    fn held(&self, client: &mut Client) -> Result<Vec<Held>, ConnectorError> {
        overlapping(client, &self.table, &self.claim.task, &self.claim.range)
    }

    /// Runs a statement with the row as its parameters; returns how many it changed.
    fn write(
        &self,
        client: &mut Client,
        sql: &str,
        checkpoint: Option<&str>,
    ) -> Result<u64, ConnectorError> {
        let claim = &self.claim;
        let numbers = [
            u64::from(claim.range.begin),
            u64::from(claim.range.end),
            claim.fence.epoch,
            claim.fence.session,
        ]
        .map(|it| it.to_string());
        let applies = claim.applies.to_string();
        let mut row = vec![Some(&*claim.task)];
        row.extend(numbers.iter().map(|it| Some(&**it)));
        row.extend([Some(&*applies), checkpoint]);
        Ok(client.query(sql, &row)?.count)
    }
}
