//! Reads files, each once, through the function that the caller gave.

use super::sources::Sources;
use super::tree::Node;
use super::yaml::Flaw;
use super::{json, yaml};
use crate::diagnostic::{Code, Diagnostic, Report, Spot};
use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Largest file; ten thousand tasks with all their schemas take a quarter of it.
const FILE_BYTES_MAX: usize = 64 << 20;

/// Why a file has no tree.
#[derive(Debug, Clone)]
pub(crate) enum Failed {
    /// It could not be read; whoever names it reports that.
    Unreadable(String),
    /// It could be read, and what is wrong in it is reported.
    Reported,
}

/// The files that were read so far.
pub(crate) struct Files<'a> {
    read: &'a dyn Fn(&Path) -> io::Result<Vec<u8>>,
    sources: Sources,
    trees: BTreeMap<PathBuf, Result<Arc<Node>, Failed>>,
}

impl<'a> Files<'a> {
    pub(crate) fn new(read: &'a dyn Fn(&Path) -> io::Result<Vec<u8>>) -> Self {
        Self {
            read,
            sources: Sources::default(),
            trees: BTreeMap::new(),
        }
    }

    pub(crate) fn sources(&self) -> &Sources {
        &self.sources
    }

    pub(crate) fn sources_mut(&mut self) -> &mut Sources {
        &mut self.sources
    }

    pub(crate) fn into_sources(self) -> Sources {
        self.sources
    }

    /// Returns the tree of a file.
    pub(crate) fn tree(&mut self, path: &Path, report: &mut Report) -> Result<Arc<Node>, Failed> {
        if let Some(known) = self.trees.get(path) {
            return known.clone();
        }
        let tree = self.parse(path, report);
        self.trees.insert(path.to_owned(), tree.clone());
        tree
    }

    /// Returns the tree of a file that stands by itself; nothing once what is wrong with
    /// it is reported.
    pub(crate) fn root(&mut self, path: &Path, report: &mut Report) -> Option<Arc<Node>> {
        match self.tree(path, report) {
            Ok(tree) => Some(tree),
            Err(Failed::Unreadable(reason)) => {
                let message = format!("{} cannot be read: {reason}", path.display());
                report.push(Diagnostic::without_place(Code::FileUnreadable, message));
                None
            }
            Err(Failed::Reported) => None,
        }
    }

    fn parse(&mut self, path: &Path, report: &mut Report) -> Result<Arc<Node>, Failed> {
        let bytes = (self.read)(path).map_err(|error| {
            Failed::Unreadable(match error.kind() {
                io::ErrorKind::NotFound => "there is no such file".to_owned(),
                _ => error.to_string(),
            })
        })?;
        if bytes.len() > FILE_BYTES_MAX {
            return Err(Failed::Unreadable(format!(
                "it is larger than {} MiB",
                FILE_BYTES_MAX >> 20
            )));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            Failed::Unreadable(format!("it is not UTF-8 text (byte {at})"))
        })?;
        let text = match text.strip_prefix('\u{feff}') {
            Some(rest) => rest.to_owned(),
            None => text,
        };
        let file = self.sources.add(path.display().to_string(), text);
        let is_json = path.extension().is_some_and(|it| it == "json");
        let text = self.sources.text(file);
        let parsed = if is_json {
            json::read(file, text)
        } else {
            yaml::read(file, text)
        };
        for dropped in &parsed.dropped {
            self.sources.mask_endpoints(dropped, true);
        }
        for flaw in parsed.flaws {
            self.flaw(flaw, report);
        }
        match parsed.tree {
            Some(tree) => {
                self.sources.set_readable(file);
                self.sources.mask_endpoints(&tree, false);
                Ok(Arc::new(tree))
            }
            None => Err(Failed::Reported),
        }
    }

    fn flaw(&self, flaw: Flaw, report: &mut Report) {
        let spot = Spot::new("", flaw.span);
        let entry = report
            .add(&self.sources, flaw.code, &spot, flaw.message)
            .help_if(flaw.help);
        if let Some(first) = flaw.first {
            entry.related(&self.sources, &Spot::new("", first), "it stands here first");
        }
    }

    /// Reports, at the place that names it, why a file has no tree.
    pub(crate) fn report(
        &self,
        failed: Failed,
        path: &Path,
        what: &str,
        spot: &Spot,
        report: &mut Report,
    ) {
        match failed {
            Failed::Unreadable(reason) => {
                report
                    .add(
                        &self.sources,
                        Code::FileUnreadable,
                        spot,
                        format!("the {what} {} cannot be read: {reason}", path.display()),
                    )
                    .help("paths are relative to the file that names them");
            }
            Failed::Reported => {}
        }
    }
}

/// Returns whether a reference leads to another machine.
pub(crate) fn is_remote(text: &str) -> bool {
    match text.split_once("://") {
        Some((scheme, _)) => {
            scheme != "file"
                && scheme
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'+')
        }
        None => false,
    }
}

/// Returns the path that `text` names in the file `from`.
pub(crate) fn relative(from: &Path, text: &str) -> PathBuf {
    let text = text.strip_prefix("file://").unwrap_or(text);
    normal(&from.parent().unwrap_or(Path::new("")).join(text))
}

/// Returns a path without `.` and, where the text alone allows it, `..`.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => match normal.components().next_back() {
                Some(Component::Normal(_)) => {
                    normal.pop();
                }
                Some(Component::RootDir) => {}
                _ => normal.push(".."),
            },
            other => normal.push(other),
        }
    }
    normal
}
