//! When a connector's own schedule lets it acknowledge.
//!
//! A frequency alone is a grid, all day. With a fast window the frequency applies inside it and four hours outside, and
//! a wait that would cross into the faster of the two ends where that begins. The grid's jitter is finer than a model
//! schedule's, as connectors have always spread themselves so; the two are never in force together.

use crate::legacy::ConnectorSchedule;
use crate::problem::{Problem, ProblemKind, ScheduleError};
use crate::week::{Week, next_on_grid, pieces};
use crate::zone::{END_INSTANT, FIRST_INSTANT, Zone};
use serde_json::Value;
use std::time::Duration;

/// How often a connector syncs outside its fast window.
const SLOW_INTERVAL: Duration = Duration::from_secs(4 * 3_600);

/// Nanoseconds of a day, the bound of a connector's jitter.
const JITTER_NANOS: u64 = 86_400_000_000_000;

/// A connector's schedule that is known to be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompiledPacing {
    plan: Plan,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Plan {
    Fixed(Duration),
    Alternating(Week),
}

impl CompiledPacing {
    /// Reads a connector's schedule, or says everything that is wrong with it.
    pub fn compile(schedule: &ConnectorSchedule) -> Result<Self, ScheduleError> {
        let zone = schedule.timezone.as_deref().map(|text| {
            Zone::parse(text).map_err(|refusal| {
                let value = Value::from(text);
                Problem::new(
                    "/timezone",
                    &value,
                    ProblemKind::Timezone,
                    refusal.message,
                    refusal.fix,
                )
            })
        });
        let (parts, zone) = match (schedule.parts(), zone.transpose()) {
            (Ok(parts), Ok(zone)) => (parts, zone),
            (Ok(_), Err(problem)) => return Err(problem.into()),
            (Err(error), Ok(_)) => return Err(error),
            (Err(error), Err(problem)) => return Err(error.with(problem)),
        };
        let plan = match parts.fast {
            None => Plan::Fixed(parts.frequency),
            Some(fast) => {
                let zone = zone.expect("a schedule with a fast window and no problems has a zone");
                let pieces = pieces(0, fast.start, fast.stop, fast.days);
                Plan::Alternating(Week::new(
                    zone,
                    SLOW_INTERVAL,
                    vec![parts.frequency],
                    pieces,
                ))
            }
        };
        Ok(Self { plan })
    }

    /// Returns the instant before which a connector that last acknowledged at `after_millis` does not acknowledge again.
    ///
    /// It is after `after_millis`; `None` means at once. The seed is [`seed_of`](crate::seed_of) the jitter key.
    pub fn next_fire_millis(&self, after_millis: i64, seed: u64) -> Option<i64> {
        if !(FIRST_INSTANT..END_INSTANT).contains(&after_millis) {
            return None;
        }
        let jitter =
            i64::try_from((seed >> 1) % JITTER_NANOS).expect("a day of nanoseconds fits 64 bits");
        let fire = match &self.plan {
            Plan::Fixed(frequency) => next_on_grid(after_millis, *frequency, jitter),
            Plan::Alternating(week) => week.next_fire(after_millis, jitter),
        };
        fire.filter(|fire| *fire < END_INSTANT)
    }
}
