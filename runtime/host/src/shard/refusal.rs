//! Which document is refused, and by whom.
//!
//! ```text
//! fault of a connector -> the batch that it was given -> the key that it means
//! error of ours ---------> the document's offset, or the key that was drained
//! ```
//!
//! Whether it is left out is not decided here.

use tidegate_core::{Key, Refusal, Refused};
use tidegate_wit::batch;
use tidegate_wit::text::key_text;
use tidegate_wit::tuple::decode;

use super::combine::{DocumentError, DocumentProblem};
use super::error::ShardError;
use crate::clock::wall_micros;
use crate::sandbox::{ErrorKind, Fault, FaultKind};

/// How much of a reason is noted. It says which value of which field, and a value
/// may be as large as a document.
const REASON_BYTES_MAX: usize = 1 << 10;

/// What a connector was given when it failed.
pub(super) enum Given<'a> {
    /// Documents to store.
    Stores(&'a [u8]),
    /// Keys to load.
    Keys(&'a [u8]),
    /// Nothing that has keys.
    Nothing,
}

/// Says which document a connector's fault is about, if it is about one.
pub(super) fn of_connector(fault: Fault, given: &Given<'_>) -> ShardError {
    let FaultKind::Error(error) = &fault.kind else {
        return fault.into();
    };
    if error.kind != ErrorKind::Document {
        return fault.into();
    }
    // Rows of another binding may have waited until now: what was given are not its keys.
    let of_call = fault
        .binding
        .filter(|it| error.binding.is_none_or(|said| said == *it));
    let said = error.key.as_deref().filter(|_| of_call.is_some());
    let refusal = Refusal {
        binding: error.binding.or(fault.binding).unwrap_or_default(),
        refused: said.and_then(|said| given.meant(said)).map(Refused::Key),
        reason: reason(&error.message),
        field: error.field.clone(),
        at_micros: wall_micros(),
    };
    ShardError::Refused {
        refusal: Box::new(refusal),
        cause: Box::new(fault.into()),
    }
}

/// Says that a document did not come to be combined.
pub(super) fn of_document(error: ShardError, binding: u32, offset: u64) -> ShardError {
    let refused = Refused::Offset(offset);
    match error {
        ShardError::Document(_) | ShardError::Schema { .. } | ShardError::DocumentSize { .. } => {
            refused_by_us(error, binding, refused)
        }
        error => error,
    }
}

/// Says that what a key comes to cannot be stored.
pub(super) fn of_drain(error: Box<DocumentError>) -> ShardError {
    let binding = error.binding;
    match (&error.tuple, &error.problem) {
        // The destination's own row is damaged, not the document.
        (_, DocumentProblem::Loaded(_)) | (None, _) => error.into(),
        (Some(key), _) => {
            let refused = Refused::Key(Key(key.to_vec()));
            refused_by_us(error.into(), binding, refused)
        }
    }
}

fn refused_by_us(error: ShardError, binding: u32, refused: Refused) -> ShardError {
    let refusal = Refusal {
        binding,
        refused: Some(refused),
        reason: reason(&error.to_string()),
        field: None,
        at_micros: wall_micros(),
    };
    ShardError::Refused {
        refusal: Box::new(refusal),
        cause: Box::new(error),
    }
}

fn reason(message: &str) -> String {
    message[..message.floor_char_boundary(REASON_BYTES_MAX)].to_owned()
}

impl Given<'_> {
    /// Returns the one key that its text can mean.
    ///
    /// A connector may write JSON in its own way. Two numbers that differ may then
    /// look alike here; the one that is meant is among them, so that two mean none.
    fn meant(&self, said: &str) -> Option<Key> {
        let keys = self.keys();
        let texts = keys.iter().map(|key| {
            let elements = decode(key).ok()?;
            Some(key_text(&elements))
        });
        let texts: Vec<_> = texts.collect();
        let exact = |text: &Option<String>| text.as_deref() == Some(said);
        let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
        let meant = json(said);
        let alike =
            |text: &Option<String>| meant.is_some() && text.as_deref().and_then(json) == meant;
        let one = |is: &dyn Fn(&Option<String>) -> bool| {
            let mut found = texts.iter().zip(&keys).filter(|(text, _)| is(text));
            let (_, key) = found.next()?;
            found.next().is_none().then(|| Key(key.to_vec()))
        };
        one(&exact).or_else(|| one(&alike))
    }

    fn keys(&self) -> Vec<&[u8]> {
        // Both are our own, and whole.
        match self {
            Given::Stores(rows) => batch::stores(rows).flatten().map(|it| it.key).collect(),
            Given::Keys(keys) => batch::rows(keys).flatten().collect(),
            Given::Nothing => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_wit::tuple::{Element, encode};

    use super::*;
    use crate::sandbox::{Call, GuestError};

    fn key(elements: &[Element<'_>]) -> Vec<u8> {
        encode(elements)
    }

    fn text(it: &str) -> Element<'_> {
        Element::String(it.into())
    }

    /// Two keys of which a double would make one, and two more.
    fn keys() -> [Vec<u8>; 4] {
        let big = i64::pow(2, 53);
        [
            key(&[Element::Int(big)]),
            key(&[Element::Int(big + 1)]),
            key(&[text("a\0b"), Element::Bool(true)]),
            key(&[text("1")]),
        ]
    }

    #[test]
    fn a_key_is_known_by_its_text() {
        let keys = keys();
        let mut batch = Vec::new();
        keys.iter().for_each(|key| batch::push_row(&mut batch, key));
        let cases = [
            ("[9007199254740993]", Some(1)),
            ("[9007199254740992]", Some(0)),
            ("[ 9007199254740993 ]", Some(1)),
            (r#"["a\u0000b",true]"#, Some(2)),
            (r#"[ "\u0061\u0000b", true ]"#, Some(2)),
            (r#"["1"]"#, Some(3)),
            ("[1]", None),
            ("", None),
            ("[9007199254740993", None),
        ];
        for (said, want) in cases {
            let want = want.map(|at: usize| Key(keys[at].clone()));
            assert_eq!(Given::Keys(&batch).meant(said), want, "{said}");
        }
        let beyond = |it: u32| Element::BigInt((i128::from(u64::MAX) + i128::from(it)).into());
        let mut batch = Vec::new();
        for it in [2, 3] {
            batch::push_row(&mut batch, &key(&[beyond(it)]));
        }
        let given = Given::Keys(&batch);
        assert_eq!(
            given.meant("[ 18446744073709551617 ]"),
            None,
            "it may be either"
        );
        let exact = given.meant("[18446744073709551617]");
        assert_eq!(exact, Some(Key(key(&[beyond(2)]))));
    }

    #[test]
    fn a_connector_s_error_is_a_refusal_if_it_is_about_a_document() {
        let keys = keys();
        let mut batch = Vec::new();
        batch::push_row(&mut batch, &keys[3]);
        let fault = |kind, said: Option<u32>| Fault {
            task: "acmeCo/rows".to_owned(),
            call: Call::Load,
            binding: Some(1),
            kind: FaultKind::Error(Box::new(GuestError {
                kind,
                message: "x".repeat(2 * REASON_BYTES_MAX),
                binding: said,
                key: Some(r#"["1"]"#.to_owned()),
                field: Some("f".to_owned()),
            })),
        };
        let refused = |fault: Fault, given: &Given<'_>| match of_connector(fault, given) {
            ShardError::Refused { refusal, .. } => Some(*refusal),
            _ => None,
        };
        let given = Given::Keys(&batch);
        let refusal = refused(fault(ErrorKind::Document, Some(1)), &given).unwrap();
        assert_eq!(refusal.refused, Some(Refused::Key(Key(keys[3].clone()))));
        assert_eq!(
            (refusal.binding, refusal.reason.len()),
            (1, REASON_BYTES_MAX)
        );
        assert_eq!(refusal.field.as_deref(), Some("f"));
        let other = refused(fault(ErrorKind::Document, Some(0)), &given).unwrap();
        assert_eq!(
            (other.binding, other.refused),
            (0, None),
            "not a key of that binding"
        );
        let nothing = refused(fault(ErrorKind::Document, None), &Given::Nothing).unwrap();
        assert_eq!((nothing.binding, nothing.refused), (1, None));
        assert_eq!(refused(fault(ErrorKind::Schema, Some(1)), &given), None);
    }
}
