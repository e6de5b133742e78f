//! The API of a host: its messages, its server and its client.
//!
//! ```text
//! gRPC, gRPC-web -.
//!                  >- calls: who may? -> Backend (the host)
//! REST ----------'        |
//!                         '- streams that no slow client holds up
//! ```
//!
//! One port, two transports, one dialect: a REST call is the gRPC call of the
//! same name with its messages in the protos' JSON mapping. What a call does is
//! behind [`Backend`] and deliberately unknown here, so that this crate builds
//! and is tested without a host.

pub mod auth;
pub mod backend;
mod calls;
pub mod client;
mod error;
mod grpc;
mod json;
pub mod limits;
pub mod local;
mod rest;
pub mod server;
mod stream;

/// The messages and services of `tidegate.v1`.
#[allow(missing_docs)]
pub mod v1 {
    tonic::include_proto!("tidegate.v1");
}

pub use backend::{Backend, Readiness, SyncNow};
pub use error::{Code, Error};
pub use json::{from_json, to_json};
pub use rest::document as openapi;
/// For implementations of [`Backend`].
pub use tonic::async_trait;

/// The descriptors of `tidegate.v1`, a serialized `FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
