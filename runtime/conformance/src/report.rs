//! What the suite found.

use std::time::Duration;

use tidegate_wit::message::Guarantee;

/// What came of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It passed; with what was seen on the way, if that says more.
    Passed(String),
    /// It did not, and why.
    Failed(String),
    /// It makes no sense for this connector or setup, and why.
    Skipped(String),
}

/// A check that was made.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Its name, for programs.
    pub check: &'static str,
    /// What it is about, for people.
    pub title: &'static str,
    /// What came of it.
    pub outcome: Outcome,
    /// How long it took.
    pub took: Duration,
}

/// What the suite found of a connector.
#[derive(Clone, Debug)]
pub struct Report {
    /// What the connector says holds after a crash; nothing if it did not open.
    pub guarantee: Option<Guarantee>,
    /// Every check, in order.
    pub checks: Vec<Checked>,
}

impl Report {
    /// Says whether no check failed.
    pub fn passed(&self) -> bool {
        let failed = |it: &Checked| matches!(it.outcome, Outcome::Failed(_));
        !self.checks.iter().any(failed)
    }

    /// Counts those that passed, failed and were skipped.
    pub fn counts(&self) -> (usize, usize, usize) {
        let mut counts = (0, 0, 0);
        for checked in &self.checks {
            match checked.outcome {
                Outcome::Passed(_) => counts.0 += 1,
                Outcome::Failed(_) => counts.1 += 1,
                Outcome::Skipped(_) => counts.2 += 1,
            }
        }
        counts
    }
}
