//! Tells computing from waiting, and ends what takes too long.
//!
//! A guest cannot be asked what it does, but the ways it gives the thread back
//! differ:
//!
//! ```text
//! poll the call -> ready                       it returned
//!               -> pending after a tick        it computes: the ticks count
//!               -> pending without a tick      it waits for the import it called last
//! ```
//!
//! Every import says its name when it is called. That resets the count of
//! computing, and tells one wait from the next.
//!
//! Computing is counted from tick to tick while the guest has the thread: time
//! in the queue behind other guests is not its own, and neither is time that
//! the host spends on its behalf.

use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use super::limits::Limits;
use super::stop::Stop;

/// What the guest does, as far as the host can see.
#[derive(Debug, Default)]
pub(super) struct Watchdog(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The import that was called last.
    import: &'static str,
    /// How many imports were called.
    imports: u64,
    /// Whether the guest gave the thread back at a tick.
    ticked: bool,
    /// Since when the guest has had the thread; not before the first tick
    /// after an import, because the host may have kept it until then.
    computing_since: Option<Instant>,
    /// How long it has computed since the last import.
    computed: Duration,
}

/// A guest computed for too long without calling the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("computed for {0:?} without calling the host")]
pub(super) struct ComputeExceeded(pub(super) Duration);

/// A guest waited too long for an import that blocks its thread, so that only
/// the import itself could end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("waited {limit:?} for {import}")]
pub(super) struct ImportExceeded {
    pub(super) import: &'static str,
    pub(super) limit: Duration,
}

/// Why a call was ended from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interruption {
    Import(&'static str),
    Call(Duration),
    Stopped,
}

impl Watchdog {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0
            .lock()
            .expect("nothing panics while it holds this lock")
    }

    /// Notes that the guest called an import, or that the host called the
    /// guest.
    pub(super) fn enter(&self, import: &'static str) {
        let mut state = self.state();
        state.import = import;
        state.imports += 1;
        state.computing_since = None;
        state.computed = Duration::ZERO;
    }

    /// Returns how many calls there were between the guest and the host.
    pub(super) fn calls(&self) -> u64 {
        self.state().imports
    }

    /// Notes that the guest was computing when the clock ticked.
    pub(super) fn tick(&self, now: Instant, limit: Duration) -> Result<(), ComputeExceeded> {
        let mut state = self.state();
        if let Some(since) = state.computing_since {
            state.computed += now - since;
        }
        state.computing_since = Some(now);
        state.ticked = true;
        if state.computed > limit {
            return Err(ComputeExceeded(limit));
        }
        Ok(())
    }

    /// Notes that the guest gets the thread again.
    fn resume(&self, now: Instant) {
        let mut state = self.state();
        state.ticked = false;
        if state.computing_since.is_some() {
            state.computing_since = Some(now);
        }
    }

    /// Returns the import that the guest waits for, and how many came before
    /// it, if it waits at all.
    fn waiting(&self) -> Option<(&'static str, u64)> {
        let state = self.state();
        (!state.ticked).then_some((state.import, state.imports))
    }

    /// Runs a call until it is done, takes too long, or is stopped.
    ///
    /// The call is not dropped here: its caller does it, together with the
    /// store that is then in the middle of something.
    pub(super) async fn watch<T>(
        &self,
        mut call: Pin<&mut (impl Future<Output = T> + ?Sized)>,
        limits: &Limits,
        stop: &Stop,
    ) -> Result<T, Interruption> {
        let mut stopped = pin!(stop.over(limits.stop_grace));
        let mut whole = pin!(async {
            match limits.call {
                Some(limit) => sleep(limit).await,
                None => pending().await,
            }
        });
        let mut wait = None;
        poll_fn(|context| {
            self.resume(Instant::now());
            if let Poll::Ready(done) = call.as_mut().poll(context) {
                return Poll::Ready(Ok(done));
            }
            if stopped.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(Interruption::Stopped));
            }
            if let (Some(limit), Poll::Ready(())) = (limits.call, whole.as_mut().poll(context)) {
                return Poll::Ready(Err(Interruption::Call(limit)));
            }
            self.poll_wait(&mut wait, limits.import, context)
                .map(|import| Err(Interruption::Import(import)))
        })
        .await
    }

    /// Completes when the guest has waited too long for one import.
    fn poll_wait(
        &self,
        wait: &mut Option<Wait>,
        limit: Duration,
        context: &mut Context<'_>,
    ) -> Poll<&'static str> {
        let Some((import, number)) = self.waiting() else {
            *wait = None;
            return Poll::Pending;
        };
        let wait = match wait {
            Some(wait) if wait.number == number => wait,
            _ => wait.insert(Wait {
                number,
                timer: Box::pin(sleep(limit)),
            }),
        };
        wait.timer.as_mut().poll(context).map(|()| import)
    }
}

