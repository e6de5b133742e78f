//! `tidegate run`: the tasks of a catalog, over the input files it is given.
//!
//! ```text
//! catalog -> checked -> data directory -> inputs followed, tasks led
//!                                             |
//!      until caught up: inputs end -> each task commits through -> stop
//!      otherwise:       SIGINT or SIGTERM --------------------------> stop
//! ```

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::HumanCount;
use tidegate_host::leader::{SyncNowError, TaskHandle, TaskState, Through};
use tidegate_host::{Built, Catalog, DataDir, Host, InputEnd, InputHandle, RunOptions};

use crate::error::CliError;
use crate::options::{ConnectorsOption, DataDirOption};
use crate::output::print;
use crate::preview::{self, previewed};
use crate::progress::{DRAW_EVERY, Display};
use crate::signals::{Signals, stop_at_once};
use crate::status::left_out;

/// How long to wait before a task that lost its session is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// Runs the tasks of a catalog: follows the input files into their journals, and
/// keeps the destinations equal to them.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tidegate run flow.yaml --input acmeCo/orders=orders.ndjson --until-caught-up
  tidegate run flow.yaml --check
  tidegate run flow.yaml --dry-run

Without --until-caught-up it runs until SIGINT or SIGTERM, then commits what is open and exits 0;
a second signal stops at once, and the next run recovers.")]
pub struct Run {
    /// Catalog files
    #[arg(required = true)]
    catalog: Vec<PathBuf>,
    /// Follow a file of JSON documents, one a line, into a collection
    #[arg(long, value_name = "COLLECTION=FILE", value_parser = input)]
    input: Vec<(String, PathBuf)>,
    /// Run only this task; may be given more than once
    #[arg(long, value_name = "NAME")]
    task: Vec<String>,
    /// Exit once everything is read, committed and acknowledged
    #[arg(long)]
    until_caught_up: bool,
    /// Check the catalog and stop before anything is written
    #[arg(long)]
    check: bool,
    /// Print what each task would do at its destination before it starts, and stop before
    /// anything is written
    #[arg(long, conflicts_with_all = ["check", "until_caught_up", "input"])]
    dry_run: bool,
    #[command(flatten)]
    data_dir: DataDirOption,
    #[command(flatten)]
    connectors: ConnectorsOption,
}

fn input(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((collection, file)) if !collection.is_empty() && !file.is_empty() => {
            Ok((collection.to_owned(), file.into()))
        }
        _ => Err("an input looks like acmeCo/orders=orders.ndjson".to_owned()),
    }
}

impl Run {
    pub fn execute(self) -> Result<(), CliError> {
        if self.check {
            let places = self.connectors.places();
            let built = accept(tidegate_host::check(&self.catalog, places)?)?;
            self.selected(&built)?;
            println!("{} tasks, no errors", built.task_names().len());
            return Ok(());
        }
        if self.dry_run {
            return self.preview();
        }
        let host = Host::open(self.data_dir.create()?)?;
        let connectors = host.connectors(self.connectors.places())?;
        let built = accept(host.build(&self.catalog, &connectors)?)?;
        let selected = self.selected(&built)?;
        let started = Instant::now();
        let options = RunOptions {
            base: self.base()?,
            until_caught_up: self.until_caught_up,
        };
        let mut inputs = Vec::new();
        for (collection, file) in &self.input {
            inputs.push(host.follow(&built, collection, file, self.until_caught_up)?);
        }
        let mut tasks = Vec::new();
        for name in selected {
            tasks.extend(host.start(&built, name, &options)?);
        }
        let mut running = Running {
            tasks,
            inputs,
            display: Display::new(),
            said: !self.until_caught_up,
            announced: Vec::new(),
        };
        host.block_on(running.run(self.until_caught_up))?;
        running.report(started.elapsed())
    }

    /// Prints what each task would do at its destination.
    fn preview(&self) -> Result<(), CliError> {
        let (host, _scratch) = match self.data_dir.existing()? {
            Some(dir) => (Host::open(dir)?, None),
            // Nothing was ever run: what a new data directory would hold.
            None => {
                let scratch = tempfile::tempdir()?;
                (Host::open(DataDir::open(scratch.path())?)?, Some(scratch))
            }
        };
        let connectors = host.connectors(self.connectors.places())?;
        let built = accept(host.build(&self.catalog, &connectors)?)?;
        let mut errors = Vec::new();
        for task in self.selected(&built)? {
            let Some(preview) = host.preview(&built, task, &self.base()?)? else {
                continue;
            };
            print(preview::lines(task, &preview))?;
            errors.extend(preview.err());
        }
        previewed(errors)
    }

    /// Relative paths in connectors' configurations start at the catalog's
    /// folder, so that a catalog means the same wherever it is run from.
    fn base(&self) -> Result<PathBuf, CliError> {
        let catalog = self.catalog.first().expect("clap requires a catalog");
        let catalog = std::path::absolute(catalog)?;
        Ok(catalog.parent().expect("a file is in a folder").to_owned())
    }

