//! The `tidegate` command: one file a subcommand.
//!
//! Results go to stdout, everything else to stderr. Exit code 0 means that what
//! was asked for is done, 1 that something is to be mended, 2 that the command
//! line asks for what there is not.

mod append;
mod connector;
mod error;
mod options;
mod progress;
mod read;
mod run;
mod serve;
mod signals;
mod tasks;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

/// Keeps tables, files and APIs equal to collections of keyed JSON documents.
#[derive(Parser)]
#[command(
    name = "tidegate",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  tidegate run flow.yaml --input acmeCo/orders=orders.ndjson --until-caught-up
  tidegate append acmeCo/orders orders.ndjson
  tidegate connector inspect materialize-sqlite"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the tasks of a catalog
    Run(run::Run),
    /// Runs a catalog as a server with an API
    Serve(serve::Serve),
    /// Appends documents to a collection
    Append(append::Append),
    /// Prints the documents of a collection
    Read(read::Read),
    /// Lists the tasks that have run, and how far they are
    Tasks(tasks::Tasks),
    /// Works with connectors
    Connector(connector::Connector),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    log_to_stderr();
    let result = match cli.command {
        Command::Run(run) => run.execute(),
        Command::Serve(serve) => serve.execute(),
        Command::Append(append) => append.execute(),
        Command::Read(read) => read.execute(),
        Command::Tasks(tasks) => tasks.execute(),
        Command::Connector(connector) => connector.execute(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Warnings and errors, unless `TIDEGATE_LOG` says otherwise.
fn log_to_stderr() {
    let filter = EnvFilter::builder()
        .with_default_directive(tracing::Level::WARN.into())
        .with_env_var("TIDEGATE_LOG")
        .from_env_lossy();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(progress::LogWriter::default)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
}
