//! What tasks run on, shared by everything in the process.
//!
//! ```text
//! draft -> build -> config of a task -> start
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidegate_core::OnError;
use tidegate_validator::{BuiltTask, Draft};
use tidegate_wit::message::Wants;
use tokio::runtime::Handle;

use crate::catalog::{Built, Catalog, Live, sandbox_limits};
use crate::clock::Clock;
use crate::collection::Collection;
use crate::connectors::Connectors;
use crate::host::{HostError, Preview, TaskSummary};
use crate::input::with_causes;
use crate::journal::{DOCUMENT_BYTES_MAX, Journals};
use crate::leader::{
    Progress, Reading, Records, TaskConfig, TaskContext, TaskHandle, TaskSpec, TxnDurations,
    preview, source_of,
};
use crate::sandbox::{Allow, GrantError, Grants, SessionConfig};
use crate::shard::Window;
use crate::store::Store;

/// The store, the journals, the clock and the two runtimes.
#[derive(Clone)]
pub(crate) struct Platform {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) journals: Arc<dyn Journals>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) control: Handle,
    pub(crate) data: Handle,
}

impl Platform {
    /// Builds a catalog against what was last applied here.
    pub(crate) async fn build(
        &self,
        draft: Draft,
        connectors: &Connectors,
    ) -> Result<Catalog, HostError> {
        let mut live = Live::default();
        for task in Records::tasks(&*self.store).await? {
            let applied = Records::new(self.store.clone(), &task).applied().await?;
            live.specs
                .extend(applied.map(|applied| (task, applied.task.spec)));
        }
        Ok(Catalog::build(draft, connectors, live).await)
    }

    /// Returns what a task of a built catalog is led by. Relative paths in its
    /// connector's configuration start at `base`.
    pub(crate) async fn config(
        &self,
        built: &Built,
        task: &str,
        base: &Path,
    ) -> Result<TaskConfig, HostError> {
        let task = &built.catalog.tasks[task];
        let component = built.components[&task.component].clone();
        let wants = component.spec().await?.wants.clone();
        let grants = grants(task, &wants, base).map_err(|source| HostError::Grants {
            task: task.name.clone(),
            source,
        })?;
        Ok(TaskConfig {
            task: task_spec(built, task),
            component,
            sandbox: SessionConfig {
                limits: sandbox_limits(&task.limits),
                grants,
                ..SessionConfig::without_grants(&task.name)
            },
            durations: durations(task),
            document_bytes_max: document_bytes_max(task),
            schedule: task.sync_schedule.clone(),
            on_error: on_error(task),
        })
    }

    /// Keeps the collections that a task reads for those who append to them.
    pub(crate) async fn keep_sources(&self, built: &Built, task: &str) -> Result<(), HostError> {
        for binding in &built.catalog.tasks[task].spec.bindings {
            let collection = &built.catalog.collections[&binding.collection];
            Collection::of(collection)
                .put(&*self.store, &collection.name)
                .await?;
        }
        Ok(())
    }

    /// Keeps all collections of a catalog for those who append to them.
    pub(crate) async fn keep_collections(&self, built: &Built) -> Result<(), HostError> {
        for (name, collection) in &built.catalog.collections {
            Collection::of(collection).put(&*self.store, name).await?;
        }
        Ok(())
    }

    /// Returns what starting a task would do at its destination.
    pub(crate) async fn preview(&self, config: &TaskConfig) -> Preview {
        let records = Records::new(self.store.clone(), config.name());
        let actions = preview(&self.data, config, &records).await;
        actions.map_err(|error| with_causes(&error))
    }

    /// Starts a task on the control runtime.
    pub(crate) fn start(&self, config: TaskConfig, until_caught_up: bool) -> TaskHandle {
        let context = TaskContext {
            journals: self.journals.clone(),
            records: Records::new(self.store.clone(), config.name()),
            clock: self.clock.clone(),
            data: self.data.clone(),
            progress: Progress::new(),
            until_caught_up,
            stopping: false,
            owner_epoch: None,
            config,
        };
        let _control = self.control.enter();
        TaskHandle::start(context)
    }

