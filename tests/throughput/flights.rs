//! Real documents: a year of flights out of New York.
//!
//! ```text
//! whole run -> rows = distinct keys?
//! another one, killed half-way, and run again -> the same rows?
//! ```

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, ensure};
use serde_json::{Map, Value, json};
use tidegate_tests::catalog::{Catalog, Task};
use tidegate_tests::table;
use tidegate_tests::workspace::{Run, Workspace};

use crate::measure::Measured;

const COLLECTION: &str = "nyc/flights";

/// Together they are distinct.
const KEY: [&str; 7] = [
    "year",
    "month",
    "day",
    "carrier",
    "flight",
    "origin",
    "sched_dep_time",
];

/// Numbers that a cancelled flight lacks.
const OPTIONAL: [&str; 5] = ["dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"];

/// Numbers that each flight has.
const NUMBERS: [&str; 8] = [
    "year",
    "month",
    "day",
    "sched_dep_time",
    "sched_arr_time",
    "flight",
    "distance",
    "hour",
];

/// Materializes a file of flights twice.
pub fn run(file: &Path) -> anyhow::Result<Value> {
    let file = fs::canonicalize(file).with_context(|| format!("no {}", file.display()))?;
    let (documents, keys) = count(&file)?;

    let whole = workspace();
    let measured = Measured::run(start(&whole, &file).start())?;
    let rows = rows(&whole)?;
    println!(
        "{documents} documents: {:.0} documents/s, {} MiB, {rows} rows of {keys} distinct keys",
        measured.rate(documents),
        measured.peak_memory_kib / 1024
    );
    ensure!(rows == keys, "each key has a row");

    let killed = workspace();
    let before = Measured::for_at_most(start(&killed, &file).start(), measured.took / 2);
    let rows_when_killed = rows_or_none(&killed);
    let after = Measured::run(start(&killed, &file).start())?;
    let rows_after = self::rows(&killed)?;
    let differing = differing(&whole, &killed)?;
    println!(
        "killed after {:.1} s with {rows_when_killed} rows, run again for {:.1} s: {rows_after} rows, \
         {differing} of them differ",
        before.took.as_secs_f64(),
        after.took.as_secs_f64()
    );
    ensure!(
        rows_after == keys && differing == 0,
        "the kill changed nothing"
    );
    Ok(json!({
        "documents": documents,
        "distinctKeys": keys,
        "whole": measured.figures(documents),
        "rows": rows,
        "killed": {
            "secondsBefore": before.took.as_secs_f64(),
            "rowsWhenKilled": rows_when_killed,
            "secondsAfter": after.took.as_secs_f64(),
            "peakMemoryKib": after.peak_memory_kib.max(before.peak_memory_kib),
            "rows": rows_after,
            "rowsThatDiffer": differing,
        },
    }))
}

fn workspace() -> Workspace {
    let number = |name: &&str| ((*name).to_owned(), json!({ "type": "integer" }));
    let optional = |name: &&str| ((*name).to_owned(), json!({ "type": ["integer", "null"] }));
    let mut properties: Map<String, Value> = NUMBERS.iter().map(number).collect();
    properties.extend(OPTIONAL.iter().map(optional));
    properties.insert("minute".into(), json!({ "type": "integer" }));
    properties.insert("tailnum".into(), json!({ "type": ["string", "null"] }));
    properties.insert(
        "time_hour".into(),
        json!({ "type": "string", "format": "date-time" }),
    );
    for name in ["carrier", "origin", "dest"] {
        properties.insert(name.into(), json!({ "type": "string" }));
    }
    let schema = json!({ "type": "object", "required": KEY, "properties": properties });
    let key = KEY.map(|name| format!("/{name}"));
    let key: Vec<&str> = key.iter().map(String::as_str).collect();
    let task = Task::sqlite("flights.db").table(COLLECTION, "flights");
    Workspace::with(
        &Catalog::new()
            .collection(COLLECTION, &key, schema)
            .task("nyc/flights-rows", task),
    )
}

fn start<'a>(workspace: &'a Workspace, file: &Path) -> Run<'a> {
    workspace
        .run()
        .input(COLLECTION, &file.to_string_lossy())
        .until_caught_up()
}

/// Counts documents and distinct keys, one by one.
fn count(file: &Path) -> anyhow::Result<(usize, usize)> {
    let mut documents = 0;
    let mut keys = BTreeSet::new();
    for line in BufReader::new(File::open(file)?).lines() {
        let flight: Value = serde_json::from_str(&line?)?;
        keys.insert(KEY.map(|name| flight[name].to_string()).join(","));
        documents += 1;
    }
    Ok((documents, keys.len()))
}

fn rows(workspace: &Workspace) -> anyhow::Result<usize> {
    Ok(table::try_ask(
        &workspace.path("flights.db"),
        "SELECT count(*) FROM flights",
    )?
    .parse()?)
}

/// A host that was killed early may not have made the table.
fn rows_or_none(workspace: &Workspace) -> usize {
    rows(workspace).unwrap_or(0)
}

/// Counts the documents that only one of the two tables has.
fn differing(one: &Workspace, other: &Workspace) -> anyhow::Result<usize> {
    let documents = |workspace: &Workspace| -> anyhow::Result<BTreeSet<String>> {
        let connection = table::open(&workspace.path("flights.db"))?;
        Ok(table::documents(&connection, "flights")?
            .into_iter()
            .collect())
    };
    let (one, other) = (documents(one)?, documents(other)?);
    Ok(one.symmetric_difference(&other).count())
}
