//! Kills: at every call, and at every wait within one.
//!
//! ```text
//! round: transaction, killed somewhere -> settle -> everything is there, once
//! ```

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tidegate_host::sandbox::{FaultKind, StopHandle};
use tidegate_wit::message::Guarantee;

use super::{Bench, Collection, Failure, Passed, Updates, any};
use crate::kill::Kill;
use crate::readback;
use crate::run::{Run, Step};
use crate::sample::{Write, plain, tombstone};
use crate::task::Task;

/// Waits of one call that are tried. Calls wait a few times for each statement or
/// file; what goes on for longer goes on in the same way.
const WAITS_MAX: usize = 25;

/// How often a commit is told to stop.
const CANCELS: i64 = 3;

/// A stop ends a call after half a second at the latest; the rest is for busy machines.
const CANCEL_MAX: Duration = Duration::from_secs(5);

/// Keys that the rounds share, so that documents are replaced and deleted.
const KEYS: i64 = 7;

/// Kills a task of standard bindings.
pub(super) async fn standard(bench: &Bench) -> Passed {
    kill_everywhere(bench, "kill", Updates::Standard).await
}

/// Kills a task of delta updates.
pub(super) async fn delta(bench: &Bench) -> Passed {
    kill_everywhere(bench, "kill-delta", Updates::Delta).await
}

async fn kill_everywhere(bench: &Bench, check: &str, kind: Updates) -> Passed {
    let bindings = [0; 2].map(|_| (kind, Collection::plain()));
    let mut task = bench.task(check, &bindings).await?;
    if kind == Updates::Delta {
        // Says so before the work if nothing can be seen.
        readback::counts(&task, 0).await?;
    }
    let mut kills: BTreeMap<Step, usize> = BTreeMap::new();
    let mut rounds = 0;
    'calls: for call in 0.. {
        for waits in [None].into_iter().chain((0..WAITS_MAX).map(Some)) {
            rounds += 1;
            let kill = Kill { call, waits };
            match round(&mut task, kind, rounds, kill).await? {
                Reached::End => break 'calls,
                Reached::EndOfCall => break,
                Reached::Killed(step) => *kills.entry(step).or_default() += 1,
            }
        }
    }
    let count: usize = kills.values().sum();
    let each = kills
        .iter()
        .map(|(step, kills)| format!("{} {kills}", step.name()));
    Ok(format!(
        "{count} kills: {}",
        each.collect::<Vec<_>>().join(", ")
    ))
}

/// How far a round came.
enum Reached {
    /// The transaction ended before the call.
    End,
    /// The call ended before so many waits.
    EndOfCall,
    /// The session was killed there.
    Killed(Step),
}

async fn round(
    task: &mut Task<'_>,
    kind: Updates,
    number: i64,
    kill: Kill,
) -> Result<Reached, Failure> {
    let txn = task.txn(writes(kind, number));
    let reached = match task.open_killed(Some(kill)).await {
        // Killed while it opened: no transaction was begun.
        Err(Failure::Killed) => Reached::Killed(Step::Open),
        Err(other) => return Err(other),
        Ok(mut run) => match run.transact(task, &txn).await {
            Err(Failure::Killed) => {
                Reached::Killed(*run.steps.last().expect("it was killed at a step"))
            }
            Err(other) => return Err(other),
            Ok(()) if run.outlived => Reached::EndOfCall,
            Ok(()) => Reached::End,
        },
    };
    let at = match &reached {
        Reached::Killed(step) => match kill.waits {
            None => format!("after a kill before {}", step.name()),
            Some(waits) => format!("after a kill at wait {} of {}", waits + 1, step.name()),
        },
        _ => "after no kill".to_owned(),
    };
    let named = |failure: Failure| failure.during(&at);
    task.settle(&txn).await.map_err(named)?;
    task.check_committed().await.map_err(named)?;
    if kind == Updates::Delta {
        check_added(task, &at).await?;
    }
    Ok(reached)
}

