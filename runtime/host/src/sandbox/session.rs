//! A session: one instance of a connector, from start to its first fault.
//!
//! ```text
//! start -> call -> answer -> call -> ... -> drop
//!            |
//!            +-> fault: the store is dropped first, every later call is Finished
//! ```
//!
//! While a call runs its store belongs to the call's future. A caller that
//! drops the future therefore drops the store, and can never meet an instance
//! that was left in the middle of something.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tidegate_wit::message::{
    AcknowledgeRequest, AcknowledgeResponse, ApplyRequest, ApplyResponse, OpenRequest,
    OpenResponse, SpecResponse, ValidateRequest, ValidateResponse,
};
use wasmtime::component::{ComponentExportIndex, ComponentNamedList, Instance, Lift, Lower};
use wasmtime::{Store, UpdateDeadline};

use super::component::Component;
use super::exports::{self, Answer};
use super::fault::{Call, Fault, FaultKind};
use super::grant::Grants;
use super::guest::Guest;
use super::limits::Limits;
use super::log::{GuestLog, LogSink, tracing_sink};
use super::stop::Stop;
use super::watchdog::Watchdog;

/// A guest yields at every tick: what computes longer than one shares its
/// thread.
const TICKS_TO_YIELD: u64 = 1;

/// What a session may use and reach.
#[derive(Clone)]
pub struct SessionConfig {
    /// Name of the task, for logs and faults.
    pub task: String,
    /// How much it may use.
    pub limits: Limits,
    /// What it may reach.
    pub grants: Grants,
    /// Whether it may only look: no file is made or changed.
    pub read_only: bool,
    /// What ends it.
    pub stop: Stop,
    /// Where its log lines go.
    pub log: LogSink,
}

impl SessionConfig {
    /// Makes one that reaches nothing, with the default limits.
    pub fn without_grants(task: impl Into<String>) -> SessionConfig {
        SessionConfig {
            task: task.into(),
            limits: Limits::default(),
            grants: Grants::none(),
            read_only: false,
            stop: Stop::never(),
            log: tracing_sink(),
        }
    }
}

/// What shows from outside that a connector is at work.
#[derive(Clone)]
pub struct Activity(Arc<Watchdog>);

impl Activity {
    /// Returns how many calls there were so far between the host and the
    /// connector, in both directions.
    pub fn calls(&self) -> u64 {
        self.0.calls()
    }
}

/// One instance of a connector.
pub struct Session {
    task: String,
    limits: Limits,
    stop: Stop,
    watchdog: Arc<Watchdog>,
    log: Arc<GuestLog>,
    /// Kept because its engine's clock ends a guest that computes for ever.
    component: Component,
    live: Option<Live>,
}

/// The part of a session that a fault ends.
struct Live {
    store: Store<Guest>,
    instance: Instance,
}

impl Session {
    pub(super) async fn start(
        component: &Component,
        config: SessionConfig,
    ) -> Result<Session, Fault> {
        let watchdog = Arc::new(Watchdog::default());
        let log = Arc::new(GuestLog::new(
            &config.task,
            &config.limits,
            config.log.clone(),
        ));
        let guest = Guest::new(&config, watchdog.clone(), log.clone());
        let mut session = Session {
            task: config.task,
            limits: config.limits,
            stop: config.stop,
            watchdog,
            log,
            component: component.clone(),
            live: None,
        };
        let guest = guest
            .map_err(|error| session.fault(Call::Start, None, FaultKind::Grant(Arc::new(error))))?;
        let mut store = session.new_store(guest);
        let pre = component.pre();
        let instance = {
            let start = pin!(pre.instantiate_async(&mut store));
            session.watch(Call::Start, None, start).await?
        };
        session.live = Some(Live { store, instance });
        Ok(session)
    }

    fn new_store(&self, guest: Guest) -> Store<Guest> {
        let mut store = Store::new(self.component.engine().wasmtime(), guest);
        store.limiter(|guest| &mut guest.limiter);
        let watchdog = self.watchdog.clone();
        let limit = self.limits.compute;
        store.epoch_deadline_callback(move |_| {
            watchdog.tick(tokio::time::Instant::now(), limit)?;
            Ok(UpdateDeadline::Yield(TICKS_TO_YIELD))
        });
        store.set_epoch_deadline(TICKS_TO_YIELD);
        store
    }

    /// Returns what tells whether the connector is at work.
    pub fn activity(&self) -> Activity {
        Activity(self.watchdog.clone())
    }

    /// Returns whether the session has ended.
    pub fn is_finished(&self) -> bool {
        self.live.is_none()
    }

    /// Asks the connector what it is.
    ///
    /// # Errors
    ///
    /// A fault, which ends the session.
    pub async fn spec(&mut self) -> Result<SpecResponse, Fault> {
        let index = self.component.exports().spec;
        let text: String = self.call(Call::Spec, None, index, ()).await?;
        self.parse(Call::Spec, &text)
    }

    /// Asks whether and how fields can be held.
    ///
    /// # Errors
    ///
    /// A fault, which ends the session.
    pub async fn validate(&mut self, request: &ValidateRequest) -> Result<ValidateResponse, Fault> {
        self.ask(Call::Validate, self.component.exports().validate, request)
            .await
    }

    /// Brings the destination from the last spec to the next.
    ///
    /// # Errors
    ///
    /// A fault, which ends the session.
    pub async fn apply(&mut self, request: &ApplyRequest) -> Result<ApplyResponse, Fault> {
        self.ask(Call::Apply, self.component.exports().apply, request)
            .await
    }

    /// Starts transactions, and fences every earlier session.
    ///
    /// # Errors
    ///
    /// A fault, which ends the session.
    pub async fn open(&mut self, request: &OpenRequest) -> Result<OpenResponse, Fault> {
        self.ask(Call::Open, self.component.exports().open, request)
            .await
    }

