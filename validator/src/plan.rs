//! What connectors are asked, and what their answers make of a draft.
//!
//! ```text
//! round 1: Request::Spec for each connector   -> config and resource schemas
//! round 2: Request::Validate for each task whose configuration is good -> resource paths, constraints
//! then:    nothing is left to ask, and finish says everything
//! ```
//!
//! A connector that cannot be asked is an answer too: the rules that need it are skipped, and said to be.

use crate::diagnostic::{Code, Diagnostic, Report, Spot};
use crate::model::{
    Allow, ComponentRef, Draft, Endpoint, Limits, OnError, Resolved, Runnable, Shards, Task,
    did_you_mean,
};
use crate::rules::{
    CheckedConfig, Schemas, Selecting, Verdict, check_config, check_keys, check_over, check_pacing,
    check_references, check_resources, compare_written, evolve, select,
};
use serde_json::Value;
use std::collections::BTreeMap;
use tidegate_schedule::CompiledSchedule;
use tidegate_wit::message::{
    Projection, Spec, SpecBinding, SpecResponse, ValidateBinding, ValidateRequest, ValidateResponse,
};

/// A question to a connector.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// What the connector is: answered in [`Answers::specs`].
    Spec {
        /// The connector.
        component: ComponentRef,
    },
    /// Whether and how a task's bindings can be held: answered in [`Answers::validated`].
    Validate {
        /// The connector.
        component: ComponentRef,
        /// The message; it names the task.
        request: Box<ValidateRequest>,
        /// What the connector may reach while it answers, if the caller lets it reach anything.
        allow: Allow,
        /// The connector's bounds.
        limits: Limits,
    },
}

/// Why a connector gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectorFault {
    /// There is no such connector among `known`: an error.
    Unknown {
        /// Names that there are.
        known: Vec<String>,
    },
    /// It was not asked, for this reason: the rules that need it are skipped.
    Skipped {
        /// A clause such as "no connectors were given".
        reason: String,
    },
    /// It answered that it cannot: an error of the catalog.
    Refused {
        /// Its words.
        message: String,
        /// The binding that it speaks of, as a position in the request.
        binding: Option<usize>,
    },
    /// It failed, or broke the protocol: an error of the connector.
    Failed {
        /// What happened.
        message: String,
    },
}

/// What connectors answered so far.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    /// By connector.
    pub specs: BTreeMap<ComponentRef, Result<SpecResponse, ConnectorFault>>,
    /// By task.
    pub validated: BTreeMap<String, Result<ValidateResponse, ConnectorFault>>,
}

/// A catalog that can run.
#[derive(Debug, Clone, Default)]
pub struct Built {
    /// Collections by name.
    pub collections: BTreeMap<String, BuiltCollection>,
    /// Materializations by name.
    pub tasks: BTreeMap<String, BuiltTask>,
    /// Names of what is not run, with its kind ("capture", "derivation", "test").
    pub not_run: BTreeMap<String, &'static str>,
}

/// A collection.
#[derive(Debug, Clone)]
pub struct BuiltCollection {
    /// Its name.
    pub name: String,
    /// Its JSON schema, complete in itself, `reduce` annotations included.
    pub schema: Value,
    /// JSON pointers of its key.
    pub key: Vec<String>,
    /// Every location that can be selected.
    pub projections: Vec<Projection>,
}

/// A materialization.
#[derive(Debug, Clone)]
pub struct BuiltTask {
    /// Its name.
    pub name: String,
    /// What runs it.
    pub component: ComponentRef,
    /// What the connector is told.
    pub spec: Spec,
    /// More of each binding, in the order of `spec.bindings`.
    pub bindings: Vec<BuiltBinding>,
    /// Bounds of the connector.
    pub limits: Limits,
    /// What the connector may reach.
    pub allow: Allow,
    /// How it runs.
    pub shards: Shards,
    /// When it commits; `None` is as fast as possible.
    pub sync_schedule: Option<CompiledSchedule>,
}

/// What the host knows of a binding and the connector does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltBinding {
    /// Documents published earlier are not read; microseconds since the Unix epoch.
    pub not_before: Option<i64>,
    /// Documents published at or after are not read; microseconds since the Unix epoch.
    pub not_after: Option<i64>,
    /// Whether a deletion removes the row.
    pub hard_delete: bool,
    /// Bindings of a higher priority are read first.
    pub priority: u32,
    /// What to do about a document that cannot be stored.
    pub on_error: OnError,
}

