//! The connector through the native harness, on files of its own.

mod apply;
mod common;
mod session;
mod validate;
