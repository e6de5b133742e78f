//! Stopping a session: asked for once, seen by everything that waits.
//!
//! ```text
//! Running -> Finishing -> Stopped
//!       '-----------------^
//! ```

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Running,
    /// Finish what was begun, without waiting for anything on the way.
    Finishing,
    Stopped {
        at: Instant,
    },
}

/// Asks sessions to stop. Dropping it asks for nothing.
#[derive(Debug)]
pub struct StopHandle(watch::Sender<Asked>);

impl StopHandle {
    /// Makes a handle and what sessions listen to.
    pub fn new() -> (StopHandle, Stop) {
        let (sender, receiver) = watch::channel(Asked::Running);
        (StopHandle(sender), Stop(receiver))
    }

    /// Ends a guest's `wait`, now and from now on; its calls go on.
    pub fn finish(&self) {
        self.0.send_if_modified(|asked| {
            let first = *asked == Asked::Running;
            if first {
                *asked = Asked::Finishing;
            }
            first
        });
    }

    /// Ends a guest's `wait` now, and its call after the grace. The second
    /// time does nothing.
    pub fn stop(&self) {
        self.0.send_if_modified(|asked| {
            let first = !matches!(asked, Asked::Stopped { .. });
            if first {
                *asked = Asked::Stopped { at: Instant::now() };
            }
            first
        });
    }
}

/// What a session listens to.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<Asked>);

impl Stop {
    /// Makes one that is never asked to stop.
    pub fn never() -> Stop {
        StopHandle::new().1
    }

    /// Returns when the stop was asked for, if it was.
    pub(super) fn asked_at(&self) -> Option<Instant> {
        match *self.0.borrow() {
            Asked::Stopped { at } => Some(at),
            _ => None,
        }
    }

    /// Completes when the guest is to wait for nothing any more; never, if
    /// that cannot be asked any more.
    pub(super) async fn finishing(&self) {
        self.until(|asked| *asked != Asked::Running).await;
    }

    /// Completes when a stop was asked for and the grace is over.
    pub(super) async fn over(&self, grace: Duration) {
        let stopped = |asked: &Asked| matches!(asked, Asked::Stopped { .. });
        if let Asked::Stopped { at } = self.until(stopped).await {
            tokio::time::sleep_until(at + grace).await;
        }
    }

    async fn until(&self, reached: impl FnMut(&Asked) -> bool) -> Asked {
        let mut receiver = self.0.clone();
        let asked = receiver.wait_for(reached).await.map(|asked| *asked);
        match asked {
            Ok(asked) => asked,
            // Nobody is left who could ask.
            Err(_) => std::future::pending().await,
        }
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
        let timeout = tokio::time::timeout(STEP, never.finishing()).await;
        assert!(timeout.is_err());
    }

    #[tokio::test]
    async fn finishing_ends_waits_and_not_calls() {
        let (handle, stop) = StopHandle::new();
        handle.finish();
        stop.finishing().await;
        assert_eq!(stop.asked_at(), None);
        let over = tokio::time::timeout(STEP, stop.over(Duration::ZERO)).await;
        assert!(over.is_err());
        handle.stop();
        stop.over(Duration::ZERO).await;
        let asked = stop.asked_at();
        handle.finish();
        assert_eq!(stop.asked_at(), asked, "what is stopped stays so");
    }
}
