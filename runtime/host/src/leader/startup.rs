//! Opens a session: from what is on disk to a leader that runs.
//!
//! ```text
//! record, fence raised -> [apply] -> connector opens -> recover -> leader
//!                             '- not while an older spec has work left: that
//!                                is finished first, in a session of its own
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::{
    Band, Binding, Hint, KeyRange, Layout, Leader, Limits, OnError, Opened, Record, ShardId,
    Source, Task, merge_patch, recover,
};
use tidegate_wit::message::{self, Authority, OpenRequest, OpenResponse, Spec, SpecBinding};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::actor::{Actor, Input, ends_of};
use super::apply;
use super::config::TaskConfig;
use super::error::SessionError;
use super::records::{Applied, Records, Revision, TaskSpec, binding_id, source_of};
use super::restart::Failure;
use super::schedule;
use super::task::{Command, Progress};
use crate::clock::Clock;
use crate::document::Checker;
use crate::journal::Journals;
use crate::shard::combine::{BindingPlan, COMBINE_BYTES_MAX, CombineGauges, Plan};
use crate::shard::{
    Connector, LeftOut, Reader, Shard, ShardConfig, ShardError, dead_letters_of, on_error_of,
};

/// How long a transaction stays open at most unless the catalog says otherwise:
/// what a crash throws away, and how stale a destination gets under steady
/// input.
const OPEN_MILLIS_MAX: u64 = 5 * 60 * 1_000;

/// How a session ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The task was told to stop.
    Stopped,
    /// What an older spec had left is finished.
    Finished,
    /// The task has another config now.
    Changed,
}

/// Everything that a task's sessions are opened from.
pub(crate) struct TaskContext {
    pub(crate) config: TaskConfig,
    pub(crate) journals: Arc<dyn Journals>,
    pub(crate) records: Records,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) data: Handle,
    pub(crate) progress: Progress,
    pub(crate) until_caught_up: bool,
    /// Whether a session was told to stop: no other one follows it.
    pub(crate) stopping: bool,
    /// The epoch that this host leads the task under, once it has begun to.
    pub(crate) owner_epoch: Option<u64>,
}

impl TaskContext {
    pub(crate) fn name(&self) -> &str {
        self.config.name()
    }

    /// Opens a session and leads it to its end.
    pub(crate) async fn session(
        &mut self,
        commands: &mut mpsc::Receiver<Command>,
    ) -> Result<Ended, SessionError> {
        let mut queued = Vec::new();
        let opening = tokio::select! {
            opening = self.open() => opening?,
            // Nothing is open that would have to be closed.
            next = interrupted(commands, &mut queued) => {
                // Those who wait for a session are asked to call again.
                drop(queued);
                return Ok(match next {
                    Some(config) => self.change(config),
                    None => Ended::Stopped,
                });
            }
        };
        let Opening {
            mut actor,
            leader,
            finishing,
        } = opening;
        self.progress.enter(super::TaskState::Running);
        let led = actor.lead(leader, queued, commands).await;
        self.stopping = actor.stopping.is_some();
        let next = actor.next.take();
        actor.end().await;
        match (led, next) {
            // Another host leads the task, whatever the catalog of this one says.
            (Err(error), _) if error.failure() == Failure::Fenced => Err(error),
            // What the old config left open, or could not do, the next session takes up.
            (_, Some(config)) if !self.stopping => Ok(self.change(config)),
            (Err(error), _) => Err(error),
            (Ok(()), None) if finishing && !self.stopping => Ok(Ended::Finished),
            (Ok(()), _) => Ok(Ended::Stopped),
        }
    }

    fn change(&mut self, config: Box<TaskConfig>) -> Ended {
        self.config = *config;
        Ended::Changed
    }

    async fn open(&mut self) -> Result<Opening, SessionError> {
        let (record, revision) = self.begin().await?;
        self.progress.see(&record);
        let applied = self.records.applied().await?;
        // Replays and staged work make sense only as they were read.
        let older = applied
            .as_ref()
            .map(|applied| self.with_config(&applied.task));
        let older =
            older.filter(|older| record.unfinished().is_some() && *older != self.config.task);
        let finishing = older.is_some();
        let (applied, mut record, mut revision) = match (applied, finishing) {
            (Some(applied), true) => (applied, record, revision),
            (applied, _) => self.apply(applied, record, revision).await?,
        };
        let task = older.unwrap_or_else(|| self.config.task.clone());

        let connector = self.start_connector().await?;
        let opened = self.open_connector(&connector, &task.spec, &record).await?;
        let layout = layout_of(&task.spec);
        let core = self.core_task(layout, &opened, finishing)?;
        let inputs = self.inputs(&task).await?;
        let ends = ends_of(&inputs);
        let recovered = recover(&record, &core, &[core_opened(&opened)], &ends)?;
        if recovered.record != record {
            (record, revision) = self
                .records
                .put_record(&recovered.record, Some(revision))
                .await?;
            self.progress.see(&record);
        }

        let (answer, answers) = mpsc::channel(Shard::ANSWERS_MAX);
        let left_out = self.left_out(&task, record.hinted.as_ref()).await?;
        let config = shard_config(
            &task,
            self.config.document_bytes_max,
            &applied,
            &record,
            &inputs,
        )?;
        let config = ShardConfig { left_out, ..config };
        let shard = Shard::start(&self.data, config, connector, answer);
        let leader = Leader::start(core, recovered, ends, self.clock.now());
        let actor = Actor {
            clock: self.clock.clone(),
            shards: vec![shard],
            inputs,
            records: self.records.clone(),
            revision,
            on_error: self.on_error(&task),
            read: record.committed.frontier,
            answers,
            writing: None,
            callers: BTreeMap::new(),
            next_waiter: 0,
            progress: self.progress.clone(),
            stopping: None,
            next: None,
            abandoned: false,
        };
        Ok(Opening {
            actor,
            leader,
            finishing,
        })
    }

