//! The shard's actor: one message of the leader at a time, one answer each.
//!
//! ```text
//! Extend ----> read, combine, queue keys ------------> Extended
//! AllowLoads > send queued keys
//! Flush -----> send the rest, take what is loaded ---> Flushed
//! Store -----> drain batches into the connector,
//!              keep the letters of what is left out -> Stored
//! StartCommit, Acknowledge -> the connector's call --> its answer
//! ```
//!
//! The leader decides the order; here nothing is decided. Packing the next batch
//! and the connector's work on the last go on side by side, and so do reading and
//! an acknowledgement.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;
use tidegate_core::{Acknowledged, Extended, Extents, Key, Reply, ShardId, Source, TxnId};
use tidegate_wit::message::AcknowledgeRequest;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use super::combine::{Added, CombineGauges, Combiner, LoadBatch, Plan, StoreBatch};
use super::connector::{Answer, Connector, ConnectorHandle};
use super::error::ShardError;
use super::left_out::LeftOut;
use super::reader::Reader;
use super::refusal::{self, Given};
use crate::sandbox::{Call, Fault, FaultKind};

/// Messages that may wait for a shard. The leader waits for an answer before it
/// sends the next message of a transaction, so that only an acknowledgement, an
/// extension and the permission to load can ever be under way together.
const REQUESTS_MAX: usize = 8;

/// Loads that may be under way before the shard waits for the first: each may
/// come back with a batch of documents.
const LOADS_MAX: usize = 4;

/// What the leader asks of a shard.
#[derive(Debug)]
pub enum Request {
    /// Read and combine; the first of a transaction opens it.
    Extend {
        /// The transaction.
        txn: TxnId,
        /// What to read.
        extents: Extents,
    },
    /// The transaction before is acknowledged: keys may be loaded. Not answered.
    AllowLoads,
    /// Finish the loads.
    Flush {
        /// The transaction.
        txn: TxnId,
    },
    /// Store the combined documents.
    Store {
        /// The transaction.
        txn: TxnId,
    },
    /// Start the commit.
    StartCommit {
        /// The transaction.
        txn: TxnId,
        /// What the destination remembers.
        checkpoint: String,
    },
    /// Acknowledge the commit.
    Acknowledge {
        /// The committed transaction.
        txn: TxnId,
        /// The patch of its start-commit.
        patch: Option<Value>,
        /// Whether an earlier session committed it.
        recovery: bool,
        /// Documents stored by the last non-empty transactions.
        stored_history: Vec<u64>,
    },
}

/// A shard's answer, or why there is none.
#[derive(Debug)]
pub struct Reported {
    /// The shard.
    pub shard: ShardId,
    /// The transaction and the answer.
    pub reply: Result<(TxnId, Reply), ShardError>,
}

/// What a shard works by.
pub struct ShardConfig {
    /// The task's name.
    pub task: String,
    /// Its place among the task's shards.
    pub id: ShardId,
    /// What is combined how.
    pub plan: Arc<Plan>,
    /// What each binding reads.
    pub(crate) readers: Vec<Reader>,
    /// Which binding reads a source.
    pub(crate) sources: BTreeMap<Source, u32>,
    /// Each binding's greatest key in the destination, as far as is known.
    pub max_keys: Vec<Option<Vec<u8>>>,
    /// What the first transaction leaves out.
    pub(crate) left_out: LeftOut,
    /// Where a combiner's memory is counted.
    pub gauges: Arc<CombineGauges>,
}

/// A shard that runs. Dropping it aborts its work.
pub struct Shard {
    requests: mpsc::Sender<Request>,
    running: AbortHandle,
    connector: ConnectorHandle,
}

impl Shard {
    /// Answers that may wait for the leader, of all shards of a task: more than
    /// can be under way.
    pub const ANSWERS_MAX: usize = 64;

    /// Starts the shard on the data runtime.
    pub fn start(
        data: &Handle,
        config: ShardConfig,
        connector: Connector,
        answers: mpsc::Sender<Reported>,
    ) -> Shard {
        let (requests, received) = mpsc::channel(REQUESTS_MAX);
        let handle = connector.handle();
        let actor = Actor {
            combiner: None,
            loads_allowed: false,
            loads: VecDeque::new(),
            acknowledging: JoinSet::new(),
            connector,
            answers,
            config,
        };
        Shard {
            requests,
            running: data.spawn(actor.run(received)).abort_handle(),
            connector: handle,
        }
    }

    /// Returns the connector's session.
    pub fn connector(&self) -> &ConnectorHandle {
        &self.connector
    }

    /// Sends a message. A shard that has failed says so by its answer.
    pub async fn send(&self, request: Request) {
        let _ = self.requests.send(request).await;
    }

    /// Ends the shard, and waits until its connector's instance is gone.
    pub async fn end(self) {
        let connector = self.connector.clone();
        drop(self);
        connector.gone().await;
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        self.running.abort();
    }
}

