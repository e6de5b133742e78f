//! Claims: how sessions of a task share a destination that keeps checkpoints.
//!
//! ```text
//! open    rows that overlap the range -> raise the fence, inherit a checkpoint -> our row
//! commit  our row, unless it is not ours any more or a later session overlaps it
//! ```
//!
//! A destination keeps a row a task and key range. When a task's shards are laid
//! out anew, a new range inherits the checkpoint of the latest session that
//! overlaps it, and the older layout's sessions find the later one when they try
//! to commit. How rows are read and written is the connector's business; what they
//! mean is decided here.

use crate::error::ConnectorError;
use crate::{Fence, KeyRange, fence};

/// A session's claim to a part of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The task.
    pub task: String,
    /// The part of its keys.
    pub range: KeyRange,
    /// The session.
    pub fence: Fence,
    /// How often the task's tables had been changed when the session began.
    pub applies: i64,
}

/// A row that the destination holds, of one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The part of the task's keys.
    pub range: KeyRange,
    /// The session that opened it last.
    pub fence: Fence,
    /// How often the task's tables have been changed.
    pub applies: i64,
    /// What it is at.
    pub checkpoint: Option<String>,
}

impl Claim {
    /// Decides whether a session may open, given the rows that overlap its range.
    /// Returns the claim and the checkpoint that it goes on from: the row to write.
    ///
    /// # Errors
    ///
    /// If a session that is not older has opened the range, or the range would join
    /// ranges that are at different checkpoints.
    pub fn open(
        task: &str,
        range: &KeyRange,
        own: Fence,
        held: &[Held],
    ) -> Result<(Claim, Option<String>), ConnectorError> {
        for held in held {
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
        Ok((claim, inherit(held, range)?))
    }

    /// Decides whether the claim still holds, given the rows that overlap its range.
    ///
    /// # Errors
    ///
    /// If a later session has opened any part of the range, or the row is gone.
    pub fn check(&self, held: &[Held]) -> Result<(), ConnectorError> {
        if let Some(later) = held.iter().find(|held| held.fence > self.fence) {
            fence::check(Some(later.fence), self.fence)?;
        }
        let own = held.iter().find(|held| held.range == self.range);
        fence::check(own.map(|own| own.fence), self.fence)
    }

    /// Says why a commit found no row of the claim to write.
    pub fn refused(&self, held: &[Held]) -> ConnectorError {
        self.check(held).err().unwrap_or_else(|| {
            ConnectorError::transient(
                "the session is fenced off: the task's tables have been changed since it began",
            )
        })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: u32 = 0x8000_0000;

    fn fence(session: u64) -> Fence {
        Fence { epoch: 1, session }
    }

    fn held(begin: u32, end: u32, session: u64, checkpoint: &str) -> Held {
        Held {
            range: KeyRange { begin, end },
            fence: fence(session),
            applies: 2,
            checkpoint: Some(checkpoint.to_owned()),
        }
    }

    #[test]
    fn what_a_session_opens_with() {
        struct Case {
            name: &'static str,
            range: KeyRange,
            held: Vec<Held>,
            want: Result<Option<&'static str>, &'static str>,
        }
        let all = || KeyRange::FULL;
        let cases = [
            Case {
                name: "nothing is held",
                range: all(),
                held: vec![],
                want: Ok(None),
            },
            Case {
                name: "its own row",
                range: all(),
                held: vec![held(0, u32::MAX, 4, "own")],
                want: Ok(Some("own")),
            },
            Case {
                name: "a session that is not older",
                range: all(),
                held: vec![held(0, u32::MAX, 5, "own")],
                want: Err("is refused"),
            },
            Case {
                name: "a split inherits",
                range: KeyRange {
                    begin: 0,
                    end: HALF - 1,
                },
                held: vec![held(0, u32::MAX, 4, "whole")],
                want: Ok(Some("whole")),
            },
            Case {
                name: "a split beside its sibling of the same layout",
                range: KeyRange {
                    begin: HALF,
                    end: u32::MAX,
                },
                held: vec![held(0, u32::MAX, 5, "whole")],
                want: Ok(Some("whole")),
            },
            Case {
                name: "a later layout counts, not an older row of its own",
                range: all(),
                held: vec![
                    held(0, u32::MAX, 2, "old"),
                    held(0, HALF - 1, 4, "new"),
                    held(HALF, u32::MAX, 4, "new"),
                ],
                want: Ok(Some("new")),
            },
            Case {
                name: "ranges that are not even",
                range: all(),
                held: vec![held(0, HALF - 1, 4, "a"), held(HALF, u32::MAX, 4, "b")],
                want: Err("not at one checkpoint"),
            },
        ];
        for case in cases {
            let opened = Claim::open("a/b", &case.range, fence(5), &case.held);
            match (opened, case.want) {
                (Ok((claim, checkpoint)), Ok(want)) => {
                    assert_eq!(checkpoint.as_deref(), want, "{}", case.name);
                    assert_eq!(claim.applies, if case.held.is_empty() { 0 } else { 2 });
                }
                (Err(error), Err(want)) => {
                    assert!(error.to_string().contains(want), "{}: {error}", case.name);
                }
                (opened, want) => panic!("{}: {opened:?}, and not {want:?}", case.name),
            }
        }
    }

    #[test]
    fn what_refuses_a_commit() {
        let (claim, _) = Claim::open("a/b", &KeyRange::FULL, fence(5), &[]).expect("it may open");
        let own = held(0, u32::MAX, 5, "own");
        assert!(claim.check(std::slice::from_ref(&own)).is_ok());
        let refused = |held: &[Held]| claim.refused(held).to_string();
        assert!(refused(std::slice::from_ref(&own)).contains("tables have been changed"));
        assert!(refused(&[]).contains("is gone"));
        let later = held(0, HALF, 6, "later");
        assert!(refused(&[own, later]).contains("1.6"));
    }
}
