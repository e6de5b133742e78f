//! Which fields a table can hold, and which it must.
//!
//! Decided from the request alone: the server is not asked. Names over 63 bytes are
//! the validator's to judge, which knows the limit and sees all fields at once.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_boilerplate::sql::Dialect;
use tidegate_boilerplate::{
    ConnectorError, Constraint, ConstraintKind, JsonType, Projection, Spec, SpecBinding,
    ValidateBinding, ValidateRequest, ValidateResponse, ValidatedBinding,
};

use crate::column::ColumnType;
use crate::config::{Config, Resource};
use crate::dialect::Postgres;

/// Answers a request.
pub(crate) fn validate(request: &ValidateRequest) -> Result<ValidateResponse, ConnectorError> {
    let config = Config::read(&request.config)?;
    let bindings = (0..).zip(&request.bindings).map(|(index, binding)| {
        binding_constraints(binding, &config, request.last.as_ref())
            .map_err(|error| error.of_binding(index))
    });
    Ok(ValidateResponse {
        bindings: bindings.collect::<Result<_, _>>()?,
    })
}

fn binding_constraints(
    binding: &ValidateBinding,
    config: &Config,
    last: Option<&Spec>,
) -> Result<ValidatedBinding, ConnectorError> {
    let resource = Resource::read(&binding.resource)?;
    let resource_path = vec![
        resource.schema_name(config).to_owned(),
        resource.table.clone(),
    ];
    let last = last
        .into_iter()
        .flat_map(|spec| &spec.bindings)
        .find(|it| it.resource_path == resource_path && it.backfill == binding.backfill);

    let mut seen = BTreeSet::new();
    let mut constraints = BTreeMap::new();
    for projection in ranked(binding, last) {
        let first = seen.insert(&projection.pointer);
        let constraint = unusable(projection)
            .or_else(|| incompatible(binding, &resource, projection, last?))
            .unwrap_or_else(|| usable(projection, first, resource.delta_updates));
        constraints.insert(projection.field.clone(), constraint);
    }
    Ok(ValidatedBinding {
        resource_path,
        delta_updates: resource.delta_updates,
        constraints,
    })
}

/// Orders projections by who is to win when two hold one location: what is selected already, keys, the document, the rest.
fn ranked<'a>(binding: &'a ValidateBinding, last: Option<&SpecBinding>) -> Vec<&'a Projection> {
    let selected: BTreeSet<&str> = last
        .into_iter()
        .flat_map(|it| {
            let fields = it.key.iter().chain(&it.values).map(|it| &*it.field);
            fields.chain(it.document.as_deref())
        })
        .collect();
    let mut ranked: Vec<_> = binding.projections.iter().collect();
    ranked.sort_by_key(|it| {
        (
            !selected.contains(&*it.field),
            !it.key,
            !it.pointer.is_empty(),
        )
    });
    ranked
}

fn constraint(kind: ConstraintKind, reason: impl Into<String>) -> Constraint {
    Constraint {
        kind,
        reason: reason.into(),
    }
}

/// Says why a projection cannot be a column, if it cannot.
fn unusable(projection: &Projection) -> Option<Constraint> {
    let field = &*projection.field;
    let reason = Postgres.refuse(field)?;
    Some(constraint(
        ConstraintKind::Forbidden,
        format!(
            "{field:?} cannot be a column: {reason}; give the location another name with a projection"
        ),
    ))
}

/// Says what keeps a projection out of a table that was made before, if anything
/// does.
fn incompatible(
    binding: &ValidateBinding,
    resource: &Resource,
    projection: &Projection,
    last: &SpecBinding,
) -> Option<Constraint> {
    let refused = |what: String| {
        let reason = format!("{what}; raise the binding's backfill counter to make the table anew");
        Some(constraint(ConstraintKind::Incompatible, reason))
    };
    if projection.key {
        if last.delta_updates != resource.delta_updates {
            return refused(format!(
                "the table was made with deltaUpdates {}",
                last.delta_updates
            ));
        }
        let pointers: Vec<_> = last.key.iter().map(|it| &it.pointer).collect();
        if !pointers.iter().copied().eq(&binding.key) {
            return refused(format!("the table was made with key {pointers:?}"));
        }
    }
    let document = last.document.as_deref() == Some(&projection.field);
    if document && !projection.pointer.is_empty() {
        return refused("the column holds the whole document".to_owned());
    }
    let mut applied = last.key.iter().chain(&last.values);
    let applied =
        applied.find(|it| Postgres.fold(&it.field) == Postgres.fold(&projection.field))?;
    let (was, would_be) = (ColumnType::of(applied), ColumnType::of(projection));
    if was.sql() != would_be.sql() {
        return refused(format!(
            "the column is {} and would be {}",
            was.sql(),
            would_be.sql()
        ));
    }
    None
}

fn usable(projection: &Projection, first: bool, delta_updates: bool) -> Constraint {
    use ConstraintKind::{Optional, Recommended, Required};
    if !first {
        return constraint(Optional, "the location is held by another field");
    }
    match (projection.key, &*projection.pointer) {
        (true, _) if delta_updates => constraint(Recommended, "it is part of the key"),
        (true, _) => constraint(Required, "it is part of the key"),
        (false, "") if delta_updates => constraint(Recommended, "it is the document"),
        (false, "") => constraint(Required, "the document is read back to be reduced"),
        _ => match ColumnType::of(projection) {
            ColumnType::Json if projection.types.iter().all(|it| *it == JsonType::Null) => {
                constraint(Optional, "it is always null")
            }
            ColumnType::Json => constraint(Optional, "the column holds JSON"),
            _ => constraint(Recommended, "it is a scalar"),
        },
    }
}
