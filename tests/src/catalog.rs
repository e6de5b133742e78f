//! Catalogs, put together in the words of a catalog.

use std::fmt::{self, Display};

use serde_json::{Map, Value, json};

/// A catalog file.
#[derive(Clone, Default)]
pub struct Catalog {
    import: Vec<Value>,
    collections: Map<String, Value>,
    materializations: Map<String, Value>,
}

/// A materialization.
#[derive(Clone)]
pub struct Task(Value);

impl Catalog {
    /// Returns an empty catalog.
    pub fn new() -> Catalog {
        Catalog::default()
    }

    /// Imports another file.
    #[must_use]
    pub fn import(mut self, path: &str) -> Catalog {
        self.import.push(path.into());
        self
    }

    /// Adds a collection.
    #[must_use]
    pub fn collection(mut self, name: &str, key: &[&str], schema: Value) -> Catalog {
        self.collections
            .insert(name.to_owned(), json!({ "key": key, "schema": schema }));
        self
    }

    /// Adds a materialization.
    #[must_use]
    pub fn task(mut self, name: &str, task: Task) -> Catalog {
        self.materializations.insert(name.to_owned(), task.0);
        self
    }
}

impl Display for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut catalog = Map::new();
        if !self.import.is_empty() {
            catalog.insert("import".to_owned(), self.import.clone().into());
        }
        if !self.collections.is_empty() {
            catalog.insert("collections".to_owned(), self.collections.clone().into());
        }
        if !self.materializations.is_empty() {
            catalog.insert(
                "materializations".to_owned(),
                self.materializations.clone().into(),
            );
        }
        write!(f, "{:#}", Value::from(catalog))
    }
}

impl Task {
    /// Returns a task of a component.
    pub fn new(component: &str, config: Value) -> Task {
        Task(json!({
            "endpoint": { "wasm": { "component": component, "config": config } },
            "bindings": [],
        }))
    }

    /// Returns a task that writes a SQLite file.
    pub fn sqlite(file: &str) -> Task {
        Task::new("materialize-sqlite", json!({ "path": file }))
    }

    /// Binds a collection to a table.
    #[must_use]
    pub fn table(self, source: &str, table: &str) -> Task {
        self.binding(json!({ "source": source, "resource": { "table": table } }))
    }

    /// Adds a binding.
    #[must_use]
    pub fn binding(mut self, binding: Value) -> Task {
        let bindings = self.0["bindings"].as_array_mut();
        bindings
            .expect("a task has a list of bindings")
            .push(binding);
        self
    }

    /// Sets the limits of the connector.
    #[must_use]
    pub fn limits(mut self, limits: Value) -> Task {
        self.0["endpoint"]["wasm"]["limits"] = limits;
        self
    }

    /// Sets what the connector may reach.
    #[must_use]
    pub fn allow(mut self, allow: Value) -> Task {
        self.0["endpoint"]["wasm"]["allow"] = allow;
        self
    }

    /// Sets how its shards run.
    #[must_use]
    pub fn shards(mut self, shards: Value) -> Task {
        self.0["shards"] = shards;
        self
    }

    /// Sets any field of the materialization.
    #[must_use]
    pub fn field(mut self, name: &str, value: Value) -> Task {
        self.0[name] = value;
        self
    }
}
