//! Whole catalogs through the whole crate.

mod formats;
mod scenarios;
mod support;
