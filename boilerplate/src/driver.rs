//! Between the protocol and a connector.
//!
//! ```text
//! call -> order allowed? -> JSON or batch read -> the connector's method -> JSON or batch written
//! ```
//!
//! The driver knows the order of calls, which loads are still to be flushed, and
//! whether the session is paced. It knows nothing of any destination, and never
//! looks into a document.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tidegate_wit::batch;

use crate::batch::{Keys, Loaded, Stores};
use crate::connector::{Connector, Opened, Transactor};
use crate::error::ConnectorError;
use crate::order::{Call, Order};
use crate::pacing;
use crate::{AcknowledgeRequest, AcknowledgeResponse, OpenRequest, OpenResponse, Pacing};

/// The calls of the protocol, as the host makes them: JSON text and packed
/// batches. `wit/connector.wit` says what each means.
#[allow(clippy::missing_errors_doc)] // Each fails as the connector does.
pub trait Protocol {
    /// Returns a `spec-response`.
    fn spec(&mut self) -> String;
    /// Answers a `validate-request`.
    fn validate(&mut self, request: &str) -> Result<String, ConnectorError>;
    /// Answers an `apply-request`.
    fn apply(&mut self, request: &str) -> Result<String, ConnectorError>;
    /// Answers an `open-request`.
    fn open(&mut self, request: &str) -> Result<String, ConnectorError>;
    /// Answers keys with loaded documents.
    fn load(&mut self, binding: u32, keys: &[u8]) -> Result<Vec<u8>, ConnectorError>;
    /// Returns loaded documents until there are no more.
    fn flush(&mut self, binding: u32) -> Result<Vec<u8>, ConnectorError>;
    /// Takes documents.
    fn store(&mut self, binding: u32, batch: &[u8]) -> Result<(), ConnectorError>;
    /// Commits or stages; returns a state patch.
    fn start_commit(&mut self, checkpoint: &str) -> Result<Option<String>, ConnectorError>;
    /// Answers an `acknowledge-request`.
    fn acknowledge(&mut self, request: &str) -> Result<String, ConnectorError>;
}

/// Runs a connector under the protocol.
pub struct Driver<C: Connector> {
    connector: C,
    order: Order,
    session: Option<Session<C::Transactor>>,
}

struct Session<T> {
    transactor: T,
    bindings: Vec<BindingLoads>,
    paced: bool,
}

/// What of a binding's loads is under way.
struct BindingLoads {
    delta_updates: bool,
    next_ordinal: u32,
    unflushed: bool,
    loaded: Loaded,
}

impl<C: Connector> Driver<C> {
    /// Returns a driver without a session.
    pub fn new(connector: C) -> Self {
        Self {
            connector,
            order: Order::default(),
            session: None,
        }
    }

    /// Makes a call if its turn has come; an error ends the session.
    fn call<R>(
        &mut self,
        call: Call,
        run: impl FnOnce(&mut Self) -> Result<R, ConnectorError>,
    ) -> Result<R, ConnectorError> {
        let unflushed = |session: &Session<_>| session.bindings.iter().any(|it| it.unflushed);
        let unflushed = self.session.as_ref().is_some_and(unflushed);
        let result = self.order.enter(call, unflushed).and_then(|()| run(self));
        if result.is_err() {
            self.order.fail();
        }
        result
    }

    fn session(&mut self) -> &mut Session<C::Transactor> {
        self.session
            .as_mut()
            .expect("no call that needs a session is allowed before open")
    }

    /// Returns the session's transactor and the loads of a binding.
    fn binding(
        &mut self,
        binding: u32,
    ) -> Result<(&mut C::Transactor, &mut BindingLoads), ConnectorError> {
        let Session {
            transactor,
            bindings,
            ..
        } = self.session();
        let count = bindings.len();
        match bindings.get_mut(binding as usize) {
            Some(loads) => Ok((transactor, loads)),
            None => Err(ConnectorError::internal(format!(
                "there is no binding {binding}: the spec has {count}"
            ))),
        }
    }

    fn start(&mut self, request: &OpenRequest) -> Result<OpenResponse, ConnectorError> {
        let pacing = self.pacing(request)?;
        let (opened, transactor) = self.connector.open(request)?;
        let bindings = request.spec.bindings.iter().map(|binding| BindingLoads {
            delta_updates: binding.delta_updates,
            next_ordinal: 0,
            unflushed: false,
            loaded: Loaded::default(),
        });
        self.session = Some(Session {
            transactor,
            bindings: bindings.collect(),
            paced: pacing.is_some(),
        });
        let Opened {
            authority,
            guarantee,
            checkpoint,
            jitter_key,
        } = opened;
        Ok(OpenResponse {
            authority,
            guarantee,
            checkpoint,
            jitter_key,
            pacing,
        })
    }

