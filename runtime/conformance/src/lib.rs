//! Holds a connector, in whatever language it is written, to the protocol and to
//! the guarantee that it declares.
//!
//! ```text
//! Setup (config, resource) -> Bench -> each check: a task of its own -> Report
//!                                        |
//!                                        +- Task: what a host keeps over a crash
//!                                        +- Run:  a session that may be killed at any call
//! ```
//!
//! A check drives the real component in the real sandbox, against the real
//! destination, as a host with one shard would: it keeps what a host keeps, and
//! after a kill it recovers as a host does. What the destination holds is seen
//! through the connector's own loads; for delta updates, which are never loaded,
//! through a command of the connector's author that prints the rows.

mod bench;
mod checks;
mod failure;
mod kill;
mod readback;
mod report;
mod run;
mod sample;
mod setup;
mod task;

use futures::future::LocalBoxFuture;
use tidegate_host::sandbox::Component;

pub use failure::SuiteError;
pub use report::{Checked, Outcome, Report};
pub use setup::{Setup, SetupError};

/// Runs every check on a connector. `each` is told of a check when it is done.
///
/// Boxed, so that the checks are compiled here and not once more in each program.
///
/// # Errors
///
/// If the suite cannot begin: the connector does not say what it is, or the setup
/// does not fit it. What a check finds is in the report.
pub fn run(
    component: Component,
    setup: Setup,
    each: &mut dyn FnMut(&Checked),
) -> LocalBoxFuture<'_, Result<Report, SuiteError>> {
    Box::pin(async {
        let bench = bench::Bench::new(component, setup).await?;
        Ok(checks::run(&bench, each).await)
    })
}
