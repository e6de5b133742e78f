//! Generated documents into files, through Tidegate and through a plain program.
//!
//! ```text
//! documents -> tidegate run -> NDJSON | Parquet
//!     +------> a map by key, written as lines
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tidegate_tests::catalog::{Catalog, Task};
use tidegate_tests::document::ORDERS;
use tidegate_tests::host::Host;
use tidegate_tests::workspace::Workspace;

use crate::measure::{Measured, fastest, round};
use crate::million;

/// Each figure is the best of so many: what else the machine does only slows.
const RUNS: usize = 3;

const INPUT: &str = "orders.ndjson";

/// Measures both formats.
pub fn compare(documents: usize) -> anyhow::Result<Value> {
    let workspace = Workspace::new();
    let keys = million::write(&workspace.path(INPUT), documents)?;
    let mut plain = Vec::new();
    let mut formats: Vec<_> = ["ndjson", "parquet"].map(|it| (it, Vec::new())).into();
    for _ in 0..RUNS {
        plain.push(run_plain(&workspace, keys)?);
        for (format, runs) in &mut formats {
            runs.push(run_tidegate(&workspace, format, keys)?);
        }
    }
    let plain = fastest(plain);
    let mut figures = Vec::new();
    for (format, runs) in formats {
        let ours = fastest(runs);
        let ratio = ours.rate(documents) / plain.rate(documents);
        println!(
            "{format} files: {:.0} documents/s, {} MiB; a plain loop: {:.0} documents/s, {} MiB; ratio {ratio:.2}",
            ours.rate(documents),
            ours.peak_memory_kib / 1024,
            plain.rate(documents),
            plain.peak_memory_kib / 1024,
        );
        figures.push(json!({
            "format": format,
            "tidegate": ours.figures(documents),
            "ratio": round(ratio, 1_000.0),
        }));
    }
    Ok(json!({
        "documents": documents,
        "keys": keys,
        "plain": plain.figures(documents),
        "formats": figures,
    }))
}

/// The baseline: reduces a file of orders in memory and writes it, durably.
pub fn plain(input: &Path, output: &Path) -> anyhow::Result<()> {
    let mut orders: BTreeMap<i64, String> = BTreeMap::new();
    for line in BufReader::new(File::open(input)?).lines() {
        let line = line?;
        let order: Value = serde_json::from_str(&line)?;
        orders.insert(order["id"].as_i64().context("an order has an id")?, line);
    }
    let mut file = BufWriter::new(File::create(output)?);
    for line in orders.values() {
        writeln!(file, "{line}")?;
    }
    file.into_inner()?.sync_all()?;
    Ok(())
}

fn run_plain(workspace: &Workspace, keys: usize) -> anyhow::Result<Measured> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["plain-files", INPUT, "plain.ndjson"])
        .current_dir(workspace.path(""));
    let measured = Measured::run(Host::start(command))?;
    let lines = BufReader::new(File::open(workspace.path("plain.ndjson"))?).lines();
    ensure!(lines.count() == keys, "the plain program lost keys");
    Ok(measured)
}

fn run_tidegate(workspace: &Workspace, format: &str, keys: usize) -> anyhow::Result<Measured> {
    for left in ["out", "data"] {
        if workspace.path(left).exists() {
            fs::remove_dir_all(workspace.path(left))?;
        }
    }
    let task = Task::new(
        "materialize-files",
        json!({ "path": "out", "format": format, "uploadInterval": "0s" }),
    );
    let task = task.binding(json!({ "source": ORDERS, "resource": { "folder": "orders" } }));
    let catalog = Catalog::new().collection(ORDERS, &["/id"], million::schema());
    workspace.catalog(&catalog.task("acmeCo/orders", task));
    let run = workspace.run().input(ORDERS, INPUT).until_caught_up();
    let measured = Measured::run(run.start())?;
    let rows = rows(&workspace.path("out/manifest"))?;
    ensure!(rows >= keys as u64, "{rows} rows for {keys} keys");
    Ok(measured)
}

/// Returns how many rows the manifests name.
fn rows(manifests: &Path) -> anyhow::Result<u64> {
    let mut rows = 0;
    for manifest in fs::read_dir(manifests)? {
        let manifest: Value = serde_json::from_slice(&fs::read(manifest?.path())?)?;
        let files = manifest["files"].as_array().into_iter().flatten();
        rows += files.filter_map(|file| file["rows"].as_u64()).sum::<u64>();
    }
    Ok(rows)
}
