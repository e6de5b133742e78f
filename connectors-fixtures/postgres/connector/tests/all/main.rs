//! The connector through the native harness, on a server of its own.

mod apply;
mod common;
#[allow(dead_code)] // Tests of the host ask it for more.
#[path = "../../../../../tests/src/postgres.rs"]
mod postgres;
mod session;
mod types;
mod validate;
