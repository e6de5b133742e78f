//! The sections of one file.

use super::fields::{Context, Field, Fields};
use super::value::check_name;
use super::{Draft, NotRun, Reference};
use crate::diagnostic::{Code, Report, Spot};
use crate::load::{Files, Node, join};
use std::path::Path;

/// Reads the sections of one file into `draft`.
pub(crate) fn read_catalog(
    path: &Path,
    tree: &Node,
    draft: &mut Draft,
    files: &mut Files<'_>,
    report: &mut Report,
) {
    let mut context = Context {
        path,
        files,
        report,
    };
    if tree.is_null() {
        return;
    }
    let root = Field {
        node: tree,
        pointer: String::new(),
        key_span: tree.span,
    };
    let Some(mut fields) = context.object(&root) else {
        return;
    };
    let collections = fields.get("collections");
    let materializations = fields.get("materializations");
    let (captures, tests) = (fields.get("captures"), fields.get("tests"));
    fields.tolerate(&["$schema", "import", "storageMappings"]);
    for key in ["$defs", "type", "properties"] {
        let Some(field) = fields.former(key) else {
            continue;
        };
        let message = format!("this is a JSON schema, not a catalog: it has \"{key}\"");
        context
            .add(Code::WrongType, &field.key_spot(), message)
            .help("name the file where a collection has its \"schema\", not as a catalog");
    }
    let old = old_syntax(&mut fields, materializations.as_ref());
    fields.close(&mut context);

    if let Some(spot) = &old {
        context
            .add(
                Code::OldSyntax,
                spot,
                "this catalog is written in the syntax of 2021, so its materializations cannot be read",
            )
            .help(
                "write \"materializations: {NAME: {endpoint: {connector: {image, config}}, bindings: [{source, resource}]}}\", with the configuration of each of \"endpoints\" where it is used",
            );
    }
    for (name, field) in collections.map_or(Vec::new(), |it| context.named(&it)) {
        if context.defines("collection", name, &field, draft) {
            let collection = context.collection(name, &field, &mut draft.references);
            draft.collections.insert(name.to_owned(), collection);
        }
    }
    if old.is_none() {
        for (name, field) in materializations.map_or(Vec::new(), |it| context.named(&it)) {
            if context.defines("materialization", name, &field, draft) {
                let task = context.task(name, &field);
                draft.tasks.insert(name.to_owned(), task);
            }
        }
    }
    for (name, field) in captures.map_or(Vec::new(), |it| context.named(&it)) {
        if context.defines("capture", name, &field, draft) {
            context.capture(name, &field, draft);
        }
    }
    for (name, field) in tests.map_or(Vec::new(), |it| context.named(&it)) {
        if context.defines("test", name, &field, draft) {
            context.test(name, &field, draft);
        }
    }
}

/// Returns the place that shows that a catalog is of another time.
fn old_syntax(fields: &mut Fields<'_>, materializations: Option<&Field<'_>>) -> Option<Spot> {
    let list = materializations.filter(|it| it.node.list().is_some());
    let endpoints = fields.former("endpoints").map(|it| it.key_spot());
    endpoints.or(list.map(Field::key_spot))
}

impl Context<'_, '_> {
    /// Checks a name, and whether it is free.
    fn defines(&mut self, kind: &str, name: &str, field: &Field<'_>, draft: &Draft) -> bool {
        let spot = field.key_spot();
        if let Err(message) = check_name(name) {
            self.add(
                Code::InvalidName,
                &spot,
                format!("\"{name}\" cannot name a {kind}: {message}"),
            );
        }
        let same = |other: &Spot| Some(other.clone());
        let first = if kind == "collection" {
            draft.collections.get(name).and_then(|it| same(&it.spot))
        } else {
            // Tasks of all kinds share one namespace: sync-now takes any of them by name alone.
            let task = draft.tasks.get(name).and_then(|it| same(&it.spot));
            task.or_else(|| draft.not_run.get(name).and_then(|it| same(&it.spot)))
        };
        let Some(first) = first else { return true };
        self.related(
            Code::DuplicateName,
            &spot,
            format!("the name \"{name}\" is defined twice"),
            (&first, "it is defined here first"),
        )
        .help("rename or remove one of the two");
        false
    }

    fn capture(&mut self, name: &str, field: &Field<'_>, draft: &mut Draft) {
        let spot = field.key_spot();
        let message =
            format!("capture \"{name}\" is not run here: documents must come from elsewhere");
        self.add(Code::NotRun, &spot, message);
        let kind = "capture";
        draft.not_run.insert(name.to_owned(), NotRun { kind, spot });
        let Some(mut fields) = self.object(field) else {
            return;
        };
        let bindings = fields.get("bindings");
        fields.tolerate(&[
            "autoDiscover",
            "delete",
            "endpoint",
            "expectPubId",
            "interval",
            "redactSalt",
            "reset",
            "shards",
        ]);
        fields.close(self);
        let bindings = bindings.and_then(|it| self.list(&it)).unwrap_or_default();
        for binding in bindings {
            let Some(target) = binding.node.get("target") else {
                continue;
            };
            if let Some(collection) = target.text() {
                draft.references.push(Reference {
                    collection: collection.to_owned(),
                    spot: Spot::new(join(&binding.pointer, "target"), target.span),
                    by: format!("capture \"{name}\""),
                });
            }
        }
    }

    fn test(&mut self, name: &str, field: &Field<'_>, draft: &mut Draft) {
        let spot = field.key_spot();
        self.add(
            Code::NotRun,
            &spot,
            format!("test \"{name}\" is not run here"),
        );
        let kind = "test";
        draft.not_run.insert(name.to_owned(), NotRun { kind, spot });
        // Steps are a list, or an object with the list as "steps".
        let steps = field.node.get("steps").unwrap_or(field.node);
        for (position, step) in steps.list().unwrap_or_default().iter().enumerate() {
            for entry in step.entries() {
                let Some(collection) = entry.value.get("collection") else {
                    continue;
                };
                let named = collection.get("name").unwrap_or(collection);
                if let Some(text) = named.text() {
                    draft.references.push(Reference {
                        collection: text.to_owned(),
                        spot: Spot::new(
                            format!("{}/{position}/{}/collection", field.pointer, entry.key),
                            named.span,
                        ),
                        by: format!("test \"{name}\""),
                    });
                }
            }
        }
    }
}
