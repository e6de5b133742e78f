//! What a watcher is shown of a leader.

use crate::close_policy::WaitsOn;

/// A leader, as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// What the open transaction is doing.
    pub head_phase: HeadPhase,
    /// What the committed transaction is doing.
    pub tail_phase: TailPhase,
    /// How long the open transaction is open, zero if there is none.
    pub open_age_millis: u64,
    /// Documents that the open transaction has read.
    pub sourced_documents: u64,
    /// Bytes that the open transaction has read.
    pub sourced_bytes: u64,
    /// What the open transaction waits for, if it waits.
    pub waits_on: Option<WaitsOn>,
    /// The commit instant of the hold that keeps the transaction open, since
    /// the Unix epoch.
    pub held_until_millis: Option<i64>,
    /// The instant until which the acknowledgement is held, since the Unix
    /// epoch.
    pub acknowledgement_held_until_millis: Option<i64>,
}

/// What the open transaction is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadPhase {
    /// There is none.
    Idle,
    /// It reads.
    Extend,
    /// The last loaded documents come in.
    Flush,
    /// Its extents are made durable as hinted.
    PersistHint,
    /// Combined documents go to the destination.
    Store,
    /// The destination prepares or makes the commit.
    StartCommit,
    /// The commit is made durable.
    Persist,
    /// The session has stopped.
    Stop,
}

/// What the committed transaction is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TailPhase {
    /// It was just committed.
    Begin,
    /// The destination applies what was committed, or the acknowledgement is
    /// held.
    Acknowledge,
    /// The acknowledgement is made durable.
    Persist,
    /// Its triggers run.
    Trigger,
    /// That its triggers ran is made durable.
    PersistTrigger,
    /// Nothing is left to do.
    Done,
}

/// What the transaction that a caller waited for came to.
///
/// All are zero for a transaction that an earlier session committed, and where
/// there was nothing to commit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Documents read.
    pub documents: u64,
    /// Bytes read.
    pub bytes: u64,
    /// How long it was open, from its first extension to its durable commit.
    pub duration_millis: u64,
}
