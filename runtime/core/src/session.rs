//! What both machines of a leader look at, and neither owns.

use crate::frontier::Frontier;
use crate::input::Input;
use crate::now::Now;
use crate::record::Record;
use crate::recover::Authority;
use crate::task::Task;
use crate::waiters::Waiters;

/// How a session is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It is not.
    No,
    /// It finishes what is open, however long that takes.
    Stop,
    /// It finishes what is open if that is done soon after the first step that
    /// saw the change.
    SpecChange {
        /// When that step was, on the monotonic clock.
        seen_millis: Option<u64>,
    },
}

/// The facts of one session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) task: Task,
    /// The record in use, as it was last re-read.
    pub(crate) record: Record,
    pub(crate) authority: Authority,
    pub(crate) input: Input,
    pub(crate) waiters: Waiters,
    pub(crate) ending: Ending,
    /// The journals' ends when the session opened.
    pub(crate) opening_ends: Frontier,
    /// When a transaction last closed; the session's opening before the first.
    pub(crate) closed: Now,
    /// When one was last acknowledged; the session's opening before the first.
    pub(crate) acknowledged: Now,
}

impl Session {
    /// Says whether the session ends.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending != Ending::No
    }

    /// Says whether everything that was in the journals when the session
    /// opened is committed.
    ///
    /// Until it is, an earlier session may have read, and lost, documents that
    /// a caller knows of.
    pub(crate) fn has_committed_through_opening(&self) -> bool {
        self.record.committed.frontier.covers(&self.opening_ends)
    }
}
