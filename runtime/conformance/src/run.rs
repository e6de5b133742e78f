//! A session of a check, which may be killed at any call.
//!
//! ```text
//! open -> load.. flush.. store.. start-commit -> [persist] -> acknowledge -> load..
//! ```
//!
//! Every call counts, and so does what the host does between start-commit and
//! acknowledge: a crash there is the one that is easily forgotten.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use serde_json::Value;
use tidegate_host::document::{Tape, shown};
use tidegate_host::sandbox::{Fault, Session};
use tidegate_wit::batch;
use tidegate_wit::message::{AcknowledgeRequest, Guarantee, OpenRequest, OpenResponse};

use crate::bench::Updates;
use crate::failure::Failure;
use crate::kill::{Kill, Killed};
use crate::sample::Write;
use crate::task::{Task, Txn};

/// A call of the host, or what it does between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Open,
    Load,
    Flush,
    Store,
    StartCommit,
    /// The host makes the commit durable.
    Persist,
    Acknowledge,
}

impl Step {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Step::Open => "open",
            Step::Load => "load",
            Step::Flush => "flush",
            Step::Store => "store",
            Step::StartCommit => "start-commit",
            Step::Persist => "the host's commit",
            Step::Acknowledge => "acknowledge",
        }
    }
}

/// A session.
pub(crate) struct Run {
    pub(crate) session: Session,
    pub(crate) opened: OpenResponse,
    kill: Option<Kill>,
    /// Steps that were begun.
    pub(crate) steps: Vec<Step>,
    /// Whether the call in which it was to be killed ended before that.
    pub(crate) outlived: bool,
}

/// Key tuples, by binding.
pub(crate) type Keys = BTreeMap<u32, Vec<Vec<u8>>>;

/// Writes by key tuple, by binding.
pub(crate) type Sorted<'w> = BTreeMap<u32, BTreeMap<Vec<u8>, &'w Write>>;

/// Documents as they were loaded: of each binding, in the order of its keys.
pub(crate) type Loaded = BTreeMap<u32, Vec<Option<String>>>;

impl Run {
    /// Opens a session.
    pub(crate) async fn open(
        session: Session,
        request: OpenRequest,
        kill: Option<Kill>,
    ) -> Result<Run, Failure> {
        let mut run = Run {
            session,
            opened: OpenResponse {
                authority: tidegate_wit::message::Authority::Log,
                guarantee: Guarantee::AtLeastOnce,
                checkpoint: None,
                jitter_key: None,
                pacing: None,
            },
            kill,
            steps: Vec::new(),
            outlived: false,
        };
        run.opened = run
            .call(Step::Open, move |session| {
                Box::pin(async move { session.open(&request).await })
            })
            .await?;
        Ok(run)
    }

    async fn call<T: 'static>(
        &mut self,
        step: Step,
        call: impl for<'a> FnOnce(&'a mut Session) -> BoxFuture<'a, Result<T, Fault>>,
    ) -> Result<T, Failure> {
        let number = self.steps.len();
        self.steps.push(step);
        match self.kill {
            Some(Kill { call: at, waits }) if at == number => {
                let Some(waits) = waits else {
                    return Err(Failure::Killed);
                };
                let answer = Killed::after(waits, call(&mut self.session)).await;
                let answer = answer.ok_or(Failure::Killed)?;
                self.outlived = true;
                Ok(answer?)
            }
            _ => Ok(call(&mut self.session).await?),
        }
    }

    /// Loads keys, and flushes until nothing comes any more.
    pub(crate) async fn load(&mut self, task: &Task<'_>, keys: &Keys) -> Result<Loaded, Failure> {
        let mut loaded: Loaded = keys
            .iter()
            .map(|(binding, keys)| (*binding, vec![None; keys.len()]))
            .collect();
        for (binding, keys) in keys {
            for keys in batches(keys) {
                let binding = *binding;
                let answer = self
                    .call(Step::Load, move |session| {
                        Box::pin(async move { session.load(binding, &keys).await })
                    })
                    .await?;
                take(binding, &answer, &mut loaded)?;
            }
        }
        for (binding, updates) in (0..).zip(&task.updates) {
            if *updates == Updates::Standard {
                self.flush(binding, &mut loaded).await?;
            }
        }
        Ok(loaded)
    }

    async fn flush(&mut self, binding: u32, loaded: &mut Loaded) -> Result<(), Failure> {
        loop {
            let answer = self
                .call(Step::Flush, move |session| Box::pin(session.flush(binding)))
                .await?;
            if answer.is_empty() {
                return Ok(());
            }
            take(binding, &answer, loaded)?;
        }
    }

    /// Loads the keys of some writes, compares what comes with what is committed,
    /// and stores the writes.
    pub(crate) async fn load_and_store(
        &mut self,
        task: &Task<'_>,
        writes: &[Write],
    ) -> Result<(), Failure> {
        let sorted = sorted(task, writes);
        let loaded = self.load_sorted(task, &sorted).await?;
        self.store_sorted(task, &sorted, &loaded).await
    }

    /// Loads the keys of some writes, and compares what comes with what is committed.
    pub(crate) async fn load_sorted(
        &mut self,
        task: &Task<'_>,
        sorted: &Sorted<'_>,
    ) -> Result<Loaded, Failure> {
        let standard = |binding: &u32| task.updates[*binding as usize] == Updates::Standard;
        let keys: Keys = sorted
            .iter()
            .filter(|(binding, _)| standard(binding))
            .map(|(binding, writes)| (*binding, writes.keys().cloned().collect()))
            .collect();
        let loaded = self.load(task, &keys).await?;
        if self.opened.guarantee == Guarantee::ExactlyOnce {
            compare(task, &keys, &loaded)?;
        }
        Ok(loaded)
    }

    /// Stores writes whose keys were loaded.
    pub(crate) async fn store_sorted(
        &mut self,
        task: &Task<'_>,
        sorted: &Sorted<'_>,
        loaded: &Loaded,
    ) -> Result<(), Failure> {
        for (&binding, writes) in sorted {
            let mut rows = Vec::new();
            for (at, (key, write)) in writes.iter().enumerate() {
                let exists = loaded.get(&binding).is_some_and(|it| it[at].is_some());
                batch::push_store(
                    &mut rows,
                    &batch::Store {
                        key,
                        values: &task.values(write),
                        document: write.document.as_bytes(),
                        exists,
                        delete: write.delete,
                    },
                );
                if rows.len() >= batch::BATCH_BYTES_MIN {
                    self.store(binding, std::mem::take(&mut rows)).await?;
                }
            }
            if !rows.is_empty() {
                self.store(binding, rows).await?;
            }
        }
        Ok(())
    }

    /// Hands over a batch.
    pub(crate) async fn store(&mut self, binding: u32, rows: Vec<u8>) -> Result<(), Failure> {
        self.call(Step::Store, move |session| {
            Box::pin(async move { session.store(binding, &rows).await })
        })
        .await
    }

    /// Starts the commit; returns the state patch.
    pub(crate) async fn start_commit(
        &mut self,
        checkpoint: &str,
    ) -> Result<Option<Value>, Failure> {
        let checkpoint = checkpoint.to_owned();
        self.call(Step::StartCommit, move |session| {
            Box::pin(async move { session.start_commit(&checkpoint).await })
        })
        .await
    }

    /// Runs a whole transaction.
    pub(crate) async fn transact(&mut self, task: &mut Task<'_>, txn: &Txn) -> Result<(), Failure> {
        self.load_and_store(task, &txn.writes).await?;
        let patch = self.start_commit(&txn.checkpoint).await?;
        self.call(Step::Persist, |_| Box::pin(async { Ok(()) }))
            .await?;
        task.persist(txn, patch);
        self.acknowledge(task, false).await?;
        Ok(())
    }

    /// Acknowledges what is committed; says whether the host is to hold it.
    pub(crate) async fn acknowledge(
        &mut self,
        task: &mut Task<'_>,
        recovery: bool,
    ) -> Result<bool, Failure> {
        let request = AcknowledgeRequest {
            patches: task.unacknowledged.clone().unwrap_or_default(),
            recovery,
            stored_counts: task.stored_counts.clone(),
        };
        let response = self
            .call(Step::Acknowledge, move |session| {
                Box::pin(async move { session.acknowledge(&request).await })
            })
            .await?;
        task.unacknowledged = None;
        response.patch.iter().for_each(|patch| task.merge(patch));
        Ok(response.pace)
    }
}

