//! Which fields a binding gets.
//!
//! ```text
//! key -> included by the catalog -> required by the connector -> recommended, down to a depth -> columns
//! ```
//!
//! Each step takes what it names unless the location is there already under another name. What cannot be is an error
//! with the connector's reason.

use super::keys::type_problem;
use crate::diagnostic::{Code, Report, Spot};
use crate::load::Sources;
use crate::model::{Binding, Collection, Located, Resolved, did_you_mean};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_wit::message::{Constraint, ConstraintKind, Projection};

/// The fields of a binding.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Selected {
    pub(crate) key: Vec<Projection>,
    pub(crate) values: Vec<Projection>,
    pub(crate) document: Option<String>,
    /// Fields that the destination holds in a way that it cannot change, with the connector's reason.
    pub(crate) incompatible: Vec<(String, String)>,
}

/// What a binding is selected from.
pub(crate) struct Selecting<'s> {
    pub(crate) binding: &'s Binding,
    pub(crate) collection: &'s Collection,
    pub(crate) resolved: &'s Resolved,
    pub(crate) constraints: &'s BTreeMap<String, Constraint>,
    pub(crate) field_bytes_max: Option<u32>,
    pub(crate) sources: &'s Sources,
}

/// Selects the fields of a binding, and reports what cannot be.
pub(crate) fn select(selecting: &Selecting<'_>, report: &mut Report) -> Selected {
    let selection = &selecting.binding.selection;
    let names = |list: &[Located<String>]| list.iter().map(|it| it.value.clone()).collect();
    let mut selector = Selector {
        from: selecting,
        included: names(&selection.include),
        excluded: names(&selection.exclude),
        chosen: BTreeSet::new(),
        pointers: BTreeSet::new(),
        incompatible: Vec::new(),
        report,
    };
    selector.unknown();
    let key = selector.key();
    selector.included();
    selector.required();
    selector.recommended();
    let selected = selector.finish(key);
    if let Some(limit) = selecting.field_bytes_max {
        names_cut(selecting, &selected, limit, report);
    }
    selected
}

struct Selector<'s> {
    from: &'s Selecting<'s>,
    included: BTreeSet<String>,
    excluded: BTreeSet<String>,
    chosen: BTreeSet<String>,
    pointers: BTreeSet<String>,
    incompatible: Vec<(String, String)>,
    report: &'s mut Report,
}

