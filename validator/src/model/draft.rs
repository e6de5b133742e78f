//! Everything that was read, and what was wrong while reading it.

use super::schedule::WrittenSchedule;
use super::{Collection, Task};
use crate::diagnostic::{Report, Spot};
use crate::load::Sources;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate_schedule::CompiledSchedule;
use tidegate_wit::message::Spec;

/// A catalog that was read: what [`crate::plan`] asks about and [`crate::finish`] builds.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    pub(crate) sources: Sources,
    pub(crate) report: Report,
    /// Files that are named and could not be read: names that are defined there are not missing.
    pub(crate) incomplete: usize,
    pub(crate) collections: BTreeMap<String, Collection>,
    pub(crate) tasks: BTreeMap<String, Task>,
    pub(crate) not_run: BTreeMap<String, NotRun>,
    pub(crate) references: Vec<Reference>,
    pub(crate) live: BTreeMap<String, Spec>,
    /// The catalog that runs now, for tasks of which no spec is known.
    pub(crate) written_live: Option<Arc<Draft>>,
    /// The time at which the catalog is checked, if it matters.
    pub(crate) wall_millis: Option<i64>,
}

impl Draft {
    /// Compares against what runs now: specs by task, as they were applied last.
    pub fn with_live(self, live: BTreeMap<String, Spec>) -> Self {
        Self { live, ..self }
    }

    /// Compares tasks of which no connector answers with the catalog that runs now.
    pub fn with_written_live(self, live: Arc<Draft>) -> Self {
        Self {
            written_live: Some(live),
            ..self
        }
    }

    /// Checks as of a time, in milliseconds since the Unix epoch: a schedule that is over by then is an error.
    pub fn as_of(self, wall_millis: i64) -> Self {
        Self {
            wall_millis: Some(wall_millis),
            ..self
        }
    }

    /// Returns the files that were read: what [`crate::diagnostic::human`] quotes from.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Returns the names of the materializations, those with mistakes included.
    pub fn tasks(&self) -> impl Iterator<Item = &str> {
        self.tasks.keys().map(String::as_str)
    }

    /// Returns the schedule of a materialization.
    pub fn schedule(&self, task: &str) -> Option<TaskSchedule<'_>> {
        let task = self.tasks.get(task)?;
        Some(match &task.schedule {
            None => TaskSchedule::Absent,
            Some(WrittenSchedule { compiled: None, .. }) => TaskSchedule::Broken,
            Some(WrittenSchedule {
                compiled: Some(compiled),
                ..
            }) => TaskSchedule::Compiled(compiled),
        })
    }
}

/// The `syncSchedule` of a materialization.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TaskSchedule<'d> {
    /// It has none.
    Absent,
    /// It has one that cannot be read; [`crate::finish`] says why.
    Broken,
    /// It has one.
    Compiled(&'d CompiledSchedule),
}

/// Something that has a name, and that Tidegate does not run.
#[derive(Debug, Clone)]
pub(crate) struct NotRun {
    /// "capture", "test".
    pub(crate) kind: &'static str,
    pub(crate) spot: Spot,
}

/// A mention of a collection outside materializations.
#[derive(Debug, Clone)]
pub(crate) struct Reference {
    pub(crate) collection: String,
    pub(crate) spot: Spot,
    /// Who mentions it, such as `capture "acmeCo/source"`.
    pub(crate) by: String,
}
