//! A shape into projections: every location that the schema names, under a field name.

use super::shape::{Shape, Types};
use crate::diagnostic::{Code, Report, Severity};
use crate::load::{Sources, join};
use crate::model::{Collection, UserProjection, nearest};
use std::collections::BTreeMap;
use tidegate_wit::message::Projection;

/// The field of the document itself.
pub(super) const DOCUMENT_FIELD: &str = "flow_document";

/// Locations of one collection; a table of more columns exists nowhere.
const LOCATIONS_MAX: usize = 10_000;

/// Returns the projections of a collection, the document first, then by field name.
pub(super) fn project(
    collection: &Collection,
    shape: &Shape,
    sources: &Sources,
    report: &mut Report,
) -> Vec<Projection> {
    let mut walk = Walk {
        collection,
        found: BTreeMap::new(),
    };
    walk.object(shape, "", true);
    let mut found = walk.found;
    let document = projection(collection, DOCUMENT_FIELD, "", shape, true);
    found.insert(DOCUMENT_FIELD.to_owned(), document);
    for user in &collection.projections {
        let projection = user_projection(collection, user, shape, &found, sources, report);
        if let Some(projection) = projection {
            found.insert(user.field.clone(), projection);
        }
    }
    found.into_values().collect()
}

struct Walk<'c> {
    collection: &'c Collection,
    found: BTreeMap<String, Projection>,
}

impl Walk<'_> {
    fn object(&mut self, shape: &Shape, pointer: &str, required: bool) {
        if !shape.types.meets(Types::OBJECT) {
            return;
        }
        for (name, property) in &shape.properties {
            if property.shape.types.is_none() || self.found.len() >= LOCATIONS_MAX {
                continue;
            }
            let pointer = join(pointer, name);
            let required = required && property.required && shape.types == Types::OBJECT;
            let field = &pointer[1..];
            let projection =
                projection(self.collection, field, &pointer, &property.shape, required);
            // A property with an empty name has no field of its own.
            if !field.is_empty() {
                self.found.insert(field.to_owned(), projection);
            }
            self.object(&property.shape, &pointer, required);
        }
    }
}

fn projection(
    collection: &Collection,
    field: &str,
    pointer: &str,
    shape: &Shape,
    required: bool,
) -> Projection {
    let text = shape.types.meets(Types::STRING);
    Projection {
        field: field.to_owned(),
        pointer: pointer.to_owned(),
        types: shape.types.list(),
        required,
        format: shape.format.clone().filter(|_| text),
        content_encoding: shape.content_encoding.clone().filter(|_| text),
        default: shape.default.clone(),
        key: collection.key.iter().any(|it| it.value == pointer),
        description: shape.title.clone().or_else(|| shape.description.clone()),
    }
}

fn user_projection(
    collection: &Collection,
    user: &UserProjection,
    shape: &Shape,
    found: &BTreeMap<String, Projection>,
    sources: &Sources,
    report: &mut Report,
) -> Option<Projection> {
    let (field, pointer) = (&user.field, &user.pointer.value);
    if let Some(other) = found.get(field)
        && other.pointer != *pointer
    {
        report
            .add(
                sources,
                Code::InvalidValue,
                &user.pointer.spot,
                format!(
                    "the field \"{field}\" is {} already, and cannot be {pointer} too",
                    match other.pointer.as_str() {
                        "" => "the whole document",
                        other => other,
                    }
                ),
            )
            .help("choose another name for the projection");
        return None;
    }
    if let Some(located) = shape.locate(pointer) {
        return Some(projection(
            collection,
            field,
            pointer,
            located.shape,
            located.required,
        ));
    }
    let known = found.values().map(|it| it.pointer.as_str());
    let help = nearest(pointer, known).map(|it| format!("did you mean \"{it}\"?"));
    if shape.admits(pointer) {
        report
            .add(
                sources,
                Code::ProjectionUnknown,
                &user.pointer.spot,
                format!("the schema does not name the location {pointer} of field \"{field}\", so nothing is known of its type"),
            )
            .severity(Severity::Warning)
            .help(help.unwrap_or_else(|| "describe the location in the schema".to_owned()));
        let anything = Shape::any(shape.span);
        return Some(projection(collection, field, pointer, &anything, false));
    }
    report
        .add(
            sources,
            Code::ProjectionUnknown,
            &user.pointer.spot,
            format!("no document can have the location {pointer} of field \"{field}\""),
        )
        .help(help.unwrap_or_else(|| "add the location to the schema".to_owned()));
    None
}
