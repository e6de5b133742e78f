//! `tidegate publish`: a catalog to a running host.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::Value;
use tidegate_api::client::Client;
use tidegate_api::v1::diagnostic::Severity;
use tidegate_api::v1::task_change::Kind;
use tidegate_api::{to_json, v1};
use tidegate_host::CatalogFiles;

use crate::catalogs;
use crate::connection::{HostOption, block_on, refused};
use crate::error::CliError;
use crate::output::{Format, print, print_json};
use crate::preview::{actions, previewed};

/// Has a host run a catalog in place of the one before. Only tasks that differ are
/// restarted; a catalog with errors changes nothing.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tidegate publish flow.yaml
  tidegate publish . --dry-run

With --dry-run it also prints what each task would do at its destination, and changes nothing
there. Exit code 0 means that the catalog is published, or could be with --dry-run; 1 that it has
errors, or that a destination could not be asked.
Relative paths in connectors' configurations start at the first catalog's folder, on the host's
machine.")]
pub struct Publish {
    /// Catalog files, and directories of catalogs: flow.yaml, *.flow.yaml
    #[arg(required = true, value_name = "CATALOG|DIR")]
    catalogs: Vec<PathBuf>,
    /// Only say what would change, at the destinations too
    #[arg(long)]
    dry_run: bool,
    /// How to print what changes
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
    #[command(flatten)]
    host: HostOption,
}

impl Publish {
    pub fn execute(self) -> Result<(), CliError> {
        let request = v1::PublishRequest {
            catalog: Some(read(&catalogs::find(&self.catalogs)?)?),
            dry_run: self.dry_run,
        };
        let publish = async |client: Client| client.catalog().publish(request.clone()).await;
        let answer = block_on(async { self.host.call(publish).await.map_err(refused) })?;
        let answer = answer.into_inner();
        match self.format {
            Format::Json => {
                let value: Value = serde_json::from_slice(&to_json(&answer))?;
                print_json(&value)?;
            }
            Format::Human => {
                eprint!("{}", diagnostics(&answer.diagnostics));
                print(changes(&answer.changes, self.dry_run))?;
            }
        }
        if !answer.valid {
            let message = "the catalog has errors; nothing was changed";
            return Err(CliError::user(message));
        }
        let failed = answer.changes.iter().filter(|it| !it.error.is_empty());
        previewed(failed.map(|it| it.error.clone()).collect())
    }
}

/// Reads a catalog with everything that it imports.
fn read(roots: &[PathBuf]) -> Result<v1::CatalogFiles, CliError> {
    let files = CatalogFiles::read(roots)?;
    let unreadable = |path: &PathBuf| !files.files.contains_key(path);
    if let Some(root) = files.roots.iter().find(|root| unreadable(root)) {
        // The words of the system, for the one that matters.
        std::fs::read_to_string(root)
            .map_err(|error| CliError::user(format!("cannot read {}: {error}", root.display())))?;
    }
    let text = |path: PathBuf| {
        path.into_os_string().into_string().map_err(|path| {
            let path = path.display();
            CliError::user(format!(
                "the path {path} is no UTF-8: give the file another name"
            ))
        })
    };
    let roots: Result<_, _> = files.roots.into_iter().map(text).collect();
    let entries = files.files.into_iter();
    let entries = entries.map(|(path, contents)| Ok((text(path)?, contents)));
    Ok(v1::CatalogFiles {
        base_directory: text(files.base)?,
        roots: roots?,
        files: entries.collect::<Result<_, CliError>>()?,
    })
}

/// Puts diagnostics into lines as compilers have them.
fn diagnostics(diagnostics: &[v1::Diagnostic]) -> String {
    let mut text = String::new();
    let mut line = |args: std::fmt::Arguments<'_>| {
        text.write_fmt(args).expect("text takes everything");
    };
    for it in diagnostics {
        let severity = match it.severity() {
            Severity::Error | Severity::Unspecified => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        };
        if let Some(place) = &it.place {
            line(format_args!(
                "{}:{}:{}: ",
                place.file, place.line, place.column
            ));
        }
        line(format_args!("{severity}[{}]: {}\n", it.code, it.message));
        for related in &it.related {
            if let Some(place) = &related.place {
                line(format_args!(
                    "  {}:{}:{}: {}\n",
                    place.file, place.line, place.column, related.message
                ));
            }
        }
        if !it.help.is_empty() {
            line(format_args!("  help: {}\n", it.help));
        }
    }
    text
}

fn changes(changes: &[v1::TaskChange], dry_run: bool) -> String {
    let mut text = String::new();
    for change in changes {
        let word = match (change.kind(), dry_run) {
            (Kind::Unchanged | Kind::Unspecified, _) => continue,
            (Kind::Added, false) => "added",
            (Kind::Added, true) => "would be added",
            (Kind::Changed, false) => "changed",
            (Kind::Changed, true) => "would change",
            (Kind::Removed, false) => "removed",
            (Kind::Removed, true) => "would be removed",
        };
        writeln!(text, "{}: {word}", change.task).expect("text takes everything");
        text += &actions(&change.actions);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagnostics_are_lines() {
        let place = |line| v1::Place {
            file: "flow.yaml".to_owned(),
            line,
            column: 5,
            pointer: "/x".to_owned(),
        };
        let all = [
            v1::Diagnostic {
                code: "unknown-field".to_owned(),
                severity: Severity::Error.into(),
                message: "there is no such field".to_owned(),
                place: Some(place(3)),
                help: "take it out".to_owned(),
                related: vec![v1::Related {
                    message: "the others are here".to_owned(),
                    place: Some(place(1)),
                }],
            },
            v1::Diagnostic {
                code: "empty".to_owned(),
                severity: Severity::Warning.into(),
                message: "there are no tasks".to_owned(),
                ..Default::default()
            },
        ];
        assert_eq!(
            diagnostics(&all),
            "flow.yaml:3:5: error[unknown-field]: there is no such field\n  \
             flow.yaml:1:5: the others are here\n  help: take it out\n\
             warning[empty]: there are no tasks\n"
        );
    }

    #[test]
    fn unchanged_tasks_are_not_named() {
        let change = |task: &str, kind: Kind| v1::TaskChange {
            task: task.to_owned(),
            kind: kind.into(),
            ..Default::default()
        };
        let all = [
            change("a", Kind::Added),
            change("b", Kind::Unchanged),
            change("c", Kind::Removed),
        ];
        assert_eq!(changes(&all, false), "a: added\nc: removed\n");
        assert_eq!(
            changes(&all, true),
            "a: would be added\nc: would be removed\n"
        );
    }
}
