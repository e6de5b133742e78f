//! What answers which request: gRPC by its path, REST everything else.
//!
//! ```text
//! /tidegate.v1.X/*                -> gRPC-web -> caller -> tonic -> calls
//! /grpc.health.v1, /grpc.reflection -> gRPC-web ----------> tonic
//! anything else                     -> REST -> caller ------------> calls
//! ```

use std::convert::Infallible;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use tonic::server::NamedService;
use tonic::{Code, Status};
use tonic_health::pb::health_server::HealthServer;
use tonic_reflection::server::Builder as Reflection;
use tonic_web::GrpcWebLayer;
use tower::Service;

use crate::calls::Calls;
use crate::grpc::Grpc;
use crate::limits::BODY_BYTES_MAX;
use crate::rest::{self, Bounded};
use crate::v1::catalog_server::CatalogServer;
use crate::v1::collections_server::CollectionsServer;
use crate::v1::task_control_server::TaskControlServer;
use crate::v1::tasks_server::TasksServer;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// Returns what answers every request.
pub(super) fn router(calls: Calls) -> Router {
    let grpc = Grpc(calls.clone());
    let ours = [
        service(TaskControlServer::new(grpc.clone()).max_decoding_message_size(BODY_BYTES_MAX)),
        service(TasksServer::new(grpc.clone()).max_decoding_message_size(BODY_BYTES_MAX)),
        service(CollectionsServer::new(grpc.clone()).max_decoding_message_size(BODY_BYTES_MAX)),
        service(CatalogServer::new(grpc.clone()).max_decoding_message_size(BODY_BYTES_MAX)),
    ];
    let ours = ours.into_iter().fold(Router::new(), Router::merge);
    let ours = ours.layer(middleware::from_fn_with_state(calls.clone(), authenticate));
    let reflection = || {
        Reflection::configure()
            .register_encoded_file_descriptor_set(crate::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let v1 = reflection().build_v1();
    // What grpcurl and others that are older ask for.
    let v1alpha = reflection().build_v1alpha();
    let open = service(HealthServer::new(grpc))
        .merge(service(v1.expect("the descriptors were just compiled")))
        .merge(service(
            v1alpha.expect("the descriptors were just compiled"),
        ));
    let grpc = ours
        .merge(open)
        .layer(middleware::from_fn(bound))
        .layer(GrpcWebLayer::new());
    let rest = move |request: Request| {
        let calls = calls.clone();
        async move {
            match is_grpc(&request) {
                true => Status::unimplemented("there is no such service").into_http(),
                false => rest::handle(calls, request).await,
            }
        }
    };
    grpc.fallback(rest)
}

/// Routes the calls of a service to it.
fn service<S>(service: S) -> Router
where
    S: Service<Request, Error = Infallible> + NamedService + Clone + Send + Sync + 'static,
    S::Response: IntoResponse,
    S::Future: Send + 'static,
{
    let path = format!("/{}/{{*method}}", S::NAME);
    Router::new().route_service(&path, service)
}

/// Puts the caller into the request, before a byte of its body is read.
async fn authenticate(State(calls): State<Calls>, mut request: Request, next: Next) -> Response {
    let authorization = request.headers().get(header::AUTHORIZATION);
    match calls.authenticate(authorization.map(HeaderValue::as_bytes)) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(error) => Status::from(error).into_http::<Body>(),
    }
}

/// Bounds the time of a request's body, and says of one that is too large what
/// REST says.
async fn bound(request: Request, next: Next) -> Response {
    let request = request.map(|body| Body::new(Bounded::new(body)));
    let mut response = next.run(request).await;
    let out_of_range = i32::from(Code::OutOfRange).to_string();
    let headers = response.headers_mut();
    if headers
        .get(GRPC_STATUS)
        .is_some_and(|it| *it == *out_of_range)
    {
        let exhausted = i32::from(Code::ResourceExhausted);
        headers.insert(GRPC_STATUS, exhausted.into());
        // Visible ASCII, so it needs no encoding.
        let message = format!("the message has more than {BODY_BYTES_MAX} bytes: send it in parts");
        let message = HeaderValue::from_str(&message).expect("the message is ASCII");
        headers.insert(GRPC_MESSAGE, message);
    }
    response
}

fn is_grpc(request: &Request) -> bool {
    let content_type = request.headers().get(header::CONTENT_TYPE);
    content_type.is_some_and(|it| it.as_bytes().starts_with(b"application/grpc"))
}
