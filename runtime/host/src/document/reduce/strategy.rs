//! Strategies: the `reduce` annotations of a schema, compiled.
//!
//! A location in a document is described by a *set* of schemas: where it is
//! listed, what those refer to (`$ref`), and their branches (`allOf`, `anyOf`,
//! `oneOf`, `then`, `else`). Compiling walks from set to set, so a schema that
//! refers to itself becomes a graph with a cycle and not an endless tree. Which
//! branch of `anyOf` a document takes is not asked: the branches must agree.
//!
//! Only what lies below `merge` all the way from the root counts. Any other
//! strategy takes or leaves a value whole, with all that is inside it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Schema};

use crate::document::pointer::push_token;

/// Most locations with a strategy of their own. Sets of schemas multiply when
/// branches refer to each other, and no real schema comes near.
const LOCATIONS_MAX: usize = 10_000;

/// A `reduce` annotation that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`reduce` at {pointer:?}: {problem}")]
pub struct StrategyError {
    /// Where, in the schema.
    pub pointer: String,
    /// What is wrong there.
    pub problem: StrategyProblem,
}

/// What is wrong with a `reduce` annotation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StrategyProblem {
    /// It is not `{strategy: <text>}`.
    #[error("expected an object with a `strategy`")]
    Form,
    /// No such strategy.
    #[error(
        "strategy {0:?} is not known; use lastWriteWins, firstWriteWins, merge, sum, minimize, maximize or append"
    )]
    Unknown(String),
    /// The strategy is known and not offered.
    #[error("strategy {0:?} is not offered")]
    NotOffered(&'static str),
    /// The option is not offered.
    #[error("the option {0:?} is not offered here")]
    Option(String),
    /// Two schemas of one location disagree.
    #[error("{0:?} here, but another schema of the same location says {1:?}; they must agree")]
    Conflict(&'static str, &'static str),
    /// A reference leads nowhere.
    #[error(
        "the reference {0:?} leads nowhere in this schema; bundle what it refers to into `$defs`"
    )]
    Reference(String),
    /// `reduce` under `patternProperties`.
    #[error(
        "annotations under `patternProperties` are not offered; list the properties, or use `additionalProperties`"
    )]
    Pattern,
    /// There are too many locations.
    #[error(
        "the schema has more than {LOCATIONS_MAX} locations with a strategy of their own; simplify its branches"
    )]
    TooMany,
}

/// How several values of one location become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Strategy {
    #[default]
    LastWriteWins,
    FirstWriteWins,
    Merge,
    Sum,
    Minimize,
    Maximize,
    Append,
}

impl Strategy {
    pub(super) fn name(self) -> &'static str {
        match self {
            Strategy::LastWriteWins => "lastWriteWins",
            Strategy::FirstWriteWins => "firstWriteWins",
            Strategy::Merge => "merge",
            Strategy::Sum => "sum",
            Strategy::Minimize => "minimize",
            Strategy::Maximize => "maximize",
            Strategy::Append => "append",
        }
    }
}

/// Position of a location among a schema's locations.
pub(super) type LocationId = usize;

/// What holds at one location of the documents.
#[derive(Clone, Debug, Default)]
pub(super) struct Location {
    pub strategy: Strategy,
    /// Below a `merge`: the listed properties.
    pub properties: BTreeMap<String, LocationId>,
    /// Below a `merge`: all other properties.
    pub others: LocationId,
    /// Below a `merge`: the first elements, when listed one by one.
    pub first_elements: Vec<LocationId>,
    /// Below a `merge`: all other elements.
    pub elements: LocationId,
}

/// Compiles the annotations of a schema. The first location is the root.
pub(super) fn compile(schema: &Schema) -> Result<Vec<Location>, StrategyError> {
    let mut compiling = Compiling {
        anchors: BTreeMap::new(),
        ids: BTreeMap::new(),
        locations: Vec::new(),
        queue: Vec::new(),
        schema,
    };
    compiling.find_anchors(schema, &mut String::new());
    let root = compiling.expand([String::new()])?;
    compiling.location(root, "")?;
    while let Some((id, set)) = compiling.queue.pop() {
        compiling.children(id, &set)?;
    }
    Ok(compiling.locations)
}

/// Schemas, by their pointers, with all that they refer to.
type Set = BTreeSet<String>;

