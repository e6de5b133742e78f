//! What can go wrong between a document's arrival and its store.

use tidegate_wit::batch::BatchError;

use crate::document::{FieldError, ParseError, ReduceError};

/// How a connector broke the protocol when it returned documents.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadedError {
    /// What it returned cannot be taken apart.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// It returned what was not asked for.
    #[error("it returned ordinal {ordinal}, and only {asked} keys were asked for")]
    Unasked {
        /// The ordinal.
        ordinal: u32,
        /// How many keys were handed out.
        asked: u32,
    },
    /// It returned something twice.
    #[error("it returned ordinal {ordinal} twice")]
    Twice {
        /// The ordinal.
        ordinal: u32,
    },
}

/// A document that cannot be combined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("binding {binding} ({collection}){}: {problem}", .key.as_ref().map(|key| format!(", key {key}")).unwrap_or_default())]
pub struct DocumentError {
    /// Index of the binding.
    pub binding: u32,
    /// Name of its collection.
    pub collection: String,
    /// The document's key, for people, once it is known.
    pub key: Option<String>,
    /// The tuple of that key.
    pub tuple: Option<Box<[u8]>>,
    /// What is wrong.
    pub problem: DocumentProblem,
}

/// What is wrong with a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentProblem {
    /// It is no document.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// It has no key.
    #[error(transparent)]
    Key(#[from] FieldError),
    /// It cannot be reduced with the others of its key.
    #[error(transparent)]
    Reduce(#[from] ReduceError),
    /// What the destination has for the key is no document.
    #[error("the document that the connector loaded: {0}")]
    Loaded(ParseError),
}
