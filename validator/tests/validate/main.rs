//! Whole catalogs through the whole crate.

mod formats;
mod reports;
mod scenarios;
mod support;
