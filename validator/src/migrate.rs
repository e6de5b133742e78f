//! Moves schedules from connectors' configs to materializations.
//!
//! ```text
//! config.syncSchedule: {syncFrequency: 5m}  ->  config.syncSchedule: {syncFrequency: 0s}
//!                                               syncSchedule: {baseInterval: 5m}
//! ```
//!
//! Files are edited as text, at the places that the tree knows, so that comments, order and quoting of everything else
//! stay as they are.

use crate::load::{Entry, Node, Sources, Span};
use crate::model::{Draft, Endpoint, Runnable, Task};
use crate::plan::Answers;
use crate::rules::{Paces, paces};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_schedule::{
    CompiledSchedule, Configured, ConnectorSchedule, DEFAULT_FREQUENCY, classify,
};

/// What connectors wait outside of their fast window.
const SLOW_FREQUENCY: &str = "4h";

const SCHEDULE: &str = "syncSchedule";
const FREQUENCY: &str = "syncFrequency";

/// Days as connectors write them, in their order, and as materializations do.
const DAYS: [(&str, &str); 7] = [
    ("Su", "Sun"),
    ("M", "Mon"),
    ("T", "Tue"),
    ("W", "Wed"),
    ("Th", "Thu"),
    ("F", "Fri"),
    ("S", "Sat"),
];

/// What would become of a catalog.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Migration {
    /// New texts of files, by name.
    pub files: BTreeMap<String, Rewritten>,
    /// Tasks that were moved.
    pub moved: Vec<String>,
    /// Tasks that have a schedule to move and could not be, and why.
    pub refused: Vec<(String, String)>,
}

/// A file before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// What was read.
    pub before: String,
    /// What to write.
    pub after: String,
}

/// A piece of a file to replace, in bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Edit {
    start: usize,
    end: usize,
    text: String,
}

/// Works out how schedules of connectors become schedules of materializations; with `only`, of one task.
pub fn migrate(draft: &Draft, answers: &Answers, only: Option<&str>) -> Migration {
    let sources = draft.sources();
    let mut migration = Migration::default();
    let mut edits: BTreeMap<u32, BTreeSet<Edit>> = BTreeMap::new();
    let wanted = |task: &&Task| only.is_none_or(|only| task.name == only);
    for task in draft.tasks.values().filter(wanted) {
        let Endpoint::Runnable(runnable) = &task.endpoint else {
            continue;
        };
        match moved(draft, answers, task, runnable, only) {
            Ok(None) => {}
            Ok(Some(of_task)) => {
                let mut all = edits.clone();
                for (file, edit) in of_task {
                    all.entry(file).or_default().insert(edit);
                }
                // What two tasks share is edited once, and only if both want the same of it.
                if all.values().any(overlap) {
                    let reason = "it shares text with another task that needs another change";
                    migration
                        .refused
                        .push((task.name.clone(), reason.to_owned()));
                } else {
                    edits = all;
                    migration.moved.push(task.name.clone());
                }
            }
            Err(reason) => migration.refused.push((task.name.clone(), reason)),
        }
    }
    for (file, edits) in edits {
        let before = sources.text(file).to_owned();
        let mut after = before.clone();
        for edit in edits.iter().rev() {
            after.replace_range(edit.start..edit.end, &edit.text);
        }
        let name = sources.name(file).to_owned();
        migration.files.insert(name, Rewritten { before, after });
    }
    migration
}

fn overlap(edits: &BTreeSet<Edit>) -> bool {
    let pairs = edits.iter().zip(edits.iter().skip(1));
    pairs
        .into_iter()
        .any(|(a, b)| b.start < a.end || a.start == b.start)
}

