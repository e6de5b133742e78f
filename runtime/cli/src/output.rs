//! Standard output: results, and nothing else.

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};

use clap::ValueEnum;
use serde_json::Value;

use crate::error::CliError;

/// How a result is printed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Human,
    /// For programs
    Json,
}

/// Prints a result as it is.
pub fn print(text: impl Display) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        // `tidegate explain | head` has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Prints a result for programs.
pub fn print_json(value: &Value) -> Result<(), CliError> {
    print(format_args!("{value:#}\n"))
}

/// Returns whether results are shown in colours: on a terminal, unless its
/// owner does not want them (`NO_COLOR`).
pub fn colour() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty())
}
