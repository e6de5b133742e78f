//! Everything that does IO: journals, stores, the sandbox, the actors.
//!
//! The decisions are made elsewhere, by pure functions (`tidegate-core`); this
//! crate carries them out.

pub mod document;
pub mod journal;
pub mod sandbox;
pub mod shard;
pub mod store;
