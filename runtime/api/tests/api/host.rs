//! A host that keeps everything in memory.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::stream::{self, BoxStream, StreamExt};
use futures::{FutureExt, TryFutureExt};
use tidegate_api::v1::diagnostic::Severity;
use tidegate_api::v1::sync_now_response::{Ack, Done, Outcome};
use tidegate_api::v1::task::State;
use tidegate_api::{Backend, Code, Error, Readiness, SyncNow, async_trait, v1};
use tokio::sync::{oneshot, watch};

/// The tasks that there are at first.
pub const TASKS: [&str; 3] = ["acmeCo/a", "acmeCo/b", "other/a"];

/// A collection that there is at first, empty.
pub const COLLECTION: &str = "acmeCo/orders";

/// A collection with a document for every offset, far more than anybody reads.
pub const ENDLESS: &str = "acmeCo/endless";

/// A task over which the host trips.
pub const BROKEN: &str = "acmeCo/broken";

pub struct MemoryHost {
    tasks: Mutex<BTreeMap<String, watch::Sender<v1::Task>>>,
    documents: Mutex<BTreeMap<String, Vec<String>>>,
    keys: Mutex<BTreeMap<String, bytes::Bytes>>,
    waiting: Mutex<Vec<oneshot::Sender<Result<Done, Error>>>>,
    catalog: Mutex<Option<v1::CatalogFiles>>,
    pub readiness: Mutex<Readiness>,
    /// Sync-now calls that callers still wait for.
    pub held: std::sync::Arc<AtomicUsize>,
    /// Documents that were taken out of the endless collection.
    pub produced: std::sync::Arc<AtomicUsize>,
    /// Appends that wait for it to change, so that callers can hang up meanwhile.
    pub gate: watch::Sender<bool>,
}

impl MemoryHost {
    pub fn new() -> MemoryHost {
        let task = |name: &str| {
            let task = v1::Task {
                name: name.to_owned(),
                state: State::Running.into(),
                read_docs_total: 5_000,
                status: Some(status()),
                ..Default::default()
            };
            (name.to_owned(), watch::Sender::new(task))
        };
        MemoryHost {
            tasks: Mutex::new(TASKS.iter().map(|name| task(name)).collect()),
            documents: Mutex::new(BTreeMap::from([(COLLECTION.to_owned(), Vec::new())])),
            keys: Mutex::default(),
            waiting: Mutex::default(),
            catalog: Mutex::default(),
            readiness: Mutex::new(Readiness::Ready),
            held: Default::default(),
            produced: Default::default(),
            gate: watch::Sender::new(true),
        }
    }

    /// Resolves every sync-now call that waits; returns how many there were.
    pub fn commit(&self, result: &Result<Done, Error>) -> usize {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap());
        waiting
            .into_iter()
            .filter_map(|done| done.send(result.clone()).ok())
            .count()
    }

    /// Changes a task, as its leader would.
    pub fn change(&self, name: &str, change: impl FnOnce(&mut v1::Task)) {
        self.tasks.lock().unwrap()[name].send_modify(change);
    }

    pub fn documents(&self, collection: &str) -> Vec<String> {
        self.documents.lock().unwrap()[collection].clone()
    }

    fn find(&self, name: &str) -> Result<watch::Receiver<v1::Task>, Error> {
        assert_ne!(name, BROKEN, "the host trips");
        let tasks = self.tasks.lock().unwrap();
        let task = tasks.get(name).ok_or_else(|| Error::unknown_task(name))?;
        Ok(task.subscribe())
    }

    fn set(&self, name: &str, state: State) -> Result<v1::Task, Error> {
        let found = self.find(name)?;
        self.change(name, |task| task.set_state(state));
        Ok(found.borrow().clone())
    }
}

fn status() -> v1::Status {
    v1::Status {
        sourced_docs_total: 5_000,
        sourced_bytes_total: 1 << 40,
        head_phase: v1::head::Phase::Extend.into(),
        tail_phase: v1::tail::Phase::Done.into(),
        held_until: Some(prost_types::Timestamp {
            seconds: 4_102_444_800,
            nanos: 0,
        }),
        ..Default::default()
    }
}

pub fn done() -> Done {
    Done {
        committed_docs_total: 5_000,
        committed_bytes_total: 1 << 40,
        duration_millis: 7,
    }
}

