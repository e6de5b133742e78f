//! Collections: their schema, key and projections.

use super::Reference;
use super::fields::{Context, Field};
use crate::diagnostic::{Code, Spot};
use crate::load::Node;
use crate::schema::Shape;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tidegate_wit::message::Projection;

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) spot: Spot,
}

/// A schema as it is written: an object, or text that names a file.
#[derive(Debug, Clone)]
pub(crate) struct WrittenSchema {
    pub(crate) node: Node,
    pub(crate) pointer: String,
}

/// A collection.
#[derive(Debug, Clone)]
pub(crate) struct Collection {
    pub(crate) name: String,
    /// The place of its name.
    pub(crate) spot: Spot,
    /// The file that defines it.
    pub(crate) path: PathBuf,
    /// The schema that readers see.
    pub(crate) read_schema: Option<WrittenSchema>,
    /// The schema that writers see, where it is another one.
    pub(crate) write_schema: Option<WrittenSchema>,
    pub(crate) key: Vec<Located<String>>,
    pub(crate) projections: Vec<UserProjection>,
    /// Whether a derivation writes it, which is not run.
    pub(crate) derived: bool,
    /// What the schema says, once its references are followed.
    pub(crate) resolved: Option<Resolved>,
}

/// A field that the catalog names.
#[derive(Debug, Clone)]
pub(crate) struct UserProjection {
    pub(crate) field: String,
    pub(crate) pointer: Located<String>,
}

/// A collection's schema with its references followed.
#[derive(Debug, Clone)]
pub(crate) struct Resolved {
    /// The schema, complete in itself.
    pub(crate) schema: Value,
    /// Whether every reference led somewhere; otherwise what is not known may be there.
    pub(crate) complete: bool,
    pub(crate) shape: Shape,
    pub(crate) projections: Vec<Projection>,
    /// Positions of projections by field.
    pub(crate) by_field: BTreeMap<String, usize>,
}