/// Returns what is to be asked; nothing is left to ask once it is empty.
pub fn plan(draft: &Draft, answers: &Answers) -> Vec<Request> {
    let mut requests: BTreeMap<&ComponentRef, Request> = BTreeMap::new();
    let mut validations = Vec::new();
    let mut schemas = Schemas::default();
    for task in draft.tasks.values() {
        let Endpoint::Runnable(runnable) = &task.endpoint else {
            continue;
        };
        let component = &runnable.component;
        match answers.specs.get(component) {
            None => {
                let spec = Request::Spec {
                    component: component.clone(),
                };
                requests.insert(component, spec);
            }
            Some(Err(_)) => {}
            Some(Ok(spec)) => {
                if !answers.validated.contains_key(&task.name)
                    && !task.broken
                    && configs(
                        draft,
                        task,
                        runnable,
                        spec,
                        &mut schemas,
                        &mut Report::default(),
                    )
                    && let Some(request) = validate_request(draft, task, runnable)
                {
                    validations.push(Request::Validate {
                        component: component.clone(),
                        request: Box::new(request),
                        allow: runnable.allow.clone(),
                        limits: runnable.limits.clone(),
                    });
                }
            }
        }
    }
    requests.into_values().chain(validations).collect()
}

/// Returns positions of bindings that are not disabled.
fn active(task: &Task) -> Vec<usize> {
    let bindings = task.bindings.iter().enumerate();
    let active = bindings.filter(|(_, binding)| !binding.disable);
    active.map(|(position, _)| position).collect()
}

fn resolved<'d>(draft: &'d Draft, collection: &str) -> Option<&'d Resolved> {
    draft.collections.get(collection)?.resolved.as_ref()
}

/// Returns the question about a task; `None` when there is nothing to ask, or a collection is not what it should be.
fn validate_request(draft: &Draft, task: &Task, runnable: &Runnable) -> Option<ValidateRequest> {
    let mut bindings = Vec::new();
    for position in active(task) {
        let binding = &task.bindings[position];
        let collection = draft.collections.get(&binding.source.value)?;
        let resolved = collection.resolved.as_ref()?;
        if collection.key.is_empty() {
            return None;
        }
        bindings.push(ValidateBinding {
            collection: collection.name.clone(),
            resource: binding.resource.to_value(),
            key: collection.key.iter().map(|it| it.value.clone()).collect(),
            projections: resolved.projections.clone(),
            backfill: binding.backfill,
        });
    }
    if bindings.is_empty() {
        return None;
    }
    Some(ValidateRequest {
        task: task.name.clone(),
        config: runnable.config.to_value(),
        bindings,
        last: draft.live.get(&task.name).cloned(),
    })
}

/// Checks config and resources of a task; returns whether they are good.
fn configs(
    draft: &Draft,
    task: &Task,
    runnable: &Runnable,
    spec: &SpecResponse,
    schemas: &mut Schemas,
    report: &mut Report,
) -> bool {
    let before = report.count();
    let config = CheckedConfig {
        component: &runnable.component,
        schema: &spec.config_schema,
        node: &runnable.config,
        pointer: &runnable.config_pointer,
        code: Code::ConfigInvalid,
    };
    let mut result = check_config(&config, schemas, draft.sources(), report);
    for binding in &task.bindings {
        let resource = CheckedConfig {
            component: &runnable.component,
            schema: &spec.resource_schema,
            node: &binding.resource,
            pointer: &binding.resource_pointer,
            code: Code::ResourceInvalid,
        };
        result = result.and_then(|()| check_config(&resource, schemas, draft.sources(), report));
    }
    if let Err(message) = result {
        report
            .add(
                draft.sources(),
                Code::ConnectorFailed,
                &runnable.spot,
                format!("a schema of {} is not valid: {message}", runnable.component),
            )
            .help("this is a fault of the connector: report it to its author");
    }
    !report.has_errors_since(before)
}

/// Returns everything that is wrong, and what can run if nothing is.
pub fn finish(draft: &Draft, answers: &Answers) -> (Option<Built>, Vec<Diagnostic>) {
    let mut report = Report::default();
    report.extend(&draft.report);
    check_references(draft, &mut report);
    check_keys(draft, &mut report);
    let mut finisher = Finisher {
        draft,
        answers,
        schemas: Schemas::default(),
        skipped: BTreeMap::new(),
        report,
        built: Built::default(),
    };
    for task in draft.tasks.values() {
        finisher.task(task);
    }
    finisher.skipped();
    finisher.collections();
    let Finisher { report, built, .. } = finisher;
    let good = !report.has_errors_since(0);
    (good.then_some(built), report.into_sorted())
}