/// Puts writes in the order in which they are stored.
pub(crate) fn sorted<'w>(task: &Task<'_>, writes: &'w [Write]) -> Sorted<'w> {
    let mut sorted = Sorted::new();
    for write in writes {
        let of_binding = sorted.entry(write.binding).or_default();
        let twice = of_binding.insert(task.key(write), write);
        assert!(twice.is_none(), "a check has a key twice in a transaction");
    }
    sorted
}

fn batches(keys: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut batches = vec![Vec::new()];
    for key in keys {
        if batches
            .last()
            .is_some_and(|it| it.len() >= batch::BATCH_BYTES_MIN)
        {
            batches.push(Vec::new());
        }
        let last = batches.last_mut().expect("there is one from the start");
        batch::push_row(last, key);
    }
    batches.retain(|batch| !batch.is_empty());
    batches
}

fn take(binding: u32, answer: &[u8], loaded: &mut Loaded) -> Result<(), Failure> {
    let wrong = |what: String| {
        Err(Failure::wrong(format!(
            "what was loaded for binding {binding} {what}"
        )))
    };
    for row in batch::loaded(answer) {
        let (ordinal, document) = match row {
            Ok(row) => row,
            Err(error) => return wrong(format!("is malformed: {error}")),
        };
        let asked = loaded.entry(binding).or_default();
        let Some(place) = asked.get_mut(ordinal as usize) else {
            let asked = asked.len();
            return wrong(format!(
                "has the ordinal {ordinal}, and {asked} keys were asked for"
            ));
        };
        let document = String::from_utf8_lossy(document).into_owned();
        if place.replace(document).is_some() {
            return wrong(format!("has the ordinal {ordinal} twice"));
        }
    }
    Ok(())
}

/// Compares what was loaded with what is committed.
pub(crate) fn compare(task: &Task<'_>, keys: &Keys, loaded: &Loaded) -> Result<(), Failure> {
    for (binding, keys) in keys {
        let committed = &task.committed(*binding).documents;
        for (key, found) in keys.iter().zip(&loaded[binding]) {
            let problem = match (committed.get(key), found) {
                (None, None) => continue,
                (Some(want), Some(found)) if equal(want, found) => continue,
                (Some(want), Some(found)) => {
                    format!("{} came back as {}", shown(want), shown(found))
                }
                (Some(want), None) => format!("{} was committed and is not there", shown(want)),
                (None, Some(found)) => format!("{} is there and was never committed", shown(found)),
            };
            return Err(Failure::wrong(format!("binding {binding}: {problem}")));
        }
    }
    Ok(())
}

/// Says whether two texts are equal as JSON, to the last digit.
pub(crate) fn equal(a: &str, b: &str) -> bool {
    let (mut left, mut right) = (Tape::default(), Tape::default());
    match (left.parse(a.as_bytes()), right.parse(b.as_bytes())) {
        (Ok(left), Ok(right)) => left.root().equals(&right.root()),
        _ => false,
    }
}
