//! The files that were read: where a place is, and what its line says.
//!
//! Values of endpoint configurations are masked in lines that are shown, because a secret may stand in any of them, and
//! on the line of another mistake.

use super::tree::{Kind, Node, Span};
use crate::diagnostic::{Place, Spot};
use std::collections::BTreeMap;

/// What a masked value looks like.
const MASK: &str = "******";

/// Parts of a key whose values are not shown, and of a line of an unreadable file that is not.
const SECRET_WORDS: [&str; 9] = [
    "password",
    "passwd",
    "secret",
    "token",
    "credential",
    "private",
    "api_key",
    "apikey",
    "access_key",
];

/// Parts of a catalog of which the keys are names.
const SECTIONS: [&str; 4] = ["captures", "collections", "materializations", "tests"];

/// Keys of what speaks of documents, and holds none.
const DESCRIBED: [&str; 6] = [
    "$defs",
    "projections",
    "properties",
    "readSchema",
    "schema",
    "writeSchema",
];

/// Keys of what may hold a secret under any name.
const ENDPOINT_WORDS: [&str; 3] = ["endpoint", "endpoints", "config"];

/// Fields of an endpoint that say what it is; a `config` that is text names a file.
const HARMLESS: [&str; 4] = ["command", "component", "config", "image"];

/// Returns a field's name for a message: one that is no name may be a name and a secret run together.
pub(crate) fn shown_name(name: &str) -> &str {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$' | '/');
    // An address is a name, unless a user is in it.
    let (scheme, rest) = name.split_once("://").unwrap_or(("", name));
    let is_plain = scheme.chars().chain(rest.chars()).all(plain);
    if is_plain { name } else { MASK }
}

/// Returns whether text is a duration or a time of day, such as `30m` or `09:00`.
fn is_time(text: &str) -> bool {
    let (digits, rest) =
        text.split_at(text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len());
    let unit = matches!(rest, "ms" | "s" | "m" | "h" | "d");
    let minutes = rest
        .strip_prefix(':')
        .is_some_and(|it| it.len() == 2 && it.bytes().all(|b| b.is_ascii_digit()));
    matches!(digits.len(), 1 | 2) && (unit || minutes)
}

fn is_secret_key(key: &str) -> bool {
    let lower = key.to_ascii_lowercase();
    ENDPOINT_WORDS.contains(&lower.as_str()) || SECRET_WORDS.iter().any(|word| lower.contains(word))
}

/// Returns whether the last line of `text`, which nobody can parse, may hold a secret: it speaks of one, or stands
/// within something that does, by its indentation or its brackets.
fn near_secret(text: &str) -> bool {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let speaks = |line: &str| {
        let lower = line.to_ascii_lowercase();
        let mut words = SECRET_WORDS.iter().chain(&ENDPOINT_WORDS);
        words.any(|word| lower.contains(word))
    };
    let mut lines = text.lines().rev();
    let last = lines.next().unwrap_or_default();
    let (mut least, mut spoke) = (indent(last), speaks(last));
    // Brackets that a line opens and nothing below it closes. Closing ones do not count below zero: one in a text would
    // hide that a bracket is open.
    let mut depth = 0;
    for line in lines {
        if spoke {
            break;
        }
        depth += line.matches(['{', '[']).count();
        depth = depth.saturating_sub(line.matches(['}', ']']).count());
        let around = !line.trim().is_empty() && indent(line) < least;
        if around {
            least = indent(line);
        }
        // Within brackets the indentation says nothing.
        spoke = (around || depth > 0) && speaks(line);
    }
    spoke
}

#[derive(Debug, Clone)]
struct Source {
    name: String,
    text: String,
    line_starts: Vec<usize>,
    /// What is not shown, by first line.
    masks: BTreeMap<u32, Vec<Span>>,
    readable: bool,
}

/// The files that were read.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    files: Vec<Source>,
    by_name: BTreeMap<String, usize>,
}

impl Sources {
    pub(crate) fn add(&mut self, name: String, text: String) -> u32 {
        let mut line_starts = vec![0];
        line_starts.extend(text.match_indices('\n').map(|(at, _)| at + 1));
        let position = self.files.len();
        self.by_name.insert(name.clone(), position);
        self.files.push(Source {
            name,
            text,
            line_starts,
            masks: BTreeMap::new(),
            readable: false,
        });
        u32::try_from(position).expect("there are fewer files than 32 bits count")
    }

    fn source(&self, file: u32) -> &Source {
        let position = usize::try_from(file).expect("a position fits");
        self.files
            .get(position)
            .expect("a span names a file that was read")
    }

    pub(crate) fn name(&self, file: u32) -> &str {
        &self.source(file).name
    }

    pub(crate) fn text(&self, file: u32) -> &str {
        &self.source(file).text
    }

    /// Says that the file could be parsed, so that its configurations are known.
    pub(crate) fn set_readable(&mut self, file: u32) {
        let position = usize::try_from(file).expect("a position fits");
        self.files[position].readable = true;
    }

    /// Keeps what stands at `span` out of the lines that are shown.
    pub(crate) fn mask(&mut self, span: Span) {
        let position = usize::try_from(span.file).expect("a position fits");
        let masks = &mut self.files[position].masks;
        // A block of text spans lines: each is masked, whole but for the first.
        for line in span.line..=span.end_line.max(span.line) {
            masks.entry(line).or_default().push(span);
        }
    }

