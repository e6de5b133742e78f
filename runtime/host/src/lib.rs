//! Everything that does IO: journals, stores, the sandbox, the actors.
//!
//! The decisions are made elsewhere, by pure functions (`tidegate-core`); this
//! crate carries them out.

mod append;
mod backend;
mod catalog;
pub mod clock;
mod collection;
mod connectors;
mod data_dir;
pub mod document;
mod host;
mod input;
pub mod journal;
pub mod leader;
mod platform;
mod published;
mod registry;
mod runtimes;
pub mod sandbox;
pub mod shard;
pub mod store;

pub use append::{AppendError, Appended};
pub use backend::HostBackend;
pub use catalog::{Built, Catalog, Live};
pub use collection::CollectionError;
pub use connectors::{ConnectorError, ConnectorPlaces, Connectors, Missing, component_ref};
pub use data_dir::{DataDir, DataDirError, FORMAT_VERSION};
pub use host::{
    Host, HostError, Preview, RunOptions, TaskSummary, Validated, check, inspect, validate,
};
pub use input::{InputEnd, InputHandle};
pub use published::{CatalogFiles, Published, PublishedError};
pub use registry::{Change, Publication, Registry, RegistryError};
pub use runtimes::Runtimes;
