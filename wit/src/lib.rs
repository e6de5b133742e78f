//! The protocol between host and connectors, for both sides.
//!
//! `wit/*.wit` is the contract; this crate is its Rust half: the JSON messages
//! ([`message`]), the packed batches ([`batch`]) and the tuples inside them
//! ([`mod@tuple`]), and how people are shown those ([`text`]). Host and boilerplate both use it, so that the two cannot drift.
//!
//! With the feature `schemas` the messages carry their JSON schemas, which are
//! published in `wit/schemas/`; a test compares the two.

pub mod batch;
pub mod message;
pub mod text;
pub mod tuple;

/// Version of the WIT package that this crate speaks.
pub const PACKAGE_VERSION: &str = "0.1.0";
