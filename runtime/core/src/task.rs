//! What the leader has to know of a task.

use crate::close_policy::Limits;
use crate::hold::SeededSchedule;
use crate::layout::Layout;

/// A task, as one session leads it.
#[derive(Debug, Clone)]
pub struct Task {
    /// The bindings and shards of this session.
    pub layout: Layout,
    /// When transactions close.
    pub limits: Limits,
    /// The spec's schedule, which holds open transactions.
    pub schedule: Option<SeededSchedule>,
    /// The connector's own schedule, which holds acknowledgements.
    pub pacing: Option<SeededSchedule>,
    /// Whether something is to be triggered after a transaction stored rows.
    pub triggers: bool,
    /// Whether the session only finishes what an earlier one left, and stops.
    pub finish_only: bool,
}

impl Task {
    /// Returns the schedule by which acknowledgements are paced.
    ///
    /// A task whose spec has a schedule is not paced again: two layers that
    /// each wait half an hour would commit once an hour. Nor is a session that
    /// only finishes: the current spec waits for it.
    pub(crate) fn paced_by(&self) -> Option<&SeededSchedule> {
        let paced = self.schedule.is_none() && !self.finish_only;
        self.pacing.as_ref().filter(|_| paced)
    }
}
