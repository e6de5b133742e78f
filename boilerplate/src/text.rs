//! Values as JSON text, for columns of several types and for people.

use serde_json::Value;

use crate::tuple::Element;

/// Returns a value as JSON text.
///
/// # Panics
///
/// If the element is of a kind that the protocol does not have.
pub fn json_text(element: &Element<'_>) -> String {
    match element {
        Element::Nil => "null".to_owned(),
        Element::Bool(it) => it.to_string(),
        Element::Int(it) => it.to_string(),
        Element::BigInt(it) => it.to_string(),
        Element::Double(it) => Value::from(*it).to_string(),
        Element::String(it) => Value::from(&**it).to_string(),
        Element::Bytes(it) => String::from_utf8_lossy(it).into_owned(),
        other => panic!("the protocol has no element {other:?}"),
    }
}

/// Returns a key as JSON text, an array of its fields.
pub fn key_text(elements: &[Element<'_>]) -> String {
    let elements: Vec<_> = elements.iter().map(json_text).collect();
    format!("[{}]", elements.join(","))
}
