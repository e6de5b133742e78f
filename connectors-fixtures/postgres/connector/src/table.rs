//! The statements of a binding's table, and of the temporary tables beside it.
//!
//! Columns of temporary tables have names of their own (`c1`, `c2`, ..), so that no
//! field's name can collide with what is only ours.

use tidegate_boilerplate::sql::Dialect;
use tidegate_boilerplate::{Projection, SpecBinding};

use crate::column::ColumnType;
use crate::config::{Config, Resource};
use crate::dialect::Postgres;

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    /// Its name, unquoted.
    pub(crate) name: String,
    pub(crate) column_type: ColumnType,
}

/// A table with its columns in the order of a row's fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) schema: String,
    pub(crate) name: String,
    /// The key's columns: NOT NULL.
    pub(crate) key: Vec<Column>,
    /// All other columns; the document is the last, if it is held.
    pub(crate) values: Vec<Column>,
    /// Name of the document's column.
    pub(crate) document: Option<String>,
    /// Whether rows are only added, so that no two need differ in their key.
    pub(crate) delta_updates: bool,
}

/// What a temporary table is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Temporary {
    /// Keys whose documents are asked for, each after its ordinal.
    Load,
    /// Rows that replace others.
    Store,
    /// Keys of rows to delete.
    Delete,
}

fn quote(name: &str) -> String {
    Postgres.quote(name)
}

/// Returns a table's name with its schema's, quoted.
pub(crate) fn qualified(schema: &str, name: &str) -> String {
    format!("{}.{}", quote(schema), quote(name))
}

impl Table {
    /// Returns the table of a binding.
    pub(crate) fn of(binding: &SpecBinding, resource: &Resource, config: &Config) -> Self {
        let columns = |projections: &[Projection], key: bool| {
            let column = |it: &Projection| Column {
                name: it.field.clone(),
                column_type: ColumnType::of(&Projection { key, ..it.clone() }),
            };
            projections.iter().map(column).collect::<Vec<_>>()
        };
        let document = binding.document.iter().map(|name| Column {
            name: name.clone(),
            column_type: ColumnType::Json,
        });
        let values = columns(&binding.values, false);
        Self {
            schema: resource.schema_name(config).to_owned(),
            name: resource.table.clone(),
            key: columns(&binding.key, true),
            values: values.into_iter().chain(document).collect(),
            document: binding.document.clone(),
            delta_updates: resource.delta_updates,
        }
    }

    pub(crate) fn columns(&self) -> impl Iterator<Item = &Column> {
        self.key.iter().chain(&self.values)
    }

    fn qualified(&self) -> String {
        qualified(&self.schema, &self.name)
    }

    /// Makes the table.
    pub(crate) fn create(&self) -> String {
        let definition = |column: &Column| {
            let column_type = column.column_type;
            let (sql, collation) = (column_type.sql(), column_type.collation());
            format!("{} {sql}{collation}", quote(&column.name))
        };
        let key = self
            .key
            .iter()
            .map(|column| format!("{} NOT NULL", definition(column)));
        let mut lines: Vec<_> = key.chain(self.values.iter().map(definition)).collect();
        if !self.delta_updates {
            lines.push(format!("PRIMARY KEY ({})", names(&self.key)));
        }
        format!(
            "CREATE TABLE {} (\n    {}\n)",
            self.qualified(),
            lines.join(",\n    ")
        )
    }

    /// Adds a column.
    pub(crate) fn add_column(&self, column: &Column) -> String {
        format!(
            "ALTER TABLE {} ADD COLUMN {} {}",
            self.qualified(),
            quote(&column.name),
            column.column_type.sql()
        )
    }

    /// Gives a column another type, if it can keep what it holds.
    pub(crate) fn widen(&self, column: &Column, from: &str) -> Option<String> {
        let name = quote(&column.name);
        let using = column.column_type.widened(from, &name)?;
        Some(format!(
            "ALTER TABLE {} ALTER COLUMN {name} TYPE {} USING {using}",
            self.qualified(),
            column.column_type.sql()
        ))
    }

    /// Lets a column be null.
    pub(crate) fn drop_not_null(&self, column: &str) -> String {
        format!(
            "ALTER TABLE {} ALTER COLUMN {} DROP NOT NULL",
            self.qualified(),
            quote(column)
        )
    }

    /// Drops the table.
    pub(crate) fn drop(&self) -> String {
        format!("DROP TABLE {}", self.qualified())
    }

    /// Takes rows that are new.
    pub(crate) fn copy(&self) -> String {
        let names: Vec<_> = self.columns().map(|it| quote(&it.name)).collect();
        format!(
            "COPY {} ({}) FROM STDIN (FORMAT binary)",
            self.qualified(),
            names.join(", ")
        )
    }

    /// Reads ordinal and document of each key in the temporary table that exists.
    pub(crate) fn select(&self, index: usize) -> String {
        let document = quote(self.document.as_deref().unwrap_or_default());
        let conditions = (2..)
            .zip(&self.key)
            .map(|(position, column)| format!("t.{} = k.c{position}", quote(&column.name)));
        format!(
            "SELECT k.c1, t.{document} FROM {} k JOIN {} t ON {}",
            Temporary::Load.name(index),
            self.qualified(),
            conditions.collect::<Vec<_>>().join(" AND ")
        )
    }

