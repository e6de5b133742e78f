//! What ended a session: which task, which call, and what to do.

use std::fmt;
use std::time::Duration;

use wasmtime::Trap;
use wasmtime_wasi::I32Exit;

use super::bindings::{ErrorKind, GuestError};
use super::grant::GrantError;
use super::limits::{Limits, MemoryExceeded};
use super::watchdog::{ComputeExceeded, ImportExceeded, Interruption};

/// What was asked of a connector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// Making the instance.
    Start,
    /// `spec`
    Spec,
    /// `validate`
    Validate,
    /// `apply`
    Apply,
    /// `open`
    Open,
    /// `load`
    Load,
    /// `flush`
    Flush,
    /// `store`
    Store,
    /// `start-commit`
    StartCommit,
    /// `acknowledge`
    Acknowledge,
}

impl Call {
    /// Returns the name that the connector's author knows it by.
    pub fn name(self) -> &'static str {
        match self {
            Call::Start => "start",
            Call::Spec => "spec",
            Call::Validate => "validate",
            Call::Apply => "apply",
            Call::Open => "open",
            Call::Load => "load",
            Call::Flush => "flush",
            Call::Store => "store",
            Call::StartCommit => "start-commit",
            Call::Acknowledge => "acknowledge",
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A session that is finished, and why.
///
/// Its store is dropped before the fault is returned: what the connector did
/// until then is done, and nothing more will land.
#[derive(Clone, Debug, thiserror::Error)]
#[error("task {task}: {}: {kind}", At { call: *call, binding: *binding })]
pub struct Fault {
    /// Name of the task.
    pub task: String,
    /// What was asked.
    pub call: Call,
    /// Index of the binding in the spec, if the call was about one.
    pub binding: Option<u32>,
    /// What happened.
    pub kind: FaultKind,
}

/// What happened, by what its host would do about it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FaultKind {
    /// The connector said so. What to do follows from [`GuestError::kind`].
    #[error("{}", Said(.0))]
    Error(Box<GuestError>),

    /// The connector has a bug.
    #[error(
        "the connector crashed ({reason}){}; this is a bug in the connector: report it to its author",
        Words(output)
    )]
    Trap {
        /// How it crashed.
        reason: String,
        /// What it wrote to its standard error in that call.
        output: String,
    },

    /// The connector computed for too long without calling the host.
    #[error(
        "the connector computed for {0:?} without calling the host; if that is honest work, raise the limit `compute`"
    )]
    ComputeTimeout(Duration),

    /// The connector waited too long for something outside.
    #[error(
        "the connector waited {limit:?} for {import}; see whether the destination answers, or raise the limit `import`"
    )]
    ImportTimeout {
        /// What it waited for.
        import: &'static str,
        /// How long it might.
        limit: Duration,
    },

    /// The call as a whole took too long.
    #[error("the call took longer than {0:?}; raise the limit `call`, or switch it off")]
    CallTimeout(Duration),

    /// The connector wants more memory than it may have.
    #[error(
        "the connector asked for {asked} bytes of memory, and its limit is {limit}; raise the limit `memory`, or look for a leak"
    )]
    Memory {
        /// How much it may have, in bytes.
        limit: usize,
        /// How much it would have had, in bytes.
        asked: usize,
    },

    /// The connector's answer cannot be understood.
    #[error(
        "the connector broke the protocol: {reason}; use a version of the connector that fits this host"
    )]
    Protocol {
        /// What is wrong with the answer.
        reason: String,
    },

    /// A grant cannot be given.
    #[error(transparent)]
    Grant(std::sync::Arc<GrantError>),

    /// The session was told to stop.
    #[error("the session was stopped")]
    Stopped,

    /// The session had ended before the call: an earlier call failed, or was
    /// given up by its caller.
    #[error("the session has ended; start a new one")]
    Finished,
}

impl FaultKind {
    /// Sorts what came out of the engine instead of an answer.
    pub(super) fn of_engine(error: &wasmtime::Error, output: String) -> FaultKind {
        if let Some(ComputeExceeded(limit)) = error.downcast_ref() {
            return FaultKind::ComputeTimeout(*limit);
        }
        if let Some(&MemoryExceeded { limit, asked }) = error.downcast_ref() {
            return FaultKind::Memory { limit, asked };
        }
        if let Some(&ImportExceeded { import, limit }) = error.downcast_ref() {
            return FaultKind::ImportTimeout { import, limit };
        }
        let reason = match (error.downcast_ref(), error.downcast_ref()) {
            (Some(trap), _) => trap_reason(*trap),
            (_, Some(I32Exit(code))) => format!("it called exit with code {code}"),
            _ => format!("{error:#}"),
        };
        FaultKind::Trap { reason, output }
    }

