//! Decides whether an open transaction extends, closes or waits.
//!
//! ```text
//! under any floor      inside all bands           at any ceiling
//! extend, or wait      extend, else close         close
//! ```
//!
//! A close requested, a stop or a read-through barrier that was reached all
//! close as soon as the structure allows: never before the transaction before
//! this one is done. A hold replaces the bands of time by its instant.
//!
//! This is a function of plain data. It knows nothing of shards, sources or
//! schedules, and does not remember what it was asked before.

use crate::hold;

/// A measure's floor and ceiling: below the floor a transaction does not
/// close, at the ceiling it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Band {
    /// The least a transaction waits for.
    pub floor: u64,
    /// The most a transaction goes to.
    pub ceiling: u64,
}

impl Band {
    /// The band that asks for nothing.
    pub const ANY: Band = Band {
        floor: 0,
        ceiling: u64::MAX,
    };

    fn is_under(self, value: u64) -> bool {
        value < self.floor
    }

    fn is_reached(self, value: u64) -> bool {
        value >= self.ceiling
    }

    /// Iterates how far `value` is from each end that it has not reached.
    fn distances(self, value: u64) -> impl Iterator<Item = u64> {
        [self.floor, self.ceiling]
            .into_iter()
            .filter(move |end| *end > value && *end < u64::MAX)
            .map(move |end| end - value)
    }
}

/// The bands that a task's transactions keep within.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long a transaction is open.
    pub open_millis: Band,
    /// How long ago the transaction before it closed.
    pub since_close_millis: Band,
    /// Documents read.
    pub documents: Band,
    /// Bytes read.
    pub bytes: Band,
    /// Bytes in the fullest shard's combiner.
    pub combiner_bytes: Band,
}

impl Limits {
    /// The limits that ask for nothing.
    pub const ANY: Limits = Limits {
        open_millis: Band::ANY,
        since_close_millis: Band::ANY,
        documents: Band::ANY,
        bytes: Band::ANY,
        combiner_bytes: Band::ANY,
    };
}

/// What the open transaction has read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Documents read so far.
    pub documents: u64,
    /// Bytes read so far.
    pub bytes: u64,
    /// Bytes in the fullest shard's combiner.
    pub combiner_bytes: u64,
}

impl Usage {
    fn against(self, limits: &Limits) -> impl Iterator<Item = (Band, u64)> {
        [
            (limits.documents, self.documents),
            (limits.bytes, self.bytes),
            (limits.combiner_bytes, self.combiner_bytes),
        ]
        .into_iter()
    }
}

/// A read-through barrier, as the open transaction stands to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Barrier {
    /// Nobody waits for one.
    None,
    /// One is still ahead: extend towards it.
    Ahead,
    /// One was reached: close.
    Reached,
}

/// What the decision is made from.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// The task's bands.
    pub limits: &'a Limits,
    /// How long the transaction is open.
    pub open_millis: u64,
    /// How long ago the transaction before it closed.
    pub since_close_millis: u64,
    /// What it has read.
    pub usage: Usage,
    /// Whether there is something to extend by.
    pub input_ready: bool,
    /// Whether the transaction before this one is done.
    pub tail_done: bool,
    /// Whether a sync-now call asked for the close.
    pub close_requested: bool,
    /// Whether the session ends; implies a requested close.
    pub stopping: bool,
    /// How the transaction stands to read-through barriers.
    pub barrier: Barrier,
    /// Whether this is a replay, all of whose extents are read.
    pub replay: bool,
    /// Whether the frontier has covered the journals' ends as of the opening.
    pub caught_up: bool,
    /// The commit instant of the schedule's hold, since the Unix epoch.
    pub hold_until_millis: Option<i64>,
    /// The wall clock, since the Unix epoch.
    pub wall_millis: i64,
}

/// What to do with the open transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Read what is ready.
    Extend,
    /// Close.
    Close,
    /// Do nothing until an event comes, or the time has passed.
    Wait {
        /// What it waits for.
        on: WaitsOn,
        /// When the answer could change by the passing of time alone.
        wake_after_millis: Option<u64>,
    },
}

