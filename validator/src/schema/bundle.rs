//! A schema and all that it refers to, as one schema complete in itself.
//!
//! References within the schema stay; what stands in other files is copied under `$defs`. `$id`, `$anchor` and `$schema`
//! are left out: once references are followed they could only mislead.

use super::{Holds, holds};
use crate::diagnostic::{Code, Report, Spot};
use crate::load::{Entry, Failed, Files, Kind, Node, Span, files, join};
use crate::model::Collection;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A schema that refers to nothing outside.
#[derive(Debug)]
pub(super) struct Bundled {
    pub(super) node: Node,
    /// JSON pointer of the schema in the catalog.
    pub(super) pointer: String,
    /// Whether every reference led somewhere.
    pub(super) complete: bool,
}

/// A document that references are relative to.
#[derive(Clone)]
struct Base {
    root: Arc<Node>,
    path: PathBuf,
    /// Whether the document is the bundle's own root, so that references within it stay.
    is_root: bool,
    /// Tells documents apart.
    id: String,
}

struct Bundler<'b, 'f> {
    collection: &'b Collection,
    pointer: String,
    files: &'b mut Files<'f>,
    report: &'b mut Report,
    complete: bool,
    /// Names of copies, by document and pointer.
    copies: BTreeMap<(String, String), String>,
    copied: Vec<Entry>,
    /// What is to be copied yet. A list, because a chain of references may be longer than a stack is deep.
    wanted: Vec<(String, Node, Base)>,
    taken: BTreeSet<String>,
}

/// Bundles the schema that readers of a collection see.
pub(super) fn bundle(
    collection: &Collection,
    files: &mut Files<'_>,
    report: &mut Report,
) -> Option<Bundled> {
    let written = collection.read_schema.as_ref()?;
    let mut bundler = Bundler {
        collection,
        pointer: written.pointer.clone(),
        files,
        report,
        complete: true,
        copies: BTreeMap::new(),
        copied: Vec::new(),
        wanted: Vec::new(),
        taken: BTreeSet::new(),
    };
    let mut node = match written.node.text() {
        None => {
            let base = Base {
                root: Arc::new(written.node.clone()),
                path: collection.path.clone(),
                is_root: true,
                id: String::new(),
            };
            bundler.taken = definitions(&written.node);
            bundler.copy(&written.node, &base)
        }
        Some(text) => {
            let base = Base {
                root: Arc::new(Node {
                    kind: Kind::Null,
                    span: written.node.span,
                }),
                path: collection.path.clone(),
                is_root: false,
                id: String::new(),
            };
            let spot = Spot::new(&written.pointer, written.node.span);
            if files::is_remote(text) {
                bundler
                    .report
                    .add(
                        bundler.files.sources(),
                        Code::FileUnreadable,
                        &spot,
                        format!(
                            "{text} is not a local file, and nothing is fetched from elsewhere"
                        ),
                    )
                    .help("download the schema, and refer to it by its path");
                return None;
            }
            let (mut base, pointer) = bundler.document(text, &base, &spot)?;
            base.is_root = pointer.is_empty();
            let root = base.root.clone();
            bundler.taken = definitions(&root);
            let target = bundler.target(&root, &pointer, text, &spot)?;
            bundler.copy(&target, &base)
        }
    };
    while let Some((name, target, base)) = bundler.wanted.pop() {
        let value = bundler.copy(&target, &base);
        bundler.copied.push(Entry {
            key: name,
            key_span: target.span,
            value,
        });
    }
    if !bundler.copied.is_empty()
        && let Kind::Object(entries) = &mut node.kind
    {
        let span = node.span;
        let copied = std::mem::take(&mut bundler.copied);
        match entries.iter_mut().find(|entry| entry.key == "$defs") {
            Some(Entry {
                value:
                    Node {
                        kind: Kind::Object(there),
                        ..
                    },
                ..
            }) => there.extend(copied),
            _ => entries.push(Entry {
                key: "$defs".to_owned(),
                key_span: span,
                value: Node {
                    kind: Kind::Object(copied),
                    span,
                },
            }),
        }
    }
    Some(Bundled {
        node,
        pointer: bundler.pointer,
        complete: bundler.complete,
    })
}

