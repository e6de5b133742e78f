//! YAML 1.2 into the tree: the core schema, anchors, merge keys.
//!
//! ```text
//! text -> events -> frames (open lists and objects) -> tree
//! ```
//!
//! Under the core schema `10:00`, `on` and `no` are text, and `1e19` is a number. A key that stands twice is refused:
//! one of its values would be lost without a word. Aliases are copies, so what they expand to is counted.

use super::tree::{Entry, Kind, Node, Span, number};
use crate::diagnostic::Code;
use saphyr_parser::{Event, Parser, ScalarStyle, Tag};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

/// Nesting of lists and objects; real catalogs stay under thirty, and recursion over the tree stays within any stack.
pub(super) const DEPTH_MAX: usize = 128;

/// Values that the aliases of one file may expand to; anchors shared by ten thousand tasks fit, a file made to explode
/// does not.
const ALIAS_NODES_MAX: usize = 1_000_000;

/// Something wrong with the text of a file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Flaw {
    pub(super) code: Code,
    pub(super) span: Span,
    pub(super) message: String,
    pub(super) help: Option<String>,
    /// The other place, of a key that stands twice.
    pub(super) first: Option<Span>,
}

impl Flaw {
    pub(super) fn new(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self {
            code,
            span,
            message: message.into(),
            help: None,
            first: None,
        }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(super) fn too_deep(span: Span) -> Self {
        Self::new(
            Code::TooLarge,
            span,
            format!("the file is nested more than {DEPTH_MAX} levels deep"),
        )
        .help("flatten it, or move parts of it into files of their own")
    }

    pub(super) fn duplicate(key: &str, span: Span, first: Span) -> Self {
        let mut flaw = Self::new(
            Code::DuplicateKey,
            span,
            format!("the key \"{}\" stands twice in this object", shown_key(key)),
        )
        .help("rename or remove one of them: only one could take effect");
        flaw.first = Some(first);
        flaw
    }
}

/// Longest part of a key that a message repeats.
const KEY_SHOWN_CHARS: usize = 80;

fn shown_key(key: &str) -> String {
    match key.char_indices().nth(KEY_SHOWN_CHARS) {
        None => key.to_owned(),
        Some((end, _)) => format!("{}...", &key[..end]),
    }
}

/// What became of a file.
#[derive(Debug)]
pub(super) struct Parsed {
    /// Without a tree, the last flaw says why.
    pub(super) tree: Option<Node>,
    pub(super) flaws: Vec<Flaw>,
    /// Values of keys that stood there already: they are in the text, and not in the tree.
    pub(super) dropped: Vec<Node>,
}

/// Reads a file.
pub(super) fn read(file: u32, text: &str) -> Parsed {
    let mut composer = Composer {
        file,
        frames: Vec::new(),
        anchors: BTreeMap::new(),
        alias_nodes: 0,
        flaws: Vec::new(),
        dropped: Vec::new(),
        root: None,
        documents: 0,
    };
    let result = composer.compose(text);
    let (mut flaws, dropped) = (composer.flaws, composer.dropped);
    let tree = result.map_err(|flaw| flaws.push(flaw)).ok();
    Parsed {
        tree,
        flaws,
        dropped,
    }
}

/// An anchored value.
struct Anchored {
    node: Node,
    nodes_count: usize,
    depth: usize,
}

struct Frame {
    span: Span,
    anchor: usize,
    content: Content,
    nodes_count: usize,
    /// Levels below this one.
    depth: usize,
}

enum Content {
    List(Vec<Node>),
    Object {
        entries: Vec<Entry>,
        seen: HashSet<String>,
        key: Option<Key>,
        merges: Vec<Node>,
        merge_key: Option<Span>,
    },
}

enum Key {
    Named(String, Span),
    Merge,
    /// Stands twice: its value is read and dropped.
    Repeated,
}

struct Composer {
    file: u32,
    frames: Vec<Frame>,
    anchors: BTreeMap<usize, Anchored>,
    alias_nodes: usize,
    flaws: Vec<Flaw>,
    dropped: Vec<Node>,
    root: Option<Node>,
    documents: usize,
}

impl Composer {
    fn compose(&mut self, text: &str) -> Result<Node, Flaw> {
        for event in Parser::new_from_str(text) {
            let (event, span) = event.map_err(|error| {
                let mark = error.marker();
                let at = self.span(saphyr_parser::Span::empty(*mark));
                if error.info().contains("recursion limit") {
                    return Flaw::too_deep(at);
                }
                Flaw::new(
                    Code::Syntax,
                    at,
                    format!("this is not valid YAML: {}", error.info()),
                )
            })?;
            let span = self.span(span);
            match event {
                Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
                Event::DocumentStart(_) => {
                    self.documents += 1;
                    if self.documents > 1 {
                        return Err(Flaw::new(
                            Code::Syntax,
                            span,
                            "a file holds one YAML document, and here a second one begins",
                        )
                        .help("move it to a file of its own and import that"));
                    }
                }
                Event::Scalar(text, style, anchor, tag) => {
                    self.scalar(&text, style, anchor, tag, span)?;
                }
                Event::SequenceStart(anchor, _) => {
                    self.open(span, anchor, Content::List(Vec::new()))?;
                }
                Event::MappingStart(anchor, _) => {
                    let content = Content::Object {
                        entries: Vec::new(),
                        seen: HashSet::new(),
                        key: None,
                        merges: Vec::new(),
                        merge_key: None,
                    };
                    self.open(span, anchor, content)?;
                }
                Event::SequenceEnd | Event::MappingEnd => self.close(span)?,
                Event::Alias(anchor) => self.alias(anchor, span)?,
            }
        }
        Ok(self.root.take().unwrap_or(Node {
            kind: Kind::Null,
            span: Span {
                file: self.file,
                line: 1,
                column: 1,
                end_line: 1,
                end_column: 1,
            },
        }))
    }