/// Documents of both bindings: new keys, keys of before, and a delete.
fn writes(kind: Updates, number: i64) -> Vec<Write> {
    let mut writes = Vec::new();
    for binding in 0..2 {
        for nth in 0..3 {
            let id = (number * 3 + nth) % KEYS;
            writes.push(plain(binding, id, number * 10 + nth));
        }
        if kind == Updates::Standard {
            let gone = (number * 3 + 3) % KEYS;
            writes.push(tombstone(binding, gone));
        }
    }
    writes
}

/// Compares what was added with what is there.
async fn check_added(task: &mut Task<'_>, at: &str) -> Result<(), Failure> {
    let exactly_once = task.open().await?.opened.guarantee == Guarantee::ExactlyOnce;
    for binding in 0..2 {
        let counts = readback::counts(task, binding).await?;
        let added = &task.committed(binding).added;
        for seq in added {
            let count = counts.get(seq).copied().unwrap_or(0);
            if count == 0 || (exactly_once && count > 1) {
                return Err(Failure::wrong(format!(
                    "{at}: binding {binding}: the document with seq {seq} is there {count} times"
                )));
            }
        }
        if exactly_once && counts.len() != added.len() {
            let more = counts.keys().find(|seq| !added.contains(seq));
            return Err(Failure::wrong(format!(
                "{at}: binding {binding}: a document is there that was never committed, of seq {more:?}"
            )));
        }
    }
    Ok(())
}

/// A host that crashes after the acknowledgement asks for it again.
pub(super) async fn acknowledge_again(bench: &Bench) -> Passed {
    let kind = any(bench)?;
    let mut task = bench
        .task("acknowledge-again", &[(kind, Collection::plain())])
        .await?;
    let mut run = task.open().await?;
    task.transact(&mut run, vec![plain(0, 1, 1)]).await?;
    let txn = task.txn(vec![plain(0, 1, 2), plain(0, 2, 3)]);
    run.load_and_store(&task, &txn.writes).await?;
    let patch = run.start_commit(&txn.checkpoint).await?;
    task.persist(&txn, patch);
    for recovery in [false, true, true, true] {
        let again = task.unacknowledged.clone();
        run.acknowledge(&mut task, recovery).await?;
        drop(run);
        task.check_committed().await?;
        task.unacknowledged = again;
        run = task.open().await?;
    }
    drop(run);
    if kind == Updates::Delta && bench.setup.readback.is_some() {
        let counts = readback::counts(&task, 0).await?;
        if counts.values().any(|count| *count != 1) {
            return Err(Failure::wrong(format!(
                "after four acknowledgements the documents are there so often: {counts:?}"
            )));
        }
    }
    Ok(String::new())
}

/// A host that stops while a commit is under way: the call ends by itself or is ended,
/// and the next session finds out which.
pub(super) async fn cancel(bench: &Bench) -> Passed {
    let kind = any(bench)?;
    let mut task = bench.task("cancel", &[(kind, Collection::plain())]).await?;
    let mut run = task.open().await?;
    task.transact(&mut run, vec![plain(0, 0, 0)]).await?;
    drop(run);
    let mut ended = 0;
    for number in 1..=CANCELS {
        let txn = task.txn(writes_of(number));
        task.fence.session += 1;
        let (handle, stop) = StopHandle::new();
        let session = bench.start_until(&task.spec, stop).await?;
        let mut run = Run::open(session, task.open_request(task.fence), None).await?;
        run.load_and_store(&task, &txn.writes).await?;
        handle.stop();
        let told = Instant::now();
        match run.start_commit(&txn.checkpoint).await {
            Ok(patch) => task.persist(&txn, patch),
            Err(Failure::Fault(fault)) if matches!(fault.kind, FaultKind::Stopped) => ended += 1,
            Err(other) => return Err(other),
        }
        if told.elapsed() > CANCEL_MAX {
            return Err(Failure::wrong(format!(
                "start-commit took {:?} to end, once it was told to stop",
                told.elapsed()
            )));
        }
        drop(run);
        task.settle(&txn).await?;
        task.check_committed().await?;
    }
    Ok(format!("{CANCELS} stops, {ended} of them ended the commit"))
}

fn writes_of(number: i64) -> Vec<Write> {
    (0..3).map(|id| plain(0, id, number * 10 + id)).collect()
}
