//! What a task is led by: one spec, and what the catalog says beside it.

use std::collections::BTreeMap;

use tidegate_core::OnError;
use tidegate_schedule::CompiledSchedule;

use super::records::TaskSpec;
use crate::sandbox::{Component, SessionConfig};

/// How long the catalog lets transactions be open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxnDurations {
    /// The least, in milliseconds.
    pub min_millis: Option<u64>,
    /// The most, in milliseconds.
    pub max_millis: Option<u64>,
}

/// Everything about a task that a catalog can change.
#[derive(Clone)]
pub(crate) struct TaskConfig {
    pub(crate) task: TaskSpec,
    pub(crate) component: Component,
    pub(crate) sandbox: SessionConfig,
    pub(crate) durations: TxnDurations,
    pub(crate) document_bytes_max: usize,
    pub(crate) schedule: Option<CompiledSchedule>,
    /// What is done about documents that cannot be stored, by resource. Not a part of
    /// the spec: where an older spec has work left, today's word counts.
    pub(crate) on_error: BTreeMap<Vec<String>, OnError>,
}

impl TaskConfig {
    pub(crate) fn name(&self) -> &str {
        &self.task.spec.task
    }

    /// Says whether a session of the one is a session of the other: a task whose
    /// config did not change goes on undisturbed.
    pub(crate) fn is_same(&self, other: &TaskConfig) -> bool {
        // All of them are named, so that what is added is not forgotten here.
        let TaskConfig {
            task,
            component,
            sandbox,
            durations,
            document_bytes_max,
            schedule,
            on_error,
        } = self;
        *task == other.task
            && component.is_same(&other.component)
            && sandbox.limits == other.sandbox.limits
            && sandbox.grants == other.sandbox.grants
            && *durations == other.durations
            && *document_bytes_max == other.document_bytes_max
            && *schedule == other.schedule
            && *on_error == other.on_error
    }
}
