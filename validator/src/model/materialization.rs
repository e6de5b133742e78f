//! Materializations: what runs them, what they read, and what they select.

use super::Located;
use super::fields::{Context, Field, Fields};
use super::near::{component_of_image, nearest};
use super::schedule::WrittenSchedule;
use super::settings::{Allow, ComponentRef, Limits, Shards};
use super::value;
use crate::diagnostic::{Code, Severity, Spot};
use crate::load::{Kind, Node, Span, files};

/// Levels of nesting that "all of them" stands for.
const ALL_LEVELS: u32 = u32::MAX;

/// A materialization.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) name: String,
    /// The place of its name.
    pub(crate) spot: Spot,
    pub(crate) endpoint: Endpoint,
    pub(crate) bindings: Vec<Binding>,
    pub(crate) shards: Shards,
    pub(crate) schedule: Option<WrittenSchedule>,
    pub(crate) on_incompatible: OnIncompatible,
    /// The object, and its first field's key.
    pub(crate) body: (Span, Option<Span>),
    /// Whether a mistake left something out, so that what is here is not what was meant.
    pub(crate) broken: bool,
}

/// What runs a materialization.
#[derive(Debug, Clone)]
pub(crate) enum Endpoint {
    Runnable(Box<Runnable>),
    /// A kind that Tidegate does not run, or a mistake that is reported.
    NotRunnable,
}

/// A connector and its configuration.
#[derive(Debug, Clone)]
pub(crate) struct Runnable {
    pub(crate) component: ComponentRef,
    /// The place of the component or image.
    pub(crate) spot: Spot,
    pub(crate) config: Node,
    pub(crate) config_pointer: String,
    pub(crate) limits: Limits,
    pub(crate) allow: Allow,
}

/// One collection into one resource.
#[derive(Debug, Clone)]
pub(crate) struct Binding {
    /// The place of the whole binding.
    pub(crate) spot: Spot,
    pub(crate) source: Located<String>,
    pub(crate) not_before: Option<i64>,
    pub(crate) not_after: Option<i64>,
    pub(crate) resource: Node,
    pub(crate) resource_pointer: String,
    pub(crate) selection: Selection,
    pub(crate) disable: bool,
    pub(crate) backfill: u32,
    pub(crate) backfill_spot: Spot,
    pub(crate) hard_delete: Option<bool>,
    pub(crate) priority: u32,
    pub(crate) on_incompatible: Option<OnIncompatible>,
    pub(crate) on_error: OnError,
}

/// Which fields a binding wants.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    pub(crate) spot: Spot,
    /// Levels of nesting down to which recommended fields are taken.
    pub(crate) recommended_depth: u32,
    pub(crate) include: Vec<Located<String>>,
    pub(crate) exclude: Vec<Located<String>>,
    pub(crate) group_by: Vec<Located<String>>,
}

/// What to do when a change cannot be applied to what the destination holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum OnIncompatible {
    #[default]
    Backfill,
    DisableBinding,
    DisableTask,
    Abort,
}

const ON_INCOMPATIBLE: [(&str, OnIncompatible); 4] = [
    ("backfill", OnIncompatible::Backfill),
    ("disableBinding", OnIncompatible::DisableBinding),
    ("disableTask", OnIncompatible::DisableTask),
    ("abort", OnIncompatible::Abort),
];

/// What to do about a document that cannot be stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnError {
    /// The task fails.
    #[default]
    Halt,
    /// The document is left out, and counted.
    Skip,
    /// It is left out, counted, and kept in a collection of its own.
    DeadLetter,
}

const ON_ERROR: [(&str, OnError); 3] = [
    ("halt", OnError::Halt),
    ("skip", OnError::Skip),
    ("deadLetter", OnError::DeadLetter),
];

impl Context<'_, '_> {
    pub(super) fn task(&mut self, name: &str, field: &Field<'_>) -> Task {
        let before = self.report.count();
        let mut task = Task {
            name: name.to_owned(),
            spot: field.key_spot(),
            endpoint: Endpoint::NotRunnable,
            bindings: Vec::new(),
            shards: Shards::default(),
            schedule: None,
            on_incompatible: OnIncompatible::default(),
            body: (
                field.node.span,
                field.node.entries().first().map(|it| it.key_span),
            ),
            broken: false,
        };
        if let Some(fields) = self.object(field) {
            self.task_fields(&mut task, fields);
        }
        task.broken = self.report.has_errors_since(before);
        task
    }

