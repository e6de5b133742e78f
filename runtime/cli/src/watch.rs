//! `tidegate watch`: tasks of a host, as they get on.
//!
//! ```text
//! a stream for each task -> changes -> lines drawn anew each second (a terminal)
//!      ^ again when lost                 or printed when they change
//! ```

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::time::{Duration, SystemTime};

use clap::Args;
use futures::StreamExt;
use futures::stream::{self, LocalBoxStream, SelectAll};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tidegate_api::client::Client;
use tidegate_api::v1::task::State;
use tidegate_api::v1::watch_task_response::Response;
use tidegate_api::{Error, to_json, v1};

use crate::connection::{HostOption, block_on, refused};
use crate::error::CliError;
use crate::status;

/// How often countdowns are drawn, and how long a lost stream is left alone.
const SECOND: Duration = Duration::from_secs(1);

/// Follows tasks: what they read and store, what holds them and for how long.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tidegate watch
  tidegate watch --task acmeCo/shop --json | jq .result.task.heldBy

It ends once every task that is watched is stopped or has failed: with exit code 0, or 1 if one has
failed. A host that dies is waited for.")]
pub struct Watch {
    /// Watch only this task; may be given more than once
    #[arg(long, value_name = "NAME")]
    task: Vec<String>,
    /// Print each change, a line each
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostOption,
}

impl Watch {
    pub fn execute(self) -> Result<(), CliError> {
        block_on(self.run())
    }

    async fn run(&self) -> Result<(), CliError> {
        let names = match self.task.as_slice() {
            [] => self.list().await?,
            names => names.to_vec(),
        };
        let mut view = View::new(self.json);
        let mut changes: SelectAll<_> = names.iter().map(|name| self.follow(name)).collect();
        let mut draw = tokio::time::interval(SECOND);
        let mut failed = Vec::new();
        loop {
            tokio::select! {
                change = changes.next() => match change {
                    None => break,
                    Some(Err(error)) => return Err(refused(error)),
                    Some(Ok(task)) => {
                        match view.show(&task) {
                            // `tidegate watch | head` has seen enough.
                            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
                            shown => shown?,
                        }
                        if task.state() == State::Failed {
                            failed.push(task.name);
                        }
                    }
                },
                _ = draw.tick() => view.draw(),
            }
        }
        match failed.is_empty() {
            true => Ok(()),
            false => Err(CliError::user(format!("failed: {}", failed.join(", ")))),
        }
    }

    async fn list(&self) -> Result<Vec<String>, CliError> {
        let list =
            async |client: Client| client.tasks().list(v1::ListTasksRequest::default()).await;
        let listed = self.host.call(list).await.map_err(refused)?.into_inner();
        if listed.tasks.is_empty() {
            return Err(
                CliError::usage("the host has no task that could be watched")
                    .hint("`tidegate publish flow.yaml` publishes some"),
            );
        }
        Ok(listed.tasks.into_iter().map(|task| task.name).collect())
    }

    /// Follows a task until it is over, with another stream when one is lost.
    fn follow<'a>(&'a self, name: &str) -> LocalBoxStream<'a, Result<v1::Task, Error>> {
        let followed = Followed {
            watch: self,
            name: name.to_owned(),
            open: None,
            reached: false,
        };
        stream::unfold(Some(followed), async |followed| match followed {
            Some(followed) => followed.next().await,
            None => None,
        })
        .boxed_local()
    }

    async fn open(&self, name: &str) -> Result<tonic::Streaming<v1::WatchTaskResponse>, Error> {
        let watch = async |client: Client| {
            let request = v1::WatchTaskRequest {
                task: name.to_owned(),
            };
            client.tasks().watch(request).await
        };
        Ok(self.host.call(watch).await?.into_inner())
    }
}

/// A task that is followed.
struct Followed<'a> {
    watch: &'a Watch,
    name: String,
    open: Option<tonic::Streaming<v1::WatchTaskResponse>>,
    /// Whether the host was ever reached: one that was comes back.
    reached: bool,
}

impl<'a> Followed<'a> {
    /// Returns how the task stands next, and what to go on with: nothing after a
    /// task that is over, and after an error.
    async fn next(mut self) -> Option<(Result<v1::Task, Error>, Option<Followed<'a>>)> {
        loop {
            match self.message().await {
                Ok(Some(Response::Task(task))) => {
                    let over = matches!(task.state(), State::Stopped | State::Failed);
                    return Some((Ok(task), (!over).then_some(self)));
                }
                Ok(_) => {}
                Err(error) if error.is_retryable() && self.reached => {
                    self.open = None;
                    tokio::time::sleep(SECOND).await;
                }
                Err(error) => return Some((Err(error), None)),
            }
        }
    }

    async fn message(&mut self) -> Result<Option<Response>, Error> {
        let open = match &mut self.open {
            Some(open) => open,
            closed => {
                let opened = self.watch.open(&self.name).await?;
                self.reached = true;
                closed.insert(opened)
            }
        };
        let message = open.message().await?;
        if message.is_none() {
            self.open = None;
        }
        Ok(message.and_then(|message| message.response))
    }
}

/// Where changes are shown.
enum View {
    Json,
    /// The last line of each task, so that none is printed twice.
    Lines(BTreeMap<String, String>),
    Terminal {
        bars: MultiProgress,
        tasks: BTreeMap<String, (v1::Task, ProgressBar)>,
    },
}

impl View {
    fn new(json: bool) -> View {
        match (json, io::stdout().is_terminal()) {
            (true, _) => View::Json,
            (false, false) => View::Lines(BTreeMap::new()),
            (false, true) => View::Terminal {
                bars: MultiProgress::with_draw_target(ProgressDrawTarget::stdout()),
                tasks: BTreeMap::new(),
            },
        }
    }

    fn show(&mut self, task: &v1::Task) -> io::Result<()> {
        match self {
            View::Json => {
                let line = String::from_utf8_lossy(&to_json(task)).into_owned();
                writeln!(io::stdout(), "{{\"result\":{{\"task\":{line}}}}}")?;
            }
            View::Lines(last) => {
                let line = status::line(task, SystemTime::now());
                if last.get(&task.name) != Some(&line) {
                    writeln!(io::stdout(), "{line}")?;
                    last.insert(task.name.clone(), line);
                }
            }
            View::Terminal { bars, tasks } => {
                let new = || bars.add(ProgressBar::new(0).with_style(style()));
                let entry = tasks.entry(task.name.clone());
                let (shown, bar) = entry.or_insert_with(|| (task.clone(), new()));
                shown.clone_from(task);
                bar.set_message(status::line(task, SystemTime::now()));
                if matches!(task.state(), State::Stopped | State::Failed) {
                    bar.abandon();
                }
            }
        }
        Ok(())
    }

    /// Counts down what is held.
    fn draw(&self) {
        if let View::Terminal { tasks, .. } = self {
            for (task, bar) in tasks.values().filter(|(_, bar)| !bar.is_finished()) {
                bar.set_message(status::line(task, SystemTime::now()));
            }
        }
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{wide_msg}").expect("the template is constant")
}
