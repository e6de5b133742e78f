//! Collections and documents that checks are made with.

use serde_json::{Value, json};
use tidegate_wit::message::{JsonType, Projection};

/// The field of the whole document.
pub(crate) const DOCUMENT: &str = "flow_document";

/// The key of most collections: an integer.
pub(crate) const ID: &str = "id";

/// A number that tells documents apart, also two of one key.
pub(crate) const SEQ: &str = "seq";

/// A collection's locations.
#[derive(Clone, Debug)]
pub(crate) struct Collection {
    pub(crate) key: Vec<Projection>,
    pub(crate) values: Vec<Projection>,
}

impl Collection {
    /// Returns one whose key is an integer, with a number and a text beside.
    pub(crate) fn plain() -> Collection {
        Collection {
            key: vec![field(ID, &[JsonType::Integer]).key()],
            values: vec![
                field(SEQ, &[JsonType::Integer]),
                field("text", &[JsonType::String]),
            ],
        }
    }

    /// Returns every location, and the document.
    pub(crate) fn projections(&self) -> Vec<Projection> {
        let root = Projection {
            pointer: String::new(),
            required: true,
            ..field(DOCUMENT, &[JsonType::Object])
        };
        let fields = self.key.iter().chain(&self.values).cloned();
        fields.chain([root]).collect()
    }
}

/// Returns a top-level location under its own name.
pub(crate) fn field(name: &str, types: &[JsonType]) -> Projection {
    Projection {
        field: name.to_owned(),
        pointer: format!("/{name}"),
        types: types.to_vec(),
        required: false,
        format: None,
        content_encoding: None,
        default: None,
        key: false,
        description: None,
    }
}

/// What a location may be besides.
pub(crate) trait Described {
    fn key(self) -> Self;
    fn format(self, format: &str) -> Self;
    fn encoding(self, encoding: &str) -> Self;
}

impl Described for Projection {
    fn key(self) -> Projection {
        Projection {
            key: true,
            required: true,
            ..self
        }
    }

    fn format(self, format: &str) -> Projection {
        Projection {
            format: Some(format.to_owned()),
            ..self
        }
    }

    fn encoding(self, encoding: &str) -> Projection {
        Projection {
            content_encoding: Some(encoding.to_owned()),
            ..self
        }
    }
}

/// A document for a binding.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) binding: u32,
    /// JSON text, with every digit of its numbers.
    pub(crate) document: String,
    pub(crate) delete: bool,
}

/// Returns a document of a plain collection.
pub(crate) fn plain(binding: u32, id: i64, seq: i64) -> Write {
    stored(
        binding,
        json!({ID: id, SEQ: seq, "text": format!("document {seq}")}).to_string(),
    )
}

/// Returns a document to store.
pub(crate) fn stored(binding: u32, document: impl Into<String>) -> Write {
    Write {
        binding,
        document: document.into(),
        delete: false,
    }
}

/// Returns the tombstone of a plain document.
pub(crate) fn tombstone(binding: u32, id: i64) -> Write {
    let document: Value = json!({ID: id, "_meta": {"op": "d"}});
    Write {
        delete: true,
        ..stored(binding, document.to_string())
    }
}