    /// Says what ended a call from outside.
    pub(super) fn of_interruption(interruption: Interruption, limits: &Limits) -> FaultKind {
        match interruption {
            Interruption::Import(import) => FaultKind::ImportTimeout {
                import,
                limit: limits.import,
            },
            Interruption::Call(limit) => FaultKind::CallTimeout(limit),
            Interruption::Stopped => FaultKind::Stopped,
        }
    }
}

fn trap_reason(trap: Trap) -> String {
    match trap {
        Trap::UnreachableCodeReached => "it panicked or aborted".into(),
        Trap::StackOverflow => "its stack is exhausted: recursion without end?".into(),
        // The stack of a guest lies below its data: a stack that grows too
        // deep leaves the memory at the lower end.
        Trap::MemoryOutOfBounds => {
            "it left its memory: a wild pointer, or recursion too deep for its stack".into()
        }
        other => other.to_string(),
    }
}

struct At {
    call: Call,
    binding: Option<u32>,
}

impl fmt::Display for At {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.binding {
            Some(binding) => write!(formatter, "{} of binding {binding}", self.call),
            None => write!(formatter, "{}", self.call),
        }
    }
}

/// A guest's error, with all that it says about the place.
struct Said<'a>(&'a GuestError);

impl fmt::Display for Said<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = self.0;
        let kind = match error.kind {
            ErrorKind::Config => "the configuration is wrong",
            ErrorKind::Auth => "the destination refused the credentials",
            ErrorKind::Schema => "the destination's tables do not fit",
            ErrorKind::Document => "a document cannot be stored",
            ErrorKind::Transient => "it may work later",
            ErrorKind::Internal => "the connector failed",
        };
        write!(formatter, "{kind}: {}", error.message)?;
        if let Some(binding) = error.binding {
            write!(formatter, "; binding {binding}")?;
        }
        if let Some(key) = &error.key {
            write!(formatter, "; key {key}")?;
        }
        if let Some(field) = &error.field {
            write!(formatter, "; field {field}")?;
        }
        Ok(())
    }
}

/// The last words of a guest, if it had any.
struct Words<'a>(&'a str);

impl fmt::Display for Words<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => Ok(()),
            words => write!(formatter, ": {words}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(binding: Option<u32>, kind: FaultKind) -> String {
        let fault = Fault {
            task: "acme/orders".into(),
            call: Call::Store,
            binding,
            kind,
        };
        fault.to_string()
    }

    #[test]
    fn a_fault_says_where_what_and_what_to_do() {
        let error = GuestError {
            kind: ErrorKind::Document,
            message: "the value is too long".into(),
            binding: Some(1),
            key: Some("[7]".into()),
            field: Some("note".into()),
        };
        assert_eq!(
            fault(Some(1), FaultKind::Error(error.into())),
            "task acme/orders: store of binding 1: a document cannot be stored: \
             the value is too long; binding 1; key [7]; field note"
        );
        let exceeded = MemoryExceeded {
            limit: 9,
            asked: 10,
        };
        let kind = FaultKind::of_engine(&exceeded.into(), String::new());
        assert_eq!(
            fault(None, kind),
            "task acme/orders: store: the connector asked for 10 bytes of memory, and its \
             limit is 9; raise the limit `memory`, or look for a leak"
        );
        let error = wasmtime::Error::from(Trap::UnreachableCodeReached).context("wasm backtrace");
        let kind = FaultKind::of_engine(&error, "panicked at src/lib.rs:9: boom".into());
        assert_eq!(
            fault(Some(0), kind),
            "task acme/orders: store of binding 0: the connector crashed (it panicked or \
             aborted): panicked at src/lib.rs:9: boom; this is a bug in the connector: \
             report it to its author"
        );
    }

    #[test]
    fn what_the_engine_returns_is_sorted() {
        let compute = ComputeExceeded(Duration::from_secs(2));
        let kind = FaultKind::of_engine(&compute.into(), String::new());
        assert!(matches!(kind, FaultKind::ComputeTimeout(_)), "{kind}");
        let kind = FaultKind::of_engine(&I32Exit(3).into(), String::new());
        assert!(kind.to_string().contains("exit with code 3"), "{kind}");
        let kind = FaultKind::of_engine(&Trap::MemoryOutOfBounds.into(), String::new());
        assert!(kind.to_string().contains("recursion too deep"), "{kind}");
    }
}
