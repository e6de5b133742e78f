//! The live catalog against the draft: what the destination holds, and what it would have to hold.

use super::fields::Selected;
use crate::diagnostic::{Code, Report, Severity};
use crate::load::Sources;
use crate::model::{Binding, OnIncompatible, Task};
use tidegate_wit::message::{Spec, SpecBinding};

/// What becomes of a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It goes on, with this backfill counter.
    Keep { backfill: u32 },
    /// It is left out.
    Disable,
    /// The whole task is.
    DisableTask,
}

/// Reports changes of a binding that the destination cannot follow, and says what becomes of it.
pub(crate) fn evolve(
    task: &Task,
    binding: &Binding,
    resource_path: &[String],
    selected: &Selected,
    last: Option<&Spec>,
    sources: &Sources,
    report: &mut Report,
) -> Verdict {
    let last = last.and_then(|spec| {
        let mut bindings = spec.bindings.iter();
        bindings.find(|it| it.resource_path == resource_path)
    });
    if let Some(last) = last
        && binding.backfill < last.backfill
    {
        report
            .add(
                sources,
                Code::BackfillLowered,
                &binding.backfill_spot,
                format!(
                    "the backfill counter goes down from {} to {}, and it only ever goes up",
                    last.backfill, binding.backfill
                ),
            )
            .help(format!("write \"backfill: {}\"", last.backfill));
    }
    let raised = last.is_some_and(|last| binding.backfill > last.backfill);
    let keep = Verdict::Keep {
        backfill: binding.backfill,
    };
    let reasons = reasons(selected, last);
    if reasons.is_empty() || raised {
        return keep;
    }
    let policy = binding.on_incompatible.unwrap_or(task.on_incompatible);
    let path = format!("\"{}\"", resource_path.join("."));
    let reasons = reasons.join("; ");
    let backfill = last
        .map_or(binding.backfill, |it| it.backfill)
        .saturating_add(1);
    let by_hand = format!("to make {path} anew, write \"backfill: {backfill}\"");
    let (code, severity, message, verdict) = match policy {
        OnIncompatible::Backfill => (
            Code::BackfillNeeded,
            Severity::Warning,
            format!("{path} is made anew and backfilled: {reasons}"),
            Verdict::Keep { backfill },
        ),
        OnIncompatible::DisableBinding => (
            Code::IncompatibleChange,
            Severity::Warning,
            format!("the binding is disabled: {reasons}"),
            Verdict::Disable,
        ),
        OnIncompatible::DisableTask => (
            Code::IncompatibleChange,
            Severity::Warning,
            format!("the task \"{}\" is disabled: {reasons}", task.name),
            Verdict::DisableTask,
        ),
        OnIncompatible::Abort => (
            Code::IncompatibleChange,
            Severity::Error,
            format!("{path} cannot follow the change: {reasons}"),
            keep,
        ),
    };
    report
        .add(sources, code, &binding.spot, message)
        .severity(severity)
        .help(by_hand);
    verdict
}

fn reasons(selected: &Selected, last: Option<&SpecBinding>) -> Vec<String> {
    let mut reasons = Vec::new();
    if let Some(last) = last {
        let key = |projections: &[tidegate_wit::message::Projection]| {
            let fields: Vec<_> = projections.iter().map(|it| it.field.clone()).collect();
            fields.join(", ")
        };
        let (old, new) = (key(&last.key), key(&selected.key));
        if old != new {
            reasons.push(format!("its key changes from ({old}) to ({new})"));
        }
    }
    for (field, reason) in &selected.incompatible {
        let reason = if reason.is_empty() {
            "it cannot be held as before"
        } else {
            reason
        };
        reasons.push(format!("the field \"{field}\": {reason}"));
    }
    reasons
}