/// What an open transaction waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitsOn {
    /// The transaction before it.
    Tail,
    /// The schedule's commit instant.
    Hold,
    /// A floor.
    Floor,
    /// Input that a read-through barrier is waiting for.
    Input,
}

/// Decides what the open transaction does next.
pub fn evaluate(inputs: &Inputs<'_>) -> Decision {
    if inputs.replay {
        // Nothing beyond its extents, no hold and no floor: the destination
        // may hold a part of exactly these documents.
        return match inputs.tail_done {
            true => Decision::Close,
            false => wait(inputs, WaitsOn::Tail),
        };
    }
    let closes = wants_close(inputs);
    if closes && inputs.tail_done {
        return Decision::Close;
    }
    // Reading on past a usage ceiling would spend memory that the ceiling
    // protects; past a ceiling of time it only makes the commit larger.
    if inputs.input_ready && !is_full(inputs.limits, inputs.usage) {
        return Decision::Extend;
    }
    let on = match inputs {
        _ if closes => WaitsOn::Tail,
        _ if is_held(inputs) => WaitsOn::Hold,
        _ if inputs.barrier == Barrier::Ahead => WaitsOn::Input,
        _ => WaitsOn::Floor,
    };
    wait(inputs, on)
}

/// Says whether a schedule's hold keeps the transaction open right now.
pub fn is_held(inputs: &Inputs<'_>) -> bool {
    holds(inputs).is_some_and(|until| inputs.wall_millis < until)
}

/// Says whether a ceiling of documents, bytes or memory is reached.
pub fn is_full(limits: &Limits, usage: Usage) -> bool {
    usage
        .against(limits)
        .any(|(band, value)| band.is_reached(value))
}

fn wants_close(inputs: &Inputs<'_>) -> bool {
    if close_asked(inputs) || is_full(inputs.limits, inputs.usage) {
        return true;
    }
    if let Some(until) = holds(inputs) {
        // The instant stands for the floors and the ceilings of time.
        return inputs.wall_millis >= until;
    }
    if time(inputs).any(|(band, value)| band.is_reached(value)) {
        return true;
    }
    let mut bands = inputs.usage.against(inputs.limits).chain(time(inputs));
    let under_floor = bands.any(|(band, value)| band.is_under(value));
    !under_floor && !inputs.input_ready && inputs.barrier != Barrier::Ahead
}

fn close_asked(inputs: &Inputs<'_>) -> bool {
    inputs.close_requested || inputs.stopping || inputs.barrier == Barrier::Reached
}

/// Returns the commit instant, if a hold binds this transaction at all.
///
/// One that is not caught up is not bound, so that a backfill runs at full
/// speed. A barrier ends the hold, as whoever set it waits for the commit.
fn holds(inputs: &Inputs<'_>) -> Option<i64> {
    let binds = inputs.caught_up
        && !inputs.replay
        && !close_asked(inputs)
        && inputs.barrier == Barrier::None;
    inputs.hold_until_millis.filter(|_| binds)
}

fn time(inputs: &Inputs<'_>) -> impl Iterator<Item = (Band, u64)> {
    [
        (inputs.limits.open_millis, inputs.open_millis),
        (inputs.limits.since_close_millis, inputs.since_close_millis),
    ]
    .into_iter()
}

