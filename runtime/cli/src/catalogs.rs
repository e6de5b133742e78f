//! Finds the catalogs that a command line names.
//!
//! A file is a catalog whatever it is called. In a directory, those are that are
//! called `flow.yaml` or `something.flow.yaml`: beside them lie schemas, configs
//! and other people's YAML.

use std::fs;
use std::path::{Path, PathBuf};

use tidegate_validator::Code;

use crate::error::CliError;

/// What the last part of a catalog's name is...
const STEM: &str = "flow";
/// ...and what follows it.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// Directories within directories; a tree that is deeper is a mistake, such as
/// a file system mounted into itself.
const DEPTH_MAX: usize = 64;

/// Returns the files that are named, and the catalogs in the directories that
/// are, in the order of their names.
pub fn find(named: &[PathBuf]) -> Result<Vec<PathBuf>, CliError> {
    let mut found = Vec::new();
    for path in named {
        if path.is_dir() {
            let before = found.len();
            walk(path, 0, &mut found)?;
            if found.len() == before {
                return Err(CliError::usage(format!(
                    "there are no catalogs in {}",
                    path.display()
                ))
                .hint("catalogs are called flow.yaml, or something.flow.yaml; name others by their path"));
            }
        } else {
            found.push(path.clone());
        }
    }
    Ok(found)
}

/// Returns whether what breaks the rule keeps a part of a catalog from being read.
pub fn unreadable(code: Code) -> bool {
    matches!(
        code,
        Code::FileUnreadable | Code::Syntax | Code::TooLarge | Code::OldSyntax
    )
}

fn walk(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), CliError> {
    let unreadable =
        |error| CliError::user(format!("cannot read {}: {error}", directory.display()));
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        entries.push(entry.map_err(unreadable)?);
    }
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        // A link to a directory may lead into a circle, and is not followed.
        let kind = entry.file_type().map_err(unreadable)?;
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        if kind.is_dir() && !hidden && depth < DEPTH_MAX {
            walk(&path, depth + 1, found)?;
        } else if !kind.is_dir() && is_catalog(&path) && path.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

fn is_catalog(path: &Path) -> bool {
    let name = path
        .file_name()
        .and_then(|it| it.to_str())
        .unwrap_or_default();
    let Some((stem, extension)) = name.rsplit_once('.') else {
        return false;
    };
    let last = stem.rsplit('.').next().unwrap_or_default();
    last == STEM && EXTENSIONS.contains(&extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalogs_are_known_by_their_names() {
        for name in [
            "flow.yaml",
            "a/flow.yml",
            "sales.flow.json",
            "a.b.flow.yaml",
        ] {
            assert!(is_catalog(Path::new(name)), "{name}");
        }
        for name in [
            "flow",
            "flow.yaml.snap",
            "overflow.yaml",
            "schema.yaml",
            "flow/a.yaml",
            "",
        ] {
            assert!(!is_catalog(Path::new(name)), "{name}");
        }
    }
}