    fn span(&self, span: saphyr_parser::Span) -> Span {
        let small = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        Span {
            file: self.file,
            line: small(span.start.line().max(1)),
            column: small(span.start.col() + 1),
            end_line: small(span.end.line().max(1)),
            end_column: small(span.end.col() + 1),
        }
    }

    fn open(&mut self, span: Span, anchor: usize, content: Content) -> Result<(), Flaw> {
        if self.awaits_key() {
            return Err(
                Flaw::new(Code::Syntax, span, "a key is text, not a list or an object")
                    .help("quote the key if it begins with a brace or a bracket"),
            );
        }
        if self.frames.len() >= DEPTH_MAX {
            return Err(Flaw::too_deep(span));
        }
        self.frames.push(Frame {
            span,
            anchor,
            content,
            nodes_count: 1,
            depth: 0,
        });
        Ok(())
    }

    fn close(&mut self, end: Span) -> Result<(), Flaw> {
        let frame = self
            .frames
            .pop()
            .expect("an end event follows a start event");
        let mut span = frame.span;
        (span.end_line, span.end_column) = (end.end_line, end.end_column);
        let kind = match frame.content {
            Content::List(items) => Kind::List(items),
            Content::Object {
                mut entries,
                mut seen,
                merges,
                ..
            } => {
                for merge in merges {
                    self.merge(merge, &mut entries, &mut seen);
                }
                Kind::Object(entries)
            }
        };
        self.place(
            Node { kind, span },
            frame.anchor,
            frame.nodes_count,
            frame.depth + 1,
        )
    }