    fn pacing(&self, request: &OpenRequest) -> Result<Option<Pacing>, ConnectorError> {
        let schema = self.connector.spec().config_schema;
        let offered = |property: &str| schema["properties"].get(property).is_some();
        let mut properties = pacing::CONFIG_PROPERTIES.into_iter();
        let Some((property, decide)) = properties.find(|(property, _)| offered(property)) else {
            return Ok(None);
        };
        let spec = &request.spec;
        let schedule =
            decide(spec.sync_schedule.as_ref(), spec.config.get(property)).map_err(|error| {
                ConnectorError::config(format!("the config's {property} is wrong: {error}"))
                    .of_field(property)
            })?;
        Ok(schedule.map(|schedule| Pacing {
            schedule: serde_json::to_value(schedule).expect("a schedule is text under text"),
        }))
    }
}

impl<C: Connector + Default> Default for Driver<C> {
    fn default() -> Self {
        Self::new(C::default())
    }
}

impl<C: Connector> Protocol for Driver<C> {
    fn spec(&mut self) -> String {
        let mut spec = self.connector.spec();
        // Not the connector's to say: `pacing` sees to it for every connector.
        spec.defers_to_schedule = true;
        write(&spec)
    }

    fn validate(&mut self, request: &str) -> Result<String, ConnectorError> {
        self.call(Call::Validate, |driver| {
            let request = read("validate-request", request)?;
            driver.connector.validate(&request).map(|it| write(&it))
        })
    }

    fn apply(&mut self, request: &str) -> Result<String, ConnectorError> {
        self.call(Call::Apply, |driver| {
            let request = read("apply-request", request)?;
            driver.connector.apply(&request).map(|it| write(&it))
        })
    }

    fn open(&mut self, request: &str) -> Result<String, ConnectorError> {
        self.call(Call::Open, |driver| {
            let request = read("open-request", request)?;
            driver.start(&request).map(|it| write(&it))
        })
    }

    fn load(&mut self, binding: u32, keys: &[u8]) -> Result<Vec<u8>, ConnectorError> {
        self.call(Call::Load, |driver| {
            let (transactor, loads) = driver.binding(binding)?;
            if loads.delta_updates {
                return Err(ConnectorError::internal(
                    "load was called for a binding of delta updates, which are never loaded",
                ));
            }
            // Counted here: a connector may leave keys of a batch unread, and the next
            // batch's ordinals go on after all of them.
            let mut count = 0;
            for key in batch::rows(keys) {
                key?;
                count += 1;
            }
            let keys = Keys::new(keys, loads.next_ordinal);
            loads.next_ordinal += count;
            loads.unflushed = true;
            transactor.load(binding, keys, &mut loads.loaded)?;
            Ok(loads.loaded.take())
        })
        .map_err(|error| error.of_binding(binding))
    }

    fn flush(&mut self, binding: u32) -> Result<Vec<u8>, ConnectorError> {
        self.call(Call::Flush, |driver| {
            let (transactor, loads) = driver.binding(binding)?;
            if loads.unflushed && loads.loaded.is_empty() {
                transactor.flush(binding, &mut loads.loaded)?;
            }
            loads.unflushed &= !loads.loaded.is_empty();
            Ok(loads.loaded.take())
        })
        .map_err(|error| error.of_binding(binding))
    }

    fn store(&mut self, binding: u32, batch: &[u8]) -> Result<(), ConnectorError> {
        self.call(Call::Store, |driver| {
            let (transactor, _) = driver.binding(binding)?;
            transactor.store(binding, Stores::new(batch))
        })
        .map_err(|error| error.of_binding(binding))
    }

    fn start_commit(&mut self, checkpoint: &str) -> Result<Option<String>, ConnectorError> {
        self.call(Call::StartCommit, |driver| {
            let session = driver.session();
            let patch = session.transactor.start_commit(checkpoint)?;
            for loads in &mut session.bindings {
                loads.next_ordinal = 0;
            }
            Ok(patch.map(|patch| write(&patch)))
        })
    }

    fn acknowledge(&mut self, request: &str) -> Result<String, ConnectorError> {
        let request = read("acknowledge-request", request);
        let request: AcknowledgeRequest = request.inspect_err(|_| self.order.fail())?;
        let AcknowledgeRequest {
            patches,
            recovery,
            stored_counts,
        } = request;
        self.call(Call::Acknowledge { recovery }, |driver| {
            let session = driver.session();
            let patch = session.transactor.acknowledge(&patches, recovery)?;
            Ok(write(&AcknowledgeResponse {
                patch,
                pace: session.paced && pacing::holds_acknowledgement(recovery, &stored_counts),
            }))
        })
    }
}

fn read<T: DeserializeOwned>(message: &str, text: &str) -> Result<T, ConnectorError> {
    serde_json::from_str(text)
        .map_err(|error| ConnectorError::internal(format!("the {message} is malformed: {error}")))
}

fn write<T: Serialize>(message: &T) -> String {
    serde_json::to_string(message).expect("a message has text keys and finite numbers only")
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
