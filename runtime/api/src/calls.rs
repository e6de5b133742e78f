//! What every call goes through, whatever it came in by.
//!
//! ```text
//! headers -> Claims            before a byte of the body is read
//! request -> scope -> name -> room -> Backend -> answer
//! ```

use std::sync::Arc;

use futures::FutureExt;
use futures::stream::StreamExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::auth::{Claims, Scope, Verifier};
use crate::backend::{Backend, Readiness};
use crate::error::{Code, Error};
use crate::limits::{CALLS_MAX, KEY_BYTES_MAX, NAME_BYTES_MAX};
use crate::stream::{self, Answers, Pace, Stopping, stopping_error};
use crate::v1;

/// A backend, and who may ask it what.
#[derive(Clone)]
pub(crate) struct Calls {
    backend: Arc<dyn Backend>,
    verifier: Arc<Verifier>,
    stopping: Stopping,
    room: Arc<Semaphore>,
    pace: Pace,
}

impl Calls {
    pub(crate) fn new(
        backend: Arc<dyn Backend>,
        verifier: Arc<Verifier>,
        stopping: Stopping,
        pace: Pace,
    ) -> Calls {
        Calls {
            backend,
            verifier,
            stopping,
            room: Arc::new(Semaphore::new(CALLS_MAX)),
            pace,
        }
    }

    /// Says whose a request is.
    pub(crate) fn authenticate(&self, authorization: Option<&[u8]>) -> Result<Claims, Error> {
        self.verifier.verify(authorization)
    }

    pub(crate) fn readiness(&self) -> Readiness {
        match self.stopping.is_now() {
            true => Readiness::NotReady("the host is stopping".to_owned()),
            false => self.backend.readiness(),
        }
    }

    pub(crate) fn stopping(&self) -> Stopping {
        self.stopping.clone()
    }

    pub(crate) async fn sync_now(
        &self,
        caller: &Claims,
        request: v1::SyncNowRequest,
    ) -> Result<Answers<v1::SyncNowResponse>, Error> {
        caller.require(Scope::TasksSync)?;
        task_name(caller, &request.task)?;
        let room = self.work()?;
        let task = request.task.clone();
        let backend = self.backend.clone();
        let answer = self
            .run((), move |calls| async move {
                calls.backend.sync_now(request).await
            })
            .await?;
        let status = move || {
            let (backend, task) = (backend.clone(), task.clone());
            // A heartbeat is worth something without a status too.
            async move { backend.task(&task).await.ok().and_then(|task| task.status) }.boxed()
        };
        let answers = stream::sync_now(answer, status, self.stopping.clone(), self.pace);
        Ok(held(answers, room))
    }

    pub(crate) async fn list(
        &self,
        caller: &Claims,
        request: v1::ListTasksRequest,
    ) -> Result<v1::ListTasksResponse, Error> {
        caller.require(Scope::TasksRead)?;
        let mut tasks = self
            .run(
                self.room()?,
                |calls| async move { calls.backend.tasks().await },
            )
            .await?;
        tasks.retain(|task| caller.sees(&task.name) && task.name.starts_with(&request.prefix));
        Ok(v1::ListTasksResponse { tasks })
    }

    pub(crate) async fn get(
        &self,
        caller: &Claims,
        request: v1::GetTaskRequest,
    ) -> Result<v1::GetTaskResponse, Error> {
        caller.require(Scope::TasksRead)?;
        task_name(caller, &request.task)?;
        let task = self
            .run(self.room()?, |calls| async move {
                calls.backend.task(&request.task).await
            })
            .await?;
        Ok(v1::GetTaskResponse { task: Some(task) })
    }

    pub(crate) async fn watch(
        &self,
        caller: &Claims,
        request: v1::WatchTaskRequest,
    ) -> Result<Answers<v1::WatchTaskResponse>, Error> {
        caller.require(Scope::TasksRead)?;
        task_name(caller, &request.task)?;
        let room = self.room()?;
        let tasks = self
            .run((), |calls| async move {
                calls.backend.watch_task(&request.task).await
            })
            .await?;
        let answers = stream::latest(tasks, self.stopping.clone(), self.pace);
        Ok(held(answers, room))
    }

    pub(crate) async fn stop(
        &self,
        caller: &Claims,
        request: v1::StopTaskRequest,
    ) -> Result<v1::StopTaskResponse, Error> {
        caller.require(Scope::TasksWrite)?;
        task_name(caller, &request.task)?;
        let task = self
            .run(self.work()?, |calls| async move {
                calls.backend.stop_task(&request.task).await
            })
            .await?;
        Ok(v1::StopTaskResponse { task: Some(task) })
    }

    pub(crate) async fn start(
        &self,
        caller: &Claims,
        request: v1::StartTaskRequest,
    ) -> Result<v1::StartTaskResponse, Error> {
        caller.require(Scope::TasksWrite)?;
        task_name(caller, &request.task)?;
        let task = self
            .run(self.work()?, |calls| async move {
                calls.backend.start_task(&request.task).await
            })
            .await?;
        Ok(v1::StartTaskResponse { task: Some(task) })
    }

