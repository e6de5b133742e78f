//! `tidegate start`: one task of a host.

use clap::Args;
use tidegate_api::client::Client;
use tidegate_api::v1;

use crate::connection::{HostOption, block_on, refused};
use crate::error::CliError;

/// Starts a task that was stopped or has failed. One that runs goes on running.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tidegate start --task acmeCo/shop")]
pub struct Start {
    /// Name of the task
    #[arg(long, value_name = "NAME")]
    task: String,
    #[command(flatten)]
    host: HostOption,
}

impl Start {
    pub fn execute(self) -> Result<(), CliError> {
        let start = async |client: Client| {
            let request = v1::StartTaskRequest {
                task: self.task.clone(),
            };
            client.tasks().start(request).await
        };
        block_on(async { self.host.call(start).await.map_err(refused) })?;
        Ok(())
    }
}