/// Counts what is waited for until it is dropped.
struct Held(std::sync::Arc<AtomicUsize>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn diagnostics(catalog: &v1::CatalogFiles) -> Vec<v1::Diagnostic> {
    let bad = catalog
        .files
        .iter()
        .filter(|(_, text)| text.contains("bad"));
    bad.map(|(file, _)| v1::Diagnostic {
        code: "unknown-field".to_owned(),
        severity: Severity::Error.into(),
        message: "there is no such field".to_owned(),
        place: Some(v1::Place {
            file: file.clone(),
            line: 3,
            column: 5,
            pointer: "/materializations".to_owned(),
        }),
        help: "take it out".to_owned(),
        related: Vec::new(),
    })
    .collect()
}

#[async_trait]
impl Backend for MemoryHost {
    async fn sync_now(&self, request: v1::SyncNowRequest) -> Result<SyncNow, Error> {
        let task = self.find(&request.task)?;
        let state = task.borrow().state();
        match state {
            State::Running => {}
            State::Pending => {
                return Err(Error::new(Code::Unavailable, "there is no leader just now"));
            }
            _ => return Err(Error::new(Code::NotFound, "the task is stopped: start it")),
        }
        let (finish, finished) = oneshot::channel();
        let mut waiting = self.waiting.lock().unwrap();
        let outcome = match waiting.is_empty() {
            true => Outcome::HeldCollapsed,
            false => Outcome::AlreadyClosing,
        };
        waiting.push(finish);
        self.held.fetch_add(1, Ordering::SeqCst);
        let held = Held(self.held.clone());
        let lost = |_| Error::new(Code::Unavailable, "the session ended before the commit");
        let done = finished.map_err(lost).map(|done| done.flatten());
        Ok(SyncNow {
            ack: Ack {
                outcome: outcome.into(),
                status: task.borrow().status,
            },
            done: async move {
                let _held = held;
                done.await
            }
            .boxed(),
        })
    }

    async fn tasks(&self) -> Result<Vec<v1::Task>, Error> {
        let tasks = self.tasks.lock().unwrap();
        Ok(tasks.values().map(|task| task.borrow().clone()).collect())
    }

    async fn task(&self, name: &str) -> Result<v1::Task, Error> {
        Ok(self.find(name)?.borrow().clone())
    }

    async fn watch_task(
        &self,
        name: &str,
    ) -> Result<BoxStream<'static, Result<v1::Task, Error>>, Error> {
        let mut task = self.find(name)?;
        task.mark_changed();
        let tasks = stream::unfold((task, false), |(mut task, over)| async move {
            if over || task.changed().await.is_err() {
                return None;
            }
            let shown = task.borrow_and_update().clone();
            let over = matches!(shown.state(), State::Stopped | State::Failed);
            Some((Ok(shown), (task, over)))
        });
        Ok(tasks.boxed())
    }

    async fn stop_task(&self, name: &str) -> Result<v1::Task, Error> {
        self.set(name, State::Stopped)
    }

    async fn start_task(&self, name: &str) -> Result<v1::Task, Error> {
        self.set(name, State::Running)
    }

    async fn append(&self, request: v1::AppendRequest) -> Result<v1::AppendResponse, Error> {
        let mut gate = self.gate.subscribe();
        gate.wait_for(|open| *open).await.unwrap();
        let mut documents = self.documents.lock().unwrap();
        let name = &request.collection;
        let documents = documents
            .get_mut(name)
            .ok_or_else(|| Error::unknown_collection(name))?;
        let text = std::str::from_utf8(&request.documents)
            .map_err(|_| Error::new(Code::InvalidArgument, "line 1: no UTF-8"))?;
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for (at, line) in lines.iter().enumerate() {
            let parsed: Result<serde_json::Value, _> = serde_json::from_str(line);
            parsed.map_err(|error| {
                Error::new(Code::InvalidArgument, format!("line {}: {error}", at + 1))
            })?;
        }
        let count = lines.len() as u64;
        let answer = |repeated| v1::AppendResponse {
            appended_docs: count,
            repeated,
            checked: true,
        };
        if !request.idempotency_key.is_empty() {
            let mut keys = self.keys.lock().unwrap();
            match keys.get(&request.idempotency_key) {
                Some(before) if *before == request.documents => return Ok(answer(true)),
                Some(_) => {
                    return Err(Error::new(
                        Code::FailedPrecondition,
                        "the idempotency key came with other documents before",
                    ));
                }
                None => {
                    keys.insert(request.idempotency_key, request.documents.clone());
                }
            }
        }
        documents.extend(lines);
        Ok(answer(false))
    }

    async fn read(
        &self,
        request: v1::ReadRequest,
    ) -> Result<BoxStream<'static, Result<v1::ReadResponse, Error>>, Error> {
        if request.collection == ENDLESS {
            let produced = self.produced.clone();
            let document = "x".repeat(1 << 16);
            let documents = (0..1_000_000).map(move |offset| {
                produced.fetch_add(1, Ordering::SeqCst);
                Ok(v1::ReadResponse {
                    offset,
                    document: document.clone(),
                })
            });
            return Ok(stream::iter(documents).boxed());
        }
        let documents = self.documents.lock().unwrap();
        let documents = documents
            .get(&request.collection)
            .ok_or_else(|| Error::unknown_collection(&request.collection))?;
        let limit = match request.limit {
            0 => usize::MAX,
            limit => limit as usize,
        };
        let documents: Vec<_> = (0..)
            .zip(documents.clone())
            .skip(request.from_offset as usize)
            .take(limit)
            .map(|(offset, document)| Ok(v1::ReadResponse { offset, document }))
            .collect();
        Ok(stream::iter(documents).boxed())
    }

    async fn validate(&self, catalog: v1::CatalogFiles) -> Result<v1::ValidateResponse, Error> {
        let diagnostics = diagnostics(&catalog);
        Ok(v1::ValidateResponse {
            valid: diagnostics.is_empty(),
            diagnostics,
        })
    }

    async fn publish(&self, request: v1::PublishRequest) -> Result<v1::PublishResponse, Error> {
        let catalog = request
            .catalog
            .expect("the server checks that there is one");
        let diagnostics = diagnostics(&catalog);
        let valid = diagnostics.is_empty();
        let published = valid && !request.dry_run;
        if published {
            *self.catalog.lock().unwrap() = Some(catalog);
        }
        let change = v1::TaskChange {
            task: TASKS[0].to_owned(),
            kind: v1::task_change::Kind::Changed.into(),
            ..Default::default()
        };
        Ok(v1::PublishResponse {
            valid,
            published,
            diagnostics,
            changes: Vec::from_iter(valid.then_some(change)),
        })
    }

    async fn catalog(&self) -> Result<v1::GetCatalogResponse, Error> {
        let catalog = self.catalog.lock().unwrap().clone();
        let nothing = || Error::new(Code::NotFound, "no catalog was published");
        Ok(v1::GetCatalogResponse {
            catalog: Some(catalog.ok_or_else(nothing)?),
            published_at: Some(prost_types::Timestamp::default()),
        })
    }

    fn readiness(&self) -> Readiness {
        self.readiness.lock().unwrap().clone()
    }
}
