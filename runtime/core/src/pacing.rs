//! Decides how long an acknowledged transaction is held before it is done.
//!
//! A connector with a schedule of its own paces by delaying acknowledgements.
//! Its guest-side library says whether one is paced; here is decided when that
//! ends:
//!
//! ```text
//! every shard acknowledged -> paced? -> wait for the instant -> go on
//! ```
//!
//! Nothing here knows the schedule, or how the guest came to its answer.

use crate::hold;

/// What the decision is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inputs {
    /// Whether some shard asked for pacing.
    pub pace: bool,
    /// The instant until which the schedule holds, since the Unix epoch.
    pub until_millis: Option<i64>,
    /// The wall clock, since the Unix epoch.
    pub wall_millis: i64,
    /// Whether an earlier session committed the transaction.
    pub recovery: bool,
    /// Whether a sync-now call waits for this transaction or a later one.
    pub poked: bool,
    /// Whether the session ends, by a stop or a change of spec.
    pub stopping: bool,
    /// Whether the open transaction is at a ceiling of documents, bytes or
    /// memory.
    pub usage_ceiling: bool,
}

/// What to do with the acknowledged transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Go on.
    Release,
    /// Hold it, and ask again when an event comes or the time has passed.
    Hold {
        /// When the answer could change by the passing of time alone.
        wake_after_millis: u64,
    },
}

/// Decides whether an acknowledged transaction is held.
pub fn evaluate(inputs: &Inputs) -> Decision {
    let ended = inputs.recovery || inputs.poked || inputs.stopping || inputs.usage_ceiling;
    if !inputs.pace || ended {
        return Decision::Release;
    }
    let remaining = inputs
        .until_millis
        .and_then(|until| hold::remaining_millis(until, inputs.wall_millis));
    match remaining {
        Some(wake_after_millis) => Decision::Hold { wake_after_millis },
        None => Decision::Release,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rustfmt::skip]
    #[test]
    fn paces_only_what_nobody_waits_for() {
        struct Case { name: &'static str, inputs: Inputs, want: Decision }
        let mid = Inputs {
            pace: true,
            until_millis: Some(60_000),
            wall_millis: 50_000,
            recovery: false,
            poked: false,
            stopping: false,
            usage_ceiling: false,
        };
        let hold = |wake_after_millis| Decision::Hold { wake_after_millis };
        let cases = [
            Case { name: "paced", inputs: mid, want: hold(10_000) },
            Case { name: "paced for long, looked at again soon",
                inputs: Inputs { until_millis: Some(86_400_000), ..mid }, want: hold(30_000) },
            Case { name: "one millisecond before", inputs: Inputs { wall_millis: 59_999, ..mid }, want: hold(1) },
            Case { name: "the instant has come", inputs: Inputs { wall_millis: 60_000, ..mid }, want: Decision::Release },
            Case { name: "the clock jumped past it", inputs: Inputs { wall_millis: i64::MAX, ..mid }, want: Decision::Release },
            Case { name: "no shard asked", inputs: Inputs { pace: false, ..mid }, want: Decision::Release },
            Case { name: "the schedule names no instant", inputs: Inputs { until_millis: None, ..mid }, want: Decision::Release },
            Case { name: "recovery", inputs: Inputs { recovery: true, ..mid }, want: Decision::Release },
            Case { name: "poked", inputs: Inputs { poked: true, ..mid }, want: Decision::Release },
            Case { name: "stopping", inputs: Inputs { stopping: true, ..mid }, want: Decision::Release },
            Case { name: "the open one is full", inputs: Inputs { usage_ceiling: true, ..mid }, want: Decision::Release },
        ];
        for Case { name, inputs, want } in cases {
            assert_eq!(evaluate(&inputs), want, "{name}");
        }
    }
}
