//! The gRPC side: every method is the call of the same name.

use futures::stream::{self, BoxStream, StreamExt};
use tonic::{Request, Response, Status, async_trait};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::Health;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::auth::Claims;
use crate::backend::Readiness;
use crate::calls::Calls;
use crate::error::Error;
use crate::json::POOL;
use crate::limits::HEALTH_EVERY;
use crate::stream::Answers;
use crate::v1;

/// The services, each of which is this.
#[derive(Clone)]
pub(crate) struct Grpc(pub(crate) Calls);

type Answered<T> = Result<Response<T>, Status>;
type Streamed<T> = BoxStream<'static, Result<T, Status>>;

/// Takes a request apart. Its caller was put there before its body was read.
fn open<T>(request: Request<T>) -> (Claims, T) {
    let (_, mut extensions, message) = request.into_parts();
    let caller = extensions.remove::<Claims>();
    (caller.expect("no call gets here without a caller"), message)
}

fn answer<T>(answer: Result<T, Error>) -> Answered<T> {
    Ok(Response::new(answer?))
}

fn answers<T: 'static>(answers: Result<Answers<T>, Error>) -> Answered<Streamed<T>> {
    let answers = answers?.map(|message| message.map_err(Status::from));
    Ok(Response::new(answers.boxed()))
}

#[async_trait]
impl v1::task_control_server::TaskControl for Grpc {
    type SyncNowStream = Streamed<v1::SyncNowResponse>;

    async fn sync_now(
        &self,
        request: Request<v1::SyncNowRequest>,
    ) -> Answered<Self::SyncNowStream> {
        let (caller, request) = open(request);
        answers(self.0.sync_now(&caller, request).await)
    }
}

#[async_trait]
impl v1::tasks_server::Tasks for Grpc {
    type WatchStream = Streamed<v1::WatchTaskResponse>;

    async fn list(
        &self,
        request: Request<v1::ListTasksRequest>,
    ) -> Answered<v1::ListTasksResponse> {
        let (caller, request) = open(request);
        answer(self.0.list(&caller, request).await)
    }

    async fn get(&self, request: Request<v1::GetTaskRequest>) -> Answered<v1::GetTaskResponse> {
        let (caller, request) = open(request);
        answer(self.0.get(&caller, request).await)
    }

    async fn watch(&self, request: Request<v1::WatchTaskRequest>) -> Answered<Self::WatchStream> {
        let (caller, request) = open(request);
        answers(self.0.watch(&caller, request).await)
    }

    async fn stop(&self, request: Request<v1::StopTaskRequest>) -> Answered<v1::StopTaskResponse> {
        let (caller, request) = open(request);
        answer(self.0.stop(&caller, request).await)
    }

    async fn start(
        &self,
        request: Request<v1::StartTaskRequest>,
    ) -> Answered<v1::StartTaskResponse> {
        let (caller, request) = open(request);
        answer(self.0.start(&caller, request).await)
    }
}

#[async_trait]
impl v1::collections_server::Collections for Grpc {
    type ReadStream = Streamed<v1::ReadResponse>;

    async fn append(&self, request: Request<v1::AppendRequest>) -> Answered<v1::AppendResponse> {
        let (caller, request) = open(request);
        answer(self.0.append(&caller, request).await)
    }

    async fn read(&self, request: Request<v1::ReadRequest>) -> Answered<Self::ReadStream> {
        let (caller, request) = open(request);
        answers(self.0.read(&caller, request).await)
    }
}

#[async_trait]
impl v1::catalog_server::Catalog for Grpc {
    async fn validate(
        &self,
        request: Request<v1::ValidateRequest>,
    ) -> Answered<v1::ValidateResponse> {
        let (caller, request) = open(request);
        answer(self.0.validate(&caller, request).await)
    }

    async fn publish(&self, request: Request<v1::PublishRequest>) -> Answered<v1::PublishResponse> {
        let (caller, request) = open(request);
        answer(self.0.publish(&caller, request).await)
    }

    async fn get(
        &self,
        request: Request<v1::GetCatalogRequest>,
    ) -> Answered<v1::GetCatalogResponse> {
        let (caller, _) = open(request);
        answer(self.0.catalog(&caller).await)
    }
}

/// Health as gRPC's tools ask for it; every service is as ready as the host.
#[async_trait]
impl Health for Grpc {
    type WatchStream = Streamed<HealthCheckResponse>;

    async fn check(&self, request: Request<HealthCheckRequest>) -> Answered<HealthCheckResponse> {
        known(&request.into_inner().service)?;
        Ok(Response::new(self.health()))
    }

    async fn watch(&self, request: Request<HealthCheckRequest>) -> Answered<Self::WatchStream> {
        known(&request.into_inner().service)?;
        let healths = stream::unfold((self.clone(), None), |(grpc, said)| async move {
            let mut stopping = grpc.0.stopping();
            loop {
                let health = grpc.health();
                if said != Some(health) {
                    return Some((Ok(health), (grpc, Some(health))));
                }
                if stopping.is_now() {
                    return None;
                }
                tokio::select! {
                    () = stopping.wait() => {}
                    () = tokio::time::sleep(HEALTH_EVERY) => {}
                }
            }
        });
        Ok(Response::new(healths.boxed()))
    }
}

impl Grpc {
    fn health(&self) -> HealthCheckResponse {
        let status = match self.0.readiness() {
            Readiness::Ready => ServingStatus::Serving,
            Readiness::NotReady(_) => ServingStatus::NotServing,
        };
        HealthCheckResponse {
            status: status.into(),
        }
    }
}

fn known(service: &str) -> Result<(), Status> {
    match service.is_empty() || POOL.get_service_by_name(service).is_some() {
        true => Ok(()),
        false => Err(Status::not_found("there is no such service")),
    }
}
