//! A native harness: drives a connector through the protocol, as a host with one
//! shard would, without WebAssembly.
//!
//! ```text
//! apply -> open -> transact, transact .. -> open (a restart) -> ..
//! ```
//!
//! Each step can be made on its own, to stop between any two of them. What the
//! host keeps over a restart (state, checkpoint, counts) the harness keeps too.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tidegate_wit::batch;
use tidegate_wit::tuple::{self, Bytes, Element};

use crate::error::ConnectorError;
use crate::{
    AcknowledgeRequest, AcknowledgeResponse, ApplyRequest, ApplyResponse, Connector, Driver, Fence,
    JsonType, KeyRange, OpenRequest, OpenResponse, Projection, Protocol, Spec, SpecBinding,
    SpecResponse, ValidateRequest, ValidateResponse, state,
};

/// As many counts of stored documents does a host keep.
const STORED_COUNTS: usize = 5;

/// Returns a spec without a schedule.
pub fn spec(config: Value, bindings: Vec<SpecBinding>) -> Spec {
    Spec {
        task: "acme/task".to_owned(),
        config,
        bindings,
        sync_schedule: None,
    }
}

/// Returns a projection of a top-level property.
pub fn projection(field: &str, types: &[JsonType]) -> Projection {
    Projection {
        field: field.to_owned(),
        pointer: format!("/{}", field.replace('~', "~0").replace('/', "~1")),
        types: types.to_vec(),
        required: false,
        format: None,
        content_encoding: None,
        default: None,
        key: false,
        description: None,
    }
}

/// Returns a standard binding with its document in `flow_document`.
pub fn binding(
    collection: &str,
    resource: Value,
    key: &[(&str, &[JsonType])],
    values: &[(&str, &[JsonType])],
) -> SpecBinding {
    let projections = |fields: &[(&str, &[JsonType])], key| {
        let projection = |(field, types): &(&str, &[JsonType])| Projection {
            key,
            ..projection(field, types)
        };
        fields.iter().map(projection).collect()
    };
    SpecBinding {
        collection: collection.to_owned(),
        resource,
        resource_path: vec![collection.to_owned()],
        delta_updates: false,
        backfill: 0,
        key: projections(key, true),
        values: projections(values, false),
        document: Some("flow_document".to_owned()),
    }
}

/// A document of a transaction.
#[derive(Clone, Debug)]
pub struct Document {
    /// Index of its binding.
    pub binding: u32,
    /// The document.
    pub document: Value,
    /// Whether it deletes its row.
    pub delete: bool,
}

/// Returns a document that is stored.
pub fn document(binding: u32, document: Value) -> Document {
    Document {
        binding,
        document,
        delete: false,
    }
}

/// Returns a tombstone, whose row is deleted.
pub fn tombstone(binding: u32, document: Value) -> Document {
    Document {
        binding,
        document,
        delete: true,
    }
}

/// A document with its key and values, as they travel.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Index of its binding.
    pub binding: u32,
    /// An element a key field.
    pub key: Vec<Element<'static>>,
    /// An element a value field.
    pub values: Vec<Element<'static>>,
    /// JSON text.
    pub document: String,
    /// Whether it deletes its row.
    pub delete: bool,
    /// Whether the key exists in the destination; [`Harness::transact_rows`] finds
    /// out for itself.
    pub exists: bool,
}

/// Returns the element that a JSON value travels as.
pub fn element(value: &Value) -> Element<'static> {
    match value {
        Value::Null => Element::Nil,
        Value::Bool(it) => Element::Bool(*it),
        Value::Number(it) => match (it.as_i64(), it.as_u64(), it.as_f64()) {
            (Some(it), _, _) => Element::Int(it),
            (_, Some(it), _) => Element::BigInt(it.into()),
            (_, _, Some(it)) => Element::Double(it),
            _ => panic!("{it} is a number of no kind"),
        },
        Value::String(it) => Element::String(Cow::Owned(it.clone())),
        Value::Array(_) | Value::Object(_) => {
            Element::Bytes(Bytes(Cow::Owned(value.to_string().into_bytes())))
        }
    }
}

/// What a transaction came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Transacted {
    /// The documents that were loaded, by binding and ordinal.
    pub loaded: BTreeMap<(u32, u32), String>,
    /// Whether the acknowledgement would be held.
    pub pace: bool,
}

/// A connector under test, and what its host knows.
pub struct Harness<P> {
    /// The spec that the next `apply` and `open` bring.
    pub spec: Spec,
    /// The shard's part of the key space.
    pub range: KeyRange,
    /// The fence of the last `open`.
    pub fence: Fence,
    /// The connector's state.
    pub state: Value,
    /// What the last transactions stored that stored any.
    pub stored_counts: Vec<u64>,
    /// The last checkpoint that the host has kept.
    pub checkpoint: Option<String>,
    /// State patches of a transaction that is not acknowledged yet.
    pub patches: Vec<Value>,
    make: Box<dyn Fn() -> P>,
    protocol: P,
    applied: Option<Spec>,
    stored: u64,
}

