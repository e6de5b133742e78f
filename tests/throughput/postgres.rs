//! A million documents into PostgreSQL, beside what `psql` does with them.
//!
//! ```text
//! documents -> tidegate run ------------------------------> a keyed table
//!     +------> \\copy of all rows, INSERT .. ON CONFLICT ---> the same
//!     +------> reduced beforehand, \\copy -------------------> the same
//! ```
//!
//! The server has its default, durable settings, and is new for each run.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tidegate_tests::catalog::{Catalog, Task};
use tidegate_tests::document::ORDERS;
use tidegate_tests::host::Host;
use tidegate_tests::postgres::{DATABASE, PASSWORD, Server, USER};
use tidegate_tests::workspace::Workspace;

use crate::measure::{Measured, cpu_of, round};
use crate::million;

/// Each figure is the best of so many: what else the machine does only slows.
const RUNS: usize = 2;

const INPUT: &str = "orders.ndjson";

const COLUMNS: &str = "id, line, total, status, customer, paid, note, flow_document";

const TYPES: &str = "id numeric, line numeric, total numeric, status text, customer numeric, \
    paid boolean, note text, flow_document json";

/// What must be the same in all tables.
const SUMMARY: &str = "SELECT count(*), sum(line), sum(length(flow_document::text)) FROM orders";

/// A way to bring documents into a table.
#[derive(Clone, Copy)]
enum Way {
    Tidegate,
    CopyAndMerge,
    CopyReduced,
}

/// A run, what the server computed, and what the table came to.
struct Run {
    measured: Measured,
    server_cpu: Duration,
    summary: String,
}

/// Measures all three.
pub fn compare(documents: usize) -> anyhow::Result<Value> {
    let workspace = Workspace::new();
    let keys = million::write(&workspace.path(INPUT), documents)?;
    as_csv(&workspace.path(INPUT), &workspace)?;
    let mut figures = Vec::new();
    let mut rates = Vec::new();
    for (name, way) in [
        ("tidegate", Way::Tidegate),
        ("copy all, merge", Way::CopyAndMerge),
        ("copy reduced", Way::CopyReduced),
    ] {
        let mut runs = Vec::new();
        for _ in 0..RUNS {
            runs.push(run(&workspace, way)?);
        }
        let run = runs.into_iter().min_by_key(|run| run.measured.took);
        let Run {
            measured,
            server_cpu,
            summary,
        } = run.expect("there is at least one run");
        ensure!(
            summary.starts_with(&format!("{keys}|")),
            "{name}: {summary}, and there are {keys} keys"
        );
        println!(
            "postgres, {name}: {:.0} documents/s, {:.1} s, {:.1} s of CPU and {:.1} s of the server's, {} MiB",
            measured.rate(documents),
            measured.took.as_secs_f64(),
            measured.cpu.as_secs_f64(),
            server_cpu.as_secs_f64(),
            measured.peak_memory_kib / 1024,
        );
        rates.push((measured.rate(documents), summary));
        let mut of = measured.figures(documents);
        of["name"] = name.into();
        of["serverCpuSeconds"] = round(server_cpu.as_secs_f64(), 100.0).into();
        figures.push(of);
    }
    ensure!(
        rates.iter().all(|(_, summary)| *summary == rates[0].1),
        "the tables differ: {rates:?}"
    );
    let ratios: Vec<f64> = rates
        .iter()
        .map(|(rate, _)| round(rates[0].0 / rate, 1_000.0))
        .collect();
    Ok(json!({ "documents": documents, "keys": keys, "runs": figures, "ratios": ratios }))
}

fn run(workspace: &Workspace, way: Way) -> anyhow::Result<Run> {
    let server = Server::start();
    let before = server_cpu(&server)?;
    let host = match way {
        Way::Tidegate => tidegate(workspace, &server)?,
        Way::CopyAndMerge => psql(
            workspace,
            &server,
            &[
                &format!("CREATE TEMPORARY TABLE staged ({TYPES})"),
                "\\copy staged FROM all.csv CSV",
                &format!(
                    "INSERT INTO orders SELECT DISTINCT ON (id) {COLUMNS} FROM staged ORDER BY id, line DESC \
                     ON CONFLICT (id) DO UPDATE SET ({COLUMNS}) = ROW(excluded.*)"
                ),
            ],
        ),
        Way::CopyReduced => psql(workspace, &server, &["\\copy orders FROM reduced.csv CSV"]),
    };
    let measured = Measured::run(host)?;
    let summary = server.ask(SUMMARY);
    let server_cpu = server_cpu(&server)?.saturating_sub(before);
    Ok(Run {
        measured,
        server_cpu,
        summary,
    })
}

/// Returns what the server has computed, with its sessions that have ended.
fn server_cpu(server: &Server) -> anyhow::Result<Duration> {
    let file = std::fs::read_to_string(server.dir().join("data/postmaster.pid"))?;
    let id = file
        .lines()
        .next()
        .context("the server writes its process id")?;
    let cpu = cpu_of(id.parse()?).context("the server runs")?;
    Ok(cpu.own + cpu.children)
}

fn tidegate(workspace: &Workspace, server: &Server) -> anyhow::Result<Host> {
    if workspace.data_dir().exists() {
        std::fs::remove_dir_all(workspace.data_dir())?;
    }
    let config = json!({
        "address": server.address(), "user": USER, "password": PASSWORD, "database": DATABASE,
    });
    let task = Task::new("materialize-postgres", config).table(ORDERS, "orders");
    let catalog = Catalog::new().collection(ORDERS, &["/id"], million::schema());
    workspace.catalog(&catalog.task("acmeCo/orders", task));
    let run = workspace.run().input(ORDERS, INPUT).until_caught_up();
    Ok(run.start())
}

/// Runs statements in one transaction, after making the table.
fn psql(workspace: &Workspace, server: &Server, statements: &[&str]) -> Host {
    let table = format!("CREATE TABLE orders ({TYPES}, PRIMARY KEY (id))");
    let mut psql = server.psql();
    psql.arg("--single-transaction")
        .current_dir(workspace.path(""));
    for statement in [&*table].iter().chain(statements) {
        psql.args(["-c", statement]);
    }
    Host::start(psql)
}

/// Writes the documents as rows: all of them, and the last of each key.
fn as_csv(input: &Path, workspace: &Workspace) -> anyhow::Result<()> {
    let mut all = BufWriter::new(File::create(workspace.path("all.csv"))?);
    let mut reduced: BTreeMap<u64, String> = BTreeMap::new();
    for line in BufReader::new(File::open(input)?).lines() {
        let line = line?;
        let order: Value = serde_json::from_str(&line)?;
        let field = |name: &str| match &order[name] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let fields = ["id", "line", "total", "status", "customer", "paid", "note"].map(field);
        let row = format!("{},\"{}\"", fields.join(","), line.replace('"', "\"\""));
        writeln!(all, "{row}")?;
        reduced.insert(order["id"].as_u64().context("an order has an id")?, row);
    }
    all.into_inner()?.sync_all()?;
    let mut file = BufWriter::new(File::create(workspace.path("reduced.csv"))?);
    for row in reduced.values() {
        writeln!(file, "{row}")?;
    }
    file.into_inner()?.sync_all()?;
    Ok(())
}
