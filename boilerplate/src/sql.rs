//! SQL for destinations that have it: statements made from tables, in a
//! destination's dialect.
//!
//! Which type a field has is a connector's business; what follows from it for the
//! selection of fields is in [`constraint`].

pub mod constraint;

use std::collections::BTreeMap;

/// What differs between destinations.
pub trait Dialect {
    /// Most columns of a table.
    const COLUMNS_MAX: usize;

    /// Quotes an identifier. The standard's way is double quotes, doubled inside.
    fn quote(&self, identifier: &str) -> String {
        format!("\"{}\"", identifier.replace('"', "\"\""))
    }

    /// Returns what two identifiers share if they name the same thing.
    fn fold(&self, identifier: &str) -> String;

    /// Says why an identifier cannot be used, if it cannot.
    fn refuse(&self, identifier: &str) -> Option<&'static str>;

    /// Names the destination, and why it takes two names for one column, where the
    /// connector has to see to that; the validator sees to names that are cut.
    fn confuses(&self) -> Option<&'static str> {
        None
    }

    /// Writes the parameter at a position, from 1.
    fn parameter(&self, position: usize) -> String;

    /// What follows the column list of a table with a primary key.
    fn table_options(&self) -> &'static str {
        ""
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, unquoted.
    pub name: String,
    /// Its type, as SQL.
    pub sql_type: String,
}

/// A table with its columns in the order of a row's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name, unquoted.
    pub name: String,
    /// The key's columns: NOT NULL.
    pub key: Vec<Column>,
    /// All other columns.
    pub values: Vec<Column>,
    /// Whether the key is a primary key: no two rows share one.
    pub unique: bool,
}

impl Table {
    fn columns(&self) -> impl Iterator<Item = &Column> {
        self.key.iter().chain(&self.values)
    }

    fn names<'a>(dialect: &impl Dialect, columns: impl Iterator<Item = &'a Column>) -> String {
        let names: Vec<_> = columns.map(|column| dialect.quote(&column.name)).collect();
        names.join(", ")
    }

    fn key_condition(&self, dialect: &impl Dialect) -> String {
        let conditions = (1..).zip(&self.key).map(|(position, column)| {
            format!(
                "{} = {}",
                dialect.quote(&column.name),
                dialect.parameter(position)
            )
        });
        conditions.collect::<Vec<_>>().join(" AND ")
    }

    /// Makes the table.
    pub fn create(&self, dialect: &impl Dialect) -> String {
        let key = self.key.iter().map(|column| {
            format!(
                "{} {} NOT NULL",
                dialect.quote(&column.name),
                column.sql_type
            )
        });
        let values = self
            .values
            .iter()
            .map(|column| format!("{} {}", dialect.quote(&column.name), column.sql_type));
        let mut lines: Vec<_> = key.chain(values).collect();
        let mut options = "";
        if self.unique {
            lines.push(format!(
                "PRIMARY KEY ({})",
                Self::names(dialect, self.key.iter())
            ));
            options = dialect.table_options();
        }
        let name = dialect.quote(&self.name);
        format!(
            "CREATE TABLE {name} (\n    {}\n){options}",
            lines.join(",\n    ")
        )
    }

    /// Adds a column.
    pub fn add_column(&self, dialect: &impl Dialect, column: &Column) -> String {
        let (table, name) = (dialect.quote(&self.name), dialect.quote(&column.name));
        format!("ALTER TABLE {table} ADD COLUMN {name} {}", column.sql_type)
    }

    /// Drops the table.
    pub fn drop(&self, dialect: &impl Dialect) -> String {
        format!("DROP TABLE {}", dialect.quote(&self.name))
    }

    /// Adds a row.
    pub fn insert(&self, dialect: &impl Dialect) -> String {
        let count = self.key.len() + self.values.len();
        let parameters: Vec<_> = (1..=count)
            .map(|position| dialect.parameter(position))
            .collect();
        format!(
            "INSERT INTO {} ({}) VALUES ({})",
            dialect.quote(&self.name),
            Self::names(dialect, self.columns()),
            parameters.join(", "),
        )
    }

    /// Adds a row, or replaces the values of the one with its key.
    pub fn upsert(&self, dialect: &impl Dialect) -> String {
        let set = self.values.iter().map(|column| {
            let name = dialect.quote(&column.name);
            format!("{name} = excluded.{name}")
        });
        let set: Vec<_> = set.collect();
        let action = if set.is_empty() {
            "NOTHING".to_owned()
        } else {
            format!("UPDATE SET {}", set.join(", "))
        };
        format!(
            "{} ON CONFLICT ({}) DO {action}",
            self.insert(dialect),
            Self::names(dialect, self.key.iter()),
        )
    }

    /// Deletes the row of a key.
    pub fn delete(&self, dialect: &impl Dialect) -> String {
        let name = dialect.quote(&self.name);
        format!("DELETE FROM {name} WHERE {}", self.key_condition(dialect))
    }

    /// Reads one column of the row of a key.
    pub fn select(&self, dialect: &impl Dialect, column: &str) -> String {
        format!(
            "SELECT {} FROM {} WHERE {}",
            dialect.quote(column),
            dialect.quote(&self.name),
            self.key_condition(dialect),
        )
    }
}

