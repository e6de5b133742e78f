//! Decides where a session starts, from what is found on disk and at the
//! destination.
//!
//! ```text
//! record -> scope -> shards open -> recover -> (record written) -> leader
//! ```
//!
//! Where the destination keeps the checkpoint, its word wins over the record,
//! as its commit came first. Shards that agree decide; shards that do not
//! agree committed unevenly, and the hinted transaction is replayed on those
//! that lack it. Where the record keeps the checkpoint, a hinted transaction
//! is replayed by all; so is one that leaves documents out.
//!
//! Recovering twice in a row gives what recovering once gives, so a session
//! may die at any point of this, too.

use std::collections::BTreeSet;

use crate::frontier::{CheckpointError, Extents, Frontier, Source};
use crate::layout::{KeyRange, Layout, ShardId};
use crate::record::Record;
use crate::task::Task;

/// Who keeps the checkpoint that decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authority {
    /// The destination, in its own commit.
    Remote,
    /// The task's record.
    Log,
}

/// What a shard's connector answered when it was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// Who keeps the checkpoint.
    pub authority: Authority,
    /// The checkpoint at the destination, if there is one.
    pub checkpoint: Option<String>,
}

/// Under what the next session runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Under the task's spec, as it is now.
    Current,
    /// Under an older layout, with the endpoint of the spec as it is now and
    /// before anything is applied: work is left that makes sense only so.
    FinishFirst(Layout),
}

/// Where a session starts.
#[derive(Debug, Clone, PartialEq)]
pub struct Recovered {
    /// The record to start from. It is written first if it differs from the
    /// one that recovery was asked about.
    pub record: Record,
    /// Who keeps the checkpoint.
    pub authority: Authority,
    /// What the open transaction starts as.
    pub head: HeadStart,
    /// What the committed transaction starts as.
    pub tail: TailStart,
}

/// What the open transaction of a session starts as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeadStart {
    /// None is open.
    Idle,
    /// The hinted one is replayed, exactly.
    Replay {
        /// What it reads.
        extents: Extents,
        /// The shards that hold it already, and take no part.
        holding: BTreeSet<ShardId>,
    },
}

/// What the committed transaction of a session starts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TailStart {
    /// Everything about it is done.
    Done,
    /// It has to be acknowledged, perhaps again.
    Acknowledge,
    /// Its triggers have to run, perhaps again.
    Trigger,
}

/// Why a session cannot start.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// A destination's checkpoint cannot be read.
    #[error("{shard} ({range}): the destination's checkpoint cannot be used")]
    Checkpoint {
        /// The shard.
        shard: ShardId,
        /// Its key range.
        range: KeyRange,
        /// Why.
        source: CheckpointError,
    },
    /// A destination has lost its checkpoint.
    #[error(
        "{shard} ({range}): the destination has no checkpoint of this task, though it once had \
         one: restore it, or raise the backfill counter of every binding to write all rows again"
    )]
    CheckpointLost {
        /// The shard.
        shard: ShardId,
        /// Its key range.
        range: KeyRange,
    },
    /// Shards hold checkpoints that no crash explains.
    #[error(
        "{shard} ({range}): the destination's checkpoint {found} is neither the last commit nor \
         the transaction after it, and the other shards hold another: restore the same point for \
         all shards, or raise the backfill counter of every binding to write all rows again"
    )]
    Uneven {
        /// The shard.
        shard: ShardId,
        /// Its key range.
        range: KeyRange,
        /// The checkpoint it holds.
        found: String,
    },
    /// A journal ends before what was committed of it.
    #[error(
        "{of} ends at document {end}, but {committed} were committed: \
         restore the journal, or raise the backfill counter of every binding"
    )]
    JournalBehind {
        /// The journal and its binding.
        of: Box<Source>,
        /// Its end.
        end: u64,
        /// What was committed of it.
        committed: u64,
    },
    /// Shards disagree on who keeps the checkpoint.
    #[error(
        "{shard} ({range}) keeps its checkpoint elsewhere than shard 0: all shards of a task \
         must run the same connector with the same configuration"
    )]
    MixedAuthority {
        /// The shard.
        shard: ShardId,
        /// Its key range.
        range: KeyRange,
    },
}

/// Decides under which layout the next session runs.
///
/// Staged work and replays make sense only under the bindings and shards they
/// were read under. Whoever keeps whole specs asks [`Record::unfinished`], too:
/// a change of selected fields has to wait just so.
pub fn scope(record: &Record, current: &Layout) -> Scope {
    match record.unfinished() {
        Some(layout) if layout != current => Scope::FinishFirst(layout.clone()),
        _ => Scope::Current,
    }
}

