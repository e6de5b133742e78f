//! The order of calls that the protocol allows.
//!
//! ```text
//! Closed -open-> Opened -load-> .. -flush-> Flushing -store-> Storing -start-commit-> Committing
//!                  |                                                                     |  load
//!                  +-acknowledge (recovery)-> Loading <-------acknowledge----------------+
//! ```
//!
//! A transaction that loaded nothing may go without a flush, and one that has
//! nothing to store without a store. Loads may run ahead of an acknowledgement;
//! nothing else may. A call that failed ends the session.

use std::fmt;

use crate::error::ConnectorError;

/// A call of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Validate,
    Apply,
    Open,
    Load,
    Flush,
    Store,
    StartCommit,
    Acknowledge { recovery: bool },
}

impl fmt::Display for Call {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Validate => "validate",
            Self::Apply => "apply",
            Self::Open => "open",
            Self::Load => "load",
            Self::Flush => "flush",
            Self::Store => "store",
            Self::StartCommit => "start-commit",
            Self::Acknowledge { recovery: false } => "acknowledge",
            Self::Acknowledge { recovery: true } => "acknowledge of a recovery",
        })
    }
}

/// Where a session is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Nothing is open.
    #[default]
    Closed,
    /// New: a transaction of an earlier session may be acknowledged.
    Opened,
    /// The last transaction is acknowledged.
    Loading,
    /// Loads are over.
    Flushing,
    /// Documents are being stored.
    Storing,
    /// The transaction is to be acknowledged.
    Committing,
    /// A call has failed.
    Failed,
}

/// Follows the calls of one instance.
#[derive(Debug, Default)]
pub(crate) struct Order {
    phase: Phase,
    last: Option<Call>,
}

impl Order {
    /// Notes a call that is about to be made. `unflushed` says that loaded documents
    /// of the transaction are still due.
    pub(crate) fn enter(&mut self, call: Call, unflushed: bool) -> Result<(), ConnectorError> {
        let next = next(self.phase, call, unflushed);
        let last = self.last.replace(call);
        match next {
            Some(next) => {
                self.phase = next;
                Ok(())
            }
            None => Err(violation(self.phase, last, call, unflushed)),
        }
    }

    /// Notes that the last call failed.
    pub(crate) fn fail(&mut self) {
        if !matches!(self.last, Some(Call::Validate | Call::Apply)) {
            self.phase = Phase::Failed;
        }
    }
}

fn next(phase: Phase, call: Call, unflushed: bool) -> Option<Phase> {
    match (phase, call) {
        (Phase::Closed, Call::Validate | Call::Apply) => Some(phase),
        (Phase::Closed, Call::Open) => Some(Phase::Opened),

        (Phase::Opened | Phase::Loading | Phase::Committing, Call::Load) => Some(phase),
        (Phase::Opened, Call::Acknowledge { recovery: true }) => Some(Phase::Loading),
        (Phase::Committing, Call::Acknowledge { recovery: false }) => Some(Phase::Loading),

        (Phase::Opened | Phase::Loading | Phase::Flushing, Call::Flush) => Some(Phase::Flushing),
        (Phase::Opened | Phase::Loading | Phase::Flushing, Call::Store) if !unflushed => {
            Some(Phase::Storing)
        }
        (Phase::Opened | Phase::Loading | Phase::Flushing, Call::StartCommit) if !unflushed => {
            Some(Phase::Committing)
        }
        (Phase::Storing, Call::Store) => Some(Phase::Storing),
        (Phase::Storing, Call::StartCommit) => Some(Phase::Committing),
        _ => None,
    }
}

