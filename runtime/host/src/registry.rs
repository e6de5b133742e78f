//! The tasks that a host leads, by name.
//!
//! ```text
//! publish: build -> refused: nothing changes
//!                -> kept in the store -> each task: added | changed | removed | as it was
//! start, stop: one task, remembered over restarts of the host
//! ```
//!
//! Publishing, starting and stopping come one after the other; watching and
//! sync-now need no turn.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use futures::future::{BoxFuture, join_all};
use tidegate_core::LeftOut;
use tidegate_validator::Draft;
use tokio::sync::watch;

use crate::catalog::{Built, Catalog};
use crate::clock::wall_micros;
use crate::connectors::Connectors;
use crate::host::{HostError, Preview, as_of_now};
use crate::leader::{
    Records, SyncNowCall, SyncNowError, TaskConfig, TaskHandle, TaskState, TaskView, Through,
};
use crate::platform::Platform;
use crate::published::{CatalogFiles, Published};

/// What publishing did to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Added,
    /// It has another config.
    Changed,
    /// It is not in the catalog any more, or disabled there.
    Removed,
    /// It goes on undisturbed.
    Unchanged,
}

/// What came of publishing.
pub struct Publication {
    /// The catalog, and everything that there is to say about it.
    pub catalog: Catalog,
    /// What changed, by task; empty if the catalog was refused.
    pub changes: BTreeMap<String, Change>,
    /// Of a dry run: what the tasks that are new or changed would do at their
    /// destinations.
    pub previews: BTreeMap<String, Preview>,
}

impl Publication {
    fn refused(catalog: Catalog) -> Publication {
        Publication {
            catalog,
            changes: BTreeMap::new(),
            previews: BTreeMap::new(),
        }
    }
}

/// Why something cannot be asked of a task.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// There is no task of that name.
    #[error("there is no task {0}: `tidegate tasks` lists those that there are")]
    Unknown(String),
    /// The name is one of a capture, derivation or test.
    #[error("{name} is a {kind}, which this host does not run")]
    NotRun {
        /// The name.
        name: String,
        /// What it is.
        kind: &'static str,
    },
    /// It is stopped.
    #[error("task {0} is stopped: `tidegate start --task {0}` starts it")]
    Stopped(String),
    /// It has failed.
    #[error("{message}. Once that is mended, `tidegate start --task {task}` starts it again")]
    Failed {
        /// The task.
        task: String,
        /// Why.
        message: String,
    },
    /// The host failed.
    #[error(transparent)]
    Host(#[from] HostError),
}

struct Entry {
    config: TaskConfig,
    /// Nothing, if the task was stopped before this host started.
    handle: Option<TaskHandle>,
    /// What its record had counted then.
    left_out: LeftOut,
}

/// What an earlier host left of a task.
#[derive(Clone, Copy)]
struct Found {
    stopped: bool,
    left_out: LeftOut,
}

impl Found {
    async fn of(records: &Records) -> Result<Found, HostError> {
        let record = records.record().await?.map(|(record, _)| record);
        Ok(Found {
            stopped: records.stopped().await?,
            left_out: record.unwrap_or_default().left_out,
        })
    }
}

/// The tasks of a running host.
pub struct Registry {
    platform: Platform,
    connectors: Connectors,
    /// Held by whoever changes what runs.
    turn: tokio::sync::Mutex<()>,
    entries: Mutex<BTreeMap<String, Entry>>,
    /// Names of what the catalog has and the host does not run.
    not_run: Mutex<BTreeMap<String, &'static str>>,
    /// Counts changes of the list of tasks.
    changed: watch::Sender<u64>,
}

impl Registry {
    pub(crate) fn new(platform: Platform, connectors: Connectors) -> Registry {
        Registry {
            platform,
            connectors,
            turn: tokio::sync::Mutex::default(),
            entries: Mutex::default(),
            not_run: Mutex::default(),
            changed: watch::Sender::new(0),
        }
    }

    /// Builds a catalog as publishing would, and changes nothing.
    pub async fn validate(&self, files: &CatalogFiles) -> Result<Catalog, HostError> {
        self.build(as_of_now(files.load())).await
    }

    async fn build(&self, draft: Draft) -> Result<Catalog, HostError> {
        self.platform.build(draft, &self.connectors).await
    }

    /// Returns what was published last.
    pub async fn published(&self) -> Result<Option<Published>, HostError> {
        Ok(Published::get(&*self.platform.store).await?)
    }

