//! The engine: one a process, shared by all connectors.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use wasmtime::{Cache, CacheConfig, Config, EngineWeak, Strategy};

use super::component::{Component, LoadError};
use super::guest::Guest;
use super::{guest, wasi};

/// How often a computing guest gives its thread back. Guests share threads:
/// shorter costs the switches, longer lets a neighbour wait for its socket.
const TICK: Duration = Duration::from_millis(10);

/// How to make an [`Engine`].
#[derive(Clone, Debug, Default)]
pub struct EngineConfig {
    /// Where compiled connectors are kept, to start in milliseconds the next
    /// time; made if it does not exist. Without it each start compiles.
    pub cache_directory: Option<PathBuf>,
}

/// An engine that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The cache's directory cannot be used.
    #[error("the directory {} for compiled connectors cannot be used: {reason}; make it writable, or name another one", .path.display())]
    Cache {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The system cannot run the sandbox.
    #[error("the sandbox cannot run on this system: {0}")]
    System(String),
}

/// Compiles connectors and makes their guests yield.
#[derive(Clone)]
pub struct Engine {
    engine: wasmtime::Engine,
    linker: Arc<wasmtime::component::Linker<Guest>>,
    _ticker: Arc<Ticker>,
}

impl Engine {
    /// Makes an engine and starts its clock, which stops with the last clone.
    ///
    /// # Errors
    ///
    /// If the cache cannot be used or the system cannot run the sandbox.
    pub fn new(config: &EngineConfig) -> Result<Engine, EngineError> {
        let system = |error: wasmtime::Error| EngineError::System(format!("{error:#}"));
        let engine = wasmtime::Engine::new(&settings(config)?).map_err(system)?;
        let mut linker = wasmtime::component::Linker::new(&engine);
        wasi::link(&mut linker)
            .and_then(|()| guest::link(&mut linker))
            .map_err(system)?;
        let ticker = Ticker::start(engine.weak())
            .map_err(|error| EngineError::System(format!("the clock's thread: {error}")))?;
        Ok(Engine {
            engine,
            linker: Arc::new(linker),
            _ticker: Arc::new(ticker),
        })
    }

    /// Loads a connector. Takes a moment where it must be compiled first: do
    /// not call it on a thread that others wait for.
    ///
    /// # Errors
    ///
    /// If the file is not a connector that this host can run.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<Component, LoadError> {
        Component::load(self, path.as_ref())
    }

    pub(super) fn wasmtime(&self) -> &wasmtime::Engine {
        &self.engine
    }

    pub(super) fn linker(&self) -> &wasmtime::component::Linker<Guest> {
        &self.linker
    }
}

fn settings(config: &EngineConfig) -> Result<Config, EngineError> {
    let mut settings = Config::new();
    settings
        .strategy(Strategy::Cranelift)
        .wasm_component_model(true)
        // With it every call costs four times as much, and no connector needs
        // to run two of its own calls at once.
        .concurrency_support(false)
        .epoch_interruption(true)
        // Below 4 GiB each access to memory is checked: 14 to 25 % slower.
        .memory_reservation(4 << 30);
    if let Some(path) = &config.cache_directory {
        settings.cache(Some(cache(path)?));
    }
    Ok(settings)
}

fn cache(path: &Path) -> Result<Cache, EngineError> {
    let refuse = |reason: String| EngineError::Cache {
        path: path.to_owned(),
        reason,
    };
    std::fs::create_dir_all(path).map_err(|error| refuse(error.to_string()))?;
    let path = path
        .canonicalize()
        .map_err(|error| refuse(error.to_string()))?;
    let mut config = CacheConfig::new();
    config.with_directory(path);
    Cache::new(config).map_err(|error| refuse(format!("{error:#}")))
}

/// The thread that moves the engine's epoch on.
struct Ticker {
    /// Dropped to end the thread. In a lock only to be shared: nobody takes it.
    end: Option<Mutex<mpsc::Sender<()>>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    fn start(engine: EngineWeak) -> std::io::Result<Ticker> {
        let (end, ended) = mpsc::channel::<()>();
        let tick = move || {
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                match engine.upgrade() {
                    Some(engine) => engine.increment_epoch(),
                    None => return,
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("sandbox-ticker".into())
            .spawn(tick)?;
        Ok(Ticker {
            end: Some(Mutex::new(end)),
            thread: Some(thread),
        })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.end.take();
        if let Some(thread) = self.thread.take() {
            // It cannot have panicked, and if it had, the guests' own
            // deadlines would be all that is lost.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_that_cannot_be_made_names_its_directory() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let config = EngineConfig {
            cache_directory: Some(file.path().join("cache")),
        };
        let error = Engine::new(&config).err().unwrap().to_string();
        assert!(
            error.contains("cache") && error.contains("writable"),
            "{error}"
        );
    }

    #[test]
    fn the_ticker_ends_with_the_engine() {
        let engine = Engine::new(&EngineConfig::default()).unwrap();
        let weak = engine.engine.weak();
        drop(engine.clone());
        assert!(weak.upgrade().is_some());
        // Joins the thread: a ticker that does not end hangs here.
        drop(engine);
        assert!(weak.upgrade().is_none());
    }
}
