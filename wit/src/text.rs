//! Values as JSON text, for columns of several types and for people.
//!
//! A connector names a key in an error by this text, and the host finds by it which
//! document is meant.

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

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::tuple::Bytes;

    #[test]
    fn keys_are_json() {
        let beyond = i128::from(i64::MAX) + 1;
        let key = [
            Element::Nil,
            Element::Bool(true),
            Element::Int((1 << 53) + 1),
            Element::BigInt(beyond.into()),
            Element::Double(1.5),
            Element::String(Cow::Borrowed("a\0\"b")),
            Element::Bytes(Bytes(Cow::Borrowed(b"{\"a\":1}"))),
        ];
        let want = r#"[null,true,9007199254740993,9223372036854775808,1.5,"a\u0000\"b",{"a":1}]"#;
        assert_eq!(key_text(&key), want);
    }
}
