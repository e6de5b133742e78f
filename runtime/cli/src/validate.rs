//! `tidegate validate`: every problem of catalogs at once.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use tidegate_host::{Catalog, Validated};
use tidegate_validator::{Summary, diagnostic};

use crate::catalogs;
use crate::error::CliError;
use crate::options::ConnectorsOption;
use crate::output::{colour, print, print_json};

/// Reports every problem of catalogs: the file, the line, what is wrong and what
/// to do about it. Nothing is dialled, and nothing is written.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tidegate validate flow.yaml
  tidegate validate . --format sarif >tidegate.sarif
  tidegate validate flow.yaml --live running.flow.yaml --deny-warnings

Exit code 0 means no errors, 1 errors, 2 a wrong command line. What a connector alone can tell
(its config, its resources, its fields) is asked of the component if it is there, and skipped with
a word about it if not.")]
pub struct Validate {
    /// Catalog files, and directories of catalogs: flow.yaml, *.flow.yaml
    #[arg(required = true, value_name = "CATALOG|DIR")]
    catalogs: Vec<PathBuf>,
    /// The catalog that runs now: says what a change does to what is there
    #[arg(long, value_name = "FILE")]
    live: Option<PathBuf>,
    /// How to print the problems
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
    /// Exit with 1 for warnings, too
    #[arg(long)]
    deny_warnings: bool,
    #[command(flatten)]
    connectors: ConnectorsOption,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// For people, with the lines
    Human,
    /// For programs
    Json,
    /// For code hosts: SARIF 2.1.0
    Sarif,
}

impl Validate {
    pub fn execute(self) -> Result<ExitCode, CliError> {
        let roots = catalogs::find(&self.catalogs)?;
        if let Some(named) = &self.connectors.connectors
            && !named.is_dir()
        {
            let error = CliError::usage(format!("there is no directory {}", named.display()));
            return Err(error.hint("--connectors or TIDEGATE_CONNECTORS names it"));
        }
        let places = self.connectors.places();
        let validated = tidegate_host::validate(&roots, places, self.live.as_deref())?;
        let catalog = match validated {
            Validated::Draft(catalog) => catalog,
            Validated::LiveHasErrors(live) => {
                eprint!("{}", live.report(false));
                return Err(CliError::user(
                    "the catalog of --live has errors itself: nothing can be compared with it",
                ));
            }
        };
        self.print(&catalog)?;
        let summary = Summary::of(catalog.diagnostics());
        let failed = summary.errors > 0 || self.deny_warnings && summary.warnings > 0;
        Ok(ExitCode::from(u8::from(failed)))
    }

    fn print(&self, catalog: &Catalog) -> Result<(), CliError> {
        let diagnostics = catalog.diagnostics();
        match self.format {
            Format::Human => print(diagnostic::human(diagnostics, catalog.sources(), colour())),
            Format::Json => print_json(&diagnostic::json(diagnostics)),
            Format::Sarif => print_json(&diagnostic::sarif(diagnostics)),
        }
    }
}
