//! The connector through the native harness, on a server of its own.

mod apply;
mod common;
#[path = "../../../../../tests/src/postgres.rs"]
mod postgres;
mod session;
mod types;
mod validate;
