//! Directories that must be durable, for connectors that write files.
//!
//! A file's name is in its directory, and a power loss takes back a rename whose
//! directory was not synchronized. The standard library of a guest refuses to
//! synchronize a directory, WASI itself does not: so this asks WASI.

use crate::error::ConnectorError;

/// Makes the names in a directory durable: what was made, renamed or removed there.
///
/// # Errors
///
/// If the directory cannot be opened, or the disk fails.
pub fn synchronize(path: &str) -> Result<(), ConnectorError> {
    synchronize_here(path).map_err(|reason| {
        ConnectorError::transient(format!(
            "directory {path:?} cannot be synchronized: {reason}"
        ))
    })
}

#[cfg(not(target_family = "wasm"))]
fn synchronize_here(path: &str) -> Result<(), String> {
    let opened = std::fs::File::open(path);
    let synchronized = opened.and_then(|directory| directory.sync_all());
    synchronized.map_err(|error| error.to_string())
}

#[cfg(target_family = "wasm")]
fn synchronize_here(path: &str) -> Result<(), String> {
    use crate::bindings::wasi::filesystem::preopens::get_directories;
    use crate::bindings::wasi::filesystem::types::{DescriptorFlags, OpenFlags, PathFlags};

    let granted = get_directories();
    let inside = granted
        .iter()
        .find_map(|(granted, name)| Some((granted, below(name, path)?)));
    let Some((granted, path)) = inside else {
        return Err("it is in no granted directory".to_owned());
    };
    let opened = granted.open_at(
        PathFlags::SYMLINK_FOLLOW,
        path,
        OpenFlags::DIRECTORY,
        DescriptorFlags::READ,
    );
    let synchronized = opened.and_then(|directory| directory.sync());
    synchronized.map_err(|error| error.message().to_owned())
}

/// Returns a path as seen from a granted directory, if it is in there.
#[cfg(any(target_family = "wasm", test))]
fn below<'p>(granted: &str, path: &'p str) -> Option<&'p str> {
    if granted == "." && !path.starts_with('/') {
        return Some(path);
    }
    let rest = path.strip_prefix(granted)?;
    match rest.trim_start_matches('/') {
        "" => Some("."),
        inner if rest.starts_with('/') || granted.ends_with('/') => Some(inner),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_seen_from_where_it_is_granted() {
        let cases = [
            (".", "out", Some("out")),
            (".", "/out", None),
            ("out", "out", Some(".")),
            ("out", "out/", Some(".")),
            ("out", "out/a/b", Some("a/b")),
            ("out", "outer/a", None),
            ("./out", "./out/a", Some("a")),
            ("/", "/out", Some("out")),
            ("/data", "/data/out", Some("out")),
            ("/data", "data/out", None),
        ];
        for (granted, path, want) in cases {
            assert_eq!(below(granted, path), want, "{path} in {granted}");
        }
    }

    #[test]
    fn a_directory_is_synchronized_and_one_that_is_not_there_is_an_error() {
        let here = std::env::temp_dir();
        assert_eq!(synchronize(here.to_str().unwrap()), Ok(()));
        let error = synchronize("/nowhere/at/all").unwrap_err();
        assert!(error.message.contains("/nowhere/at/all"), "{error}");
    }
}