    fn task_fields(&mut self, task: &mut Task, mut fields: Fields<'_>) {
        let (endpoint, bindings) = (fields.get("endpoint"), fields.get("bindings"));
        let (shards, schedule) = (fields.get("shards"), fields.get("syncSchedule"));
        let on_incompatible = fields.get("onIncompatibleSchemaChange");
        let not_run: Vec<_> = ["source", "sourceCapture", "triggers"]
            .into_iter()
            .filter_map(|key| Some((key, fields.get(key)?)))
            .collect();
        // Housekeeping of the place that a catalog is published to.
        fields.tolerate(&["expectPubId", "delete", "reset", "redactSalt"]);
        fields.close(self);

        match endpoint {
            Some(endpoint) => task.endpoint = self.endpoint(&endpoint, &task.name),
            None => {
                let message = format!("materialization \"{}\" has no endpoint", task.name);
                self.add(Code::MissingField, &task.spot, message).help(
                    "add \"endpoint\" with \"wasm: {component, config}\" or \"connector: {image, config}\"",
                );
            }
        }
        if let Some(bindings) = bindings {
            let items = self.list(&bindings).unwrap_or_default();
            task.bindings = items.iter().filter_map(|it| self.binding(it)).collect();
            if items.is_empty() && bindings.node.list().is_some() {
                self.no_bindings(task, &bindings.spot());
            }
        } else {
            self.no_bindings(task, &task.spot.clone());
        }
        if let Some(shards) = shards {
            task.shards = self.shards(&shards);
        }
        task.schedule = schedule.map(|schedule| self.sync_schedule(&schedule));
        if let Some(field) = on_incompatible {
            task.on_incompatible = self.on_incompatible(&field).unwrap_or_default();
        }
        for (key, field) in not_run {
            let message = format!("\"{key}\" has no effect here");
            self.add(Code::NotRun, &field.key_spot(), message);
        }
    }

    fn no_bindings(&mut self, task: &Task, spot: &Spot) {
        let message = format!("materialization \"{}\" has no bindings", task.name);
        self.add(Code::NoBindings, spot, message)
            .help("add a list \"bindings\" of {source, resource}, or remove the materialization");
    }

    fn endpoint(&mut self, field: &Field<'_>, task: &str) -> Endpoint {
        let Some(mut fields) = self.object(field) else {
            return Endpoint::NotRunnable;
        };
        let (wasm, connector) = (fields.get("wasm"), fields.get("connector"));
        let other = ["local", "dekaf"]
            .into_iter()
            .find_map(|key| Some((key, fields.get(key)?)));
        let spot = fields.spot();
        fields.close(self);
        match (wasm, connector, other) {
            (Some(wasm), None, None) => self.runnable(&wasm, "component"),
            (None, Some(connector), None) => self.runnable(&connector, "image"),
            (None, None, Some((key, other))) => {
                let message = format!(
                    "\"{task}\" has an endpoint of kind \"{key}\", which does not run here; rules that need its connector are skipped"
                );
                self.add(Code::NotRun, &other.key_spot(), message)
                    .help("use \"wasm\" with a component, or \"connector\" with an image");
                Endpoint::NotRunnable
            }
            (None, None, None) => {
                self.add(Code::MissingField, &spot, "the endpoint names no connector")
                    .help("write \"wasm: {component, config}\" or \"connector: {image, config}\"");
                Endpoint::NotRunnable
            }
            _ => {
                self.add(
                    Code::InvalidValue,
                    &spot,
                    "the endpoint names more than one connector",
                )
                .help("keep one of \"wasm\", \"connector\", \"local\" and \"dekaf\"");
                Endpoint::NotRunnable
            }
        }
    }

    fn runnable(&mut self, field: &Field<'_>, names_it: &'static str) -> Endpoint {
        let Some(mut fields) = self.object(field) else {
            return Endpoint::NotRunnable;
        };
        let (named, config) = (fields.get(names_it), fields.get("config"));
        let (limits, allow) = (fields.get("limits"), fields.get("allow"));
        let empty_config = Node {
            kind: Kind::Object(Vec::new()),
            span: field.key_span,
        };
        let config_pointer = crate::load::join(&field.pointer, "config");
        let spot = fields.spot();
        fields.close(self);
        let config = match config {
            Some(config) => self.config(&config),
            None => Some(empty_config),
        };
        let limits = limits.map(|it| self.limits(&it)).unwrap_or_default();
        let allow = allow.map(|it| self.allow(&it)).unwrap_or_default();
        let Some(named) = named else {
            self.add(
                Code::MissingField,
                &spot,
                format!("the endpoint has no {names_it}"),
            )
            .help(format!("add \"{names_it}\""));
            return Endpoint::NotRunnable;
        };
        let Some(text) = self.text(&named) else {
            return Endpoint::NotRunnable;
        };
        let component = match names_it {
            "image" => ComponentRef::Name(component_of_image(text).to_owned()),
            _ => ComponentRef::read(self, text),
        };
        if matches!(&component, ComponentRef::Name(name) if name.is_empty()) {
            let message = format!("\"{text}\" names no connector");
            self.add(Code::InvalidValue, &named.spot(), message);
            return Endpoint::NotRunnable;
        }
        let Some(config) = config else {
            return Endpoint::NotRunnable;
        };
        Endpoint::Runnable(Box::new(Runnable {
            component,
            spot: named.spot(),
            config,
            config_pointer,
            limits,
            allow,
        }))
    }

