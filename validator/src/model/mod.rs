//! A catalog as its author wrote it, read into types, with the place of everything that a rule may speak of.
//!
//! Reading goes on after a mistake: what is wrong is reported and left out, the rest is read.

mod catalog;
mod collection;
mod draft;
mod fields;
mod materialization;
mod near;
mod schedule;
mod settings;
mod value;

pub(crate) use catalog::read_catalog;
pub(crate) use collection::{Collection, Located, Resolved, UserProjection};
pub use draft::{Draft, TaskSchedule};
pub(crate) use draft::{NotRun, Reference};
pub(crate) use fields::{Context, Field};
pub use materialization::OnError;
pub(crate) use materialization::{Binding, Endpoint, OnIncompatible, Runnable, Task};
pub use near::component_of_image;
pub(crate) use near::{Names, did_you_mean, nearest};
pub use settings::{Allow, ComponentRef, Limits, NetworkGrant, Shards};
