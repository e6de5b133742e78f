//! Appends over the API: each is one append of the journal, all or none.
//!
//! ```text
//! body -> lines -> each checked -> one frame, durable -> answer
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tidegate_api::{Code, Error, v1};

use super::internal;
use crate::clock::wall_micros;
use crate::collection::Collection;
use crate::journal::follow::Check;
use crate::journal::{Append, Documents, JournalError, Origin};
use crate::platform::Platform;

/// Appends documents to collections that are known here.
pub(super) struct Appends {
    platform: Platform,
    /// What checks each collection's documents: compiled once, not for every
    /// append, and anew when the collection has changed.
    checks: Mutex<BTreeMap<String, Arc<Checked>>>,
}

struct Checked {
    collection: Collection,
    check: Check,
    /// The fingerprint of what is checked against.
    schema: u64,
}

impl Appends {
    pub(super) fn new(platform: Platform) -> Appends {
        Appends {
            platform,
            checks: Mutex::default(),
        }
    }

    /// Appends the documents of a request, durably, or none of them.
    pub(super) async fn append(
        &self,
        request: v1::AppendRequest,
    ) -> Result<v1::AppendResponse, Error> {
        let name = request.collection;
        let checked = self.checked(&name).await?;
        let clock = match request.published_at {
            Some(at) => micros(&at)?,
            None => wall_micros(),
        };
        let (check, body) = (checked.check.clone(), request.documents);
        // Checking megabytes takes a while.
        let documents = tokio::task::spawn_blocking(move || documents(&body, &check));
        let documents = documents
            .await
            .expect("checking documents does not panic")?;
        let appended_docs = documents.len() as u64;
        if documents.is_empty() {
            return Ok(v1::AppendResponse {
                appended_docs,
                repeated: false,
                checked: true,
            });
        }
        let journal = self
            .platform
            .journals
            .open(&name)
            .await
            .map_err(|error| internal(&error))?;
        let end = *journal.ends().borrow();
        let append = Append {
            documents,
            clock,
            schema: checked.schema,
            origin: match request.idempotency_key {
                key if key.is_empty() => Origin::None,
                key => Origin::Producer { key },
            },
        };
        let appended = journal.append(append).await.map_err(of_journal)?;
        Ok(v1::AppendResponse {
            appended_docs,
            // What was there before the call was not appended by it.
            repeated: appended.first < end,
            checked: true,
        })
    }

    async fn checked(&self, name: &str) -> Result<Arc<Checked>, Error> {
        let collection = Collection::get(&*self.platform.store, name).await;
        let collection = collection.map_err(|error| internal(&error))?;
        let collection = collection.ok_or_else(|| Error::unknown_collection(name))?;
        let known = self.checks().get(name).cloned();
        if let Some(known) = known.filter(|known| known.collection == collection) {
            return Ok(known);
        }
        let (check, schema) = collection.check(name).map_err(|error| internal(&error))?;
        let checked = Arc::new(Checked {
            collection,
            check,
            schema,
        });
        self.checks().insert(name.to_owned(), checked.clone());
        Ok(checked)
    }

    fn checks(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<Checked>>> {
        self.checks
            .lock()
            .expect("nothing panics while it holds this lock")
    }
}

/// Takes a body apart; the first line that is no document of the collection
/// refuses all of them.
fn documents(body: &[u8], check: &Check) -> Result<Documents, Error> {
    let mut documents = Documents::new();
    for (index, line) in body.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        check(line).map_err(|reason| {
            let number = index + 1;
            let message = format!("line {number}: {reason}. Nothing was appended");
            Error::new(Code::InvalidArgument, message)
        })?;
        documents.push(line);
    }
    Ok(documents)
}

fn of_journal(error: JournalError) -> Error {
    let code = match &error {
        JournalError::DocumentTooLong { .. }
        | JournalError::AppendTooLong { .. }
        | JournalError::Origin { .. } => Code::InvalidArgument,
        JournalError::KeyConflict { .. } => Code::FailedPrecondition,
        _ => return internal(&error),
    };
    Error::new(code, error.to_string())
}

/// Reads a publish clock, in microseconds since the Unix epoch.
fn micros(at: &prost_types::Timestamp) -> Result<i64, Error> {
    let micros = at.seconds.checked_mul(1_000_000);
    let micros = micros.and_then(|it| it.checked_add(i64::from(at.nanos) / 1_000));
    micros.ok_or_else(|| {
        let message = "the publish time is out of range: name an instant in RFC 3339";
        Error::new(Code::InvalidArgument, message)
    })
}
