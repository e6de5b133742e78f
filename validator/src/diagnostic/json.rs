//! Diagnostics for programs.

use super::{Diagnostic, Summary};
use serde_json::{Value, json};

/// Returns `{"diagnostics": [...], "summary": {...}}`.
pub fn json(diagnostics: &[Diagnostic]) -> Value {
    json!({ "diagnostics": diagnostics, "summary": Summary::of(diagnostics) })
}
