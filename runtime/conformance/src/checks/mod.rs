//! The checks, in the order of what they build on.
//!
//! Each makes tasks and resources of its own, so that one that fails spoils no
//! other.

mod changes;
mod column;
mod crashes;
mod description;
mod fences;
mod order;
mod pacing;
mod refusals;
mod transactions;
mod values;

use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use tidegate_wit::message::Guarantee;

use crate::bench::{Bench, Updates};
use crate::failure::Failure;
use crate::report::{Checked, Outcome, Report};
use crate::sample::Collection;

/// How long one check may take. Those that kill sessions open some hundred of
/// them, each within a second at a destination that is slow to open.
const CHECK_MAX: Duration = Duration::from_secs(5 * 60);

/// What a check says when it passes: what was seen, or nothing.
type Passed = Result<String, Failure>;

/// A check: its name, what it is about, and how it is made.
struct Check {
    name: &'static str,
    title: &'static str,
    make: for<'b> fn(&'b Bench) -> BoxFuture<'b, Passed>,
}

macro_rules! checks {
    ($($name:literal, $title:literal, $make:path;)*) => {
        &[$(Check { name: $name, title: $title, make: |bench| Box::pin($make(bench)) }),*]
    };
}

const CHECKS: &[Check] = checks! {
    "spec", "says what it is, without reaching anything", description::spec;
    "validate", "answers for every field, the same each time", description::validate;
    "apply-dry-run", "a dry run of apply changes nothing", changes::dry_run;
    "apply-twice", "applying twice does nothing more", changes::twice;
    "apply-field", "a field that is added keeps the rows", changes::field;
    "apply-backfill", "a raised backfill counter makes the resource anew", changes::backfill;
    "order", "calls out of order are refused", order::order;
    "malformed", "malformed batches and unknown bindings are refused", refusals::malformed;
    "values", "documents of every type come back as they were", values::values;
    "columns", "columns hold what the documents say", values::columns;
    "extremes", "extreme values are held as they are, or refused by their key", values::extremes;
    "keys", "keys that differ stay apart, to the last digit and sign", values::keys;
    "updates", "documents are replaced and deleted", transactions::updates;
    "empty", "transactions may be empty", transactions::empty;
    "one-key", "many transactions on one key", transactions::one_key;
    "many", "many documents, in many batches, one of them large", transactions::many;
    "bindings", "all bindings commit together", transactions::bindings;
    "bad-document", "a document that cannot be held is refused by its key, and nothing else with it", refusals::bad_document;
    "restart", "a session begins where the last one ended", transactions::restart;
    "acknowledge-again", "acknowledging again does nothing more", crashes::acknowledge_again;
    "fence", "an older session can no longer commit", fences::fence;
    "fence-open", "a session that is not newer does not open", fences::open;
    "kill", "exactly once, killed at every call and every wait", crashes::standard;
    "kill-delta", "delta updates exactly once, killed at every call and every wait", crashes::delta;
    "cancel", "a session that is told to stop ends soon, and loses nothing", crashes::cancel;
    "pacing", "leaves the pacing to the spec's schedule", pacing::pacing;
};

/// Makes every check.
pub(crate) async fn run(bench: &Bench, each: &mut dyn FnMut(&Checked)) -> Report {
    let mut report = Report {
        guarantee: guarantee(bench).await.ok(),
        checks: Vec::new(),
    };
    for check in CHECKS {
        let begun = Instant::now();
        let outcome = match tokio::time::timeout(CHECK_MAX, (check.make)(bench)).await {
            Err(_) => Outcome::Failed(format!("it took longer than {CHECK_MAX:?}")),
            Ok(Ok(seen)) => Outcome::Passed(seen),
            Ok(Err(Failure::NotApplicable(reason))) => Outcome::Skipped(reason),
            Ok(Err(failure)) => Outcome::Failed(failure.to_string()),
        };
        let checked = Checked {
            check: check.name,
            title: check.title,
            outcome,
            took: begun.elapsed(),
        };
        each(&checked);
        report.checks.push(checked);
    }
    report
}

/// Asks what the connector says holds after a crash.
async fn guarantee(bench: &Bench) -> Result<Guarantee, Failure> {
    let mut task = bench
        .task("opened", &[(any(bench)?, Collection::plain())])
        .await?;
    Ok(task.open().await?.opened.guarantee)
}

/// Returns the kind of binding to make a check with that suits either.
fn any(bench: &Bench) -> Result<Updates, Failure> {
    let first = bench.kinds().next();
    first.ok_or_else(|| Failure::wrong("the setup has no resource"))
}
