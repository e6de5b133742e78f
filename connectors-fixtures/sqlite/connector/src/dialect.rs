//! SQLite's dialect of SQL.

use tidegate_boilerplate::sql::Dialect;

/// SQLite.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sqlite;

impl Dialect for Sqlite {
    /// The limit that SQLite is compiled with unless somebody chose another.
    const COLUMNS_MAX: usize = 2_000;

    /// SQLite ignores the case of ASCII letters only.
    fn fold(&self, identifier: &str) -> String {
        identifier.to_ascii_lowercase()
    }

    fn refuse(&self, identifier: &str) -> Option<&'static str> {
        if identifier.is_empty() {
            Some("it is empty")
        } else if identifier.contains('\0') {
            // SQL text ends at a NUL: the rest of the statement would be cut off.
            Some("it contains a NUL character")
        } else {
            None
        }
    }

    fn confuses(&self) -> Option<&'static str> {
        Some("SQLite, which ignores case")
    }

    fn parameter(&self, position: usize) -> String {
        format!("?{position}")
    }
}