    /// Lists the tasks that have run here, in the order of their names.
    pub(crate) async fn summaries(&self) -> Result<Vec<TaskSummary>, HostError> {
        let mut summaries = Vec::new();
        for name in Records::tasks(&*self.store).await? {
            summaries.push(self.summary(name).await?);
        }
        Ok(summaries)
    }

    async fn summary(&self, name: String) -> Result<TaskSummary, HostError> {
        let records = Records::new(self.store.clone(), &name);
        let record = records
            .record()
            .await?
            .map(|(record, _)| record)
            .unwrap_or_default();
        let (mut committed, mut end) = (0, 0);
        // What is no longer bound is not counted.
        let applied = records.applied().await?;
        for binding in applied
            .iter()
            .flat_map(|applied| &applied.task.spec.bindings)
        {
            let source = source_of(binding);
            committed += record.committed.frontier.next(&source);
            end += *self.journals.open(&source.journal).await?.ends().borrow();
        }
        Ok(TaskSummary {
            name,
            committed,
            end,
            unfinished: record.unfinished().is_some(),
            left_out: record.left_out,
            outcome: records.outcome().await?,
        })
    }
}

/// Returns what a task's connector may reach: what its spec asks for, or what
/// the catalog allows in its place.
fn grants(task: &BuiltTask, wants: &Wants, base: &Path) -> Result<Grants, GrantError> {
    let pattern = |grant: &tidegate_validator::NetworkGrant| {
        let port = grant.port.map_or("*".to_owned(), |port| port.to_string());
        match grant.host.contains(':') {
            true => format!("[{}]:{port}", grant.host),
            false => format!("{}:{port}", grant.host),
        }
    };
    let directory = |path: &PathBuf| path.display().to_string();
    let allow = Allow {
        network: task
            .allow
            .network
            .as_ref()
            .map(|it| it.iter().map(pattern).collect()),
        directory: task
            .allow
            .directory
            .as_ref()
            .map(|it| it.iter().map(directory).collect()),
    };
    Grants::new(wants, &task.spec.config, &allow, base, &|path| {
        path.is_dir()
    })
}

fn task_spec(built: &Built, task: &BuiltTask) -> TaskSpec {
    let bindings = task.spec.bindings.iter().zip(&task.bindings);
    let reading = |(binding, more): (&tidegate_wit::message::SpecBinding, _)| {
        let more: &tidegate_validator::BuiltBinding = more;
        Reading {
            schema: built.catalog.collections[&binding.collection]
                .schema
                .clone(),
            window: Window {
                not_before: more.not_before,
                not_after: more.not_after,
            },
            hard_delete: more.hard_delete,
        }
    };
    TaskSpec {
        spec: task.spec.clone(),
        readings: bindings.map(reading).collect(),
    }
}

fn on_error(task: &BuiltTask) -> BTreeMap<Vec<String>, OnError> {
    let bindings = task.spec.bindings.iter().zip(&task.bindings);
    let on_error = bindings.map(|(binding, more)| {
        let on_error = match more.on_error {
            tidegate_validator::OnError::Halt => OnError::Halt,
            tidegate_validator::OnError::Skip => OnError::Skip,
            tidegate_validator::OnError::DeadLetter => OnError::DeadLetter,
        };
        (binding.resource_path.clone(), on_error)
    });
    on_error.collect()
}

/// A task may take smaller documents than a journal does, not larger ones.
fn document_bytes_max(task: &BuiltTask) -> usize {
    let limit = task
        .limits
        .document_bytes
        .and_then(|limit| usize::try_from(limit).ok());
    limit.map_or(DOCUMENT_BYTES_MAX, |limit| limit.min(DOCUMENT_BYTES_MAX))
}

fn durations(task: &BuiltTask) -> TxnDurations {
    let millis = |duration: std::time::Duration| duration.as_millis() as u64;
    TxnDurations {
        min_millis: task.shards.min_txn_duration.map(millis),
        max_millis: task.shards.max_txn_duration.map(millis),
    }
}
