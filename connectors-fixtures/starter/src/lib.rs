//! `materialize-starter`: keeps documents in one JSON file.
//!
//! ```text
//! connector.rs   what it is, which fields it holds, how a session opens
//! session.rs     one transaction after the other
//! file.rs        the destination: read whole, written whole
//! ```
//!
//! Small on purpose, and whole: the file is the authority, so that rows and
//! checkpoint change together, and a session that is not the newest can no longer
//! commit.

mod connector;
mod file;
mod session;

pub use connector::StarterConnector;

tidegate_boilerplate::export!(StarterConnector);
