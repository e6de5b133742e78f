//! Diagnostics as SARIF 2.1.0, which code hosts show beside the lines of a change.

use super::{Code, Diagnostic, Place, Severity};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Returns a SARIF log of one run, with the pages of the rules that were broken.
pub fn sarif(diagnostics: &[Diagnostic]) -> Value {
    let codes: BTreeSet<Code> = diagnostics.iter().map(|it| it.code).collect();
    let rules: Vec<_> = codes.iter().map(|code| rule(*code)).collect();
    let results = diagnostics.iter().map(|diagnostic| {
        let index = codes.iter().position(|code| *code == diagnostic.code);
        let mut result = json!({
            "ruleId": diagnostic.code,
            "ruleIndex": index.expect("the codes of all diagnostics are rules"),
            "level": level(diagnostic.severity),
            "message": { "text": message(diagnostic) },
        });
        if let Some(location) = location(&diagnostic.place) {
            result["locations"] = json!([location]);
        }
        let related = diagnostic.related.iter().filter_map(|related| {
            let mut location = location(&related.place)?;
            location["message"] = json!({ "text": related.message });
            Some(location)
        });
        let related: Vec<_> = related.collect();
        if !related.is_empty() {
            result["relatedLocations"] = Value::Array(related);
        }
        result
    });
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "tidegate",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "columnKind": "unicodeCodePoints",
            "results": results.collect::<Vec<_>>(),
        }],
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

fn message(diagnostic: &Diagnostic) -> String {
    match &diagnostic.help {
        Some(help) => format!("{}\n\nHelp: {help}", diagnostic.message),
        None => diagnostic.message.clone(),
    }
}

fn rule(code: Code) -> Value {
    let page = code.explanation();
    // Behind the title and the severity comes the text.
    let text = page.splitn(3, "\n\n").nth(2).unwrap_or(page).trim_end();
    let first = text.split("\n\n").next().unwrap_or(text).replace('\n', " ");
    json!({
        "id": code,
        "shortDescription": { "text": first },
        "help": { "text": text, "markdown": text },
        "defaultConfiguration": { "level": level(code.severity()) },
    })
}

fn location(place: &Place) -> Option<Value> {
    if place.file.is_empty() {
        return None;
    }
    let mut physical = json!({ "artifactLocation": { "uri": uri(&place.file) } });
    if place.line > 0 {
        physical["region"] = json!({ "startLine": place.line, "startColumn": place.column.max(1) });
    }
    let mut location = json!({ "physicalLocation": physical });
    if !place.pointer.is_empty() {
        location["logicalLocations"] = json!([{ "fullyQualifiedName": place.pointer }]);
    }
    Some(location)
}

/// Returns a path as a URI: relative ones stay relative.
fn uri(path: &str) -> String {
    use std::fmt::Write;
    let mut uri = String::new();
    if path.starts_with('/') {
        uri.push_str("file://");
    }
    for byte in path.replace('\\', "/").bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}
