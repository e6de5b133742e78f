//! Files into a draft.
//!
//! ```text
//! root -> tree -> imports first -> model of its sections -> files that configs and schemas name -> Draft
//! ```
//!
//! A file is read once, however often it is imported. Nothing is fetched from elsewhere.

pub(crate) mod files;
mod json;
mod sources;
mod tree;
mod yaml;

pub(crate) use files::{Failed, Files};
pub use sources::Sources;
pub(crate) use sources::shown_name;
pub(crate) use tree::{Entry, Kind, Node, Span, join, tokens};

use crate::diagnostic::{Code, Report, Spot};
use crate::model::{Draft, read_catalog};
use crate::schema::resolve;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// Imports within imports; people nest a handful, and a chain made to exhaust the stack ends here.
const IMPORT_DEPTH_MAX: usize = 64;

/// Reads the catalogs at `roots` and all that they import.
///
/// Problems are kept in the draft, and [`crate::finish`] reports them with all others.
pub fn load(roots: &[PathBuf], read: &dyn Fn(&Path) -> io::Result<Vec<u8>>) -> Draft {
    let mut loader = Loader {
        files: Files::new(read),
        draft: Draft::default(),
        report: Report::default(),
        entered: BTreeSet::new(),
        chain: Vec::new(),
    };
    for root in roots {
        loader.root(root);
    }
    let Loader {
        mut files,
        mut draft,
        mut report,
        ..
    } = loader;
    resolve(&mut draft, &mut files, &mut report);
    draft.report = report;
    draft.sources = files.into_sources();
    draft
}

struct Loader<'a> {
    files: Files<'a>,
    draft: Draft,
    report: Report,
    entered: BTreeSet<PathBuf>,
    /// The files that are being imported, outermost first.
    chain: Vec<PathBuf>,
}

impl Loader<'_> {
    fn root(&mut self, path: &Path) {
        let path = files::normal(path);
        match self.files.tree(&path, &mut self.report) {
            Ok(tree) => self.catalog(&path, &tree),
            Err(Failed::Unreadable(reason)) => {
                let mut diagnostic = crate::Diagnostic::without_place(
                    Code::FileUnreadable,
                    format!("{} cannot be read: {reason}", path.display()),
                );
                diagnostic.place.file = path.display().to_string();
                self.report.push(diagnostic);
            }
            Err(Failed::Reported) => self.draft.incomplete += 1,
        }
    }

    fn catalog(&mut self, path: &Path, tree: &Node) {
        if !self.entered.insert(path.to_owned()) {
            return;
        }
        self.chain.push(path.to_owned());
        if let Some(entry) = tree.entry("import") {
            self.imports(path, &entry.value);
        }
        self.chain.pop();
        read_catalog(
            path,
            tree,
            &mut self.draft,
            &mut self.files,
            &mut self.report,
        );
    }

    fn imports(&mut self, path: &Path, imports: &Node) {
        let spot = Spot::new("/import", imports.span);
        let Some(items) = imports.list() else {
            self.report
                .add(
                    self.files.sources(),
                    Code::WrongType,
                    &spot,
                    format!("import is a list of paths, not {}", imports.type_name()),
                )
                .help("write \"import: [other.flow.yaml]\"");
            return;
        };
        for (position, item) in items.iter().enumerate() {
            let spot = Spot::new(format!("/import/{position}"), item.span);
            match item.text() {
                Some(text) => self.import(path, text, &spot),
                None => {
                    self.report.add(
                        self.files.sources(),
                        Code::WrongType,
                        &spot,
                        format!("an import is the path of a file, not {}", item.type_name()),
                    );
                }
            }
        }
    }

    fn import(&mut self, from: &Path, text: &str, spot: &Spot) {
        if files::is_remote(text) {
            self.draft.incomplete += 1;
            self.report
                .add(
                    self.files.sources(),
                    Code::FileUnreadable,
                    spot,
                    format!("{text} is not a local file, and nothing is fetched from elsewhere"),
                )
                .help("download the file, and import it by its path");
            return;
        }
        let path = files::relative(from, text);
        if let Some(start) = self.chain.iter().position(|it| *it == path) {
            let circle: Vec<_> = self.chain[start..]
                .iter()
                .chain([&path])
                .map(|it| it.display().to_string())
                .collect();
            self.report
                .add(
                    self.files.sources(),
                    Code::ImportCycle,
                    spot,
                    format!(
                        "files import each other in a circle: {}",
                        circle.join(" -> ")
                    ),
                )
                .help("remove this import, or move what both files need to a third one");
            return;
        }
        if self.chain.len() >= IMPORT_DEPTH_MAX {
            self.draft.incomplete += 1;
            self.report.add(
                self.files.sources(),
                Code::TooLarge,
                spot,
                format!("imports are nested more than {IMPORT_DEPTH_MAX} files deep"),
            );
            return;
        }
        match self.files.tree(&path, &mut self.report) {
            Ok(tree) => self.catalog(&path, &tree),
            Err(failed) => {
                self.draft.incomplete += 1;
                self.files
                    .report(failed, &path, "import", spot, &mut self.report);
            }
        }
    }
}

#[cfg(test)]
mod tests;
