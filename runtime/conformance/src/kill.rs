//! Kills: where a session ends in the middle of things.
//!
//! ```text
//! call 0, call 1, ... call n       before one of them, or within it: after so many waits
//! ```
//!
//! Dropping a call's future is what a crash does to a connector: its instance is
//! gone at whatever it was waiting for. Waits are counted, not timed, so that every
//! point at which a call waits for something outside can be tried, and tried again.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Where a session is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kill {
    /// The call, counted from 0; what the host does between two calls counts, too.
    pub(crate) call: usize,
    /// How many waits of the call are outlived; none kills before the call.
    pub(crate) waits: Option<usize>,
}

/// A call that ends early: after so many waits, with nothing.
pub(crate) struct Killed<F> {
    call: F,
    waits: usize,
}

impl<F: Future + Unpin> Killed<F> {
    pub(crate) fn after(waits: usize, call: F) -> Killed<F> {
        Killed { call, waits }
    }
}

impl<F: Future + Unpin> Future for Killed<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match (Pin::new(&mut self.call).poll(context), self.waits) {
            (Poll::Ready(answer), _) => Poll::Ready(Some(answer)),
            (Poll::Pending, 0) => Poll::Ready(None),
            (Poll::Pending, _) => {
                self.waits -= 1;
                Poll::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits three times before it answers.
    async fn waits_thrice() -> u32 {
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        7
    }

    #[tokio::test]
    async fn a_call_is_killed_at_a_wait_or_outlives_them() {
        for (waits, want) in [(0, None), (2, None), (3, Some(7)), (9, Some(7))] {
            let answer = Killed::after(waits, Box::pin(waits_thrice())).await;
            assert_eq!(answer, want, "{waits} waits");
        }
    }
}