    /// Raises the fence before anything else is done: an older session that
    /// still runs can no longer write the record.
    async fn begin(&mut self) -> Result<(Record, Revision), SessionError> {
        let found = self.records.record().await?;
        let (record, revision) = match found {
            Some((record, revision)) => (record, Some(revision)),
            None => (Record::new(), None),
        };
        let epoch = *self.owner_epoch.get_or_insert(record.fence.owner_epoch + 1);
        Ok(self
            .records
            .put_record(
                &record.opening(epoch, &layout_of(&self.config.task.spec)),
                revision,
            )
            .await?)
    }

    /// Returns what was applied, with the endpoint as it is configured now: the
    /// old password does not open the destination any more.
    fn with_config(&self, applied: &TaskSpec) -> TaskSpec {
        let mut task = applied.clone();
        task.spec.config = self.config.task.spec.config.clone();
        task
    }

    /// Brings the destination to the spec, if it is not there yet.
    async fn apply(
        &self,
        applied: Option<Applied>,
        record: Record,
        revision: Revision,
    ) -> Result<(Applied, Record, Revision), SessionError> {
        let applied = match applied {
            Some(applied) if applied.task == self.config.task => {
                return Ok((applied, record, revision));
            }
            applied => applied,
        };
        let request = apply::request(&self.config, applied.as_ref(), &record);
        let response = apply::ask(&self.data, &self.config, request).await?;
        for action in &response.actions {
            tracing::info!(task = self.name(), "applied: {action}");
        }
        let (record, revision) = match response.patch {
            Some(patch) => {
                let mut next = record;
                let state = next.states.remove(&KeyRange::ALL).unwrap_or_default();
                next.states
                    .insert(KeyRange::ALL, merge_patch(state, &patch));
                self.records.put_record(&next, Some(revision)).await?
            }
            None => (record, revision),
        };
        let applied = Applied::after(applied.as_ref(), &self.config.task);
        self.records.put_applied(&applied).await?;
        Ok((applied, record, revision))
    }

    async fn start_connector(&self) -> Result<Connector, SessionError> {
        let started = Connector::start(
            &self.data,
            self.config.component.clone(),
            self.config.sandbox.clone(),
        )
        .await;
        Ok(started.map_err(ShardError::from)?)
    }

    async fn open_connector(
        &self,
        connector: &Connector,
        spec: &Spec,
        record: &Record,
    ) -> Result<OpenResponse, SessionError> {
        let frontier = &record.committed.frontier;
        let request = OpenRequest {
            spec: spec.clone(),
            range: message::KeyRange::FULL,
            state: record
                .states
                .get(&KeyRange::ALL)
                .cloned()
                .unwrap_or_default(),
            checkpoint: (!frontier.is_empty()).then(|| frontier.to_checkpoint()),
            fence: message::Fence {
                epoch: record.fence.owner_epoch,
                session: record.fence.session,
            },
        };
        let answer = connector
            .submit(move |session| Box::pin(async move { session.open(&request).await }))
            .await;
        let opened = answer.wait().await.ok_or(ShardError::Gone)?;
        Ok(opened.map_err(ShardError::from)?)
    }

    fn core_task(
        &self,
        layout: Layout,
        opened: &OpenResponse,
        finish_only: bool,
    ) -> Result<Task, SessionError> {
        let jitter = opened.jitter_key.as_deref().unwrap_or(self.name());
        let pacing = match &opened.pacing {
            Some(pacing) => schedule::of_connector(&pacing.schedule, jitter)?,
            None => None,
        };
        Ok(Task {
            layout,
            limits: Limits {
                open_millis: Band {
                    floor: self.config.durations.min_millis.unwrap_or(0),
                    ceiling: self.config.durations.max_millis.unwrap_or(OPEN_MILLIS_MAX),
                },
                combiner_bytes: Band {
                    floor: 0,
                    ceiling: COMBINE_BYTES_MAX,
                },
                ..Limits::ANY
            },
            schedule: self
                .config
                .schedule
                .as_ref()
                .map(|model| schedule::of_model(model, jitter)),
            pacing,
            triggers: false,
            finish_only,
        })
    }

