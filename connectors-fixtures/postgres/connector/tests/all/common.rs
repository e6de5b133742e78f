//! One server for all tests, a schema of its own for each, and ways to look into it.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use postgres_connector::PostgresConnector;
use serde_json::{Value, json};
use tidegate_boilerplate::testing::{Harness, binding, spec};
use tidegate_boilerplate::{Driver, JsonType, SpecBinding};

use crate::postgres::{DATABASE, PASSWORD, Server, USER};

pub const INTEGER: &[JsonType] = &[JsonType::Integer];
pub const TEXT: &[JsonType] = &[JsonType::String];

static SCHEMAS: AtomicU32 = AtomicU32::new(0);

/// A static is not dropped, so the server is: by the process's end its pipe closes, and
/// `Fixture` counts who is left.
static SERVER: LazyLock<std::sync::Mutex<Option<std::sync::Weak<Server>>>> =
    LazyLock::new(Default::default);
