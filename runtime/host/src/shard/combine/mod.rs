//! The combiner: documents in, one reduced document a key out, in key order.
//!
//! ```text
//! documents -> add -> entries by (binding, key) --------+
//!                       |                               |-> drain -> store batches -> counts
//!                       +-> load batches -> connector -> loaded documents
//! ```
//!
//! One [`Combiner`] serves one transaction of one shard. While documents
//! arrive it reduces those of one key, and queues each key of a standard
//! binding that may exist in the destination to be loaded. When the
//! transaction closes and all loads are answered, [`Combiner::drain`] reduces
//! onto the loaded documents and packs what is to be stored.
//!
//! A delete (of a binding with `hardDelete`) is a barrier: what follows
//! reduces onto nothing. The document that says `/_meta/op` is `d` is the
//! delete, whatever strategy its other properties have; it is not reduced with
//! what came before.
//!
//! It knows nothing of journals, offsets, transactions or connectors' calls,
//! and does no IO: the shard's actor moves the batches. An abort drops it, and
//! with it everything that it has added to the gauges.

mod combiner;
mod drain;
mod entry;
mod error;
mod gauge;
mod load;
mod plan;

pub(crate) use combiner::shown_key;
pub use combiner::{Added, Combiner};
pub use drain::{Counts, Drain, LeftOutKey, StoreBatch};
pub use error::{DocumentError, DocumentProblem, LoadedError};
pub use gauge::CombineGauges;
pub use load::LoadBatch;
pub use plan::{BindingPlan, COMBINE_BYTES_MAX, Plan, PlanError, PlanProblem};

#[cfg(test)]
mod tests;
