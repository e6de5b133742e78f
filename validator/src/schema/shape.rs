//! What a schema says of a location: a superset of the documents it admits, never less.

use crate::load::{Span, tokens};
use serde_json::Value;
use std::collections::BTreeMap;
use tidegate_wit::message::JsonType;

/// A set of JSON types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Types(u8);

impl Types {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const ARRAY: Self = Self(1);
    pub(crate) const BOOLEAN: Self = Self(2);
    pub(crate) const INTEGER: Self = Self(4);
    /// Numbers with a fraction.
    pub(crate) const FRACTION: Self = Self(8);
    pub(crate) const NULL: Self = Self(16);
    pub(crate) const OBJECT: Self = Self(32);
    pub(crate) const STRING: Self = Self(64);
    pub(crate) const ANY: Self = Self(127);
    pub(crate) const NUMBER: Self = Self(4 | 8);

    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether the sets have a type in common.
    pub(crate) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns whether all of these are among `other`.
    pub(crate) fn within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "array" => Self::ARRAY,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::INTEGER,
            "null" => Self::NULL,
            "number" => Self::NUMBER,
            "object" => Self::OBJECT,
            "string" => Self::STRING,
            _ => return None,
        })
    }

    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) if number.as_f64().is_some_and(|it| it.fract() == 0.0) => {
                Self::INTEGER
            }
            Value::Number(_) => Self::FRACTION,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    /// Returns the types in alphabetical order.
    pub(crate) fn list(self) -> Vec<JsonType> {
        let number = if self.meets(Self::FRACTION) {
            (Self::NUMBER, JsonType::Number)
        } else {
            (Self::INTEGER, JsonType::Integer)
        };
        [
            (Self::ARRAY, JsonType::Array),
            (Self::BOOLEAN, JsonType::Boolean),
            (Self::NULL, JsonType::Null),
            number,
            (Self::OBJECT, JsonType::Object),
            (Self::STRING, JsonType::String),
        ]
        .into_iter()
        .filter(|(types, _)| self.meets(*types))
        .map(|(_, name)| name)
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect()
    }
}

impl std::fmt::Display for Types {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self
            .list()
            .into_iter()
            .map(|it| match it {
                JsonType::Array => "array",
                JsonType::Boolean => "boolean",
                JsonType::Integer => "integer",
                JsonType::Null => "null",
                JsonType::Number => "number",
                JsonType::Object => "object",
                JsonType::String => "string",
            })
            .collect();
        f.write_str(&names.join(", "))
    }
}

/// What a schema says of properties that it does not name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Additional {
    Anything,
    Nothing,
    Like(Box<Shape>),
}

/// What a schema says of a location.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    pub(crate) types: Types,
    pub(crate) properties: BTreeMap<String, Property>,
    pub(crate) additional: Additional,
    pub(crate) format: Option<String>,
    pub(crate) content_encoding: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) default: Option<Value>,
    /// The strategy of a `reduce` annotation, and where it stands.
    pub(crate) reduce: Option<(String, Span)>,
    /// Where the location is described.
    pub(crate) span: Span,
}

/// A property that a schema names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Property {
    pub(crate) shape: Shape,
    /// Whether an object always has it.
    pub(crate) required: bool,
}

/// A location in documents, seen from the root.
#[derive(Debug, Clone)]
pub(crate) struct Located<'s> {
    pub(crate) shape: &'s Shape,
    /// Whether every document has it.
    pub(crate) required: bool,
}

impl Shape {
    pub(crate) fn any(span: Span) -> Self {
        Self::of(Types::ANY, span)
    }

    pub(crate) fn of(types: Types, span: Span) -> Self {
        Self {
            types,
            properties: BTreeMap::new(),
            additional: Additional::Anything,
            format: None,
            content_encoding: None,
            title: None,
            description: None,
            default: None,
            reduce: None,
            span,
        }
    }

