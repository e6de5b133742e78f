//! One tree for YAML and JSON: every value knows where it stands.
//!
//! Numbers keep the text they were written with, so that no digit is lost before somebody decides what they are.

use serde_json::{Map, Number, Value};

/// A piece of text in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    /// Position of the file among the sources.
    pub(crate) file: u32,
    /// The first line, from 1.
    pub(crate) line: u32,
    /// The first column in characters, from 1.
    pub(crate) column: u32,
    /// The line of the end.
    pub(crate) end_line: u32,
    /// The column after the last character.
    pub(crate) end_column: u32,
}

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    /// A number, as JSON text.
    Number(String),
    Text(String),
    List(Vec<Node>),
    Object(Vec<Entry>),
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Span,
    pub(crate) value: Node,
}

impl Node {
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn boolean(&self) -> Option<bool> {
        match self.kind {
            Kind::Bool(value) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn list(&self) -> Option<&[Node]> {
        match &self.kind {
            Kind::List(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.kind {
            Kind::Object(entries) => entries,
            _ => &[],
        }
    }

    pub(crate) fn is_object(&self) -> bool {
        matches!(self.kind, Kind::Object(_))
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.kind, Kind::Null)
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// Returns the child that a token of a JSON pointer names.
    pub(crate) fn child(&self, token: &str) -> Option<&Node> {
        match &self.kind {
            Kind::Object(_) => self.get(token),
            Kind::List(items) => items.get(token.parse::<usize>().ok()?),
            _ => None,
        }
    }

    /// Returns what a JSON pointer leads to.
    pub(crate) fn at(&self, pointer: &str) -> Option<&Node> {
        tokens(pointer).try_fold(self, |node, token| node.child(&token))
    }

    /// Returns the last value on the way that a JSON pointer describes.
    pub(crate) fn nearest(&self, pointer: &str) -> &Node {
        let mut node = self;
        for token in tokens(pointer) {
            match node.child(&token) {
                Some(child) => node = child,
                None => break,
            }
        }
        node
    }

    /// Returns what an error calls the value's type.
    pub(crate) fn type_name(&self) -> &'static str {
        match &self.kind {
            Kind::Null => "null",
            Kind::Bool(_) => "a boolean",
            Kind::Number(_) => "a number",
            Kind::Text(_) => "text",
            Kind::List(_) => "a list",
            Kind::Object(_) => "an object",
        }
    }

    /// Returns the value without positions. An integer beyond 64 bits becomes a double, as JSON has it.
    pub(crate) fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Number(text) => number(text).map_or(Value::Null, Value::Number),
            Kind::Text(text) => Value::String(text.clone()),
            Kind::List(items) => Value::Array(items.iter().map(Node::to_value).collect()),
            Kind::Object(entries) => Value::Object(
                entries
                    .iter()
                    .map(|entry| (entry.key.clone(), entry.value.to_value()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }
}

/// Returns the number that JSON text stands for; `None` when it is beyond a double.
pub(crate) fn number(text: &str) -> Option<Number> {
    if let Ok(value) = text.parse::<u64>() {
        return Some(value.into());
    }
    if let Ok(value) = text.parse::<i64>() {
        return Some(value.into());
    }
    Number::from_f64(text.parse().ok()?)
}

/// Returns the tokens of a JSON pointer, or of anything like one, unescaped.
pub(crate) fn tokens(pointer: &str) -> impl Iterator<Item = String> + '_ {
    pointer
        .split('/')
        .skip(1)
        .map(|token| token.replace("~1", "/").replace("~0", "~"))
}

/// Returns `pointer` with one more token.
pub(crate) fn join(pointer: &str, token: &str) -> String {
    let mut joined = String::with_capacity(pointer.len() + token.len() + 1);
    joined.push_str(pointer);
    joined.push('/');
    for c in token.chars() {
        match c {
            '~' => joined.push_str("~0"),
            '/' => joined.push_str("~1"),
            c => joined.push(c),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_escape_and_unescape() {
        let pointer = join(&join("", "a/b"), "c~d");
        assert_eq!(pointer, "/a~1b/c~0d");
        assert_eq!(tokens(&pointer).collect::<Vec<_>>(), ["a/b", "c~d"]);
        assert_eq!(tokens("").count(), 0);
        assert_eq!(tokens("/").collect::<Vec<_>>(), [""]);
    }

    #[test]
    fn numbers_keep_what_64_bits_can() {
        assert_eq!(number("18446744073709551615"), Some(Number::from(u64::MAX)));
        assert_eq!(number("-5"), Some(Number::from(-5)));
        assert_eq!(number("1e19"), Number::from_f64(1e19));
        assert_eq!(number("1e999"), None);
    }
}
