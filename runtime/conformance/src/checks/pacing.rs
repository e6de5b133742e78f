//! Pacing: two layers must never pace one task.

use serde_json::{Value, json};

use super::{Bench, Collection, Failure, Passed, any};
use crate::sample::plain;

/// Where a connector has a schedule of its own...
const SCHEDULE: &str = "syncSchedule";
/// ...and where one has that writes files.
const UPLOADS: &str = "uploadInterval";

/// Transactions after which a paced connector holds acknowledgements: it is known
/// to be caught up.
const CAUGHT_UP_TXNS: i64 = 5;

/// What a schedule in the config leads to: without one in the spec, and with one.
pub(super) async fn pacing(bench: &Bench) -> Passed {
    let properties = &bench.spec.config_schema["properties"];
    let found = [SCHEDULE, UPLOADS]
        .into_iter()
        .find(|it| properties.get(it).is_some());
    let spec_schedule = json!({"baseInterval": "1h"});
    let configs: &[(Option<Value>, bool)] = match found {
        Some(SCHEDULE) => &[
            (None, true),
            (Some(json!({})), true),
            (Some(json!({"syncFrequency": "0s"})), false),
            (Some(json!({"syncFrequency": "5m"})), true),
        ],
        Some(_) => &[
            (None, true),
            (Some(json!("0s")), false),
            (Some(json!("5m")), true),
        ],
        None => &[(None, false)],
    };
    if let Some(property) = found
        && !bench.spec.defers_to_schedule
    {
        return Err(Failure::wrong(format!(
            "the config has a `{property}`, and the spec does not say that it defers to the \
             materialization's schedule"
        )));
    }
    let mut nth = 0;
    for (config, paced) in configs {
        for schedule in [None, Some(spec_schedule.clone())] {
            let want = *paced && schedule.is_none();
            nth += 1;
            let got = is_paced(bench, nth, (found, config.as_ref()), schedule.clone()).await?;
            if got != want {
                let shown = |value: &Option<Value>| match value {
                    Some(value) => value.to_string(),
                    None => "nothing".to_owned(),
                };
                let (does, should) = match got {
                    true => ("paces", "must not"),
                    false => ("does not pace", "should"),
                };
                return Err(Failure::wrong(format!(
                    "with {} in the config and {} in the spec the connector {does}, and {should}",
                    shown(config),
                    shown(&schedule),
                )));
            }
        }
    }
    Ok(match found {
        Some(property) => format!("its own is `{property}`"),
        None => "has no schedule of its own".to_owned(),
    })
}

/// Says whether a caught-up task has its acknowledgements held.
async fn is_paced(
    bench: &Bench,
    nth: usize,
    (property, config): (Option<&str>, Option<&Value>),
    schedule: Option<Value>,
) -> Result<bool, Failure> {
    let check = format!("pacing{nth}");
    let mut task = bench
        .task(&check, &[(any(bench)?, Collection::plain())])
        .await?;
    if let (Some(property), Some(entries)) = (property, task.spec.config.as_object_mut()) {
        entries.remove(property);
        entries.extend(config.map(|config| (property.to_owned(), config.clone())));
    }
    task.spec.sync_schedule = schedule;
    let mut run = task.open().await?;
    let pacing = run.opened.pacing.is_some();
    let mut held = false;
    for seq in 0..=CAUGHT_UP_TXNS {
        let txn = task.txn(vec![plain(0, seq, seq)]);
        run.load_and_store(&task, &txn.writes).await?;
        let patch = run.start_commit(&txn.checkpoint).await?;
        task.persist(&txn, patch);
        held = run.acknowledge(&mut task, false).await?;
    }
    if held && !pacing {
        return Err(Failure::wrong(
            "acknowledge asks to be held, and open returned no schedule to hold it by",
        ));
    }
    Ok(held)
}