/// Decides where a session starts.
///
/// `opened` are the answers of all shards, in order; `ends` are the journals'
/// ends.
pub fn recover(
    record: &Record,
    task: &Task,
    opened: &[Opened],
    ends: &Frontier,
) -> Result<Recovered, RecoverError> {
    let layout = &task.layout;
    assert_eq!(
        opened.len(),
        layout.shards.len(),
        "every shard opens before its task recovers"
    );
    let authority = authority(layout, opened)?;
    let (record, head) = match authority {
        Authority::Log => (record.clone(), replay(record, BTreeSet::new())),
        Authority::Remote => recover_remote(record, task, opened)?,
    };
    check_ends(&record, task, ends)?;
    let tail = match &record.committed {
        committed if !committed.acknowledged => TailStart::Acknowledge,
        committed if task.triggers && committed.trigger.is_some() => TailStart::Trigger,
        _ => TailStart::Done,
    };
    Ok(Recovered {
        record,
        authority,
        head,
        tail,
    })
}

fn authority(layout: &Layout, opened: &[Opened]) -> Result<Authority, RecoverError> {
    let authority = opened.first().expect("a task has a shard").authority;
    for ((shard, range), opened) in layout.shards().zip(opened) {
        if opened.authority != authority {
            return Err(RecoverError::MixedAuthority { shard, range });
        }
    }
    Ok(authority)
}

/// Recovers where every shard's checkpoint is at the destination.
fn recover_remote(
    record: &Record,
    task: &Task,
    opened: &[Opened],
) -> Result<(Record, HeadStart), RecoverError> {
    let layout = &task.layout;
    let found = checkpoints(record, layout, opened)?;
    let mut record = record.clone();
    record.remote_checkpoint_seen |= opened.iter().any(|opened| opened.checkpoint.is_some());

    // Bindings that are gone leave entries on one side or the other; only
    // those of this session decide.
    let relevant = |frontier: &Frontier| frontier.restricted(|source| layout.reads(source));
    let committed = relevant(&record.committed.frontier);
    let first = found.first().expect("a task has a shard");
    if found.iter().all(|other| relevant(other) == relevant(first)) {
        if relevant(first) != committed {
            let adopted = record.with_adopted(first.clone(), layout.clone(), task.triggers);
            return Ok((adopted, HeadStart::Idle));
        }
        // What is left out is known for these extents, and for no others.
        if record
            .hinted
            .as_ref()
            .is_some_and(|hint| !hint.omissions.is_empty())
        {
            let head = replay(&record, BTreeSet::new());
            return Ok((record, head));
        }
        return Ok((record.without_hint(), HeadStart::Idle));
    }

    let hinted = record.hinted_frontier().map(|hinted| relevant(&hinted));
    let mut holding = BTreeSet::new();
    for ((shard, range), found) in layout.shards().zip(&found) {
        if hinted.as_ref() == Some(&relevant(found)) {
            holding.insert(shard);
        } else if hinted.is_none() || relevant(found) != committed {
            return Err(RecoverError::Uneven {
                shard,
                range,
                found: found.to_checkpoint(),
            });
        }
    }
    let head = replay(&record, holding);
    Ok((record, head))
}

/// Reads what every shard's destination holds; nothing is an empty frontier.
fn checkpoints(
    record: &Record,
    layout: &Layout,
    opened: &[Opened],
) -> Result<Vec<Frontier>, RecoverError> {
    let expected = record.remote_checkpoint_seen
        && record
            .committed
            .frontier
            .iter()
            .any(|(source, _)| layout.reads(source));
    let read = |((shard, range), opened): ((ShardId, KeyRange), &Opened)| match &opened.checkpoint {
        Some(text) => Frontier::from_checkpoint(text).map_err(|source| RecoverError::Checkpoint {
            shard,
            range,
            source,
        }),
        None if expected => Err(RecoverError::CheckpointLost { shard, range }),
        None => Ok(Frontier::default()),
    };
    layout.shards().zip(opened).map(read).collect()
}

fn replay(record: &Record, holding: BTreeSet<ShardId>) -> HeadStart {
    match &record.hinted {
        Some(hint) => HeadStart::Replay {
            extents: hint.extents.clone(),
            holding,
        },
        None => HeadStart::Idle,
    }
}

/// Refuses to wait for documents that no longer exist: a journal restored from
/// an older copy would fill up again with others, and they would be skipped.
fn check_ends(record: &Record, task: &Task, ends: &Frontier) -> Result<(), RecoverError> {
    let read = match record.hinted_frontier() {
        Some(hinted) => hinted,
        // Nothing more is read, so nothing can be skipped.
        None if task.finish_only => return Ok(()),
        None => record.committed.frontier.clone(),
    };
    let layout = &task.layout;
    for (source, committed) in read.iter().filter(|(source, _)| layout.reads(source)) {
        let end = ends.next(source);
        if end < committed {
            return Err(RecoverError::JournalBehind {
                of: Box::new(source.clone()),
                end,
                committed,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