    pub(crate) async fn append(
        &self,
        caller: &Claims,
        request: v1::AppendRequest,
    ) -> Result<v1::AppendResponse, Error> {
        caller.require(Scope::CollectionsAppend)?;
        collection_name(caller, &request.collection)?;
        if request.idempotency_key.len() > KEY_BYTES_MAX {
            return Err(invalid(format!(
                "the idempotency key has {} bytes; {KEY_BYTES_MAX} are the most",
                request.idempotency_key.len()
            )));
        }
        self.run(self.work()?, |calls| async move {
            calls.backend.append(request).await
        })
        .await
    }

    pub(crate) async fn read(
        &self,
        caller: &Claims,
        request: v1::ReadRequest,
    ) -> Result<Answers<v1::ReadResponse>, Error> {
        caller.require(Scope::CollectionsRead)?;
        collection_name(caller, &request.collection)?;
        let room = self.room()?;
        let documents = self
            .run((), |calls| async move { calls.backend.read(request).await })
            .await?;
        let answers = stream::relay(documents, self.stopping.clone(), self.pace);
        Ok(held(answers, room))
    }

    pub(crate) async fn validate(
        &self,
        caller: &Claims,
        request: v1::ValidateRequest,
    ) -> Result<v1::ValidateResponse, Error> {
        caller.require(Scope::Admin)?;
        caller.require_every_name()?;
        let catalog = catalog_of(request.catalog)?;
        self.run(self.room()?, |calls| async move {
            calls.backend.validate(catalog).await
        })
        .await
    }

    pub(crate) async fn publish(
        &self,
        caller: &Claims,
        mut request: v1::PublishRequest,
    ) -> Result<v1::PublishResponse, Error> {
        caller.require(Scope::Admin)?;
        caller.require_every_name()?;
        request.catalog = Some(catalog_of(request.catalog)?);
        self.run(self.work()?, |calls| async move {
            calls.backend.publish(request).await
        })
        .await
    }

    pub(crate) async fn catalog(&self, caller: &Claims) -> Result<v1::GetCatalogResponse, Error> {
        caller.require(Scope::Admin)?;
        caller.require_every_name()?;
        self.run(self.room()?, |calls| async move {
            calls.backend.catalog().await
        })
        .await
    }

    /// Takes room for a call that changes something, or waits for a leader: a host
    /// that is starting or stopping says of its tasks what is not so for long.
    fn work(&self) -> Result<OwnedSemaphorePermit, Error> {
        match self.readiness() {
            Readiness::Ready => self.room(),
            Readiness::NotReady(why) => Err(not_ready(&why)),
        }
    }

    /// Takes room for a call.
    fn room(&self) -> Result<OwnedSemaphorePermit, Error> {
        if self.stopping.is_now() {
            return Err(stopping_error());
        }
        self.room.clone().try_acquire_owned().map_err(|_| {
            let message = format!("the host has {CALLS_MAX} calls already: call again later");
            Error::new(Code::ResourceExhausted, message)
        })
    }

    /// Asks the backend in a task of its own: whoever hangs up in the middle of a
    /// publication must not leave half of one.
    async fn run<T, F>(
        &self,
        room: impl Send + 'static,
        ask: impl FnOnce(Calls) -> F,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let asked = ask(self.clone());
        let asked = tokio::spawn(async move {
            let _room = room;
            asked.await
        });
        let answer = asked.await.unwrap_or_else(|error| {
            tracing::error!("a call broke off: {error}");
            Err(Error::new(
                Code::Internal,
                "the call broke off: the host's log says why",
            ))
        });
        match (answer, self.readiness()) {
            // Its tasks are not there yet, or not any more.
            (Err(error), Readiness::NotReady(why)) if error.code == Code::NotFound => {
                Err(not_ready(&why))
            }
            (answer, _) => answer,
        }
    }
}

/// Keeps the room of a call until its last message.
fn held<T: 'static>(answers: Answers<T>, room: OwnedSemaphorePermit) -> Answers<T> {
    answers
        .inspect(move |_| {
            let _held = &room;
        })
        .boxed()
}

fn task_name(caller: &Claims, name: &str) -> Result<(), Error> {
    check_name("task", name)?;
    match caller.sees(name) {
        true => Ok(()),
        false => Err(Error::unknown_task(name)),
    }
}

fn collection_name(caller: &Claims, name: &str) -> Result<(), Error> {
    check_name("collection", name)?;
    match caller.sees(name) {
        true => Ok(()),
        false => Err(Error::unknown_collection(name)),
    }
}

/// Refuses what cannot be a name, whoever asks.
fn check_name(kind: &str, name: &str) -> Result<(), Error> {
    if name.is_empty() {
        return Err(invalid(format!(
            "the request names no {kind}: set `{kind}`"
        )));
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(invalid(format!(
            "the name of the {kind} has {} bytes; {NAME_BYTES_MAX} are the most",
            name.len()
        )));
    }
    Ok(())
}

fn catalog_of(catalog: Option<v1::CatalogFiles>) -> Result<v1::CatalogFiles, Error> {
    let catalog = catalog.unwrap_or_default();
    if catalog.roots.is_empty() {
        return Err(invalid(
            "the catalog has no `roots`: name the files to start from",
        ));
    }
    if let Some(root) = catalog
        .roots
        .iter()
        .find(|root| !catalog.files.contains_key(*root))
    {
        return Err(invalid(format!(
            "the catalog has no file {root}, which is one of its roots: put it into `files`"
        )));
    }
    Ok(catalog)
}

fn not_ready(why: &str) -> Error {
    let message = format!("the host is not ready: {why}; calling again is safe");
    Error::new(Code::Unavailable, message)
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidArgument, message)
}
