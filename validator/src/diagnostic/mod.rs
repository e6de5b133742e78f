//! What is wrong with a catalog, where, and what to do about it.
//!
//! A diagnostic never repeats a value of an endpoint's configuration unless the connector's schema says that the value
//! is no secret.

mod code;
mod human;
mod json;
mod sarif;

pub use code::Code;
pub use human::human;
pub use json::json;
pub use sarif::sarif;

use crate::load::{Sources, Span};
use serde::Serialize;
use std::fmt::Display;

/// How grave a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The catalog cannot be built.
    Error,
    /// The catalog can be built, and probably does not do what its author wants.
    Warning,
    /// Worth knowing.
    Info,
}

impl Severity {
    /// Returns the word that people and tools read.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// A place in a catalog.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The file; empty when the diagnostic is about no file.
    pub file: String,
    /// The line, from 1; 0 when there is none.
    pub line: u32,
    /// The column in characters, from 1; 0 when there is none.
    pub column: u32,
    /// JSON pointer into the catalog.
    pub pointer: String,
}

/// Another place that a diagnostic is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Related {
    /// What is there.
    pub message: String,
    /// Where it is.
    #[serde(flatten)]
    pub place: Place,
}

/// One problem, or one thing worth knowing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Names the rule; `explain` has a page for it.
    pub code: Code,
    /// How grave it is.
    pub severity: Severity,
    /// A sentence.
    pub message: String,
    /// Where it is.
    #[serde(flatten)]
    pub place: Place,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Other places that matter.
    pub related: Vec<Related>,
    /// Whether the value at the place is known to be no secret.
    #[serde(skip)]
    pub(crate) revealed: bool,
}

impl Diagnostic {
    /// Returns a diagnostic that is about no place in a file.
    pub fn without_place(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: code.severity(),
            message: message.into(),
            place: Place {
                file: String::new(),
                line: 0,
                column: 0,
                pointer: String::new(),
            },
            help: None,
            related: Vec::new(),
            revealed: false,
        }
    }

    fn order(&self) -> impl Ord + '_ {
        // What is about no file comes last: it is about all of them.
        (
            self.place.file.is_empty(),
            &self.place,
            self.severity,
            self.code,
            &self.message,
        )
    }
}

/// How many diagnostics there are of each severity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Errors: with any, nothing is built.
    pub errors: usize,
    /// Warnings.
    pub warnings: usize,
    /// Things worth knowing.
    pub infos: usize,
}

impl Summary {
    /// Counts `diagnostics`.
    pub fn of(diagnostics: &[Diagnostic]) -> Self {
        let count = |severity| {
            diagnostics
                .iter()
                .filter(|it| it.severity == severity)
                .count()
        };
        Self {
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
            infos: count(Severity::Info),
        }
    }
}

impl Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plural = |count| if count == 1 { "" } else { "s" };
        write!(
            f,
            "{} error{}, {} warning{}",
            self.errors,
            plural(self.errors),
            self.warnings,
            plural(self.warnings)
        )
    }
}

/// A pointer into the catalog, and the text it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) pointer: String,
    pub(crate) span: Span,
}

impl Spot {
    pub(crate) fn new(pointer: impl Into<String>, span: Span) -> Self {
        Self {
            pointer: pointer.into(),
            span,
        }
    }
}

/// Gathers diagnostics.
#[derive(Debug, Clone, Default)]
pub(crate) struct Report {
    found: Vec<Diagnostic>,
}

impl Report {
    /// Adds a diagnostic; what is returned may be given help and related places.
    pub(crate) fn add(
        &mut self,
        sources: &Sources,
        code: Code,
        spot: &Spot,
        message: impl Into<String>,
    ) -> Entry<'_> {
        self.found.push(Diagnostic {
            place: sources.place(spot),
            ..Diagnostic::without_place(code, message)
        });
        let diagnostic = self.found.last_mut().expect("a diagnostic was just pushed");
        Entry { diagnostic }
    }

    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        self.found.push(diagnostic);
    }

    pub(crate) fn extend(&mut self, other: &Report) {
        self.found.extend_from_slice(&other.found);
    }

    pub(crate) fn count(&self) -> usize {
        self.found.len()
    }

    /// Returns whether there is an error among what was found after the first `count`.
    pub(crate) fn has_errors_since(&self, count: usize) -> bool {
        self.found[count..]
            .iter()
            .any(|it| it.severity == Severity::Error)
    }

    /// Returns what was found, in the order of the files, without repetitions.
    pub(crate) fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.found.sort_by(|a, b| a.order().cmp(&b.order()));
        // A place that several tasks share, such as an anchor, is reported once.
        self.found
            .dedup_by(|a, b| a.place == b.place && a.code == b.code && a.message == b.message);
        self.found
    }
}

/// A diagnostic that was just added.
pub(crate) struct Entry<'a> {
    diagnostic: &'a mut Diagnostic,
}

impl Entry<'_> {
    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        self.diagnostic.help = Some(help.into());
        self
    }

    pub(crate) fn help_if(self, help: Option<String>) -> Self {
        if let Some(help) = help {
            self.diagnostic.help = Some(help);
        }
        self
    }

    pub(crate) fn related(
        self,
        sources: &Sources,
        spot: &Spot,
        message: impl Into<String>,
    ) -> Self {
        self.diagnostic.related.push(Related {
            message: message.into(),
            place: sources.place(spot),
        });
        self
    }

    pub(crate) fn severity(self, severity: Severity) -> Self {
        self.diagnostic.severity = severity;
        self
    }

    pub(crate) fn reveal(self, revealed: bool) -> Self {
        self.diagnostic.revealed = revealed;
        self
    }
}