struct Compiling<'s> {
    schema: &'s Schema,
    /// Pointers of what has an `$id` or an `$anchor`.
    anchors: BTreeMap<String, String>,
    ids: BTreeMap<Set, LocationId>,
    locations: Vec<Location>,
    /// Locations whose children are still to be compiled.
    queue: Vec<(LocationId, Set)>,
}

impl<'s> Compiling<'s> {
    fn find_anchors(&mut self, schema: &Schema, pointer: &mut String) {
        let len = pointer.len();
        match schema {
            Schema::Object(members) => {
                for (keyword, prefix) in [("$id", ""), ("$anchor", "#")] {
                    if let Some(Schema::String(name)) = members.get(keyword) {
                        self.anchors
                            .insert(format!("{prefix}{name}"), pointer.clone());
                    }
                }
                for (name, value) in members {
                    push_token(pointer, name);
                    self.find_anchors(value, pointer);
                    pointer.truncate(len);
                }
            }
            Schema::Array(elements) => {
                for (at, value) in elements.iter().enumerate() {
                    push_token(pointer, &at.to_string());
                    self.find_anchors(value, pointer);
                    pointer.truncate(len);
                }
            }
            _ => {}
        }
    }

    /// The schema at a pointer, if it is one with keywords.
    fn at(&self, pointer: &str) -> Option<&'s Map<String, Schema>> {
        self.schema.pointer(pointer)?.as_object()
    }

    /// Resolves a reference to the pointer of a schema.
    fn resolve(&self, reference: &str, from: &str) -> Result<String, StrategyError> {
        let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let known = |name: &str| self.anchors.get(name).cloned();
        let pointer = match (base, fragment) {
            (_, "") if base.is_empty() => Some(String::new()),
            ("", pointer) if pointer.starts_with('/') => Some(percent_decoded(pointer)),
            ("", _) => known(reference),
            (base, "") => known(base),
            (base, pointer) => known(base).map(|base| base + &percent_decoded(pointer)),
        };
        pointer
            .filter(|pointer| self.schema.pointer(pointer).is_some())
            .ok_or_else(|| StrategyError {
                pointer: from.to_owned(),
                problem: StrategyProblem::Reference(reference.to_owned()),
            })
    }

    /// Adds all that some schemas refer to and branch into.
    fn expand(&self, pointers: impl IntoIterator<Item = String>) -> Result<Set, StrategyError> {
        let mut set = Set::new();
        let mut queue: Vec<String> = pointers.into_iter().collect();
        while let Some(pointer) = queue.pop() {
            let Some(schema) = self.at(&pointer) else {
                continue;
            };
            if !set.insert(pointer.clone()) {
                continue;
            }
            for keyword in ["$ref", "$dynamicRef"] {
                if let Some(Schema::String(reference)) = schema.get(keyword) {
                    queue.push(self.resolve(reference, &pointer)?);
                }
            }
            for keyword in ["then", "else"] {
                if schema.contains_key(keyword) {
                    queue.push(format!("{pointer}/{keyword}"));
                }
            }
            for keyword in ["allOf", "anyOf", "oneOf"] {
                if let Some(Schema::Array(branches)) = schema.get(keyword) {
                    queue.extend((0..branches.len()).map(|at| format!("{pointer}/{keyword}/{at}")));
                }
            }
        }
        Ok(set)
    }

    /// The location that a set of schemas describes, compiled if it is new.
    fn location(&mut self, set: Set, from: &str) -> Result<LocationId, StrategyError> {
        if let Some(id) = self.ids.get(&set) {
            return Ok(*id);
        }
        if self.locations.len() == LOCATIONS_MAX {
            return Err(StrategyError {
                pointer: from.to_owned(),
                problem: StrategyProblem::TooMany,
            });
        }
        let mut strategy: Option<Strategy> = None;
        for pointer in &set {
            let Some(annotation) = self.at(pointer).and_then(|schema| schema.get("reduce")) else {
                continue;
            };
            let error = |problem| StrategyError {
                pointer: pointer.clone(),
                problem,
            };
            let said = parse(annotation, pointer.is_empty()).map_err(error)?;
            match strategy {
                Some(other) if other != said => {
                    return Err(error(StrategyProblem::Conflict(said.name(), other.name())));
                }
                _ => strategy = Some(said),
            }
        }
        let id = self.locations.len();
        self.locations.push(Location {
            strategy: strategy.unwrap_or_default(),
            ..Location::default()
        });
        self.ids.insert(set.clone(), id);
        if strategy == Some(Strategy::Merge) {
            self.queue.push((id, set));
        }
        Ok(id)
    }

    /// Compiles what is below a `merge`.
    fn children(&mut self, id: LocationId, set: &Set) -> Result<(), StrategyError> {
        let schemas: Vec<(&str, &'s Map<String, Schema>)> = set
            .iter()
            .filter_map(|pointer| Some((pointer.as_str(), self.at(pointer)?)))
            .collect();
        let mut names = BTreeSet::new();
        let mut listed_elements = 0;
        for (pointer, schema) in &schemas {
            if let Some(Schema::Object(properties)) = schema.get("properties") {
                names.extend(properties.keys());
            }
            if let Some(Schema::Array(elements)) = schema.get("prefixItems") {
                listed_elements = listed_elements.max(elements.len());
            }
            if let Some(Schema::Object(patterns)) = schema.get("patternProperties")
                && patterns
                    .values()
                    .any(|schema| schema.get("reduce").is_some())
            {
                return Err(StrategyError {
                    pointer: format!("{pointer}/patternProperties"),
                    problem: StrategyProblem::Pattern,
                });
            }
        }
        // `path` says where a schema of this location describes the child.
        let child = |compiling: &mut Self, path: &dyn Fn(&str, &Map<String, Schema>) -> String| {
            let pointers = schemas
                .iter()
                .map(|(pointer, schema)| path(pointer, schema));
            let set = compiling.expand(pointers.collect::<Vec<_>>())?;
            compiling.location(set, schemas.first().map_or("", |(pointer, _)| pointer))
        };
        let mut properties = BTreeMap::new();
        for name in names {
            let location = child(self, &|pointer, schema| match schema.get("properties") {
                Some(Schema::Object(properties)) if properties.contains_key(name) => {
                    let mut pointer = format!("{pointer}/properties");
                    push_token(&mut pointer, name);
                    pointer
                }
                _ => format!("{pointer}/additionalProperties"),
            })?;
            properties.insert(name.clone(), location);
        }
        let others = child(self, &|pointer, _| {
            format!("{pointer}/additionalProperties")
        })?;
        let mut first_elements = Vec::new();
        for at in 0..listed_elements {
            first_elements.push(child(
                self,
                &|pointer, schema| match schema.get("prefixItems") {
                    Some(Schema::Array(elements)) if at < elements.len() => {
                        format!("{pointer}/prefixItems/{at}")
                    }
                    _ => format!("{pointer}/items"),
                },
            )?);
        }
        let elements = child(self, &|pointer, _| format!("{pointer}/items"))?;
        let location = &mut self.locations[id];
        location.properties = properties;
        location.others = others;
        location.first_elements = first_elements;
        location.elements = elements;
        Ok(())
    }
}

