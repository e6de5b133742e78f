//! A session: batches, requests, and what becomes of them.
//!
//! ```text
//! store -> batch -> full? -> request -> accepted
//!                             |    ^--- pause
//!                             '-> too large, or refused -> two halves, down to one document
//! start_commit -> the rest, so that all of the transaction is accepted
//! ```

use std::time::SystemTime;

use http::Uri;
use serde_json::Value;
use tidegate_boilerplate::http as web;
use tidegate_boilerplate::retry::{Failure, Policy};
use tidegate_boilerplate::{
    ConnectorError, Keys, Loaded, OpenRequest, SpecBinding, Stores, Transactor,
};

use crate::answer::{self, Answer};
use crate::batch::{Batch, Document, body};
use crate::config::{BatchLimits, Config, Resource};
use crate::document::Shape;
use crate::idempotency::Transaction;
use crate::target::Target;

/// A session of the webhook connector.
pub struct Session {
    target: Target,
    limits: BatchLimits,
    bindings: Vec<Binding>,
    transaction: Transaction,
}

struct Binding {
    path: String,
    uri: Uri,
    shape: Shape,
    batch: Batch,
}

impl Session {
    pub(crate) fn new(request: &OpenRequest) -> Result<Self, ConnectorError> {
        let OpenRequest {
            spec,
            range,
            checkpoint,
            ..
        } = request;
        let config = Config::read(&spec.config)?;
        let target = config.target()?;
        let bindings = (0..).zip(&spec.bindings).map(|(index, binding)| {
            Binding::new(binding, &target).map_err(|error| error.of_binding(index))
        });
        Ok(Self {
            limits: config.limits(),
            bindings: bindings.collect::<Result<_, _>>()?,
            transaction: Transaction::first(&spec.task, range, checkpoint.as_deref()),
            target,
        })
    }

    /// Sends what a binding's batch holds, if anything.
    fn send(&mut self, binding: u32) -> Result<(), ConnectorError> {
        let batch = self.bindings[binding as usize].batch.take();
        if batch.documents.is_empty() {
            return Ok(());
        }
        let binding = &self.bindings[binding as usize];
        self.deliver(binding, &batch.documents, batch.first)
    }

    /// Sends documents in one request, or in several if the server finds it too large, or
    /// finds fault with a document: which one, it need not say.
    ///
    /// The halves are forgotten afterwards: if later batches were cut smaller, a replay
    /// would cut them otherwise, and its keys would be others.
    fn deliver(
        &self,
        binding: &Binding,
        documents: &[Document],
        first: u64,
    ) -> Result<(), ConnectorError> {
        let body = body(documents);
        let key = self.transaction.key(&binding.path, first, &body);
        let request = self.target.request(&binding.uri, &key, body);
        let server = web::server(&request);
        let answer = Policy::default().run(|| {
            let response = web::send(&request).map_err(Failure::from)?;
            let clean = |text: &str| self.target.without_secrets(text);
            answer::read(&response, &server, clean, SystemTime::now())
        })?;
        match (answer, documents) {
            (Answer::Accepted, _) => Ok(()),
            (Answer::TooLarge, [document]) => Err(ConnectorError::document(format!(
                "the document of {} bytes is larger than {server} allows; leave fields out, or raise the server's limit",
                document.text.len()
            ))
            .of_key(document.key_text()?)),
            (Answer::Refused(said), [document]) => {
                Err(ConnectorError::document(said).of_key(document.key_text()?))
            }
            (Answer::TooLarge | Answer::Refused(_), _) => {
                let (front, back) = documents.split_at(documents.len() / 2);
                self.deliver(binding, front, first)?;
                self.deliver(binding, back, first + front.len() as u64)
            }
        }
    }
}

impl Binding {
    fn new(binding: &SpecBinding, target: &Target) -> Result<Self, ConnectorError> {
        let path = Resource::read(&binding.resource)?.path;
        Ok(Self {
            uri: target.uri(&path)?,
            path,
            shape: Shape::of(binding),
            batch: Batch::default(),
        })
    }
}

impl Transactor for Session {
    fn load(&mut self, _: u32, _: Keys<'_>, _: &mut Loaded) -> Result<(), ConnectorError> {
        Err(ConnectorError::internal(
            "a server has no documents to load: every binding is of delta updates",
        ))
    }

    fn store(&mut self, binding: u32, stores: Stores<'_>) -> Result<(), ConnectorError> {
        for store in stores {
            let store = store?;
            let of = &mut self.bindings[binding as usize];
            let document = Document {
                key: store.key_tuple.to_vec(),
                text: of.shape.text(&store)?,
            };
            if of.batch.is_full_for(&document, self.limits) {
                self.send(binding)?;
            }
            self.bindings[binding as usize].batch.push(document);
        }
        Ok(())
    }

    fn start_commit(&mut self, checkpoint: &str) -> Result<Option<Value>, ConnectorError> {
        for binding in 0..self.bindings.len() {
            let binding = u32::try_from(binding).expect("bindings are few");
            self.send(binding)
                .map_err(|error| error.of_binding(binding))?;
        }
        for binding in &mut self.bindings {
            binding.batch = Batch::default();
        }
        self.transaction.next(checkpoint);
        Ok(None)
    }
}