/// Returns the edits that move one task's schedule; `None` when there is nothing to move.
fn moved(
    draft: &Draft,
    answers: &Answers,
    task: &Task,
    runnable: &Runnable,
    only: Option<&str>,
) -> Result<Option<Vec<(u32, Edit)>>, String> {
    let sources = draft.sources();
    let spec = answers.specs.get(&runnable.component);
    let spec = spec.and_then(|it| it.as_ref().ok());
    let entry = runnable.config.entry(SCHEDULE);
    let by_schedule = paces(&runnable.component, spec) == Paces::BySchedule;
    if !by_schedule && (entry.is_none() || spec.is_some()) {
        return Ok(None);
    }
    let value = entry.map(|entry| entry.value.to_value());
    let configured = classify(value.as_ref())
        .map_err(|error| format!("the connector's schedule cannot be read: {error}"))?;
    let schedule = match configured {
        Configured::AllZero => return Ok(None),
        Configured::Absent if task.schedule.is_none() || !by_schedule => return Ok(None),
        Configured::Absent if spec.is_some_and(|it| it.defers_to_schedule) => return Ok(None),
        Configured::Absent => None,
        Configured::Paced(schedule) => Some(schedule),
    };
    if let (Some(entry), Some(only)) = (entry, only)
        && let Some(other) = sharer(draft, entry, only)
    {
        return Err(format!(
            "its connector's schedule is shared with \"{other}\": move both, or give it a config of its own"
        ));
    }
    let mut edits = vec![match entry {
        Some(entry) => switched_off(sources, entry)?,
        None => added_off(sources, &runnable.config)?,
    }];
    if let (None, Some(schedule)) = (&task.schedule, schedule) {
        let model = model_schedule(&schedule)?;
        CompiledSchedule::parse(&model)
            .map_err(|error| format!("its schedule means nothing to a materialization: {error}"))?;
        edits.push(added_schedule(sources, task, &model)?);
    }
    Ok(Some(
        edits
            .into_iter()
            .flat_map(|(file, edits)| edits.into_iter().map(move |edit| (file, edit)))
            .collect(),
    ))
}

/// Returns another task whose config has its schedule from the same text.
fn sharer<'d>(draft: &'d Draft, entry: &Entry, only: &str) -> Option<&'d str> {
    let mut others = draft.tasks.values().filter(|other| other.name != only);
    let other = others.find(|other| match &other.endpoint {
        Endpoint::Runnable(runnable) => runnable
            .config
            .entry(SCHEDULE)
            .is_some_and(|it| it.value.span == entry.value.span),
        Endpoint::NotRunnable => false,
    });
    other.map(|it| it.name.as_str())
}

/// Returns what a materialization's schedule is that commits as the connector's did.
fn model_schedule(schedule: &ConnectorSchedule) -> Result<Value, String> {
    let frequency = schedule
        .sync_frequency
        .as_deref()
        .unwrap_or(DEFAULT_FREQUENCY);
    let (Some(start), Some(stop)) = (
        &schedule.fast_sync_start_time,
        &schedule.fast_sync_stop_time,
    ) else {
        return Ok(json!({ "baseInterval": frequency }));
    };
    let padded = |time: &str| match time.split_once(':') {
        Some((hour, minute)) => format!("{hour:0>2}:{minute}"),
        None => time.to_owned(),
    };
    let mut window = json!({
        "interval": frequency,
        "start": padded(start),
        "end": padded(stop),
    });
    if let Some(text) = schedule.fast_sync_enabled_days.as_deref() {
        window["days"] = days(text)?.into();
    }
    let mut model = json!({ "baseInterval": SLOW_FREQUENCY });
    if let Some(timezone) = &schedule.timezone {
        model["timezone"] = timezone.as_str().into();
    }
    model["windows"] = json!([window]);
    Ok(model)
}

/// Reads days such as `M-F` or `Su,T-Th`.
fn days(text: &str) -> Result<Vec<&'static str>, String> {
    let position = |code: &str| DAYS.iter().position(|(it, _)| *it == code.trim());
    let mut named = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (position(first), position(last)) {
            (Some(first), Some(last)) if first <= last => {
                named.extend(DAYS[first..=last].iter().map(|(_, name)| *name));
            }
            _ => return Err(format!("the days \"{text}\" cannot be read")),
        }
    }
    Ok(named)
}

fn is_json(sources: &Sources, file: u32) -> bool {
    sources.name(file).ends_with(".json")
}

fn start(sources: &Sources, span: Span) -> Result<usize, String> {
    let offset = sources.offset(span.file, span.line, span.column);
    offset.ok_or_else(|| "its place in the file is lost".to_owned())
}

fn end(sources: &Sources, node: &Node) -> Result<usize, String> {
    let span = node.span;
    let from = start(sources, span)?;
    let text = &sources.text(span.file)[from..];
    // The reader counts what follows a quoted text as a part of it.
    if let Some(quote) = text.chars().next().filter(|it| matches!(it, '"' | '\'')) {
        return Ok(from + quoted(text, quote));
    }
    let offset = sources.offset(span.file, span.end_line, span.end_column);
    offset.ok_or_else(|| "its place in the file is lost".to_owned())
}

/// Returns how many bytes of `text` its quoted beginning takes.
fn quoted(text: &str, quote: char) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\\' && quote == '"' {
            chars.next();
        } else if c == quote {
            let doubled = quote == '\'' && chars.peek().is_some_and(|(_, next)| *next == quote);
            if !doubled {
                return at + 1;
            }
            chars.next();
        }
    }
    text.len()
}

/// Returns whether an object stands in braces.
fn in_braces(sources: &Sources, object: Span) -> Result<bool, String> {
    let at = start(sources, object)?;
    Ok(sources.text(object.file)[at..].starts_with('{'))
}