    /// Adds or replaces the rows of the temporary table.
    pub(crate) fn merge(&self, index: usize) -> String {
        let columns: Vec<_> = self.columns().map(|it| quote(&it.name)).collect();
        let staged: Vec<_> = (1..=columns.len()).map(|it| format!("c{it}")).collect();
        let set = self.values.iter().map(|column| {
            let name = quote(&column.name);
            format!("{name} = excluded.{name}")
        });
        let set: Vec<_> = set.collect();
        let action = match set.is_empty() {
            true => "NOTHING".to_owned(),
            false => format!("UPDATE SET {}", set.join(", ")),
        };
        format!(
            "INSERT INTO {} ({}) SELECT {} FROM {} ON CONFLICT ({}) DO {action}",
            self.qualified(),
            columns.join(", "),
            staged.join(", "),
            Temporary::Store.name(index),
            names(&self.key),
        )
    }

    /// Deletes the rows of the keys in the temporary table.
    pub(crate) fn delete(&self, index: usize) -> String {
        let conditions = (1..)
            .zip(&self.key)
            .map(|(position, column)| format!("t.{} = k.c{position}", quote(&column.name)));
        format!(
            "DELETE FROM {} t USING {} k WHERE {}",
            self.qualified(),
            Temporary::Delete.name(index),
            conditions.collect::<Vec<_>>().join(" AND ")
        )
    }

    /// Makes a temporary table. One of keys to load outlives transactions, as keys
    /// come long before the transaction that stores their documents.
    pub(crate) fn create_temporary(&self, temporary: Temporary, index: usize) -> String {
        let definition = |column: &Column| {
            let column_type = column.column_type;
            format!("{}{}", column_type.sql(), column_type.collation())
        };
        let key = self.key.iter().map(definition);
        let (types, options): (Vec<_>, _) = match temporary {
            Temporary::Load => {
                let ordinal = std::iter::once("bigint".to_owned());
                (ordinal.chain(key).collect(), "ON COMMIT PRESERVE ROWS")
            }
            Temporary::Store => {
                let all = self.columns().map(definition);
                (all.collect(), "ON COMMIT DELETE ROWS")
            }
            Temporary::Delete => (key.collect(), "ON COMMIT DELETE ROWS"),
        };
        let columns = (1..)
            .zip(types)
            .map(|(at, it): (u32, _)| format!("c{at} {it}"));
        format!(
            "CREATE TEMPORARY TABLE {} ({}) {options}",
            temporary.name(index),
            columns.collect::<Vec<_>>().join(", ")
        )
    }
}

impl Temporary {
    /// Returns the temporary table of a binding.
    pub(crate) fn name(self, index: usize) -> String {
        let what = match self {
            Self::Load => "load",
            Self::Store => "store",
            Self::Delete => "delete",
        };
        format!("pg_temp.tidegate_{what}_{index}")
    }

    /// Takes rows.
    pub(crate) fn copy(self, index: usize) -> String {
        format!("COPY {} FROM STDIN (FORMAT binary)", self.name(index))
    }
}

fn names(columns: &[Column]) -> String {
    let names: Vec<_> = columns.iter().map(|it| quote(&it.name)).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, column_type: ColumnType) -> Column {
        Column {
            name: name.to_owned(),
            column_type,
        }
    }

    fn table() -> Table {
        Table {
            schema: "s".to_owned(),
            name: "o\"o".to_owned(),
            key: vec![
                column("a", ColumnType::Numeric),
                column("b", ColumnType::KeyText),
            ],
            values: vec![
                column("c\"; --", ColumnType::Text),
                column("d", ColumnType::Json),
            ],
            document: Some("d".to_owned()),
            delta_updates: false,
        }
    }

    #[test]
    fn statements() {
        let table = table();
        let cases = [
            (
                table.create(),
                "CREATE TABLE \"s\".\"o\"\"o\" (\n    \"a\" numeric NOT NULL,\n    \"b\" text COLLATE \"C\" NOT NULL,\n    \
                 \"c\"\"; --\" text,\n    \"d\" json,\n    PRIMARY KEY (\"a\", \"b\")\n)",
            ),
            (
                table.copy(),
                "COPY \"s\".\"o\"\"o\" (\"a\", \"b\", \"c\"\"; --\", \"d\") FROM STDIN (FORMAT binary)",
            ),
            (
                table.select(3),
                "SELECT k.c1, t.\"d\" FROM pg_temp.tidegate_load_3 k JOIN \"s\".\"o\"\"o\" t \
                 ON t.\"a\" = k.c2 AND t.\"b\" = k.c3",
            ),
            (
                table.merge(3),
                "INSERT INTO \"s\".\"o\"\"o\" (\"a\", \"b\", \"c\"\"; --\", \"d\") SELECT c1, c2, c3, c4 \
                 FROM pg_temp.tidegate_store_3 ON CONFLICT (\"a\", \"b\") DO UPDATE \
                 SET \"c\"\"; --\" = excluded.\"c\"\"; --\", \"d\" = excluded.\"d\"",
            ),
            (
                table.delete(3),
                "DELETE FROM \"s\".\"o\"\"o\" t USING pg_temp.tidegate_delete_3 k \
                 WHERE t.\"a\" = k.c1 AND t.\"b\" = k.c2",
            ),
            (
                table.create_temporary(Temporary::Load, 3),
                "CREATE TEMPORARY TABLE pg_temp.tidegate_load_3 (c1 bigint, c2 numeric, c3 text COLLATE \"C\") \
                 ON COMMIT PRESERVE ROWS",
            ),
            (
                table.add_column(&column("e", ColumnType::DateTime)),
                "ALTER TABLE \"s\".\"o\"\"o\" ADD COLUMN \"e\" timestamp with time zone",
            ),
        ];
        for (got, want) in cases {
            assert_eq!(got, want);
        }
    }

    #[test]
    fn a_table_of_keys_alone_is_merged_by_doing_nothing() {
        let mut table = table();
        table.values.clear();
        let merge = table.merge(0);
        assert!(
            merge.ends_with("ON CONFLICT (\"a\", \"b\") DO NOTHING"),
            "{merge}"
        );
    }
}
