//! The host: everything that one process runs on a data directory.
//!
//! ```text
//! Host::open -> build a catalog -> start tasks, follow inputs -> stop -> drop
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidegate_validator::BuiltTask;
use tidegate_wit::message::Wants;

use crate::append::{self, AppendError, Appended};
use crate::catalog::{Built, Catalog, Live, sandbox_limits};
use crate::clock::{Clock, SystemClock};
use crate::collection::{Collection, CollectionError, check_any};
use crate::connectors::{ConnectorError, Connectors, Missing, component_ref};
use crate::data_dir::DataDir;
use crate::input::InputHandle;
use crate::journal::follow::{FollowError, Follower, Options};
use crate::journal::{DOCUMENT_BYTES_MAX, EmbeddedJournals, JournalError, Journals};
use crate::leader::{
    Outcome, Progress, Reading, Records, RecordsError, TaskContext, TaskHandle, TaskSpec,
    TxnDurations,
};
use crate::runtimes::Runtimes;
use crate::sandbox::{Allow, EngineError, Fault, GrantError, Grants, Inspection, SessionConfig};
use crate::shard::Window;
use crate::store::{EmbeddedStore, Store, StoreError};

/// How much of a journal `read` holds at once.
const READ_BYTES: u64 = 1 << 20;

/// Why the host cannot do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The threads cannot be started.
    #[error("cannot start the host's threads")]
    Threads(#[source] io::Error),
    /// The sandbox cannot run.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// There is no such connector.
    #[error(transparent)]
    Connector(#[from] ConnectorError),
    /// A connector failed outside of any task.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// A task's grants cannot be worked out.
    #[error("task {task}: {source}")]
    Grants {
        /// The task.
        task: String,
        /// Why.
        source: GrantError,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A task's records failed.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// A journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A collection cannot be used.
    #[error(transparent)]
    Collection(#[from] CollectionError),
    /// An input cannot be followed.
    #[error(transparent)]
    Follow(#[from] FollowError),
    /// Documents cannot be appended.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// There is no such collection.
    #[error("there is no collection {name} here: {}", match known.as_slice() {
        [] => "nothing was appended yet".to_owned(),
        known => format!("there are {}", known.join(", ")),
    })]
    UnknownCollection {
        /// Its name.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
}

/// How a catalog's tasks are to be run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Where relative paths in connectors' configurations start.
    pub base: PathBuf,
    /// Whether the host ends by itself once everything is caught up.
    pub until_caught_up: bool,
}

/// A task that has run here.
#[derive(Clone, Debug)]
pub struct TaskSummary {
    /// Its name.
    pub name: String,
    /// Documents that it committed, over all bindings.
    pub committed: u64,
    /// Documents that there are for it, as far as it ever read their journals.
    pub end: u64,
    /// Whether a transaction was begun and is not acknowledged.
    pub unfinished: bool,
    /// How it last ended; nothing if it is killed.
    pub outcome: Option<Outcome>,
}

/// A data directory with everything that runs on it.
pub struct Host {
    // Tasks end before what they run on.
    runtimes: Runtimes,
    store: Arc<dyn Store>,
    journals: Arc<dyn Journals>,
    clock: Arc<dyn Clock>,
    dir: DataDir,
}

impl Host {
    /// Opens the store and the journals of a data directory.
    pub fn open(dir: DataDir) -> Result<Host, HostError> {
        let runtimes = Runtimes::start().map_err(HostError::Threads)?;
        Ok(Host {
            store: Arc::new(EmbeddedStore::open(dir.path())?),
            journals: Arc::new(EmbeddedJournals::open(dir.path())?),
            clock: Arc::new(SystemClock::new()),
            runtimes,
            dir,
        })
    }

    /// Runs a future to its end on the control runtime.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtimes.block_on(future)
    }

    /// Returns the connectors in some directories, compiled ones cached.
    pub fn connectors(&self, directories: &[PathBuf]) -> Result<Connectors, HostError> {
        Ok(Connectors::new(directories, Some(self.dir.cache()))?)
    }

    /// Loads and builds a catalog against what was last applied here.
    pub fn build(&self, roots: &[PathBuf], connectors: &Connectors) -> Result<Catalog, HostError> {
        let building = async {
            let mut live = Live::default();
            for task in Records::tasks(&*self.store).await? {
                let applied = Records::new(self.store.clone(), &task).applied().await?;
                live.specs
                    .extend(applied.map(|applied| (task, applied.task.spec)));
            }
            Ok(Catalog::build(roots, connectors, live).await)
        };
        self.on_data(building)
    }

    /// Starts a task of a built catalog; a disabled one is not started.
    pub fn start(
        &self,
        built: &Built,
        task: &str,
        options: &RunOptions,
    ) -> Result<Option<TaskHandle>, HostError> {
        let task = &built.catalog.tasks[task];
        if task.shards.disable {
            return Ok(None);
        }
        self.on_data(async {
            for binding in &task.spec.bindings {
                let collection = &built.catalog.collections[&binding.collection];
                Collection::of(collection)
                    .put(&*self.store, &collection.name)
                    .await?;
            }
            Ok::<(), HostError>(())
        })?;
        let component = built.components[&task.component].clone();
        let spec = self.on_data(async { component.spec().await.cloned() })?;
        let grants =
            grants(task, &spec.wants, &options.base).map_err(|source| HostError::Grants {
                task: task.name.clone(),
                source,
            })?;
        let context = TaskContext {
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
            journals: self.journals.clone(),
            records: Records::new(self.store.clone(), &task.name),
            clock: self.clock.clone(),
            data: self.runtimes.data().clone(),
            progress: Progress::new(),
            until_caught_up: options.until_caught_up,
            stopping: false,
            owner_epoch: None,
        };
        let _control = self.runtimes.control().enter();
        Ok(Some(TaskHandle::start(context)))
    }

    /// Follows a file into a collection of a built catalog.
    pub fn follow(
        &self,
        built: &Built,
        collection: &str,
        file: &Path,
        to_the_end: bool,
    ) -> Result<InputHandle, HostError> {
        let collection = &built.catalog.collections[collection];
        let kept = Collection::of(collection);
        let (check, schema) = kept.check(&collection.name)?;
        let journal = self.on_data(async {
            kept.put(&*self.store, &collection.name).await?;
            Ok::<_, HostError>(self.journals.open(&collection.name).await?)
        })?;
        let options = Options {
            take_last_line_without_newline: to_the_end,
        };
        let follower = Follower::open(journal, file, check, schema, options)?;
        Ok(InputHandle::start(
            follower,
            to_the_end,
            self.runtimes.data(),
        ))
    }

    /// Appends the lines of a stream to a collection.
    pub fn append(
        &self,
        collection: &str,
        input: impl io::Read,
        name: &str,
        clock_micros: i64,
    ) -> Result<Appended, HostError> {
        let kept = self.on_data(Collection::get(&*self.store, collection))?;
        let checked = kept.is_some();
        let (check, schema) = match kept {
            Some(kept) => kept.check(collection)?,
            None => check_any(),
        };
        let journal = self.on_data(self.journals.open(collection))?;
        let documents = append::lines(input, name, &check, |documents| {
            self.on_data(journal.append(append::of(documents, schema, clock_micros)))
        })?;
        Ok(Appended { documents, checked })
    }

    /// Hands every document of a collection on, until told not to.
    pub fn read(
        &self,
        collection: &str,
        mut take: impl FnMut(&[u8]) -> bool,
    ) -> Result<(), HostError> {
        let known = self.on_data(self.journals.list())?;
        if !known.iter().any(|name| name == collection) {
            return Err(HostError::UnknownCollection {
                name: collection.to_owned(),
                known,
            });
        }
        self.on_data(async {
            let journal = self.journals.open(collection).await?;
            let end = *journal.ends().borrow();
            let mut reader = journal.read(0, end, READ_BYTES);
            while let Some(batch) = reader.next().await? {
                if !batch.documents().all(|document| take(document.bytes)) {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Lists the tasks that have run here, in the order of their names.
    pub fn tasks(&self) -> Result<Vec<TaskSummary>, HostError> {
        self.on_data(async {
            let mut summaries = Vec::new();
            for name in Records::tasks(&*self.store).await? {
                summaries.push(self.summary(name).await?);
            }
            Ok(summaries)
        })
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
            let source = crate::leader::source_of(binding);
            committed += record.committed.frontier.next(&source);
            end += *self.journals.open(&source.journal).await?.ends().borrow();
        }
        Ok(TaskSummary {
            name,
            committed,
            end,
            unfinished: record.unfinished().is_some(),
            outcome: records.outcome().await?,
        })
    }

    /// Runs a future whose IO belongs to the data runtime.
    fn on_data<F: Future>(&self, future: F) -> F::Output {
        self.runtimes.data().block_on(future)
    }
}

/// Returns what there is to know of a connector without running a task.
pub fn inspect(component: &str, directories: &[PathBuf]) -> Result<Inspection, HostError> {
    let runtimes = Runtimes::start().map_err(HostError::Threads)?;
    let connectors = Connectors::new(directories, None)?;
    runtimes.data().block_on(async {
        let component = connectors.load(&component_ref(component)).await?;
        Ok(component.inspect().await?)
    })
}

/// Builds a catalog without a data directory: nothing is written.
pub fn check(roots: &[PathBuf], directories: &[PathBuf]) -> Result<Catalog, HostError> {
    let runtimes = Runtimes::start().map_err(HostError::Threads)?;
    let connectors = Connectors::new(directories, None)?;
    Ok(runtimes
        .data()
        .block_on(Catalog::build(roots, &connectors, Live::default())))
}

/// A catalog that was validated.
pub enum Validated {
    /// What there is to say of it.
    Draft(Catalog),
    /// The catalog that it was to be compared with has errors itself.
    LiveHasErrors(Catalog),
}

/// Validates a catalog without a data directory, against the catalog that runs
/// now if there is one. Rules that need a connector that is not there are
/// skipped.
pub fn validate(
    roots: &[PathBuf],
    directories: &[PathBuf],
    live: Option<&Path>,
) -> Result<Validated, HostError> {
    let runtimes = Runtimes::start().map_err(HostError::Threads)?;
    let connectors = Connectors::new(directories, None)?.missing(Missing::Skipped);
    let build = |roots: &[PathBuf], live| {
        let building = Catalog::build(roots, &connectors, live);
        runtimes.data().block_on(building)
    };
    let live = match live {
        None => Live::default(),
        Some(live) => {
            let live = build(&[live.to_owned()], Live::default());
            match live.into_live() {
                Ok(live) => live,
                Err(live) => return Ok(Validated::LiveHasErrors(*live)),
            }
        }
    };
    Ok(Validated::Draft(build(roots, live)))
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
