//! Diagnostics for people: a sentence, the line, a caret, a way out.

use super::{Code, Diagnostic, Severity, Summary};
use crate::load::Sources;
use std::fmt::Write;

/// Longest part of a source line that is shown; enough for what people write, and a minified file does not fill the
/// screen.
const LINE_SHOWN_CHARS: usize = 160;

struct Paint {
    colour: bool,
}

impl Paint {
    fn paint(&self, style: &str, text: &str) -> String {
        if self.colour {
            format!("\u{1b}[{style}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    fn severity(&self, severity: Severity, code: Code) -> String {
        let style = match severity {
            Severity::Error => "1;31",
            Severity::Warning => "1;33",
            Severity::Info => "1;36",
        };
        self.paint(style, &format!("{}[{code}]", severity.as_str()))
    }

    fn dim(&self, text: &str) -> String {
        self.paint("2", text)
    }
}

/// Returns `diagnostics` as text, each with its source line and a caret, and a last line that counts them.
pub fn human(diagnostics: &[Diagnostic], sources: &Sources, colour: bool) -> String {
    let paint = Paint { colour };
    let mut out = String::new();
    for diagnostic in diagnostics {
        one(&mut out, diagnostic, sources, &paint);
        out.push('\n');
    }
    let summary = Summary::of(diagnostics);
    let style = if summary.errors > 0 { "1;31" } else { "1" };
    let _ = writeln!(out, "{}", paint.paint(style, &summary.to_string()));
    out
}

fn one(out: &mut String, diagnostic: &Diagnostic, sources: &Sources, paint: &Paint) {
    let place = &diagnostic.place;
    let head = paint.severity(diagnostic.severity, diagnostic.code);
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{head}: {}", paint.paint("1", &diagnostic.message));
    if !place.file.is_empty() {
        let _ = writeln!(out, "  {} {}", paint.dim("-->"), position(place));
    }
    if let Some((line, before)) = sources.line(place, diagnostic.revealed) {
        let number = place.line.to_string();
        let margin = " ".repeat(number.len());
        let (line, before) = window(&line, before);
        let indent: String = line
            .chars()
            .take(before)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        let bar = paint.dim("|");
        let _ = writeln!(out, "   {margin} {bar}");
        let _ = writeln!(out, "   {} {bar} {line}", paint.dim(&number));
        let _ = writeln!(
            out,
            "   {margin} {bar} {indent}{}",
            paint.paint("1;31", "^")
        );
    }
    if !place.pointer.is_empty() {
        let _ = writeln!(out, "  {} {}", paint.dim("at"), place.pointer);
    }
    for related in &diagnostic.related {
        let _ = writeln!(
            out,
            "  {} {}: {}",
            paint.dim("see"),
            position(&related.place),
            related.message
        );
    }
    if let Some(help) = &diagnostic.help {
        let _ = writeln!(out, "  {} {help}", paint.paint("1;32", "help:"));
    }
}

fn position(place: &super::Place) -> String {
    match place.line {
        0 => place.file.clone(),
        line => format!("{}:{line}:{}", place.file, place.column),
    }
}

/// Cuts a long line to what is around the caret; returns it with the characters before the caret.
fn window(line: &str, before: usize) -> (String, usize) {
    let count = line.chars().count();
    let before = before.min(count);
    if count <= LINE_SHOWN_CHARS {
        return (line.to_owned(), before);
    }
    let start = before.saturating_sub(LINE_SHOWN_CHARS / 2);
    let shown = line.chars().skip(start).take(LINE_SHOWN_CHARS).collect();
    (shown, before - start)
}