/// Reads one annotation.
fn parse(annotation: &Schema, root: bool) -> Result<Strategy, StrategyProblem> {
    let Schema::Object(options) = annotation else {
        return Err(StrategyProblem::Form);
    };
    let Some(Schema::String(name)) = options.get("strategy") else {
        return Err(StrategyProblem::Form);
    };
    let strategy = match name.as_str() {
        "lastWriteWins" => Strategy::LastWriteWins,
        "firstWriteWins" => Strategy::FirstWriteWins,
        "merge" => Strategy::Merge,
        "sum" => Strategy::Sum,
        "minimize" => Strategy::Minimize,
        "maximize" => Strategy::Maximize,
        "append" => Strategy::Append,
        "set" => return Err(StrategyProblem::NotOffered("set")),
        "jsonSchemaMerge" => return Err(StrategyProblem::NotOffered("jsonSchemaMerge")),
        _ => return Err(StrategyProblem::Unknown(name.clone())),
    };
    for (option, value) in options {
        let known = match option.as_str() {
            "strategy" => true,
            // At the root it says what holds anyway: `/_meta/op` deletes.
            "delete" => root || *value == Schema::Bool(false),
            "associative" => *value == Schema::Bool(true),
            _ => false,
        };
        if !known {
            return Err(StrategyProblem::Option(option.clone()));
        }
    }
    Ok(strategy)
}

/// Undoes the percent encoding that a pointer has inside a URI.
fn percent_decoded(pointer: &str) -> String {
    let mut decoded = Vec::with_capacity(pointer.len());
    let mut rest = pointer.as_bytes();
    while let Some((byte, tail)) = rest.split_first() {
        let hex = (*byte == b'%')
            .then(|| std::str::from_utf8(tail.get(..2)?).ok())
            .flatten();
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                rest = &tail[2..];
            }
            None => {
                decoded.push(*byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
