//! Makes the directory the task's. Folders are made by the first file in them.

use tidegate_boilerplate::{ApplyRequest, ApplyResponse, ConnectorError};

use crate::config::{Config, Resource};
use crate::owner;
use crate::root::Root;

/// Applies a spec, or says what applying it would do.
pub(crate) fn apply(request: &ApplyRequest) -> Result<ApplyResponse, ConnectorError> {
    let config = Config::read(&request.next.config)?;
    for (index, binding) in (0..).zip(&request.next.bindings) {
        Resource::read(&binding.resource).map_err(|error| error.of_binding(index))?;
    }
    let task = &request.next.task;
    let claimed = owner::claim(&Root::new(&config.path), task, request.dry_run)?;
    let action = claimed.then(|| format!("make directory {:?} that of task {task}", config.path));
    Ok(ApplyResponse {
        actions: action.into_iter().collect(),
        patch: None,
    })
}
