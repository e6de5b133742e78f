//! `tidegate tasks`: what has run on a data directory, and how far it is.

use chrono::{DateTime, SecondsFormat};
use clap::Args;
use tidegate_host::Host;

use crate::error::CliError;
use crate::options::DataDirOption;

/// Lists the tasks that have run, how they ended, and how far they are.
#[derive(Args)]
pub struct Tasks {
    #[command(flatten)]
    data_dir: DataDirOption,
}

impl Tasks {
    pub fn execute(self) -> Result<(), CliError> {
        let host = Host::open(self.data_dir.open()?)?;
        for task in host.tasks()? {
            let behind = task.end.saturating_sub(task.committed);
            println!("{}", task.name);
            println!(
                "  committed {} of {} documents, {behind} to go",
                task.committed, task.end
            );
            if task.unfinished {
                println!("  a transaction is unfinished; the next run finishes it first");
            }
            match task.outcome {
                Some(outcome) => {
                    let at = DateTime::from_timestamp_micros(outcome.at_micros)
                        .map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true))
                        .unwrap_or_default();
                    match outcome.failed {
                        true => println!("  failed at {at}: {}", outcome.message),
                        false => println!("  stopped at {at}"),
                    }
                }
                None => println!("  did not end in order"),
            }
        }
        Ok(())
    }
}
