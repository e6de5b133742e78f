//! The `tidegate` command: one file a subcommand.
//!
//! Results go to stdout, everything else to stderr. Exit code 0 means that what
//! was asked for is done, 1 that something is to be mended, 2 that the command
//! line asks for what there is not.

mod append;
mod catalogs;
mod census;
mod completions;
mod connection;
mod connector;
mod error;
mod explain;
mod migrate;
mod options;
mod output;
mod preview;
mod progress;
mod publish;
mod read;
mod run;
mod schedule;
mod schema;
mod serve;
mod signals;
mod start;
mod status;
mod stop;
mod sync_now;
mod tasks;
mod token;
mod validate;
mod watch;

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
  tidegate validate flow.yaml
  tidegate run flow.yaml --input acmeCo/orders=orders.ndjson --until-caught-up
  tidegate serve flow.yaml
  tidegate append acmeCo/orders orders.ndjson
  tidegate sync-now --task acmeCo/shop --through head && ./analytics.py
  tidegate connector test materialize-sqlite --config conformance.yaml"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Reports every problem of catalogs, at its line
    Validate(validate::Validate),
    /// Explains the code of a diagnostic
    Explain(explain::Explain),
    /// Says when schedules commit
    Schedule(schedule::Schedule),
    /// Counts who paces the tasks of catalogs
    Census(census::Census),
    /// Moves schedules from connectors' configs to materializations
    Migrate(migrate::Migrate),
    /// Prints the JSON schema of a kind of file, for editors
    Schema(schema::Schema),
    /// Runs the tasks of a catalog
    Run(run::Run),
    /// Runs a catalog as a server with an API
    Serve(serve::Serve),
    /// Appends documents to a collection
    Append(append::Append),
    /// Prints the documents of a collection
    Read(read::Read),
    /// Lists the tasks, how far they are, and what holds them
    Tasks(tasks::Tasks),
    /// Follows tasks of a host
    Watch(watch::Watch),
    /// Commits what a task has open, and returns when it can be queried
    SyncNow(sync_now::SyncNow),
    /// Has a host run a catalog in place of the one before
    Publish(publish::Publish),
    /// Starts a task of a host
    Start(start::Start),
    /// Stops a task of a host
    Stop(stop::Stop),
    /// Prints a token, or makes one
    Token(token::Token),
    /// Works with connectors
    Connector(connector::Connector),
    /// Prints completions for a shell
    Completions(completions::Completions),
    /// Calls of the API as they are
    Raw(sync_now::Raw),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    log_to_stderr();
    let done = |()| ExitCode::SUCCESS;
    let result = match cli.command {
        Command::Validate(validate) => validate.execute(),
        Command::Explain(explain) => explain.execute().map(done),
        Command::Schedule(schedule) => schedule.execute(),
        Command::Census(census) => census.execute().map(done),
        Command::Migrate(migrate) => migrate.execute(),
        Command::Schema(schema) => schema.execute().map(done),
        Command::Run(run) => run.execute().map(done),
        Command::Serve(serve) => serve.execute().map(done),
        Command::Append(append) => append.execute().map(done),
        Command::Read(read) => read.execute().map(done),
        Command::Tasks(tasks) => tasks.execute().map(done),
        Command::Watch(watch) => watch.execute().map(done),
        Command::SyncNow(sync_now) => sync_now.execute().map(done),
        Command::Publish(publish) => publish.execute().map(done),
        Command::Start(start) => start.execute().map(done),
        Command::Stop(stop) => stop.execute().map(done),
        Command::Token(token) => token.execute().map(done),
        Command::Connector(connector) => connector.execute(),
        Command::Completions(completions) => completions.execute().map(done),
        Command::Raw(raw) => raw.execute().map(done),
    };
    result.unwrap_or_else(|error| {
        eprintln!("{error}");
        error.code()
    })
}

/// What not even `TIDEGATE_LOG=trace` shows.
const NO_REQUESTS: &str = "wasmtime_wasi_http=warn";

/// Warnings and errors, unless `TIDEGATE_LOG` says otherwise.
fn log_to_stderr() {
    let filter = EnvFilter::builder()
        .with_default_directive(tracing::Level::WARN.into())
        .with_env_var("TIDEGATE_LOG")
        .from_env_lossy()
        // It logs where requests go, and paths of webhooks are secrets.
        .add_directive(NO_REQUESTS.parse().expect("it is a directive"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(progress::LogWriter::default)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
}
