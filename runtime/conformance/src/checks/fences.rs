//! Fences: what an older session still tries.

use tidegate_host::sandbox::{ErrorKind, Fault, FaultKind};
use tidegate_wit::message::{Authority, Fence, Guarantee};

use super::{Bench, Collection, Failure, Passed, any};
use crate::failure::refused;
use crate::readback;
use crate::run::{Run, sorted};
use crate::sample::plain;

/// A stale session that goes on as if nothing had happened.
pub(super) async fn fence(bench: &Bench) -> Passed {
    let kind = any(bench)?;
    let mut task = bench.task("fence", &[(kind, Collection::plain())]).await?;
    let mut stale = task.open().await?;
    at_least_once(&stale)?;
    task.transact(&mut stale, vec![plain(0, 1, 1)]).await?;
    // Loaded before, stored after the other session: a destination may lock what is
    // written, and then it is the lock that keeps the other one out.
    let lost = task.txn(vec![plain(0, 1, 2), plain(0, 2, 3)]);
    let rows = sorted(&task, &lost.writes);
    let loaded = stale.load_sorted(&task, &rows).await?;

    let mut run = task.open().await?;
    task.transact(&mut run, vec![plain(0, 1, 4)]).await?;
    let stored = stale.store_sorted(&task, &rows, &loaded).await;
    let refusal = match stored {
        Ok(()) => commit(&mut stale, &lost.checkpoint).await?,
        Err(Failure::Fault(fault)) => refusal("store", Err(fault))?,
        Err(other) => return Err(other),
    };
    drop(stale);
    // The session that is entitled goes on undisturbed.
    task.transact(&mut run, vec![plain(0, 3, 5)]).await?;
    drop(run);
    task.check_committed().await?;
    let run = task.open().await?;
    if run.opened.authority == Authority::Remote && run.opened.checkpoint != task.checkpoint {
        return Err(Failure::wrong(
            "the stale session has changed the checkpoint",
        ));
    }
    drop(run);
    if bench.setup.readback.is_some() {
        let counts = readback::counts(&task, 0).await?;
        if counts.contains_key(&2) || counts.contains_key(&3) {
            return Err(Failure::wrong("documents of the stale session are there"));
        }
    }
    Ok(refusal)
}

/// Commits in a stale session: one of its calls must fail.
async fn commit(stale: &mut Run, checkpoint: &str) -> Result<String, Failure> {
    let request = |patch: Option<serde_json::Value>| tidegate_wit::message::AcknowledgeRequest {
        patches: patch.into_iter().collect(),
        recovery: false,
        stored_counts: vec![1],
    };
    let (call, answer) = match stale.session.start_commit(checkpoint).await {
        // The host's log would refuse the commit; the destination must, too.
        Ok(patch) => (
            "acknowledge",
            stale.session.acknowledge(&request(patch)).await.map(drop),
        ),
        Err(fault) => ("start-commit", Err(fault)),
    };
    refusal(call, answer)
}

/// Takes the error that a stale session must be refused with.
fn refusal(call: &str, answer: Result<(), Fault>) -> Result<String, Failure> {
    let fault = refused(&format!("{call} of a stale session"), answer)?;
    match &fault.kind {
        FaultKind::Error(error) if error.kind == ErrorKind::Transient => Ok(error.message.clone()),
        _ => Err(Failure::wrong(format!(
            "a stale session is to be refused with a transient error, as whoever is entitled comes \
             again: {fault}"
        ))),
    }
}

/// Sessions whose fence is not above the last one's.
pub(super) async fn open(bench: &Bench) -> Passed {
    let mut task = bench
        .task("fence-open", &[(any(bench)?, Collection::plain())])
        .await?;
    task.fence = Fence {
        epoch: 3,
        session: 4,
    };
    let run = task.open().await?;
    at_least_once(&run)?;
    drop(run);
    for (epoch, session) in [(3, 5), (3, 4), (2, 9)] {
        let request = task.open_request(Fence { epoch, session });
        let mut session_of = bench.start(&task.spec).await?;
        let name = format!("open with the fence {epoch}.{session} after 3.5");
        refused(&name, session_of.open(&request).await)?;
    }
    task.fence = Fence {
        epoch: 4,
        session: 0,
    };
    let mut run = task.open().await?;
    task.transact(&mut run, vec![plain(0, 1, 1)]).await?;
    Ok(String::new())
}

/// What may count more than once needs no fence.
fn at_least_once(run: &Run) -> Result<(), Failure> {
    match run.opened.guarantee {
        Guarantee::AtLeastOnce => Err(Failure::not_applicable(
            "the connector says at least once, which needs no fence",
        )),
        Guarantee::ExactlyOnce => Ok(()),
    }
}
