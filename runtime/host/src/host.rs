//! The host: everything that one process runs on a data directory.
//!
//! ```text
//! Host::open -> build a catalog -> start tasks, follow inputs -> stop -> drop
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidegate_core::LeftOut;
use tidegate_validator::{Draft, load};

use tokio::task::JoinHandle;

use crate::append::{self, AppendError, Appended};
use crate::backend::HostBackend;
use crate::catalog::{Built, Catalog, Live};
use crate::clock::{SystemClock, wall_micros};
use crate::collection::{Collection, CollectionError, check_any};
use crate::connectors::{ConnectorError, ConnectorPlaces, Connectors, Missing, component_ref};
use crate::data_dir::DataDir;
use crate::input::InputHandle;
use crate::journal::follow::{FollowError, Follower, Options};
use crate::journal::{EmbeddedJournals, JournalError};
use crate::leader::{Outcome, RecordsError, TaskHandle};
use crate::platform::Platform;
use crate::published::PublishedError;
use crate::registry::Registry;
use crate::runtimes::Runtimes;
use crate::sandbox::{EngineError, Fault, GrantError, Inspection};
use crate::store::{EmbeddedStore, StoreError};

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
    /// The published catalog cannot be read or written.
    #[error(transparent)]
    Published(#[from] PublishedError),
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

/// What starting a task would do at its destination, a statement or sentence
/// each; or why that is not known.
pub type Preview = Result<Vec<String>, String>;

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
    /// Documents that were left out, as they could not be stored.
    pub left_out: LeftOut,
    /// How it last ended; nothing if it is killed.
    pub outcome: Option<Outcome>,
}

/// A data directory with everything that runs on it.
pub struct Host {
    // Tasks end before what they run on.
    runtimes: Runtimes,
    platform: Platform,
    dir: DataDir,
}

impl Host {
    /// Opens the store and the journals of a data directory.
    pub fn open(dir: DataDir) -> Result<Host, HostError> {
        let runtimes = Runtimes::start().map_err(HostError::Threads)?;
        let platform = Platform {
            store: Arc::new(EmbeddedStore::open(dir.path())?),
            journals: Arc::new(EmbeddedJournals::open(dir.path())?),
            clock: Arc::new(SystemClock::new()),
            control: runtimes.control().clone(),
            data: runtimes.data().clone(),
        };
        Ok(Host {
            runtimes,
            platform,
            dir,
        })
    }

    /// Runs a future to its end on the control runtime.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtimes.block_on(future)
    }

    /// Returns the connectors in some places. What is compiled is kept in the data
    /// directory, unless a place is named for it.
    pub fn connectors(&self, mut places: ConnectorPlaces) -> Result<Connectors, HostError> {
        places.cache.get_or_insert_with(|| self.dir.cache());
        Ok(Connectors::new(places)?)
    }

    /// Returns the registry of a host that runs published catalogs.
    pub fn registry(&self, connectors: Connectors) -> Arc<Registry> {
        Arc::new(Registry::new(self.platform.clone(), connectors))
    }

    /// Returns what the API of a host asks.
    pub fn backend(&self, registry: &Arc<Registry>) -> Arc<HostBackend> {
        let backend = HostBackend::new(registry.clone(), self.platform.clone());
        Arc::new(backend)
    }

    /// Loads and builds a catalog against what was last applied here.
    pub fn build(&self, roots: &[PathBuf], connectors: &Connectors) -> Result<Catalog, HostError> {
        let draft = load(roots, &|path| std::fs::read(path));
        self.on_data(self.platform.build(draft, connectors))
    }

    /// Starts a task of a built catalog; a disabled one is not started.
    pub fn start(
        &self,
        built: &Built,
        task: &str,
        options: &RunOptions,
    ) -> Result<Option<TaskHandle>, HostError> {
        if built.catalog.tasks[task].shards.disable {
            return Ok(None);
        }
        let config = self.on_data(async {
            self.platform.keep_sources(built, task).await?;
            self.platform.config(built, task, &options.base).await
        })?;
        Ok(Some(self.platform.start(config, options.until_caught_up)))
    }

    /// Returns what starting a task of a built catalog would do at its
    /// destination, or why that is not known; nothing for a disabled one.
    pub fn preview(
        &self,
        built: &Built,
        task: &str,
        base: &Path,
    ) -> Result<Option<Preview>, HostError> {
        if built.catalog.tasks[task].shards.disable {
            return Ok(None);
        }
        self.on_data(async {
            let config = self.platform.config(built, task, base).await?;
            Ok(Some(self.platform.preview(&config).await))
        })
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
            kept.put(&*self.platform.store, &collection.name).await?;
            Ok::<_, HostError>(self.platform.journals.open(&collection.name).await?)
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
        let kept = self.on_data(Collection::get(&*self.platform.store, collection))?;
        let checked = kept.is_some();
        let (check, schema) = match kept {
            Some(kept) => kept.check(collection)?,
            None => check_any(),
        };
        let journal = self.on_data(self.platform.journals.open(collection))?;
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
        let known = self.on_data(self.platform.journals.list())?;
        if !known.iter().any(|name| name == collection) {
            return Err(HostError::UnknownCollection {
                name: collection.to_owned(),
                known,
            });
        }
        self.on_data(async {
            let journal = self.platform.journals.open(collection).await?;
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
        self.on_data(self.platform.summaries())
    }

    /// Starts a future on the data runtime.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.runtimes.data().spawn(future)
    }

    /// Runs a future whose IO belongs to the data runtime.
    pub fn on_data<F: Future>(&self, future: F) -> F::Output {
        self.runtimes.data().block_on(future)
    }
}

/// Returns what there is to know of a connector without running a task.
pub fn inspect(component: &str, places: ConnectorPlaces) -> Result<Inspection, HostError> {
    let runtimes = Runtimes::start().map_err(HostError::Threads)?;
    let connectors = Connectors::new(places)?;
    runtimes.data().block_on(async {
        let component = connectors.load(&component_ref(component)).await?;
        Ok(component.inspect().await?)
    })
}

/// Has a cron whose years are over refused. Only those who write a catalog are
/// told: what runs already goes on without a hold, also when the host starts anew.
pub(crate) fn as_of_now(draft: Draft) -> Draft {
    draft.as_of(wall_micros() / 1_000)
}

/// Builds a catalog without a data directory: nothing is written.
pub fn check(roots: &[PathBuf], places: ConnectorPlaces) -> Result<Catalog, HostError> {
    let runtimes = Runtimes::start().map_err(HostError::Threads)?;
    let connectors = Connectors::new(places)?;
    let draft = as_of_now(load(roots, &|path| std::fs::read(path)));
    Ok(runtimes
        .data()
        .block_on(Catalog::build(draft, &connectors, Live::default())))
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
    places: ConnectorPlaces,
    live: Option<&Path>,
) -> Result<Validated, HostError> {
    let runtimes = Runtimes::start().map_err(HostError::Threads)?;
    let connectors = Connectors::new(places)?.missing(Missing::Skipped);
    let build = |roots: &[PathBuf], live| {
        let draft = as_of_now(load(roots, &|path| std::fs::read(path)));
        let building = Catalog::build(draft, &connectors, live);
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
