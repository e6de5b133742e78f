//! The connector's own task: one instance, one call at a time.
//!
//! ```text
//! submit -> queue -> Session::call -> answer
//! ```
//!
//! It is a task of its own so that a call may take minutes (an acknowledgement
//! that applies staged work) while the shard reads and combines the next
//! transaction. The first call that fails is the last one: the session is
//! dropped with its instance, and never used again.

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use crate::sandbox::{Activity, Component, Fault, Session, SessionConfig, StopHandle};

/// Calls that may wait for the instance: the batch that is next and one more,
/// so that the shard packs a batch while the connector works on another, and no
/// further, since each holds up to a megabyte.
const CALLS_MAX: usize = 2;

type Call = Box<dyn for<'a> FnOnce(&'a mut Session) -> BoxFuture<'a, bool> + Send>;

/// A connector's session. Dropping it ends the session at once.
pub struct Connector {
    calls: mpsc::Sender<Call>,
    /// Held for its drop.
    _running: Running,
    handle: ConnectorHandle,
}

/// The task of a session. Dropping it ends the session at once, also one that
/// has not started yet.
struct Running {
    task: AbortHandle,
    stop: Arc<StopHandle>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Aborting drops a call that waits; one that works in SQLite looks at
        // the stop.
        self.stop.stop();
        self.task.abort();
    }
}

/// What can be asked of a connector's session while calls are under way.
#[derive(Clone)]
pub struct ConnectorHandle {
    stop: Arc<StopHandle>,
    activity: Activity,
    /// Closes when the instance is dropped.
    gone: watch::Receiver<()>,
}

impl ConnectorHandle {
    /// Ends the connector's own waits, now and from now on.
    pub fn finish(&self) {
        self.stop.finish();
    }

    /// Returns how many calls there were between host and connector.
    pub fn activity(&self) -> u64 {
        self.activity.calls()
    }

    /// Waits until the instance is gone: whatever it held, the next session may
    /// take.
    pub async fn gone(mut self) {
        // Nothing is ever sent.
        while self.gone.changed().await.is_ok() {}
    }
}

/// A call that was submitted.
pub struct Answer<T>(oneshot::Receiver<Result<T, Fault>>);

impl<T> Answer<T> {
    /// Waits for the call's result; `None` if an earlier call ended the session.
    pub async fn wait(self) -> Option<Result<T, Fault>> {
        self.0.await.ok()
    }
}

impl Connector {
    /// Instantiates the component on the data runtime.
    pub async fn start(
        data: &Handle,
        component: Component,
        config: SessionConfig,
    ) -> Result<Connector, Fault> {
        let (stop, stopped) = StopHandle::new();
        let config = SessionConfig {
            stop: stopped,
            ..config
        };
        let (alive, gone) = watch::channel(());
        let (calls, mut received) = mpsc::channel::<Call>(CALLS_MAX);
        let (started, starting) = oneshot::channel();
        let task = data.spawn(async move {
            // Dropped after the session, however the task ends.
            let _alive = alive;
            let mut session = match component.start(config).await {
                Ok(session) => session,
                Err(fault) => {
                    let _ = started.send(Err(fault));
                    return;
                }
            };
            // A starter that gave up drops the connector, which ends this task.
            let _ = started.send(Ok(session.activity()));
            while let Some(call) = received.recv().await {
                if !call(&mut session).await {
                    break;
                }
            }
        });
        let running = Running {
            task: task.abort_handle(),
            stop: Arc::new(stop),
        };
        let started = starting
            .await
            .expect("the data runtime outlives the control runtime");
        let handle = ConnectorHandle {
            stop: running.stop.clone(),
            activity: started?,
            gone,
        };
        Ok(Connector {
            calls,
            _running: running,
            handle,
        })
    }

    /// Submits a call; it is made after those submitted before it.
    pub async fn submit<T, F>(&self, call: F) -> Answer<T>
    where
        T: Send + 'static,
        F: for<'a> FnOnce(&'a mut Session) -> BoxFuture<'a, Result<T, Fault>> + Send + 'static,
    {
        let (answer, received) = oneshot::channel();
        let call: Call = Box::new(move |session| {
            Box::pin(async move {
                let result = call(session).await;
                let goes_on = result.is_ok();
                // Nobody waits for the answer of an aborted transaction.
                let _ = answer.send(result);
                goes_on
            })
        });
        // A session that is over drops the call, which tells the caller.
        let _ = self.calls.send(call).await;
        Answer(received)
    }

    /// Returns what can be asked of the session meanwhile.
    pub fn handle(&self) -> ConnectorHandle {
        self.handle.clone()
    }

    /// Ends the session and waits until its instance is gone.
    pub async fn end(self) {
        let handle = self.handle();
        drop(self);
        handle.gone().await;
    }
}