fn definitions(root: &Node) -> BTreeSet<String> {
    let entries = root.get("$defs").map_or(&[][..], Node::entries);
    entries.iter().map(|entry| entry.key.clone()).collect()
}

impl Bundler<'_, '_> {
    fn copy(&mut self, node: &Node, base: &Base) -> Node {
        let Kind::Object(entries) = &node.kind else {
            return node.clone();
        };
        let mut copied = Vec::with_capacity(entries.len());
        for entry in entries {
            let value = match (entry.key.as_str(), holds(&entry.key)) {
                ("$id" | "$anchor" | "$schema" | "id", _) if entry.value.text().is_some() => {
                    continue;
                }
                ("$ref", _) => match entry.value.text() {
                    Some(text) => match self.reference(text, base, entry.value.span) {
                        Some(text) => Node {
                            kind: Kind::Text(text),
                            span: entry.value.span,
                        },
                        // Unresolved and reported, or remote: anything is admitted.
                        None => continue,
                    },
                    None => entry.value.clone(),
                },
                (_, Holds::One) => self.copy(&entry.value, base),
                (_, Holds::Many) => self.copy_list(&entry.value, base),
                (_, Holds::Named) => self.copy_named(&entry.value, base),
                (_, Holds::Nothing) => entry.value.clone(),
            };
            copied.push(Entry {
                key: entry.key.clone(),
                key_span: entry.key_span,
                value,
            });
        }
        Node {
            kind: Kind::Object(copied),
            span: node.span,
        }
    }

    fn copy_list(&mut self, node: &Node, base: &Base) -> Node {
        let Kind::List(items) = &node.kind else {
            return node.clone();
        };
        Node {
            kind: Kind::List(items.iter().map(|item| self.copy(item, base)).collect()),
            span: node.span,
        }
    }

    fn copy_named(&mut self, node: &Node, base: &Base) -> Node {
        let Kind::Object(entries) = &node.kind else {
            return node.clone();
        };
        let copied = entries
            .iter()
            .map(|entry| Entry {
                key: entry.key.clone(),
                key_span: entry.key_span,
                value: self.copy(&entry.value, base),
            })
            .collect();
        Node {
            kind: Kind::Object(copied),
            span: node.span,
        }
    }

    /// Returns what a reference is within the bundle.
    fn reference(&mut self, text: &str, base: &Base, span: Span) -> Option<String> {
        let spot = Spot::new(&self.pointer, span);
        let (target_base, pointer) = self.document(text, base, &spot)?;
        let root = target_base.root.clone();
        let pointer = match pointer.strip_prefix('/') {
            Some(_) => pointer,
            None if pointer.is_empty() => pointer,
            None => match anchored(&root, &pointer, "") {
                Some(found) => found,
                None => {
                    self.unresolved(text, &spot, None);
                    return None;
                }
            },
        };
        let target = self.target(&root, &pointer, text, &spot)?;
        if target_base.is_root {
            return Some(format!("#{}", percent_encoded(&pointer)));
        }
        let key = (target_base.id.clone(), pointer);
        if let Some(name) = self.copies.get(&key) {
            return Some(format!("#/$defs/{name}"));
        }
        let name = self.name(&key);
        self.copies.insert(key, name.clone());
        self.wanted.push((name.clone(), target, target_base));
        Some(format!("#/$defs/{name}"))
    }

