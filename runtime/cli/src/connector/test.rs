//! `tidegate connector test`: holds a component to the protocol.

use std::env;
use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use serde_json::{Value, json};
use tidegate_conformance::{Checked, Outcome, Report, Setup};
use tidegate_host::{Connectors, Runtimes, component_ref};
use tidegate_validator::{diagnostic, load_value};

use crate::error::CliError;
use crate::options::ConnectorsOption;
use crate::output::{colour, print, print_json};

/// Columns of a check's name: the longest has them.
const NAME_COLUMNS: usize = 17;

#[derive(Args)]
#[command(after_help = "\
Examples:
  tidegate connector test materialize-sqlite --config conformance.yaml
  tidegate connector test target/connectors/mine.wasm --config conformance.yaml --format junit > junit.xml

The file has the endpoint's config and a binding's resource, in which {name} stands for a name:

  config: {path: shop.db}
  resource: {table: \"{name}\"}

For a connector that takes delta updates too, add a `deltaResource`; what is never loaded is seen
through a command that prints the rows of the resource {name}, a JSON object a line, as `readback`.
Where a destination is one task's alone, {task} stands for the task in the config and the command.

Every check makes resources of its own, which stay: name a destination that is there for tests. Exit
code 0 if no check failed, 1 if one did.")]
pub struct Test {
    /// A component's name, or a path to it
    component: String,
    /// What to test it with, as YAML or JSON
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// How the result is printed
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
    #[command(flatten)]
    connectors: ConnectorsOption,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Human,
    /// For programs
    Json,
    /// For CI systems, as JUnit XML
    Junit,
}

impl Test {
    pub fn execute(self) -> Result<ExitCode, CliError> {
        let Some(value) = read(&self.config) else {
            return Ok(ExitCode::FAILURE);
        };
        // Paths mean the same wherever the command is called from.
        let base = self.config.parent().unwrap_or(Path::new(""));
        let base = match base.as_os_str().is_empty() {
            true => Path::new("."),
            false => base,
        };
        let setup = Setup::new(value, &base.canonicalize()?)
            .map_err(|error| CliError::user(format!("{}: {error}", self.config.display())))?;
        let runtimes = Runtimes::start()?;
        let mut places = self.connectors.places();
        places.cache = places.cache.or_else(cache);
        let connectors = Connectors::new(places)?;
        let report = runtimes.data().block_on(async {
            let component = connectors.load(&component_ref(&self.component)).await?;
            let mut each = |checked: &Checked| {
                if self.format == Format::Human {
                    // A closed pipe shows when the result is printed.
                    let _ = print(line(checked));
                }
            };
            Ok::<_, CliError>(tidegate_conformance::run(component, setup, &mut each).await?)
        })?;
        match self.format {
            Format::Human => print(summary(&report))?,
            Format::Json => print_json(&as_json(&self.component, &report))?,
            Format::Junit => print(as_junit(&self.component, &report)?)?,
        }
        Ok(match report.passed() {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        })
    }
}

/// Returns where compiled components are kept if no place is named, and if there is one:
/// what brings an interpreter along compiles for half a minute.
fn cache() -> Option<PathBuf> {
    let set = |name| {
        env::var_os(name)
            .filter(|it| !it.is_empty())
            .map(PathBuf::from)
    };
    let caches = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    // Where nothing can be kept, each run compiles anew.
    let cache = caches?.join("tidegate");
    fs::create_dir_all(&cache).ok()?;
    Some(cache)
}

/// Returns nothing once it has said what is wrong with the file.
fn read(file: &Path) -> Option<Value> {
    let loaded = load_value(file, &|path| fs::read(path));
    if loaded.value.is_none() {
        let colour = std::io::stderr().is_terminal();
        let said = diagnostic::human(&loaded.diagnostics, &loaded.sources, colour);
        eprint!("{said}");
    }
    loaded.value
}

/// Returns a line for people, with another one for what was found.
fn line(checked: &Checked) -> String {
    let paint = |code: &str, text: &str| match colour() {
        true => format!("\x1b[{code}m{text}\x1b[0m"),
        false => text.to_owned(),
    };
    let Checked { check, title, .. } = checked;
    let (mark, note) = match &checked.outcome {
        Outcome::Passed(seen) => (paint("32", "ok  "), seen),
        Outcome::Failed(reason) => (paint("31", "FAIL"), reason),
        Outcome::Skipped(reason) => (paint("2", "skip"), reason),
    };
    let mut line = format!("{mark}  {check:<NAME_COLUMNS$}  {title}\n");
    if !note.is_empty() {
        let indent = " ".repeat("FAIL".len() + 2 + NAME_COLUMNS + 2);
        line.push_str(&format!("{indent}{}\n", paint("2", note)));
    }
    line
}

fn summary(report: &Report) -> String {
    let (passed, failed, skipped) = report.counts();
    let guarantee = match report.guarantee {
        Some(guarantee) => format!(", {}", name(&guarantee)),
        None => String::new(),
    };
    let seconds = seconds(report);
    format!(
        "\n{passed} checks passed, {failed} failed, {skipped} skipped in {seconds:.1} s{guarantee}\n"
    )
}

fn seconds(report: &Report) -> f64 {
    let took = report.checks.iter().map(|checked| checked.took);
    took.sum::<std::time::Duration>().as_secs_f64()
}

/// Returns a guarantee as the protocol spells it.
fn name(guarantee: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(guarantee).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

fn as_json(component: &str, report: &Report) -> Value {
    let check = |checked: &Checked| {
        let (outcome, note) = match &checked.outcome {
            Outcome::Passed(seen) => ("passed", seen),
            Outcome::Failed(reason) => ("failed", reason),
            Outcome::Skipped(reason) => ("skipped", reason),
        };
        json!({
            "check": checked.check,
            "title": checked.title,
            "outcome": outcome,
            "note": note,
            "seconds": checked.took.as_secs_f64(),
        })
    };
    let (passed, failed, skipped) = report.counts();
    json!({
        "component": component,
        "guarantee": report.guarantee,
        "passed": passed,
        "failed": failed,
        "skipped": skipped,
        "checks": report.checks.iter().map(check).collect::<Vec<_>>(),
    })
}

fn as_junit(component: &str, report: &Report) -> Result<String, CliError> {
    let mut suite = TestSuite::new(component);
    for checked in &report.checks {
        let status = match &checked.outcome {
            Outcome::Passed(_) => TestCaseStatus::success(),
            Outcome::Failed(reason) => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(reason.as_str());
                status
            }
            Outcome::Skipped(reason) => {
                let mut status = TestCaseStatus::skipped();
                status.set_message(reason.as_str());
                status
            }
        };
        let mut case = TestCase::new(checked.check, status);
        case.set_time(checked.took);
        case.set_classname(checked.title);
        suite.add_test_case(case);
    }
    let mut written = quick_junit::Report::new("tidegate connector test");
    written.add_test_suite(suite);
    Ok(written.to_string()?)
}
