//! A file of plain values: YAML or JSON that is read as a catalog is, with its
//! problems at their lines.

use std::io;
use std::path::Path;

use serde_json::Value;

use crate::diagnostic::{Diagnostic, Report};
use crate::load::{Files, Sources};

/// A value that was read, or why it could not be.
#[derive(Debug, Clone)]
pub struct ValueFile {
    /// The value; nothing if there is an error.
    pub value: Option<Value>,
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
    /// What [`crate::diagnostic::human`] quotes from.
    pub sources: Sources,
}

/// Reads a file that holds a value, as YAML or JSON.
pub fn load_value(path: &Path, read: &dyn Fn(&Path) -> io::Result<Vec<u8>>) -> ValueFile {
    let mut files = Files::new(read);
    let mut report = Report::default();
    let tree = files.root(path, &mut report);
    let value = tree.map(|tree| tree.to_value());
    // A flaw such as a repeated key leaves a value that is not what its author sees.
    let good = !report.has_errors_since(0);
    ValueFile {
        value: value.filter(|_| good),
        diagnostics: report.into_sorted(),
        sources: files.into_sources(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_read_or_explained_at_its_line() {
        let load =
            |name: &str, text: &str| load_value(Path::new(name), &|_| Ok(text.as_bytes().to_vec()));
        for (name, text) in [
            ("v.yaml", "a: [10:00, 1]\n"),
            ("v.json", r#"{"a": ["10:00", 1]}"#),
        ] {
            let file = load(name, text);
            assert_eq!(file.value, Some(json!({"a": ["10:00", 1]})), "{name}");
            assert_eq!(file.diagnostics, [], "{name}");
        }
        for text in ["a: 1\na: 2\n", "a: [\n"] {
            let file = load("v.yaml", text);
            assert_eq!(file.value, None, "{text}");
            assert!(!file.diagnostics.is_empty(), "{text}");
        }
        let missing = load_value(Path::new("none.yaml"), &|_| {
            Err(io::Error::from(io::ErrorKind::NotFound))
        });
        assert!(
            missing.diagnostics[0]
                .message
                .contains("none.yaml cannot be read")
        );
    }
}
