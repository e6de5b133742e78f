//! What a command ends with when it fails.

use std::fmt::{self, Display};
use std::process::ExitCode;

/// An error that somebody can mend, with what to do about it: a catalog, an
/// input, a destination, a full disk. Exit code 1.
///
/// What the command line itself gets wrong, clap reports, with exit code 2, as do
/// we for a name that there is not; a defect of tidegate panics, with exit code 101.
#[derive(Debug)]
pub struct CliError {
    error: anyhow::Error,
    hint: Option<String>,
    code: u8,
}

/// The exit code of what is to be mended.
const USER: u8 = 1;

/// The exit code of a command line that asks for what there is not, as clap has it.
const USAGE: u8 = 2;

impl CliError {
    /// Returns an error.
    pub fn user(message: impl Display) -> CliError {
        CliError {
            error: anyhow::anyhow!("{message}"),
            hint: None,
            code: USER,
        }
    }

    /// Returns an error of the command line.
    pub fn usage(message: impl Display) -> CliError {
        CliError {
            code: USAGE,
            ..CliError::user(message)
        }
    }

    /// Returns what the process exits with.
    pub fn code(&self) -> ExitCode {
        self.code.into()
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Display) -> CliError {
        self.hint = Some(hint.to_string());
        self
    }
}

impl Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.error.to_string();
        for cause in self.error.chain().skip(1).map(ToString::to_string) {
            // Some errors already say their cause.
            if !text.contains(&cause) {
                text = format!("{text}: {cause}");
            }
        }
        write!(f, "error: {text}")?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl<E: Into<anyhow::Error>> From<E> for CliError {
    fn from(error: E) -> CliError {
        CliError {
            error: error.into(),
            hint: None,
            code: USER,
        }
    }
}
