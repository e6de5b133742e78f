//! Drives one session's leader: each action is one piece of IO, each answer
//! one event.
//!
//! ```text
//!            commands, journal ends, replies, re-read records
//!                               |
//! step -> Wait ----------------> record -> step -> ...
//!      -> Extend, Flush, ... -> a message to the shards
//!      -> Persist -----------> a write of the record
//!      -> Stop --------------> the session's end
//! ```
//!
//! What is to be done is decided in `tidegate-core`; here is only how.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tidegate_core::{
    Action, Event, Frontier, Key, Leader, OnError, Persist, Record, Refusal, Refused, ShardId,
    Source, Status, WaiterId,
};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use super::config::TaskConfig;
use super::error::SessionError;
use super::records::{Records, RecordsError, Revision};
use super::stop::{LOOK_MILLIS, Stopping};
use super::sync_now::{Caller, SyncNowAnswer, Through};
use super::task::{Command, Progress};
use crate::clock::Clock;
use crate::journal::Journal;
use crate::shard::combine::shown_key;
use crate::shard::{Reported, Request, Shard, ShardError};

/// How much one extension reads over all sources, about. Policies are looked
/// at between extensions, so this bounds how far a transaction overshoots a
/// ceiling; it is large enough that the messages around it cost nothing.
const EXTEND_BYTES: u64 = 4 << 20;

/// A source with its journal.
pub(crate) struct Input {
    pub(crate) source: Source,
    pub(crate) journal: Arc<dyn Journal>,
}

/// Everything that one session's actor owns.
pub(crate) struct Actor {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) shards: Vec<Shard>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) records: Records,
    pub(crate) revision: Revision,
    /// What is done about documents that cannot be stored, by binding.
    pub(crate) on_error: Vec<OnError>,
    /// What was read so far, or will be by extensions that were asked for.
    pub(crate) read: Frontier,
    pub(crate) answers: mpsc::Receiver<Reported>,
    /// The write of the record that is under way. The leader asks for one at a
    /// time.
    pub(crate) writing: Option<BoxFuture<'static, Result<(Record, Revision), RecordsError>>>,
    pub(crate) callers: BTreeMap<WaiterId, Caller>,
    pub(crate) next_waiter: u64,
    pub(crate) progress: Progress,
    /// Set once the task was told to stop.
    pub(crate) stopping: Option<Stopping>,
    /// The config that the task is to have instead, once it was changed.
    pub(crate) next: Option<Box<TaskConfig>>,
    /// Whether every handle to the task is gone.
    pub(crate) abandoned: bool,
}

impl Actor {
    /// Leads until the session is stopped or fails. `queued` came while it
    /// opened.
    pub(crate) async fn lead(
        &mut self,
        mut leader: Leader,
        queued: Vec<Command>,
        commands: &mut mpsc::Receiver<Command>,
    ) -> Result<(), SessionError> {
        for command in queued {
            self.command(&mut leader, command)?;
        }
        let ends_changed = Arc::new(Notify::new());
        let _watching = self.watch_ends(&ends_changed);
        self.report_ready(&mut leader)?;
        loop {
            let (action, next) = leader.step(self.clock.now());
            leader = next;
            match action {
                Action::Wait { wake_after_millis } => {
                    self.publish(leader.status(self.clock.now()));
                    self.wait(&mut leader, commands, &ends_changed, wake_after_millis)
                        .await?;
                }
                Action::Extend { txn, to, extents } => {
                    self.read = self.read.advanced(&extents);
                    self.progress.extend(&extents);
                    self.send(&to, |_| Request::Extend {
                        txn,
                        extents: extents.clone(),
                    })
                    .await;
                    self.report_ready(&mut leader)?;
                }
                Action::Stop => {
                    self.publish(leader.status(self.clock.now()));
                    return Ok(());
                }
                Action::Abandon => return Err(SessionError::Abandoned),
                action => self.act(action).await,
            }
        }
    }