impl Context<'_, '_> {
    pub(super) fn collection(
        &mut self,
        name: &str,
        field: &Field<'_>,
        references: &mut Vec<Reference>,
    ) -> Collection {
        let mut collection = Collection {
            name: name.to_owned(),
            spot: field.key_spot(),
            path: self.path.to_owned(),
            read_schema: None,
            write_schema: None,
            key: Vec::new(),
            projections: Vec::new(),
            derived: false,
            resolved: None,
        };
        let Some(mut fields) = self.object(field) else {
            return collection;
        };
        let (schema, read, write) = (
            fields.get("schema"),
            fields.get("readSchema"),
            fields.get("writeSchema"),
        );
        let (key, projections) = (fields.get("key"), fields.get("projections"));
        let derive = fields.get("derive");
        let derivation = fields.former("derivation");
        // What only the place that stores a collection cares about.
        fields.tolerate(&["journals", "expectPubId", "delete", "reset", "partitions"]);
        fields.close(self);

        if let (Some(schema), Some(other)) = (&schema, read.as_ref().or(write.as_ref())) {
            self.related(
                Code::InvalidValue,
                &other.key_spot(),
                "a collection has one schema, or one for readers and one for writers, not both",
                (&schema.key_spot(), "its one schema is here"),
            )
            .help("remove \"schema\", or \"readSchema\" and \"writeSchema\"");
        }
        let written = |context: &mut Self, field: Option<Field<'_>>| {
            let field = field?;
            if field.node.text().is_none()
                && !field.node.is_object()
                && field.node.boolean().is_none()
            {
                let message = format!(
                    "a schema is an object, or the path of a file that holds one, not {}",
                    field.node.type_name()
                );
                context.add(Code::WrongType, &field.spot(), message);
                return None;
            }
            Some(WrittenSchema {
                node: field.node.clone(),
                pointer: field.pointer,
            })
        };
        let has_schema = schema.is_some() || read.is_some() || write.is_some();
        let schema = written(self, schema);
        let read = written(self, read);
        let write = written(self, write);
        collection.read_schema = schema.or(read).or_else(|| write.clone());
        collection.write_schema = write;
        if !has_schema {
            let spot = field.key_spot();
            let message = format!("collection \"{name}\" has no schema");
            self.add(Code::MissingField, &spot, message)
                .help("add \"schema\", a JSON schema of its documents");
        }
        self.key(name, field, key, &mut collection);
        if let Some(projections) = projections {
            for (field, pointer) in self.named(&projections) {
                let projection = self.projection(field, &pointer);
                collection.projections.extend(projection);
            }
        }
        collection.derived = derive.is_some() || derivation.is_some();
        if let Some(derivation) = derivation {
            self.add(
                Code::NotRun,
                &derivation.key_spot(),
                format!("the derivation of \"{name}\" is in the syntax of 2021; it is not checked and not run"),
            )
            .help("today it is written \"derive\", with \"using\" and \"transforms\"");
        }
        if let Some(derive) = derive {
            self.derive(name, &derive, references);
        }
        collection
    }

    fn key(
        &mut self,
        name: &str,
        field: &Field<'_>,
        key: Option<Field<'_>>,
        collection: &mut Collection,
    ) {
        let Some(key) = key else {
            let message = format!("collection \"{name}\" has no key");
            self.add(Code::MissingField, &field.key_spot(), message)
                .help("add \"key\", a list of JSON pointers such as [/id]");
            return;
        };
        let Some(items) = self.list(&key) else {
            return;
        };
        if items.is_empty() {
            self.add(
                Code::InvalidValue,
                &key.spot(),
                "a key has at least one location",
            )
            .help("write JSON pointers such as [/id]");
        }
        for item in items {
            let spot = item.spot();
            let Some(pointer) = self.pointer(&item) else {
                continue;
            };
            let first = collection.key.iter().find(|it| it.value == pointer);
            if let Some(first) = first {
                let message = format!("the key names {pointer} twice");
                let first = first.spot.clone();
                self.related(
                    Code::InvalidValue,
                    &spot,
                    message,
                    (&first, "it is named here first"),
                );
                continue;
            }
            collection.key.push(Located {
                value: pointer,
                spot,
            });
        }
    }

    fn pointer(&mut self, field: &Field<'_>) -> Option<String> {
        let text = self.text(field)?;
        if text.is_empty() || text.starts_with('/') {
            return Some(text.to_owned());
        }
        self.add(
            Code::InvalidValue,
            &field.spot(),
            format!("\"{text}\" is not a JSON pointer"),
        )
        .help(format!("write \"/{text}\""));
        None
    }

    fn projection(&mut self, name: &str, field: &Field<'_>) -> Option<UserProjection> {
        let location = if field.node.is_object() {
            let mut fields = self.object(field)?;
            let location = fields.get("location");
            let partition = fields.get("partition");
            let spot = fields.spot();
            fields.close(self);
            partition.and_then(|it| self.boolean(&it));
            if location.is_none() {
                let message = format!("projection \"{name}\" has no location");
                self.add(Code::MissingField, &spot, message)
                    .help("add \"location\", a JSON pointer");
            }
            location?
        } else {
            field.clone()
        };
        Some(UserProjection {
            field: name.to_owned(),
            pointer: Located {
                value: self.pointer(&location)?,
                spot: location.spot(),
            },
        })
    }

    /// Derivations are not run: only what they refer to is checked.
    fn derive(&mut self, name: &str, field: &Field<'_>, references: &mut Vec<Reference>) {
        self.add(
            Code::NotRun,
            &field.key_spot(),
            format!(
                "the derivation of \"{name}\" is not run here: documents must come from elsewhere"
            ),
        );
        let Some(mut fields) = self.object(field) else {
            return;
        };
        let transforms = fields.get("transforms");
        fields.tolerate(&["using", "shards", "shuffleKeyTypes"]);
        fields.close(self);
        let Some(transforms) = transforms else { return };
        for transform in self.list(&transforms).unwrap_or_default() {
            let Some(entry) = transform.node.entry("source") else {
                continue;
            };
            let source = entry.value.get("name").unwrap_or(&entry.value);
            if let Some(collection) = source.text() {
                references.push(Reference {
                    collection: collection.to_owned(),
                    spot: Spot::new(crate::load::join(&transform.pointer, "source"), source.span),
                    by: format!("the derivation of \"{name}\""),
                });
            }
        }
    }
}
