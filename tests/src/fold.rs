//! The oracle: what a table must hold, by going through the input line by line.
//!
//! It shares no code with the product, and does the obvious thing at each line.
//! Values are compared as text: numbers as decimals without zeros at the end,
//! everything else as JSON.

use std::collections::BTreeMap;
use std::str::FromStr;

use bigdecimal::BigDecimal;
use serde_json::value::RawValue;

/// A document: the canonical text of each of its fields.
pub type Row = BTreeMap<String, String>;

/// Rows by the canonical text of their key.
pub type Rows = BTreeMap<String, Row>;

/// What a sequence of documents comes to.
#[derive(Clone, Debug)]
pub struct Fold {
    key: Vec<String>,
    reduction: Reduction,
    hard_delete: bool,
    /// The rows as of the last line.
    pub rows: Rows,
}

#[derive(Clone, Debug)]
enum Reduction {
    LastWriteWins,
    Sum(Vec<String>),
}

impl Fold {
    /// Returns a fold in which the last document of a key wins.
    pub fn last_write_wins(key: &[&str]) -> Fold {
        Fold {
            key: owned(key),
            reduction: Reduction::LastWriteWins,
            hard_delete: false,
            rows: Rows::new(),
        }
    }

    /// Returns a fold that adds the fields `sums` up and merges the others.
    pub fn sum(key: &[&str], sums: &[&str]) -> Fold {
        Fold {
            reduction: Reduction::Sum(owned(sums)),
            ..Fold::last_write_wins(key)
        }
    }

    /// Takes a document whose `/_meta/op` is "d" for a deletion.
    #[must_use]
    pub fn hard_delete(mut self) -> Fold {
        self.hard_delete = true;
        self
    }

    /// Goes through lines, and returns the rows.
    pub fn over<L: AsRef<str>>(mut self, lines: impl IntoIterator<Item = L>) -> Rows {
        for line in lines {
            self.apply(line.as_ref());
        }
        self.rows
    }

    /// Goes through one line, and returns its key.
    pub fn apply(&mut self, line: &str) -> String {
        let document = row(line);
        let key = key_of(&document, &self.key);
        let deletes = document
            .get("_meta")
            .is_some_and(|meta| meta.contains(r#""op":"d""#));
        if deletes && self.hard_delete {
            self.rows.remove(&key);
            return key;
        }
        match (&self.reduction, self.rows.get_mut(&key)) {
            (Reduction::Sum(sums), Some(row)) => add(row, document, sums),
            _ => {
                self.rows.insert(key.clone(), document);
            }
        }
        key
    }
}

/// Reads a JSON object into its fields.
pub fn row(json: &str) -> Row {
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(json)
        .unwrap_or_else(|error| panic!("{json} is no JSON object: {error}"));
    fields
        .into_iter()
        .map(|(name, value)| (name, canonical(value.get())))
        .collect()
}

/// Returns the canonical text of a row's key.
pub fn key_of(row: &Row, key: &[String]) -> String {
    let part = |name: &String| row.get(name).map_or("null", String::as_str);
    key.iter().map(part).collect::<Vec<_>>().join(", ")
}

/// Returns the text that is equal for equal JSON values.
pub fn canonical(json: &str) -> String {
    match json.as_bytes().first() {
        Some(b'-' | b'0'..=b'9') => decimal(json).normalized().to_plain_string(),
        _ => {
            let value: serde_json::Value =
                serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"));
            value.to_string()
        }
    }
}

fn add(row: &mut Row, document: Row, sums: &[String]) {
    for (name, value) in document {
        let before = row.get(&name).filter(|_| sums.contains(&name));
        let after = match before {
            Some(before) => (decimal(before) + decimal(&value))
                .normalized()
                .to_plain_string(),
            None => value,
        };
        row.insert(name, after);
    }
}

fn decimal(text: &str) -> BigDecimal {
    BigDecimal::from_str(text).unwrap_or_else(|error| panic!("{text} is no number: {error}"))
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(rows: &Rows) -> String {
        let row = |(key, row): (&String, &Row)| format!("{key}: {row:?}");
        rows.iter().map(row).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn equal_values_have_equal_texts() {
        for (one, other) in [
            ("1", "1.0"),
            ("-0", "0.00"),
            ("1e3", "1000"),
            ("9007199254740993", "9007199254740993.0"),
            (r#"{ "b": [1, 2], "a": null }"#, r#"{"a":null,"b":[1,2]}"#),
            (r#""\u0041""#, r#""A""#),
        ] {
            assert_eq!(canonical(one), canonical(other));
        }
        for (one, other) in [
            ("9007199254740993", "9007199254740992"),
            ("0.1", "0.10000000000000001"),
            (r#""1""#, "1"),
            ("null", r#""null""#),
        ] {
            assert_ne!(canonical(one), canonical(other));
        }
    }

    #[test]
    fn a_delete_is_a_row_or_a_barrier() {
        let lines = [
            r#"{"id":7,"v":"a","_meta":{"op":"c"}}"#,
            r#"{"id":7,"_meta":{"op":"d"}}"#,
            r#"{"id":8,"_meta":{"op":"d"}}"#,
            r#"{"id":7,"v":"b"}"#,
        ];
        let fold = Fold::last_write_wins(&["id"]);
        let hard = fold.clone().hard_delete().over(lines);
        assert_eq!(told(&hard), r#"7: {"id": "7", "v": "\"b\""}"#);
        let soft = fold.over(&lines[..3]);
        assert_eq!(
            told(&soft),
            r#"7: {"_meta": "{\"op\":\"d\"}", "id": "7"}; 8: {"_meta": "{\"op\":\"d\"}", "id": "8"}"#
        );
    }

    #[test]
    fn sums_are_decimal() {
        let lines = [
            r#"{"id":1,"n":0.1,"x":1}"#,
            r#"{"id":1,"n":0.2}"#,
            r#"{"id":2,"n":9007199254740993}"#,
        ];
        let rows = Fold::sum(&["id"], &["n"]).over(lines);
        assert_eq!(
            told(&rows),
            r#"1: {"id": "1", "n": "0.3", "x": "1"}; 2: {"id": "2", "n": "9007199254740993"}"#
        );
    }
}
