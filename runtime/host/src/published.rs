//! The catalog that a host runs, as it was published: kept in the store, so that
//! the host comes back with it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tidegate_validator::{Draft, load};

use crate::store::{Store, StoreError};

/// Where it is in the store.
const KEY: &str = "catalog";

/// The files of a catalog. Paths are absolute: what a relative path in them
/// means does not depend on where the host runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CatalogFiles {
    /// Where relative paths in connectors' configurations start.
    pub base: PathBuf,
    /// The files to begin with; the others are imported.
    pub roots: Vec<PathBuf>,
    /// The text of every file.
    pub files: BTreeMap<PathBuf, String>,
}

/// A catalog that was published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Published {
    /// Its files.
    pub catalog: CatalogFiles,
    /// When, in microseconds since the Unix epoch.
    pub at_micros: i64,
}

/// Why the published catalog cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum PublishedError {
    /// What the store holds is not a catalog.
    #[error("the store's value under {KEY} cannot be read: publish the catalog again")]
    Malformed(#[source] serde_json::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl CatalogFiles {
    /// Reads a catalog with everything that it imports. What cannot be read is
    /// left out: building the catalog says so. Relative paths start at the first
    /// file's folder, so that a catalog means the same wherever it is used from.
    pub fn read(roots: &[PathBuf]) -> io::Result<CatalogFiles> {
        let roots = roots.iter().map(std::path::absolute);
        let roots: Vec<PathBuf> = roots.collect::<io::Result<_>>()?;
        let files = std::cell::RefCell::new(BTreeMap::new());
        load(&roots, &|path| {
            let bytes = std::fs::read(path)?;
            if let Ok(text) = std::str::from_utf8(&bytes) {
                files.borrow_mut().insert(path.to_owned(), text.to_owned());
            }
            Ok(bytes)
        });
        let base = roots.first().and_then(|root| root.parent());
        Ok(CatalogFiles {
            base: base.unwrap_or(Path::new("/")).to_owned(),
            files: files.into_inner(),
            roots,
        })
    }

    /// Loads the catalog; nothing but its own files is read.
    pub(crate) fn load(&self) -> Draft {
        load(&self.roots, &|path| {
            let text = self.files.get(path).cloned().map(String::into_bytes);
            text.ok_or_else(|| io::ErrorKind::NotFound.into())
        })
    }
}

impl Published {
    /// Reads what was published last.
    pub(crate) async fn get(store: &dyn Store) -> Result<Option<Published>, PublishedError> {
        let Some(found) = store.get(KEY).await? else {
            return Ok(None);
        };
        let published = serde_json::from_slice(&found.value);
        Ok(Some(published.map_err(PublishedError::Malformed)?))
    }

    /// Keeps it as what was published last.
    pub(crate) async fn put(&self, store: &dyn Store) -> Result<(), PublishedError> {
        let value = serde_json::to_vec(self).expect("paths were text once");
        let before = store.get(KEY).await?;
        let revision = before.map(|before| before.revision);
        store.put(KEY, value, revision).await?;
        Ok(())
    }
}
