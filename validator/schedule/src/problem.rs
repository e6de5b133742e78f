//! What is wrong with a schedule, said so that its author can mend it.
//!
//! Reading a schedule gathers every problem before it gives up, because an author who learns of one mistake a build
//! has to build as often as there are mistakes. Where the schedule stands in a file is the caller's knowledge: a
//! pointer here starts at the schedule itself.

use serde_json::Value;

/// Longest piece of a wrong value that an error repeats; enough for any real value, and a pasted document does not
/// fill the screen.
const VALUE_SHOWN_CHARS: usize = 60;

/// The kind of a [`Problem`], for callers that treat some of them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProblemKind {
    /// A value has another JSON type than the grammar asks for.
    Type,
    /// A key is needed and is not there.
    Missing,
    /// A key is not part of the grammar.
    UnknownKey,
    /// Two keys exclude each other.
    Exclusive,
    /// An interval cannot be read, or is out of bounds.
    Interval,
    /// A time of day cannot be read.
    Clock,
    /// A window opens and closes at the same time of day.
    EmptyWindow,
    /// Days of the week cannot be read, are none, or repeat.
    Days,
    /// Two windows claim the same local time.
    Overlap,
    /// There are more windows than any schedule needs.
    TooMany,
    /// A time zone is not known.
    Timezone,
    /// A cron expression cannot be read.
    Cron,
    /// A cron expression can be read, and never fires.
    NeverFires,
}

/// One thing that is wrong with a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// JSON pointer from the schedule to the place; empty for the schedule itself.
    pub pointer: String,
    /// The value found there, as JSON and cut short; `None` where there is no value to show.
    pub value: Option<String>,
    /// What sort of problem it is.
    pub kind: ProblemKind,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub fix: String,
}

impl Problem {
    pub(crate) fn new(
        pointer: impl Into<String>,
        value: &Value,
        kind: ProblemKind,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            value: Some(shown(value)),
            ..Self::absent(pointer, kind, message, fix)
        }
    }

    pub(crate) fn absent(
        pointer: impl Into<String>,
        kind: ProblemKind,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            pointer: pointer.into(),
            value: None,
            kind,
            message: message.into(),
            fix: fix.into(),
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.pointer.is_empty() {
            write!(f, "{}: ", self.pointer)?;
        }
        f.write_str(&self.message)?;
        if let Some(value) = &self.value {
            write!(f, " (found {value})")?;
        }
        write!(f, "; {}", self.fix)
    }
}

/// Everything that is wrong with a schedule; never empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n"))]
pub struct ScheduleError {
    problems: Vec<Problem>,
}

impl ScheduleError {
    /// Returns the problems in the order of the schedule's grammar.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Consumes the error into its problems.
    pub fn into_problems(self) -> Vec<Problem> {
        self.problems
    }

    /// Adds a problem.
    #[cfg(feature = "evaluate")]
    pub(crate) fn with(mut self, problem: Problem) -> Self {
        self.problems.push(problem);
        self
    }

    /// Turns gathered problems into a result: an error when there is any.
    pub(crate) fn check(problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Self { problems })
        }
    }
}

impl From<Problem> for ScheduleError {
    fn from(problem: Problem) -> Self {
        Self {
            problems: vec![problem],
        }
    }
}

/// Returns what an error calls the type of `value`.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(VALUE_SHOWN_CHARS) {
        None => text,
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_place_value_and_fix_of_every_problem() {
        let problem = Problem::new(
            "/cron",
            &Value::from(5),
            ProblemKind::Type,
            "expected text",
            "quote it",
        );
        assert_eq!(
            problem.to_string(),
            "/cron: expected text (found 5); quote it"
        );
        let top = Problem::absent("", ProblemKind::Missing, "nothing here", "write something");
        assert_eq!(top.to_string(), "nothing here; write something");
        let error =
            ScheduleError::check(vec![problem, top]).expect_err("two problems are an error");
        assert_eq!(
            error.to_string(),
            "/cron: expected text (found 5); quote it\nnothing here; write something"
        );
        assert_eq!(ScheduleError::check(Vec::new()), Ok(()));
    }

    #[test]
    fn a_long_value_is_cut_between_characters() {
        let shown = shown(&Value::from("é".repeat(500)));
        assert_eq!(shown.chars().count(), VALUE_SHOWN_CHARS + 3);
    }
}
