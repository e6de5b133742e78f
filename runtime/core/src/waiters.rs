//! Who waits for which commit, and the barriers they set.
//!
//! ```text
//! poke -> parked -> the Tail is done -> resolved, all together
//! barrier -> the Head covers it -> its close
//! ```
//!
//! A barrier outlives the caller who set it, so hanging up changes nothing.

use std::collections::{BTreeMap, VecDeque};

use crate::close_policy::Barrier;
use crate::frontier::Frontier;
use crate::status::Figures;
use crate::txn::TxnId;
use crate::txn::event::{Through, WaiterId};

/// What a parked caller waits for.
#[derive(Debug, Clone)]
pub(crate) enum Awaits {
    /// That this transaction, or a later one, is done.
    Txn(TxnId),
    /// That a transaction is done whose frontier covers this one.
    Frontier(Frontier),
}

/// A sync-now call that was not looked at yet.
#[derive(Debug, Clone)]
pub(crate) struct Poke {
    pub(crate) waiter: WaiterId,
    pub(crate) through: Through,
}

/// Callers about to be told that they are done.
#[derive(Debug, Clone)]
pub(crate) struct Resolved {
    pub(crate) waiters: Vec<WaiterId>,
    pub(crate) figures: Figures,
}

/// Everybody who called sync-now and was not told Done yet.
///
/// Their number is bounded where they arrive, by the limit on open calls.
#[derive(Debug, Clone, Default)]
pub(crate) struct Waiters {
    pokes: VecDeque<Poke>,
    parked: BTreeMap<WaiterId, Awaits>,
    barriers: Vec<Frontier>,
    resolved: VecDeque<Resolved>,
}

impl Waiters {
    /// Records a call, to be looked at in the next step.
    pub(crate) fn poke(&mut self, waiter: WaiterId, through: Through) {
        self.pokes.push_back(Poke { waiter, through });
    }

    /// Returns the next call to look at.
    pub(crate) fn next_poke(&mut self) -> Option<Poke> {
        self.pokes.pop_front()
    }

    /// Returns the next callers to tell that they are done.
    pub(crate) fn next_resolved(&mut self) -> Option<Resolved> {
        self.resolved.pop_front()
    }

    /// Parks a caller.
    pub(crate) fn park(&mut self, waiter: WaiterId, awaits: Awaits) {
        self.parked.insert(waiter, awaits);
    }

    /// Forgets a caller.
    pub(crate) fn hang_up(&mut self, waiter: WaiterId) {
        self.parked.remove(&waiter);
    }

    /// Resolves a caller for whom there is nothing to wait for.
    pub(crate) fn resolve_at_once(&mut self, waiter: WaiterId) {
        self.resolved.push_back(Resolved {
            waiters: vec![waiter],
            figures: Figures::default(),
        });
    }

    /// Resolves the callers who waited for what is now done.
    pub(crate) fn resolve(&mut self, done: TxnId, frontier: &Frontier, figures: Figures) {
        let mut waiters = Vec::new();
        self.parked.retain(|waiter, awaits| {
            let resolved = match awaits {
                Awaits::Txn(txn) => *txn <= done,
                Awaits::Frontier(target) => frontier.covers(target),
            };
            if resolved {
                waiters.push(*waiter);
            }
            !resolved
        });
        if !waiters.is_empty() {
            self.resolved.push_back(Resolved { waiters, figures });
        }
    }

    /// Sets a barrier.
    pub(crate) fn set_barrier(&mut self, target: Frontier) {
        // Callers that retry set the same one over and over.
        if !self.barriers.contains(&target) {
            self.barriers.push(target);
        }
    }

    /// Drops the barriers that a closing transaction covers.
    pub(crate) fn drop_reached(&mut self, closing: &Frontier) {
        self.barriers.retain(|target| !closing.covers(target));
    }

    /// Says how an open transaction that has read up to `upper` stands to the
    /// barriers. Any one that it reached closes it: a barrier further on must
    /// not keep an earlier caller waiting.
    pub(crate) fn barrier(&self, upper: &Frontier) -> Barrier {
        match self.barriers.iter().any(|target| upper.covers(target)) {
            true => Barrier::Reached,
            false if self.has_barrier() => Barrier::Ahead,
            false => Barrier::None,
        }
    }

    /// Says whether a barrier was not reached yet.
    pub(crate) fn has_barrier(&self) -> bool {
        !self.barriers.is_empty()
    }

    /// Returns everybody who was not told Done.
    pub(crate) fn into_unresolved(self) -> Vec<WaiterId> {
        let unseen = self.pokes.into_iter().map(|poke| poke.waiter);
        let resolved = self.resolved.into_iter().flat_map(|done| done.waiters);
        self.parked
            .into_keys()
            .chain(unseen)
            .chain(resolved)
            .collect()
    }
}
