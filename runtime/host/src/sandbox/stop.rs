//! Stopping a session: asked for once, seen by everything that waits.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// Asks sessions to stop. Dropping it asks for nothing.
#[derive(Debug)]
pub struct StopHandle(watch::Sender<Option<Instant>>);

impl StopHandle {
    /// Makes a handle and what sessions listen to.
    pub fn new() -> (StopHandle, Stop) {
        let (sender, receiver) = watch::channel(None);
        (StopHandle(sender), Stop(receiver))
    }

    /// Ends a guest's `wait` now, and its call after the grace. The second
    /// time does nothing.
    pub fn stop(&self) {
        self.0.send_if_modified(|asked| {
            let first = asked.is_none();
            asked.get_or_insert_with(Instant::now);
            first
        });
    }
}

/// What a session listens to.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<Option<Instant>>);

impl Stop {
    /// Makes one that is never asked to stop.
    pub fn never() -> Stop {
        StopHandle::new().1
    }

    /// Returns when the stop was asked for, if it was.
    pub(super) fn asked_at(&self) -> Option<Instant> {
        *self.0.borrow()
    }

    /// Completes when a stop is asked for; never, if that cannot happen any
    /// more.
    pub(super) async fn asked(&self) -> Instant {
        let mut receiver = self.0.clone();
        let asked = match receiver.wait_for(Option::is_some).await {
            Ok(asked) => *asked,
            Err(_) => None,
        };
        match asked {
            Some(at) => at,
            None => std::future::pending().await,
        }
    }

    /// Completes when a stop was asked for and the grace is over.
    pub(super) async fn over(&self, grace: Duration) {
        let asked = self.asked().await;
        tokio::time::sleep_until(asked + grace).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Far above what a busy machine adds to a sleep.
    const STEP: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn the_grace_counts_from_the_first_request() {
        let (handle, stop) = StopHandle::new();
        assert_eq!(stop.asked_at(), None);
        handle.stop();
        let asked = stop.asked_at().unwrap();
        tokio::time::sleep(STEP).await;
        handle.stop();
        assert_eq!(stop.asked_at(), Some(asked));
        stop.over(3 * STEP).await;
        assert!(asked.elapsed() >= 3 * STEP);
    }

    #[tokio::test]
    async fn a_dropped_handle_stops_nothing() {
        let never = Stop::never();
        let timeout = tokio::time::timeout(STEP, never.asked()).await;
        assert!(timeout.is_err());
    }
}