    /// Reads a configuration, which may be the path of a file whose values are then kept out of what is shown.
    fn config(&mut self, field: &Field<'_>) -> Option<Node> {
        let node = match field.node.text() {
            Some(text) if files::is_remote(text) => {
                self.add(
                    Code::FileUnreadable,
                    &field.spot(),
                    "the config is not a local file, and nothing is fetched from elsewhere",
                )
                .help("download the file, and name it by its path");
                return None;
            }
            Some(text) => {
                let path = files::relative(self.path, text);
                match self.files.tree(&path, self.report) {
                    Ok(tree) => {
                        self.files.sources_mut().mask_config(&tree);
                        (*tree).clone()
                    }
                    Err(failed) => {
                        let spot = field.spot();
                        self.files
                            .report(failed, &path, "config", &spot, self.report);
                        return None;
                    }
                }
            }
            None => field.node.clone(),
        };
        if !node.is_object() {
            let message = format!(
                "a config is an object, or the path of a file that holds one, not {}",
                node.type_name()
            );
            let spot = Spot::new(&field.pointer, node.span);
            self.add(Code::WrongType, &spot, message);
            return None;
        }
        Some(node)
    }

    fn on_incompatible(&mut self, field: &Field<'_>) -> Option<OnIncompatible> {
        self.one_of(field, &ON_INCOMPATIBLE, "handle an incompatible change")
    }

    fn on_error(&mut self, field: &Field<'_>) -> Option<OnError> {
        self.one_of(field, &ON_ERROR, "handle a document that cannot be stored")
    }