impl<C: Connector + Clone + 'static> Harness<Driver<C>> {
    /// Returns a harness of a connector whose clones share the destination.
    pub fn of(connector: C, spec: Spec) -> Self {
        Self::new(move || Driver::new(connector.clone()), spec)
    }
}

impl<P: Protocol> Harness<P> {
    /// Returns a harness that makes an instance for each session.
    pub fn new(make: impl Fn() -> P + 'static, spec: Spec) -> Self {
        Self {
            spec,
            range: KeyRange::FULL,
            fence: Fence {
                epoch: 1,
                session: 0,
            },
            state: Value::Null,
            stored_counts: Vec::new(),
            checkpoint: None,
            patches: Vec::new(),
            protocol: make(),
            make: Box::new(make),
            applied: None,
            stored: 0,
        }
    }

    /// Returns the instance, to make raw calls on.
    pub fn protocol(&mut self) -> &mut P {
        &mut self.protocol
    }

    /// Asks the connector what it is.
    pub fn spec_response(&mut self) -> SpecResponse {
        read(&self.protocol.spec())
    }

    /// Asks the connector for constraints.
    ///
    /// # Errors
    ///
    /// As the connector's `validate`.
    pub fn validate(
        &mut self,
        request: &ValidateRequest,
    ) -> Result<ValidateResponse, ConnectorError> {
        self.protocol = (self.make)();
        Ok(read(&self.protocol.validate(&write(request))?))
    }

    /// Applies the spec, with a new instance; returns what was done.
    ///
    /// # Errors
    ///
    /// As the connector's `apply`.
    pub fn apply(&mut self) -> Result<Vec<String>, ConnectorError> {
        let actions = self.apply_as(false)?;
        self.applied = Some(self.spec.clone());
        Ok(actions)
    }

    /// Returns what applying the spec would do.
    ///
    /// # Errors
    ///
    /// As the connector's `apply`.
    pub fn dry_run(&mut self) -> Result<Vec<String>, ConnectorError> {
        self.apply_as(true)
    }

    fn apply_as(&mut self, dry_run: bool) -> Result<Vec<String>, ConnectorError> {
        self.protocol = (self.make)();
        let request = ApplyRequest {
            last: self.applied.clone(),
            next: self.spec.clone(),
            state: self.state.clone(),
            dry_run,
        };
        let response: ApplyResponse = read(&self.protocol.apply(&write(&request))?);
        if let Some(patch) = response.patch {
            state::merge_patch(&mut self.state, &patch);
        }
        Ok(response.actions)
    }

    /// Starts a session with a new instance and the next fence; the old instance, if
    /// any, is dropped as a killed one would be.
    ///
    /// # Errors
    ///
    /// As the connector's `open`.
    pub fn open(&mut self) -> Result<OpenResponse, ConnectorError> {
        self.fence.session += 1;
        self.protocol = (self.make)();
        let request = OpenRequest {
            spec: self.spec.clone(),
            range: self.range.clone(),
            state: self.state.clone(),
            checkpoint: self.checkpoint.clone(),
            fence: self.fence,
        };
        let response: OpenResponse = read(&self.protocol.open(&write(&request))?);
        self.stored = 0;
        Ok(response)
    }

    /// Returns a document as it travels.
    pub fn row(&self, document: &Document) -> Row {
        let spec = &self.spec.bindings[document.binding as usize];
        let elements = |projections: &[Projection]| {
            let value = |it: &Projection| document.document.pointer(&it.pointer).map(element);
            let value = |it| value(it).unwrap_or(Element::Nil);
            projections.iter().map(value).collect()
        };
        Row {
            binding: document.binding,
            key: elements(&spec.key),
            values: elements(&spec.values),
            document: document.document.to_string(),
            delete: document.delete,
            exists: false,
        }
    }

    /// Runs one whole transaction. Each key is to come once.
    ///
    /// # Errors
    ///
    /// As the first call that fails.
    pub fn transact(
        &mut self,
        documents: &[Document],
        checkpoint: &str,
    ) -> Result<Transacted, ConnectorError> {
        let rows: Vec<_> = documents.iter().map(|it| self.row(it)).collect();
        self.transact_rows(rows, checkpoint)
    }

    /// Runs one whole transaction of rows.
    ///
    /// # Errors
    ///
    /// As the first call that fails.
    pub fn transact_rows(
        &mut self,
        rows: Vec<Row>,
        checkpoint: &str,
    ) -> Result<Transacted, ConnectorError> {
        let loaded = self.load_and_store(rows)?;
        self.start_commit(checkpoint)?;
        let pace = self.acknowledge()?.pace;
        Ok(Transacted { loaded, pace })
    }

