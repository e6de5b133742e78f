//! Values as JSON text, for columns of several types and for people.

use std::fmt::Write;

use serde_json::Value;

use crate::tuple::Element;

/// Returns a value as JSON text.
///
/// # Panics
///
/// If the element is of a kind that the protocol does not have.
pub fn json_text(element: &Element<'_>) -> String {
    let mut text = String::new();
    push_json(&mut text, element);
    text
}

/// Appends a value as JSON text.
///
/// # Panics
///
/// If the element is of a kind that the protocol does not have.
pub fn push_json(text: &mut String, element: &Element<'_>) {
    let written = match element {
        Element::Nil => text.write_str("null"),
        Element::Bool(it) => write!(text, "{it}"),
        Element::Int(it) => write!(text, "{it}"),
        Element::BigInt(it) => write!(text, "{it}"),
        Element::Double(it) => write!(text, "{}", Value::from(*it)),
        Element::String(it) => write!(text, "{}", Value::from(&**it)),
        Element::Bytes(it) => text.write_str(&String::from_utf8_lossy(it)),
        other => panic!("the protocol has no element {other:?}"),
    };
    written.expect("a text takes whatever is appended");
}

/// Returns a key as JSON text, an array of its fields.
pub fn key_text(elements: &[Element<'_>]) -> String {
    let elements: Vec<_> = elements.iter().map(json_text).collect();
    format!("[{}]", elements.join(","))
}
