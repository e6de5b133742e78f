//! The connector through the native harness, on a server of its own.

mod common;
#[path = "../../../../../tests/src/receiver.rs"]
mod receiver;
mod session;
mod validate;