    /// Waits for the next event and records it.
    async fn wait(
        &mut self,
        leader: &mut Leader,
        commands: &mut mpsc::Receiver<Command>,
        ends_changed: &Notify,
        wake_after_millis: Option<u64>,
    ) -> Result<(), SessionError> {
        if self.gives_up() {
            return Err(SessionError::Stuck);
        }
        let look = self.stopping.map(|_| LOOK_MILLIS);
        let wake = async {
            match wake_after_millis.into_iter().chain(look).min() {
                Some(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // Answers first: they free what callers wait for.
            biased;
            answer = self.answers.recv() => {
                match self.event_of(answer.ok_or(ShardError::Gone)?) {
                    Ok(event) => leader.record(event)?,
                    Err(ShardError::Refused { refusal, cause }) => {
                        return Err(self.refuse(leader, *refusal, *cause).await);
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            written = written(&mut self.writing) => self.persisted(leader, written?)?,
            command = commands.recv(), if !self.abandoned => {
                // Nobody is left who could stop the task.
                self.abandoned = command.is_none();
                self.command(leader, command.unwrap_or(Command::Stop))?;
            }
            () = ends_changed.notified() => self.report_ready(leader)?,
            () = wake => {}
        }
        Ok(())
    }

    fn persisted(
        &mut self,
        leader: &mut Leader,
        (record, revision): (Record, Revision),
    ) -> Result<(), SessionError> {
        self.revision = revision;
        self.progress.count_persisted(&record);
        let record = Box::new(record);
        Ok(leader.record(Event::Persisted { record })?)
    }

    /// Ends the session at a document that cannot be stored. If the next one is to
    /// leave it out, that is made durable here.
    async fn refuse(
        &mut self,
        leader: &mut Leader,
        refusal: Refusal,
        cause: ShardError,
    ) -> SessionError {
        // Ours would meet another revision than the one that it expects.
        if self.writing.is_some() {
            let written = written(&mut self.writing).await;
            let written = written.map_err(SessionError::from);
            if let Err(error) = written.and_then(|it| self.persisted(leader, it)) {
                return error;
            }
        }
        let on_error = self.on_error.get(refusal.binding as usize);
        let on_error = on_error.copied().unwrap_or_default();
        match leader.refuse(refusal.clone(), on_error) {
            Ok(record) => {
                if let Err(error) = self.put(&record).await {
                    return error;
                }
                self.warn(&refusal);
                SessionError::LeftOut { cause }
            }
            Err(halt) => {
                if let Some(record) = leader.halting()
                    && let Err(error) = self.put(&record).await
                {
                    return error;
                }
                SessionError::Halted {
                    cause: Box::new(cause),
                    halt,
                }
            }
        }
    }

    /// Writes a record with which the session ends.
    async fn put(&mut self, record: &Record) -> Result<(), SessionError> {
        self.records.put_record(record, Some(self.revision)).await?;
        Ok(())
    }

    /// Says which document is left out, and not what else is in it.
    fn warn(&self, refusal: &Refusal) {
        let source = self.inputs.get(refusal.binding as usize);
        let source = source.map(|input| &input.source);
        let resource = source.map(|source| source.resource.join("."));
        let document = match &refusal.refused {
            Some(Refused::Key(Key(key))) => format!("key {}", shown_key(key)),
            Some(Refused::Offset(offset)) => format!("document {offset}"),
            None => String::new(),
        };
        tracing::warn!(
            task = self.records.task(),
            collection = source.map(|source| &*source.journal),
            resource,
            field = refusal.field,
            "left out {document}: {}",
            refusal.reason
        );
    }

    fn event_of(&mut self, answer: Reported) -> Result<Event, ShardError> {
        let Reported { shard, reply } = answer;
        let (txn, reply) = reply?;
        self.progress.count_reply(&reply);
        Ok(Event::Reply { shard, txn, reply })
    }

    fn command(&mut self, leader: &mut Leader, command: Command) -> Result<(), SessionError> {
        // A caller that hung up waits for nothing. Forgotten here, they do not
        // pile up while a destination is down and clients call again and again.
        for (waiter, _) in self.callers.extract_if(.., |_, caller| caller.hung_up()) {
            leader.record(Event::HungUp { waiter })?;
        }
        let event = self.event_of_command(command);
        Ok(leader.record(event)?)
    }

    fn event_of_command(&mut self, command: Command) -> Event {
        match command {
            Command::Stop => {
                self.finish();
                let now = self.clock.now().monotonic_millis;
                let signs = self.signs_of_work();
                self.stopping.get_or_insert(Stopping::new(now, signs));
                Event::Stop
            }
            Command::Change { config, taken } => {
                self.finish();
                self.next = Some(config);
                // Whoever published may have gone.
                let _ = taken.send(());
                Event::SpecChanged
            }
            Command::SyncNow { through, caller } => {
                let waiter = WaiterId(self.next_waiter);
                self.next_waiter += 1;
                self.callers.insert(waiter, caller);
                let through = match through {
                    Through::Open => tidegate_core::Through::Open,
                    Through::Head => tidegate_core::Through::Head { ends: self.ends() },
                };
                Event::Poke { waiter, through }
            }
        }
    }

    /// From here on nothing is waited for that does not work.
    fn finish(&mut self) {
        for shard in &self.shards {
            shard.connector().finish();
        }
    }

    /// Says whether a stop has waited long enough for its connectors.
    fn gives_up(&mut self) -> bool {
        let (now, signs) = (self.clock.now().monotonic_millis, self.signs_of_work());
        self.stopping
            .as_mut()
            .is_some_and(|stopping| stopping.look(now, signs))
    }

    fn signs_of_work(&self) -> u64 {
        let activity = |shard: &Shard| shard.connector().activity();
        self.shards.iter().map(activity).sum()
    }

    /// Carries out an action that needs nothing of the leader.
    async fn act(&mut self, action: Action) {
        match action {
            Action::AllowLoads { to, .. } => self.send(&to, |_| Request::AllowLoads).await,
            Action::Flush { txn, to } => self.send(&to, |_| Request::Flush { txn }).await,
            Action::Store { txn, to } => self.send(&to, |_| Request::Store { txn }).await,
            Action::StartCommit {
                txn,
                to,
                checkpoint,
            } => {
                self.send(&to, |_| Request::StartCommit {
                    txn,
                    checkpoint: checkpoint.clone(),
                })
                .await;
            }
            Action::Acknowledge {
                txn,
                to,
                recovery,
                stored_history,
            } => {
                let shards = to.keys().copied().collect();
                self.send(&shards, |shard| Request::Acknowledge {
                    txn,
                    patch: to[&shard].clone(),
                    recovery,
                    stored_history: stored_history.clone(),
                })
                .await;
            }
            Action::Persist { why, record } => self.persist(why, *record),
            Action::Done { waiters, figures } => {
                for waiter in waiters {
                    if let Some(caller) = self.callers.remove(&waiter) {
                        caller.tell(SyncNowAnswer::Done(figures));
                    }
                }
            }
            Action::Ack {
                waiter,
                outcome,
                status,
            } => {
                if let Some(caller) = self.callers.get(&waiter) {
                    caller.tell(SyncNowAnswer::Ack { outcome, status });
                }
            }
            Action::RunTriggers { .. } => panic!("no task has triggers: none can be configured"),
            Action::Wait { .. } | Action::Extend { .. } | Action::Stop | Action::Abandon => {
                panic!("the loop carries these out itself")
            }
        }
    }

    async fn send(&mut self, to: &tidegate_core::Shards, request: impl Fn(ShardId) -> Request) {
        for shard in to {
            let index = shard.0 as usize;
            self.shards[index].send(request(*shard)).await;
        }
    }

    /// Starts the write of the record; its answer is an event, so that the
    /// other machine goes on meanwhile.
    fn persist(&mut self, why: Persist, record: Record) {
        tracing::trace!(?why, "persist");
        let (records, revision) = (self.records.clone(), self.revision);
        let write = async move { records.put_record(&record, Some(revision)).await };
        let before = self.writing.replace(Box::pin(write));
        assert!(before.is_none(), "the leader asks for one write at a time");
    }

    /// Records, for every source, how far one extension may reach.
    fn report_ready(&self, leader: &mut Leader) -> Result<(), SessionError> {
        let behind =
            |input: &&Input| *input.journal.ends().borrow() > self.read.next(&input.source);
        let ready = self.inputs.iter().filter(behind).count().max(1) as u64;
        for input in self.inputs.iter().filter(behind) {
            let extent = input
                .journal
                .extent(self.read.next(&input.source), EXTEND_BYTES / ready);
            let end = *input.journal.ends().borrow();
            let source = input.source.clone();
            leader.record(Event::Ready {
                source,
                upper: extent.upper,
                end,
            })?;
        }
        Ok(())
    }

    fn ends(&self) -> Frontier {
        ends_of(&self.inputs)
    }

    /// Sets one pending flag whenever any journal grows: a million signals
    /// while one is pending are one wake.
    fn watch_ends(&self, changed: &Arc<Notify>) -> JoinSet<()> {
        let mut watching = JoinSet::new();
        for input in &self.inputs {
            let (mut ends, changed) = (input.journal.ends(), changed.clone());
            watching.spawn(async move {
                while ends.changed().await.is_ok() {
                    changed.notify_one();
                }
            });
        }
        watching
    }

    fn publish(&self, status: Status) {
        let left = |input: &Input| {
            input
                .journal
                .ends()
                .borrow()
                .saturating_sub(self.read.next(&input.source))
        };
        self.progress
            .publish(status, self.inputs.iter().map(left).sum());
    }

    /// Ends the session, and waits until nothing of it is left.
    pub(crate) async fn end(self) {
        for shard in self.shards {
            shard.end().await;
        }
    }
}

/// Waits for the write that is under way; for ever if there is none.
async fn written(
    writing: &mut Option<BoxFuture<'static, Result<(Record, Revision), RecordsError>>>,
) -> Result<(Record, Revision), RecordsError> {
    let Some(write) = writing else {
        return std::future::pending().await;
    };
    let written = write.await;
    *writing = None;
    written
}

/// Returns the journals' ends.
pub(crate) fn ends_of(inputs: &[Input]) -> Frontier {
    let mut ends = Frontier::default();
    for input in inputs {
        ends.raise(input.source.clone(), *input.journal.ends().borrow());
    }
    ends
}
