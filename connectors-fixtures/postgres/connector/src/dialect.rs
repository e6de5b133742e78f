//! PostgreSQL's dialect of SQL.

use tidegate_boilerplate::sql::Dialect;

/// PostgreSQL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Postgres;

/// Most bytes of a name that PostgreSQL keeps, unless it was compiled otherwise.
pub(crate) const NAME_BYTES_MAX: usize = 63;

/// Columns that every table has already.
const SYSTEM_COLUMNS: [&str; 6] = ["tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"];

impl Dialect for Postgres {
    const COLUMNS_MAX: usize = 1_600;

    /// Quoted names keep their case, and are cut between characters.
    fn fold(&self, identifier: &str) -> String {
        let end = identifier.floor_char_boundary(NAME_BYTES_MAX);
        identifier[..end].to_owned()
    }

    fn refuse(&self, identifier: &str) -> Option<&'static str> {
        if identifier.is_empty() {
            Some("it is empty")
        } else if identifier.contains('\0') {
            Some("it contains a NUL character")
        } else if SYSTEM_COLUMNS.contains(&identifier) {
            Some("PostgreSQL keeps the name to itself")
        } else {
            None
        }
    }

    fn parameter(&self, position: usize) -> String {
        format!("${position}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_as_the_server_cuts_them() {
        let two_bytes = "\u{e9}".repeat(40);
        assert_eq!(Postgres.fold(&two_bytes), "\u{e9}".repeat(31));
        let long = "x".repeat(64);
        assert_eq!(Postgres.fold(&long), "x".repeat(63));
        assert_eq!(Postgres.fold("Name"), "Name");
    }
}
