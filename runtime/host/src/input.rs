//! An input file that is followed into a collection's journal.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::journal::follow::{FollowError, Follower};

/// How an input ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputEnd {
    /// It has not.
    Open,
    /// Everything in it is in the journal, or it was stopped.
    Done,
    /// It stopped at a line, or could not be read: why.
    Failed(String),
}

/// A followed input. Dropping it stops the input after the batch at hand.
pub struct InputHandle {
    stop: watch::Sender<bool>,
    end: Arc<watch::Sender<InputEnd>>,
}

impl InputHandle {
    /// Follows on the data runtime: to the end of the file, or until stopped.
    pub(crate) fn start(mut follower: Follower, to_the_end: bool, data: &Handle) -> InputHandle {
        let (stop, stopped) = watch::channel(false);
        let end = Arc::new(watch::Sender::new(InputEnd::Open));
        let ended = end.clone();
        data.spawn(async move {
            let followed = match to_the_end {
                true => follow_to_the_end(&mut follower, stopped).await,
                false => follower.run(stopped).await,
            };
            ended.send_replace(match followed {
                Ok(()) => InputEnd::Done,
                Err(error) => {
                    let message = with_causes(&error);
                    tracing::debug!("an input stopped: {message}");
                    InputEnd::Failed(message)
                }
            });
        });
        InputHandle { stop, end }
    }

    /// Returns how it ended, if it has.
    pub fn end(&self) -> InputEnd {
        self.end.borrow().clone()
    }

    /// Waits until it has ended.
    pub fn ended(&self) -> impl Future<Output = ()> + use<> {
        let mut end = self.end.subscribe();
        async move {
            // The sender lives as long as the follower.
            let _ = end.wait_for(|end| *end != InputEnd::Open).await;
        }
    }

    /// Stops it after the batch at hand.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }
}

async fn follow_to_the_end(
    follower: &mut Follower,
    stopped: watch::Receiver<bool>,
) -> Result<(), FollowError> {
    while !*stopped.borrow() {
        if follower.step().await?.at_end {
            break;
        }
    }
    Ok(())
}

/// Puts an error and its causes into one line, without saying one twice.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}
