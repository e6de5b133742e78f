//! What collections' schemas say of their documents.
//!
//! ```text
//! schema as written -> bundle (references followed, complete in itself) -> checks
//!                                                                        '-> shape -> projections
//! ```

mod bundle;
mod check;
mod infer;
mod project;
mod shape;

pub(crate) use shape::{Shape, Types};

use crate::diagnostic::{Code, Report, Spot};
use crate::load::Files;
use crate::model::{Draft, Resolved};
use std::collections::BTreeMap;

/// Follows the references of all schemas, and works out what documents look like.
pub(crate) fn resolve(draft: &mut Draft, files: &mut Files<'_>, report: &mut Report) {
    for collection in draft.collections.values_mut() {
        let Some(bundled) = bundle::bundle(collection, files, report) else {
            continue;
        };
        let schema = bundled.node.to_value();
        if !check::check(&bundled, &schema, files.sources(), report) {
            continue;
        }
        let shape = match infer::infer(&bundled.node) {
            Ok(shape) => shape,
            Err(span) => {
                let spot = Spot::new(&bundled.pointer, span);
                report
                    .add(
                        files.sources(),
                        Code::TooLarge,
                        &spot,
                        format!(
                            "the schema of \"{}\" is too large once its references are followed",
                            collection.name
                        ),
                    )
                    .help("describe fewer alternatives or fewer levels");
                continue;
            }
        };
        let projections = project::project(collection, &shape, files.sources(), report);
        let by_field: BTreeMap<_, _> = projections
            .iter()
            .enumerate()
            .map(|(position, projection)| (projection.field.clone(), position))
            .collect();
        collection.resolved = Some(Resolved {
            schema,
            complete: bundled.complete,
            shape,
            projections,
            by_field,
        });
    }
}

/// How a keyword holds schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// A schema.
    One,
    /// A list of schemas.
    Many,
    /// Schemas by name.
    Named,
    /// None.
    Nothing,
}

/// Returns how the keyword holds schemas.
fn holds(keyword: &str) -> Holds {
    match keyword {
        "additionalItems"
        | "additionalProperties"
        | "contains"
        | "contentSchema"
        | "else"
        | "if"
        | "items"
        | "not"
        | "propertyNames"
        | "then"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Holds::One,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Holds::Many,
        "$defs" | "definitions" | "dependentSchemas" | "patternProperties" | "properties" => {
            Holds::Named
        }
        _ => Holds::Nothing,
    }
}

#[cfg(test)]
mod tests;
