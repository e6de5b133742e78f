//! `tidegate stop`: one task of a host.

use clap::Args;
use tidegate_api::client::Client;
use tidegate_api::v1;

use crate::connection::{HostOption, block_on, refused};
use crate::error::CliError;

/// Stops a task: it commits what is open, and does not start again until it is
/// told to, whatever is published and however often the host is restarted.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tidegate stop --task acmeCo/shop")]
pub struct Stop {
    /// Name of the task
    #[arg(long, value_name = "NAME")]
    task: String,
    #[command(flatten)]
    host: HostOption,
}

impl Stop {
    pub fn execute(self) -> Result<(), CliError> {
        let stop = async |client: Client| {
            let request = v1::StopTaskRequest {
                task: self.task.clone(),
            };
            client.tasks().stop(request).await
        };
        block_on(async { self.host.call(stop).await.map_err(refused) })?;
        Ok(())
    }
}
