//! A sync-now call, from its caller's side.
//!
//! ```text
//! call -> Ack -> Done
//!    '------'-----> nothing more: the session ended; calling again is safe
//! ```

use tidegate_core::{Figures, Outcome, Status};
use tokio::sync::mpsc;

/// An acknowledgement and the end: a leader never waits for a caller.
const ANSWERS_MAX: usize = 2;

/// What a sync-now caller wants committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    /// What the task has read.
    Open,
    /// Everything in the journals at the time of the call.
    Head,
}

/// What a sync-now caller is told.
#[derive(Clone, Debug)]
pub enum SyncNowAnswer {
    /// What the call met.
    Ack {
        /// What it met.
        outcome: Outcome,
        /// The leader as it stood.
        status: Box<Status>,
    },
    /// What the caller waited for can be queried.
    Done(Figures),
}

/// Why a sync-now call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum SyncNowError {
    /// The session ended meanwhile. Calling again is safe.
    #[error("the task's session ended before the commit; calling again is safe")]
    Retry,
    /// The task does not run.
    #[error("the task does not run: {reason}")]
    NotRunning {
        /// Why not.
        reason: String,
    },
}

/// A call that was made. Dropping it hangs up, which changes nothing.
#[derive(Debug)]
pub struct SyncNowCall(mpsc::Receiver<SyncNowAnswer>);

impl SyncNowCall {
    /// Makes a call, and the other end of it.
    pub(crate) fn new() -> (Caller, SyncNowCall) {
        let (caller, call) = mpsc::channel(ANSWERS_MAX);
        (Caller(caller), SyncNowCall(call))
    }

    /// Waits for the next answer; nothing comes after Done.
    ///
    /// # Errors
    ///
    /// [`SyncNowError::Retry`] if the session ended before Done.
    pub async fn next(&mut self) -> Result<SyncNowAnswer, SyncNowError> {
        self.0.recv().await.ok_or(SyncNowError::Retry)
    }

    /// Waits for the end.
    ///
    /// # Errors
    ///
    /// [`SyncNowError::Retry`] if the session ended before it.
    pub async fn done(mut self) -> Result<Figures, SyncNowError> {
        loop {
            if let SyncNowAnswer::Done(figures) = self.next().await? {
                return Ok(figures);
            }
        }
    }
}

/// The leader's end of a call.
#[derive(Debug)]
pub(crate) struct Caller(mpsc::Sender<SyncNowAnswer>);

impl Caller {
    /// Tells the caller something, unless it has hung up.
    pub(crate) fn tell(&self, answer: SyncNowAnswer) {
        // There is room for all that is ever told, so this fails only for one
        // that hung up.
        let _ = self.0.try_send(answer);
    }

    pub(crate) fn hung_up(&self) -> bool {
        self.0.is_closed()
    }
}