    /// Returns the tasks to run; refuses names that the catalog does not have.
    fn selected<'a>(&self, built: &'a Built) -> Result<Vec<&'a str>, CliError> {
        let collections = built.collection_names();
        for (collection, _) in &self.input {
            known("--input", "collection", collection, &collections)?;
        }
        let tasks = built.task_names();
        for task in &self.task {
            known("--task", "materialization", task, &tasks)?;
        }
        let all = self.task.is_empty();
        Ok(tasks
            .into_iter()
            .filter(|name| all || self.task.iter().any(|it| it == name))
            .collect())
    }
}

/// Prints what there is to say of a catalog, and refuses one with errors.
fn accept(catalog: Catalog) -> Result<Built, CliError> {
    eprint!("{}", catalog.report(io::stderr().is_terminal()));
    catalog
        .built
        .ok_or_else(|| CliError::user("the catalog has errors; nothing was run"))
}

fn known(option: &str, kind: &str, name: &str, names: &[&str]) -> Result<(), CliError> {
    if names.contains(&name) {
        return Ok(());
    }
    let error = CliError::user(format!(
        "{option} names {kind} {name}, which the catalog does not have"
    ));
    Err(error.hint(format!("it has {}", names.join(", "))))
}

/// What runs, and how it is shown.
struct Running {
    tasks: Vec<TaskHandle>,
    inputs: Vec<InputHandle>,
    display: Display,
    /// Whether failures are said as they happen: a host that does not end by
    /// itself would otherwise keep them to itself.
    said: bool,
    announced: Vec<String>,
}

impl Running {
    async fn run(&mut self, until_caught_up: bool) -> Result<(), CliError> {
        let mut signals = Signals::listen()?;
        let tasks = self.tasks.clone();
        let ends: Vec<_> = self.inputs.iter().map(InputHandle::ended).collect();
        let work = async move {
            if !until_caught_up {
                // Inputs end only by failing; the tasks then still have work.
                return over(&tasks).await;
            }
            for end in ends {
                end.await;
            }
            futures::future::join_all(tasks.iter().map(catch_up)).await;
        };
        tokio::pin!(work);
        let mut draw = tokio::time::interval(DRAW_EVERY);
        loop {
            tokio::select! {
                () = &mut work => break,
                () = signals.next() => break,
                _ = draw.tick() => self.show(),
            }
        }
        self.stop(&mut signals).await;
        Ok(())
    }

    /// Stops everything in order; a second signal stops the process.
    async fn stop(&mut self, signals: &mut Signals) {
        for input in &self.inputs {
            input.stop();
        }
        let tasks = self.tasks.clone();
        let stopped = async move {
            futures::future::join_all(tasks.iter().map(TaskHandle::stop)).await;
            over(&tasks).await;
        };
        tokio::pin!(stopped);
        let mut draw = tokio::time::interval(DRAW_EVERY);
        loop {
            tokio::select! {
                () = &mut stopped => break,
                () = signals.next() => {
                    self.display.finish();
                    stop_at_once();
                }
                _ = draw.tick() => self.show(),
            }
        }
        self.show();
        self.display.finish();
    }

    fn show(&mut self) {
        for task in &self.tasks {
            let view = task.watch().borrow().clone();
            self.display.show(task.name(), &view);
        }
        if self.said {
            for failure in self.failures() {
                if !self.announced.contains(&failure) {
                    self.display.say(&format!("error: {failure}"));
                    self.announced.push(failure);
                }
            }
        }
    }

    /// Returns what went wrong with inputs and tasks so far.
    fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        for input in &self.inputs {
            if let InputEnd::Failed(message) = input.end() {
                failures.push(message);
            }
        }
        for task in &self.tasks {
            if let TaskState::Failed { message } = &task.watch().borrow().state {
                failures.push(message.clone());
            }
        }
        failures
    }

    /// Prints what was done, and fails if anything did.
    fn report(&self, took: Duration) -> Result<(), CliError> {
        for task in &self.tasks {
            let view = task.watch().borrow().clone();
            println!(
                "{}: {} documents read, {} rows stored, {} transactions, {:.1} s",
                task.name(),
                HumanCount(view.read),
                HumanCount(view.stored),
                HumanCount(view.transactions),
                took.as_secs_f64()
            );
            let counts = view.left_out;
            if let Some(left_out) = left_out(counts.skipped, counts.dead_letters) {
                println!("{}: {left_out} since it first ran", task.name());
            }
        }
        let mut failures = self.failures();
        failures.retain(|failure| !self.announced.contains(failure));
        if failures.is_empty() && !self.announced.is_empty() {
            return Err(CliError::user("some inputs or tasks failed, as said above"));
        }
        match failures.is_empty() {
            true => Ok(()),
            false => Err(CliError::user(failures.join("\nerror: "))),
        }
    }
}

async fn over(tasks: &[TaskHandle]) {
    futures::future::join_all(tasks.iter().map(TaskHandle::over)).await;
}

/// Waits until a task has committed everything that is in the journals now, over
/// restarts of its session, or is over.
async fn catch_up(task: &TaskHandle) {
    loop {
        let done = match task.sync_now(Through::Head).await {
            Ok(call) => call.done().await.map(|_| ()),
            Err(error) => Err(error),
        };
        match done {
            Ok(()) | Err(SyncNowError::NotRunning { .. }) => return,
            Err(SyncNowError::Retry) => tokio::time::sleep(ASK_AGAIN).await,
        }
    }
}
