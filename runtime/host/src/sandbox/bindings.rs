//! What `bindgen!` makes of the imports in `wit/`, and nothing else.
//!
//! The rest of the sandbox uses it through the names of this module. What a
//! connector exports is in `exports.rs`: the macro cannot bind an exported
//! function named `store` (it shadows a variable of its own).

#[allow(missing_docs)] // The documentation is in `wit/connector.wit`.
mod generated {
    wasmtime::component::bindgen!({
        path: "../../wit",
        interfaces: "
            import tidegate:connector/runtime@0.1.0;
            import tidegate:connector/sqlite@0.1.0;
            import tidegate:connector/net@0.1.0;
        ",
        imports: {
            "tidegate:connector/runtime.log": trappable,
            default: async | trappable,
        },
        with: {
            "tidegate:connector/sqlite.db": super::super::sqlite::Database,
            "tidegate:connector/net.connection": super::super::net::Connection,
        },
    });
}

pub use generated::tidegate::connector::types::{Error as GuestError, ErrorKind};
pub(super) use generated::tidegate::connector::{net, runtime, sqlite, types};
