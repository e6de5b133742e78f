//! End to end: the real binary, real connectors, a real SQLite file.
//!
//! These prove that the parts are wired together; what can be shown at a lower
//! level is tested beside the code.

mod catalogs;
mod client;
mod commands;
mod conformance;
mod disk;
mod dry_run;
mod errors;
mod faults;
mod files;
mod follow;
mod interpreted;
mod kill;
mod postgres;
mod quickstart;
mod reach;
mod refusals;
mod reports;
mod reports_each;
mod schedules;
mod stop;
mod stuck;
mod sync_now;
mod validate;
mod webhook;
