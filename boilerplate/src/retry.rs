//! Trying again: whether, and after which pause.
//!
//! ```text
//! attempt -> done
//!    ^ \---> failed -> for good, too often, or put off for too long -> the error
//!    |           '---> pause: doubling, or what the destination asks for
//!    '-------------------'
//! ```
//!
//! For what is over in a minute or two. Beyond that the error goes to the host, which
//! ends the session, pauses, and starts another. Pauses have no jitter: a task has one
//! request under way, and a replay should do what the first run did.

use std::time::{Duration, SystemTime};

use crate::error::ConnectorError;
use crate::runtime::{self, Wake};

/// Pauses of half a second to half a minute add up to a minute: a deployment or a
/// failover is over by then.
const ATTEMPTS_MAX: u32 = 8;

/// A server that dropped one connection takes the next.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// A server that is back is noticed within this.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Rate limits are counted by the minute. Who asks for more is not waited for with a
/// transaction open.
const ASKED_MAX: Duration = Duration::from_secs(5 * 60);

/// How often, and with which pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Attempts in all.
    pub attempts_max: u32,
    /// The first pause; each is twice the one before.
    pub first_pause: Duration,
    /// The longest pause of our own.
    pub pause_max: Duration,
    /// The longest pause that a destination may ask for.
    pub asked_max: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            attempts_max: ATTEMPTS_MAX,
            first_pause: FIRST_PAUSE,
            pause_max: PAUSE_MAX,
            asked_max: ASKED_MAX,
        }
    }
}

/// Whether an attempt that failed may be made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// It would fail again.
    Never,
    /// After a pause of ours.
    Soon,
    /// After the pause that the destination asks for.
    After(Duration),
}

/// An attempt that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What happened.
    pub error: ConnectorError,
    /// Whether it may be made again.
    pub again: Again,
}

impl From<ConnectorError> for Failure {
    /// Takes an error for final, unless it may be gone later.
    fn from(error: ConnectorError) -> Self {
        let again = match error.kind {
            crate::ErrorKind::Transient => Again::Soon,
            _ => Again::Never,
        };
        Self { error, again }
    }
}

/// What follows a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Pause, then try again.
    Pause(Duration),
    /// It would fail again.
    Final,
    /// That was the last attempt.
    Exhausted,
    /// The destination asks for a longer pause than it is given.
    PutOff(Duration),
}

impl Policy {
    /// Decides what follows the last of `attempts` attempts.
    pub fn decide(&self, attempts: u32, again: Again) -> Decision {
        match again {
            Again::Never => Decision::Final,
            Again::After(asked) if asked > self.asked_max => Decision::PutOff(asked),
            _ if attempts >= self.attempts_max => Decision::Exhausted,
            Again::After(asked) => Decision::Pause(asked),
            Again::Soon => {
                let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1));
                Decision::Pause(self.first_pause.saturating_mul(doubled).min(self.pause_max))
            }
        }
    }

    /// Makes attempts until one succeeds or no other may follow.
    ///
    /// # Errors
    ///
    /// That of the last attempt; transient, if the session ends during a pause.
    pub fn run<T>(
        &self,
        mut attempt: impl FnMut() -> Result<T, Failure>,
    ) -> Result<T, ConnectorError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let Failure { mut error, again } = match attempt() {
                Ok(done) => return Ok(done),
                Err(failure) => failure,
            };
            match self.decide(attempts, again) {
                Decision::Pause(pause) => {
                    if runtime::wait(pause) == Wake::Shutdown {
                        error.message += "; the session ended before another attempt";
                        return Err(error);
                    }
                }
                Decision::Final => return Err(error),
                Decision::Exhausted => {
                    error.message += &format!(" ({attempts} attempts)");
                    return Err(error);
                }
                Decision::PutOff(asked) => {
                    error.message += &format!("; it asks for a pause of {asked:?}");
                    return Err(error);
                }
            }
        }
    }
}

/// Reads a `Retry-After` header: seconds, or an instant as HTTP writes it.
pub fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|it| it.is_ascii_digit()) {
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let until = httpdate::parse_http_date(value).ok()?;
    // One that is over asks for no pause.
    Some(until.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_follows_a_failure() {
        let policy = Policy::default();
        let cases = [
            (1, Again::Soon, Decision::Pause(SECOND / 2)),
            (2, Again::Soon, Decision::Pause(SECOND)),
            (6, Again::Soon, Decision::Pause(16 * SECOND)),
            (7, Again::Soon, Decision::Pause(30 * SECOND)),
            (8, Again::Soon, Decision::Exhausted),
            (1, Again::Never, Decision::Final),
            (3, Again::After(90 * SECOND), Decision::Pause(90 * SECOND)),
            (
                1,
                Again::After(301 * SECOND),
                Decision::PutOff(301 * SECOND),
            ),
            (8, Again::After(SECOND), Decision::Exhausted),
        ];
        for (attempts, again, want) in cases {
            assert_eq!(policy.decide(attempts, again), want, "{attempts} {again:?}");
        }
        let endless = Policy {
            attempts_max: u32::MAX,
            ..policy
        };
        let late = endless.decide(u32::MAX - 1, Again::Soon);
        assert_eq!(late, Decision::Pause(PAUSE_MAX), "nothing overflows");
    }

    #[test]
    fn attempts_end_with_success_and_with_the_last_error() {
        let failed = |kind| Failure::from(ConnectorError::new(kind, "busy"));
        let mut made = 0;
        let done = Policy::default().run(|| {
            made += 1;
            match made {
                3 => Ok(made),
                _ => Err(failed(ErrorKind::Transient)),
            }
        });
        assert_eq!(done, Ok(3));
        assert_eq!(runtime::waited(), [SECOND / 2, SECOND]);

        let exhausted = Policy::default().run(|| Err::<(), _>(failed(ErrorKind::Transient)));
        assert_eq!(exhausted.unwrap_err().message, "busy (8 attempts)");
        assert_eq!(runtime::waited().len(), 7);

        let last = Policy::default().run(|| Err::<(), _>(failed(ErrorKind::Auth)));
        assert_eq!(last.unwrap_err().message, "busy");
        assert!(runtime::waited().is_empty());
    }

    #[test]
    fn a_pause_is_asked_for_in_seconds_or_as_an_instant() {
        // 2026-11-06 08:49:37 UTC.
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_793_954_977);
        let cases = [
            ("120", Some(120 * SECOND)),
            (" 0 ", Some(Duration::ZERO)),
            ("99999999999999999999", Some(Duration::from_secs(u64::MAX))),
            ("Fri, 06 Nov 2026 08:50:37 GMT", Some(60 * SECOND)),
            ("Fri, 06 Nov 2026 08:49:00 GMT", Some(Duration::ZERO)),
            ("soon", None),
            ("-1", None),
            ("1.5", None),
            ("", None),
        ];
        for (value, want) in cases {
            assert_eq!(retry_after(value, now), want, "{value:?}");
        }
    }
}
