//! The two schedules of a task, as the leader asks them for instants.

use std::sync::Arc;

use serde_json::Value;
use tidegate_core::{CommitSchedule, SeededSchedule};
use tidegate_schedule::{CompiledPacing, CompiledSchedule, ScheduleError, classify, seed_of};

/// A model's `syncSchedule`: holds open transactions.
#[derive(Debug)]
struct Model(CompiledSchedule);

impl CommitSchedule for Model {
    fn next_fire(&self, after_millis: i64, seed: u64) -> Option<i64> {
        self.0.next_fire_millis(after_millis, seed)
    }
}

/// A connector's own schedule: holds acknowledgements.
#[derive(Debug)]
struct Connector(CompiledPacing);

impl CommitSchedule for Connector {
    fn next_fire(&self, after_millis: i64, seed: u64) -> Option<i64> {
        self.0.next_fire_millis(after_millis, seed)
    }
}

/// Returns the hold of open transactions. Tasks with the same jitter text hold
/// to the same instants.
pub(crate) fn of_model(schedule: &CompiledSchedule, jitter: &str) -> SeededSchedule {
    SeededSchedule {
        schedule: Arc::new(Model(schedule.clone())),
        seed: seed_of(jitter),
    }
}

/// Returns the hold of acknowledgements, if the connector's schedule paces.
pub(crate) fn of_connector(
    schedule: &Value,
    jitter: &str,
) -> Result<Option<SeededSchedule>, ScheduleError> {
    let Some(schedule) = classify(Some(schedule))?.into_pacing() else {
        return Ok(None);
    };
    let pacing = CompiledPacing::compile(&schedule)?;
    Ok(Some(SeededSchedule {
        schedule: Arc::new(Connector(pacing)),
        seed: seed_of(jitter),
    }))
}