impl<'s> Selector<'s> {
    fn projection(&self, field: &str) -> Option<&'s Projection> {
        let position = *self.from.resolved.by_field.get(field)?;
        self.from.resolved.projections.get(position)
    }

    fn constraint(&self, field: &str) -> (ConstraintKind, &'s str) {
        match self.from.constraints.get(field) {
            Some(constraint) => (constraint.kind, constraint.reason.as_str()),
            None => (
                ConstraintKind::Forbidden,
                "the connector says nothing of this field",
            ),
        }
    }

    fn choose(&mut self, projection: &Projection) {
        if self.chosen.insert(projection.field.clone()) {
            self.pointers.insert(projection.pointer.clone());
        }
        if let (ConstraintKind::Incompatible, reason) = self.constraint(&projection.field)
            && !self
                .incompatible
                .iter()
                .any(|(it, _)| *it == projection.field)
        {
            self.incompatible
                .push((projection.field.clone(), reason.to_owned()));
        }
    }

    fn unknown(&mut self) {
        let selection = &self.from.binding.selection;
        let lists = [&selection.include, &selection.exclude, &selection.group_by];
        for named in lists.into_iter().flatten() {
            if self.projection(&named.value).is_some() {
                continue;
            }
            let known = self.from.resolved.by_field.keys().map(String::as_str);
            let help = did_you_mean(&named.value, known).unwrap_or_else(|| {
                "describe the location in the schema, or add a projection for it".to_owned()
            });
            self.report
                .add(
                    self.from.sources,
                    Code::FieldUnknown,
                    &named.spot,
                    format!(
                        "the collection \"{}\" has no field \"{}\"",
                        self.from.collection.name, named.value
                    ),
                )
                .help(help);
        }
        for included in &selection.include {
            let excluded = selection.exclude.iter();
            let Some(excluded) = excluded.into_iter().find(|it| it.value == included.value) else {
                continue;
            };
            self.report
                .add(
                    self.from.sources,
                    Code::FieldConflict,
                    &excluded.spot,
                    format!(
                        "the field \"{}\" is both included and excluded",
                        included.value
                    ),
                )
                .related(self.from.sources, &included.spot, "it is included here")
                .help("remove one of the two");
        }
    }

    /// Chooses the fields of the key: those that the catalog groups by, else one for each location of the collection's
    /// key.
    fn key(&mut self) -> Vec<String> {
        let group_by = &self.from.binding.selection.group_by;
        if !group_by.is_empty() {
            return self.grouped(group_by);
        }
        let mut fields = Vec::new();
        for key in &self.from.collection.key {
            let of_location = || {
                let projections = self.from.resolved.projections.iter();
                projections.filter(|it| it.pointer == key.value)
            };
            if of_location().next().is_none() {
                // The key itself is wrong, which is reported where it stands.
                continue;
            }
            let canonical = key.value.strip_prefix('/').unwrap_or(&key.value);
            let rank = |it: &&Projection| {
                let (kind, _) = self.constraint(&it.field);
                (
                    !self.included.contains(&it.field),
                    kind == ConstraintKind::Forbidden,
                    it.field != canonical,
                    it.field.clone(),
                )
            };
            let best = of_location()
                .filter(|it| !self.excluded.contains(&it.field))
                .min_by_key(rank);
            match best {
                Some(projection) => {
                    let projection = projection.clone();
                    self.forbidden(&projection.field, &self.from.binding.selection.spot.clone());
                    self.choose(&projection);
                    fields.push(projection.field);
                }
                None => {
                    let spot = self.exclusion(canonical);
                    self.report
                        .add(
                            self.from.sources,
                            Code::KeyNotSelected,
                            &spot,
                            format!(
                                "the key location {} is excluded, and no other field holds it",
                                key.value
                            ),
                        )
                        .help("keep the field, or group by other fields with \"groupBy\"");
                }
            }
        }
        fields
    }

    fn exclusion(&self, field: &str) -> Spot {
        let selection = &self.from.binding.selection;
        let found = selection.exclude.iter().find(|it| it.value == field);
        found.map_or(&selection.spot, |it| &it.spot).clone()
    }

    fn grouped(&mut self, group_by: &[Located<String>]) -> Vec<String> {
        let mut fields = Vec::new();
        for named in group_by {
            let Some(projection) = self.projection(&named.value) else {
                continue;
            };
            let shape = self.from.resolved.shape.locate(&projection.pointer);
            if let Some(problem) = shape.and_then(|it| type_problem(it.shape)) {
                self.report
                    .add(
                        self.from.sources,
                        problem.code,
                        &named.spot,
                        format!("the field \"{}\" {}", named.value, problem.message),
                    )
                    .help(problem.help);
                continue;
            }
            if self.excluded.contains(&named.value) {
                let spot = self.exclusion(&named.value);
                self.report
                    .add(
                        self.from.sources,
                        Code::FieldConflict,
                        &spot,
                        format!("the field \"{}\" is grouped by and excluded", named.value),
                    )
                    .related(self.from.sources, &named.spot, "it is grouped by here")
                    .help("remove one of the two");
                continue;
            }
            self.forbidden(&named.value, &named.spot);
            self.choose(projection);
            if !fields.contains(&named.value) {
                fields.push(named.value.clone());
            }
        }
        fields
    }

    /// Reports a field that the connector cannot hold; returns whether it is one.
    fn forbidden(&mut self, field: &str, spot: &Spot) -> bool {
        let (kind, reason) = self.constraint(field);
        if kind != ConstraintKind::Forbidden {
            return false;
        }
        let reason = if reason.is_empty() {
            "it gives no reason"
        } else {
            reason
        };
        self.report
            .add(
                self.from.sources,
                Code::FieldForbidden,
                spot,
                format!("the connector cannot hold the field \"{field}\": {reason}"),
            )
            .help("exclude the field, or change what the schema says of it");
        true
    }

    fn required(&mut self) {
        for projection in self.ordered() {
            let (kind, reason) = self.constraint(&projection.field);
            if kind != ConstraintKind::Required || self.pointers.contains(&projection.pointer) {
                continue;
            }
            if self.excluded.contains(&projection.field) {
                // Another field of the location will do, if there is one that is not excluded.
                let other = self.from.resolved.projections.iter().any(|it| {
                    it.pointer == projection.pointer && !self.excluded.contains(&it.field)
                });
                // A key field is reported with the key, or is meant to be left out by "groupBy"; a field that is
                // included too is in conflict already.
                let reported = projection.key || self.included.contains(&projection.field);
                if !other && !reported {
                    let spot = self.exclusion(&projection.field);
                    let reason = if reason.is_empty() {
                        String::new()
                    } else {
                        format!(": {reason}")
                    };
                    self.report
                        .add(
                            self.from.sources,
                            Code::FieldConflict,
                            &spot,
                            format!("the field \"{}\" is excluded, and the connector requires it{reason}", projection.field),
                        )
                        .help("remove it from \"exclude\"");
                }
                continue;
            }
            self.choose(projection);
        }
    }

    fn included(&mut self) {
        for included in &self.from.binding.selection.include {
            let Some(projection) = self.projection(&included.value) else {
                continue;
            };
            if self.excluded.contains(&included.value)
                || self.forbidden(&included.value, &included.spot)
            {
                continue;
            }
            self.choose(projection);
        }
    }

    fn recommended(&mut self) {
        let depth_max = self.from.binding.selection.recommended_depth;
        if depth_max == 0 {
            return;
        }
        for projection in self.ordered() {
            let (kind, _) = self.constraint(&projection.field);
            let wanted = matches!(
                kind,
                ConstraintKind::Recommended | ConstraintKind::Incompatible
            );
            let depth = projection.pointer.matches('/').count();
            let deep = u32::try_from(depth).is_ok_and(|depth| depth > depth_max);
            if wanted
                && !deep
                && !self.excluded.contains(&projection.field)
                && !self.pointers.contains(&projection.pointer)
            {
                self.choose(projection);
            }
        }
    }

    /// Returns the projections, those named after their location before other names of the same.
    fn ordered(&self) -> Vec<&'s Projection> {
        let mut ordered: Vec<_> = self.from.resolved.projections.iter().collect();
        ordered.sort_by_key(|it| {
            it.pointer.strip_prefix('/') != Some(it.field.as_str()) && it.field != "flow_document"
        });
        ordered
    }

    fn finish(self, key: Vec<String>) -> Selected {
        let mut selected = Selected {
            incompatible: self.incompatible.clone(),
            ..Selected::default()
        };
        let roots: Vec<_> = self
            .from
            .resolved
            .projections
            .iter()
            .filter(|it| it.pointer.is_empty() && self.chosen.contains(&it.field))
            .collect();
        let root = roots.iter().find(|it| it.field == "flow_document");
        selected.document = root.or(roots.first()).map(|it| it.field.clone());
        selected.key = key
            .iter()
            .filter_map(|field| self.projection(field).cloned())
            .collect();
        selected.values = self
            .chosen
            .iter()
            .filter(|field| !key.contains(field) && selected.document.as_ref() != Some(field))
            .filter_map(|field| self.projection(field).cloned())
            .collect();
        selected
    }
}

