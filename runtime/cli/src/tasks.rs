//! `tidegate tasks`: what has run on a data directory, and how far it is; or what
//! runs in a host now.

use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat};
use clap::Args;
use serde_json::{Value, json};
use tidegate_api::client::Client;
use tidegate_api::{to_json, v1};
use tidegate_host::{Host, TaskSummary};

use crate::connection::{HostOption, Place, block_on, refused};
use crate::error::CliError;
use crate::output::{Format, print, print_json};
use crate::status;

/// Lists tasks: those of the host that runs, with what holds them; or, if none
/// does, those that have run, how they ended, and how far they are.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tidegate tasks
  tidegate tasks --format json | jq -r '.tasks[].name'")]
pub struct Tasks {
    /// How to print them
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
    #[command(flatten)]
    host: HostOption,
}

impl Tasks {
    pub fn execute(self) -> Result<(), CliError> {
        match self.host.place(false)? {
            Place::Host => self.of_host(),
            Place::Directory(dir) => {
                let tasks = Host::open(dir)?.tasks()?;
                match self.format {
                    Format::Human => print(tasks.iter().map(describe).collect::<String>()),
                    Format::Json => {
                        let tasks: Vec<Value> = tasks.iter().map(summary).collect();
                        print_json(&json!({ "tasks": tasks }))
                    }
                }
            }
        }
    }

    fn of_host(&self) -> Result<(), CliError> {
        let list =
            async |client: Client| client.tasks().list(v1::ListTasksRequest::default()).await;
        let listed = block_on(async { self.host.call(list).await.map_err(refused) })?.into_inner();
        match self.format {
            Format::Json => print_json(&serde_json::from_slice(&to_json(&listed))?),
            Format::Human => {
                let now = SystemTime::now();
                let line = |task: &v1::Task| status::line(task, now) + "\n";
                print(listed.tasks.iter().map(line).collect::<String>())
            }
        }
    }
}

fn describe(task: &TaskSummary) -> String {
    let behind = task.end.saturating_sub(task.committed);
    let mut text = format!(
        "{}\n  committed {} of {} documents, {behind} to go\n",
        task.name, task.committed, task.end
    );
    if task.unfinished {
        text += "  a transaction is unfinished; the next run finishes it first\n";
    }
    if let Some(left_out) = status::left_out(task.left_out.skipped, task.left_out.dead_letters) {
        text += &format!("  {left_out}\n");
    }
    text += &match &task.outcome {
        Some(outcome) => {
            let at = instant(outcome.at_micros);
            match outcome.failed {
                true => format!("  failed at {at}: {}\n", outcome.message),
                false => format!("  stopped at {at}\n"),
            }
        }
        None => "  did not end in order\n".to_owned(),
    };
    text
}

/// Numbers are strings, as those of a host are.
fn summary(task: &TaskSummary) -> Value {
    let ended = task.outcome.as_ref().map(|outcome| {
        json!({
            "at": instant(outcome.at_micros),
            "failed": outcome.failed,
            "message": outcome.message,
        })
    });
    json!({
        "name": task.name,
        "committedDocs": task.committed.to_string(),
        "endDocs": task.end.to_string(),
        "unfinished": task.unfinished,
        "skippedDocs": task.left_out.skipped.to_string(),
        "deadLetters": task.left_out.dead_letters.to_string(),
        "ended": ended,
    })
}

fn instant(micros: i64) -> String {
    DateTime::from_timestamp_micros(micros)
        .map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true))
        .unwrap_or_default()
}
