//! A sync-now call that waits as long as it takes.
//!
//! ```text
//! connect -> call -> Ack -> Heartbeats -> Done
//!    ^---- pause <----'-- UNAVAILABLE, the connection lost, silence
//! ```
//!
//! A call that is made again waits for at least what the first one waited for, so
//! losing one costs time and nothing else.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::{Client, Target};
use crate::error::{Code, Error};
use crate::v1::sync_now_response::Response;
use crate::v1::{SyncNowRequest, SyncNowResponse};

/// The first pause: a leader's session opens again in about as much.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// The longest pause: a host that is back is noticed this much later.
const PAUSE_MAX: Duration = Duration::from_secs(3);

/// How long a host may be out of reach before it was ever reached. One that is
/// restarting is back by then; a wrong address never is.
const FIRST_CONTACT_MAX: Duration = Duration::from_secs(30);

/// How long nothing may be heard: four heartbeats.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// What is heard while a call waits.
#[derive(Debug)]
pub enum Heard<'a> {
    /// A message of the host.
    Message(&'a SyncNowResponse),
    /// The call is made again, because of this.
    Again(&'a Error),
}

/// A sync-now call.
pub struct SyncNowCall {
    /// What is asked.
    pub request: SyncNowRequest,
    /// How long it may take; as long as it takes if nothing is said.
    pub timeout: Option<Duration>,
}

/// Why one attempt ended without a Done.
struct Lost {
    error: Error,
    /// Whether the host itself said anything.
    contact: bool,
}

impl SyncNowCall {
    /// Calls until there is a Done, or `hear` breaks off, or calling again is of
    /// no use.
    ///
    /// `target` is asked anew each time: a host that was restarted may be
    /// elsewhere. Running out of time is [`Code::Unavailable`].
    pub async fn run(
        &self,
        target: impl Fn() -> Result<Target, Error>,
        mut hear: impl FnMut(Heard<'_>) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let mut last = None;
        let work = self.attempts(target, &mut hear, &mut last);
        let Some(timeout) = self.timeout else {
            return work.await;
        };
        match tokio::time::timeout(timeout, work).await {
            Ok(result) => result,
            Err(_) => {
                let why = last.map_or(String::new(), |error| format!("; {error}"));
                let message = format!(
                    "the commit of {} was not done within {timeout:?}{why}. It goes on all the same",
                    self.request.task
                );
                Err(Error::new(Code::Unavailable, message))
            }
        }
    }

    async fn attempts(
        &self,
        target: impl Fn() -> Result<Target, Error>,
        hear: &mut impl FnMut(Heard<'_>) -> ControlFlow<()>,
        last: &mut Option<Error>,
    ) -> Result<(), Error> {
        let started = Instant::now();
        let (mut contact, mut pause) = (false, PAUSE_MIN);
        loop {
            let lost = match target() {
                Ok(target) => match self.attempt(&target, hear).await {
                    Ok(()) => return Ok(()),
                    Err(lost) => lost,
                },
                Err(error) => Lost {
                    error,
                    contact: false,
                },
            };
            if !lost.error.is_retryable() {
                return Err(lost.error);
            }
            if lost.contact {
                contact = true;
            } else if !contact && started.elapsed() >= FIRST_CONTACT_MAX {
                return Err(lost.error);
            }
            if hear(Heard::Again(&lost.error)).is_break() {
                return Ok(());
            }
            *last = Some(lost.error);
            // Not all at once, when many wait for one host.
            tokio::time::sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
            // A host that answered may be about to again.
            pause = match lost.contact {
                true => PAUSE_MIN * 2,
                false => (pause * 2).min(PAUSE_MAX),
            };
        }
    }

    async fn attempt(
        &self,
        target: &Target,
        hear: &mut impl FnMut(Heard<'_>) -> ControlFlow<()>,
    ) -> Result<(), Lost> {
        let client = Client::connect(target).await.map_err(|error| Lost {
            error,
            contact: false,
        })?;
        let mut contact = false;
        self.converse(&client, hear, &mut contact)
            .await
            .map_err(|error| Lost { error, contact })
    }

    async fn converse(
        &self,
        client: &Client,
        hear: &mut impl FnMut(Heard<'_>) -> ControlFlow<()>,
        contact: &mut bool,
    ) -> Result<(), Error> {
        let mut task_control = client.task_control();
        let called = heard_in_time(task_control.sync_now(self.request.clone())).await?;
        let mut answers = called
            .inspect_err(|status| *contact = !crate::error::is_of_the_connection(status))?
            .into_inner();
        *contact = true;
        loop {
            let Some(message) = heard_in_time(answers.message()).await?? else {
                return Err(Error::new(
                    Code::Unavailable,
                    "the host ended the call before the commit",
                ));
            };
            let done = matches!(message.response, Some(Response::Done(_)));
            if hear(Heard::Message(&message)).is_break() || done {
                return Ok(());
            }
        }
    }
}

async fn heard_in_time<F: Future>(answer: F) -> Result<F::Output, Error> {
    let heard = tokio::time::timeout(SILENCE_MAX, answer).await;
    heard.map_err(|_| {
        let message = format!(
            "nothing was heard from the host for {} s",
            SILENCE_MAX.as_secs()
        );
        Error::new(Code::Unavailable, message)
    })
}
