//! Reads objects field by field, and reports what is left.

use super::near::nearest;
use crate::diagnostic::{Code, Entry, Report, Spot};
use crate::load::{Files, Node, Span, join, shown_name, tokens};
use std::path::Path;

/// What reading needs at hand.
pub(crate) struct Context<'c, 'f> {
    /// The file that is being read.
    pub(crate) path: &'c Path,
    pub(crate) files: &'c mut Files<'f>,
    pub(crate) report: &'c mut Report,
}

impl Context<'_, '_> {
    pub(crate) fn add(&mut self, code: Code, spot: &Spot, message: impl Into<String>) -> Entry<'_> {
        self.report.add(self.files.sources(), code, spot, message)
    }

    pub(crate) fn related(
        &mut self,
        code: Code,
        spot: &Spot,
        message: impl Into<String>,
        related: (&Spot, &str),
    ) -> Entry<'_> {
        let sources = self.files.sources();
        self.report
            .add(sources, code, spot, message)
            .related(sources, related.0, related.1)
    }

    pub(super) fn wrong_type(&mut self, field: &Field<'_>, wanted: &str) -> Entry<'_> {
        let message = format!(
            "{} must be {wanted}, not {}",
            field.name(),
            field.node.type_name()
        );
        self.add(Code::WrongType, &field.spot(), message)
    }

    pub(crate) fn text<'n>(&mut self, field: &Field<'n>) -> Option<&'n str> {
        let text = field.node.text();
        if text.is_none() {
            self.wrong_type(field, "text");
        }
        text
    }

    pub(crate) fn boolean(&mut self, field: &Field<'_>) -> Option<bool> {
        let value = field.node.boolean();
        if value.is_none() {
            self.wrong_type(field, "true or false");
        }
        value
    }

    pub(crate) fn natural(&mut self, field: &Field<'_>) -> Option<u32> {
        match &field.node.kind {
            crate::load::Kind::Number(text) => {
                let number = text.parse().ok();
                if number.is_none() {
                    let message =
                        format!("{} is a whole number from 0 to {}", field.name(), u32::MAX);
                    self.add(Code::InvalidValue, &field.spot(), message);
                }
                number
            }
            _ => {
                self.wrong_type(field, "a whole number");
                None
            }
        }
    }

    pub(crate) fn list<'n>(&mut self, field: &Field<'n>) -> Option<Vec<Field<'n>>> {
        let Some(items) = field.node.list() else {
            self.wrong_type(field, "a list");
            return None;
        };
        Some(
            items
                .iter()
                .enumerate()
                .map(|(position, node)| Field {
                    node,
                    pointer: join(&field.pointer, &position.to_string()),
                    key_span: node.span,
                })
                .collect(),
        )
    }

    pub(crate) fn object<'n>(&mut self, field: &Field<'n>) -> Option<Fields<'n>> {
        if !field.node.is_object() {
            self.wrong_type(field, "an object");
            return None;
        }
        Some(Fields {
            node: field.node,
            pointer: field.pointer.clone(),
            known: Vec::new(),
            former: Vec::new(),
        })
    }

    /// Reads the fields of an object whose keys are names of the author's choice.
    pub(crate) fn named<'n>(&mut self, field: &Field<'n>) -> Vec<(&'n str, Field<'n>)> {
        if !field.node.is_object() {
            self.wrong_type(field, "an object");
        }
        field
            .node
            .entries()
            .iter()
            .map(|entry| {
                let field = Field {
                    node: &entry.value,
                    pointer: join(&field.pointer, &entry.key),
                    key_span: entry.key_span,
                };
                (entry.key.as_str(), field)
            })
            .collect()
    }
}

/// A value, its place, and the place of its key.
#[derive(Debug, Clone)]
pub(crate) struct Field<'n> {
    pub(crate) node: &'n Node,
    pub(crate) pointer: String,
    pub(crate) key_span: Span,
}

impl Field<'_> {
    pub(crate) fn spot(&self) -> Spot {
        Spot::new(&self.pointer, self.node.span)
    }

    pub(crate) fn key_spot(&self) -> Spot {
        Spot::new(&self.pointer, self.key_span)
    }

    fn name(&self) -> String {
        match tokens(&self.pointer).last() {
            None => "a catalog".to_owned(),
            Some(last) if last.bytes().all(|b| b.is_ascii_digit()) => "this item".to_owned(),
            Some(last) if last.contains('/') => format!("\"{last}\""),
            Some(last) => last,
        }
    }
}

/// An object that is being read.
pub(crate) struct Fields<'n> {
    node: &'n Node,
    pointer: String,
    known: Vec<&'static str>,
    former: Vec<&'static str>,
}

impl<'n> Fields<'n> {
    /// Returns a field; null is as good as absent.
    pub(crate) fn get(&mut self, key: &'static str) -> Option<Field<'n>> {
        self.known.push(key);
        let entry = self.node.entry(key)?;
        (!entry.value.is_null()).then(|| Field {
            node: &entry.value,
            pointer: join(&self.pointer, key),
            key_span: entry.key_span,
        })
    }

    /// Takes a field that no longer is one, and that no message is to suggest.
    pub(crate) fn former(&mut self, key: &'static str) -> Option<Field<'n>> {
        self.former.push(key);
        let field = self.get(key);
        self.known.pop();
        field
    }

    /// Accepts fields that mean nothing here.
    pub(crate) fn tolerate(&mut self, keys: &[&'static str]) {
        self.known.extend_from_slice(keys);
    }

    pub(crate) fn spot(&self) -> Spot {
        Spot::new(&self.pointer, self.node.span)
    }

    /// Reports every field that nobody asked for.
    pub(crate) fn close(self, context: &mut Context<'_, '_>) {
        for entry in self.node.entries() {
            let key = entry.key.as_str();
            if self.known.contains(&key) || self.former.contains(&key) || key.starts_with("x-") {
                continue;
            }
            let name = shown_name(key);
            let spot = Spot::new(join(&self.pointer, name), entry.key_span);
            let help = match nearest(&entry.key, self.known.iter().copied()) {
                Some(name) => format!("did you mean \"{name}\"?"),
                None => {
                    let mut known = self.known.clone();
                    known.sort_unstable();
                    format!("fields here are {}", known.join(", "))
                }
            };
            let message = format!("there is no field \"{name}\" here");
            context.add(Code::UnknownField, &spot, message).help(help);
        }
    }
}