struct Finisher<'d> {
    draft: &'d Draft,
    answers: &'d Answers,
    schemas: Schemas,
    /// Tasks of which rules were skipped, by connector, with the first task's place.
    skipped: BTreeMap<(&'d ComponentRef, &'d str), (usize, &'d Spot)>,
    report: Report,
    built: Built,
}

impl<'d> Finisher<'d> {
    fn task(&mut self, task: &'d Task) {
        let (draft, answers) = (self.draft, self.answers);
        if let Some(now) = draft.wall_millis {
            check_over(task, now, draft.sources(), &mut self.report);
        }
        let Endpoint::Runnable(runnable) = &task.endpoint else {
            self.resources(task);
            return;
        };
        let spec = answers.specs.get(&runnable.component);
        let good_spec = spec.and_then(|it| it.as_ref().ok());
        let config_is_bad = good_spec.is_some_and(|spec| {
            !configs(
                draft,
                task,
                runnable,
                spec,
                &mut self.schemas,
                &mut self.report,
            )
        });
        check_pacing(
            task,
            runnable,
            good_spec,
            config_is_bad,
            draft.sources(),
            &mut self.report,
        );
        match spec {
            None => {}
            Some(Err(fault)) => self.fault(task, runnable, fault),
            Some(Ok(spec)) => match answers.validated.get(&task.name) {
                Some(Ok(validated)) => return self.validated(task, runnable, spec, validated),
                Some(Err(fault)) => self.fault(task, runnable, fault),
                None if active(task).is_empty() && !task.broken => {
                    return self.build(task, runnable, Vec::new(), false);
                }
                None => {}
            },
        }
        self.resources(task);
    }

    /// Compares resources as they are written, where no connector said what they mean.
    fn resources(&mut self, task: &Task) {
        if let Some(live) = &self.draft.written_live {
            compare_written(self.draft, live, task, &mut self.report);
        }
        let active = active(task);
        let resources = active.iter().map(|position| {
            let value = task.bindings[*position].resource.to_value();
            format!("the resource {value}")
        });
        let resources: Vec<_> = resources.collect();
        let sources = self.draft.sources();
        check_resources(task, &active, &resources, sources, &mut self.report);
    }

    fn fault(&mut self, task: &Task, runnable: &'d Runnable, fault: &'d ConnectorFault) {
        let sources = self.draft.sources();
        let component = &runnable.component;
        match fault {
            ConnectorFault::Unknown { known } => {
                let help = did_you_mean(&component.to_string(), known.iter().map(String::as_str));
                let help = help.unwrap_or_else(|| match known.as_slice() {
                    [] => {
                        "no connectors are installed: name the directory that holds them".to_owned()
                    }
                    known => format!("installed are {}", known.join(", ")),
                });
                self.report
                    .add(
                        sources,
                        Code::UnknownComponent,
                        &runnable.spot,
                        format!("there is no connector {component}"),
                    )
                    .help(help);
            }
            ConnectorFault::Skipped { reason } => {
                let entry = self.skipped.entry((component, reason.as_str()));
                entry.or_insert((0, &runnable.spot)).0 += 1;
            }
            ConnectorFault::Refused { message, binding } => {
                let active = active(task);
                let position = binding.and_then(|it| active.get(it));
                let spot = match position {
                    Some(position) => &task.bindings[*position].spot,
                    None => &runnable.spot,
                };
                self.report.add(
                    sources,
                    Code::ConnectorRefused,
                    spot,
                    format!("{component} refuses \"{}\": {message}", task.name),
                );
            }
            ConnectorFault::Failed { message } => {
                self.report
                    .add(
                        sources,
                        Code::ConnectorFailed,
                        &runnable.spot,
                        format!("{component} failed: {message}"),
                    )
                    .help("this is a fault of the connector, or of the host that ran it");
            }
        }
    }

    fn skipped(&mut self) {
        let rules = match self.draft.written_live {
            Some(_) => "config, resources, fields, changes of columns",
            None => "config, resources, fields",
        };
        for ((component, reason), (count, spot)) in std::mem::take(&mut self.skipped) {
            let tasks = match count {
                1 => "one task".to_owned(),
                count => format!("{count} tasks"),
            };
            self.report.add(
                self.draft.sources(),
                Code::ConnectorSkipped,
                spot,
                format!("rules that need {component} were skipped for {tasks} ({rules}): {reason}"),
            );
        }
    }

