//! The files connector, driven natively through the protocol, on real files.

mod common;
mod formats;
mod session;
mod validate;
