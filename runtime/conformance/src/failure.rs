//! Why a check did not pass.

use tidegate_host::sandbox::{Fault, FaultKind, GrantError};

/// Why the suite cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// The connector does not say what it is.
    #[error(transparent)]
    Spec(#[from] Fault),
    /// What the connector wants to reach cannot be granted.
    #[error(transparent)]
    Grants(#[from] GrantError),
    /// Something of the setup is not as the connector's schema wants it.
    #[error("the setup's {part} does not fit the connector's schema: {problem}")]
    Setup {
        /// `config` or a resource.
        part: &'static str,
        /// What the schema says.
        problem: String,
    },
}

/// Why a check ended before it passed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A call failed that should not have.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The connector did something else than it should have.
    #[error("{0}")]
    Wrong(String),
    /// The check makes no sense for this connector, or this setup.
    #[error("{0}")]
    NotApplicable(String),
    /// The check itself killed the session.
    #[error("the session was killed")]
    Killed,
}

impl Failure {
    pub(crate) fn wrong(message: impl Into<String>) -> Failure {
        Failure::Wrong(message.into())
    }

    pub(crate) fn not_applicable(reason: impl Into<String>) -> Failure {
        Failure::NotApplicable(reason.into())
    }

    /// Says what was being done, unless the check simply does not apply.
    pub(crate) fn during(self, doing: &str) -> Failure {
        match self {
            Failure::Fault(_) | Failure::Wrong(_) => Failure::Wrong(format!("{doing}: {self}")),
            other => other,
        }
    }
}

/// Takes a call that had to be refused: an error is a value, and only that.
///
/// # Errors
///
/// If it was not refused, or the connector crashed over it.
pub(crate) fn refused<T>(call: &str, answer: Result<T, Fault>) -> Result<Fault, Failure> {
    match answer {
        Ok(_) => Err(Failure::wrong(format!(
            "{call} was accepted, and an error was due"
        ))),
        Err(fault) if matches!(fault.kind, FaultKind::Error(_)) => Ok(fault),
        Err(fault) => Err(Failure::wrong(format!(
            "{call} had to be refused with an error: {fault}"
        ))),
    }
}
