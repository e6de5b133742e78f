//! A collection as its writers and readers know it.
//!
//! What a host ran with is kept in the store under `collections/NAME`, so that
//! `append` checks documents without a catalog.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_validator::BuiltCollection;
use tidegate_wit::message::Projection;

use crate::document::{Checker, Extractor, Kind, Locations, ProjectionError, SchemaError, Tape};
use crate::journal::follow;
use crate::store::{Store, StoreError};

/// The fingerprint of documents that no schema was known for.
const NO_SCHEMA: u64 = 0;

/// What is kept of a collection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Collection {
    /// Its JSON schema.
    pub schema: Value,
    /// The fields of its key.
    pub key: Vec<Projection>,
}

/// Why a collection cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CollectionError {
    /// Its schema does not compile.
    #[error("the schema of collection {name} cannot be used: {source}")]
    Schema {
        /// Its name.
        name: String,
        /// Why.
        source: SchemaError,
    },
    /// Its key cannot be extracted.
    #[error("the key of collection {name} cannot be used: {source}")]
    Key {
        /// Its name.
        name: String,
        /// Why.
        source: ProjectionError,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What the store holds is not a collection.
    #[error("the store's value under {key} cannot be read: restore the store from a copy")]
    Malformed {
        /// The key.
        key: String,
        /// Why.
        source: serde_json::Error,
    },
}

impl Collection {
    /// Returns what is kept of a built collection.
    pub(crate) fn of(built: &BuiltCollection) -> Collection {
        let field = |pointer: &String| {
            built
                .projections
                .iter()
                .find(|field| field.key && field.pointer == *pointer)
                .cloned()
        };
        Collection {
            schema: built.schema.clone(),
            key: built.key.iter().filter_map(field).collect(),
        }
    }

    /// Reads what the store keeps of a collection.
    pub(crate) async fn get(
        store: &dyn Store,
        name: &str,
    ) -> Result<Option<Collection>, CollectionError> {
        let key = key_of(name);
        let Some(found) = store.get(&key).await? else {
            return Ok(None);
        };
        match serde_json::from_slice(&found.value) {
            Ok(collection) => Ok(Some(collection)),
            Err(source) => Err(CollectionError::Malformed { key, source }),
        }
    }

    /// Keeps the collection in the store, if it is not kept as it is.
    pub(crate) async fn put(&self, store: &dyn Store, name: &str) -> Result<(), CollectionError> {
        let key = key_of(name);
        let value = serde_json::to_vec(self).expect("a collection is JSON");
        let found = store.get(&key).await?;
        if found.as_ref().is_none_or(|found| found.value != value) {
            store
                .put(&key, value, found.map(|found| found.revision))
                .await?;
        }
        Ok(())
    }

    /// Returns what checks the collection's documents, and the fingerprint of
    /// what they are checked against.
    pub(crate) fn check(&self, name: &str) -> Result<(follow::Check, u64), CollectionError> {
        let checker = Checker::new(&self.schema).map_err(|source| CollectionError::Schema {
            name: name.to_owned(),
            source,
        })?;
        let key = Extractor::key(&self.key).map_err(|source| CollectionError::Key {
            name: name.to_owned(),
            source,
        })?;
        let fingerprint = checker.fingerprint();
        let check = move |line: &[u8]| {
            let mut tape = Tape::default();
            let document = tape.parse(line).map_err(|error| error.to_string())?;
            checker
                .check_document(&document)
                .map_err(|error| error.to_string())?;
            let (mut locations, mut tuple) = (Locations::default(), Vec::new());
            key.extract(&document, &mut locations, &mut tuple)
                .map_err(|error| error.to_string())
        };
        Ok((Arc::new(check), fingerprint))
    }
}

/// Checks a document of a collection of which nothing is known: only that it is
/// one. The fingerprint is that of no schema, so that readers check it again.
pub(crate) fn check_any() -> (follow::Check, u64) {
    let check = |line: &[u8]| match Tape::default().parse(line) {
        Ok(document) if document.root().kind() == Kind::Object => Ok(()),
        Ok(_) => Err("a document is a JSON object".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    (Arc::new(check), NO_SCHEMA)
}

fn key_of(name: &str) -> String {
    format!("collections/{name}")
}