    /// Returns the document of a reference, and the fragment; what is not followed is reported.
    fn document(&mut self, text: &str, base: &Base, spot: &Spot) -> Option<(Base, String)> {
        let (name, fragment) = text.split_once('#').unwrap_or((text, ""));
        let fragment = percent_decoded(fragment);
        if name.is_empty() {
            return Some((base.clone(), fragment));
        }
        if base.root.get("$id").and_then(Node::text) == Some(name) {
            return Some((base.clone(), fragment));
        }
        if let "flow://write-schema" | "flow://relaxed-write-schema" = name {
            return Some((self.write_schema(text, spot)?, fragment));
        }
        if files::is_remote(name) {
            let (message, help) = if name.starts_with("flow://") {
                (
                    format!(
                        "{text} is only known where the collection is written, so it admits anything here"
                    ),
                    "describe the locations that you want as fields in readSchema itself",
                )
            } else {
                (
                    format!(
                        "{text} is on another machine and is not fetched, so it admits anything here"
                    ),
                    "download the schema, and refer to it by its path",
                )
            };
            self.report
                .add(self.files.sources(), Code::SchemaRefRemote, spot, message)
                .help(help);
            return None;
        }
        let path = files::relative(&base.path, name);
        match self.files.tree(&path, self.report) {
            Ok(root) => {
                let base = Base {
                    root,
                    id: path.display().to_string(),
                    path,
                    is_root: false,
                };
                Some((base, fragment))
            }
            Err(failed) => {
                self.failed(failed, &path, spot);
                None
            }
        }
    }

    fn write_schema(&mut self, text: &str, spot: &Spot) -> Option<Base> {
        let Some(written) = &self.collection.write_schema else {
            self.unresolved(text, spot, Some("add \"writeSchema\" to the collection"));
            return None;
        };
        Some(Base {
            root: Arc::new(written.node.clone()),
            path: self.collection.path.clone(),
            is_root: false,
            id: "write-schema".to_owned(),
        })
    }

    fn failed(&mut self, failed: Failed, path: &Path, spot: &Spot) {
        self.complete = false;
        self.files.report(failed, path, "schema", spot, self.report);
    }

    fn target(&mut self, root: &Node, pointer: &str, text: &str, spot: &Spot) -> Option<Node> {
        match root.at(pointer) {
            Some(target) => Some(target.clone()),
            None => {
                self.unresolved(text, spot, None);
                None
            }
        }
    }

    fn unresolved(&mut self, text: &str, spot: &Spot, help: Option<&str>) {
        self.complete = false;
        self.report
            .add(
                self.files.sources(),
                Code::SchemaRefUnresolved,
                spot,
                format!("the reference {text} leads nowhere"),
            )
            .help(help.unwrap_or("a reference is a path and \"#\" and a JSON pointer, such as schemas.yaml#/$defs/order"));
    }

    /// Returns a name under `$defs` that needs no escapes and is not taken.
    fn name(&mut self, (document, pointer): &(String, String)) -> String {
        let stem = Path::new(document).file_stem();
        let stem = stem.map_or_else(String::new, |it| it.to_string_lossy().into_owned());
        let last = pointer.rsplit('/').next().unwrap_or_default();
        let plain: String = [stem.as_str(), last]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(".")
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || c == '.' {
                    c
                } else {
                    '_'
                }
            })
            .collect();
        let mut name = plain.clone();
        let mut count = 1;
        while !self.taken.insert(name.clone()) {
            count += 1;
            name = format!("{plain}.{count}");
        }
        name
    }
}

/// Returns the JSON pointer of the schema with an `$anchor`.
fn anchored(node: &Node, anchor: &str, pointer: &str) -> Option<String> {
    if node.get("$anchor").and_then(Node::text) == Some(anchor) {
        return Some(pointer.to_owned());
    }
    match &node.kind {
        Kind::Object(entries) => entries
            .iter()
            .find_map(|entry| anchored(&entry.value, anchor, &join(pointer, &entry.key))),
        Kind::List(items) => items.iter().enumerate().find_map(|(position, item)| {
            anchored(item, anchor, &join(pointer, &position.to_string()))
        }),
        _ => None,
    }
}

/// Decodes `%41` and the like; what is no escape stays.
pub(super) fn percent_decoded(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = text
            .get(at + 1..at + 3)
            .filter(|_| bytes[at] == b'%')
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escape {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

fn percent_encoded(pointer: &str) -> String {
    use std::fmt::Write;
    let mut encoded = String::with_capacity(pointer.len());
    for byte in pointer.bytes() {
        if byte.is_ascii_alphanumeric() || b"/$_-.~!&'()*+,;=:@".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}
