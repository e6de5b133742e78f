//! `materialize-faulty`: the SQLite connector, which fails as its config tells it
//! to. For tests of the host.
//!
//! ```text
//! host -> Faulty (a fault before or after the call?) -> Driver -> FaultyConnector -> SQLite connector
//! ```
//!
//! It also has what the SQLite connector lacks: a `syncSchedule` of its own, and a
//! `jitterKey`.

mod config;
mod connector;
mod fault;
mod protocol;
mod reach;

pub use config::{Call, Config, Fault, FaultKind, Violation};
pub use connector::FaultyConnector;
pub use protocol::Faulty;
pub use reach::Reach;

tidegate_boilerplate::export!(protocol Faulty);
