//! Which fields a table can hold, and which it must.
//!
//! ```text
//! projection -> cannot be a column | does not fit the table of before | may, should or must be selected
//! ```
//!
//! Decided from the request alone: the destination is not asked.

use std::collections::{BTreeMap, BTreeSet};

use super::{Dialect, collisions};
use crate::{
    Constraint, ConstraintKind, JsonType, Projection, Spec, SpecBinding, ValidateBinding,
    ValidatedBinding,
};

/// A type of column, as far as constraints depend on it.
pub trait ColumnType: Sized {
    /// Returns the type of column that holds a field.
    fn of(projection: &Projection) -> Self;

    /// Returns the type as the destination calls it.
    fn name(&self) -> &'static str;

    /// Says whether it holds values as JSON text, for want of a type of their own.
    fn is_json(&self) -> bool;

    /// Says whether a column of this type holds the same value in the same way as
    /// one of the other. Text as it is and text as JSON do not: an old row's key
    /// would be found under neither.
    fn is_same(&self, other: &Self) -> bool {
        self.name() == other.name() && self.is_json() == other.is_json()
    }

    /// Says whether a column of this type can become one of the other with all that
    /// it holds. Not asked of keys, whose rows would be found no more.
    fn widens_to(&self, other: &Self) -> bool {
        let _ = other;
        false
    }
}

/// Answers for one binding, whose table is at `resource_path`.
pub fn constraints<T: ColumnType>(
    dialect: &impl Dialect,
    binding: &ValidateBinding,
    resource_path: Vec<String>,
    delta_updates: bool,
    last: Option<&Spec>,
) -> ValidatedBinding {
    let last = last
        .into_iter()
        .flat_map(|spec| &spec.bindings)
        .find(|it| it.resource_path == resource_path && it.backfill == binding.backfill);
    let ranked = ranked(binding, last);
    let collisions = match dialect.confuses() {
        Some(_) => collisions(dialect, ranked.iter().map(|it| &*it.field)),
        None => BTreeMap::new(),
    };
    let mut seen = BTreeSet::new();
    let mut constraints = BTreeMap::new();
    for projection in ranked {
        let first = seen.insert(&projection.pointer);
        let constraint = unusable(dialect, projection, &collisions)
            .or_else(|| incompatible::<T>(dialect, binding, delta_updates, projection, last?))
            .unwrap_or_else(|| usable::<T>(projection, first, delta_updates));
        constraints.insert(projection.field.clone(), constraint);
    }
    ValidatedBinding {
        resource_path,
        delta_updates,
        constraints,
    }
}

/// Orders projections by who is to win when two want one column, or hold one
/// location: what is selected already, keys, the document, the rest.
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
fn unusable(
    dialect: &impl Dialect,
    projection: &Projection,
    collisions: &BTreeMap<&str, &str>,
) -> Option<Constraint> {
    let field = &*projection.field;
    let reason = match (dialect.refuse(field), collisions.get(field)) {
        (Some(reason), _) => format!("{field:?} cannot be a column: {reason}"),
        (None, Some(winner)) => format!(
            "{field:?} and {winner:?} are one column to {}",
            dialect.confuses()?
        ),
        (None, None) => return None,
    };
    let reason = format!("{reason}; give the location another name with a projection");
    Some(constraint(ConstraintKind::Forbidden, reason))
}

/// Says what keeps a projection out of a table that was made before, if anything
/// does.
fn incompatible<T: ColumnType>(
    dialect: &impl Dialect,
    binding: &ValidateBinding,
    delta_updates: bool,
    projection: &Projection,
    last: &SpecBinding,
) -> Option<Constraint> {
    let refused = |what: String| {
        let reason = format!("{what}; raise the binding's backfill counter to make the table anew");
        Some(constraint(ConstraintKind::Incompatible, reason))
    };
    if projection.key {
        if last.delta_updates != delta_updates {
            return refused(format!(
                "the table was made with delta_updates {}",
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
    let name = dialect.fold(&projection.field);
    let applied = applied.find(|it| dialect.fold(&it.field) == name)?;
    let (was, would_be) = (T::of(applied), T::of(projection));
    if was.is_same(&would_be) || !projection.key && was.widens_to(&would_be) {
        return None;
    }
    let described = |it: &T| match it.is_json() {
        true => format!("{} of JSON", it.name()),
        false => it.name().to_owned(),
    };
    refused(format!(
        "the column is {} and would be {}",
        described(&was),
        described(&would_be)
    ))
}

fn usable<T: ColumnType>(projection: &Projection, first: bool, delta_updates: bool) -> Constraint {
    use ConstraintKind::{Optional, Recommended, Required};
    if !first {
        return constraint(Optional, "the location is held by another field");
    }
    match (projection.key, &*projection.pointer) {
        (true, _) if delta_updates => constraint(Recommended, "it is part of the key"),
        (true, _) => constraint(Required, "it is part of the key"),
        (false, "") if delta_updates => constraint(Recommended, "it is the document"),
        (false, "") => constraint(Required, "the document is read back to be reduced"),
        _ if projection.types.iter().all(|it| *it == JsonType::Null) => {
            constraint(Optional, "it is always null")
        }
        _ if T::of(projection).is_json() => constraint(Optional, "the column holds JSON"),
        _ => constraint(Recommended, "it is a scalar"),
    }
}
