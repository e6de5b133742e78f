//! What the suite is run with: the config file of its user.
//!
//! ```yaml
//! config: {path: shop.db}
//! resource: {table: "{name}"}
//! deltaResource: {table: "{name}", delta_updates: true}
//! readback: [sqlite3, shop.db, "SELECT json_object('seq', seq) FROM \"{name}\""]
//! ```

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use tidegate_host::sandbox::Allow;

/// Stands for the name of a resource, wherever there is text.
const NAME: &str = "{name}";

/// Stands for the name of a task, for destinations that are one task's alone.
const TASK: &str = "{task}";

/// What the suite is run with.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Setup {
    /// The endpoint's config; `{task}` in it stands for a name that differs from
    /// task to task, where a destination is one task's alone.
    pub config: Value,
    /// A binding's resource; `{name}` in it stands for a name that differs from
    /// binding to binding, and from run to run.
    pub resource: Value,
    /// A resource that takes delta updates, of a connector that has both kinds.
    #[serde(default)]
    pub delta_resource: Option<Value>,
    /// A command that prints the rows of the resource `{name}` of `{task}`, a JSON
    /// object a line: how delta updates are seen, which are never loaded.
    #[serde(default)]
    pub readback: Option<Vec<String>>,
    /// The same with what stands in the columns; the readback's rows if left out.
    #[serde(default)]
    pub columns: Option<Vec<String>>,
    /// What the connector may reach, in place of what its config names.
    #[serde(default)]
    pub allow: Allow,
    /// Where relative paths start, and the command runs.
    #[serde(skip)]
    pub base: PathBuf,
}

/// A setup that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// It is not of the shape of a setup.
    #[error(
        "the setup is malformed: {0}; it has `config`, `resource` and perhaps `deltaResource`, `readback`, `columns`, `allow`"
    )]
    Malformed(#[from] serde_json::Error),
    /// All bindings would share one resource.
    #[error(
        "the setup's {0} has no {NAME} in it: every binding needs a resource of its own, so put {NAME} where the resource is named"
    )]
    NoName(&'static str),
}

impl Setup {
    /// Reads a setup; relative paths in it start at `base`.
    ///
    /// # Errors
    ///
    /// If it is no setup.
    pub fn new(value: Value, base: &Path) -> Result<Setup, SetupError> {
        let mut setup: Setup = serde_json::from_value(value)?;
        setup.base = base.to_owned();
        for (part, resource) in setup.resources() {
            if named(resource, "", "") == *resource {
                return Err(SetupError::NoName(part));
            }
        }
        Ok(setup)
    }

    /// Returns the resources that there are, with the names of their properties.
    pub(crate) fn resources(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        let delta = self.delta_resource.iter().map(|it| ("deltaResource", it));
        std::iter::once(("resource", &self.resource)).chain(delta)
    }
}

/// Puts names in their places, in all text of a value.
pub(crate) fn named(template: &Value, task: &str, name: &str) -> Value {
    match template {
        Value::String(text) => Value::String(named_text(text, task, name)),
        Value::Array(items) => items.iter().map(|item| named(item, task, name)).collect(),
        Value::Object(entries) => {
            let entry = |(key, value): (&String, &Value)| (key.clone(), named(value, task, name));
            Value::Object(entries.iter().map(entry).collect())
        }
        other => other.clone(),
    }
}

/// Puts names in their places in text.
pub(crate) fn named_text(text: &str, task: &str, name: &str) -> String {
    text.replace(NAME, name).replace(TASK, task)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn setup(value: Value) -> Result<Setup, String> {
        Setup::new(value, Path::new("/base")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_setup_is_read_or_explained() {
        let read = setup(json!({"config": {}, "resource": {"table": "{name}"}})).unwrap();
        assert_eq!(read.base, Path::new("/base"));
        assert_eq!(read.resources().count(), 1);
        let cases = [
            (json!({"resource": {"table": "{name}"}}), "`config`"),
            (
                json!({"config": {}, "resource": {"table": "{name}"}, "resourse": {}}),
                "`resourse`",
            ),
            (
                json!({"config": {}, "resource": {"table": "t"}}),
                "the setup's resource has no {name}",
            ),
            (
                json!({"config": {}, "resource": {"table": "{name}"}, "deltaResource": {}}),
                "the setup's deltaResource has no {name}",
            ),
        ];
        for (value, says) in cases {
            let error = setup(value.clone()).unwrap_err();
            assert!(error.contains(says), "{value}: {error}");
        }
    }

    #[test]
    fn names_go_wherever_there_is_text() {
        let template = json!({"a": ["{task}/{name}", 1], "b": {"c": "{name}{name}"}});
        assert_eq!(
            named(&template, "t", "n"),
            json!({"a": ["t/n", 1], "b": {"c": "nn"}})
        );
    }
}
