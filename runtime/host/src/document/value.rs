//! One value of a parsed document: its kind, its text, what is inside it.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::decimal::Decimal;
use super::parse::{Node, hash_name};

/// What a value is, as far as its text tells without a second look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `false`
    False,
    /// `true`
    True,
    /// A number, as text.
    Number,
    /// Text without escapes: it is what stands between the quotes.
    String,
    /// Text with escapes.
    EscapedString,
    /// `[...]`
    Array,
    /// `{...}`
    Object,
}

/// A value of a parsed document.
#[derive(Clone, Copy, Debug)]
pub struct Value<'d> {
    text: &'d str,
    nodes: &'d [Node],
    at: usize,
}

impl<'d> Value<'d> {
    #[inline]
    pub(super) fn new(text: &'d str, nodes: &'d [Node], at: usize) -> Self {
        Value { text, nodes, at }
    }

    #[inline]
    fn node(&self) -> &'d Node {
        &self.nodes[self.at]
    }

    /// The value at another position of the same tape.
    #[inline]
    pub(super) fn at(&self, at: usize) -> Value<'d> {
        Value { at, ..*self }
    }

    /// Position on the document's tape.
    #[inline]
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// The text of the whole document.
    pub(super) fn document_text(&self) -> &'d str {
        self.text
    }

    /// What the value is.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.node().kind
    }

    /// The value's JSON text.
    #[inline]
    pub fn text(&self) -> &'d str {
        let node = self.node();
        &self.text[node.start as usize..node.end as usize]
    }

    /// The text that a string stands for.
    #[inline]
    pub fn string(&self) -> Option<Cow<'d, str>> {
        match self.kind() {
            Kind::String => {
                let node = self.node();
                let text = &self.text[node.start as usize + 1..node.end as usize - 1];
                Some(Cow::Borrowed(text))
            }
            Kind::EscapedString => {
                let text = sonic_rs::from_str::<String>(self.text());
                Some(Cow::Owned(
                    text.expect("escapes were checked when it was parsed"),
                ))
            }
            _ => None,
        }
    }

    /// The number.
    #[inline]
    pub fn number(&self) -> Option<Decimal<'d>> {
        (self.kind() == Kind::Number).then(|| Decimal::of_text(self.text()))
    }

    /// The names of an object and their values, in the document's order; none
    /// of anything else.
    #[inline]
    pub fn members(&self) -> Members<'d> {
        Members(Children::of(*self, Kind::Object))
    }

    /// The elements of an array; none of anything else.
    #[inline]
    pub fn elements(&self) -> Elements<'d> {
        Elements(Children::of(*self, Kind::Array))
    }

    /// The value that an object has under a name.
    pub fn get(&self, name: &str) -> Option<Value<'d>> {
        let hash = hash_name(name);
        self.members()
            .find(|(known, _)| known.name_hash() == hash && known.is_name(name))
            .map(|(_, value)| value)
    }

    /// Hash of a name of a property.
    #[inline]
    pub(super) fn name_hash(&self) -> u32 {
        self.node().next
    }

    /// Whether a string says the same as a name.
    #[inline]
    pub(super) fn is_name(&self, name: &str) -> bool {
        match self.kind() {
            Kind::String => {
                let node = self.node();
                self.text.as_bytes()[node.start as usize + 1..node.end as usize - 1]
                    == *name.as_bytes()
            }
            _ => self.string().as_deref() == Some(name),
        }
    }

    /// Whether two values are equal as JSON: numbers by what they amount to,
    /// objects whatever the order of their properties.
    pub fn equals(&self, other: &Value<'_>) -> bool {
        if self.text() == other.text() {
            return true;
        }
        self.compare(other) == Ordering::Equal
    }

    /// Orders all values: null, false, true, numbers, text, arrays, objects;
    /// arrays element by element, objects property by property in the order
    /// of names.
    pub fn compare(&self, other: &Value<'_>) -> Ordering {
        match (self.rank(), other.rank()) {
            (mine, theirs) if mine != theirs => mine.cmp(&theirs),
            (3, _) => self.number().cmp(&other.number()),
            (4, _) => self.string().cmp(&other.string()),
            (5, _) => compare_all(self.elements(), other.elements(), |a, b| a.compare(&b)),
            (6, _) => {
                let by_name = |value: &Value<'_>| -> BTreeMap<String, usize> {
                    let entry = |(name, value): (Value<'_>, Value<'_>)| {
                        (
                            name.string().unwrap_or_default().into_owned(),
                            value.position(),
                        )
                    };
                    value.members().map(entry).collect()
                };
                compare_all(by_name(self), by_name(other), |(a, left), (b, right)| {
                    a.cmp(&b)
                        .then_with(|| self.at(left).compare(&other.at(right)))
                })
            }
            _ => Ordering::Equal,
        }
    }

    fn rank(&self) -> u8 {
        match self.kind() {
            Kind::Null => 0,
            Kind::False => 1,
            Kind::True => 2,
            Kind::Number => 3,
            Kind::String | Kind::EscapedString => 4,
            Kind::Array => 5,
            Kind::Object => 6,
        }
    }
}

fn compare_all<A, B>(
    left: impl IntoIterator<Item = A>,
    right: impl IntoIterator<Item = B>,
    mut compare: impl FnMut(A, B) -> Ordering,
) -> Ordering {
    let mut right = right.into_iter();
    for mine in left {
        let Some(theirs) = right.next() else {
            return Ordering::Greater;
        };
        match compare(mine, theirs) {
            Ordering::Equal => {}
            unequal => return unequal,
        }
    }
    match right.next() {
        Some(_) => Ordering::Less,
        None => Ordering::Equal,
    }
}

/// Walks what is directly inside an array or object.
#[derive(Clone, Debug)]
struct Children<'d> {
    parent: Value<'d>,
    at: usize,
    end: usize,
}

impl<'d> Children<'d> {
    #[inline]
    fn of(parent: Value<'d>, kind: Kind) -> Self {
        let at = parent.at + 1;
        let end = match parent.kind() == kind {
            true => parent.node().next as usize,
            false => at,
        };
        Children { parent, at, end }
    }
}

/// Iterates over an object's names and values.
#[derive(Clone, Debug)]
pub struct Members<'d>(Children<'d>);

impl<'d> Iterator for Members<'d> {
    type Item = (Value<'d>, Value<'d>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let Children { parent, at, end } = &mut self.0;
        if *at >= *end {
            return None;
        }
        let (name, value) = (parent.at(*at), parent.at(*at + 1));
        *at = value.node().next as usize;
        Some((name, value))
    }
}

/// Iterates over an array's elements.
#[derive(Clone, Debug)]
pub struct Elements<'d>(Children<'d>);

impl<'d> Iterator for Elements<'d> {
    type Item = Value<'d>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let Children { parent, at, end } = &mut self.0;
        if *at >= *end {
            return None;
        }
        let value = parent.at(*at);
        *at = value.node().next as usize;
        Some(value)
    }
}