fn violation(phase: Phase, last: Option<Call>, call: Call, unflushed: bool) -> ConnectorError {
    let reason = match phase {
        Phase::Closed => "no session is open",
        Phase::Failed => "that call failed, which ended the session",
        Phase::Committing => "the transaction is not acknowledged yet",
        _ if unflushed => "flush has not returned all loaded documents yet",
        _ => "the protocol has them in another order",
    };
    ConnectorError::internal(match last {
        Some(last) => format!("{call} was called after {last}: {reason}"),
        None => format!("{call} was the first call: {reason}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACKNOWLEDGE: Call = Call::Acknowledge { recovery: false };
    const RECOVER: Call = Call::Acknowledge { recovery: true };

    fn run(calls: &[Call]) -> Result<(), ConnectorError> {
        let mut order = Order::default();
        calls.iter().try_for_each(|call| order.enter(*call, false))
    }

    #[test]
    fn allowed_orders() {
        use Call::{Apply, Flush, Load, Open, StartCommit, Store, Validate};
        let cases: &[&[Call]] = &[
            &[Validate, Apply, Apply, Open],
            &[
                Open,
                RECOVER,
                Load,
                Load,
                Flush,
                Flush,
                Store,
                Store,
                StartCommit,
                ACKNOWLEDGE,
            ],
            &[Open, Load, RECOVER, Load, Flush, StartCommit, ACKNOWLEDGE],
            &[
                Open,
                Flush,
                StartCommit,
                Load,
                ACKNOWLEDGE,
                Load,
                Flush,
                Store,
                StartCommit,
            ],
            &[
                Open,
                Store,
                StartCommit,
                ACKNOWLEDGE,
                StartCommit,
                ACKNOWLEDGE,
            ],
        ];
        for calls in cases {
            assert_eq!(run(calls), Ok(()), "{calls:?}");
        }
    }

    #[test]
    fn every_other_order_is_refused_at_its_last_call() {
        use Call::{Apply, Flush, Load, Open, StartCommit, Store, Validate};
        let cases: &[&[Call]] = &[
            &[Load],
            &[Store],
            &[ACKNOWLEDGE],
            &[Open, Open],
            &[Open, Validate],
            &[Open, Apply],
            &[Open, ACKNOWLEDGE],
            &[Open, RECOVER, RECOVER],
            &[Open, Flush, Load],
            &[Open, Flush, RECOVER],
            &[Open, Flush, Store, Load],
            &[Open, Flush, Store, Flush],
            &[Open, Flush, Store, ACKNOWLEDGE],
            &[Open, Flush, StartCommit, StartCommit],
            &[Open, Flush, StartCommit, Flush],
            &[Open, Flush, StartCommit, Store],
            &[Open, Flush, StartCommit, RECOVER],
            &[Open, Flush, StartCommit, ACKNOWLEDGE, ACKNOWLEDGE],
        ];
        for calls in cases {
            let (_, allowed) = calls.split_last().unwrap();
            assert_eq!(run(allowed), Ok(()), "{allowed:?}");
            let error = run(calls).unwrap_err();
            assert_eq!(error.kind, crate::ErrorKind::Internal, "{calls:?}");
        }
    }

    #[test]
    fn a_violation_names_both_calls() {
        let cases: [(&[Call], &str); 3] = [
            (
                &[Call::Store],
                "store was the first call: no session is open",
            ),
            (
                &[Call::Open, Call::StartCommit, Call::Store],
                "store was called after start-commit: the transaction is not acknowledged yet",
            ),
            (
                &[Call::Open, Call::Flush, Call::Load],
                "load was called after flush: the protocol has them in another order",
            ),
        ];
        for (calls, want) in cases {
            assert_eq!(run(calls).unwrap_err().message, want);
        }
    }

    #[test]
    fn what_is_not_flushed_is_neither_stored_nor_committed() {
        for call in [Call::Store, Call::StartCommit] {
            let mut order = Order::default();
            order.enter(Call::Open, false).unwrap();
            order.enter(Call::Load, false).unwrap();
            let error = order.enter(call, true).unwrap_err();
            assert_eq!(
                error.message,
                format!(
                    "{call} was called after load: flush has not returned all loaded documents yet"
                )
            );
        }
    }

    #[test]
    fn a_failed_call_ends_the_session() {
        let mut order = Order::default();
        order.enter(Call::Apply, false).unwrap();
        order.fail();
        order.enter(Call::Open, false).unwrap();
        order.enter(Call::Store, false).unwrap();
        order.fail();
        let error = order.enter(Call::StartCommit, false).unwrap_err();
        assert_eq!(
            error.message,
            "start-commit was called after store: that call failed, which ended the session"
        );
    }
}
