//! `tidegate census`: who paces what, over many catalogs.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use tidegate_validator::{Answers, Pacer, census, finish, load, tally};

use crate::catalogs;
use crate::error::CliError;
use crate::output::{Format, print, print_json};

/// Says of every task of catalogs who paces it: the materialization, its
/// connector's config, its connector's default, or nobody.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tidegate census .
  tidegate census catalogs/ --format json

Each catalog is read by itself, so that catalogs of different places may use one name twice.
`tidegate migrate` moves a connector's schedule to the materialization.")]
pub struct Census {
    /// Directories of catalogs (flow.yaml, *.flow.yaml), and catalog files
    #[arg(required = true, value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// How to print the count
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
}

impl Census {
    pub fn execute(self) -> Result<(), CliError> {
        if let Some(missing) = self.directories.iter().find(|path| !path.exists()) {
            let message = format!("there is no {}", missing.display());
            return Err(CliError::usage(message));
        }
        let roots = catalogs::find(&self.directories)?;
        // A task that two catalogs import is one task.
        let mut pacers = BTreeMap::new();
        let mut faulty = 0;
        for root in &roots {
            let draft = load(std::slice::from_ref(root), &|path| fs::read(path));
            let answers = Answers::default();
            let (_, diagnostics) = finish(&draft, &answers);
            faulty += usize::from(diagnostics.iter().any(|it| catalogs::unreadable(it.code)));
            for pacer in census(&draft, &answers) {
                pacers.insert((pacer.file.clone(), pacer.line, pacer.task.clone()), pacer);
            }
        }
        let pacers: Vec<Pacer> = pacers.into_values().collect();
        match self.format {
            Format::Human => print(human(&pacers, roots.len()))?,
            Format::Json => {
                let tasks: Vec<_> = pacers.iter().map(task).collect();
                print_json(&json!({ "tasks": tasks, "counts": tally(&pacers) }))?;
            }
        }
        if faulty > 0 {
            let catalogs = match faulty {
                1 => "one catalog".to_owned(),
                count => format!("{count} catalogs"),
            };
            eprintln!(
                "parts of {catalogs} cannot be read and are not counted; `tidegate validate` says why"
            );
        }
        Ok(())
    }
}

fn task(pacer: &Pacer) -> serde_json::Value {
    json!({
        "task": pacer.task,
        "file": pacer.file,
        "line": pacer.line,
        "paces": pacer.label(),
        "model": pacer.model,
        "connector": pacer.connector,
    })
}

fn human(pacers: &[Pacer], catalogs: usize) -> String {
    let mut text = String::new();
    let width = pacers.iter().map(|it| it.label().len()).max().unwrap_or(0);
    for pacer in pacers {
        let label = pacer.label();
        text.push_str(&format!(
            "{label:width$}  {}  ({}:{})\n",
            pacer.task, pacer.file, pacer.line
        ));
    }
    if !pacers.is_empty() {
        text.push('\n');
    }
    for (label, count) in tally(pacers) {
        text.push_str(&format!("{count:6}  {label}\n"));
    }
    text.push_str(&format!(
        "{:6}  tasks in {catalogs} catalogs\n",
        pacers.len()
    ));
    text
}
