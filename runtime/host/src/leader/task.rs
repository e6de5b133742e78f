//! A task: one session after another, until it is stopped or has failed.
//!
//! ```text
//! Starting -> Running -> (Stopped | Failed)
//!    ^-- pause <-'
//! ```
//!
//! A task does not belong to whoever started it: dropping a caller, a watcher
//! or a command line changes nothing about it.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tidegate_core::{Extents, Frontier, LeftOut, Record, Reply, Status};
use tokio::sync::{mpsc, oneshot, watch};

use super::config::TaskConfig;
use super::error::SessionError;
use super::records::Outcome;
use super::restart::{self, Decision, Failure};
use super::startup::{Ended, TaskContext};
use super::sync_now::{Caller, SyncNowCall, SyncNowError, Through};
use crate::clock::wall_micros;
use crate::input::with_causes;

/// Commands that may wait for a task. Each is a caller that waits for its
/// answer, so a full queue slows callers down and loses nothing.
const COMMANDS_MAX: usize = 64;

/// What callers ask of a task.
pub(crate) enum Command {
    /// Commit what is open, and answer when it can be queried.
    SyncNow { through: Through, caller: Caller },
    /// Go on with another config, as soon as what is open is closed.
    Change {
        config: Box<TaskConfig>,
        /// Told once the config is the task's. A task that ends instead drops it.
        taken: oneshot::Sender<()>,
    },
    /// Close, commit, acknowledge, and end.
    Stop,
}

/// What a task is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// A session is about to open, perhaps again after a failure.
    Starting {
        /// What ended the last session, if anything did.
        after: Option<String>,
    },
    /// A session is open.
    Running,
    /// It ended in order.
    Stopped,
    /// It gave up.
    Failed {
        /// Why.
        message: String,
    },
}

impl TaskState {
    /// Says whether the task is over.
    pub fn is_over(&self) -> bool {
        matches!(self, TaskState::Stopped | TaskState::Failed { .. })
    }
}

/// What watchers see of a task.
#[derive(Clone, Debug)]
pub struct TaskView {
    /// What it is doing.
    pub state: TaskState,
    /// Transactions committed since the host started.
    pub transactions: u64,
    /// Documents read since the host started, committed or not. What a session reads
    /// again after a failure is not counted again.
    pub read: u64,
    /// Documents that are in the journals and not read.
    pub to_read: u64,
    /// Rows stored or deleted since the host started.
    pub stored: u64,
    /// Documents that were left out since the task first ran, as they could not be
    /// stored.
    pub left_out: LeftOut,
    /// The leader as it last stood, while a session is open.
    pub status: Option<Status>,
}

impl TaskView {
    fn new(state: TaskState) -> TaskView {
        TaskView {
            state,
            transactions: 0,
            read: 0,
            to_read: 0,
            stored: 0,
            left_out: LeftOut::default(),
            status: None,
        }
    }

    /// Returns the view of a task that does not run.
    pub(crate) fn stopped(left_out: LeftOut) -> TaskView {
        TaskView {
            left_out,
            ..TaskView::new(TaskState::Stopped)
        }
    }
}

/// Counts what a session does, for watchers.
#[derive(Clone)]
pub(crate) struct Progress {
    view: Arc<watch::Sender<TaskView>>,
    reading: Arc<Mutex<Reading>>,
}

/// How far was ever read, for the count of what is read.
#[derive(Default)]
struct Reading {
    furthest: Frontier,
    /// Documents that are being read for the first time.
    new: u64,
}

impl Reading {
    fn extend(&mut self, extents: &Extents) {
        self.new += self.furthest.beyond(extents);
        self.furthest = self.furthest.advanced(extents);
    }

    /// Returns how many of the documents that were read are read for the first time. A
    /// filter may have passed fewer than are new.
    fn take(&mut self, documents: u64) -> u64 {
        let new = documents.min(self.new);
        self.new -= new;
        new
    }
}