    /// Reads a name that stands for one of some ways to do something.
    fn one_of<T: Copy>(
        &mut self,
        field: &Field<'_>,
        values: &[(&'static str, T)],
        what: &str,
    ) -> Option<T> {
        let text = self.text(field)?;
        if let Some((_, value)) = values.iter().find(|(name, _)| *name == text) {
            return Some(*value);
        }
        let names: Vec<_> = values.iter().map(|(name, _)| *name).collect();
        let help = match nearest(text, names.iter().copied()) {
            Some(name) => format!("did you mean \"{name}\"?"),
            None => format!("write one of {}", names.join(", ")),
        };
        let message = format!("\"{text}\" is not a way to {what}");
        self.add(Code::InvalidValue, &field.spot(), message)
            .help(help);
        None
    }

    fn binding(&mut self, field: &Field<'_>) -> Option<Binding> {
        let mut fields = self.object(field)?;
        let spot = fields.spot();
        let (source, resource) = (fields.get("source"), fields.get("resource"));
        let selection = fields.get("fields");
        let (disable, backfill) = (fields.get("disable"), fields.get("backfill"));
        let (hard_delete, priority) = (fields.get("hardDelete"), fields.get("priority"));
        let on_incompatible = fields.get("onIncompatibleSchemaChange");
        let on_error = fields.get("onError");
        fields.close(self);

        let backfill_spot = backfill.as_ref().map_or(spot.clone(), Field::spot);
        let selection = self.selection(selection, &spot);
        let disable = disable.and_then(|it| self.boolean(&it)).unwrap_or(false);
        let backfill = backfill.and_then(|it| self.natural(&it)).unwrap_or(0);
        let hard_delete = hard_delete.and_then(|it| self.boolean(&it));
        let priority = priority.and_then(|it| self.natural(&it)).unwrap_or(0);
        let on_incompatible = on_incompatible.and_then(|it| self.on_incompatible(&it));
        let on_error = on_error.and_then(|it| self.on_error(&it));
        let resource = resource.and_then(|it| {
            self.object(&it)?;
            Some(it)
        });
        if resource.is_none() && field.node.get("resource").is_none_or(Node::is_null) {
            self.add(Code::MissingField, &spot, "the binding has no resource")
                .help("add \"resource\", such as {table: my_table}");
        }
        let Some(source) = source else {
            self.add(Code::MissingField, &spot, "the binding has no source")
                .help("add \"source\", the name of a collection");
            return None;
        };
        let (source, not_before, not_after) = self.source(&source)?;
        let resource = resource?;
        Some(Binding {
            spot,
            source,
            not_before,
            not_after,
            resource: resource.node.clone(),
            resource_pointer: resource.pointer,
            selection,
            disable,
            backfill,
            backfill_spot,
            hard_delete,
            priority,
            on_incompatible,
            on_error: on_error.unwrap_or_default(),
        })
    }

    fn source(&mut self, field: &Field<'_>) -> Option<(Located<String>, Option<i64>, Option<i64>)> {
        if !field.node.is_object() {
            let value = self.text(field)?.to_owned();
            let spot = field.spot();
            return Some((Located { value, spot }, None, None));
        }
        let mut fields = self.object(field)?;
        let spot = fields.spot();
        let name = fields.get("name");
        let (before, after) = (fields.get("notBefore"), fields.get("notAfter"));
        let partitions = fields.get("partitions");
        fields.close(self);
        if let Some(partitions) = partitions {
            self.add(
                Code::Unsupported,
                &partitions.key_spot(),
                "partition selectors are not supported: every document of the collection would be materialized",
            )
            .help("split the collection, or remove \"partitions\" to take all of it");
        }
        let (before_spot, after_spot) = (
            before.as_ref().map(Field::spot),
            after.as_ref().map(Field::spot),
        );
        let not_before = self.parsed(before, value::instant);
        let not_after = self.parsed(after, value::instant);
        if let (Some(from), Some(until)) = (not_before, not_after)
            && from >= until
            && let (Some(before), Some(after)) = (before_spot, after_spot)
        {
            self.related(
                Code::InvalidValue,
                &after,
                "notAfter is not later than notBefore, so no document is read",
                (&before, "notBefore is set here"),
            );
        }
        let Some(name) = name else {
            self.add(Code::MissingField, &spot, "the source has no name")
                .help("add \"name\", the name of a collection");
            return None;
        };
        let value = self.text(&name)?.to_owned();
        let spot = name.spot();
        Some((Located { value, spot }, not_before, not_after))
    }

    fn selection(&mut self, field: Option<Field<'_>>, binding: &Spot) -> Selection {
        let mut selection = Selection {
            spot: binding.clone(),
            recommended_depth: ALL_LEVELS,
            include: Vec::new(),
            exclude: Vec::new(),
            group_by: Vec::new(),
        };
        let Some(field) = field else { return selection };
        selection.spot = field.key_spot();
        let Some(mut fields) = self.object(&field) else {
            return selection;
        };
        let recommended = fields.get("recommended");
        let (include, require) = (fields.get("include"), fields.get("require"));
        let (exclude, group_by) = (fields.get("exclude"), fields.get("groupBy"));
        fields.close(self);
        if let Some(recommended) = recommended {
            selection.recommended_depth = match recommended.node.kind {
                Kind::Bool(true) => ALL_LEVELS,
                Kind::Bool(false) => 0,
                Kind::Number(_) => self.natural(&recommended).unwrap_or(ALL_LEVELS),
                _ => {
                    self.wrong_type(&recommended, "true, false or a number of levels");
                    ALL_LEVELS
                }
            };
        }
        for included in [include, require].into_iter().flatten() {
            if !included.node.is_object() {
                self.wrong_type(&included, "an object")
                    .help("write a field as \"name: {}\"");
                continue;
            }
            for (name, settings) in self.named(&included) {
                if !settings.node.entries().is_empty() {
                    self.add(
                        Code::NotRun,
                        &settings.spot(),
                        format!("the settings of field \"{name}\" have no effect: connectors here decide by its schema"),
                    )
                    .severity(Severity::Warning)
                    .help(format!("write \"{name}: {{}}\""));
                }
                selection.include.push(Located {
                    value: name.to_owned(),
                    spot: settings.key_spot(),
                });
            }
        }
        selection.exclude = self.names(exclude);
        selection.group_by = self.names(group_by);
        selection
    }

    fn names(&mut self, field: Option<Field<'_>>) -> Vec<Located<String>> {
        let items = field.and_then(|it| self.list(&it)).unwrap_or_default();
        items
            .iter()
            .filter_map(|item| {
                Some(Located {
                    value: self.text(item)?.to_owned(),
                    spot: item.spot(),
                })
            })
            .collect()
    }
}