fn wait(inputs: &Inputs<'_>, on: WaitsOn) -> Decision {
    let wake_after_millis = match on {
        // Only an event can change that.
        WaitsOn::Tail => None,
        WaitsOn::Hold => {
            holds(inputs).and_then(|until| hold::remaining_millis(until, inputs.wall_millis))
        }
        WaitsOn::Floor | WaitsOn::Input => time(inputs)
            .flat_map(|(band, value)| band.distances(value))
            .min(),
    };
    Decision::Wait {
        on,
        wake_after_millis,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        open_millis: band(1_000, 10_000),
        since_close_millis: band(2_000, 20_000),
        documents: band(100, 1_000),
        bytes: band(10_000, 100_000),
        combiner_bytes: band(1_000, 50_000),
    };

    const fn band(floor: u64, ceiling: u64) -> Band {
        Band { floor, ceiling }
    }

    /// Inside every band, with nothing to read and nothing in the way.
    const MID: Inputs<'static> = Inputs {
        limits: &LIMITS,
        open_millis: 5_000,
        since_close_millis: 6_000,
        usage: USAGE,
        input_ready: false,
        tail_done: true,
        close_requested: false,
        stopping: false,
        barrier: Barrier::None,
        replay: false,
        caught_up: true,
        hold_until_millis: None,
        wall_millis: 1_000_000,
    };

    const USAGE: Usage = Usage {
        documents: 500,
        bytes: 50_000,
        combiner_bytes: 25_000,
    };

    /// Held for another twenty seconds.
    const HELD: Inputs<'static> = Inputs {
        hold_until_millis: Some(1_020_000),
        ..MID
    };

    fn documents(documents: u64) -> Usage {
        Usage { documents, ..USAGE }
    }

    fn wait(on: WaitsOn, wake_after_millis: Option<u64>) -> Decision {
        Decision::Wait {
            on,
            wake_after_millis,
        }
    }

    struct Case {
        name: &'static str,
        inputs: Inputs<'static>,
        want: Decision,
    }

    fn check(cases: &[Case]) {
        for Case { name, inputs, want } in cases {
            assert_eq!(evaluate(inputs), *want, "{name}");
        }
    }

    #[rustfmt::skip]
    #[test]
    fn keeps_within_the_bands() {
        let mid = MID;
        check(&[
            Case { name: "inside all bands, nothing to read", inputs: mid, want: Decision::Close },
            Case { name: "inside all bands, input is ready",
                inputs: Inputs { input_ready: true, ..mid }, want: Decision::Extend },
            Case { name: "under the floor of open time",
                inputs: Inputs { open_millis: 999, ..mid }, want: wait(WaitsOn::Floor, Some(1)) },
            Case { name: "at the floor of open time",
                inputs: Inputs { open_millis: 1_000, ..mid }, want: Decision::Close },
            Case { name: "under the floor since the last close",
                inputs: Inputs { since_close_millis: 1_500, ..mid }, want: wait(WaitsOn::Floor, Some(500)) },
            Case { name: "under the floor of documents, a ceiling of time is next",
                inputs: Inputs { usage: documents(99), ..mid }, want: wait(WaitsOn::Floor, Some(5_000)) },
            Case { name: "under the floor of bytes",
                inputs: Inputs { usage: Usage { bytes: 9_999, ..USAGE }, ..mid },
                want: wait(WaitsOn::Floor, Some(5_000)) },
            Case { name: "under the floor of combiner bytes, the last close's ceiling is next",
                inputs: Inputs { usage: Usage { combiner_bytes: 0, ..USAGE }, since_close_millis: 19_990, ..mid },
                want: wait(WaitsOn::Floor, Some(10)) },
            Case { name: "under a floor, input is ready",
                inputs: Inputs { open_millis: 0, input_ready: true, ..mid }, want: Decision::Extend },
            Case { name: "at the ceiling of open time, under the floor of documents",
                inputs: Inputs { open_millis: 10_000, usage: documents(0), input_ready: true, ..mid },
                want: Decision::Close },
            Case { name: "at the ceiling since the last close",
                inputs: Inputs { since_close_millis: 20_000, input_ready: true, ..mid }, want: Decision::Close },
            Case { name: "at the ceiling of documents, under the floors of time",
                inputs: Inputs { usage: documents(1_000), open_millis: 0, since_close_millis: 0, input_ready: true, ..mid },
                want: Decision::Close },
            Case { name: "at the ceiling of bytes",
                inputs: Inputs { usage: Usage { bytes: 100_000, ..USAGE }, input_ready: true, ..mid },
                want: Decision::Close },
            Case { name: "at the ceiling of combiner bytes",
                inputs: Inputs { usage: Usage { combiner_bytes: 50_000, ..USAGE }, input_ready: true, ..mid },
                want: Decision::Close },
            Case { name: "just under every ceiling",
                inputs: Inputs { open_millis: 9_999, since_close_millis: 19_999, usage: documents(999), input_ready: true, ..mid },
                want: Decision::Extend },
            Case { name: "no bands at all",
                inputs: Inputs { limits: &Limits::ANY, open_millis: 0, usage: Usage::default(), ..mid },
                want: Decision::Close },
        ]);
    }

    #[rustfmt::skip]
    #[test]
    fn never_closes_before_the_tail_is_done() {
        let mid = Inputs { tail_done: false, ..MID };
        check(&[
            Case { name: "inside all bands", inputs: mid, want: wait(WaitsOn::Tail, None) },
            Case { name: "inside all bands, input is ready",
                inputs: Inputs { input_ready: true, ..mid }, want: Decision::Extend },
            Case { name: "close requested", inputs: Inputs { close_requested: true, ..mid }, want: wait(WaitsOn::Tail, None) },
            Case { name: "close requested, input is ready",
                inputs: Inputs { close_requested: true, input_ready: true, ..mid }, want: Decision::Extend },
            Case { name: "stopping", inputs: Inputs { stopping: true, ..mid }, want: wait(WaitsOn::Tail, None) },
            Case { name: "a barrier was reached",
                inputs: Inputs { barrier: Barrier::Reached, ..mid }, want: wait(WaitsOn::Tail, None) },
            Case { name: "at a ceiling of time, input is ready",
                inputs: Inputs { open_millis: 10_000, input_ready: true, ..mid }, want: Decision::Extend },
            Case { name: "at a ceiling of usage, input is ready",
                inputs: Inputs { usage: documents(1_000), input_ready: true, ..mid }, want: wait(WaitsOn::Tail, None) },
            Case { name: "the hold has elapsed",
                inputs: Inputs { hold_until_millis: Some(1_000_000), ..mid }, want: wait(WaitsOn::Tail, None) },
            Case { name: "a replay is read", inputs: Inputs { replay: true, ..mid }, want: wait(WaitsOn::Tail, None) },
            Case { name: "under a floor", inputs: Inputs { open_millis: 0, ..mid }, want: wait(WaitsOn::Floor, Some(1_000)) },
        ]);
    }

    #[rustfmt::skip]
    #[test]
    fn closes_as_soon_as_it_may_when_asked() {
        let mid = Inputs { input_ready: true, open_millis: 0, usage: documents(1), ..HELD };
        check(&[
            Case { name: "nobody asked", inputs: mid, want: Decision::Extend },
            Case { name: "close requested", inputs: Inputs { close_requested: true, ..mid }, want: Decision::Close },
            Case { name: "stopping implies it", inputs: Inputs { stopping: true, ..mid }, want: Decision::Close },
            Case { name: "a barrier was reached", inputs: Inputs { barrier: Barrier::Reached, ..mid }, want: Decision::Close },
            Case { name: "a barrier is ahead", inputs: Inputs { barrier: Barrier::Ahead, ..mid }, want: Decision::Extend },
            Case { name: "a barrier is ahead, nothing to read yet",
                inputs: Inputs { barrier: Barrier::Ahead, input_ready: false, open_millis: 5_000, usage: USAGE, ..mid },
                want: wait(WaitsOn::Input, Some(5_000)) },
            Case { name: "a barrier is ahead, at a ceiling of time",
                inputs: Inputs { barrier: Barrier::Ahead, open_millis: 10_000, ..mid }, want: Decision::Close },
            Case { name: "a barrier is ahead, at a ceiling of usage",
                inputs: Inputs { barrier: Barrier::Ahead, usage: documents(1_000), ..mid }, want: Decision::Close },
        ]);
    }

    #[rustfmt::skip]
    #[test]
    fn holds_until_the_commit_instant() {
        let mid = HELD;
        check(&[
            Case { name: "held, nothing to read", inputs: mid, want: wait(WaitsOn::Hold, Some(20_000)) },
            Case { name: "held, input is ready", inputs: Inputs { input_ready: true, ..mid }, want: Decision::Extend },
            Case { name: "held far longer, looked at again soon",
                inputs: Inputs { hold_until_millis: Some(9_000_000_000), ..mid }, want: wait(WaitsOn::Hold, Some(30_000)) },
            Case { name: "held beyond every instant",
                inputs: Inputs { hold_until_millis: Some(i64::MAX), wall_millis: i64::MIN, ..mid },
                want: wait(WaitsOn::Hold, Some(30_000)) },
            Case { name: "ceilings of time wait for the instant",
                inputs: Inputs { open_millis: 99_000, since_close_millis: 99_000, ..mid }, want: wait(WaitsOn::Hold, Some(20_000)) },
            Case { name: "a ceiling of usage does not",
                inputs: Inputs { usage: documents(1_000), ..mid }, want: Decision::Close },
            Case { name: "one millisecond before the instant",
                inputs: Inputs { wall_millis: 1_019_999, ..mid }, want: wait(WaitsOn::Hold, Some(1)) },
            Case { name: "at the instant, input is ready",
                inputs: Inputs { wall_millis: 1_020_000, input_ready: true, ..mid }, want: Decision::Close },
            Case { name: "at the instant, under every floor",
                inputs: Inputs { wall_millis: 1_020_000, open_millis: 0, since_close_millis: 0, usage: documents(1), ..mid },
                want: Decision::Close },
            Case { name: "the clock jumped past the instant",
                inputs: Inputs { wall_millis: 9_000_000_000, ..mid }, want: Decision::Close },
            Case { name: "not caught up: bands, input is ready",
                inputs: Inputs { caught_up: false, input_ready: true, ..mid }, want: Decision::Extend },
            Case { name: "not caught up: bands, at a ceiling",
                inputs: Inputs { caught_up: false, open_millis: 10_000, input_ready: true, ..mid }, want: Decision::Close },
            Case { name: "not caught up: bands, nothing to read",
                inputs: Inputs { caught_up: false, ..mid }, want: Decision::Close },
            Case { name: "held, the tail is not done",
                inputs: Inputs { tail_done: false, ..mid }, want: wait(WaitsOn::Hold, Some(20_000)) },
        ]);
    }

    #[rustfmt::skip]
    #[test]
    fn replays_close_once_read() {
        let mid = Inputs { replay: true, ..HELD };
        check(&[
            Case { name: "held", inputs: mid, want: Decision::Close },
            Case { name: "under a floor", inputs: Inputs { open_millis: 0, ..mid }, want: Decision::Close },
            Case { name: "input is ready", inputs: Inputs { input_ready: true, ..mid }, want: Decision::Close },
            Case { name: "a barrier is ahead",
                inputs: Inputs { input_ready: true, barrier: Barrier::Ahead, ..mid }, want: Decision::Close },
        ]);
    }

    #[rustfmt::skip]
    #[test]
    fn says_what_is_held() {
        let cases = [
            ("held", HELD, true),
            ("no schedule", MID, false),
            ("the instant has come", Inputs { wall_millis: 1_020_000, ..HELD }, false),
            ("not caught up", Inputs { caught_up: false, ..HELD }, false),
            ("close requested", Inputs { close_requested: true, ..HELD }, false),
            ("stopping", Inputs { stopping: true, ..HELD }, false),
            ("a barrier is ahead", Inputs { barrier: Barrier::Ahead, ..HELD }, false),
            ("a replay", Inputs { replay: true, ..HELD }, false),
        ];
        for (name, inputs, want) in cases {
            assert_eq!(is_held(&inputs), want, "{name}");
        }
    }
}
