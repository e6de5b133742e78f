//! `tidegate sync-now`: commits what is open, and returns when it can be queried.

use std::io::{self, IsTerminal};
use std::ops::ControlFlow;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use indicatif::HumanCount;
use tidegate_api::client::{Heard, SyncNowCall};
use tidegate_api::v1::sync_now_request::Through as To;
use tidegate_api::v1::sync_now_response::{Outcome, Response};
use tidegate_api::{Code, Error, to_json, v1};

use crate::connection::{HostOption, block_on, refused};
use crate::error::CliError;
use crate::output::print;
use crate::status;

/// Commits what a task has open, and returns when it can be queried.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tidegate sync-now --task acmeCo/foo/materialize-bar && ./analytics.py
  tidegate append acmeCo/orders orders.ndjson && tidegate sync-now --task acmeCo/shop --through head
  tidegate sync-now --task acmeCo/shop --timeout 10m --progress

It prints nothing and exits 0 once the commit is done, whatever held it, also if there was nothing
to do. It waits as long as that takes, over restarts of the task and of the host.
Exit code 1 means that --timeout has passed or no host answers, 2 that there is no such task or it
does not run.")]
pub struct SyncNow {
    /// Name of the task
    #[arg(long, value_name = "NAME")]
    task: String,
    /// What has to be committed
    #[arg(long, value_enum, default_value = "read")]
    through: Through,
    /// Give up after this long, such as 90s or 10m; the commit goes on all the same
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    timeout: Option<Duration>,
    /// Say on standard error how it gets on
    #[arg(long)]
    progress: bool,
    /// Print each message of the host, a line each
    #[arg(long)]
    json: bool,
    /// Return once the task was told, before it has committed
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    host: HostOption,
}

#[derive(Clone, Copy, ValueEnum)]
enum Through {
    /// What the task has read
    Read,
    /// Everything appended before the call
    Head,
}

/// Calls of the API as they are.
#[derive(Args)]
pub struct Raw {
    #[command(subcommand)]
    command: RawCommand,
}

#[derive(Subcommand)]
enum RawCommand {
    /// Commits what a task has open
    SyncNow(SyncNow),
}

impl Raw {
    pub fn execute(self) -> Result<(), CliError> {
        let RawCommand::SyncNow(sync_now) = self.command;
        sync_now.execute()
    }
}

impl SyncNow {
    pub fn execute(self) -> Result<(), CliError> {
        // A directory that no host ever served on is no host that is restarting.
        self.host.target().map_err(refused)?;
        let through = match self.through {
            Through::Read => To::Unspecified,
            Through::Head => To::Head,
        };
        let call = SyncNowCall {
            request: v1::SyncNowRequest {
                task: self.task.clone(),
                through: through.into(),
            },
            timeout: self.timeout,
        };
        let mut said = Said {
            progress: self.progress,
            // Whoever looks at a terminal is told why nothing happens.
            waiting: !self.progress && io::stderr().is_terminal(),
        };
        let mut failed = None;
        let result = block_on(async {
            let hear = |heard: Heard<'_>| self.hear(&heard, &mut said, &mut failed);
            let called = call.run(|| self.host.target(), hear).await;
            called.map_err(|error| self.refused(error))
        });
        failed.map_or(result, Err)
    }

    fn refused(&self, error: Error) -> CliError {
        match (self.timeout, error.code) {
            (Some(_), Code::Unavailable) => CliError::user(error).hint(format!(
                "`tidegate watch --task {}` shows how it gets on",
                self.task
            )),
            _ => refused(error),
        }
    }

    fn hear(
        &self,
        heard: &Heard<'_>,
        said: &mut Said,
        failed: &mut Option<CliError>,
    ) -> ControlFlow<()> {
        let message = match heard {
            Heard::Again(error) => {
                said.again(error);
                return ControlFlow::Continue(());
            }
            Heard::Message(message) => message,
        };
        let response = message.response.as_ref();
        if let Some(response) = response {
            said.response(&self.task, response);
        }
        if self.json {
            let line = String::from_utf8_lossy(&to_json(*message)).into_owned();
            if let Err(error) = print(format_args!("{{\"result\":{line}}}\n")) {
                *failed = Some(error);
                return ControlFlow::Break(());
            }
        }
        match response {
            Some(Response::Ack(_)) if self.no_wait => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// What is said on standard error.
struct Said {
    progress: bool,
    waiting: bool,
}

impl Said {
    fn again(&mut self, error: &Error) {
        if self.progress || self.waiting {
            eprintln!("calling again: {error}");
        }
        // Once is enough for who did not ask.
        self.waiting = false;
    }

    fn response(&self, task: &str, response: &Response) {
        if !self.progress {
            return;
        }
        match response {
            Response::Ack(ack) => {
                let met = match ack.outcome() {
                    Outcome::HeldCollapsed => "the hold is over, and it commits",
                    Outcome::CloseRequested => "it commits",
                    Outcome::AlreadyClosing => "its commit is on the way",
                    Outcome::Idle => "there is nothing to commit",
                    Outcome::NotApplicable => "it is no materialization, so nothing is committed",
                    Outcome::Unspecified => "the call has arrived",
                };
                eprintln!("{task}: {met}");
            }
            Response::Heartbeat(heartbeat) => {
                let status = heartbeat.status.as_ref().map(status::describe);
                eprintln!("{task}: {}", status.unwrap_or_default());
            }
            Response::Done(done) => eprintln!(
                "{task}: committed {} documents, open for {}",
                HumanCount(done.committed_docs_total),
                humantime::format_duration(Duration::from_millis(done.duration_millis))
            ),
        }
    }
}
