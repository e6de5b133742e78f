//! What a host leaves in its data directory for those who want to call it.
//!
//! ```text
//! DIR/api.json         where it listens: {"url", "pid", "certificate"?}
//! DIR/token            a token for everything, for the owner of the directory
//! DIR/api-keys.json    the keys that tokens are signed with
//! ```
//!
//! Each is written whole or not at all, and only its owner can read it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Where a host listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// What to call.
    pub url: String,
    /// Its process.
    pub pid: u32,
    /// The certificate to trust, if it speaks TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
}

impl Address {
    /// Reads where the host of a data directory listens, or listened last;
    /// nothing if none ever did.
    pub fn read(data_dir: &Path) -> io::Result<Option<Address>> {
        match fs::read(data_dir.join("api.json")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // A malformed one was not written by a host.
            text => Ok(Some(serde_json::from_slice(&text?)?)),
        }
    }

    /// Writes where the host listens.
    pub fn write(&self, data_dir: &Path) -> io::Result<()> {
        let text = serde_json::to_vec(self)?;
        write_private(&data_dir.join("api.json"), &text)
    }
}

/// Returns where the token of a data directory is.
pub fn token_file(data_dir: &Path) -> PathBuf {
    data_dir.join("token")
}

/// Returns where the keys of a data directory are, unless another file is named.
pub fn key_file(data_dir: &Path) -> PathBuf {
    data_dir.join("api-keys.json")
}

/// Reads the token of a data directory; nothing if there is none.
pub fn read_token(data_dir: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(token_file(data_dir)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        text => Ok(Some(text?.trim().to_owned())),
    }
}

/// Writes a file that only its owner can read, whole or not at all.
pub(crate) fn write_private(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    // One that a killed process left may have another mode.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut file: File = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)?;
    file.write_all(contents)?;
    file.sync_all()?;
    fs::rename(&new, path)
}

/// Says whether anybody but its owner can read a file.
pub(crate) fn others_can_read(path: &Path) -> io::Result<bool> {
    Ok(fs::metadata(path)?.permissions().mode() & 0o077 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_files_replace_what_was_there() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("token");
        fs::write(&path, "old").unwrap();
        fs::write(temp.path().join("token.new"), "left behind").unwrap();
        write_private(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert!(!others_can_read(&path).unwrap());
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_address_is_read_as_it_was_written() {
        let temp = tempfile::tempdir().unwrap();
        assert_eq!(Address::read(temp.path()).unwrap(), None);
        let address = Address {
            url: "http://127.0.0.1:9400".to_owned(),
            pid: 7,
            certificate: None,
        };
        address.write(temp.path()).unwrap();
        assert_eq!(Address::read(temp.path()).unwrap(), Some(address));
        assert_eq!(read_token(temp.path()).unwrap(), None);
    }
}