/// Finds names that are one column to the destination; returns each later one with
/// the earlier one that it collides with.
pub fn collisions<'a>(
    dialect: &impl Dialect,
    names: impl Iterator<Item = &'a str>,
) -> BTreeMap<&'a str, &'a str> {
    let mut first: BTreeMap<String, &str> = BTreeMap::new();
    let mut collisions = BTreeMap::new();
    for name in names {
        let winner = *first.entry(dialect.fold(name)).or_insert(name);
        if winner != name {
            collisions.insert(name, winner);
        }
    }
    collisions
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Plain;

    impl Dialect for Plain {
        const COLUMNS_MAX: usize = 10;
        fn fold(&self, identifier: &str) -> String {
            identifier.to_ascii_lowercase()
        }
        fn refuse(&self, _: &str) -> Option<&'static str> {
            None
        }
        fn parameter(&self, position: usize) -> String {
            format!("${position}")
        }
    }

    fn column(name: &str, sql_type: &str) -> Column {
        Column {
            name: name.to_owned(),
            sql_type: sql_type.to_owned(),
        }
    }

    fn table(values: Vec<Column>) -> Table {
        Table {
            name: "o\"o".to_owned(),
            key: vec![column("a", "INTEGER"), column("b", "TEXT")],
            values,
            unique: true,
        }
    }

    #[test]
    fn statements() {
        let table = table(vec![column("c\"; --", "TEXT")]);
        let cases = [
            (
                table.create(&Plain),
                "CREATE TABLE \"o\"\"o\" (\n    \"a\" INTEGER NOT NULL,\n    \"b\" TEXT NOT NULL,\n    \
                 \"c\"\"; --\" TEXT,\n    PRIMARY KEY (\"a\", \"b\")\n)",
            ),
            (
                table.upsert(&Plain),
                "INSERT INTO \"o\"\"o\" (\"a\", \"b\", \"c\"\"; --\") VALUES ($1, $2, $3) \
                 ON CONFLICT (\"a\", \"b\") DO UPDATE SET \"c\"\"; --\" = excluded.\"c\"\"; --\"",
            ),
            (
                table.delete(&Plain),
                "DELETE FROM \"o\"\"o\" WHERE \"a\" = $1 AND \"b\" = $2",
            ),
            (
                table.select(&Plain, "c"),
                "SELECT \"c\" FROM \"o\"\"o\" WHERE \"a\" = $1 AND \"b\" = $2",
            ),
            (
                table.add_column(&Plain, &column("d", "TEXT")),
                "ALTER TABLE \"o\"\"o\" ADD COLUMN \"d\" TEXT",
            ),
            (table.drop(&Plain), "DROP TABLE \"o\"\"o\""),
        ];
        for (got, want) in cases {
            assert_eq!(got, want);
        }
    }

    #[test]
    fn a_table_of_keys_alone_is_upserted_by_doing_nothing() {
        let upsert = table(vec![]).upsert(&Plain);
        assert!(
            upsert.ends_with("ON CONFLICT (\"a\", \"b\") DO NOTHING"),
            "{upsert}"
        );
    }

    #[test]
    fn the_later_of_two_colliding_names_loses() {
        let names = ["id", "Id", "other", "ID", "id"];
        assert_eq!(
            collisions(&Plain, names.into_iter()),
            BTreeMap::from([("Id", "id"), ("ID", "id")])
        );
    }
}
