//! Builds a catalog: the validator asks, real connectors answer.
//!
//! ```text
//! files -> load -> plan -> requests -> connectors, without any grant
//!                   ^                      |
//!                   '------ answers -------'     until nothing is asked
//!                  finish -> built | diagnostics
//! ```

use std::collections::BTreeMap;

use tidegate_validator::{
    Answers, ComponentRef, ConnectorFault, Diagnostic, Draft, Request, Sources, diagnostic, finish,
    plan,
};
use tidegate_wit::message::{Spec, SpecResponse, ValidateRequest, ValidateResponse};

use crate::clock::wall_micros;
use crate::connectors::Connectors;
use crate::sandbox::{self, Component, Fault, FaultKind, Limits, SessionConfig};

/// A catalog, and everything that there is to say about it.
pub struct Catalog {
    draft: Draft,
    diagnostics: Vec<Diagnostic>,
    /// What can run; nothing if there is an error.
    pub built: Option<Built>,
}

/// A catalog that can run, with its connectors.
pub struct Built {
    pub(crate) catalog: tidegate_validator::Built,
    pub(crate) components: BTreeMap<ComponentRef, Component>,
}

impl Catalog {
    /// Builds a catalog that was loaded.
    pub async fn build(draft: Draft, connectors: &Connectors) -> Catalog {
        let draft = draft.as_of(wall_micros() / 1_000);
        let mut answers = Answers::default();
        let mut components = BTreeMap::new();
        loop {
            let requests = plan(&draft, &answers);
            if requests.is_empty() {
                break;
            }
            for request in requests {
                answer(request, connectors, &mut components, &mut answers).await;
            }
        }
        let (catalog, diagnostics) = finish(&draft, &answers);
        let built = catalog.map(|catalog| Built {
            catalog,
            components,
        });
        Catalog {
            draft,
            diagnostics,
            built,
        }
    }

    /// Returns everything that there is to say.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Returns the files that were read.
    pub fn sources(&self) -> &Sources {
        self.draft.sources()
    }

    /// Returns the specs of what can run, by task.
    pub(crate) fn specs(&self) -> Option<BTreeMap<String, Spec>> {
        let tasks = self.built.as_ref()?.catalog.tasks.iter();
        Some(
            tasks
                .map(|(name, task)| (name.clone(), task.spec.clone()))
                .collect(),
        )
    }

    /// Returns what there is to say, for people; empty if nothing is.
    pub fn report(&self, colour: bool) -> String {
        if self.diagnostics.is_empty() {
            return String::new();
        }
        diagnostic::human(&self.diagnostics, self.draft.sources(), colour)
    }
}

impl Built {
    /// Returns the names of the collections.
    pub fn collection_names(&self) -> Vec<&str> {
        self.catalog
            .collections
            .keys()
            .map(String::as_str)
            .collect()
    }

    /// Returns the names of the tasks, those that do not run included.
    pub fn task_names(&self) -> Vec<&str> {
        self.catalog.tasks.keys().map(String::as_str).collect()
    }
}

async fn answer(
    request: Request,
    connectors: &Connectors,
    components: &mut BTreeMap<ComponentRef, Component>,
    answers: &mut Answers,
) {
    match request {
        Request::Spec { component } => {
            let spec = match connectors.load(&component).await {
                Ok(loaded) => {
                    components.insert(component.clone(), loaded.clone());
                    spec(&loaded).await
                }
                Err(error) => Err(connectors.fault(&error)),
            };
            answers.specs.insert(component, spec);
        }
        Request::Validate {
            component,
            request,
            limits,
            ..
        } => {
            let loaded = components
                .get(&component)
                .expect("a connector that has a spec was loaded");
            let validated = validate(loaded, &request, &limits).await;
            answers.validated.insert(request.task.clone(), validated);
        }
    }
}

async fn spec(component: &Component) -> Result<SpecResponse, ConnectorFault> {
    match component.spec().await {
        Ok(spec) => Ok(spec.clone()),
        Err(fault) => Err(connector_fault(fault)),
    }
}

/// Nothing is dialled to check a catalog: the instance reaches nothing.
async fn validate(
    component: &Component,
    request: &ValidateRequest,
    limits: &tidegate_validator::Limits,
) -> Result<ValidateResponse, ConnectorFault> {
    let mut config = SessionConfig::without_grants(&request.task);
    config.limits = sandbox_limits(limits);
    let mut session = component.start(config).await.map_err(connector_fault)?;
    session.validate(request).await.map_err(connector_fault)
}

fn connector_fault(fault: Fault) -> ConnectorFault {
    match &fault.kind {
        FaultKind::Error(error) => ConnectorFault::Refused {
            message: fault.to_string(),
            binding: error.binding.map(|binding| binding as usize),
        },
        _ => ConnectorFault::Failed {
            message: fault.to_string(),
        },
    }
}

/// Returns the sandbox's limits: its defaults, where the catalog says nothing.
pub(crate) fn sandbox_limits(limits: &tidegate_validator::Limits) -> sandbox::Limits {
    let default = Limits::default();
    let bytes = |limit: Option<u64>, default| limit.map_or(default, |limit| limit as usize);
    Limits {
        memory_bytes: bytes(limits.memory_bytes, default.memory_bytes),
        compute: limits.compute.unwrap_or(default.compute),
        import: limits.import.unwrap_or(default.import),
        call: limits.call.or(default.call),
        batch_bytes: bytes(limits.batch_bytes, default.batch_bytes),
        log_lines_per_second: limits
            .log_lines_per_second
            .unwrap_or(default.log_lines_per_second),
        ..default
    }
}
