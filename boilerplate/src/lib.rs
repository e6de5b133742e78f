//! What a connector author links.

// Generated, and documented in `wit/connector.wit`.
#[allow(missing_docs)]
#[cfg(target_family = "wasm")]
pub mod bindings;
