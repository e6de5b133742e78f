//! The plan: what is the same for every transaction of a task's session.

use serde_json::Value as Schema;
use tidegate_wit::message::{KeyRange, SpecBinding};

use crate::document::{Extractor, ProjectionError, Reducer, StrategyError};

/// Bytes that a combiner may hold before its transaction should close, unless
/// configured otherwise. Half a gibibyte is some two million documents of the
/// usual size, enough for a destination to be loaded efficiently, and two
/// shards fit a small machine.
pub const COMBINE_BYTES_MAX: u64 = 512 << 20;

/// One binding, as far as combining goes.
#[derive(Clone, Debug)]
pub struct BindingPlan {
    /// Name of the collection.
    pub collection: String,
    /// Extracts the key tuple.
    pub key: Extractor,
    /// Extracts the values tuple.
    pub values: Extractor,
    /// Reduces documents of one key.
    pub reducer: Reducer,
    /// Whether the document itself is stored.
    pub document: bool,
    /// Whether rows are only added: nothing is loaded.
    pub delta_updates: bool,
    /// Whether a document whose `/_meta/op` is `d` deletes its row.
    pub hard_delete: bool,
    /// Whether a document equal to the loaded one is left out. Not after a
    /// change of the selected fields, whose values must be written once.
    pub skip_equal: bool,
}

/// What a task's session combines by.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The bindings, in the order of the spec.
    pub bindings: Vec<BindingPlan>,
    /// The shard's part of the key space; documents of other keys are ignored.
    pub range: KeyRange,
    /// Bytes at which [`over_budget`](super::Combiner::over_budget) says so.
    pub budget_bytes: u64,
}

/// A binding that cannot be combined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("binding of collection {collection}: {problem}")]
pub struct PlanError {
    /// Name of the collection.
    pub collection: String,
    /// What is wrong.
    pub problem: PlanProblem,
}

/// Why a binding cannot be combined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanProblem {
    /// A field is no field.
    #[error(transparent)]
    Projection(#[from] ProjectionError),
    /// A `reduce` annotation cannot be used.
    #[error(transparent)]
    Strategy(#[from] StrategyError),
    /// Reducing needs what the destination does not have.
    #[error(
        "its schema reduces documents onto the stored one, and the document is not stored; \
         select the field that holds the document, or use delta updates"
    )]
    Document,
}

impl BindingPlan {
    /// Plans for a binding of a spec and the schema of its collection.
    ///
    /// # Errors
    ///
    /// If its fields or its schema's `reduce` annotations cannot be used.
    pub fn new(
        binding: &SpecBinding,
        schema: &Schema,
        hard_delete: bool,
    ) -> Result<Self, PlanError> {
        let error = |problem| PlanError {
            collection: binding.collection.clone(),
            problem,
        };
        let key = Extractor::key(&binding.key).map_err(|problem| error(problem.into()))?;
        let values = Extractor::values(&binding.values).map_err(|problem| error(problem.into()))?;
        let reducer = Reducer::new(schema).map_err(|problem| error(problem.into()))?;
        let document = binding.document.is_some();
        if !document && !binding.delta_updates && !reducer.replaces() {
            return Err(error(PlanProblem::Document));
        }
        Ok(BindingPlan {
            collection: binding.collection.clone(),
            key,
            values,
            reducer,
            document,
            delta_updates: binding.delta_updates,
            hard_delete,
            skip_equal: true,
        })
    }
}
