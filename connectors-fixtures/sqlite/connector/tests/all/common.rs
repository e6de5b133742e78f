//! A database file of its own for each test, and ways to look into it.

use serde_json::{Value, json};
use sqlite_connector::SqliteConnector;
use tempfile::TempDir;
use tidegate_boilerplate::sqlite::Database;
use tidegate_boilerplate::testing::{Harness, binding, spec};
use tidegate_boilerplate::tuple::Element;
use tidegate_boilerplate::{Driver, JsonType, SpecBinding};

pub const INTEGER: &[JsonType] = &[JsonType::Integer];
pub const TEXT: &[JsonType] = &[JsonType::String];

/// A connector under test, with its file.
pub struct Fixture {
    pub harness: Harness<Driver<SqliteConnector>>,
    pub path: String,
    _directory: TempDir,
}

/// Returns a connector with a new file and these bindings, applied and opened.
pub fn opened(bindings: Vec<SpecBinding>) -> Fixture {
    let mut fixture = created(bindings);
    fixture.harness.apply().unwrap();
    fixture.harness.open().unwrap();
    fixture
}

/// Returns a connector with a new file, not applied yet.
pub fn created(bindings: Vec<SpecBinding>) -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let path = directory
        .path()
        .join("shop.db")
        .to_str()
        .unwrap()
        .to_owned();
    let spec = spec(json!({"path": path}), bindings);
    Fixture {
        harness: Harness::of(SqliteConnector, spec),
        path,
        _directory: directory,
    }
}

/// Returns a standard binding to a table of its collection's name.
pub fn table(
    name: &str,
    key: &[(&str, &[JsonType])],
    values: &[(&str, &[JsonType])],
) -> SpecBinding {
    binding(name, json!({"table": name}), key, values)
}

/// Returns the animals: an integer `id` and a text `name`.
pub fn animals() -> SpecBinding {
    table("animals", &[("id", INTEGER)], &[("name", TEXT)])
}

impl Fixture {
    /// Runs a query and returns its rows as JSON.
    pub fn rows(&self, sql: &str) -> Vec<Value> {
        let db = Database::open(&self.path).unwrap();
        let value = |element: &Element<'_>| match element {
            Element::Nil => Value::Null,
            Element::Int(it) => json!(it),
            Element::Double(it) => json!(it),
            Element::String(it) => json!(it),
            other => panic!("a query found {other:?}"),
        };
        db.query(sql, &[], |row| Ok(row.iter().map(value).collect()))
            .unwrap()
    }

    /// Runs a statement, as another program would.
    pub fn execute(&self, sql: &str) {
        Database::open(&self.path)
            .unwrap()
            .execute(sql, &[])
            .unwrap();
    }
}