    /// Masks what stands in endpoints and configurations, wherever they are: one at a wrong place is no less secret.
    pub(super) fn mask_endpoints(&mut self, node: &Node, within: bool) {
        match &node.kind {
            Kind::Object(entries) => {
                for entry in entries {
                    let key = entry.key.as_str();
                    if !within && SECTIONS.contains(&key) {
                        // Names of what is defined say nothing about secrets.
                        let defined = entry.value.entries().iter();
                        defined.for_each(|it| self.mask_endpoints(&it.value, false));
                        continue;
                    }
                    // What schemas describe is no secret, whatever its name.
                    let described = !within && DESCRIBED.contains(&key);
                    let harmless =
                        within && HARMLESS.contains(&key) && entry.value.text().is_some();
                    if within && shown_name(key) == MASK {
                        self.mask(entry.key_span);
                    }
                    if !harmless && !described {
                        let settings = matches!(key, "limits" | "allow");
                        let within = within && !settings || is_secret_key(key);
                        self.mask_endpoints(&entry.value, within);
                    }
                }
            }
            Kind::List(items) => items.iter().for_each(|it| self.mask_endpoints(it, within)),
            // What is a time can be nothing else, and schedules are what people have to see.
            Kind::Text(text) if is_time(text) => {}
            Kind::Number(_) | Kind::Text(_) if within => self.mask(node.span),
            _ => {}
        }
    }

    /// Masks every value of a configuration in a file of its own.
    pub(crate) fn mask_config(&mut self, config: &Node) {
        self.mask_endpoints(config, true);
    }

    pub(crate) fn place(&self, spot: &Spot) -> Place {
        Place {
            file: self.name(spot.span.file).to_owned(),
            line: spot.span.line,
            column: spot.span.column,
            pointer: spot.pointer.clone(),
        }
    }

    /// Returns the byte at which a line and column stand.
    pub(crate) fn offset(&self, file: u32, line: u32, column: u32) -> Option<usize> {
        let source = self.source(file);
        let index = usize::try_from(line.checked_sub(1)?).ok()?;
        let start = *source.line_starts.get(index)?;
        let skipped = usize::try_from(column.checked_sub(1)?).ok()?;
        let rest = &source.text[start..];
        match rest.char_indices().nth(skipped) {
            Some((at, _)) => Some(start + at),
            None if rest.chars().count() == skipped => Some(source.text.len()),
            None => None,
        }
    }

    /// Widens a range of bytes to whole lines, the last line's end included.
    pub(crate) fn line_bounds(&self, file: u32, from: usize, until: usize) -> (usize, usize) {
        let text = self.text(file);
        let from = text[..from].rfind('\n').map_or(0, |at| at + 1);
        let until = text[until..]
            .find('\n')
            .map_or(text.len(), |at| until + at + 1);
        (from, until)
    }

    /// Returns the text of a place's line, secrets masked, and how many characters are before the place in it.
    pub(crate) fn line(&self, place: &Place, revealed: bool) -> Option<(String, usize)> {
        let source = &self.files[*self.by_name.get(&place.file)?];
        let index = usize::try_from(place.line.checked_sub(1)?).ok()?;
        let start = *source.line_starts.get(index)?;
        let end = source
            .line_starts
            .get(index + 1)
            .map_or(source.text.len(), |next| next - 1);
        let line = source.text.get(start..end)?.trim_end_matches('\r');
        if !source.readable && near_secret(&source.text[..end]) {
            return None;
        }
        Some(match source.masks.get(&place.line) {
            Some(masks) => masked(line, place, masks, revealed),
            None => (line.to_owned(), offset(place.column)),
        })
    }
}

fn offset(column: u32) -> usize {
    usize::try_from(column.saturating_sub(1)).unwrap_or(usize::MAX)
}

fn masked(line: &str, place: &Place, masks: &[Span], revealed: bool) -> (String, usize) {
    let mut chars: Vec<Option<char>> = line.chars().map(Some).collect();
    let mut starts = Vec::new();
    for mask in masks {
        if revealed && (mask.line, mask.column) == (place.line, place.column) {
            continue;
        }
        let from = if mask.line == place.line {
            offset(mask.column)
        } else {
            0
        };
        let until = if mask.end_line == place.line {
            offset(mask.end_column)
        } else {
            usize::MAX
        };
        let until = until.min(chars.len());
        if from < until {
            chars[from..until].fill(None);
            starts.push(from);
        }
    }
    let mut shown = String::new();
    let (mut before, mut in_mask) = (None, false);
    for (at, c) in chars.iter().enumerate() {
        let begins = c.is_none() && (!in_mask || starts.contains(&at));
        if at == offset(place.column) {
            // Within a mask that is its beginning: the mask is as wide whatever it hides.
            let width = if c.is_none() && !begins {
                MASK.len()
            } else {
                0
            };
            before = Some(shown.chars().count() - width);
        }
        match c {
            Some(c) => shown.push(*c),
            None if begins => shown.push_str(MASK),
            None => {}
        }
        in_mask = c.is_none();
    }
    let before = before.unwrap_or_else(|| shown.chars().count());
    (shown, before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_what_cannot_be_parsed_are_kept_back_near_secrets() {
        for (text, near) in [
            ("a: [1, 2", false),
            ("password: x", true),
            ("m:\n  endpoint:\n    connector:\n      key: x", true),
            ("m:\n  endpoint:\n    connector: {}\n  bindings: [", false),
            ("m: {endpoint: {\nkey: x", true),
            ("{\n\"config\":\n{\n\"key\": x", true),
            ("a: {config: {}}\nb: [", false),
            ("m:\n  config: {\n  a: \"]\",\n  key: x", true),
        ] {
            assert_eq!(near_secret(text), near, "{text}");
        }
    }
}
