//! What a connector has to refuse, and how.

use serde_json::json;
use tidegate_host::sandbox::{ErrorKind, Fault, FaultKind};
use tidegate_wit::batch;
use tidegate_wit::message::JsonType;

use super::{Bench, Collection, Failure, Passed, Updates, any};
use crate::failure::refused;
use crate::sample::{self, Described, SEQ, Write, field, stored};

/// Batches that no host sends.
pub(super) async fn malformed(bench: &Bench) -> Passed {
    let kind = any(bench)?;
    let mut task = bench
        .task("malformed", &[(kind, Collection::plain())])
        .await?;
    let write = sample::plain(0, 1, 1);
    let mut whole = Vec::new();
    let (key, values) = (task.key(&write), task.values(&write));
    let store = batch::Store {
        key: &key,
        values: &values,
        document: write.document.as_bytes(),
        exists: false,
        delete: false,
    };
    batch::push_store(&mut whole, &store);
    let mut flags = whole.clone();
    flags[15] = 0xff;
    let batches: [(&str, u32, &[u8]); 4] = [
        ("a batch that is cut off", 0, &whole[..whole.len() - 1]),
        ("a batch that is cut off in its lengths", 0, &whole[..7]),
        ("a batch with unknown flags", 0, &flags),
        ("a batch for a binding that there is not", 7, &whole),
    ];
    for (name, binding, rows) in batches {
        let mut run = task.open().await?;
        let mut answer = run.session.store(binding, rows).await;
        // Some look at what they were given when they commit.
        if answer.is_ok() {
            answer = run.session.start_commit("never").await.map(drop);
        }
        refused(name, answer)?;
    }
    task.check_committed().await?;
    Ok(String::new())
}

/// A document that many destinations cannot hold: a key with a NUL.
fn bad(id: &str, seq: i64) -> Write {
    stored(0, json!({"id": id, SEQ: seq}).to_string())
}

/// Either the destination holds it as it is, or the connector says which it was.
pub(super) async fn bad_document(bench: &Bench) -> Passed {
    let collection = Collection {
        key: vec![field("id", &[JsonType::String]).key()],
        values: vec![field(SEQ, &[JsonType::Integer])],
    };
    let bindings = [(Updates::Standard, collection)];
    let mut task = bench.task("bad-document", &bindings).await?;
    let mut run = task.open().await?;
    task.transact(&mut run, vec![bad("good", 1)]).await?;
    let txn = task.txn(vec![bad("b\0d", 2), bad("good", 3), bad("later", 4)]);
    let fault = match run.transact(&mut task, &txn).await {
        Ok(()) => {
            drop(run);
            task.check_committed().await?;
            return Ok("a key with a NUL is held as it is".to_owned());
        }
        Err(Failure::Fault(fault)) => fault,
        Err(other) => return Err(other),
    };
    drop(run);
    document_error(&fault)?;
    let said = fault.kind.to_string();
    task.check_committed().await?;
    let mut run = task.open().await?;
    task.transact(&mut run, vec![bad("good", 3), bad("later", 4)])
        .await?;
    drop(run);
    task.check_committed().await?;
    Ok(format!("refused: {said}"))
}

/// Takes the error that says which document cannot be held.
pub(super) fn document_error(fault: &Fault) -> Result<(), Failure> {
    let FaultKind::Error(error) = &fault.kind else {
        return Err(Failure::wrong(format!(
            "a document that cannot be held is to be refused with an error: {fault}"
        )));
    };
    if error.kind == ErrorKind::Document && error.binding == Some(0) && error.key.is_some() {
        return Ok(());
    }
    Err(Failure::wrong(format!(
        "a document that is refused needs the kind `document`, its binding and its key, and has \
         {:?}, {:?}, {:?}: {}",
        error.kind, error.binding, error.key, error.message
    )))
}
