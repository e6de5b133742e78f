//! What this host does for callers of its API.
//!
//! ```text
//! tidegate-api -> HostBackend -> registry (tasks, catalog)
//!                            '-> journals (collections)
//! ```

mod appends;
mod messages;

use std::sync::Arc;

use futures::stream::{self, BoxStream, StreamExt};
use tidegate_api::{Backend, Code, Error, Readiness, SyncNow, async_trait, v1};
use tokio::sync::watch;

use self::appends::Appends;
use crate::collection::Collection;
use crate::input::with_causes;
use crate::leader::{SyncNowAnswer, TaskView, Through};
use crate::platform::Platform;
use crate::published::CatalogFiles;
use crate::registry::{Change, Registry, RegistryError};

/// How much of a journal a reading caller has in memory at once.
const READ_BYTES: u64 = 1 << 20;

/// A host as its API sees it.
pub struct HostBackend {
    registry: Arc<Registry>,
    platform: Platform,
    appends: Appends,
    readiness: watch::Sender<Readiness>,
}

impl HostBackend {
    pub(crate) fn new(registry: Arc<Registry>, platform: Platform) -> HostBackend {
        let starting = Readiness::NotReady("the catalog is being started".to_owned());
        HostBackend {
            registry,
            appends: Appends::new(platform.clone()),
            platform,
            readiness: watch::Sender::new(starting),
        }
    }

    /// Says from now on whether the host takes work.
    pub fn set_readiness(&self, readiness: Readiness) {
        self.readiness.send_replace(readiness);
    }
}

#[async_trait]
impl Backend for HostBackend {
    async fn sync_now(&self, request: v1::SyncNowRequest) -> Result<SyncNow, Error> {
        let through = match request.through() {
            v1::sync_now_request::Through::Head => Through::Head,
            v1::sync_now_request::Through::Unspecified => Through::Open,
        };
        let mut call = match self.registry.sync_now(&request.task, through).await {
            // A capture, derivation or test has nothing to commit.
            Err(RegistryError::NotRun { .. }) => return Ok(messages::not_applicable()),
            call => call.map_err(of_registry)?,
        };
        let retry = |_| retry(&request.task);
        let ack = match call.next().await.map_err(retry)? {
            SyncNowAnswer::Ack { outcome, status } => messages::ack(outcome, &status),
            // Told so only if there was no room for an Ack, which there always is.
            SyncNowAnswer::Done(figures) => {
                let done = messages::done(&figures);
                return Ok(SyncNow {
                    ack: messages::not_applicable().ack,
                    done: Box::pin(async move { Ok(done) }),
                });
            }
        };
        let task = request.task.clone();
        let done = async move {
            let figures = call.done().await.map_err(|_| self::retry(&task))?;
            Ok(messages::done(&figures))
        };
        Ok(SyncNow {
            ack,
            done: Box::pin(done),
        })
    }

    async fn tasks(&self) -> Result<Vec<v1::Task>, Error> {
        let tasks = self.registry.list();
        let message = |(name, view): &(String, TaskView)| messages::task(name, view);
        Ok(tasks.iter().map(message).collect())
    }

    async fn task(&self, name: &str) -> Result<v1::Task, Error> {
        let view = self.registry.get(name).map_err(of_registry)?;
        Ok(messages::task(name, &view))
    }

