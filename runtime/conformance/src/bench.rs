//! The connector under test, with what it is tested with.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tidegate_host::sandbox::{Component, Fault, GrantError, Grants, Session, SessionConfig, Stop};
use tidegate_wit::message::{
    Spec, SpecResponse, ValidateBinding, ValidateRequest, ValidateResponse,
};

use crate::failure::{Failure, SuiteError};
use crate::sample::Collection;
use crate::setup::{Setup, named};
use crate::task::Task;

/// How a binding takes documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Updates {
    /// The last document of a key replaces those before.
    Standard,
    /// Every document is added.
    Delta,
}

/// The connector, and what it is tested with.
pub(crate) struct Bench {
    pub(crate) component: Component,
    pub(crate) spec: SpecResponse,
    pub(crate) setup: Setup,
    /// Tells this run's resources from those that earlier runs have left.
    run: String,
    resources: Vec<(Updates, Value)>,
}

impl Bench {
    /// Learns what the connector is.
    pub(crate) async fn new(component: Component, setup: Setup) -> Result<Bench, SuiteError> {
        let spec = component.spec().await?.clone();
        let config = named(&setup.config, "task", "name");
        fits("config", &spec.config_schema, &config)?;
        for (part, template) in setup.resources() {
            fits(
                part,
                &spec.resource_schema,
                &named(template, "task", "name"),
            )?;
        }
        let mut bench = Bench {
            component,
            spec,
            setup,
            run: run_name(),
            resources: Vec::new(),
        };
        // So that what cannot be granted is said once.
        bench.grants(&config)?;
        bench.resources = bench.sort().await?;
        Ok(bench)
    }

    /// Asks the connector how each resource of the setup takes documents.
    async fn sort(&self) -> Result<Vec<(Updates, Value)>, Fault> {
        let mut sorted = Vec::new();
        for (_, template) in self.setup.resources() {
            let asked = (
                named(template, "sort", &self.name("sort", 0)),
                Collection::plain(),
            );
            let answer = self.validate(&[asked]).await?;
            let delta = answer.bindings.first().is_some_and(|it| it.delta_updates);
            let updates = match delta {
                true => Updates::Delta,
                false => Updates::Standard,
            };
            sorted.push((updates, template.clone()));
        }
        Ok(sorted)
    }

    /// Returns the name of the n-th resource of a check. Short, in lower case and
    /// without a sign that any destination could mind.
    pub(crate) fn name(&self, check: &str, nth: usize) -> String {
        format!("{check}_{nth}_{}", self.run).replace('-', "_")
    }

    /// Returns the n-th resource of a check, if the setup has such a one.
    pub(crate) fn resource(
        &self,
        updates: Updates,
        check: &str,
        nth: usize,
    ) -> Result<Value, Failure> {
        let found = self.resources.iter().find(|(kind, _)| *kind == updates);
        match found {
            Some((_, template)) => Ok(named(
                template,
                &self.name(check, 0),
                &self.name(check, nth),
            )),
            None if updates == Updates::Standard => Err(Failure::not_applicable(
                "the connector takes delta updates only",
            )),
            None => Err(Failure::not_applicable(
                "no resource of the setup takes delta updates: give it a `deltaResource` if the connector has them",
            )),
        }
    }

    /// Returns the kinds of bindings that there are.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = Updates> {
        self.resources.iter().map(|(updates, _)| *updates)
    }

    /// Returns the config of a check's task.
    pub(crate) fn config(&self, check: &str) -> Value {
        let name = self.name(check, 0);
        named(&self.setup.config, &name, &name)
    }

    fn grants(&self, config: &Value) -> Result<Grants, GrantError> {
        let Setup { allow, base, .. } = &self.setup;
        Grants::new(&self.spec.wants, config, allow, base, &|path| path.is_dir())
    }

    /// Starts an instance for a task, which reaches what its config names.
    pub(crate) async fn start(&self, spec: &Spec) -> Result<Session, Failure> {
        self.start_until(spec, Stop::never()).await
    }

    /// Starts an instance that can be told to stop.
    pub(crate) async fn start_until(&self, spec: &Spec, stop: Stop) -> Result<Session, Failure> {
        let grants = self.grants(&spec.config);
        let config = SessionConfig {
            grants: grants.map_err(|error| Failure::wrong(error.to_string()))?,
            stop,
            ..SessionConfig::without_grants(&spec.task)
        };
        Ok(self.component.start(config).await?)
    }

    /// Asks how bindings can be held, of an instance that reaches nothing: so do
    /// builds.
    pub(crate) async fn validate(
        &self,
        bindings: &[(Value, Collection)],
    ) -> Result<ValidateResponse, Fault> {
        let bindings = bindings
            .iter()
            .map(|(resource, collection)| ValidateBinding {
                collection: "conformance/documents".to_owned(),
                resource: resource.clone(),
                key: collection.key.iter().map(|it| it.pointer.clone()).collect(),
                projections: collection.projections(),
                backfill: 0,
            });
        let request = ValidateRequest {
            task: "conformance/validate".to_owned(),
            config: self.config("validate"),
            bindings: bindings.collect(),
            last: None,
        };
        let config = SessionConfig::without_grants(&request.task);
        self.component.start(config).await?.validate(&request).await
    }

    /// Makes a task of a check, and applies it.
    pub(crate) async fn task(
        &self,
        check: &str,
        bindings: &[(Updates, Collection)],
    ) -> Result<Task<'_>, Failure> {
        let mut task = Task::new(self, check, bindings).await?;
        task.apply().await?;
        Ok(task)
    }
}

fn fits(part: &'static str, schema: &Value, value: &Value) -> Result<(), SuiteError> {
    let problem = match jsonschema::draft202012::new(schema) {
        Err(error) => format!("the schema itself does not compile: {error}"),
        Ok(validator) => match validator.iter_errors(value).next() {
            None => return Ok(()),
            // Where, and not what: there may be a password.
            Some(error) => format!("{} at `{}`", error.masked(), error.instance_path()),
        },
    };
    Err(SuiteError::Setup { part, problem })
}

/// Returns a name of this run: the time, as few characters as that takes.
fn run_name() -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut millis = since.map_or(0, |since| since.as_millis());
    let mut name = Vec::new();
    while millis > 0 {
        name.push(DIGITS[(millis % 36) as usize]);
        millis /= 36;
    }
    name.reverse();
    String::from_utf8(name).expect("digits are ASCII")
}