    /// Has the host run a catalog in place of the one before, or with `dry_run`
    /// only says what that would change. A catalog with an error changes nothing.
    ///
    /// Boxed, as [`resume`](Self::resume) is, so that it is compiled here and not once
    /// more in each program.
    pub fn publish<'a>(
        &'a self,
        files: &'a CatalogFiles,
        dry_run: bool,
    ) -> BoxFuture<'a, Result<Publication, HostError>> {
        Box::pin(async move {
            if dry_run {
                return self.compare(files).await;
            }
            let _turn = self.turn.lock().await;
            let catalog = self.validate(files).await?;
            self.apply(files, catalog).await
        })
    }

    /// Says what publishing a catalog would change. It takes no turn: a destination
    /// that does not answer holds nobody up.
    async fn compare(&self, files: &CatalogFiles) -> Result<Publication, HostError> {
        let catalog = self.validate(files).await?;
        let Some(built) = &catalog.built else {
            return Ok(Publication::refused(catalog));
        };
        let configs = self.configs(built, files).await?;
        let changes = self.changes(&configs);
        let previews = self.previews(&configs, &changes).await;
        Ok(Publication {
            catalog,
            changes,
            previews,
        })
    }

    /// Runs what was published last, as a host does that starts; nothing if
    /// nothing was.
    pub fn resume(&self) -> BoxFuture<'_, Result<Option<Publication>, HostError>> {
        Box::pin(async {
            let _turn = self.turn.lock().await;
            let Some(published) = self.published().await? else {
                return Ok(None);
            };
            let files = published.catalog;
            let catalog = self.build(files.load()).await?;
            self.apply(&files, catalog).await.map(Some)
        })
    }

    async fn apply(
        &self,
        files: &CatalogFiles,
        mut catalog: Catalog,
    ) -> Result<Publication, HostError> {
        let Some(built) = catalog.built.take() else {
            return Ok(Publication::refused(catalog));
        };
        // Everything that can fail comes before anything changes.
        let configs = self.configs(&built, files).await?;
        let mut found = BTreeMap::new();
        for name in configs.keys() {
            found.insert(name.clone(), Found::of(&self.records(name)).await?);
        }
        let changes = self.changes(&configs);
        let before = self.published().await?;
        if before.is_none_or(|before| before.catalog != *files) {
            let published = Published {
                catalog: files.clone(),
                at_micros: wall_micros(),
            };
            published.put(&*self.platform.store).await?;
        }
        self.platform.keep_collections(&built).await?;

        self.remove_all_but(&configs).await;
        for (name, config) in configs {
            if changes[&name] != Change::Unchanged {
                self.put(&name, config, found[&name]).await;
            }
        }
        *self
            .not_run
            .lock()
            .expect("nothing panics while it holds this lock") = built.catalog.not_run.clone();
        self.changed.send_modify(|changes| *changes += 1);
        catalog.built = Some(built);
        Ok(Publication {
            catalog,
            changes,
            previews: BTreeMap::new(),
        })
    }

    /// Returns what the tasks of a catalog that run are led by.
    async fn configs(
        &self,
        built: &Built,
        files: &CatalogFiles,
    ) -> Result<BTreeMap<String, TaskConfig>, HostError> {
        let mut configs = BTreeMap::new();
        for (name, task) in &built.catalog.tasks {
            if !task.shards.disable {
                let config = self.platform.config(built, name, &files.base);
                configs.insert(name.clone(), config.await?);
            }
        }
        Ok(configs)
    }

    /// Asks the connectors of tasks that are new or changed what they would do, all
    /// at once: one destination that does not answer is waited for, not the sum.
    async fn previews(
        &self,
        configs: &BTreeMap<String, TaskConfig>,
        changes: &BTreeMap<String, Change>,
    ) -> BTreeMap<String, Preview> {
        let asked = configs
            .iter()
            .filter(|(name, _)| changes[*name] != Change::Unchanged)
            .map(async |(name, config)| (name.clone(), self.platform.preview(config).await));
        join_all(asked).await.into_iter().collect()
    }

    /// Compares what is wanted with what there is.
    fn changes(&self, wanted: &BTreeMap<String, TaskConfig>) -> BTreeMap<String, Change> {
        let entries = self.entries();
        let removed = entries.keys().filter(|name| !wanted.contains_key(*name));
        let mut changes: BTreeMap<String, Change> = removed
            .map(|name| (name.clone(), Change::Removed))
            .collect();
        for (name, config) in wanted {
            let change = match entries.get(name) {
                None => Change::Added,
                Some(entry) if entry.config.is_same(config) => Change::Unchanged,
                Some(_) => Change::Changed,
            };
            changes.insert(name.clone(), change);
        }
        changes
    }

    /// Stops the tasks that are no longer wanted, all at once.
    async fn remove_all_but(&self, wanted: &BTreeMap<String, TaskConfig>) {
        let unwanted: BTreeMap<String, Entry> = self
            .entries()
            .extract_if(.., |name, _| !wanted.contains_key(name))
            .collect();
        let handles: Vec<_> = unwanted.values().flat_map(|it| it.handle.clone()).collect();
        join_all(handles.iter().map(end)).await;
    }

    /// Brings one task to a config.
    async fn put(&self, name: &str, config: TaskConfig, found: Found) {
        let before = self
            .entries()
            .get(name)
            .and_then(|entry| entry.handle.clone());
        let handle = match before {
            // One that ends at this moment does not take the config: it starts anew.
            Some(handle) if handle.change(config.clone()).await => Some(handle),
            _ if found.stopped => None,
            _ => Some(self.platform.start(config.clone(), false)),
        };
        let entry = Entry {
            config,
            handle,
            left_out: found.left_out,
        };
        self.entries().insert(name.to_owned(), entry);
    }

    /// Starts a task that is stopped or has failed; one that runs goes on.
    pub async fn start(&self, name: &str) -> Result<TaskView, RegistryError> {
        let _turn = self.turn.lock().await;
        let handle = self.handle(name)?;
        self.put_stopped(name, false).await?;
        if let Some(handle) = handle.filter(|it| !it.watch().borrow().state.is_over()) {
            return Ok(handle.watch().borrow().clone());
        }
        let config = self.entries().get(name).map(|entry| entry.config.clone());
        let config = config.ok_or_else(|| self.unknown(name))?;
        let handle = self.platform.start(config, false);
        let view = handle.watch().borrow().clone();
        if let Some(entry) = self.entries().get_mut(name) {
            entry.handle = Some(handle);
        }
        self.changed.send_modify(|changes| *changes += 1);
        Ok(view)
    }

    /// Stops a task: closes, commits and acknowledges what is open. It stays
    /// stopped, also when the host starts anew, until it is started.
    pub async fn stop(&self, name: &str) -> Result<TaskView, RegistryError> {
        let _turn = self.turn.lock().await;
        let handle = self.handle(name)?;
        self.put_stopped(name, true).await?;
        match handle {
            None => self.get(name),
            Some(handle) => Ok(end(&handle).await),
        }
    }

    /// Stops every task, for the host to end. They run again when it starts.
    pub async fn end(&self) {
        let _turn = self.turn.lock().await;
        let handles: Vec<_> = self
            .entries()
            .values()
            .flat_map(|it| it.handle.clone())
            .collect();
        join_all(handles.iter().map(end)).await;
    }

    /// Lists the tasks with what they are doing, in the order of their names.
    pub fn list(&self) -> Vec<(String, TaskView)> {
        let view = |(name, entry): (&String, &Entry)| (name.clone(), entry.view());
        self.entries().iter().map(view).collect()
    }

    /// Returns what a task is doing.
    pub fn get(&self, name: &str) -> Result<TaskView, RegistryError> {
        let entries = self.entries();
        let entry = entries.get(name).ok_or_else(|| self.unknown(name))?;
        Ok(entry.view())
    }

    /// Watches a task that runs; nothing if it does not.
    pub fn watch(&self, name: &str) -> Result<Option<watch::Receiver<TaskView>>, RegistryError> {
        Ok(self.handle(name)?.map(|handle| handle.watch()))
    }

    /// Watches for tasks that are added, removed or started.
    pub fn watch_list(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Asks a task for a commit of what is open.
    ///
    /// # Errors
    ///
    /// An error of the task's state. Whatever ends the call later is
    /// [`SyncNowError::Retry`].
    pub async fn sync_now(
        &self,
        name: &str,
        through: Through,
    ) -> Result<SyncNowCall, RegistryError> {
        let stopped = || RegistryError::Stopped(name.to_owned());
        let handle = self.handle(name)?.ok_or_else(stopped)?;
        match handle.sync_now(through).await {
            Ok(call) => Ok(call),
            Err(SyncNowError::Retry) => Err(stopped()),
            Err(SyncNowError::NotRunning { .. }) => Err(match self.get(name)?.state {
                TaskState::Failed { message } => RegistryError::Failed {
                    task: name.to_owned(),
                    message,
                },
                _ => stopped(),
            }),
        }
    }

    fn handle(&self, name: &str) -> Result<Option<TaskHandle>, RegistryError> {
        let entries = self.entries();
        let entry = entries.get(name).ok_or_else(|| self.unknown(name))?;
        Ok(entry.handle.clone())
    }

    fn unknown(&self, name: &str) -> RegistryError {
        let not_run = self
            .not_run
            .lock()
            .expect("nothing panics while it holds this lock");
        match not_run.get(name) {
            Some(kind) => RegistryError::NotRun {
                name: name.to_owned(),
                kind,
            },
            None => RegistryError::Unknown(name.to_owned()),
        }
    }

    async fn put_stopped(&self, name: &str, stopped: bool) -> Result<(), RegistryError> {
        let put = self.records(name).put_stopped(stopped).await;
        Ok(put.map_err(HostError::from)?)
    }

    fn records(&self, name: &str) -> Records {
        Records::new(self.platform.store.clone(), name)
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.entries
            .lock()
            .expect("nothing panics while it holds this lock")
    }
}

impl Entry {
    fn view(&self) -> TaskView {
        match &self.handle {
            Some(handle) => handle.watch().borrow().clone(),
            None => TaskView::stopped(self.left_out),
        }
    }
}

/// Stops a task and waits until it is over.
async fn end(handle: &TaskHandle) -> TaskView {
    handle.stop().await;
    handle.over().await
}