impl Progress {
    pub(crate) fn new() -> Progress {
        let view = TaskView::new(TaskState::Starting { after: None });
        Progress {
            view: Arc::new(watch::Sender::new(view)),
            reading: Arc::default(),
        }
    }

    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.reading
            .lock()
            .expect("nothing panics while it holds this lock")
    }

    pub(crate) fn extend(&self, extents: &Extents) {
        self.reading().extend(extents);
    }

    pub(crate) fn count_reply(&self, reply: &Reply) {
        match reply {
            Reply::Extended(extended) => {
                let new = self.reading().take(extended.documents);
                self.view.send_modify(|view| view.read += new);
            }
            Reply::Stored { rows } => {
                self.view
                    .send_modify(|view| view.stored += rows.values().sum::<u64>());
            }
            _ => {}
        }
    }

    /// A record without a hint and not yet acknowledged is a commit.
    pub(crate) fn count_persisted(&self, record: &Record) {
        self.see(record);
        if record.hinted.is_none() && !record.committed.acknowledged {
            // What is new by now was kept back by a filter.
            self.reading().new = 0;
            self.view.send_modify(|view| view.transactions += 1);
        }
    }

    /// Takes over what the record has counted.
    pub(crate) fn see(&self, record: &Record) {
        self.view.send_if_modified(|view| {
            let before = std::mem::replace(&mut view.left_out, record.left_out);
            before != view.left_out
        });
    }

    pub(crate) fn publish(&self, status: Status, to_read: u64) {
        self.view.send_modify(|view| {
            view.status = Some(status);
            view.to_read = to_read;
        });
    }

    pub(crate) fn enter(&self, state: TaskState) {
        self.view.send_modify(|view| {
            view.status = view.status.take().filter(|_| state == TaskState::Running);
            view.state = state;
        });
    }

    fn transactions(&self) -> u64 {
        self.view.borrow().transactions
    }
}

/// A running task, for whoever asks something of it.
#[derive(Clone)]
pub struct TaskHandle {
    name: String,
    commands: mpsc::Sender<Command>,
    view: Arc<watch::Sender<TaskView>>,
}

impl TaskHandle {
    /// Starts a task on the current runtime. The task goes on whoever holds
    /// the handle.
    pub(crate) fn start(context: TaskContext) -> TaskHandle {
        let (commands, received) = mpsc::channel(COMMANDS_MAX);
        let handle = TaskHandle {
            name: context.name().to_owned(),
            commands,
            view: context.progress.view.clone(),
        };
        let task = Task {
            context,
            commands: received,
            failures_in_a_row: 0,
        };
        tokio::spawn(task.run());
        handle
    }

    /// Returns the task's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Watches the task.
    pub fn watch(&self) -> watch::Receiver<TaskView> {
        self.view.subscribe()
    }

    /// Asks for a commit of what is open; the call tells when it can be queried.
    ///
    /// # Errors
    ///
    /// [`SyncNowError::NotRunning`] if the task is over.
    pub async fn sync_now(&self, through: Through) -> Result<SyncNowCall, SyncNowError> {
        let (caller, call) = SyncNowCall::new();
        let command = Command::SyncNow { through, caller };
        if self.commands.send(command).await.is_err() {
            let reason = match &self.view.borrow().state {
                TaskState::Failed { message } => message.clone(),
                _ => "it was stopped".to_owned(),
            };
            return Err(SyncNowError::NotRunning { reason });
        }
        Ok(call)
    }

    /// Has the task go on with another config; says whether it does. One that is
    /// ending, for whatever reason, does not.
    pub(crate) async fn change(&self, config: TaskConfig) -> bool {
        let (taken, answer) = oneshot::channel();
        let config = Box::new(config);
        // A task that is over drops the command, and with it the answer.
        let _ = self.commands.send(Command::Change { config, taken }).await;
        answer.await.is_ok()
    }

    /// Asks the task to close, commit, acknowledge and end.
    pub async fn stop(&self) {
        // A task that is over needs no stop.
        let _ = self.commands.send(Command::Stop).await;
    }

    /// Waits until the task is over, and returns how it ended.
    pub async fn over(&self) -> TaskView {
        let mut view = self.view.subscribe();
        let over = view.wait_for(|view| view.state.is_over()).await;
        over.expect("the handle itself holds the sender").clone()
    }
}

