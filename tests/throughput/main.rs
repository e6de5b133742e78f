//! How fast documents become rows, beside a plain program that does the same.
//!
//! ```text
//! documents -> tidegate run -> SQLite      documents a second, peak memory
//!     +------> a plain loop -> SQLite      the same: the ratio is what counts
//! ```
//!
//! Usage:
//!
//!     throughput [DOCUMENTS]                    writes target/bench/throughput.json
//!     throughput calls                          writes target/bench/calls.json
//!     throughput catalogs                       writes target/bench/validate.json
//!     throughput files [DOCUMENTS]              writes target/bench/files.json
//!     throughput flights FILE                   writes target/bench/flights.json
//!     throughput postgres [DOCUMENTS]           writes target/bench/postgres.json
//!     throughput sqlite                         writes target/bench/sqlite.json
//!     throughput plain INPUT DATABASE           the plain program
//!     throughput plain-files INPUT OUTPUT       the same for files

mod calls;
mod catalogs;
mod files;
mod flights;
mod generated;
mod measure;
mod million;
mod plain;
mod postgres;

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use serde_json::Value;
use tidegate_tests::program;

/// Enough that starting up does not show, and few enough to wait for.
const DOCUMENTS: usize = 200_000;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => report("throughput", &generated::compare(DOCUMENTS)?),
        ["calls"] => report("calls", &calls::run()?),
        ["catalogs"] => report("validate", &catalogs::validate()?),
        ["files"] => report("files", &files::compare(million::DOCUMENTS)?),
        ["files", documents] => {
            let documents = documents.parse().context("the number of documents")?;
            report("files", &files::compare(documents)?)
        }
        ["flights", file] => report("flights", &flights::run(Path::new(file))?),
        ["postgres"] => report("postgres", &postgres::compare(million::DOCUMENTS)?),
        ["postgres", documents] => {
            let documents = documents.parse().context("the number of documents")?;
            report("postgres", &postgres::compare(documents)?)
        }
        ["sqlite"] => report("sqlite", &generated::compare_million(million::DOCUMENTS)?),
        ["plain", input, database] => plain::run(Path::new(input), Path::new(database)),
        ["plain-files", input, output] => files::plain(Path::new(input), Path::new(output)),
        [documents] => {
            let documents = documents.parse().context("the number of documents")?;
            report("throughput", &generated::compare(documents)?)
        }
        _ => bail!(
            "usage: throughput [DOCUMENTS] | calls | catalogs | files [DOCUMENTS] | flights FILE | postgres [DOCUMENTS] | sqlite | plain INPUT DATABASE \
             | plain-files INPUT OUTPUT"
        ),
    }
}

/// Writes figures to where benchmarks go.
fn report(name: &str, figures: &Value) -> anyhow::Result<()> {
    let directory = program::target().join("bench");
    fs::create_dir_all(&directory)?;
    let file = directory.join(format!("{name}.json"));
    fs::write(&file, format!("{figures:#}\n"))
        .with_context(|| format!("writing {}", file.display()))?;
    println!("written to {}", file.display());
    Ok(())
}