struct Actor {
    config: ShardConfig,
    connector: Connector,
    answers: mpsc::Sender<Reported>,
    /// The open transaction's documents.
    combiner: Option<Combiner>,
    /// Whether the transaction before the open one is acknowledged.
    loads_allowed: bool,
    /// Loads under way, in the order that they were asked for.
    loads: VecDeque<(Arc<LoadBatch>, Answer<Vec<u8>>)>,
    acknowledging: JoinSet<()>,
}

impl Actor {
    async fn run(mut self, mut requests: mpsc::Receiver<Request>) {
        while let Some(request) = requests.recv().await {
            let reply = match self.serve(request).await {
                Ok(None) => continue,
                Ok(Some(reply)) => Ok(reply),
                Err(error) => Err(self.named(error)),
            };
            let failed = reply.is_err();
            let report = Reported {
                shard: self.config.id,
                reply,
            };
            if self.answers.send(report).await.is_err() || failed {
                break;
            }
        }
    }

    /// Names the collection of the binding that a connector's fault is about.
    fn named(&self, error: ShardError) -> ShardError {
        let fault = match error {
            ShardError::Refused { refusal, cause } => {
                let cause = Box::new(self.named(*cause));
                return ShardError::Refused { refusal, cause };
            }
            ShardError::Connector { fault, .. } => fault,
            error => return error,
        };
        let binding = fault
            .binding
            .and_then(|it| self.config.plan.bindings.get(it as usize));
        let collection = binding.map(|binding| binding.collection.clone());
        ShardError::Connector { fault, collection }
    }

    async fn serve(&mut self, request: Request) -> Result<Option<(TxnId, Reply)>, ShardError> {
        let (txn, reply) = match request {
            Request::Extend { txn, extents } => (txn, self.extend(&extents).await?),
            Request::AllowLoads => {
                self.loads_allowed = true;
                self.load(false).await?;
                return Ok(None);
            }
            Request::Flush { txn } => (txn, self.flush().await?),
            Request::Store { txn } => (txn, self.store().await?),
            Request::StartCommit { txn, checkpoint } => (txn, self.start_commit(checkpoint).await?),
            Request::Acknowledge {
                txn,
                patch,
                recovery,
                stored_history,
            } => {
                let patches = patch.into_iter().collect();
                let request = AcknowledgeRequest {
                    patches,
                    recovery,
                    stored_counts: stored_history,
                };
                self.acknowledge(txn, request).await;
                return Ok(None);
            }
        };
        Ok(Some((txn, reply)))
    }

    fn combiner(&mut self) -> &mut Combiner {
        let config = &self.config;
        self.combiner.get_or_insert_with(|| {
            let mut combiner = Combiner::new(
                config.plan.clone(),
                config.max_keys.clone(),
                config.gauges.clone(),
            );
            for (binding, key) in config.left_out.keys() {
                combiner.leave_out(binding, key);
            }
            combiner
        })
    }

    async fn extend(&mut self, extents: &Extents) -> Result<Reply, ShardError> {
        let mut extended = Extended::default();
        for (source, extent) in extents.iter() {
            let binding = self.config.sources[source];
            let reader = self.config.readers[binding as usize].clone();
            self.combiner();
            let combiner = self.combiner.as_mut().expect("it was just made sure of");
            let left_out = &mut self.config.left_out;
            reader
                .read(extent, |reader, batch| {
                    for document in reader.documents(batch) {
                        if left_out.takes(binding, document.offset, document.bytes) {
                            continue;
                        }
                        let checked = reader.check(&document);
                        let added =
                            checked.and_then(|()| Ok(combiner.add(binding, document.bytes)?));
                        let added = added
                            .map_err(|it| refusal::of_document(it, binding, document.offset))?;
                        if added == Added::Combined {
                            extended.documents += 1;
                            extended.bytes += document.bytes.len() as u64;
                        }
                    }
                    Ok(())
                })
                .await?;
        }
        if self.loads_allowed {
            self.load(false).await?;
        }
        let combiner = self.combiner();
        extended.combiner_bytes = combiner.bytes();
        let max_keys = (0..).zip(combiner.max_keys());
        extended.max_keys = max_keys
            .filter_map(|(binding, key)| Some((binding, Key(key?))))
            .collect();
        Ok(Reply::Extended(extended))
    }

