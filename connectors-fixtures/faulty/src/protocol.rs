//! Where a fault happens: before or after a call, of a driver that knows nothing of
//! it.
//!
//! ```text
//! call -> due? -> [fault] -> driver -> [fault] -> answer, perhaps spoiled
//! ```

use std::collections::BTreeMap;

use serde_json::Value;
use tidegate_boilerplate::{ConnectorError, Driver, Protocol};

use crate::config::{Call, Config, Fault, FaultKind};
use crate::connector::FaultyConnector;
use crate::fault::Counter;

/// The connector of the component.
#[derive(Default)]
pub struct Faulty {
    driver: Driver<FaultyConnector>,
    calls: BTreeMap<Call, u32>,
    armed: Option<Armed>,
}

/// An answer that says that all is done, and nothing else.
trait Nothing {
    fn nothing() -> Self;
}

impl Nothing for () {
    fn nothing() {}
}

impl Nothing for Vec<u8> {
    fn nothing() -> Vec<u8> {
        Vec::new()
    }
}

impl Nothing for String {
    fn nothing() -> String {
        "{}".to_owned()
    }
}

impl Nothing for Option<String> {
    fn nothing() -> Option<String> {
        None
    }
}

/// The config's fault.
struct Armed {
    fault: Fault,
    /// If the fault may only happen so often: the database that its counter is
    /// beside. It is opened when the fault is due, as `validate` has no grants.
    counter: Option<(String, u32)>,
}

impl Faulty {
    /// Learns the fault from a request, which has the config at a pointer.
    fn arm(&mut self, request: &str, config: &str) -> Result<(), ConnectorError> {
        let request: Value = serde_json::from_str(request).map_err(|error| {
            ConnectorError::internal(format!("the request is malformed: {error}"))
        })?;
        let config = Config::read(request.pointer(config).unwrap_or(&Value::Null))?;
        self.armed = match config.fault {
            Some(fault) => Some(Armed {
                counter: fault.times.map(|times| (config.path.clone(), times)),
                fault,
            }),
            None => None,
        };
        Ok(())
    }

    /// Returns the fault if it is to happen in this call, which is counted.
    fn due(&mut self, call: Call, content: &[u8]) -> Result<Option<Fault>, ConnectorError> {
        let count = self.calls.entry(call).or_default();
        *count += 1;
        let Some(Armed { fault, counter }) = &self.armed else {
            return Ok(None);
        };
        let has = |text: &String| {
            let text = text.as_bytes();
            text.is_empty() || content.windows(text.len()).any(|window| window == text)
        };
        let here = fault.call == call
            && fault.nth.is_none_or(|nth| nth == *count)
            && fault.on_document.as_ref().is_none_or(has);
        let left = match counter {
            Some((path, times)) if here => Counter::beside(path)?.take(*times)?,
            _ => true,
        };
        Ok((here && left).then(|| fault.clone()))
    }

    /// Makes a call, with its fault.
    fn call<R: Nothing>(
        &mut self,
        call: Call,
        content: &[u8],
        run: impl FnOnce(&mut Driver<FaultyConnector>) -> Result<R, ConnectorError>,
        spoil: impl FnOnce(&Fault, &mut R),
    ) -> Result<R, ConnectorError> {
        let Some(fault) = self.due(call, content)? else {
            return run(&mut self.driver);
        };
        if fault.kind == FaultKind::Skip {
            return Ok(R::nothing());
        }
        if !fault.after {
            fault.happen(call)?;
        }
        let mut answer = run(&mut self.driver)?;
        if fault.after {
            fault.happen(call)?;
        }
        if fault.kind == FaultKind::Violate {
            spoil(&fault, &mut answer);
        }
        Ok(answer)
    }
}

impl Protocol for Faulty {
    fn spec(&mut self) -> String {
        self.driver.spec()
    }

    fn validate(&mut self, request: &str) -> Result<String, ConnectorError> {
        self.arm(request, "/config")?;
        self.call(
            Call::Validate,
            &[],
            |driver| driver.validate(request),
            Fault::spoil_message,
        )
    }

    fn apply(&mut self, request: &str) -> Result<String, ConnectorError> {
        self.arm(request, "/next/config")?;
        self.call(
            Call::Apply,
            &[],
            |driver| driver.apply(request),
            Fault::spoil_message,
        )
    }

    fn open(&mut self, request: &str) -> Result<String, ConnectorError> {
        self.arm(request, "/spec/config")?;
        self.call(
            Call::Open,
            &[],
            |driver| driver.open(request),
            Fault::spoil_message,
        )
    }

    fn load(&mut self, binding: u32, keys: &[u8]) -> Result<Vec<u8>, ConnectorError> {
        self.call(
            Call::Load,
            keys,
            |driver| driver.load(binding, keys),
            Fault::spoil_batch,
        )
    }

    fn flush(&mut self, binding: u32) -> Result<Vec<u8>, ConnectorError> {
        self.call(
            Call::Flush,
            &[],
            |driver| driver.flush(binding),
            Fault::spoil_batch,
        )
    }

    fn store(&mut self, binding: u32, batch: &[u8]) -> Result<(), ConnectorError> {
        self.call(
            Call::Store,
            batch,
            |driver| driver.store(binding, batch),
            |_, ()| {},
        )
    }

    fn start_commit(&mut self, checkpoint: &str) -> Result<Option<String>, ConnectorError> {
        self.call(
            Call::StartCommit,
            &[],
            |driver| driver.start_commit(checkpoint),
            |fault, patch| fault.spoil_message(patch.get_or_insert_default()),
        )
    }

    fn acknowledge(&mut self, request: &str) -> Result<String, ConnectorError> {
        self.call(
            Call::Acknowledge,
            &[],
            |driver| driver.acknowledge(request),
            Fault::spoil_message,
        )
    }
}
