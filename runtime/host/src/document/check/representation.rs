//! How the schema compiler reads our parsed documents.

use std::borrow::Cow;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, JsonNumber, Node, NodeIdentity, Object};
use serde_json::Value as Schema;

use crate::document::decimal::{Decimal, Integer};
use crate::document::parse::{self, hash_name};
use crate::document::value::{Elements, Kind, Members, Value};

/// The representation: documents as [`Tape`](super::Tape) parses them.
pub(super) struct Parsed;

/// The name of a property, ready to be looked up.
pub(super) struct Name {
    name: String,
    hash: u32,
}

/// A name of a property standing as a value of its own.
#[derive(Default)]
pub(super) struct NameBuffer {
    text: String,
    node: Option<parse::Node>,
}

impl Json for Parsed {
    type Node<'a> = Value<'a>;
    type PreparedKey = Name;
    type StringBuffer = NameBuffer;

    // A lookup walks the members, so one walk for several names is cheaper
    // from the second name on.
    const KEYS_PER_LOOKUP: usize = 2;
    const ACYCLIC: bool = true;

    fn prepare_key(key: &str) -> Name {
        Name {
            name: key.to_owned(),
            hash: hash_name(key),
        }
    }

    fn with_string_node<T>(
        buffer: &mut NameBuffer,
        string: &str,
        f: impl FnOnce(Value<'_>) -> T,
    ) -> T {
        buffer.text.clear();
        buffer.text.push('"');
        buffer.text.push_str(string);
        buffer.text.push('"');
        let node = buffer.node.insert(parse::Node {
            start: 0,
            end: parse::offset(buffer.text.len()),
            next: 1,
            // What stands between the quotes is taken as it is.
            kind: Kind::String,
        });
        f(Value::new(&buffer.text, std::slice::from_ref(node), 0))
    }
}

impl<'a> Node<'a, Parsed> for Value<'a> {
    type Object = Value<'a>;
    type Array = Value<'a>;
    type Number = Decimal<'a>;

    fn as_object(&self) -> Option<Value<'a>> {
        (self.kind() == Kind::Object).then_some(*self)
    }

    fn as_array(&self) -> Option<Value<'a>> {
        (self.kind() == Kind::Array).then_some(*self)
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        self.string()
    }

    fn as_number(&self) -> Option<Decimal<'a>> {
        self.number()
    }

    fn as_boolean(&self) -> Option<bool> {
        match self.kind() {
            Kind::True => Some(true),
            Kind::False => Some(false),
            _ => None,
        }
    }

    fn is_null(&self) -> bool {
        self.kind() == Kind::Null
    }

    fn is_number(&self) -> bool {
        self.kind() == Kind::Number
    }

    fn json_type(&self) -> JsonType {
        match self.kind() {
            Kind::Null => JsonType::Null,
            Kind::True | Kind::False => JsonType::Boolean,
            Kind::Number => JsonType::Number,
            Kind::String | Kind::EscapedString => JsonType::String,
            Kind::Array => JsonType::Array,
            Kind::Object => JsonType::Object,
        }
    }

    fn to_value(&self) -> Cow<'a, Schema> {
        // Names of properties are not JSON text, whatever they contain.
        let value = match self.string() {
            Some(string) => Schema::String(string.into_owned()),
            // A number past all doubles has no such value. Only messages and
            // custom keywords read this, and ours do neither.
            None => serde_json::from_str(self.text()).unwrap_or_default(),
        };
        Cow::Owned(value)
    }

    fn equals_value(&self, expected: &Schema) -> bool {
        let text = expected.to_string();
        let mut tape = parse::Tape::default();
        let parsed = tape.parse(text.as_bytes());
        parsed.is_ok_and(|expected| self.equals(&expected.root()))
    }

    fn identity(&self) -> Option<NodeIdentity> {
        let address = self.document_text().as_ptr() as usize;
        Some(NodeIdentity::tagged(
            address,
            parse::offset(self.position()),
        ))
    }
}

impl<'a> Object<'a, Parsed> for Value<'a> {
    type Node = Value<'a>;
    type MemberName = Cow<'a, str>;
    type MembersIter = NamedMembers<'a>;

    fn len(&self) -> usize {
        Value::members(self).count()
    }

    fn is_empty(&self) -> bool {
        Value::members(self).next().is_none()
    }

    fn get(&self, key: &Name) -> Option<Value<'a>> {
        Value::members(self)
            .find(|(name, _)| name.name_hash() == key.hash && name.is_name(&key.name))
            .map(|(_, value)| value)
    }

    fn members(&self) -> NamedMembers<'a> {
        NamedMembers(Value::members(self))
    }
}

/// Iterates over an object's names, as text, and values.
pub(super) struct NamedMembers<'a>(Members<'a>);

impl<'a> Iterator for NamedMembers<'a> {
    type Item = (Cow<'a, str>, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.0.next()?;
        Some((name.string().unwrap_or_default(), value))
    }
}

impl<'a> Array<'a, Parsed> for Value<'a> {
    type Node = Value<'a>;
    type ElementsIter = Elements<'a>;

    fn len(&self) -> usize {
        Value::elements(self).count()
    }

    fn elements(&self) -> Elements<'a> {
        Value::elements(self)
    }

    fn is_unique(&self) -> bool {
        let mut elements: Vec<_> = Value::elements(self).collect();
        elements.sort_by(Value::compare);
        elements
            .windows(2)
            .all(|pair| pair[0].compare(&pair[1]).is_ne())
    }
}

impl JsonNumber for Decimal<'_> {
    fn as_u64(&self) -> Option<u64> {
        match self.to_integer()? {
            Integer::Small(small) => u64::try_from(small).ok(),
            Integer::Big(big) => u64::try_from(&big).ok(),
        }
    }

    fn as_i64(&self) -> Option<i64> {
        self.to_i64()
    }

    fn as_f64(&self) -> Option<f64> {
        // A double next to the number would equal a `const` that it is not.
        self.to_exact_double()
    }

    fn as_str(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.text())
    }

    fn to_number(&self) -> Cow<'_, serde_json::Number> {
        let number = self
            .text()
            .parse()
            .unwrap_or_else(|_| serde_json::Number::from(0));
        Cow::Owned(number)
    }

    fn is_integer(&self) -> bool {
        Decimal::is_integer(self)
    }

    fn is_written_as_integer(&self) -> bool {
        !self.text().contains(['.', 'e', 'E'])
    }
}
