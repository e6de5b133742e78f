//! `tidegate connector`: what is for those who write connectors.

mod inspect;
mod new;
mod test;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::error::CliError;

/// Works with connectors.
#[derive(Args)]
pub struct Connector {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Prints a component's spec, imports, wanted grants and sizes
    Inspect(inspect::Inspect),
    /// Begins a connector: a crate that builds and passes its tests at once
    New(new::New),
    /// Holds a component to the protocol and to the guarantee that it declares
    Test(test::Test),
}

impl Connector {
    pub fn execute(self) -> Result<ExitCode, CliError> {
        let done = |()| ExitCode::SUCCESS;
        match self.command {
            Command::Inspect(inspect) => inspect.execute().map(done),
            Command::New(new) => new.execute().map(done),
            Command::Test(test) => test.execute(),
        }
    }
}
