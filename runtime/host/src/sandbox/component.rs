//! A connector's component: loaded, checked, ready to start.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, fs, io};

use sha2::{Digest, Sha256};
use tidegate_wit::PACKAGE_VERSION;
use tidegate_wit::message::{SpecResponse, Wants};
use tokio::sync::OnceCell;
use wasmtime::component::InstancePre;

use super::engine::Engine;
use super::exports::{self, Exports};
use super::fault::Fault;
use super::guest::{self, Guest};
use super::session::{Session, SessionConfig};
use super::wasi;

/// How often the images of a connector's memory are tried. What the system is at is over in
/// milliseconds, and it waits for some of them itself before it refuses.
const IMAGE_TRIES: u32 = 10;

/// A WebAssembly file starts so...
const MAGIC: &[u8] = b"\0asm";
/// ...a component goes on so (its binary format and layer)...
const COMPONENT: &[u8] = &[0x0d, 0, 1, 0];
/// ...and a core module so.
const CORE_MODULE: &[u8] = &[1, 0, 0, 0];

/// A file that is not a connector this host can run.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("the connector {} cannot be read: {source}; check the path and its permissions", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is something else.
    #[error("{} is not a connector: it is {found}; {help}", .path.display())]
    NotComponent {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: &'static str,
        /// What to do.
        help: &'static str,
    },
    /// The file is a component, and broken.
    #[error("the connector {} does not compile: {reason}; build or download it again", .path.display())]
    Compile {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The system has no memory to run it from.
    #[error("the connector {} cannot be laid out in memory: {reason}; try again", .path.display())]
    Image {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The connector speaks another version of the protocol.
    #[error("the connector {} {}, and this host speaks {}@{PACKAGE_VERSION}; {}", .path.display(), Exported(found), exports::INTERFACE, remedy(found))]
    Version {
        /// The file.
        path: PathBuf,
        /// The interfaces of ours that it exports, with their versions.
        found: Vec<String>,
    },
    /// The connector needs what no connector gets.
    #[error("the connector {} imports what this host does not have: {}; build it without these, or for the world tidegate:connector/materialize@{PACKAGE_VERSION}", .path.display(), missing.join(", "))]
    Imports {
        /// The file.
        path: PathBuf,
        /// Names of the imports.
        missing: Vec<String>,
    },
    /// The connector uses our names with other types.
    #[error("the connector {} does not fit {}@{PACKAGE_VERSION}: {reason}; build it against the WIT files of this version", .path.display(), exports::INTERFACE)]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// Where they differ.
        reason: String,
    },
}

struct Exported<'a>(&'a [String]);

impl fmt::Display for Exported<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => write!(formatter, "does not export {}", exports::INTERFACE),
            found => write!(formatter, "exports {}", found.join(" and ")),
        }
    }
}

fn remedy(found: &[String]) -> &'static str {
    if found.is_empty() {
        "is it a component of another kind?"
    } else {
        "use a version of the connector that fits, or another version of this host"
    }
}

/// Makes the images of its memory that sessions start from.
///
/// Left to the first session, a failure would look like a crash of the connector: the
/// kernel does not seal an image while it looks at one of the pages itself.
fn make_images(component: &wasmtime::component::Component) -> wasmtime::Result<()> {
    for _ in 1..IMAGE_TRIES {
        if component.initialize_copy_on_write_image().is_ok() {
            return Ok(());
        }
    }
    component.initialize_copy_on_write_image()
}

/// A connector, ready to start. Clones share it.
#[derive(Clone)]
pub struct Component(Arc<Loaded>);

struct Loaded {
    engine: Engine,
    pre: InstancePre<Guest>,
    exports: Exports,
    path: PathBuf,
    hash: String,
    size: usize,
    imports: Vec<String>,
    spec: OnceCell<SpecResponse>,
}

impl Component {
    /// Says whether both are the same bytes.
    pub fn is_same(&self, other: &Component) -> bool {
        self.0.hash == other.0.hash
    }