/// Reports fields whose names the destination would cut: to one and the same name is an error.
fn names_cut(selecting: &Selecting<'_>, selected: &Selected, limit: u32, report: &mut Report) {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut kept: BTreeMap<&str, &str> = BTreeMap::new();
    let fields = selected.key.iter().chain(&selected.values);
    let fields = fields
        .map(|it| it.field.as_str())
        .chain(selected.document.as_deref());
    for field in fields {
        let mut end = limit.min(field.len());
        while !field.is_char_boundary(end) {
            end -= 1;
        }
        let cut = &field[..end];
        let included = selecting.binding.selection.include.iter();
        let spot = included
            .into_iter()
            .find(|it| it.value == field)
            .map_or(&selecting.binding.selection.spot, |it| &it.spot);
        if let Some(other) = kept.insert(cut, field) {
            report
                .add(
                    selecting.sources,
                    Code::FieldCollision,
                    spot,
                    format!("the fields \"{other}\" and \"{field}\" would become one column: the destination keeps {limit} bytes of a name"),
                )
                .help("give one of them a shorter name with a projection of the collection, and exclude the long one");
        } else if end < field.len() {
            report
                .add(
                    selecting.sources,
                    Code::FieldCut,
                    spot,
                    format!(
                        "the field \"{field}\" has {} bytes, and the destination keeps {limit} of them",
                        field.len()
                    ),
                )
                .help("give it a shorter name with a projection of the collection");
        }
    }
}
