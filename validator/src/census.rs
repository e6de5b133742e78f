//! Who paces where, over a catalog: what one looks at before moving schedules.

use crate::model::{Draft, Endpoint, Runnable, Task};
use crate::plan::Answers;
use crate::rules::{Paces, least_upload_interval, paces};
use serde::Serialize;
use std::collections::BTreeMap;
use tidegate_schedule::{Configured, classify};

/// What a connector does about pacing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ConnectorPacing {
    /// Its config has a schedule.
    Configured,
    /// Its config switches its schedule off.
    AllZero,
    /// It has a default, and its config says nothing.
    Default,
    /// Its config has a schedule that cannot be read.
    Unreadable,
    /// It never paces, or is not one that is known to.
    Never,
}

/// Who paces a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pacer {
    /// The task.
    pub task: String,
    /// The file that defines it.
    pub file: String,
    /// The line of its name.
    pub line: u32,
    /// Whether the materialization has a `syncSchedule`.
    pub model: bool,
    /// What its connector does.
    pub connector: ConnectorPacing,
}

impl Pacer {
    /// Returns the row of the census that the task counts in.
    pub fn label(&self) -> &'static str {
        match (self.model, self.connector) {
            (true, ConnectorPacing::Configured | ConnectorPacing::Unreadable) => {
                "model and connector"
            }
            (true, ConnectorPacing::Default) => "model and connector default",
            (true, ConnectorPacing::AllZero | ConnectorPacing::Never) => "model",
            (false, ConnectorPacing::Configured) => "connector configured",
            (false, ConnectorPacing::Unreadable) => "connector unreadable",
            (false, ConnectorPacing::AllZero) => "connector all-zero",
            (false, ConnectorPacing::Default) => "connector default",
            (false, ConnectorPacing::Never) => "nobody",
        }
    }
}

/// Says of each materialization who paces it.
pub fn census(draft: &Draft, answers: &Answers) -> Vec<Pacer> {
    let pacers = draft.tasks.values().map(|task| {
        let place = draft.sources().place(&task.spot);
        Pacer {
            task: task.name.clone(),
            file: place.file,
            line: place.line,
            model: task.schedule.is_some(),
            connector: connector(task, answers),
        }
    });
    pacers.collect()
}

/// Counts tasks by label.
pub fn tally(pacers: &[Pacer]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for pacer in pacers {
        *counts.entry(pacer.label()).or_default() += 1;
    }
    counts
}

fn connector(task: &Task, answers: &Answers) -> ConnectorPacing {
    let Endpoint::Runnable(runnable) = &task.endpoint else {
        return ConnectorPacing::Never;
    };
    let spec = answers.specs.get(&runnable.component);
    let spec = spec.and_then(|it| it.as_ref().ok());
    match paces(&runnable.component, spec) {
        Paces::BySchedule => schedule(runnable),
        Paces::ByUploads => uploads(runnable),
        // A schedule in the config of a connector that nobody knows is meant to be one.
        Paces::Never if spec.is_none() && runnable.config.get("syncSchedule").is_some() => {
            schedule(runnable)
        }
        Paces::Never => ConnectorPacing::Never,
    }
}

fn schedule(runnable: &Runnable) -> ConnectorPacing {
    let value = runnable.config.get("syncSchedule").map(|it| it.to_value());
    match classify(value.as_ref()) {
        Ok(Configured::Absent) => ConnectorPacing::Default,
        Ok(Configured::AllZero) => ConnectorPacing::AllZero,
        Ok(Configured::Paced(_)) => ConnectorPacing::Configured,
        Err(_) => ConnectorPacing::Unreadable,
    }
}

fn uploads(runnable: &Runnable) -> ConnectorPacing {
    let text = runnable
        .config
        .get("uploadInterval")
        .and_then(|it| it.text());
    match text {
        None | Some("") => ConnectorPacing::Default,
        Some(text) if least_upload_interval(text) => ConnectorPacing::AllZero,
        Some(_) => ConnectorPacing::Configured,
    }
}