    pub(super) fn load(engine: &Engine, path: &Path) -> Result<Component, LoadError> {
        let bytes = fs::read(path).map_err(|source| LoadError::Read {
            path: path.to_owned(),
            source,
        })?;
        check_header(&bytes, path)?;
        let component = wasmtime::component::Component::from_binary(engine.wasmtime(), &bytes)
            .map_err(|error| LoadError::Compile {
                path: path.to_owned(),
                reason: format!("{error:#}"),
            })?;
        let kind = component.component_type();
        let names = |names: &mut dyn Iterator<Item = &str>| {
            names.map(str::to_owned).collect::<Vec<String>>()
        };
        let imports = names(&mut kind.imports(engine.wasmtime()).map(|(name, _)| name));
        let exported = names(&mut kind.exports(engine.wasmtime()).map(|(name, _)| name));
        let interface = find_interface(exported, path)?;
        check_imports(&imports, path)?;

        let mismatch = |error: wasmtime::Error| LoadError::Mismatch {
            path: path.to_owned(),
            reason: format!("{error:#}"),
        };
        make_images(&component).map_err(|error| LoadError::Image {
            path: path.to_owned(),
            reason: format!("{error:#}"),
        })?;
        let pre = engine
            .linker()
            .instantiate_pre(&component)
            .map_err(mismatch)?;
        let exports = Exports::find(&pre, &interface).map_err(mismatch)?;
        Ok(Component(Arc::new(Loaded {
            engine: engine.clone(),
            pre,
            exports,
            path: path.to_owned(),
            hash: format!("{:x}", Sha256::digest(&bytes)),
            size: bytes.len(),
            imports,
            spec: OnceCell::new(),
        })))
    }

    /// Returns the SHA-256 of the file, in hexadecimal.
    pub fn hash(&self) -> &str {
        &self.0.hash
    }

    /// Returns the file that it was loaded from.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Returns what the connector says that it is. It is asked once, in a
    /// session without any grant.
    ///
    /// # Errors
    ///
    /// If the connector fails to say it.
    pub async fn spec(&self) -> Result<&SpecResponse, Fault> {
        let ask = async {
            let task = self.0.path.display().to_string();
            let mut session = self.start(SessionConfig::without_grants(task)).await?;
            session.spec().await
        };
        self.0.spec.get_or_try_init(|| ask).await
    }

    /// Starts a session: an instance of its own, with what it may reach.
    ///
    /// # Errors
    ///
    /// If a granted directory cannot be opened or the instance fails to start.
    pub async fn start(&self, config: SessionConfig) -> Result<Session, Fault> {
        Session::start(self, config).await
    }

    /// Returns everything that `connector inspect` shows.
    ///
    /// # Errors
    ///
    /// If the connector fails to say its spec.
    pub async fn inspect(&self) -> Result<Inspection, Fault> {
        let spec = self.spec().await?.clone();
        let compiled = self.0.pre.component().image_range();
        Ok(Inspection {
            path: self.0.path.clone(),
            hash: self.0.hash.clone(),
            size: self.0.size,
            compiled_size: (compiled.end as usize) - (compiled.start as usize),
            imports: self.0.imports.clone(),
            wants: spec.wants.clone(),
            spec,
        })
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.0.engine
    }

    pub(super) fn pre(&self) -> &InstancePre<Guest> {
        &self.0.pre
    }

    pub(super) fn exports(&self) -> &Exports {
        &self.0.exports
    }
}

impl fmt::Debug for Component {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Component")
            .field("path", &self.0.path)
            .field("hash", &self.0.hash)
            .finish_non_exhaustive()
    }
}

/// What there is to know of a connector without running a task.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The file.
    pub path: PathBuf,
    /// Its SHA-256, in hexadecimal.
    pub hash: String,
    /// Its size in bytes.
    pub size: usize,
    /// Size of the machine code in bytes.
    pub compiled_size: usize,
    /// Names of the interfaces that it imports.
    pub imports: Vec<String>,
    /// What it wants to reach: pointers into its configuration.
    pub wants: Wants,
    /// What it says that it is.
    pub spec: SpecResponse,
}

fn check_header(bytes: &[u8], path: &Path) -> Result<(), LoadError> {
    let (found, help) = match bytes.strip_prefix(MAGIC) {
        Some(rest) if rest.starts_with(COMPONENT) => return Ok(()),
        Some(rest) if rest.starts_with(CORE_MODULE) => (
            "a core WebAssembly module",
            "build it as a component, for the target wasm32-wasip2",
        ),
        Some(_) => (
            "WebAssembly of an unknown version",
            "build it with tools that this host's version knows",
        ),
        None if bytes.is_empty() => ("an empty file", "build or download it again"),
        None => (
            "not WebAssembly",
            "name the .wasm file that building the connector made",
        ),
    };
    Err(LoadError::NotComponent {
        path: path.to_owned(),
        found,
        help,
    })
}

