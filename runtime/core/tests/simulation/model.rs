//! A small reference model of what a sync-now call meets, after the words of its
//! documentation and not after the leader's code.

use tidegate_core::sync_now::Outcome;
use tidegate_core::{HeadPhase, Record, Status, TailPhase, WaiterId};

use crate::session::Session;

/// Returns what the call must be told, and notes what it asks of the transaction.
pub fn acknowledge(
    session: &mut Session,
    waiter: WaiterId,
    record: &Record,
    status: &Status,
) -> Outcome {
    let barrier = session.barriers.remove(&waiter).expect("acknowledged once");
    let committed = &record.committed.frontier;
    // Until a session has come to where it opened, it does not know what an
    // earlier one had read.
    let opened = &session.opening_ends;
    let barrier = barrier.or_else(|| (!committed.covers(opened)).then(|| opened.clone()));
    match status.head_phase {
        HeadPhase::Idle | HeadPhase::Stop => match barrier {
            Some(ends) if !committed.covers(&ends) => Outcome::CloseRequested,
            _ if status.tail_phase == TailPhase::Done => Outcome::Idle,
            _ => Outcome::AlreadyClosing,
        },
        HeadPhase::Extend if session.close_requested || session.ending => Outcome::AlreadyClosing,
        HeadPhase::Extend => {
            session.close_requested = barrier.is_none();
            match status.held_until_millis {
                Some(_) => Outcome::HeldCollapsed,
                None => Outcome::CloseRequested,
            }
        }
        _ => Outcome::AlreadyClosing,
    }
}