    /// Asks for documents by key: a batch of keys to a batch of loaded.
    ///
    /// # Errors
    ///
    /// A fault, which ends the session.
    pub async fn load(&mut self, binding: u32, keys: &[u8]) -> Result<Vec<u8>, Fault> {
        let index = self.component.exports().load;
        let loaded = self
            .answer(Call::Load, Some(binding), index, (binding, keys))
            .await?;
        self.check_batch(Call::Load, binding, loaded)
    }

    /// Asks for more of the loaded documents; an empty batch is the end.
    ///
    /// # Errors
    ///
    /// A fault, which ends the session.
    pub async fn flush(&mut self, binding: u32) -> Result<Vec<u8>, Fault> {
        let index = self.component.exports().flush;
        let loaded = self
            .answer(Call::Flush, Some(binding), index, (binding,))
            .await?;
        self.check_batch(Call::Flush, binding, loaded)
    }

    /// Hands over a batch of stores.
    ///
    /// # Errors
    ///
    /// A fault, which ends the session.
    pub async fn store(&mut self, binding: u32, batch: &[u8]) -> Result<(), Fault> {
        let index = self.component.exports().store;
        self.answer(Call::Store, Some(binding), index, (binding, batch))
            .await
    }

    /// Commits, or makes ready what `acknowledge` will commit. Returns a state
    /// patch if there is one.
    ///
    /// # Errors
    ///
    /// A fault, which ends the session.
    pub async fn start_commit(
        &mut self,
        checkpoint: &str,
    ) -> Result<Option<serde_json::Value>, Fault> {
        let index = self.component.exports().start_commit;
        let patch: Option<String> = self
            .answer(Call::StartCommit, None, index, (checkpoint,))
            .await?;
        match patch {
            Some(text) => self.parse(Call::StartCommit, &text).map(Some),
            None => Ok(None),
        }
    }

    /// Tells the connector that the transaction is durable here.
    ///
    /// # Errors
    ///
    /// A fault, which ends the session.
    pub async fn acknowledge(
        &mut self,
        request: &AcknowledgeRequest,
    ) -> Result<AcknowledgeResponse, Fault> {
        self.ask(
            Call::Acknowledge,
            self.component.exports().acknowledge,
            request,
        )
        .await
    }

    /// Makes a call with a JSON request and a JSON response.
    async fn ask<Response: DeserializeOwned>(
        &mut self,
        call: Call,
        index: ComponentExportIndex,
        request: &impl Serialize,
    ) -> Result<Response, Fault> {
        let request = serde_json::to_string(request).expect("messages have text keys only");
        let text: String = self.answer(call, None, index, (&*request,)).await?;
        self.parse(call, &text)
    }

    /// Makes a call that may return the connector's own error.
    async fn answer<Params, Return>(
        &mut self,
        call: Call,
        binding: Option<u32>,
        index: ComponentExportIndex,
        params: Params,
    ) -> Result<Return, Fault>
    where
        Params: ComponentNamedList + Lower + Send + Sync,
        Return: Lift + Send + Sync + 'static,
    {
        let answer: Answer<Return> = self.call(call, binding, index, params).await?;
        answer.map_err(|error| {
            self.finish();
            self.fault(call, binding, FaultKind::Error(error.into()))
        })
    }

    async fn call<Params, Return>(
        &mut self,
        call: Call,
        binding: Option<u32>,
        index: ComponentExportIndex,
        params: Params,
    ) -> Result<Return, Fault>
    where
        Params: ComponentNamedList + Lower + Send + Sync,
        Return: Lift + Send + Sync + 'static,
    {
        let Some(mut live) = self.live.take() else {
            return Err(self.fault(call, binding, FaultKind::Finished));
        };
        live.store.set_epoch_deadline(TICKS_TO_YIELD);
        let answer = {
            let Live { store, instance } = &mut live;
            let calling = pin!(exports::call(store, instance, &index, params));
            self.watch(call, binding, calling).await?
        };
        self.live = Some(live);
        Ok(answer)
    }

    /// Runs something of the guest's to its end, or to the end of its time.
    async fn watch<T>(
        &mut self,
        call: Call,
        binding: Option<u32>,
        future: Pin<&mut (impl Future<Output = wasmtime::Result<T>> + Send)>,
    ) -> Result<T, Fault> {
        self.watchdog.enter(call.name());
        self.log.begin_call();
        let kind = match self.watchdog.watch(future, &self.limits, &self.stop).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => FaultKind::of_engine(&error, self.log.last_words()),
            Err(interruption) => FaultKind::of_interruption(interruption, &self.limits),
        };
        Err(self.fault(call, binding, kind))
    }

    fn check_batch(&mut self, call: Call, binding: u32, batch: Vec<u8>) -> Result<Vec<u8>, Fault> {
        let limit = self.limits.batch_bytes;
        if batch.len() <= limit {
            return Ok(batch);
        }
        let reason = format!(
            "{call} returned a batch of {} bytes, and the limit is {limit}",
            batch.len()
        );
        self.finish();
        Err(self.fault(call, Some(binding), FaultKind::Protocol { reason }))
    }

    fn parse<T: DeserializeOwned>(&mut self, call: Call, text: &str) -> Result<T, Fault> {
        serde_json::from_str(text).map_err(|error| {
            self.finish();
            let reason = format!("the response of {call} is not as agreed: {error}");
            self.fault(call, None, FaultKind::Protocol { reason })
        })
    }

    fn finish(&mut self) {
        self.live = None;
    }

    fn fault(&self, call: Call, binding: Option<u32>, kind: FaultKind) -> Fault {
        Fault {
            task: self.task.clone(),
            call,
            binding,
            kind,
        }
    }
}