    /// Returns what the session's first transaction leaves out, if it is a replay.
    async fn left_out(
        &self,
        task: &TaskSpec,
        hint: Option<&Hint>,
    ) -> Result<LeftOut, SessionError> {
        let Some(hint) = hint.filter(|hint| !hint.omissions.is_empty()) else {
            return Ok(LeftOut::default());
        };
        let letters = match hint.omissions.iter().any(|it| it.dead_letter) {
            true => Some(self.journals.open(&dead_letters_of(self.name())).await?),
            false => None,
        };
        let bindings = &task.spec.bindings;
        Ok(LeftOut::new(self.name(), hint, bindings, letters))
    }

    /// Returns what is done about documents that cannot be stored, by binding.
    fn on_error(&self, task: &TaskSpec) -> Vec<OnError> {
        let on_error = |binding: &SpecBinding| {
            let on_error = self.config.on_error.get(&binding.resource_path);
            let on_error = on_error.copied().unwrap_or_default();
            on_error_of(on_error, self.name(), &binding.collection)
        };
        task.spec.bindings.iter().map(on_error).collect()
    }

    /// Opens the journal of every binding.
    async fn inputs(&self, task: &TaskSpec) -> Result<Vec<Input>, SessionError> {
        let mut inputs = Vec::new();
        for binding in &task.spec.bindings {
            inputs.push(Input {
                source: source_of(binding),
                journal: self.journals.open(&binding.collection).await?,
            });
        }
        Ok(inputs)
    }
}

/// Returns what the task's only shard works by.
fn shard_config(
    task: &TaskSpec,
    document_bytes_max: usize,
    applied: &Applied,
    record: &Record,
    inputs: &[Input],
) -> Result<ShardConfig, SessionError> {
    let mut plan = Plan {
        bindings: Vec::new(),
        range: message::KeyRange::FULL,
        budget_bytes: COMBINE_BYTES_MAX,
    };
    let (mut readers, mut sources, mut max_keys) = (Vec::new(), BTreeMap::new(), Vec::new());
    for ((binding, reading), input) in task.spec.bindings.iter().zip(&task.readings).zip(inputs) {
        let id = binding_id(binding);
        let of = BindingPlan::new(binding, &reading.schema, reading.hard_delete);
        let of = of.map_err(ShardError::from)?;
        let skip_equal = !applied.reselected.contains(&id);
        sources.insert(input.source.clone(), plan.bindings.len() as u32);
        plan.bindings.push(BindingPlan { skip_equal, ..of });
        readers.push(Reader {
            journal: input.journal.clone(),
            window: reading.window,
            checker: Arc::new(Checker::new(&reading.schema)?),
            document_bytes_max,
        });
        max_keys.push(max_key(record, &id, &input.source));
    }
    Ok(ShardConfig {
        task: task.spec.task.clone(),
        id: ShardId(0),
        plan: Arc::new(plan),
        readers,
        sources,
        max_keys,
        left_out: LeftOut::default(),
        gauges: Arc::new(CombineGauges::default()),
    })
}

/// Returns the greatest key that a binding has in the destination. A binding
/// that nothing was ever stored for has none, and nothing needs to be loaded;
/// one of which only the destination remembers how far it is may have any.
fn max_key(record: &Record, id: &Binding, source: &Source) -> Option<Vec<u8>> {
    match record.max_keys.get(id) {
        Some(key) => Some(key.0.clone()),
        None if record.committed.frontier.next(source) == 0 => Some(Vec::new()),
        None => None,
    }
}

/// A session that has opened.
struct Opening {
    actor: Actor,
    leader: Leader,
    finishing: bool,
}

/// Waits for the task to be changed, or stopped; keeps what else is asked of it.
async fn interrupted(
    commands: &mut mpsc::Receiver<Command>,
    queued: &mut Vec<Command>,
) -> Option<Box<TaskConfig>> {
    while let Some(command) = commands.recv().await {
        match command {
            Command::Stop => return None,
            Command::Change { config, taken } => {
                // Whoever published may have gone.
                let _ = taken.send(());
                return Some(config);
            }
            command => queued.push(command),
        }
    }
    None
}

fn layout_of(spec: &Spec) -> Layout {
    Layout {
        bindings: spec.bindings.iter().map(binding_id).collect(),
        shards: vec![KeyRange::ALL],
    }
}

fn core_opened(opened: &OpenResponse) -> Opened {
    Opened {
        authority: match opened.authority {
            Authority::Remote => tidegate_core::Authority::Remote,
            Authority::Log => tidegate_core::Authority::Log,
        },
        checkpoint: opened.checkpoint.clone(),
    }
}
