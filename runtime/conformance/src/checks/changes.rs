//! Changes of the spec.

use tidegate_wit::message::JsonType;

use super::{Bench, Collection, Failure, Passed, Updates, any};
use crate::sample::{self, plain};
use crate::task::Task;

/// What a dry run says is still to be done afterwards.
pub(super) async fn dry_run(bench: &Bench) -> Passed {
    let bindings = [(any(bench)?, Collection::plain())];
    let mut task = Task::new(bench, "apply-dry-run", &bindings).await?;
    let shown = task.apply_from(None, true).await?;
    let again = task.apply_from(None, true).await?;
    let done = task.apply().await?;
    if shown != again || shown != done {
        return Err(Failure::wrong(format!(
            "a dry run says {shown:?}, another one {again:?}, and apply did {done:?}"
        )));
    }
    Ok(match shown.len() {
        0 => "nothing needs to be applied".to_owned(),
        actions => format!("{actions} actions"),
    })
}

/// The second time there is nothing to do, also for a host that does not know of
/// the first.
pub(super) async fn twice(bench: &Bench) -> Passed {
    let kind = any(bench)?;
    let mut task = bench
        .task("apply-twice", &[(kind, Collection::plain())])
        .await?;
    let mut run = task.open().await?;
    task.transact(&mut run, vec![plain(0, 1, 1)]).await?;
    drop(run);
    for last in [Some(task.spec.clone()), None] {
        let knew = if last.is_some() {
            "knew"
        } else {
            "did not know"
        };
        let done = task.apply_from(last, false).await?;
        if !done.is_empty() {
            return Err(Failure::wrong(format!(
                "a second apply of one spec, by a host that {knew} of the first, did {done:?}"
            )));
        }
    }
    task.check_committed().await?;
    Ok(String::new())
}

/// Rows of before have nothing in a field that is added, and stay.
pub(super) async fn field(bench: &Bench) -> Passed {
    let mut wide = Collection::plain();
    wide.values.extend([
        sample::field("added", &[JsonType::String]),
        sample::field("count", &[JsonType::Integer]),
    ]);
    let mut task = Task::new(bench, "apply-field", &[(any(bench)?, wide)]).await?;
    let values = task.spec.bindings[0].values.clone();
    task.spec.bindings[0].values.truncate(1);
    task.apply().await?;
    let mut run = task.open().await?;
    task.transact(&mut run, vec![plain(0, 1, 1)]).await?;
    drop(run);
    task.spec.bindings[0].values = values;
    task.apply().await?;
    task.check_committed().await?;
    let mut run = task.open().await?;
    let whole = r#"{"id": 2, "seq": 2, "text": "x", "added": "y", "count": 7}"#;
    let writes = vec![plain(0, 1, 3), sample::stored(0, whole)];
    task.transact(&mut run, writes).await?;
    drop(run);
    task.check_committed().await?;
    Ok(String::new())
}

/// What was stored under the lower counter is gone.
pub(super) async fn backfill(bench: &Bench) -> Passed {
    let bindings = [(Updates::Standard, Collection::plain())];
    let mut task = bench.task("apply-backfill", &bindings).await?;
    let mut run = task.open().await?;
    task.transact(&mut run, vec![plain(0, 1, 1), plain(0, 2, 2)])
        .await?;
    drop(run);
    task.raise_backfill();
    task.apply().await?;
    let mut run = task.open().await?;
    task.transact(&mut run, vec![plain(0, 2, 3), plain(0, 1, 4)])
        .await?;
    drop(run);
    task.check_committed().await?;
    Ok(String::new())
}