    /// Runs a transaction up to its commit.
    ///
    /// # Errors
    ///
    /// As the first call that fails.
    pub fn load_and_store(
        &mut self,
        rows: Vec<Row>,
    ) -> Result<BTreeMap<(u32, u32), String>, ConnectorError> {
        let mut by_binding: BTreeMap<u32, Vec<Row>> = BTreeMap::new();
        for row in rows {
            by_binding.entry(row.binding).or_default().push(row);
        }
        let mut loaded = BTreeMap::new();
        for (binding, rows) in &mut by_binding {
            rows.sort_by_cached_key(|row| tuple::encode(&row.key));
            if !self.spec.bindings[*binding as usize].delta_updates {
                self.load(*binding, rows, &mut loaded)?;
            }
        }
        for binding in 0..self.spec.bindings.len() {
            self.flush(
                u32::try_from(binding).expect("bindings are few"),
                &mut loaded,
            )?;
        }
        for (binding, rows) in &mut by_binding {
            for (ordinal, row) in (0..).zip(rows.iter_mut()) {
                row.exists = loaded.contains_key(&(*binding, ordinal));
            }
            self.store(*binding, rows)?;
        }
        Ok(loaded)
    }

    /// Sends a batch of keys.
    ///
    /// # Errors
    ///
    /// As the connector's `load`.
    pub fn load(
        &mut self,
        binding: u32,
        rows: &[Row],
        loaded: &mut BTreeMap<(u32, u32), String>,
    ) -> Result<(), ConnectorError> {
        let mut keys = Vec::new();
        rows.iter()
            .for_each(|row| batch::push_row(&mut keys, &tuple::encode(&row.key)));
        let answer = self.protocol.load(binding, &keys)?;
        take_loaded(binding, &answer, loaded)
    }

    /// Flushes a binding until it is empty.
    ///
    /// # Errors
    ///
    /// As the connector's `flush`.
    pub fn flush(
        &mut self,
        binding: u32,
        loaded: &mut BTreeMap<(u32, u32), String>,
    ) -> Result<(), ConnectorError> {
        loop {
            let answer = self.protocol.flush(binding)?;
            if answer.is_empty() {
                return Ok(());
            }
            take_loaded(binding, &answer, loaded)?;
        }
    }

    /// Sends a batch of documents, as they are.
    ///
    /// # Errors
    ///
    /// As the connector's `store`.
    pub fn store(&mut self, binding: u32, rows: &[Row]) -> Result<(), ConnectorError> {
        let mut stores = Vec::new();
        for row in rows {
            batch::push_store(
                &mut stores,
                &batch::Store {
                    key: &tuple::encode(&row.key),
                    values: &tuple::encode(&row.values),
                    document: row.document.as_bytes(),
                    exists: row.exists,
                    delete: row.delete,
                },
            );
        }
        self.stored += rows.len() as u64;
        self.protocol.store(binding, &stores)
    }

    /// Starts the commit, and keeps what the host would.
    ///
    /// # Errors
    ///
    /// As the connector's `start_commit`.
    pub fn start_commit(&mut self, checkpoint: &str) -> Result<(), ConnectorError> {
        let patch = self.protocol.start_commit(checkpoint)?;
        self.checkpoint = Some(checkpoint.to_owned());
        if let Some(patch) = patch {
            let patch = read(&patch);
            state::merge_patch(&mut self.state, &patch);
            self.patches.push(patch);
        }
        let stored = std::mem::take(&mut self.stored);
        if stored > 0 {
            self.stored_counts.push(stored);
            let surplus = self.stored_counts.len().saturating_sub(STORED_COUNTS);
            self.stored_counts.drain(..surplus);
        }
        Ok(())
    }

    /// Acknowledges the transaction.
    ///
    /// # Errors
    ///
    /// As the connector's `acknowledge`.
    pub fn acknowledge(&mut self) -> Result<AcknowledgeResponse, ConnectorError> {
        self.acknowledge_as(false)
    }

    /// Acknowledges the last session's transaction.
    ///
    /// # Errors
    ///
    /// As the connector's `acknowledge`.
    pub fn recover(&mut self) -> Result<AcknowledgeResponse, ConnectorError> {
        self.acknowledge_as(true)
    }

    fn acknowledge_as(&mut self, recovery: bool) -> Result<AcknowledgeResponse, ConnectorError> {
        let request = AcknowledgeRequest {
            patches: self.patches.clone(),
            recovery,
            stored_counts: self.stored_counts.clone(),
        };
        let response: AcknowledgeResponse = read(&self.protocol.acknowledge(&write(&request))?);
        self.patches.clear();
        if let Some(patch) = &response.patch {
            state::merge_patch(&mut self.state, patch);
        }
        Ok(response)
    }
}

fn take_loaded(
    binding: u32,
    answer: &[u8],
    loaded: &mut BTreeMap<(u32, u32), String>,
) -> Result<(), ConnectorError> {
    for entry in batch::loaded(answer) {
        let (ordinal, document) = entry?;
        let document = String::from_utf8_lossy(document).into_owned();
        loaded.insert((binding, ordinal), document);
    }
    Ok(())
}

fn read<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text)
        .unwrap_or_else(|error| panic!("the connector answered {text}: {error}"))
}

fn write<T: Serialize>(message: &T) -> String {
    serde_json::to_string(message).expect("a message is JSON")
}
