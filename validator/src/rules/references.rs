//! Whether what is named exists, and whether no two bindings write to one resource.

use crate::diagnostic::{Code, Report, Spot};
use crate::load::Sources;
use crate::model::{Draft, Names, Task};
use std::collections::BTreeMap;

/// Reports references to collections that do not exist.
pub(crate) fn check_references(draft: &Draft, report: &mut Report) {
    let names = Names::new(draft.collections.keys().map(String::as_str));
    let mut skipped = 0;
    let mut check = |name: &str, spot: &Spot, by: &str| {
        if names.contains(name) {
            return;
        }
        let help = names.did_you_mean(name);
        // The collection may well be defined in a file that could not be read, which is reported already.
        if draft.incomplete > 0 && help.is_none() {
            skipped += 1;
            return;
        }
        let message = format!("{by} names the collection \"{name}\", which does not exist");
        let help = help.unwrap_or_else(|| {
            "define it under \"collections\", or import the file that does".to_owned()
        });
        report
            .add(draft.sources(), Code::UnknownCollection, spot, message)
            .help(help);
    };
    for task in draft.tasks.values() {
        for binding in &task.bindings {
            let by = format!("materialization \"{}\"", task.name);
            check(&binding.source.value, &binding.source.spot, &by);
        }
    }
    for reference in &draft.references {
        check(&reference.collection, &reference.spot, &reference.by);
    }
    if skipped > 0 {
        let (are, is) = if skipped == 1 {
            ("reference", "was")
        } else {
            ("references", "were")
        };
        report.push(crate::Diagnostic::without_place(
            Code::ReferencesSkipped,
            format!(
                "{skipped} {are} to collections {is} not checked, because files that may define them could not be read"
            ),
        ));
    }
}

/// Reports bindings of a task that write to the same resource; `paths` is what the connector calls the resources, or
/// the resources themselves where there is no connector to ask.
pub(crate) fn check_resources(
    task: &Task,
    active: &[usize],
    paths: &[String],
    sources: &Sources,
    report: &mut Report,
) {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (position, path) in active.iter().zip(paths) {
        let binding = &task.bindings[*position];
        let spot = Spot::new(&binding.resource_pointer, binding.resource.span);
        match seen.get(path.as_str()) {
            None => {
                seen.insert(path, *position);
            }
            Some(first) => {
                let first = &task.bindings[*first];
                let message = format!("two bindings of \"{}\" write to {path}", task.name);
                report
                    .add(sources, Code::DuplicateResource, &spot, message)
                    .related(
                        sources,
                        &Spot::new(&first.resource_pointer, first.resource.span),
                        "the other binding is here",
                    )
                    .help("give each binding a resource of its own, or disable one of the two");
            }
        }
    }
}
