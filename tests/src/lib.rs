//! What the end-to-end tests share: the real binary as a child process, catalogs,
//! documents, and two judges that share no code with the product.
//!
//! ```text
//! Workspace -> Host (the binary) -> SQLite file <- Watch (reads all the while)
//!     |                                  |
//!     lines ------> Fold (the oracle) ---+--> equal?
//! ```

pub mod api;
pub mod catalog;
pub mod certificates;
pub mod document;
pub mod files;
pub mod fold;
pub mod host;
pub mod postgres;
pub mod prefix;
pub mod program;
pub mod receiver;
pub mod seed;
pub mod table;
pub mod watch;
pub mod workspace;