/// Finds the exported interface of ours, of a version that we speak.
fn find_interface(exported: Vec<String>, path: &Path) -> Result<String, LoadError> {
    let ours: Vec<_> = exported
        .into_iter()
        .filter(|name| split_version(name).0 == exports::INTERFACE)
        .collect();
    let spoken = ours.iter().find(|name| {
        split_version(name)
            .1
            .is_some_and(|version| compatible(version, PACKAGE_VERSION))
    });
    match spoken {
        Some(name) => Ok(name.clone()),
        None => Err(LoadError::Version {
            path: path.to_owned(),
            found: ours,
        }),
    }
}

fn check_imports(imports: &[String], path: &Path) -> Result<(), LoadError> {
    let provided = || wasi::INTERFACES.iter().chain(guest::INTERFACES);
    let missing: Vec<_> = imports
        .iter()
        .filter(|import| {
            let (name, version) = split_version(import);
            !provided().any(|(interface, ours)| {
                name == *interface && version.is_some_and(|version| compatible(version, ours))
            })
        })
        .cloned()
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(LoadError::Imports {
        path: path.to_owned(),
        missing,
    })
}

fn split_version(name: &str) -> (&str, Option<&str>) {
    match name.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (name, None),
    }
}

/// Whether two versions differ only where additions are made: below the first
/// number that is not zero.
fn compatible(a: &str, b: &str) -> bool {
    fn significant(version: &str) -> Vec<&str> {
        let mut numbers = version.split('.');
        let mut significant = Vec::new();
        for number in &mut numbers {
            significant.push(number);
            if number != "0" {
                break;
            }
        }
        significant
    }
    significant(a) == significant(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compatible_below_the_first_number_that_is_not_zero() {
        let cases = [
            ("0.1.0", "0.1.0", true),
            ("0.1.0", "0.1.7", true),
            ("0.1.0", "0.2.0", false),
            ("0.2.3", "0.2.12", true),
            ("0.2.0", "0.3.0-rc", false),
            ("1.4.0", "1.0.0", true),
            ("1.0.0", "2.0.0", false),
            ("0.0.1", "0.0.2", false),
        ];
        for (a, b, want) in cases {
            assert_eq!(compatible(a, b), want, "{a} and {b}");
        }
    }

    #[test]
    fn a_file_that_is_no_component_is_told_what_it_is() {
        let engine = Engine::new(&Default::default()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let load = |name: &str, bytes: &[u8]| {
            let path = directory.path().join(name);
            fs::write(&path, bytes).unwrap();
            engine.load(path).unwrap_err().to_string()
        };
        let cases: [(&str, &[u8], &str); 5] = [
            ("empty.wasm", b"", "empty file"),
            ("page.wasm", b"<html>", "not WebAssembly"),
            ("core.wasm", b"\0asm\x01\0\0\0", "wasm32-wasip2"),
            ("future.wasm", b"\0asm\x0e\0\x01\0", "unknown version"),
            ("cut.wasm", b"\0asm\x0d\0\x01\0\x01\x99", "does not compile"),
        ];
        for (name, bytes, want) in cases {
            let error = load(name, bytes);
            assert!(error.contains(want) && error.contains(name), "{error}");
        }
        let error = engine.load(directory.path().join("none.wasm")).unwrap_err();
        assert!(matches!(error, LoadError::Read { .. }), "{error}");
    }

    #[test]
    fn imports_and_versions_that_do_not_fit_are_named() {
        let path = Path::new("x.wasm");
        let imports = [
            "wasi:cli/stderr@0.2.3",
            "wasi:http/incoming-handler@0.2.3",
            "wasi:http/outgoing-handler@0.2.3",
            "tidegate:connector/net@0.1.0",
            "tidegate:connector/sqlite@0.9.0",
            "env",
        ];
        let error = check_imports(&imports.map(str::to_owned), path).unwrap_err();
        let LoadError::Imports { missing, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!(
            *missing,
            [
                "wasi:http/incoming-handler@0.2.3",
                "tidegate:connector/sqlite@0.9.0",
                "env"
            ]
        );
        let exported = ["a:b/c@1.0.0", "tidegate:connector/connector@0.7.0"];
        let error = find_interface(exported.map(str::to_owned).into(), path).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the connector x.wasm exports tidegate:connector/connector@0.7.0, and this host \
             speaks tidegate:connector/connector@0.1.0; use a version of the connector that \
             fits, or another version of this host"
        );
        let error = find_interface(vec!["wasi:cli/run@0.2.0".into()], path).unwrap_err();
        assert!(error.to_string().contains("does not export"), "{error}");
    }
}
