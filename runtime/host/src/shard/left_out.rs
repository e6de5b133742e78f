//! What a replay leaves out, and the letters that are kept of it.
//!
//! ```text
//! hint -> omissions -> (their documents, as they are met) -> letters, before the commit
//! ```
//!
//! A letter's name says which document of which transaction it is, and it is a
//! producer's key of the journal: a transaction that is replayed again keeps it once.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use serde::Serialize;
use serde_json::value::RawValue;
use tidegate_core::{Hint, Key, Omission, OnError, Refused};
use tidegate_wit::message::SpecBinding;
use tidegate_wit::text::key_text;
use tidegate_wit::tuple::decode;
use xxhash_rust::xxh64::xxh64;

use super::combine::LeftOutKey;
use crate::journal::{Append, DOCUMENT_BYTES_MAX, Documents, Journal, JournalError, Origin};

/// The fingerprint of no schema: whoever reads letters checks them.
const NO_SCHEMA: u64 = 0;

/// Returns the collection of a task's dead letters.
pub(crate) fn dead_letters_of(task: &str) -> String {
    format!("{task}/deadLetters")
}

/// Returns what is done about a document of a collection that cannot be stored.
///
/// A letter that its own task cannot store would become a letter about itself, which it
/// cannot store either, and so on for ever.
pub(crate) fn on_error_of(configured: OnError, task: &str, collection: &str) -> OnError {
    match configured {
        OnError::DeadLetter if collection == dead_letters_of(task) => OnError::Halt,
        configured => configured,
    }
}

/// What the next transaction leaves out. The one after it leaves out nothing.
#[derive(Default)]
pub(crate) struct LeftOut {
    task: String,
    omitted: Vec<Omitted>,
    /// Where letters are kept; none if none are.
    letters: Option<Arc<dyn Journal>>,
}

struct Omitted {
    binding: u32,
    collection: String,
    /// Names it among all omissions of the task.
    id: String,
    omission: Omission,
    document: Option<Vec<u8>>,
}

/// A dead letter, as it is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Letter<'a> {
    id: &'a str,
    task: &'a str,
    collection: &'a str,
    resource: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    reason: &'a str,
    refused_at: String,
    document: Option<&'a RawValue>,
}

impl LeftOut {
    /// Returns what the transaction of a hint leaves out. Its bindings are those of
    /// the hint's layout, in order.
    pub(crate) fn new(
        task: &str,
        hint: &Hint,
        bindings: &[SpecBinding],
        letters: Option<Arc<dyn Journal>>,
    ) -> LeftOut {
        let omitted = hint.omissions.iter().filter_map(|omission| {
            let mut of_layout = hint.layout.bindings.iter();
            let index = of_layout.position(|it| *it == omission.binding)?;
            let mut extents = hint.extents.iter();
            let (_, extent) = extents.find(|(source, _)| omission.binding.reads(source))?;
            Some(Omitted {
                binding: u32::try_from(index).expect("bindings are few"),
                collection: bindings[index].collection.clone(),
                id: id(omission, extent.lower),
                omission: omission.clone(),
                document: None,
            })
        });
        LeftOut {
            task: task.to_owned(),
            omitted: omitted.collect(),
            letters,
        }
    }

    /// Takes a document if it is left out; says whether it is.
    pub(super) fn takes(&mut self, binding: u32, offset: u64, document: &[u8]) -> bool {
        let refused = Refused::Offset(offset);
        let mut omitted = self.omitted.iter_mut();
        match omitted.find(|it| it.binding == binding && it.omission.refused == refused) {
            Some(omitted) => {
                omitted.document = Some(document.to_vec());
                true
            }
            None => false,
        }
    }

    /// Iterates the keys that are left out, with their bindings.
    pub(super) fn keys(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.omitted
            .iter()
            .filter_map(|it| match &it.omission.refused {
                Refused::Key(Key(key)) => Some((it.binding, key.as_slice())),
                Refused::Offset(_) => None,
            })
    }

