//! What a command can end with, and the exit code of each.

use std::fmt::{self, Display};
use std::process::ExitCode;

/// Whose move it is after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Something went wrong that somebody can mend: a catalog, an input, a
    /// destination, a full disk. Exit code 1.
    User,
    /// The command line asks for something that does not exist. Exit code 2.
    Usage,
    /// A defect of tidegate. Exit code 70, as in BSD's sysexits.
    Internal,
}

/// An error with what to do about it.
#[derive(Debug)]
pub struct CliError {
    kind: Kind,
    error: anyhow::Error,
    hint: Option<String>,
}

impl CliError {
    /// Returns an error of a command line.
    pub fn usage(message: impl Display) -> CliError {
        CliError { kind: Kind::Usage, error: anyhow::anyhow!("{message}"), hint: None }
    }

    /// Returns an error that somebody can mend.
    pub fn user(message: impl Display) -> CliError {
        CliError { kind: Kind::User, error: anyhow::anyhow!("{message}"), hint: None }
    }

    /// Returns a defect.
    pub fn internal(message: impl Display) -> CliError {
        CliError { kind: Kind::Internal, error: anyhow::anyhow!("{message}"), hint: None }
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Display) -> CliError {
        self.hint = Some(hint.to_string());
        self
    }

    /// Returns the process's exit code.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self.kind {
            Kind::User => 1,
            Kind::Usage => 2,
            Kind::Internal => 70,
        })
    }
}

impl Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.error)?;
        for cause in self.error.chain().skip(1) {
            write!(f, ": {cause}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl<E: Into<anyhow::Error>> From<E> for CliError {
    fn from(error: E) -> CliError {
        CliError { kind: Kind::User, error: error.into(), hint: None }
    }
}
