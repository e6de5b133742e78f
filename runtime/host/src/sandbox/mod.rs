//! The sandbox that connectors run in.
//!
//! A connector is a WebAssembly component. It gets nothing but what its task's
//! configuration grants, and it can neither hang nor exhaust its host:
//!
//! ```text
//! Engine -> load -> Component -> start -> Session -> validate | apply | open ...
//!                       |                    |
//!                       +-> spec, inspect    +-> Fault: the session is finished
//! ```
//!
//! It does not know what a transaction is: the order of the calls, and what
//! follows from a [`Fault`], are decided by the shard.
//!
//! Sessions belong on a runtime of their own (several threads, not the one
//! that serves the API): file operations and SQLite block the thread they run
//! on, so that a call that is dropped leaves nothing behind that lands later.

mod bindings;
mod component;
mod dial;
mod engine;
mod exports;
mod fault;
mod grant;
mod guest;
mod http;
mod limits;
mod log;
mod net;
mod runtime;
mod session;
mod sockets;
mod sqlite;
mod stop;
mod stream;
mod tls;
mod wasi;
mod watchdog;

#[cfg(test)]
mod tests;

pub use bindings::{ErrorKind, GuestError};
pub use component::{Component, Inspection, LoadError};
pub use dial::{DialError, dial};
pub use engine::{Engine, EngineConfig, EngineError};
pub use fault::{Call, Fault, FaultKind};
pub use grant::{Allow, Denial, DirectoryGrant, GrantError, Grants, NetworkGrant};
pub use limits::Limits;
pub use log::{LogLevel, LogLine, LogSink, tracing_sink};
pub use session::{Activity, Session, SessionConfig};
pub use stop::{Stop, StopHandle};