    fn validated(
        &mut self,
        task: &'d Task,
        runnable: &Runnable,
        spec: &SpecResponse,
        validated: &ValidateResponse,
    ) {
        let (draft, sources) = (self.draft, self.draft.sources());
        let active = active(task);
        if validated.bindings.len() != active.len() {
            let message = format!(
                "{} answered for {} bindings of \"{}\", and was asked about {}",
                runnable.component,
                validated.bindings.len(),
                task.name,
                active.len()
            );
            let code = Code::ConnectorFailed;
            self.report.add(sources, code, &runnable.spot, message);
            return;
        }
        let paths = validated.bindings.iter();
        let paths: Vec<_> = paths.map(|it| it.resource_path.join(".")).collect();
        check_resources(task, &active, &paths, sources, &mut self.report);

        let hard_delete = spec
            .hard_delete_pointer
            .as_ref()
            .and_then(|pointer| runnable.config.at(pointer)?.boolean())
            .unwrap_or(false);
        let last = draft.live.get(&task.name);
        let mut bindings = Vec::new();
        let mut disable = false;
        for (position, answer) in active.iter().zip(&validated.bindings) {
            let binding = &task.bindings[*position];
            let collection = draft.collections.get(&binding.source.value);
            let (Some(collection), Some(resolved)) =
                (collection, resolved(draft, &binding.source.value))
            else {
                continue;
            };
            let selecting = Selecting {
                binding,
                collection,
                resolved,
                constraints: &answer.constraints,
                field_bytes_max: spec.name_limits.field_bytes_max,
                sources,
            };
            let selected = select(&selecting, &mut self.report);
            let path = &answer.resource_path;
            let verdict = evolve(
                task,
                binding,
                path,
                &selected,
                last,
                sources,
                &mut self.report,
            );
            let backfill = match verdict {
                Verdict::Keep { backfill } => backfill,
                Verdict::Disable => continue,
                Verdict::DisableTask => {
                    disable = true;
                    binding.backfill
                }
            };
            let of_spec = SpecBinding {
                collection: collection.name.clone(),
                resource: binding.resource.to_value(),
                resource_path: path.clone(),
                delta_updates: answer.delta_updates,
                backfill,
                key: selected.key,
                values: selected.values,
                document: selected.document,
            };
            let of_host = BuiltBinding {
                not_before: binding.not_before,
                not_after: binding.not_after,
                hard_delete: binding.hard_delete.unwrap_or(hard_delete),
                priority: binding.priority,
                on_error: binding.on_error,
            };
            bindings.push((of_spec, of_host));
        }
        self.build(task, runnable, bindings, disable);
    }

    fn build(
        &mut self,
        task: &Task,
        runnable: &Runnable,
        bindings: Vec<(SpecBinding, BuiltBinding)>,
        disable: bool,
    ) {
        let (of_spec, of_host) = bindings.into_iter().unzip();
        let mut shards = task.shards.clone();
        shards.disable |= disable;
        let built = BuiltTask {
            name: task.name.clone(),
            component: runnable.component.clone(),
            spec: Spec {
                task: task.name.clone(),
                config: runnable.config.to_value(),
                bindings: of_spec,
                sync_schedule: task.schedule.as_ref().map(|it| it.value.clone()),
            },
            bindings: of_host,
            limits: runnable.limits.clone(),
            allow: runnable.allow.clone(),
            shards,
            sync_schedule: task.schedule.as_ref().and_then(|it| it.compiled.clone()),
        };
        self.built.tasks.insert(task.name.clone(), built);
    }

    fn collections(&mut self) {
        for (name, collection) in &self.draft.collections {
            if let Some(resolved) = &collection.resolved {
                let built = BuiltCollection {
                    name: name.clone(),
                    schema: resolved.schema.clone(),
                    key: collection.key.iter().map(|it| it.value.clone()).collect(),
                    projections: resolved.projections.clone(),
                };
                self.built.collections.insert(name.clone(), built);
            }
            if collection.derived {
                self.built.not_run.insert(name.clone(), "derivation");
            }
        }
        for (name, not_run) in &self.draft.not_run {
            self.built.not_run.insert(name.clone(), not_run.kind);
        }
    }
}
