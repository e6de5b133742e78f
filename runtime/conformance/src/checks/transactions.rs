//! Transactions, one after the other, without a crash.

use tidegate_wit::message::Authority;

use super::{Bench, Collection, Failure, Passed, Updates, any};
use crate::readback;
use crate::sample::{SEQ, Write, plain, stored, tombstone};

/// Documents replace each other; a deleted one is gone, and may come back.
pub(super) async fn updates(bench: &Bench) -> Passed {
    let bindings = [(Updates::Standard, Collection::plain())];
    let mut task = bench.task("updates", &bindings).await?;
    let mut run = task.open().await?;
    let txns = [
        vec![plain(0, 1, 1), plain(0, 2, 2), plain(0, 3, 3)],
        vec![plain(0, 1, 4), tombstone(0, 2), plain(0, 4, 5)],
        vec![plain(0, 2, 6), tombstone(0, 1), tombstone(0, 3)],
        vec![plain(0, 3, 7), tombstone(0, 2), tombstone(0, 4)],
    ];
    for writes in txns {
        task.transact(&mut run, writes).await?;
    }
    drop(run);
    task.check_committed().await?;
    let mut run = task.open().await?;
    let writes = (1..=4).map(|id| plain(0, id, 10 + id)).collect();
    task.transact(&mut run, writes).await?;
    Ok(String::new())
}

/// Nothing to store, with loads and without, between others.
pub(super) async fn empty(bench: &Bench) -> Passed {
    let mut task = bench
        .task("empty", &[(any(bench)?, Collection::plain())])
        .await?;
    let mut run = task.open().await?;
    for writes in [vec![], vec![], vec![plain(0, 1, 1)], vec![]] {
        task.transact(&mut run, writes).await?;
    }
    drop(run);
    let mut run = task.open().await?;
    if run.opened.authority == Authority::Remote && run.opened.checkpoint != task.checkpoint {
        return Err(Failure::wrong(format!(
            "after an empty transaction open returned the checkpoint {:?}, and {:?} was committed",
            run.opened.checkpoint, task.checkpoint
        )));
    }
    task.transact(&mut run, vec![]).await?;
    drop(run);
    task.check_committed().await?;
    Ok(String::new())
}

/// The last transaction of a key wins.
pub(super) async fn one_key(bench: &Bench) -> Passed {
    const TXNS: i64 = 30;
    let kind = any(bench)?;
    let mut task = bench
        .task("one-key", &[(kind, Collection::plain())])
        .await?;
    let mut run = task.open().await?;
    for seq in 0..TXNS {
        task.transact(&mut run, vec![plain(0, 1, seq)]).await?;
    }
    drop(run);
    task.check_committed().await?;
    if kind == Updates::Delta {
        let counts = readback::counts(&task, 0).await?;
        if counts.len() as i64 != TXNS {
            return Err(Failure::wrong(format!(
                "{TXNS} documents of one key were added, and {} are there",
                counts.len()
            )));
        }
    }
    Ok(format!("{TXNS} transactions"))
}

/// Many batches of stores and of loads, and one document that is larger than a
/// batch.
pub(super) async fn many(bench: &Bench) -> Passed {
    const DOCUMENTS: i64 = 10_000;
    const LARGE_BYTES: usize = 2 << 20;
    let mut task = bench
        .task("many", &[(any(bench)?, Collection::plain())])
        .await?;
    let mut run = task.open().await?;
    for round in 0..2 {
        let mut writes: Vec<Write> = (1..DOCUMENTS)
            .map(|id| plain(0, id * 3, id * 10 + round))
            .collect();
        let text = "x".repeat(LARGE_BYTES);
        let large = format!("{{\"id\": 0, \"{SEQ}\": {round}, \"text\": \"{text}\"}}");
        writes.push(stored(0, large));
        task.transact(&mut run, writes).await?;
    }
    drop(run);
    task.check_committed().await?;
    Ok(format!("{DOCUMENTS} documents, twice"))
}

/// A transaction of several bindings.
pub(super) async fn bindings(bench: &Bench) -> Passed {
    let kind = any(bench)?;
    let bindings = [0; 3].map(|_| (kind, Collection::plain()));
    let mut task = bench.task("bindings", &bindings).await?;
    let mut run = task.open().await?;
    for seq in 0..3 {
        let writes = (0..3).map(|binding| plain(binding, 1, seq * 3 + i64::from(binding)));
        task.transact(&mut run, writes.collect()).await?;
    }
    // And of one alone.
    task.transact(&mut run, vec![plain(1, 2, 100)]).await?;
    drop(run);
    task.check_committed().await?;
    Ok(String::new())
}

/// A clean end and a new session.
pub(super) async fn restart(bench: &Bench) -> Passed {
    let mut task = bench
        .task("restart", &[(any(bench)?, Collection::plain())])
        .await?;
    for seq in 0..3 {
        let mut run = task.open().await?;
        let (found, want) = (&run.opened.checkpoint, &task.checkpoint);
        if run.opened.authority == Authority::Remote && found != want {
            return Err(Failure::wrong(format!(
                "open returned the checkpoint {found:?}, and {want:?} was committed"
            )));
        }
        if run.opened.authority == Authority::Log && found.is_some() {
            return Err(Failure::wrong(
                "the authority is the host's log, and open returned a checkpoint all the same",
            ));
        }
        let writes = vec![plain(0, seq, seq), plain(0, 9, 10 + seq)];
        task.transact(&mut run, writes).await?;
        drop(run);
        task.check_committed().await?;
    }
    Ok(String::new())
}
