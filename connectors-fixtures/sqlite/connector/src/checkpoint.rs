//! Checkpoints and fences: one row a task and key range, in
//! `tidegate_checkpoints`.
//!
//! ```text
//! open    BEGIN IMMEDIATE -> rows that overlap the range -> raise, inherit -> write our row -> COMMIT
//! commit  UPDATE our row where fence and applies are ours and no later session overlaps
//! ```

use tidegate_boilerplate::claim::{Claim, Held};
use tidegate_boilerplate::sqlite::Database;
use tidegate_boilerplate::tuple::Element;
use tidegate_boilerplate::{ConnectorError, Fence, KeyRange};

const CREATE: &str = "CREATE TABLE IF NOT EXISTS tidegate_checkpoints (
    task TEXT NOT NULL,
    range_begin INTEGER NOT NULL,
    range_end INTEGER NOT NULL,
    fence_epoch INTEGER NOT NULL,
    fence_session INTEGER NOT NULL,
    applies INTEGER NOT NULL,
    checkpoint TEXT,
    PRIMARY KEY (task, range_begin, range_end)
)";

const OVERLAPPING: &str =
    "SELECT range_begin, range_end, fence_epoch, fence_session, applies, checkpoint
    FROM tidegate_checkpoints WHERE task = ?1 AND range_begin <= ?3 AND range_end >= ?2";

const OPEN: &str = "INSERT INTO tidegate_checkpoints
    (task, range_begin, range_end, fence_epoch, fence_session, applies, checkpoint)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
    ON CONFLICT (task, range_begin, range_end) DO UPDATE
    SET fence_epoch = excluded.fence_epoch, fence_session = excluded.fence_session,
        applies = excluded.applies, checkpoint = excluded.checkpoint";

const COMMIT: &str = "UPDATE tidegate_checkpoints SET checkpoint = ?7
    WHERE task = ?1 AND range_begin = ?2 AND range_end = ?3
    AND fence_epoch = ?4 AND fence_session = ?5 AND applies = ?6
    AND NOT EXISTS (
        SELECT 1 FROM tidegate_checkpoints AS other
        WHERE other.task = ?1 AND other.range_begin <= ?3 AND other.range_end >= ?2
        AND (other.fence_epoch, other.fence_session) > (?4, ?5)
    )";

/// Makes the table if there is none.
pub(crate) fn create(db: &Database) -> Result<(), ConnectorError> {
    db.execute(CREATE, &[]).map(drop)
}

/// Keeps sessions of a task from committing that began before its tables changed.
pub(crate) fn end_sessions(db: &Database, task: &str) -> Result<(), ConnectorError> {
    db.execute(
        "UPDATE tidegate_checkpoints SET applies = applies + 1 WHERE task = ?1",
        &[Element::String(task.into())],
    )
    .map(drop)
}

/// Raises the fence and reads the checkpoint. To be called within a transaction.
pub(crate) fn open(
    db: &Database,
    task: &str,
    range: &KeyRange,
    own: Fence,
) -> Result<(Claim, Option<String>), ConnectorError> {
    let held = overlapping(db, task, range)?;
    let (claim, checkpoint) = Claim::open(task, range, own, &held)?;
    let text = match &checkpoint {
        Some(checkpoint) => Element::String((&**checkpoint).into()),
        None => Element::Nil,
    };
    db.execute(OPEN, &row(&claim, text)?)?;
    Ok((claim, checkpoint))
}

fn overlapping(db: &Database, task: &str, range: &KeyRange) -> Result<Vec<Held>, ConnectorError> {
    let row = [
        Element::String(task.into()),
        Element::Int(range.begin.into()),
        Element::Int(range.end.into()),
    ];
    db.query(OVERLAPPING, &row, |row| held(&row).ok_or_else(damaged))
}

fn held(row: &[Element<'_>]) -> Option<Held> {
    let [begin, end, epoch, session, applies, checkpoint] = row else {
        return None;
    };
    let integer = |element: &Element<'_>| match element {
        Element::Int(it) => Some(*it),
        _ => None,
    };
    Some(Held {
        range: KeyRange {
            begin: integer(begin)?.try_into().ok()?,
            end: integer(end)?.try_into().ok()?,
        },
        fence: Fence {
            epoch: integer(epoch)?.try_into().ok()?,
            session: integer(session)?.try_into().ok()?,
        },
        applies: integer(applies)?,
        checkpoint: match checkpoint {
            Element::String(it) => Some(it.to_string()),
            Element::Nil => None,
            _ => return None,
        },
    })
}

fn damaged() -> ConnectorError {
    ConnectorError::schema(
        "tidegate_checkpoints is damaged: restore it from a copy of the file, or move the file away and raise \
         each binding's backfill counter",
    )
}

/// Writes the checkpoint, if the claim still holds. To be called within the
/// transaction that it covers.
pub(crate) fn commit(claim: &Claim, db: &Database, checkpoint: &str) -> Result<(), ConnectorError> {
    let row = row(claim, Element::String(checkpoint.into()))?;
    match db.execute(COMMIT, &row)? {
        1 => Ok(()),
        _ => Err(claim.refused(&overlapping(db, &claim.task, &claim.range)?)),
    }
}

fn row(claim: &Claim, checkpoint: Element<'_>) -> Result<[Element<'static>; 7], ConnectorError> {
    let integer = |part: u64| {
        i64::try_from(part)
            .map(Element::Int)
            .map_err(|_| ConnectorError::internal(format!("fence {part} has more than 63 bits")))
    };
    Ok([
        Element::String(claim.task.clone().into()),
        Element::Int(claim.range.begin.into()),
        Element::Int(claim.range.end.into()),
        integer(claim.fence.epoch)?,
        integer(claim.fence.session)?,
        Element::Int(claim.applies),
        checkpoint.into_owned(),
    ])
}
