//! Checkpoints and fences: one row a task and key range, in
//! `tidegate_checkpoints`.
//!
//! ```text
//! open    BEGIN IMMEDIATE -> rows that overlap the range -> raise, inherit -> write our row -> COMMIT
//! commit  UPDATE our row where fence and applies are ours and no later session overlaps
//! ```
//!
//! When a task's shards are laid out anew, a new range inherits the checkpoint of
//! the latest session that overlaps it, and the older layout's sessions find the
//! later one when they try to commit.

use tidegate_boilerplate::sqlite::Database;
use tidegate_boilerplate::tuple::Element;
use tidegate_boilerplate::{ConnectorError, Fence, KeyRange, fence};

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

/// A session's claim to a part of a task.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    task: String,
    range: KeyRange,
    fence: Fence,
    /// How often the task's tables had been changed when the session began.
    applies: i64,
}

/// A row of the table.
struct Held {
    range: KeyRange,
    fence: Fence,
    applies: i64,
    checkpoint: Option<String>,
}

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
    for held in &held {
        // Shards of one new layout open with one fence each in turn; what overlaps is of an
        // older layout, which only a later session may not be older than.
        if held.range == *range || held.fence > own {
            fence::raise(Some(held.fence), own)?;
        }
    }
    let claim = Claim {
        task: task.to_owned(),
        range: range.clone(),
        fence: own,
        applies: held.iter().map(|held| held.applies).max().unwrap_or(0),
    };
    let checkpoint = inherit(&held, range)?;
    let text = match &checkpoint {
        Some(checkpoint) => Element::String((&**checkpoint).into()),
        None => Element::Nil,
    };
    db.execute(OPEN, &claim.row(text)?)?;
    Ok((claim, checkpoint))
}

/// Decides which checkpoint a range goes on from: its own, unless a later session
/// had another layout.
fn inherit(held: &[Held], range: &KeyRange) -> Result<Option<String>, ConnectorError> {
    let Some(latest) = held.iter().map(|held| held.fence).max() else {
        return Ok(None);
    };
    let latest: Vec<_> = held.iter().filter(|held| held.fence == latest).collect();
    if let Some(own) = latest.iter().find(|held| held.range == *range) {
        return Ok(own.checkpoint.clone());
    }
    let checkpoint = &latest[0].checkpoint;
    if latest.iter().any(|held| held.checkpoint != *checkpoint) {
        return Err(ConnectorError::internal(format!(
            "range {:08x}-{:08x} would join ranges that are not at one checkpoint: run the task in its last layout \
             of shards once more, so that they come out even",
            range.begin, range.end
        )));
    }
    Ok(checkpoint.clone())
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

impl Claim {
    /// Writes the checkpoint, if the claim still holds. To be called within the
    /// transaction that it covers.
    pub(crate) fn commit(&self, db: &Database, checkpoint: &str) -> Result<(), ConnectorError> {
        let row = self.row(Element::String(checkpoint.into()))?;
        if db.execute(COMMIT, &row)? == 1 {
            return Ok(());
        }
        let held = overlapping(db, &self.task, &self.range)?;
        if let Some(later) = held.iter().find(|held| held.fence > self.fence) {
            fence::check(Some(later.fence), self.fence)?;
        }
        let own = held.iter().find(|held| held.range == self.range);
        fence::check(own.map(|own| own.fence), self.fence)?;
        Err(ConnectorError::transient(
            "the session is fenced off: the task's tables have been changed since it began",
        ))
    }

    fn row(&self, checkpoint: Element<'_>) -> Result<[Element<'static>; 7], ConnectorError> {
        let integer = |part: u64| {
            i64::try_from(part).map(Element::Int).map_err(|_| {
                ConnectorError::internal(format!("fence {part} has more than 63 bits"))
            })
        };
        Ok([
            Element::String(self.task.clone().into()),
            Element::Int(self.range.begin.into()),
            Element::Int(self.range.end.into()),
            integer(self.fence.epoch)?,
            integer(self.fence.session)?,
            Element::Int(self.applies),
            checkpoint.into_owned(),
        ])
    }
}