type FileEdits = (u32, Vec<Edit>);

/// Replaces a connector's schedule by one that is off.
fn switched_off(sources: &Sources, entry: &Entry) -> Result<FileEdits, String> {
    let node = &entry.value;
    let file = node.span.file;
    let replace = |start: usize, end: usize, text: &str| Edit {
        start,
        end,
        text: text.to_owned(),
    };
    if !node.is_object() || in_braces(sources, node.span)? {
        let text = if is_json(sources, file) {
            "{\"syncFrequency\": \"0s\"}"
        } else {
            "{syncFrequency: 0s}"
        };
        let (start, end) = if node.is_object() {
            (start(sources, node.span)?, end(sources, node)?)
        } else {
            // Null may be no text at all; what follows the key is replaced.
            return Err("its connector's schedule is empty: set it by hand".to_owned());
        };
        return Ok((file, vec![replace(start, end, text)]));
    }
    // Lines of a block: the frequency is set, the others go, each with its line.
    let mut edits = Vec::new();
    let kept = node.entry(FREQUENCY).or(node.entries().first());
    let kept = kept.ok_or("its connector's schedule is empty: set it by hand")?;
    for field in node.entries() {
        let from = start(sources, field.key_span)?;
        let until = end(sources, &field.value)?;
        if field.key == kept.key {
            let text = format!("{FREQUENCY}: 0s");
            edits.push(replace(from, until, &text));
        } else {
            let (from, until) = sources.line_bounds(file, from, until);
            edits.push(replace(from, until, ""));
        }
    }
    Ok((file, edits))
}

/// Adds a schedule that is off to a config that has none.
fn added_off(sources: &Sources, config: &Node) -> Result<FileEdits, String> {
    let value = json!({ FREQUENCY: "0s" });
    let first = config.entries().first();
    let first =
        first.ok_or("its config is empty: add \"syncSchedule: {syncFrequency: 0s}\" by hand")?;
    inserted(sources, config.span, first.key_span, &value)
}

/// Adds the schedule to a materialization, as its first field.
fn added_schedule(sources: &Sources, task: &Task, model: &Value) -> Result<FileEdits, String> {
    let (object, first) = task.body;
    inserted(sources, object, first.ok_or("it has no fields")?, model)
}

fn inserted(
    sources: &Sources,
    object: Span,
    first: Span,
    value: &Value,
) -> Result<FileEdits, String> {
    let file = object.file;
    let at = start(sources, first)?;
    let indent = " ".repeat(usize::try_from(first.column - 1).unwrap_or_default());
    let text = if is_json(sources, file) {
        // The layout of the file decides whether a line of its own is in order.
        let own_line = sources.text(file)[..at].rsplit('\n').next();
        let own_line = own_line.is_some_and(|it| it.trim().is_empty());
        let separator = if own_line {
            format!("\n{indent}")
        } else {
            " ".to_owned()
        };
        format!("\"{SCHEDULE}\": {value},{separator}")
    } else if in_braces(sources, object)? {
        format!("{SCHEDULE}: {}, ", flow(value))
    } else {
        format!(
            "{SCHEDULE}:\n{}{indent}",
            block(value, &format!("{indent}  "))
        )
    };
    let edit = Edit {
        start: at,
        end: at,
        text,
    };
    Ok((file, vec![edit]))
}

/// Writes fields as lines.
fn block(value: &Value, indent: &str) -> String {
    let mut text = String::new();
    // The order of the documentation, not of the alphabet.
    for key in ["baseInterval", "timezone", FREQUENCY] {
        if let Some(value) = value.get(key) {
            text.push_str(&format!("{indent}{key}: {}\n", flow(value)));
        }
    }
    if let Some(windows) = value.get("windows").and_then(Value::as_array) {
        text.push_str(&format!("{indent}windows:\n"));
        for window in windows {
            text.push_str(&format!("{indent}  - {}\n", flow(window)));
        }
    }
    text
}

/// Writes a value on one line.
fn flow(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let order = [
                "baseInterval",
                "timezone",
                "windows",
                "interval",
                "start",
                "end",
                "days",
                FREQUENCY,
            ];
            let fields = order
                .iter()
                .filter_map(|key| Some((key, fields.get(*key)?)))
                .map(|(key, value)| format!("{key}: {}", flow(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Value::String(text) if is_plain(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns whether text needs no quotes in any YAML, old ones included.
fn is_plain(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic())
        || text.ends_with(|c: char| c.is_ascii_alphabetic()) && !text.starts_with(['+', '-']);
    begins
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '_'))
}

#[cfg(test)]
mod tests;
