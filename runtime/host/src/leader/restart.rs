//! Decides what becomes of a task whose session failed: pure.
//!
//! ```text
//! fault -> again after a pause, doubling -> ... -> given up
//! ```
//!
//! A session that committed something starts the count anew: a task that makes
//! progress between faults is slow, not broken.

use std::time::Duration;

/// The pause before the first restart. A lost connection is often back at once.
pub const PAUSE_MIN: Duration = Duration::from_millis(500);

/// The longest pause: what a destination that was down for long is kept waiting
/// once it is back.
pub const PAUSE_MAX: Duration = Duration::from_secs(60);

/// How many sessions in a row may end in a fault of the connector itself. A
/// trap that repeats is a bug, and restarting does not mend it; but one that an
/// operator's `kill` or a full disk caused is worth a few tries.
pub const FAULTS_MAX: u32 = 3;

/// How many sessions in a row may end in something that passes, when the host
/// is to end by itself: a quarter of a minute of a destination that is away, as
/// somebody waits for the command.
pub const TRANSIENT_MAX: u32 = 6;

/// What kind of failure ended a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It fails again until somebody changes something: configuration,
    /// credentials, schema, a document, a lost checkpoint.
    Lasting,
    /// It may pass by itself.
    Transient,
    /// The connector trapped, ran out of a limit, or broke the protocol.
    Fault,
    /// Another owner leads the task.
    Fenced,
    /// The next session leaves a document out, which is what it is for. There are
    /// only so many in a transaction.
    LeftOut,
}

/// What is known when a session has failed.
#[derive(Clone, Copy, Debug)]
pub struct Inputs {
    /// What ended it.
    pub failure: Failure,
    /// Sessions in a row, this one included, that failed without a commit.
    pub failures_in_a_row: u32,
    /// Whether the host ends by itself once everything is caught up.
    pub until_caught_up: bool,
    /// Whether the task is being stopped.
    pub stopping: bool,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Start another session after the pause.
    Restart(Duration),
    /// The task has failed.
    GiveUp,
}

/// Decides what becomes of the task.
pub fn evaluate(inputs: &Inputs) -> Decision {
    let most = match inputs.failure {
        Failure::LeftOut if !inputs.stopping => return Decision::Restart(Duration::ZERO),
        Failure::LeftOut => 0,
        Failure::Lasting | Failure::Fenced => 0,
        Failure::Fault => FAULTS_MAX,
        Failure::Transient if inputs.until_caught_up => TRANSIENT_MAX,
        Failure::Transient => u32::MAX,
    };
    if inputs.stopping || inputs.failures_in_a_row >= most {
        return Decision::GiveUp;
    }
    let doublings = inputs.failures_in_a_row.saturating_sub(1).min(16);
    Decision::Restart(PAUSE_MIN.saturating_mul(1 << doublings).min(PAUSE_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restart_table() {
        struct Case {
            name: &'static str,
            inputs: Inputs,
            want: Decision,
        }
        let mid = Inputs {
            failure: Failure::Transient,
            failures_in_a_row: 1,
            until_caught_up: false,
            stopping: false,
        };
        let millis = |millis| Decision::Restart(Duration::from_millis(millis));
        let cases = [
            Case {
                name: "the first pause is short",
                inputs: mid,
                want: millis(500),
            },
            Case {
                name: "pauses double",
                inputs: Inputs {
                    failures_in_a_row: 4,
                    ..mid
                },
                want: millis(4_000),
            },
            Case {
                name: "pauses end at a minute, and tries do not end",
                inputs: Inputs {
                    failures_in_a_row: u32::MAX - 1,
                    ..mid
                },
                want: millis(60_000),
            },
            Case {
                name: "a host that ends by itself gives up",
                inputs: Inputs {
                    failures_in_a_row: TRANSIENT_MAX,
                    until_caught_up: true,
                    ..mid
                },
                want: Decision::GiveUp,
            },
            Case {
                name: "a lasting failure is not tried again",
                inputs: Inputs {
                    failure: Failure::Lasting,
                    ..mid
                },
                want: Decision::GiveUp,
            },
            Case {
                name: "a fault is tried again",
                inputs: Inputs {
                    failure: Failure::Fault,
                    ..mid
                },
                want: millis(500),
            },
            Case {
                name: "but not for ever",
                inputs: Inputs {
                    failure: Failure::Fault,
                    failures_in_a_row: FAULTS_MAX,
                    ..mid
                },
                want: Decision::GiveUp,
            },
            Case {
                name: "a fenced owner leaves the task alone",
                inputs: Inputs {
                    failure: Failure::Fenced,
                    ..mid
                },
                want: Decision::GiveUp,
            },
            Case {
                name: "what was left out is not waited for, however often",
                inputs: Inputs {
                    failure: Failure::LeftOut,
                    failures_in_a_row: 99,
                    ..mid
                },
                want: Decision::Restart(Duration::ZERO),
            },
            Case {
                name: "but not begun anew by a task that is being stopped",
                inputs: Inputs {
                    failure: Failure::LeftOut,
                    stopping: true,
                    ..mid
                },
                want: Decision::GiveUp,
            },
            Case {
                name: "a task that is being stopped stays stopped",
                inputs: Inputs {
                    stopping: true,
                    ..mid
                },
                want: Decision::GiveUp,
            },
        ];
        for case in cases {
            assert_eq!(evaluate(&case.inputs), case.want, "{}", case.name);
        }
    }
}