    async fn watch_task(
        &self,
        name: &str,
    ) -> Result<BoxStream<'static, Result<v1::Task, Error>>, Error> {
        let Some(view) = self.registry.watch(name).map_err(of_registry)? else {
            let task = self.task(name).await;
            return Ok(stream::iter([task]).boxed());
        };
        let name = name.to_owned();
        // The first view is how the task stands; what changes faster than this
        // is read is left out.
        let state = Some((name, view, true));
        Ok(stream::unfold(state, |state| async move {
            let (name, mut view, first) = state?;
            if !first {
                view.changed().await.ok()?;
            }
            let now = view.borrow_and_update().clone();
            let task = messages::task(&name, &now);
            let next = (!now.state.is_over()).then_some((name, view, false));
            Some((Ok(task), next))
        })
        .boxed())
    }

    async fn stop_task(&self, name: &str) -> Result<v1::Task, Error> {
        let view = self.registry.stop(name).await.map_err(of_registry)?;
        Ok(messages::task(name, &view))
    }

    async fn start_task(&self, name: &str) -> Result<v1::Task, Error> {
        let view = self.registry.start(name).await.map_err(of_registry)?;
        Ok(messages::task(name, &view))
    }

    async fn append(&self, request: v1::AppendRequest) -> Result<v1::AppendResponse, Error> {
        self.appends.append(request).await
    }

    async fn read(
        &self,
        request: v1::ReadRequest,
    ) -> Result<BoxStream<'static, Result<v1::ReadResponse, Error>>, Error> {
        let (journals, name) = (&self.platform.journals, &request.collection);
        let mut known = journals
            .list()
            .await
            .map_err(|error| internal(&error))?
            .contains(name);
        if !known {
            // One of the catalog that nothing was appended to is empty.
            let kept = Collection::get(&*self.platform.store, name).await;
            known = kept.map_err(|error| internal(&error))?.is_some();
        }
        if !known {
            return Err(Error::unknown_collection(name));
        }
        let journal = journals.open(name).await;
        let journal = journal.map_err(|error| internal(&error))?;
        let end = *journal.ends().borrow();
        let upper = match request.limit {
            0 => end,
            limit => end.min(request.from_offset.saturating_add(limit)),
        };
        if request.from_offset >= upper {
            return Ok(stream::empty().boxed());
        }
        let reader = journal.read(request.from_offset, upper, READ_BYTES);
        let batches = stream::unfold(Some(reader), |reader| async move {
            let mut reader = reader?;
            match reader.next().await {
                Ok(None) => None,
                Ok(Some(batch)) => {
                    let documents: Vec<_> = batch
                        .documents()
                        .map(|document| Ok(messages::document(&document)))
                        .collect();
                    Some((documents, Some(reader)))
                }
                Err(error) => Some((vec![Err(internal(&error))], None)),
            }
        });
        Ok(batches.flat_map(stream::iter).boxed())
    }

    async fn validate(&self, catalog: v1::CatalogFiles) -> Result<v1::ValidateResponse, Error> {
        let files = messages::files_of(catalog)?;
        let catalog = self.registry.validate(&files).await;
        let catalog = catalog.map_err(|error| internal(&error))?;
        Ok(v1::ValidateResponse {
            valid: catalog.built.is_some(),
            diagnostics: messages::diagnostics(&catalog),
        })
    }

    async fn publish(&self, request: v1::PublishRequest) -> Result<v1::PublishResponse, Error> {
        let files: CatalogFiles = messages::files_of(request.catalog.unwrap_or_default())?;
        let publication = self.registry.publish(&files, request.dry_run).await;
        let publication = publication.map_err(|error| internal(&error))?;
        let valid = publication.catalog.built.is_some();
        let previews = &publication.previews;
        let changes = publication.changes.iter();
        let change = |(name, change): (&String, &Change)| {
            messages::change(name, *change, previews.get(name))
        };
        Ok(v1::PublishResponse {
            valid,
            published: valid && !request.dry_run,
            diagnostics: messages::diagnostics(&publication.catalog),
            changes: changes.map(change).collect(),
        })
    }

    async fn catalog(&self) -> Result<v1::GetCatalogResponse, Error> {
        let published = self.registry.published().await;
        match published.map_err(|error| internal(&error))? {
            Some(published) => Ok(messages::published(published)),
            None => Err(Error::new(
                Code::NotFound,
                "no catalog was published: `tidegate publish flow.yaml` publishes one",
            )),
        }
    }

    fn readiness(&self) -> Readiness {
        self.readiness.borrow().clone()
    }
}

fn of_registry(error: RegistryError) -> Error {
    match error {
        RegistryError::Unknown(name) => Error::unknown_task(&name),
        RegistryError::Host(error) => internal(&error),
        // What does not run is not there to be asked.
        error => Error::new(Code::NotFound, error.to_string()),
    }
}

fn retry(task: &str) -> Error {
    let message = format!(
        "the session of task {task} ended before the commit; calling again is safe, and waits for \
         the same documents"
    );
    Error::new(Code::Unavailable, message)
}

/// An error that is the host's: its disk, its store, a defect.
fn internal(error: &(dyn std::error::Error + 'static)) -> Error {
    Error::new(Code::Internal, with_causes(error))
}
