//! Whether a snapshot is what the first lines of an input come to.
//!
//! Each transaction covers whole lines, in their order. So whatever is committed
//! is the fold of some first lines, never of fewer than were seen before; half a
//! transaction, a lost line and a doubled line are not.

use std::collections::BTreeSet;
use std::sync::Arc;

use rusqlite::Connection;

use crate::fold::{Fold, Rows};
use crate::table;
use crate::watch::Check;

/// The lines that a table may have taken, and those that it has.
pub struct Prefix {
    lines: Arc<[String]>,
    taken: usize,
    fold: Fold,
}

impl Prefix {
    /// Returns a prefix of no lines.
    pub fn new(lines: Arc<[String]>, fold: Fold) -> Prefix {
        Prefix {
            lines,
            taken: 0,
            fold,
        }
    }

    /// Takes as many further lines as the rows need; says why if there is no
    /// such number.
    pub fn advance_to(&mut self, rows: &Rows) -> Result<(), String> {
        let start = self.taken;
        let mut differing = differences(&self.fold.rows, rows);
        let mut nearest = (differing.clone(), start);
        while !differing.is_empty() {
            let Some(line) = self.lines.get(self.taken) else {
                return Err(explain(start, &nearest, rows));
            };
            let key = self.fold.apply(line);
            self.taken += 1;
            if self.fold.rows.get(&key) == rows.get(&key) {
                differing.remove(&key);
            } else {
                differing.insert(key);
            }
            if differing.len() < nearest.0.len() {
                nearest = (differing.clone(), self.taken);
            }
        }
        Ok(())
    }

    /// Returns a check that tables hold the same prefix.
    pub fn check(mut self, tables: &[&str], key: &[&str]) -> Check {
        let tables: Vec<String> = tables.iter().map(|&table| table.to_owned()).collect();
        let key: Vec<String> = key.iter().map(|&name| name.to_owned()).collect();
        Box::new(move |connection: &Connection| {
            let mut same: Option<Rows> = None;
            for name in &tables {
                let rows = table::rows(connection, name, &key)?;
                if let Some(first) = &same
                    && *first != rows
                {
                    let keys = differences(first, &rows);
                    return Ok(Err(format!(
                        "{name} differs from {} in {keys:?}",
                        tables[0]
                    )));
                }
                same = Some(rows);
            }
            Ok(same.map_or(Ok(()), |rows| self.advance_to(&rows)))
        })
    }
}

fn differences(one: &Rows, other: &Rows) -> BTreeSet<String> {
    one.keys()
        .chain(other.keys())
        .filter(|key| one.get(*key) != other.get(*key))
        .cloned()
        .collect()
}

fn explain(start: usize, nearest: &(BTreeSet<String>, usize), rows: &Rows) -> String {
    let (differing, line) = nearest;
    let key = differing.first().expect("an equal prefix is no failure");
    format!(
        "no first lines from {start} on come to this table; the first {line} lines come nearest: \
         {} keys differ, such as {key}, of which the table holds {:?}",
        differing.len(),
        rows.get(key)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> Arc<[String]> {
        let line = |n: u32| format!(r#"{{"id":{},"n":1,"at":{n}}}"#, n % 3);
        (0..12).map(line).collect()
    }

    #[test]
    fn prefixes_pass_and_only_forward() {
        let fold = Fold::sum(&["id"], &["n"]);
        let mut prefix = Prefix::new(lines(), fold.clone());
        for count in [0, 0, 1, 5, 5, 12] {
            prefix
                .advance_to(&fold.clone().over(&lines()[..count]))
                .unwrap();
            assert_eq!(prefix.taken, count);
        }
        let back = prefix.advance_to(&fold.over(&lines()[..5]));
        assert!(
            back.unwrap_err().contains("no first lines from 12 on"),
            "what was committed is gone"
        );
    }

    #[test]
    fn anything_else_fails() {
        let fold = Fold::sum(&["id"], &["n"]);
        let mut lost: Vec<String> = lines()[..5].to_vec();
        lost.remove(2);
        let mut doubled: Vec<String> = lines()[..5].to_vec();
        doubled.push(doubled[4].clone());
        for wrong in [lost, doubled] {
            let rows = fold.clone().over(&wrong);
            let error = Prefix::new(lines(), fold.clone())
                .advance_to(&rows)
                .unwrap_err();
            assert!(error.contains("keys differ, such as"), "{error}");
        }
    }
}
