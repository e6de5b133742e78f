//! The rules, one file a family.
//!
//! A rule looks at the draft and at what connectors answered, and reports; it decides nothing about what is asked next.

mod config;
mod evolution;
mod fields;
mod instance;
mod keys;
mod pacing;
mod references;
mod written;

pub(crate) use config::{CheckedConfig, Schemas, check_config};
pub(crate) use evolution::{Verdict, evolve};
pub(crate) use fields::{Selecting, select};
pub(crate) use instance::explain_error;
pub(crate) use keys::check_keys;
pub(crate) use pacing::{Paces, check_over, check_pacing, least_upload_interval, paces};
pub(crate) use references::{check_references, check_resources};
pub(crate) use written::compare_written;