    /// Sends queued keys to the connector: full batches, or with `all` whatever
    /// there is.
    async fn load(&mut self, all: bool) -> Result<(), ShardError> {
        while let Some(batch) = self.combiner().next_load(all) {
            let batch = Arc::new(batch);
            let asked = batch.clone();
            let load = self.connector.submit(move |session| -> BoxFuture<'_, _> {
                Box::pin(async move { session.load(asked.binding, &asked.keys).await })
            });
            let answer = load.await;
            self.loads.push_back((batch, answer));
            while self.loads.len() > LOADS_MAX {
                self.take_loaded().await?;
            }
        }
        Ok(())
    }

    /// Takes the documents of the load that was asked for first.
    async fn take_loaded(&mut self) -> Result<(), ShardError> {
        if let Some((asked, answer)) = self.loads.pop_front() {
            let loaded = answer.wait().await.ok_or(ShardError::Gone)?;
            let given = Given::Keys(&asked.keys);
            let loaded = loaded.map_err(|fault| refusal::of_connector(fault, &given))?;
            self.add_loaded(Call::Load, asked.binding, &loaded)?;
        }
        Ok(())
    }

    fn add_loaded(&mut self, call: Call, binding: u32, loaded: &[u8]) -> Result<(), ShardError> {
        let added = self.combiner().add_loaded(binding, loaded);
        Ok(added.map_err(|error| Fault {
            task: self.config.task.clone(),
            call,
            binding: Some(binding),
            kind: FaultKind::Protocol {
                reason: error.to_string(),
            },
        })?)
    }

    async fn flush(&mut self) -> Result<Reply, ShardError> {
        self.load(true).await?;
        while !self.loads.is_empty() {
            self.take_loaded().await?;
        }
        for binding in 0..self.config.plan.bindings.len() as u32 {
            if self.config.plan.bindings[binding as usize].delta_updates {
                continue;
            }
            loop {
                let flush = self.connector.submit(move |session| -> BoxFuture<'_, _> {
                    Box::pin(session.flush(binding))
                });
                let loaded = flush.await.wait().await.ok_or(ShardError::Gone)?;
                let loaded =
                    loaded.map_err(|fault| refusal::of_connector(fault, &Given::Nothing))?;
                if loaded.is_empty() {
                    break;
                }
                self.add_loaded(Call::Flush, binding, &loaded)?;
            }
        }
        Ok(Reply::Flushed)
    }

    async fn store(&mut self) -> Result<Reply, ShardError> {
        let combiner = self.combiner();
        let max_keys = combiner.max_keys();
        let mut drain = self
            .combiner
            .take()
            .expect("it was just made sure of")
            .drain();
        self.loads_allowed = false;
        let mut storing: Option<(Arc<StoreBatch>, Answer<()>)> = None;
        while let Some(batch) = drain.next_batch().map_err(refusal::of_drain)? {
            let batch = Arc::new(batch);
            let given = batch.clone();
            let store = self.connector.submit(move |session| -> BoxFuture<'_, _> {
                Box::pin(async move { session.store(given.binding, &given.rows).await })
            });
            let answer = store.await;
            if let Some(before) = storing.replace((batch, answer)) {
                stored(before).await?;
            }
        }
        if let Some(last) = storing {
            stored(last).await?;
        }
        for key in drain.take_left_out() {
            self.config.left_out.take_key(key);
        }
        self.config.left_out.keep().await?;
        self.config.max_keys = max_keys;
        let counts = (0..).zip(drain.counts());
        let rows = counts.map(|(binding, counts)| (binding, counts.stored + counts.deleted));
        Ok(Reply::Stored {
            rows: rows.filter(|(_, rows)| *rows > 0).collect(),
        })
    }

    async fn start_commit(&mut self, checkpoint: String) -> Result<Reply, ShardError> {
        let start = self.connector.submit(move |session| -> BoxFuture<'_, _> {
            Box::pin(async move { session.start_commit(&checkpoint).await })
        });
        let patch = start.await.wait().await.ok_or(ShardError::Gone)?;
        let patch = patch.map_err(|fault| refusal::of_connector(fault, &Given::Nothing))?;
        Ok(Reply::StartedCommit { patch })
    }

    /// Asks for the acknowledgement and lets it answer by itself, so that the
    /// next transaction is read meanwhile.
    async fn acknowledge(&mut self, txn: TxnId, request: AcknowledgeRequest) {
        let acknowledge = self.connector.submit(move |session| -> BoxFuture<'_, _> {
            Box::pin(async move { session.acknowledge(&request).await })
        });
        let answer = acknowledge.await;
        let (shard, answers) = (self.config.id, self.answers.clone());
        self.acknowledging.spawn(async move {
            let reply = match answer.wait().await {
                None => Err(ShardError::Gone),
                Some(Err(fault)) => Err(fault.into()),
                Some(Ok(response)) => {
                    let (patch, pace) = (response.patch, response.pace);
                    Ok((txn, Reply::Acknowledged(Acknowledged { patch, pace })))
                }
            };
            // The session may be over.
            let _ = answers.send(Reported { shard, reply }).await;
        });
    }
}

/// Waits until a batch is stored.
async fn stored((given, answer): (Arc<StoreBatch>, Answer<()>)) -> Result<(), ShardError> {
    let stored = answer.wait().await.ok_or(ShardError::Gone)?;
    stored.map_err(|fault| refusal::of_connector(fault, &Given::Stores(&given.rows)))
}
