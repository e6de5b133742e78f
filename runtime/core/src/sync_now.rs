//! Decides what a sync-now call meets, and what it waits for.
//!
//! ```text
//! poke -> evaluate -> Ack(outcome) -> (wait) -> Done
//! ```
//!
//! A poke is one-shot and idempotent, and never an error when there is nothing
//! to do. It overrides holds and floors, never structure. Who calls, and over
//! what, is deliberately unknown here.

/// What a sync-now call is told at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A hold was keeping the transaction open, and was ended.
    HeldCollapsed,
    /// The transaction was asked to close.
    CloseRequested,
    /// What the caller waits for was on its way already.
    AlreadyClosing,
    /// Nothing was open, and everything was committed.
    Idle,
    /// The name is not one of a materialization, so there is nothing to commit.
    NotApplicable,
}

/// The open transaction, as a poke finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head {
    /// There is none.
    Idle,
    /// It may still extend.
    Open {
        /// Whether a schedule's hold keeps it open.
        held: bool,
        /// Whether its close was asked for already.
        close_requested: bool,
    },
    /// Its close was decided.
    Closing,
}

/// How a read-through barrier stands to what is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The poke is a plain one: whatever is open.
    Open,
    /// The committed frontier covers the barrier.
    Committed,
    /// The committed frontier does not cover the barrier.
    Ahead,
}

/// What the decision is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inputs {
    /// The open transaction.
    pub head: Head,
    /// Whether the transaction before it is done.
    pub tail_done: bool,
    /// What the poke wants committed.
    pub target: Target,
}

/// What a poke does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// What the caller is told at once.
    pub outcome: Outcome,
    /// Whether the open transaction is asked to close.
    pub sets_close_requested: bool,
    /// What the caller's Done comes after.
    pub waits_for: WaitsFor,
}

/// What a caller's Done comes after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitsFor {
    /// Nothing: it comes at once.
    Nothing,
    /// The committed transaction that is not done yet.
    Tail,
    /// The open transaction, which implies the one before it.
    Head,
    /// The first transaction that is done and covers the barrier.
    Target,
}

/// Decides what a poke does.
pub fn evaluate(inputs: &Inputs) -> Decision {
    match inputs.target {
        Target::Ahead => read_through(inputs.head),
        // Nothing is open beyond a committed barrier that the caller wants.
        Target::Committed => settled(inputs.tail_done),
        Target::Open if inputs.head == Head::Idle => settled(inputs.tail_done),
        Target::Open => Decision {
            outcome: outcome(inputs.head),
            sets_close_requested: closes(inputs.head),
            waits_for: WaitsFor::Head,
        },
    }
}

/// A barrier closes a transaction only on reaching it, so it asks for no close.
fn read_through(head: Head) -> Decision {
    Decision {
        outcome: outcome(head),
        sets_close_requested: false,
        waits_for: WaitsFor::Target,
    }
}

fn settled(tail_done: bool) -> Decision {
    let (outcome, waits_for) = match tail_done {
        true => (Outcome::Idle, WaitsFor::Nothing),
        false => (Outcome::AlreadyClosing, WaitsFor::Tail),
    };
    Decision {
        outcome,
        sets_close_requested: false,
        waits_for,
    }
}

fn outcome(head: Head) -> Outcome {
    match head {
        Head::Closing => Outcome::AlreadyClosing,
        Head::Open {
            close_requested: true,
            ..
        } => Outcome::AlreadyClosing,
        Head::Open { held: true, .. } => Outcome::HeldCollapsed,
        Head::Open { held: false, .. } => Outcome::CloseRequested,
        Head::Idle => Outcome::CloseRequested,
    }
}

fn closes(head: Head) -> bool {
    matches!(
        head,
        Head::Open {
            close_requested: false,
            ..
        }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Case {
        name: &'static str,
        head: Head,
        tail_done: bool,
        target: Target,
        want: (Outcome, bool, WaitsFor),
    }

    const OPEN: Head = Head::Open {
        held: false,
        close_requested: false,
    };
    const HELD: Head = Head::Open {
        held: true,
        close_requested: false,
    };
    const REQUESTED: Head = Head::Open {
        held: false,
        close_requested: true,
    };
    const HELD_REQUESTED: Head = Head::Open {
        held: true,
        close_requested: true,
    };

    #[rustfmt::skip]
    #[test]
    fn plain_pokes() {
        let mut cases = vec![
            Case { name: "idle, the tail is not done", head: Head::Idle, tail_done: false, target: Target::Open,
                want: (Outcome::AlreadyClosing, false, WaitsFor::Tail) },
            Case { name: "idle", head: Head::Idle, tail_done: true, target: Target::Open,
                want: (Outcome::Idle, false, WaitsFor::Nothing) },
        ];
        for tail_done in [true, false] {
            let mid = |name, head, outcome, closes| Case {
                name, head, tail_done, target: Target::Open, want: (outcome, closes, WaitsFor::Head),
            };
            cases.extend([
                mid("held", HELD, Outcome::HeldCollapsed, true),
                mid("open", OPEN, Outcome::CloseRequested, true),
                mid("close already requested", REQUESTED, Outcome::AlreadyClosing, false),
                mid("held, close already requested", HELD_REQUESTED, Outcome::AlreadyClosing, false),
                mid("closing", Head::Closing, Outcome::AlreadyClosing, false),
            ]);
        }
        check(cases);
    }

    #[rustfmt::skip]
    #[test]
    fn read_through_pokes() {
        let mut cases = vec![
            Case { name: "committed", head: Head::Idle, tail_done: true, target: Target::Committed,
                want: (Outcome::Idle, false, WaitsFor::Nothing) },
            Case { name: "committed, the tail is not done", head: Head::Idle, tail_done: false, target: Target::Committed,
                want: (Outcome::AlreadyClosing, false, WaitsFor::Tail) },
        ];
        for tail_done in [true, false] {
            let mid = |name, head, outcome| Case {
                name, head, tail_done, target: Target::Ahead, want: (outcome, false, WaitsFor::Target),
            };
            cases.extend([
                mid("idle, not covered", Head::Idle, Outcome::CloseRequested),
                mid("held", HELD, Outcome::HeldCollapsed),
                mid("open", OPEN, Outcome::CloseRequested),
                mid("close already requested", REQUESTED, Outcome::AlreadyClosing),
                mid("closing", Head::Closing, Outcome::AlreadyClosing),
            ]);
        }
        check(cases);
    }

    fn check(cases: Vec<Case>) {
        for case in cases {
            let decision = evaluate(&Inputs {
                head: case.head,
                tail_done: case.tail_done,
                target: case.target,
            });
            let (outcome, sets_close_requested, waits_for) = case.want;
            let want = Decision {
                outcome,
                sets_close_requested,
                waits_for,
            };
            assert_eq!(
                decision, want,
                "{}, tail done: {}",
                case.name, case.tail_done
            );
        }
    }
}
