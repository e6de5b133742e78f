//! Where the binary and the connectors are.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the root of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("this package is in a folder of the repository")
        .to_owned()
}

/// Returns the directory that builds go to.
pub fn target() -> PathBuf {
    // A relative one is meant from the repository, where make runs.
    let target = env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    repository().join(target)
}

/// Returns the binary under test: `TIDEGATE_BIN`, else the release build.
pub fn tidegate() -> PathBuf {
    let binary = env::var_os("TIDEGATE_BIN")
        .map_or_else(|| target().join("release/tidegate"), PathBuf::from);
    built(binary)
}

/// Returns the directory of the connectors.
pub fn connectors() -> PathBuf {
    let directory = target().join("connectors");
    built(directory.join("materialize-sqlite.wasm"));
    built(directory.join("materialize-faulty.wasm"));
    built(directory.join("materialize-postgres.wasm"));
    built(directory.join("materialize-starter.wasm"));
    directory
}

/// Returns where what hosts compile is kept, from test to test.
pub fn compiled() -> PathBuf {
    target().join("compiled")
}

/// The connectors that bring an interpreter along.
pub const INTERPRETED: [&str; 2] = ["materialize-ndjson-javascript", "materialize-ndjson-python"];

/// Requires the connectors of [`INTERPRETED`]. They are built with tools of their own.
pub fn interpreted() {
    for name in INTERPRETED {
        let path = target().join("connectors").join(format!("{name}.wasm"));
        assert!(
            path.exists(),
            "{} is missing: run `make interpreted`",
            path.display()
        );
    }
}

/// Builds the program that prints the rows of Parquet files, and returns it. It is an example
/// of the connector that writes them: nothing is compiled for it that the connectors' own
/// tests do not need.
pub fn parquet_rows() -> PathBuf {
    let fixtures = target().join("fixtures");
    let built = Command::new("cargo")
        .args(["build", "--quiet", "--workspace", "--example", "rows"])
        .arg("--manifest-path")
        .arg(repository().join("connectors-fixtures/Cargo.toml"))
        .arg("--target-dir")
        .arg(&fixtures)
        .status();
    assert!(
        built.is_ok_and(|it| it.success()),
        "the example does not build"
    );
    fixtures.join("debug/examples/rows")
}

/// A test that has nothing to test must not pass.
fn built(path: PathBuf) -> PathBuf {
    assert!(
        path.exists(),
        "{} is missing: run `make build`",
        path.display()
    );
    path
}
