//! `tidegate completions`: for shells.

use std::io;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::Cli;
use crate::error::CliError;

/// Prints what completes commands and options in a shell.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tidegate completions bash >/etc/bash_completion.d/tidegate
  tidegate completions zsh >~/.zfunc/_tidegate
  tidegate completions fish >~/.config/fish/completions/tidegate.fish")]
pub struct Completions {
    /// Which shell
    shell: Shell,
}

impl Completions {
    pub fn execute(self) -> Result<(), CliError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "tidegate", &mut script);
        match io::Write::write_all(&mut io::stdout().lock(), &script) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => Ok(written?),
        }
    }
}
