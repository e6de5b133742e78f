//! Validation of catalogs: every problem at once, at its line, with a way out.
//!
//! ```text
//! files -> load -> Draft -> plan -> requests to connectors
//!                             ^          |
//!                             '- Answers <'      until plan asks nothing more
//!                  Draft + Answers -> finish -> Built | diagnostics
//! ```
//!
//! The crate is pure: files come through a function, connectors answer through [`Answers`], nothing is printed, and
//! nothing an author writes panics.

mod catalog_schema;
mod census;
pub mod diagnostic;
mod load;
mod migrate;
mod model;
mod plan;
mod rules;
mod schedule_file;
mod schema;
mod value_file;

pub use catalog_schema::catalog_schema;
pub use census::{ConnectorPacing, Pacer, census, tally};
pub use diagnostic::{Code, Diagnostic, Place, Related, Severity, Summary};
pub use load::{Sources, load};
pub use migrate::{Migration, Rewritten, migrate};
pub use model::{
    Allow, ComponentRef, Draft, Limits, NetworkGrant, OnError, Shards, TaskSchedule,
    component_of_image,
};
pub use plan::{
    Answers, Built, BuiltBinding, BuiltCollection, BuiltTask, ConnectorFault, Request, finish, plan,
};
pub use schedule_file::{ScheduleFile, load_schedule};
pub use tidegate_schedule as schedule;
pub use value_file::{ValueFile, load_value};
