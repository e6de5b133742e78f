//! What a host does for callers.
//!
//! ```text
//! call -> authorized -> Backend -> answer
//! ```
//!
//! A backend is asked only what the caller may ask: tokens, scopes and names are
//! none of its business. It runs on the server's runtime, so it must not block.

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use tonic::async_trait;

use crate::error::Error;
use crate::v1;

/// Whether the host takes work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It does.
    Ready,
    /// It does not; says why.
    NotReady(String),
}

/// The answer to a sync-now call.
pub struct SyncNow {
    /// What is told at once.
    pub ack: v1::sync_now_response::Ack,
    /// Resolves once what the caller waits for can be queried. It is dropped when
    /// the caller hangs up, which must change nothing else.
    pub done: BoxFuture<'static, Result<v1::sync_now_response::Done, Error>>,
}

/// A host, as the API sees it.
///
/// A call that answers once runs to its end even if its caller hangs up. Unknown
/// names must be [`Error::unknown_task`] and [`Error::unknown_collection`]: what
/// a caller may not see is answered with the very same words.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// Pokes the leader of a task. Heartbeats are the server's: it asks
    /// [`Backend::task`] for the status that they carry.
    async fn sync_now(&self, request: v1::SyncNowRequest) -> Result<SyncNow, Error>;

    /// Lists all tasks in the order of their names.
    async fn tasks(&self) -> Result<Vec<v1::Task>, Error>;

    /// Returns a task.
    async fn task(&self, name: &str) -> Result<v1::Task, Error>;

    /// Follows a task: how it stands at once, then whenever that changes. The
    /// stream ends after a task that is stopped or has failed. The server reads
    /// it as fast as it comes.
    async fn watch_task(
        &self,
        name: &str,
    ) -> Result<BoxStream<'static, Result<v1::Task, Error>>, Error>;

    /// Stops a task and returns it once it is stopped.
    async fn stop_task(&self, name: &str) -> Result<v1::Task, Error>;

    /// Starts a task that does not run.
    async fn start_task(&self, name: &str) -> Result<v1::Task, Error>;

    /// Appends all documents of the request durably, or none.
    async fn append(&self, request: v1::AppendRequest) -> Result<v1::AppendResponse, Error>;

    /// Reads a collection up to its present end. The stream is read only as fast
    /// as the client does, and dropped when it hangs up or does not keep up.
    async fn read(
        &self,
        request: v1::ReadRequest,
    ) -> Result<BoxStream<'static, Result<v1::ReadResponse, Error>>, Error>;

    /// Says everything there is to say about a catalog.
    async fn validate(&self, catalog: v1::CatalogFiles) -> Result<v1::ValidateResponse, Error>;

    /// Publishes a catalog, or says what would change. One with errors changes
    /// nothing, and is no error of the call.
    async fn publish(&self, request: v1::PublishRequest) -> Result<v1::PublishResponse, Error>;

    /// Returns the published catalog.
    async fn catalog(&self) -> Result<v1::GetCatalogResponse, Error>;

    /// Says whether the host takes work. While it does not, calls that need its
    /// tasks are UNAVAILABLE without being asked here, and so is what is not found.
    fn readiness(&self) -> Readiness;
}
