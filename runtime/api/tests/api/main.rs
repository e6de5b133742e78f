//! The API over real connections: a server on a free port of the loopback, and a
//! small host behind it that keeps everything in memory.

mod auth;
mod curl;
mod grpc;
mod host;
mod http;
mod limits;
mod rest;
mod retry;
mod server;
mod shutdown;
mod slow;
