//! The live catalog against the draft, where no connector says what its destination holds.
//!
//! What both catalogs say of a binding is compared: its key, and its backfill counter. Whether a column can change its
//! type is the connector's knowledge, and is left out.

use super::evolution::evolve;
use super::fields::Selected;
use crate::diagnostic::Report;
use crate::model::{Binding, Collection, Draft, Resolved, Task};
use serde_json::Value;
use tidegate_wit::message::{JsonType, Projection, Spec, SpecBinding};

/// Reports changes of a task's bindings that no destination can follow.
pub(crate) fn compare_written(draft: &Draft, live: &Draft, task: &Task, report: &mut Report) {
    let Some(before) = live.tasks.get(&task.name) else {
        return;
    };
    for binding in task.bindings.iter().filter(|it| !it.disable) {
        let path = path(binding);
        let mut bindings = before.bindings.iter().filter(|it| !it.disable);
        let Some(last) = bindings.find(|it| self::path(it) == path) else {
            continue;
        };
        let (Some(new), Some(old)) = (key(draft, binding), key(live, last)) else {
            continue;
        };
        let selected = Selected {
            incompatible: changed_types(&old, &new),
            key: new,
            ..Selected::default()
        };
        let last = Spec {
            task: task.name.clone(),
            config: Value::Null,
            bindings: vec![SpecBinding {
                collection: last.source.value.clone(),
                resource: last.resource.to_value(),
                resource_path: path.clone(),
                delta_updates: false,
                backfill: last.backfill,
                key: old,
                values: Vec::new(),
                document: None,
            }],
            sync_schedule: None,
        };
        let sources = draft.sources();
        evolve(
            task,
            binding,
            &path,
            &selected,
            Some(&last),
            sources,
            report,
        );
    }
}

/// Returns what most likely names a resource: its texts, such as a schema and a table.
fn path(binding: &Binding) -> Vec<String> {
    let fields = binding.resource.entries().iter();
    let texts: Vec<_> = fields
        .filter_map(|it| it.value.text())
        .filter(|it| !it.is_empty())
        .map(str::to_owned)
        .collect();
    match texts.is_empty() {
        true => vec![binding.resource.to_value().to_string()],
        false => texts,
    }
}

/// Returns the fields that tell a binding's rows apart; nothing where the catalog does not know them.
fn key(draft: &Draft, binding: &Binding) -> Option<Vec<Projection>> {
    let collection: &Collection = draft.collections.get(&binding.source.value)?;
    let resolved: &Resolved = collection.resolved.as_ref()?;
    let of_group = binding.selection.group_by.iter().map(|field| {
        let position = *resolved.by_field.get(&field.value)?;
        resolved.projections.get(position).cloned()
    });
    let of_collection = collection.key.iter().map(|pointer| {
        let mut projections = resolved.projections.iter();
        projections.find(|it| it.pointer == pointer.value).cloned()
    });
    match binding.selection.group_by.is_empty() {
        true => of_collection.collect(),
        false => of_group.collect(),
    }
}

/// Returns the parts of a key that change their type, with the reason that this is a change.
fn changed_types(old: &[Projection], new: &[Projection]) -> Vec<(String, String)> {
    let shown = |types: &[JsonType]| {
        let names = types.iter().filter(|it| **it != JsonType::Null);
        let names: Vec<_> = names
            .map(|it| serde_json::to_value(it).expect("a type can be written"))
            .map(|it| it.as_str().unwrap_or_default().to_owned())
            .collect();
        names.join(" or ")
    };
    old.iter()
        .zip(new)
        .filter(|(old, new)| old.field == new.field && shown(&old.types) != shown(&new.types))
        .map(|(old, new)| {
            let reason = format!(
                "it is a part of the key, and changes from {} to {}",
                shown(&old.types),
                shown(&new.types)
            );
            (new.field.clone(), reason)
        })
        .collect()
}
