//! Appends to files in a directory, exactly once: NDJSON, CSV or Parquet.
//!
//! The host's log is the authority: what is not in it has not happened, and what is
//! in it is brought about again until it has.
//!
//! ```text
//! open          raise the fence, remove staged files that the state does not name
//! store         rows into staged files, out of anybody's sight
//! start_commit  a patch that names the staged files, and what they will be called
//! acknowledge   rename each file to its name, then the manifest of the transaction
//! ```
//!
//! A transaction is there when its manifest is, which one rename brings about: a
//! reader who goes by the manifests sees whole transactions. All in the directory:
//!
//! ```text
//! orders/v0/2026/12/01/00000000000000000007-00000.ndjson    rows (module `manifest` names them)
//! manifest/00000000000000000007.json                        which files are transaction 7
//! .tidegate/task.json                                       whose the directory is, and the fence
//! .tidegate/staged/1.5/00000                                what session 1.5 is writing
//! ```

mod apply;
mod column;
mod config;
mod connector;
mod constraint;
mod disk;
mod format;
mod manifest;
mod output;
mod owner;
mod root;
mod session;

pub use config::{Config, Resource};
pub use connector::FilesConnector;
pub use session::Session;
