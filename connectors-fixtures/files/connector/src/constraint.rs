//! Which fields files can hold, and which they hold unless told otherwise.
//!
//! ```text
//! projection -> cannot be a column | does not fit the files of before | may or should be selected
//! ```
//!
//! Decided from the request alone: the directory is not looked at.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_boilerplate::{
    ConnectorError, Constraint, ConstraintKind, JsonType, Projection, SpecBinding, ValidateBinding,
    ValidateRequest, ValidateResponse, ValidatedBinding,
};

use crate::column::ColumnType;
use crate::config::{Config, Format, Resource};

/// Answers for every binding.
pub(crate) fn validate(request: &ValidateRequest) -> Result<ValidateResponse, ConnectorError> {
    let config = Config::read(&request.config)?;
    let last_format = match &request.last {
        // What was applied was read then; if it no longer reads, nothing is known of it.
        Some(spec) => Config::read(&spec.config).ok().map(|config| config.format),
        None => None,
    };
    let bindings = (0..).zip(&request.bindings).map(|(index, binding)| {
        let resource = Resource::read(&binding.resource)
            .map_err(|error: ConnectorError| error.of_binding(index))?;
        let resource_path = vec![resource.folder];
        let mut last = request.last.iter().flat_map(|spec| &spec.bindings);
        let last =
            last.find(|it| it.resource_path == resource_path && it.backfill == binding.backfill);
        let before = last.zip(last_format);
        Ok(ValidatedBinding {
            constraints: constraints(config.format, binding, before),
            resource_path,
            delta_updates: true,
        })
    });
    Ok(ValidateResponse {
        bindings: bindings.collect::<Result<_, ConnectorError>>()?,
    })
}

fn constraints(
    format: Format,
    binding: &ValidateBinding,
    before: Option<(&SpecBinding, Format)>,
) -> BTreeMap<String, Constraint> {
    // Keys first, so that of two names of one location the key's is the first.
    let mut projections: Vec<_> = binding.projections.iter().collect();
    projections.sort_by_key(|it| !it.key);
    let mut seen = BTreeSet::new();
    let constraint = |projection: &Projection| {
        let first = seen.insert(projection.pointer.clone());
        let (kind, reason) = before
            .and_then(|before| incompatible(format, projection, before))
            .map(|reason| (ConstraintKind::Incompatible, reason))
            .unwrap_or_else(|| {
                let (kind, reason) = usable(format, projection, first);
                (kind, reason.to_owned())
            });
        (projection.field.clone(), Constraint { kind, reason })
    };
    projections.into_iter().map(constraint).collect()
}

/// Says what keeps a projection out of a folder that has files already, if anything
/// does: readers take the files of a folder for one table.
fn incompatible(
    format: Format,
    projection: &Projection,
    (last, last_format): (&SpecBinding, Format),
) -> Option<String> {
    const FIX: &str =
        "raise the binding's backfill counter to begin new files, or name another folder";
    if format != last_format {
        return Some(format!(
            "the folder's files are {last_format:?} and would be {format:?}; {FIX}"
        ));
    }
    if format != Format::Parquet {
        return None;
    }
    let mut applied = last.key.iter().chain(&last.values);
    let was = match last.document.as_deref() == Some(&projection.field) {
        true => ColumnType::Json,
        false => ColumnType::of(applied.find(|it| it.field == projection.field)?),
    };
    let would_be = ColumnType::of(projection);
    (was != would_be).then(|| {
        format!(
            "the files' column is {} and would be {}; {FIX}",
            was.name(),
            would_be.name()
        )
    })
}

fn usable(format: Format, projection: &Projection, first: bool) -> (ConstraintKind, &'static str) {
    use ConstraintKind::{Forbidden, Optional, Recommended};
    if projection.field.is_empty() {
        let reason = "a column has a name; give the location one with a projection";
        return (Forbidden, reason);
    }
    if !first {
        return (Optional, "the location is held by another field");
    }
    match (projection.key, &*projection.pointer, format) {
        (true, _, _) => (Recommended, "it is part of the key"),
        (false, "", Format::Ndjson) => (Recommended, "each line is the document"),
        (false, "", _) => (Optional, "the column holds the document as JSON"),
        _ if projection.types.iter().all(|it| *it == JsonType::Null) => {
            (Optional, "it is always null")
        }
        _ if ColumnType::of(projection) == ColumnType::Json => (Optional, "it is held as JSON"),
        _ => (Recommended, "it is a scalar"),
    }
}
