//! A server for each test, and ways to look into it.

use std::rc::Rc;

use postgres_connector::PostgresConnector;
use serde_json::{Value, json};
use tidegate_boilerplate::testing::{Harness, binding, spec};
use tidegate_boilerplate::{Driver, JsonType, SpecBinding};

use crate::postgres::{DATABASE, PASSWORD, Server, USER};

pub const INTEGER: &[JsonType] = &[JsonType::Integer];
pub const TEXT: &[JsonType] = &[JsonType::String];

/// A connector under test, with its server.
pub struct Fixture {
    pub harness: Harness<Driver<PostgresConnector>>,
    pub server: Rc<Server>,
}

/// Returns a connector with a new server and these bindings, applied and opened.
pub fn opened(bindings: Vec<SpecBinding>) -> Fixture {
    let mut fixture = created(bindings);
    fixture.harness.apply().unwrap();
    fixture.harness.open().unwrap();
    fixture
}

/// Returns a connector with a new server, not applied yet.
pub fn created(bindings: Vec<SpecBinding>) -> Fixture {
    let server = Rc::new(Server::start());
    let spec = spec(config(&server), bindings);
    Fixture {
        harness: Harness::of(PostgresConnector, spec),
        server,
    }
}

/// Returns the configuration of a server.
pub fn config(server: &Server) -> Value {
    json!({
        "address": server.address(), "user": USER, "password": PASSWORD, "database": DATABASE,
    })
}

/// Returns a standard binding to a table of its collection's name.
pub fn table(
    name: &str,
    key: &[(&str, &[JsonType])],
    values: &[(&str, &[JsonType])],
) -> SpecBinding {
    let mut binding = binding(name, json!({"table": name}), key, values);
    binding.resource_path = vec!["public".to_owned(), name.to_owned()];
    binding
}

/// Returns the animals: an integer `id` and a text `name`.
pub fn animals() -> SpecBinding {
    table("animals", &[("id", INTEGER)], &[("name", TEXT)])
}

/// Makes a binding one of delta updates.
pub fn delta(mut binding: SpecBinding) -> SpecBinding {
    binding.delta_updates = true;
    binding.resource["delta_updates"] = json!(true);
    binding
}

impl Fixture {
    /// Runs a query, and returns its rows as lines.
    #[track_caller]
    pub fn ask(&self, sql: &str) -> String {
        self.server.ask(sql)
    }

    /// Returns another connector of the same spec and server.
    pub fn another(&self) -> Self {
        let mut harness = Harness::of(PostgresConnector, self.harness.spec.clone());
        harness.fence = self.harness.fence;
        Self {
            harness,
            server: Rc::clone(&self.server),
        }
    }
}