    /// Adds what is not there yet; earlier sources win over later ones.
    fn merge(&mut self, from: Node, entries: &mut Vec<Entry>, seen: &mut HashSet<String>) {
        let span = from.span;
        match from.kind {
            Kind::Object(more) => {
                for entry in more {
                    if seen.insert(entry.key.clone()) {
                        entries.push(entry);
                    }
                }
            }
            Kind::List(items) if items.iter().all(Node::is_object) => {
                for item in items {
                    self.merge(item, entries, seen);
                }
            }
            _ => self.flaws.push(
                Flaw::new(
                    Code::WrongType,
                    span,
                    "\"<<\" merges an object, or a list of objects",
                )
                .help("point it at an anchor, as in \"<<: *defaults\""),
            ),
        }
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Flaw> {
        let Some(anchored) = self.anchors.get(&anchor) else {
            return Err(Flaw::new(
                Code::Syntax,
                span,
                "this alias stands inside the value that it repeats",
            ));
        };
        self.alias_nodes += anchored.nodes_count;
        if self.alias_nodes > ALIAS_NODES_MAX {
            return Err(Flaw::new(
                Code::TooLarge,
                span,
                format!("the aliases of this file expand to more than {ALIAS_NODES_MAX} values"),
            )
            .help("split the file, or repeat less"));
        }
        if self.frames.len() + anchored.depth > DEPTH_MAX {
            return Err(Flaw::too_deep(span));
        }
        let (node, nodes_count, depth) =
            (anchored.node.clone(), anchored.nodes_count, anchored.depth);
        if self.awaits_key() {
            let Kind::Text(text) = &node.kind else {
                return Err(Flaw::new(Code::Syntax, span, "a key is text"));
            };
            let text = text.clone();
            return self.key(text, span, false);
        }
        self.place(node, 0, nodes_count, depth)
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<Cow<'_, Tag>>,
        span: Span,
    ) -> Result<(), Flaw> {
        let plain = style == ScalarStyle::Plain;
        if self.awaits_key() {
            if anchor != 0 {
                let kind = Kind::Text(text.to_owned());
                self.anchor(anchor, Node { kind, span }, 1, 0);
            }
            return self.key(text.to_owned(), span, plain && text == "<<");
        }
        let tag = tag
            .filter(|tag| tag.is_yaml_core_schema())
            .map(|tag| tag.suffix.clone());
        let kind = match tag.as_deref() {
            Some("str" | "binary" | "timestamp") => Ok(Kind::Text(text.to_owned())),
            None if !plain => Ok(Kind::Text(text.to_owned())),
            _ => resolve(text),
        };
        let kind = kind.unwrap_or_else(|message| {
            self.flaws.push(
                Flaw::new(Code::InvalidValue, span, message)
                    .help("quote it if it is meant as text"),
            );
            Kind::Null
        });
        self.place(Node { kind, span }, anchor, 1, 0)
    }

    fn awaits_key(&self) -> bool {
        matches!(
            self.frames.last(),
            Some(Frame {
                content: Content::Object { key: None, .. },
                ..
            })
        )
    }

    fn key(&mut self, text: String, span: Span, merge: bool) -> Result<(), Flaw> {
        let Some(Frame {
            content:
                Content::Object {
                    entries,
                    seen,
                    key,
                    merge_key,
                    ..
                },
            ..
        }) = self.frames.last_mut()
        else {
            panic!("a key is read inside an object only");
        };
        if merge {
            if let Some(first) = *merge_key {
                self.flaws.push(
                    Flaw::duplicate("<<", span, first)
                        .help("merge several anchors with a list: \"<<: [*one, *two]\""),
                );
                *key = Some(Key::Repeated);
            } else {
                *merge_key = Some(span);
                *key = Some(Key::Merge);
            }
            return Ok(());
        }
        if seen.insert(text.clone()) {
            *key = Some(Key::Named(text, span));
        } else {
            let first = entries
                .iter()
                .find(|entry| entry.key == text)
                .map_or(span, |entry| entry.key_span);
            self.flaws.push(Flaw::duplicate(&text, span, first));
            *key = Some(Key::Repeated);
        }
        Ok(())
    }

    fn anchor(&mut self, anchor: usize, node: Node, nodes_count: usize, depth: usize) {
        self.anchors.insert(
            anchor,
            Anchored {
                node,
                nodes_count,
                depth,
            },
        );
    }

    /// Puts a finished value where it belongs.
    fn place(
        &mut self,
        node: Node,
        anchor: usize,
        nodes_count: usize,
        depth: usize,
    ) -> Result<(), Flaw> {
        if anchor != 0 {
            self.anchor(anchor, node.clone(), nodes_count, depth);
        }
        let Some(frame) = self.frames.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        frame.nodes_count += nodes_count;
        frame.depth = frame.depth.max(depth);
        match &mut frame.content {
            Content::List(items) => items.push(node),
            Content::Object {
                entries,
                key,
                merges,
                ..
            } => match key.take().expect("a value follows its key") {
                Key::Named(key, key_span) => entries.push(Entry {
                    key,
                    key_span,
                    value: node,
                }),
                Key::Merge => merges.push(node),
                Key::Repeated => self.dropped.push(node),
            },
        }
        Ok(())
    }
}

/// Reads a plain scalar under the core schema.
fn resolve(text: &str) -> Result<Kind, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Kind::Null),
        "true" | "True" | "TRUE" => return Ok(Kind::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Kind::Bool(false)),
        _ => {}
    }
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    if matches!(digits, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Err("infinity and not-a-number are no JSON values".to_owned());
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(rest) = text.strip_prefix(prefix)
            && !rest.is_empty()
            && rest.chars().all(|c| c.is_digit(radix))
        {
            return u128::from_str_radix(rest, radix)
                .map(|value| Kind::Number(value.to_string()))
                .map_err(|_| "the number is too large".to_owned());
        }
    }
    let Some(text) = decimal(sign, digits) else {
        return Ok(Kind::Text(text.to_owned()));
    };
    match number(&text) {
        Some(_) => Ok(Kind::Number(text)),
        None => Err("the number is too large".to_owned()),
    }
}

/// Returns a decimal number in JSON's spelling; `None` when it is not a number at all.
fn decimal(sign: &str, digits: &str) -> Option<String> {
    let (mantissa, exponent) = match digits.find(['e', 'E']) {
        Some(at) => (&digits[..at], Some(&digits[at + 1..])),
        None => (digits, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, fraction),
        None => (mantissa, ""),
    };
    let all_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) || whole.is_empty() && fraction.is_empty() {
        return None;
    }
    if let Some(exponent) = exponent {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if exponent.is_empty() || !all_digits(exponent) {
            return None;
        }
    }
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let mut text = format!("{sign}{whole}");
    if !fraction.is_empty() {
        text.push('.');
        text.push_str(fraction);
    }
    if let Some(exponent) = exponent {
        text.push('e');
        text.push_str(exponent);
    }
    Some(text)
}