    /// Takes what the documents of a key came to.
    pub(super) fn take_key(&mut self, left_out: LeftOutKey) {
        let refused = Refused::Key(Key(left_out.key.into()));
        let mut omitted = self.omitted.iter_mut();
        let found =
            omitted.find(|it| it.binding == left_out.binding && it.omission.refused == refused);
        if let Some(omitted) = found {
            omitted.document = Some(left_out.document);
        }
    }

    /// Keeps the letters of a transaction that is about to be committed, and leaves
    /// out nothing from here on.
    pub(super) async fn keep(&mut self) -> Result<(), JournalError> {
        let omitted = std::mem::take(&mut self.omitted);
        let Some(letters) = &self.letters else {
            return Ok(());
        };
        for omitted in omitted.iter().filter(|it| it.omission.dead_letter) {
            let letter = omitted.letter(&self.task);
            let append = Append {
                documents: Documents::from_iter([letter.as_bytes()]),
                clock: omitted.omission.at_micros,
                schema: NO_SCHEMA,
                origin: Origin::Producer {
                    key: omitted.id.clone(),
                },
            };
            match letters.append(append).await {
                // An earlier host kept it, in other words.
                Ok(_) | Err(JournalError::KeyConflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Names an omission: its transaction began at `lower`, where no other one of the
/// binding did. Among the few keys that one leaves out no two have one hash.
fn id(omission: &Omission, lower: u64) -> String {
    let resource = omission.binding.resource.join("\0");
    let resource = xxh64(resource.as_bytes(), 0);
    let backfill = omission.binding.backfill;
    match &omission.refused {
        Refused::Key(Key(key)) => {
            format!("{resource:016x}-{backfill}-{lower}-k{:016x}", xxh64(key, 0))
        }
        Refused::Offset(offset) => format!("{resource:016x}-{backfill}-{lower}-o{offset}"),
    }
}

impl Omitted {
    fn letter(&self, task: &str) -> String {
        let document = self.document.as_deref().map(String::from_utf8_lossy);
        let document = document.map(|text| match serde_json::from_str::<&RawValue>(&text) {
            Ok(document) => document.to_owned(),
            // Then it is the text that is bad.
            Err(_) => serde_json::value::to_raw_value(&*text).expect("text is JSON"),
        });
        let letter = self.with(task, document.as_deref());
        match letter.len() <= DOCUMENT_BYTES_MAX {
            true => letter,
            // The collection that it came from has the document.
            false => self.with(task, None),
        }
    }

    fn with(&self, task: &str, document: Option<&RawValue>) -> String {
        let omission = &self.omission;
        let (key, offset) = match &omission.refused {
            Refused::Key(Key(key)) => (decode(key).ok().map(|it| key_text(&it)), None),
            Refused::Offset(offset) => (None, Some(*offset)),
        };
        let at = Duration::from_micros(omission.at_micros.unsigned_abs());
        let letter = Letter {
            id: &self.id,
            task,
            collection: &self.collection,
            resource: &omission.binding.resource,
            key: key.and_then(|key| RawValue::from_string(key).ok()),
            offset,
            field: omission.field.as_deref(),
            reason: &omission.reason,
            refused_at: humantime::format_rfc3339_micros(UNIX_EPOCH + at).to_string(),
            document,
        };
        serde_json::to_string(&letter).expect("a letter has text keys only")
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::{Binding, Extents, Frontier, KeyRange, Layout, Source};
    use tidegate_wit::tuple::{Element, encode};

    use super::*;
    use crate::journal::Journals;
    use crate::journal::embedded::EmbeddedJournals;

    const TASK: &str = "acmeCo/rows";

    fn binding() -> Binding {
        Binding {
            resource: vec!["orders".to_owned()],
            backfill: 2,
        }
    }

    fn omission(refused: Refused, dead_letter: bool) -> Omission {
        Omission {
            binding: binding(),
            refused,
            reason: "it is bad".to_owned(),
            field: Some("f".to_owned()),
            at_micros: 1_000_001,
            dead_letter,
        }
    }

    fn key(key: &str) -> Vec<u8> {
        encode(&[Element::String(key.into())])
    }

    fn left_out(letters: Arc<dyn Journal>) -> LeftOut {
        let source = Source {
            resource: binding().resource,
            backfill: 2,
            journal: "acmeCo/orders".to_owned(),
        };
        let at = |next| Frontier::from_iter([(source.clone(), next)]);
        let hint = Hint {
            extents: Extents::between(&at(7), &at(20)),
            layout: Layout {
                bindings: vec![binding()],
                shards: vec![KeyRange::ALL],
            },
            omissions: vec![
                omission(Refused::Key(Key(key("a"))), true),
                omission(Refused::Key(Key(key("b"))), false),
                omission(Refused::Offset(9), true),
            ],
        };
        let spec: SpecBinding = serde_json::from_value(serde_json::json!({
            "collection": "acmeCo/orders", "resource": {}, "resourcePath": ["orders"],
            "key": [], "values": [],
        }))
        .unwrap();
        LeftOut::new(TASK, &hint, &[spec], Some(letters))
    }

    async fn transaction(letters: &Arc<dyn Journal>) {
        let mut left_out = left_out(letters.clone());
        assert!(!left_out.takes(0, 8, b"{}"));
        assert!(left_out.takes(0, 9, br#"{"id":"c","n":1.10}"#));
        let keys: Vec<_> = left_out.keys().map(|(_, key)| key.to_vec()).collect();
        assert_eq!(keys, [key("a"), key("b")]);
        for name in ["a", "b"] {
            left_out.take_key(LeftOutKey {
                binding: 0,
                key: key(name).into(),
                document: format!(r#"{{"id":"{name}"}}"#).into(),
            });
        }
        left_out.keep().await.unwrap();
        assert!(
            !left_out.takes(0, 9, b"{}"),
            "the next transaction leaves nothing out"
        );
    }

    #[test]
    fn a_letter_is_not_kept_of_a_letter_of_ones_own() {
        use OnError::{DeadLetter, Halt, Skip};
        for (configured, collection, want) in [
            (DeadLetter, "acme/shop/deadLetters", Halt),
            (Skip, "acme/shop/deadLetters", Skip),
            (DeadLetter, "acme/other/deadLetters", DeadLetter),
            (DeadLetter, "acme/orders", DeadLetter),
        ] {
            let got = on_error_of(configured, "acme/shop", collection);
            assert_eq!(got, want, "{configured:?} {collection}");
        }
    }

    #[tokio::test]
    async fn each_letter_is_kept_once_however_often_it_is_replayed() {
        let dir = tempfile::tempdir().unwrap();
        let journals = EmbeddedJournals::open(dir.path()).unwrap();
        let letters = journals.open(&dead_letters_of(TASK)).await.unwrap();
        for _ in 0..3 {
            transaction(&letters).await;
        }
        let mut reader = letters.read(0, *letters.ends().borrow(), 1 << 20);
        let batch = reader.next().await.unwrap().unwrap();
        let kept: Vec<_> = batch
            .documents()
            .map(|it| String::from_utf8_lossy(it.bytes).into_owned())
            .collect();
        let resource = format!("{:016x}", xxh64(b"orders", 0));
        let a = xxh64(&key("a"), 0);
        let common = r#""task":"acmeCo/rows","collection":"acmeCo/orders","resource":["orders"]"#;
        let why = r#""field":"f","reason":"it is bad","refusedAt":"1970-01-01T00:00:01.000001Z""#;
        let want = [
            format!(
                r#"{{"id":"{resource}-2-7-k{a:016x}",{common},"key":["a"],{why},"document":{{"id":"a"}}}}"#
            ),
            format!(
                r#"{{"id":"{resource}-2-7-o9",{common},"offset":9,{why},"document":{{"id":"c","n":1.10}}}}"#
            ),
        ];
        assert_eq!(kept, want);
    }
}
