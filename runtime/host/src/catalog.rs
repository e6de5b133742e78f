//! Builds a catalog: the validator asks, real connectors answer.
//!
//! ```text
//! files -> load -> plan -> requests -> connectors, without any grant
//!                   ^                      |
//!                   '------ answers -------'     until nothing is asked
//!                  finish -> built | diagnostics
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_validator::{
    Answers, ComponentRef, ConnectorFault, Diagnostic, Draft, Request, Sources, diagnostic, finish,
    plan,
};
use tidegate_wit::message::{Spec, SpecResponse, ValidateRequest, ValidateResponse};

use crate::connectors::Connectors;
use crate::sandbox::{self, Component, Fault, FaultKind, Limits, SessionConfig};

/// A catalog, and everything that there is to say about it.
pub struct Catalog {
    draft: Draft,
    diagnostics: Vec<Diagnostic>,
    /// What can run; nothing if there is an error.
    pub built: Option<Built>,
}

/// What runs now.
#[derive(Default)]
pub struct Live {
    /// The specs that were last applied, by task.
    pub specs: BTreeMap<String, Spec>,
    /// The catalog, where it is known.
    pub written: Option<Arc<Draft>>,
}

/// A catalog that can run, with its connectors.
pub struct Built {
    pub(crate) catalog: tidegate_validator::Built,
    pub(crate) components: BTreeMap<ComponentRef, Component>,
}

impl Catalog {
    /// Builds a catalog that was loaded, against what runs now.
    pub async fn build(draft: Draft, connectors: &Connectors, live: Live) -> Catalog {
        let mut draft = draft.with_live(live.specs);
        if let Some(written) = live.written {
            draft = draft.with_written_live(written);
        }
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

    /// Makes of a catalog without errors what another one is compared with.
    pub(crate) fn into_live(self) -> Result<Live, Box<Catalog>> {
        let Some(built) = &self.built else {
            return Err(Box::new(self));
        };
        let tasks = built.catalog.tasks.iter();
        Ok(Live {
            specs: tasks
                .map(|(name, task)| (name.clone(), task.spec.clone()))
                .collect(),
            written: Some(Arc::new(self.draft)),
        })
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
