//! `tidegate schedule`: when schedules commit.

use std::fs;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use chrono::{DateTime, SecondsFormat, Utc};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tidegate_validator::schedule::{CompiledSchedule, Entry, seed_of};
use tidegate_validator::{
    Answers, Code, Draft, TaskSchedule, diagnostic, finish, load, load_schedule,
};

use crate::catalogs;
use crate::error::CliError;
use crate::output::{Format, print, print_json};

/// Instants that are printed unless more are asked for: a screen has room for them.
const COUNT_DEFAULT: usize = 10;

/// The years that schedules are evaluated in.
const YEARS: std::ops::RangeInclusive<i32> = 1970..=2099;

/// Works with sync schedules.
#[derive(Args)]
pub struct Schedule {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Prints the next instants at which a schedule commits
    Explain(Explain),
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  tidegate schedule explain flow.yaml --task acmeCo/shop
  echo '{cron: \"0 2 * * *\", timezone: Europe/Paris}' | tidegate schedule explain --schedule -
  tidegate schedule explain --schedule s.yaml --after 2026-03-29T00:00:00Z --count 3 --format json

A grid of intervals is moved by less than a day, so that not all tasks commit at once. The move
follows from a seed: of the connector's jitter key if it has one, else of the task's name. A
schedule by itself is shown with seed 0, which moves nothing.")]
struct Explain {
    /// Catalog that has the task
    #[arg(required_unless_present = "schedule", conflicts_with = "schedule")]
    catalog: Option<PathBuf>,
    /// The materialization; not needed where there is only one
    #[arg(long, value_name = "NAME", conflicts_with = "schedule")]
    task: Option<String>,
    /// File with a schedule alone, as YAML or JSON; - is standard input
    #[arg(long, value_name = "FILE|-")]
    schedule: Option<PathBuf>,
    /// Show what follows this instant, instead of now
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    after: Option<DateTime<Utc>>,
    /// How many instants to show, at most 1000
    #[arg(long, value_name = "N", default_value_t = COUNT_DEFAULT, value_parser = count)]
    count: usize,
    /// Seed of the jitter
    #[arg(long, value_name = "N", conflicts_with = "jitter_key")]
    seed: Option<u64>,
    /// Text that the seed is made of
    #[arg(long, value_name = "S")]
    jitter_key: Option<String>,
    /// How to print the instants
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
}

fn instant(text: &str) -> Result<DateTime<Utc>, String> {
    use chrono::Datelike;
    let instant = DateTime::parse_from_rfc3339(text)
        .map_err(|error| format!("{error}; an instant looks like 2026-05-04T00:15:00Z"))?
        .to_utc();
    match YEARS.contains(&instant.year()) {
        true => Ok(instant),
        false => Err(format!(
            "schedules are evaluated from {} to {}",
            YEARS.start(),
            YEARS.end()
        )),
    }
}

fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=1_000) => Ok(count),
        _ => Err("a number from 1 to 1000".to_owned()),
    }
}

impl Schedule {
    pub fn execute(self) -> Result<ExitCode, CliError> {
        let Command::Explain(explain) = self.command;
        explain.execute()
    }
}

/// What is explained.
struct Explained {
    /// Nothing where the task has no schedule.
    schedule: Option<CompiledSchedule>,
    /// What the seed is made of, unless the command line says it.
    task: Option<String>,
}