/// The wait for one import.
struct Wait {
    number: u64,
    timer: Pin<Box<Sleep>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn computing_counts_between_ticks_and_not_in_the_queue() {
        enum Step {
            Enter,
            Resume(u64),
            Tick(u64),
        }
        use Step::{Enter, Resume, Tick};
        struct Case {
            name: &'static str,
            steps: Vec<Step>,
            want: bool,
        }
        let cases = [
            Case {
                name: "two seconds between ticks",
                steps: vec![Enter, Resume(0), Tick(1), Tick(2), Tick(4)],
                want: false,
            },
            Case {
                name: "within the limit",
                steps: vec![Enter, Resume(0), Tick(1), Tick(2), Tick(3)],
                want: true,
            },
            Case {
                name: "an hour in the queue",
                steps: vec![Enter, Resume(0), Tick(1), Resume(3600), Tick(3602)],
                want: true,
            },
            Case {
                name: "an hour in a blocking import",
                steps: vec![Enter, Tick(1), Tick(2), Enter, Tick(3600), Tick(3602)],
                want: true,
            },
            Case {
                name: "an import starts the count anew",
                steps: vec![Enter, Tick(1), Tick(3), Enter, Tick(4), Tick(6)],
                want: true,
            },
        ];
        for case in cases {
            let watchdog = Watchdog::default();
            let start = Instant::now();
            let at = |seconds: u64| start + SECOND * u32::try_from(seconds).unwrap();
            let mut ok = true;
            for step in case.steps {
                match step {
                    Enter => watchdog.enter("store"),
                    Resume(seconds) => watchdog.resume(at(seconds)),
                    Tick(seconds) => ok &= watchdog.tick(at(seconds), 2 * SECOND).is_ok(),
                }
            }
            assert_eq!(ok, case.want, "{}", case.name);
        }
    }

    /// Far above what a busy machine adds to a sleep.
    const STEP: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn each_import_has_its_own_limit() {
        let watchdog = Watchdog::default();
        let limits = Limits {
            import: 5 * STEP,
            ..Limits::default()
        };
        let call = async {
            for _ in 0..8 {
                watchdog.enter("runtime.wait");
                sleep(STEP).await;
            }
            watchdog.enter("net.read");
            pending::<()>().await;
        };
        let start = Instant::now();
        let ended = watchdog.watch(pin!(call), &limits, &Stop::never()).await;
        assert_eq!(ended, Err(Interruption::Import("net.read")));
        assert!(start.elapsed() >= 13 * STEP);
    }

    #[tokio::test]
    async fn the_whole_call_has_a_limit_only_if_it_is_set() {
        let watchdog = Watchdog::default();
        let call = || async {
            for _ in 0..8 {
                watchdog.enter("runtime.wait");
                sleep(STEP).await;
            }
        };
        let mut limits = Limits::default();
        let ended = watchdog.watch(pin!(call()), &limits, &Stop::never()).await;
        assert_eq!(ended, Ok(()));
        limits.call = Some(2 * STEP);
        let ended = watchdog.watch(pin!(call()), &limits, &Stop::never()).await;
        assert_eq!(ended, Err(Interruption::Call(2 * STEP)));
    }
}
