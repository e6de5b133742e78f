//! Tuples: FoundationDB's order-preserving encoding, as the protocol uses it.
//!
//! Concatenated tuples are the tuple of the concatenated elements, so a row is
//! its key tuple followed by its values tuple.
//!
//! JSON has values that the encoding lacks. They travel as [`Element::Bytes`],
//! which hold their JSON text: arrays, objects, and numbers that neither an
//! integer nor a double holds exactly.

pub use foundationdb_tuple::{Bytes, Element};
use foundationdb_tuple::{TuplePack, pack, unpack};

/// A tuple that cannot be taken apart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a tuple of {len} bytes is malformed: {reason}")]
pub struct TupleError {
    /// Length of the tuple.
    pub len: usize,
    /// What is wrong with it.
    pub reason: String,
}

/// Appends an element to a tuple.
///
/// # Panics
///
/// On [`Element::Tuple`] and [`Element::Versionstamp`], which the protocol does
/// not have.
pub fn push(tuple: &mut Vec<u8>, element: &Element<'_>) {
    assert!(
        !matches!(element, Element::Tuple(_) | Element::Versionstamp(_)),
        "the protocol has neither nested tuples nor versionstamps"
    );
    element.pack_into_vec(tuple);
}

/// Packs elements into a new tuple.
pub fn encode(elements: &[Element<'_>]) -> Vec<u8> {
    pack(&elements)
}

/// Takes a tuple apart.
///
/// # Errors
///
/// If the bytes are not a tuple.
pub fn decode(tuple: &[u8]) -> Result<Vec<Element<'_>>, TupleError> {
    unpack(tuple).map_err(|error| TupleError {
        len: tuple.len(),
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use proptest::prelude::*;

    use super::*;

    fn element() -> impl Strategy<Value = Element<'static>> {
        prop_oneof![
            Just(Element::Nil),
            any::<bool>().prop_map(Element::Bool),
            any::<i64>().prop_map(Element::Int),
            any::<f64>().prop_map(Element::Double),
            any::<i128>().prop_map(|i| Element::BigInt(i.into())),
            any::<String>().prop_map(|s| Element::String(Cow::Owned(s))),
            any::<Vec<u8>>().prop_map(|b| Element::Bytes(Bytes(Cow::Owned(b)))),
        ]
    }

    proptest! {
        #[test]
        fn pushed_elements_are_one_tuple(elements in prop::collection::vec(element(), 0..6)) {
            let mut tuple = Vec::new();
            elements.iter().for_each(|element| push(&mut tuple, element));
            prop_assert_eq!(&tuple, &encode(&elements));
            prop_assert_eq!(encode(&decode(&tuple).unwrap()), tuple);
        }

        #[test]
        fn integers_of_any_size_keep_their_order(a in any::<i128>(), b in any::<i128>()) {
            let tuple = |i: i128| match i64::try_from(i) {
                Ok(i) => encode(&[Element::Int(i)]),
                Err(_) => encode(&[Element::BigInt(i.into())]),
            };
            prop_assert_eq!(tuple(a).cmp(&tuple(b)), a.cmp(&b));
        }

        #[test]
        fn no_bytes_panic_the_decoder(bytes in any::<Vec<u8>>()) {
            let _ = decode(&bytes);
        }
    }
}