    /// Returns a location that the schema names.
    pub(crate) fn locate(&self, pointer: &str) -> Option<Located<'_>> {
        let mut at = Located {
            shape: self,
            required: true,
        };
        for token in tokens(pointer) {
            let property = at.shape.properties.get(&token)?;
            at = Located {
                required: at.required && at.shape.types == Types::OBJECT && property.required,
                shape: &property.shape,
            };
        }
        Some(at)
    }

    /// Returns whether documents could have a location, named by the schema or not.
    pub(crate) fn admits(&self, pointer: &str) -> bool {
        let mut shape = self;
        for token in tokens(pointer) {
            if shape.types.meets(Types::ARRAY) && token.parse::<usize>().is_ok() {
                return true;
            }
            if !shape.types.meets(Types::OBJECT) {
                return false;
            }
            match (shape.properties.get(&token), &shape.additional) {
                (Some(property), _) => shape = &property.shape,
                (None, Additional::Anything) => return true,
                (None, Additional::Nothing) => return false,
                (None, Additional::Like(more)) => shape = more,
            }
        }
        true
    }

    /// Returns what is known of a property that the schema may not name.
    fn imputed(&self, name: &str) -> Option<Self> {
        match (self.properties.get(name), &self.additional) {
            (Some(property), _) => Some(property.shape.clone()),
            (None, Additional::Anything) => Some(Self::any(self.span)),
            (None, Additional::Like(shape)) => Some((**shape).clone()),
            (None, Additional::Nothing) => None,
        }
    }

    fn names<'s>(&'s self, other: &'s Self) -> Vec<String> {
        let mut names: Vec<_> = self.properties.keys().cloned().collect();
        let more = other.properties.keys();
        names.extend(
            more.filter(|it| !self.properties.contains_key(*it))
                .cloned(),
        );
        names
    }

    fn requires(&self, name: &str) -> bool {
        self.properties.get(name).is_some_and(|it| it.required)
    }

    /// Returns what holds of documents that both describe.
    pub(crate) fn intersect(self, other: Self) -> Self {
        let mut properties = BTreeMap::new();
        for name in self.names(&other) {
            let required = self.requires(&name) || other.requires(&name);
            let shape = match (self.imputed(&name), other.imputed(&name)) {
                // A named property tells more than an unnamed one: its annotations come first.
                (Some(a), Some(b)) if self.properties.contains_key(&name) => a.intersect(b),
                (Some(a), Some(b)) => b.intersect(a),
                _ => continue,
            };
            if !shape.types.is_none() || required {
                properties.insert(name, Property { shape, required });
            }
        }
        let additional = match (self.additional, other.additional) {
            (Additional::Nothing, _) | (_, Additional::Nothing) => Additional::Nothing,
            (Additional::Anything, it) | (it, Additional::Anything) => it,
            (Additional::Like(a), Additional::Like(b)) => {
                Additional::Like(Box::new(a.intersect(*b)))
            }
        };
        Self {
            types: self.types.and(other.types),
            properties,
            additional,
            format: self.format.or(other.format),
            content_encoding: self.content_encoding.or(other.content_encoding),
            title: self.title.or(other.title),
            description: self.description.or(other.description),
            default: self.default.or(other.default),
            reduce: self.reduce.or(other.reduce),
            span: self.span,
        }
    }

    /// Returns what holds of documents that either describes.
    pub(crate) fn union(self, other: Self) -> Self {
        if self.types.is_none() {
            return other;
        }
        if other.types.is_none() {
            return self;
        }
        let objects = (
            self.types.meets(Types::OBJECT),
            other.types.meets(Types::OBJECT),
        );
        let (properties, additional) = match objects {
            (true, true) => self.union_properties(&other),
            (true, false) => (self.properties, self.additional),
            (false, _) => (other.properties, other.additional),
        };
        // What only one side says of text holds if the other admits no text.
        let of_text = |a: Option<String>, b: Option<String>| match (
            self.types.meets(Types::STRING),
            other.types.meets(Types::STRING),
        ) {
            (true, true) if a == b => a,
            (true, true) => None,
            (true, false) => a,
            (false, _) => b,
        };
        Self {
            types: self.types.or(other.types),
            properties,
            additional,
            format: of_text(self.format, other.format),
            content_encoding: of_text(self.content_encoding, other.content_encoding),
            title: self.title.filter(|it| other.title.as_ref() == Some(it)),
            description: self
                .description
                .filter(|it| other.description.as_ref() == Some(it)),
            default: self.default.filter(|it| other.default.as_ref() == Some(it)),
            reduce: self.reduce.or(other.reduce),
            span: self.span,
        }
    }

    fn union_properties(&self, other: &Self) -> (BTreeMap<String, Property>, Additional) {
        let mut properties = BTreeMap::new();
        for name in self.names(other) {
            let shape = match (self.imputed(&name), other.imputed(&name)) {
                (Some(a), Some(b)) => a.union(b),
                (Some(only), None) | (None, Some(only)) => only,
                (None, None) => continue,
            };
            let required = self.requires(&name) && other.requires(&name);
            properties.insert(name, Property { shape, required });
        }
        let additional = match (&self.additional, &other.additional) {
            (Additional::Anything, _) | (_, Additional::Anything) => Additional::Anything,
            (Additional::Nothing, it) | (it, Additional::Nothing) => it.clone(),
            (Additional::Like(a), Additional::Like(b)) => {
                Additional::Like(Box::new(a.as_ref().clone().union(b.as_ref().clone())))
            }
        };
        (properties, additional)
    }
}
