//! Generated documents, through Tidegate and through the plain program.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::ensure;
use fastrand::Rng;
use serde_json::{Value, json};
use tidegate_tests::catalog::{Catalog, Task};
use tidegate_tests::document::{ORDERS, order_schema, orders};
use tidegate_tests::host::Host;
use tidegate_tests::table;
use tidegate_tests::workspace::Workspace;

use crate::measure::{Measured, round};
use crate::million;

/// The same documents each time.
const SEED: u64 = 1;

/// Each figure is the best of so many: what else the machine does only slows.
const RUNS: usize = 3;

/// What must be the same in both tables.
const SUMMARY: &str = "SELECT count(*), sum(line), sum(length(flow_document)) FROM orders";

struct Workload {
    name: &'static str,
    lines: Vec<String>,
    keys: usize,
    schema: Value,
}

/// Measures short documents: mostly new keys, and mostly updates.
pub fn compare(documents: usize) -> anyhow::Result<Value> {
    let mut workloads = Vec::new();
    for (name, documents_a_key) in [("mostly new keys", 1), ("mostly updates", 20)] {
        let keys = u32::try_from((documents / documents_a_key).max(1))?;
        workloads.push(compare_one(&Workload {
            name,
            lines: orders(&mut Rng::with_seed(SEED), documents, keys),
            keys: keys as usize,
            schema: order_schema(),
        })?);
    }
    Ok(json!({ "documents": documents, "workloads": workloads }))
}

/// Measures the documents that other destinations are measured with.
pub fn compare_million(documents: usize) -> anyhow::Result<Value> {
    let workspace = Workspace::new();
    let file = workspace.path("orders.ndjson");
    let keys = million::write(&file, documents)?;
    let text = fs::read_to_string(file)?;
    let workload = Workload {
        name: "a million",
        lines: text.lines().map(str::to_owned).collect(),
        keys,
        schema: million::schema(),
    };
    Ok(json!({ "documents": documents, "workloads": [compare_one(&workload)?] }))
}

fn compare_one(workload: &Workload) -> anyhow::Result<Value> {
    let documents = workload.lines.len();
    let mut best: Option<(Measured, Measured)> = None;
    for _ in 0..RUNS {
        let ours = tidegate(&workload.lines, &workload.schema)?;
        let plain = plain(&workload.lines)?;
        ensure!(
            ours.1 == plain.1,
            "the tables differ: {} and {}",
            ours.1,
            plain.1
        );
        best = Some(match best.take() {
            None => (ours.0, plain.0),
            Some(best) => (faster(best.0, ours.0), faster(best.1, plain.0)),
        });
    }
    let (ours, plain) = best.expect("there is at least one run");
    let ratio = ours.rate(documents) / plain.rate(documents);
    println!(
        "{}: {:.0} documents/s, {} MiB; a plain loop: {:.0} documents/s, {} MiB; ratio {ratio:.2}",
        workload.name,
        ours.rate(documents),
        ours.peak_memory_kib / 1024,
        plain.rate(documents),
        plain.peak_memory_kib / 1024,
    );
    Ok(json!({
        "name": workload.name,
        "keys": workload.keys,
        "tidegate": ours.figures(documents),
        "plain": plain.figures(documents),
        "ratio": round(ratio, 1_000.0),
    }))
}

fn faster(one: Measured, other: Measured) -> Measured {
    if other.took < one.took { other } else { one }
}

/// Runs the documents through Tidegate; returns the table's summary with it.
fn tidegate(lines: &[String], schema: &Value) -> anyhow::Result<(Measured, String)> {
    let task = Task::sqlite("orders.db").table(ORDERS, "orders");
    let catalog = Catalog::new().collection(ORDERS, &["/id"], schema.clone());
    let workspace = Workspace::with(&catalog.task("acmeCo/orders", task));
    workspace.write_lines("orders.ndjson", lines);
    let run = workspace
        .run()
        .input(ORDERS, "orders.ndjson")
        .until_caught_up();
    let measured = Measured::run(run.start())?;
    Ok((measured, summary(&workspace.path("orders.db"))?))
}

fn plain(lines: &[String]) -> anyhow::Result<(Measured, String)> {
    let workspace = Workspace::new();
    workspace.write_lines("orders.ndjson", lines);
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["plain", "orders.ndjson", "orders.db"])
        .current_dir(workspace.path(""));
    let measured = Measured::run(Host::start(command))?;
    Ok((measured, summary(&workspace.path("orders.db"))?))
}

fn summary(database: &Path) -> anyhow::Result<String> {
    Ok(table::try_ask(database, SUMMARY)?)
}