impl Explain {
    fn execute(self) -> Result<ExitCode, CliError> {
        let explained = match &self.schedule {
            Some(file) => self.of_file(file)?,
            None => self.of_task()?,
        };
        let Some(Explained { schedule, task }) = explained else {
            return Ok(ExitCode::FAILURE);
        };
        let after = self.after.unwrap_or_else(Utc::now);
        let seed = match (self.seed, &self.jitter_key, &task) {
            (Some(seed), _, _) => seed,
            (None, Some(key), _) => seed_of(key),
            (None, None, Some(task)) => seed_of(task),
            (None, None, None) => 0,
        };
        let answer = Answer::new(schedule.as_ref(), after, seed, self.count);
        match self.format {
            Format::Json => print_json(&answer.json())?,
            Format::Human => {
                print(answer.human())?;
                if let (Some(task), None, None) = (&task, self.seed, &self.jitter_key)
                    && !answer.fires.is_empty()
                    && io::stderr().is_terminal()
                {
                    eprintln!(
                        "the jitter is that of the name {task}; a connector may have a jitter key: --jitter-key"
                    );
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn of_file(&self, file: &Path) -> Result<Option<Explained>, CliError> {
        let read = |path: &Path| match path.as_os_str() == "-" {
            true => {
                let mut bytes = Vec::new();
                io::stdin().read_to_end(&mut bytes).map(|_| bytes)
            }
            false => fs::read(path),
        };
        let loaded = load_schedule(file, &read);
        if loaded.schedule.is_none() {
            let colour = io::stderr().is_terminal();
            eprint!(
                "{}",
                diagnostic::human(&loaded.diagnostics, &loaded.sources, colour)
            );
            return Ok(None);
        }
        Ok(Some(Explained {
            schedule: loaded.schedule,
            task: None,
        }))
    }

    /// Returns nothing once it has said what is wrong with the catalog.
    fn of_task(&self) -> Result<Option<Explained>, CliError> {
        let catalog = self
            .catalog
            .clone()
            .expect("clap requires a catalog or a schedule");
        let draft = load(&[catalog], &|path| fs::read(path));
        let names: Vec<&str> = draft.tasks().collect();
        let name = match (&self.task, names.as_slice()) {
            (Some(name), _) => name.as_str(),
            (None, [name]) => name,
            (None, []) => "",
            (None, names) => {
                let error =
                    CliError::usage("--task is needed: the catalog has several materializations");
                return Err(error.hint(format!("it has {}", names.join(", "))));
            }
        };
        let schedule = match draft.schedule(name) {
            Some(TaskSchedule::Compiled(schedule)) => Some(schedule.clone()),
            Some(TaskSchedule::Absent) => None,
            Some(TaskSchedule::Broken) => {
                complain(&draft, |code| code == Code::ScheduleInvalid);
                return Ok(None);
            }
            None => {
                complain(&draft, catalogs::unreadable);
                let error = CliError::usage(match &self.task {
                    Some(name) => format!("the catalog has no materialization {name}"),
                    None => "the catalog has no materializations".to_owned(),
                });
                return Err(match names.is_empty() {
                    true => error,
                    false => error.hint(format!("it has {}", names.join(", "))),
                });
            }
        };
        Ok(Some(Explained {
            schedule,
            task: Some(name.to_owned()),
        }))
    }
}

/// Says what is wrong with a catalog, as far as it matters here.
fn complain(draft: &Draft, matters: impl Fn(Code) -> bool) {
    let (_, mut diagnostics) = finish(draft, &Answers::default());
    diagnostics.retain(|it| matters(it.code));
    if !diagnostics.is_empty() {
        let colour = io::stderr().is_terminal();
        eprint!(
            "{}",
            diagnostic::human(&diagnostics, draft.sources(), colour)
        );
    }
}

/// The next instants, or why there are none.
struct Answer {
    fires: Vec<Entry>,
    /// Why there are no fires, or no more.
    reason: Option<String>,
}

impl Answer {
    fn new(
        schedule: Option<&CompiledSchedule>,
        after: DateTime<Utc>,
        seed: u64,
        count: usize,
    ) -> Answer {
        let Some(schedule) = schedule else {
            return Answer {
                fires: Vec::new(),
                reason: Some("the materialization has no syncSchedule: nothing is held, and what is read commits as soon as it can".to_owned()),
            };
        };
        // One more: the first may be a time without holds, which is no fire.
        let mut fires = schedule.explain(after, seed, count + 1);
        let unheld_at_first = fires.first().is_some_and(|it| it.unheld && it.at <= after);
        if unheld_at_first {
            fires.remove(0);
        }
        let more = fires.len() > count;
        fires.truncate(count);
        let reason = if fires.is_empty() && unheld_at_first {
            Some(
                "the interval is zero: nothing is held, and what is read commits as soon as it can"
                    .to_owned(),
            )
        } else if fires.is_empty() && schedule.is_exhausted(after) {
            Some(format!(
                "the cron expression never fires after {}: nothing is held any more",
                utc(after)
            ))
        } else if unheld_at_first {
            Some("at first nothing is held, as the interval in force is zero".to_owned())
        } else if !more && fires.len() < count && !fires.last().is_some_and(|it| it.unheld) {
            Some(format!(
                "there are no more until the end of {}",
                YEARS.end()
            ))
        } else {
            None
        };
        Answer { fires, reason }
    }

    fn json(&self) -> Value {
        let fires: Vec<_> = self.fires.iter().map(fire).collect();
        let mut answer = json!({ "fires": fires });
        if let Some(reason) = &self.reason {
            answer["reason"] = reason.as_str().into();
        }
        answer
    }

    fn human(&self) -> String {
        let mut text = String::new();
        if let Some(reason) = self.reason.as_ref().filter(|_| self.fires.is_empty()) {
            return format!("{reason}\n");
        }
        let width = self
            .fires
            .iter()
            .map(|it| utc(it.at).len())
            .max()
            .unwrap_or(0);
        for fire in &self.fires {
            for note in &fire.notes {
                text.push_str(&format!("  note: {note}\n"));
            }
            let held = if fire.unheld {
                ", and nothing is held from then on"
            } else {
                ""
            };
            text.push_str(&format!(
                "{:width$}  {}  {}{held}\n",
                utc(fire.at),
                fire.local,
                fire.regime
            ));
        }
        if let Some(reason) = &self.reason {
            text.push_str(&format!("{reason}\n"));
        }
        text
    }
}

fn utc(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

fn fire(entry: &Entry) -> Value {
    // Programs need no day of the week.
    let local = entry
        .local
        .split_once(' ')
        .map_or(entry.local.as_str(), |(_, local)| local);
    let mut fire = json!({
        "at": utc(entry.at),
        "local": local,
        "regime": entry.regime.to_string(),
    });
    if entry.unheld {
        fire["unheld"] = true.into();
    }
    if !entry.notes.is_empty() {
        fire["notes"] = json!(entry.notes);
    }
    fire
}
