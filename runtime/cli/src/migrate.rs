//! `tidegate migrate`: schedules of connectors' configs become schedules of
//! materializations.
//!
//! ```text
//! files -> edits -> the result read again, as it would be -> diff | written
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use similar::TextDiff;
use tidegate_validator::{
    Answers, Draft, Migration, Rewritten, Severity, diagnostic, finish, load, migrate,
};

use crate::catalogs;
use crate::error::CliError;
use crate::output::print;

/// The mark that some editors put at the beginning of a file.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Moves schedules from connectors' configs to materializations: the config's is
/// set to 0s, and the materialization gets one that commits at the same times.
/// Comments, order and quoting of everything else stay as they are.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tidegate migrate flow.yaml
  tidegate migrate flow.yaml --task acmeCo/shop --write

Without --write it prints what would change. Files that a catalog imports are changed with it.")]
pub struct Migrate {
    /// Catalog files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Change the files
    #[arg(long)]
    write: bool,
    /// Move the schedule of this task alone
    #[arg(long, value_name = "NAME")]
    task: Option<String>,
}

impl Migrate {
    pub fn execute(self) -> Result<ExitCode, CliError> {
        let draft = load(&self.files, &|path| fs::read(path));
        let unreadable = unreadable(&draft);
        if let Some(task) = &self.task
            && !draft.tasks().any(|it| it == task)
        {
            eprint!("{unreadable}");
            return Err(CliError::usage(format!(
                "there is no materialization {task} in these files"
            )));
        }
        let migration = migrate(&draft, &Answers::default(), self.task.as_deref());
        self.check(&draft, &migration)?;
        for (name, file) in &migration.files {
            match self.write {
                true => write(Path::new(name), file)?,
                false => print(diff(name, file))?,
            }
        }
        if self.write {
            for task in &migration.moved {
                print(format_args!("moved the schedule of {task}\n"))?;
            }
        }
        self.tell(&migration);
        eprint!("{unreadable}");
        let failed = !migration.refused.is_empty() || !unreadable.is_empty();
        Ok(ExitCode::from(u8::from(failed)))
    }

    /// Reads the files as they would be, so that a slip of ours never reaches them.
    fn check(&self, before: &Draft, migration: &Migration) -> Result<(), CliError> {
        let files: BTreeMap<&Path, &Rewritten> = migration
            .files
            .iter()
            .map(|(name, file)| (Path::new(name.as_str()), file))
            .collect();
        let after = load(&self.files, &|path| match files.get(path) {
            Some(file) => Ok(file.after.clone().into_bytes()),
            None => fs::read(path),
        });
        let paced_twice = errors(&after) > errors(before);
        let left = migrate(&after, &Answers::default(), self.task.as_deref());
        match paced_twice || !left.moved.is_empty() {
            true => Err(CliError::user(
                "the files would not be right afterwards, and nothing was changed; move the schedules by hand",
            )),
            false => Ok(()),
        }
    }

    fn tell(&self, migration: &Migration) {
        let count = migration.moved.len();
        let tasks = match count {
            1 => "one task".to_owned(),
            count => format!("{count} tasks"),
        };
        match (count, self.write) {
            (0, _) if migration.refused.is_empty() => eprintln!("there is no schedule to move"),
            (0, _) => {}
            (_, true) => eprintln!("the schedules of {tasks} were moved"),
            (_, false) => eprintln!("the schedules of {tasks} can be moved; --write does it"),
        }
        for (task, reason) in &migration.refused {
            eprintln!("{task} was not moved: {reason}");
        }
    }
}

fn errors(draft: &Draft) -> usize {
    let (_, diagnostics) = finish(draft, &Answers::default());
    diagnostics
        .iter()
        .filter(|it| it.severity == Severity::Error)
        .count()
}

/// Returns what keeps files from being read.
fn unreadable(draft: &Draft) -> String {
    let (_, mut diagnostics) = finish(draft, &Answers::default());
    diagnostics.retain(|it| catalogs::unreadable(it.code));
    match diagnostics.is_empty() {
        true => String::new(),
        false => diagnostic::human(&diagnostics, draft.sources(), false),
    }
}

fn diff(name: &str, file: &Rewritten) -> String {
    TextDiff::from_lines(&file.before, &file.after)
        .unified_diff()
        .header(&format!("a/{name}"), &format!("b/{name}"))
        .to_string()
}

/// Replaces a file as a whole: it is the old or the new one, whatever happens.
fn write(path: &Path, file: &Rewritten) -> Result<(), CliError> {
    let failed =
        |error: io::Error| CliError::user(format!("cannot write {}: {error}", path.display()));
    // A link stays a link.
    let target = path.canonicalize().map_err(failed)?;
    let found = fs::read(&target).map_err(failed)?;
    let (mark, text) = match found.strip_prefix(BYTE_ORDER_MARK) {
        Some(text) => (BYTE_ORDER_MARK, text),
        None => (&[][..], found.as_slice()),
    };
    if text != file.before.as_bytes() {
        return Err(CliError::user(format!(
            "{} changed meanwhile, and was left alone",
            path.display()
        )));
    }
    let mut name = target.file_name().expect("a file has a name").to_owned();
    name.push(".tidegate-new");
    let new = target.with_file_name(name);
    let written = fs::File::create(&new).and_then(|mut out| {
        out.write_all(mark)?;
        out.write_all(file.after.as_bytes())?;
        out.set_permissions(fs::metadata(&target)?.permissions())?;
        out.sync_all()
    });
    written
        .and_then(|()| fs::rename(&new, &target))
        .inspect_err(|_| drop(fs::remove_file(&new)))
        .map_err(failed)
}
