//! Finds and loads connectors.
//!
//! A path is a path. A bare name is looked up in directories, first to last:
//! `NAME.wasm`. A component is loaded once, and shared by all who run it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tidegate_validator::{ComponentRef, ConnectorFault};
use tokio::sync::Mutex;

use crate::sandbox::{Component, Engine, EngineConfig, EngineError, LoadError};

/// What a component's file is called after its name.
const EXTENSION: &str = "wasm";

/// Where connectors are.
#[derive(Clone, Debug, Default)]
pub struct ConnectorPlaces {
    /// The directories to look in, first to last.
    pub directories: Vec<PathBuf>,
    /// Where compiled connectors are kept, to start in milliseconds the next time.
    /// Several hosts may share it; what is in it is trusted like the host itself.
    pub cache: Option<PathBuf>,
}

/// The connectors that catalogs may name.
pub struct Connectors {
    engine: Engine,
    directories: Vec<PathBuf>,
    missing: Missing,
    loaded: Mutex<BTreeMap<PathBuf, (Stamp, Component)>>,
}

/// When a file was written, and its size: a connector that is built anew while
/// the host runs is loaded anew.
type Stamp = Option<(SystemTime, u64)>;

fn stamp(path: &Path) -> Stamp {
    let file = path.metadata().ok()?;
    Some((file.modified().ok()?, file.len()))
}

/// What a connector that is not there means for a catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// An error: the catalog cannot run.
    Refused,
    /// The rules that need it are skipped, and said to be.
    Skipped,
}

/// Why there is no such connector.
#[derive(Debug, thiserror::Error)]
pub enum ConnectorError {
    /// No directory holds it.
    #[error(
        "there is no connector {name} in {}: --connectors or TIDEGATE_CONNECTORS names the directory \
         that holds it",
        directories.iter().map(|it| it.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    Unknown {
        /// Its name.
        name: String,
        /// Where it was looked for.
        directories: Vec<PathBuf>,
    },
    /// The file is not a connector that this host can run.
    #[error(transparent)]
    Load(#[from] LoadError),
}

impl Connectors {
    /// Makes the sandbox.
    pub fn new(places: ConnectorPlaces) -> Result<Connectors, EngineError> {
        let engine = Engine::new(&EngineConfig {
            cache_directory: places.cache,
        })?;
        Ok(Connectors {
            engine,
            directories: places.directories,
            missing: Missing::Refused,
            loaded: Mutex::default(),
        })
    }

    /// Says what a connector that is not there means.
    #[must_use]
    pub fn missing(mut self, missing: Missing) -> Connectors {
        self.missing = missing;
        self
    }

    /// Loads a connector.
    pub async fn load(&self, component: &ComponentRef) -> Result<Component, ConnectorError> {
        let path = match component {
            ComponentRef::Path(path) => path.clone(),
            ComponentRef::Name(name) => self.find(name).ok_or_else(|| ConnectorError::Unknown {
                name: name.clone(),
                directories: self.directories.clone(),
            })?,
        };
        let mut loaded = self.loaded.lock().await;
        let now = stamp(&path);
        match loaded.get(&path) {
            Some((then, component)) if *then == now => return Ok(component.clone()),
            _ => {}
        }
        let (engine, file) = (self.engine.clone(), path.clone());
        // Compiling takes every core for a moment.
        let loading = tokio::task::spawn_blocking(move || engine.load(file));
        let component = loading.await.expect("loading a component does not panic")?;
        loaded.insert(path, (now, component.clone()));
        Ok(component)
    }

    fn find(&self, name: &str) -> Option<PathBuf> {
        let candidates = self
            .directories
            .iter()
            .map(|it| it.join(format!("{name}.{EXTENSION}")));
        candidates.into_iter().find(|path| path.is_file())
    }

    /// Returns the names that can be looked up, for "did you mean".
    pub fn names(&self) -> Vec<String> {
        let mut names = BTreeSet::new();
        for directory in &self.directories {
            // A directory that is not there holds nothing.
            let Ok(entries) = directory.read_dir() else {
                continue;
            };
            for path in entries.flatten().map(|entry| entry.path()) {
                if path.extension().is_some_and(|it| it == EXTENSION) {
                    names.extend(
                        path.file_stem()
                            .and_then(|it| it.to_str())
                            .map(str::to_owned),
                    );
                }
            }
        }
        names.into_iter().collect()
    }

    fn not_among(&self) -> String {
        match self.names().as_slice() {
            [] => "there are no connectors here; --connectors names the directory that holds them"
                .to_owned(),
            names => format!("the connectors here are {}", names.join(", ")),
        }
    }

    /// Puts an error into what the validator understands.
    pub(crate) fn fault(&self, error: &ConnectorError) -> ConnectorFault {
        match error {
            ConnectorError::Unknown { .. } if self.missing == Missing::Skipped => {
                ConnectorFault::Skipped {
                    reason: self.not_among(),
                }
            }
            ConnectorError::Unknown { .. } => ConnectorFault::Unknown {
                known: self.names(),
            },
            ConnectorError::Load(LoadError::Read { path, source })
                if self.missing == Missing::Skipped && source.kind() == ErrorKind::NotFound =>
            {
                ConnectorFault::Skipped {
                    reason: format!("there is no file {}", path.display()),
                }
            }
            ConnectorError::Load(error) => ConnectorFault::Failed {
                message: error.to_string(),
            },
        }
    }
}

/// Reads what a command line names: a path, or a bare name.
pub fn component_ref(text: &str) -> ComponentRef {
    let is_path = text.contains('/')
        || Path::new(text)
            .extension()
            .is_some_and(|it| it == EXTENSION);
    match is_path {
        true => ComponentRef::Path(text.into()),
        false => ComponentRef::Name(text.to_owned()),
    }
}