/// How a pause ended.
enum Paused {
    Over,
    Changed(Box<TaskConfig>),
    Stopped,
}

struct Task {
    context: TaskContext,
    commands: mpsc::Receiver<Command>,
    failures_in_a_row: u32,
}

impl Task {
    async fn run(mut self) {
        let mut after = None;
        let state = loop {
            self.context.progress.enter(TaskState::Starting {
                after: after.take(),
            });
            let transactions = self.context.progress.transactions();
            match self.context.session(&mut self.commands).await {
                Ok(Ended::Stopped) => break TaskState::Stopped,
                // What an older spec left is finished; the next one is today's.
                Ok(Ended::Finished) => {}
                Ok(Ended::Changed) => self.failures_in_a_row = 0,
                Err(error) => {
                    if self.context.progress.transactions() > transactions {
                        self.failures_in_a_row = 0;
                    }
                    let message = self.describe(&error);
                    match self.judge(&error) {
                        Decision::GiveUp => break TaskState::Failed { message },
                        Decision::Restart(pause) => {
                            self.warn(&error, pause, &message);
                            self.context.progress.enter(TaskState::Starting {
                                after: Some(message.clone()),
                            });
                            after = Some(message.clone());
                            match self.pause(pause).await {
                                Paused::Over => {}
                                Paused::Stopped => break TaskState::Failed { message },
                                Paused::Changed(config) => {
                                    self.context.config = *config;
                                    self.failures_in_a_row = 0;
                                }
                            }
                        }
                    }
                }
            }
        };
        self.end(state).await;
    }

    /// Puts an error into words, under the task's name.
    fn describe(&self, error: &SessionError) -> String {
        // One line: what reads logs reads lines.
        let text = with_causes(error)
            .split('\n')
            .map(str::trim)
            .collect::<Vec<_>>()
            .join(" ");
        let task = format!("task {}: ", self.context.name());
        match text.starts_with(&task) {
            true => text,
            false => task + &text,
        }
    }

    fn warn(&self, error: &SessionError, pause: Duration, message: &str) {
        // Whoever left a document out has said so, without its key in between.
        if error.failure() != Failure::LeftOut {
            tracing::warn!(task = self.context.name(), ?pause, "restarting: {message}");
        }
    }

    fn judge(&mut self, error: &SessionError) -> Decision {
        // A document that is left out is progress.
        self.failures_in_a_row = match error.failure() {
            Failure::LeftOut => 0,
            _ => self.failures_in_a_row + 1,
        };
        restart::evaluate(&restart::Inputs {
            failure: error.failure(),
            failures_in_a_row: self.failures_in_a_row,
            until_caught_up: self.context.until_caught_up,
            stopping: self.context.stopping,
        })
    }

    /// Waits out a pause, as long as nothing ends it.
    async fn pause(&mut self, pause: Duration) -> Paused {
        let over = tokio::time::sleep(pause);
        tokio::pin!(over);
        loop {
            tokio::select! {
                () = &mut over => return Paused::Over,
                command = self.commands.recv() => match command {
                    // A caller in the pause is told to call again.
                    Some(Command::SyncNow { caller, .. }) => drop(caller),
                    Some(Command::Change { config, taken }) => {
                        let _ = taken.send(());
                        return Paused::Changed(config);
                    }
                    Some(Command::Stop) | None => return Paused::Stopped,
                },
            }
        }
    }

    async fn end(self, state: TaskState) {
        let outcome = match &state {
            TaskState::Failed { message } => {
                tracing::debug!(task = self.context.name(), "gave up: {message}");
                Outcome {
                    failed: true,
                    message: message.clone(),
                    at_micros: wall_micros(),
                }
            }
            _ => Outcome {
                failed: false,
                message: String::new(),
                at_micros: wall_micros(),
            },
        };
        if let Err(error) = self.context.records.put_outcome(&outcome).await {
            tracing::error!(
                task = self.context.name(),
                "cannot record how the task ended: {error}"
            );
        }
        self.context.progress.enter(state);
    }
}
