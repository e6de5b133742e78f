//! Follows an input file of JSON lines into a journal.
//!
//! ```text
//! step: append the prepared batch ---+--> Progress
//!       prepare the next, beside it -+
//! ```
//!
//! The position in the file travels in the frame with the lines it covers, and each
//! append names the position it continues: whatever is killed when, a line is neither
//! lost nor doubled. A bad line stops its input and nothing else; the lines before
//! it are appended, and once it is fixed in place reading goes on with it.
//!
//! An input's identity is its path made absolute, otherwise as given: symbolic links
//! are not resolved, because the name is what the operator wrote, and a link that is
//! pointed at other content is noticed by its fingerprint. The follower does not
//! parse documents; `check` does.

mod error;
mod input;
mod lines;
mod prefix;
mod resume;
#[cfg(test)]
mod tests;

pub use error::FollowError;

use super::{Append, InputPosition, Journal, Origin};
use crate::clock::wall_micros;
use futures::future::join;
use input::{Input, Prepared};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How long to wait at an input's end before looking at it again.
///
/// Short beside anything a person waits for, and a look is one system call.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Says whether a line is a document of the collection, and why not.
///
/// Runs on a thread where it may take its time.
pub type Check = Arc<dyn Fn(&[u8]) -> Result<(), String> + Send + Sync>;

/// How to follow an input.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Whether to take a last line without a newline, instead of waiting for it.
    pub take_last_line_without_newline: bool,
}

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// How many documents were appended.
    pub documents: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Whether all lines that the input had are now in the journal.
    pub at_end: bool,
}

/// One input on its way into a journal.
pub struct Follower {
    journal: Arc<dyn Journal>,
    schema: u64,
    path: PathBuf,
    identity: String,
    check: Check,
    options: Options,
    /// `None` before the first step and after an error: the journal knows where to go on.
    under_way: Option<UnderWay>,
}

struct UnderWay {
    input: Input,
    /// Where the journal has the input.
    appended: Option<InputPosition>,
    /// What was prepared while the last batch was appended.
    ahead: Option<Result<Prepared, FollowError>>,
}

impl Follower {
    /// Prepares to follow the file at `path`; nothing is read yet.
    pub fn open(
        journal: Arc<dyn Journal>,
        path: &Path,
        check: Check,
        schema: u64,
        options: Options,
    ) -> Result<Self, FollowError> {
        let refused = |reason: String| FollowError::Path {
            path: path.to_owned(),
            reason,
        };
        let absolute = std::path::absolute(path).map_err(|error| refused(error.to_string()))?;
        let Some(identity) = absolute.to_str() else {
            return Err(refused("its path is not UTF-8".to_owned()));
        };
        Ok(Self {
            journal,
            schema,
            identity: identity.to_owned(),
            path: absolute,
            check,
            options,
            under_way: None,
        })
    }

    /// Returns the identity under which the journal keeps the input's position.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Appends the next lines and returns once they are durable.
    ///
    /// After an error the next step begins again where the journal has the input. The
    /// same is true of a step that was dropped; what it was about to append may then
    /// turn up as somebody else's ([`super::JournalError::PositionConflict`]) once.
    pub async fn step(&mut self) -> Result<Progress, FollowError> {
        let UnderWay {
            input,
            appended,
            ahead,
        } = match self.under_way.take() {
            Some(under_way) => under_way,
            None => self.begin(),
        };
        let (input, prepared) = match ahead {
            Some(prepared) => (input, prepared),
            None => self.prepare(input).await?,
        };
        let prepared = prepared?;
        let progress = Progress {
            documents: prepared.documents.len() as u64,
            bytes: prepared.documents.bytes().len() as u64,
            at_end: prepared.at_end,
        };
        let mut under_way = UnderWay {
            input,
            appended,
            ahead: None,
        };
        if progress.documents > 0 {
            under_way.appended = Some(prepared.position);
            let append = self.append(prepared, appended);
            if progress.at_end {
                append.await?;
            } else {
                let (result, next) = join(append, self.prepare(under_way.input)).await;
                result?;
                let (input, ahead) = next?;
                under_way.input = input;
                under_way.ahead = Some(ahead);
            }
        }
        self.under_way = Some(under_way);
        Ok(progress)
    }

    async fn append(
        &self,
        prepared: Prepared,
        expected: Option<InputPosition>,
    ) -> Result<(), FollowError> {
        let append = Append {
            documents: prepared.documents,
            clock: wall_micros(),
            schema: self.schema,
            origin: Origin::Input {
                input: self.identity.clone(),
                expected,
                position: prepared.position,
            },
        };
        match self.journal.append(append).await {
            Ok(_) => Ok(()),
            Err(source) => Err(FollowError::Journal {
                path: self.path.clone(),
                source: Box::new(source),
            }),
        }
    }

    /// Prepares the next batch where waiting for a disk or a check is allowed.
    async fn prepare(
        &self,
        mut input: Input,
    ) -> Result<(Input, Result<Prepared, FollowError>), FollowError> {
        let prepared = tokio::task::spawn_blocking(move || {
            let prepared = input.prepare();
            (input, prepared)
        });
        match prepared.await {
            Ok(prepared) => Ok(prepared),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(FollowError::Closed {
                    path: self.path.clone(),
                }),
            },
        }
    }

    /// Follows the input until `stop` says so (or its sender is gone).
    pub async fn run(&mut self, mut stop: watch::Receiver<bool>) -> Result<(), FollowError> {
        while !*stop.borrow_and_update() {
            if !self.step().await?.at_end {
                continue;
            }
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return Ok(()),
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
        }
        Ok(())
    }

    fn begin(&self) -> UnderWay {
        let position = self.journal.position(&self.identity);
        let take_last = self.options.take_last_line_without_newline;
        UnderWay {
            input: Input::new(self.path.clone(), self.check.clone(), take_last, position),
            appended: position,
            ahead: None,
        }
    }
}
