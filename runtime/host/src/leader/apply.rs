//! Brings a destination to a task's spec, or says what that would do.
//!
//! ```text
//! last applied spec, kept state -> request -> an instance of its own -> response
//! ```
//!
//! Nothing is kept here: whoever applies writes what became of it.

use tidegate_core::{KeyRange, Record};
use tidegate_wit::message::{ApplyRequest, ApplyResponse};
use tokio::runtime::Handle;

use super::config::TaskConfig;
use super::error::SessionError;
use super::records::{Applied, Records};
use crate::sandbox::SessionConfig;
use crate::shard::{Connector, ShardError};

/// Returns the request that brings the destination from what was applied last to
/// the config's spec.
pub(super) fn request(
    config: &TaskConfig,
    applied: Option<&Applied>,
    record: &Record,
) -> ApplyRequest {
    ApplyRequest {
        last: applied.map(|applied| applied.task.spec.clone()),
        next: config.task.spec.clone(),
        state: record
            .states
            .get(&KeyRange::ALL)
            .cloned()
            .unwrap_or_default(),
        dry_run: false,
    }
}

/// Makes a request of an instance of its own: a connector's session begins with
/// `open`.
pub(super) async fn ask(
    data: &Handle,
    config: &TaskConfig,
    request: ApplyRequest,
) -> Result<ApplyResponse, SessionError> {
    let sandbox = SessionConfig {
        read_only: request.dry_run,
        ..config.sandbox.clone()
    };
    let connector = Connector::start(data, config.component.clone(), sandbox)
        .await
        .map_err(ShardError::from)?;
    let answer = connector
        .submit(move |session| Box::pin(async move { session.apply(&request).await }))
        .await;
    let response = answer.wait().await.ok_or(ShardError::Gone)?;
    connector.end().await;
    Ok(response.map_err(ShardError::from)?)
}

/// Returns what starting a task would do at its destination, a statement or
/// sentence each. Nothing is done, there or here.
pub(crate) async fn preview(
    data: &Handle,
    config: &TaskConfig,
    records: &Records,
) -> Result<Vec<String>, SessionError> {
    let record = records.record().await?.map(|(record, _)| record);
    let applied = records.applied().await?;
    if applied.as_ref().is_some_and(|it| it.task == config.task) {
        return Ok(Vec::new());
    }
    let request = ApplyRequest {
        dry_run: true,
        ..request(config, applied.as_ref(), &record.unwrap_or_default())
    };
    Ok(ask(data, config, request).await?.actions)
}
