//! `tidegate connector new`: a crate that builds and passes its tests at once.
//!
//! It starts from `connectors-fixtures/starter`, which is built and tested with all
//! the others: what it starts from cannot rot.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::error::CliError;
use crate::output::print;

/// The files of the starter, by their names in the new crate.
const FILES: &[(&str, &str)] = &[
    (
        "src/lib.rs",
        include_str!("../../../../connectors-fixtures/starter/src/lib.rs"),
    ),
    (
        "src/connector.rs",
        include_str!("../../../../connectors-fixtures/starter/src/connector.rs"),
    ),
    (
        "src/session.rs",
        include_str!("../../../../connectors-fixtures/starter/src/session.rs"),
    ),
    (
        "src/file.rs",
        include_str!("../../../../connectors-fixtures/starter/src/file.rs"),
    ),
    (
        "tests/session.rs",
        include_str!("../../../../connectors-fixtures/starter/tests/session.rs"),
    ),
    (
        "conformance.yaml",
        include_str!("../../../../connectors-fixtures/starter/conformance.yaml"),
    ),
];

/// What a component's name begins with, so that a catalog tells it from a capture.
const PREFIX: &str = "materialize-";

/// Longest name: it becomes a file's, with a prefix and an end.
const NAME_BYTES_MAX: usize = 64;

#[derive(Args)]
#[command(after_help = "\
Examples:
  tidegate connector new acme-kv
  tidegate connector new acme-kv --boilerplate ~/src/tidegate/boilerplate")]
pub struct New {
    /// The connector's name: small letters, digits and dashes
    name: String,
    /// Directory of the crate tidegate-boilerplate; found by itself from within a checkout
    #[arg(long, value_name = "DIR")]
    boilerplate: Option<PathBuf>,
}

impl New {
    pub fn execute(self) -> Result<(), CliError> {
        let name = checked(&self.name)?;
        let directory = PathBuf::from(format!("{PREFIX}{name}"));
        if directory.exists() {
            let error = CliError::user(format!("{} is there already", directory.display()));
            return Err(error.hint("choose another name, or move it away"));
        }
        let boilerplate = self.boilerplate()?;
        for (file, text) in FILES {
            write(&directory.join(file), &renamed(text, name))?;
        }
        write(&directory.join("Cargo.toml"), &manifest(name, &boilerplate))?;
        write(&directory.join("README.md"), &readme(name, &boilerplate))?;
        write(&directory.join(".gitignore"), "/target\n")?;
        print(format!(
            "{0} keeps documents in a JSON file, for a start. Next:\n\n  cd {0}\n  {1}\n",
            directory.display(),
            steps(name, &boilerplate).join("\n  ")
        ))
    }

    /// Returns the boilerplate's directory, as an absolute path.
    fn boilerplate(&self) -> Result<PathBuf, CliError> {
        let is_it = |directory: &Path| {
            let manifest = fs::read_to_string(directory.join("Cargo.toml"));
            manifest.is_ok_and(|text| text.contains("name = \"tidegate-boilerplate\""))
        };
        if let Some(named) = &self.boilerplate {
            if !is_it(named) {
                let message = format!("{} is not the crate tidegate-boilerplate", named.display());
                return Err(CliError::usage(message)
                    .hint("it is the directory `boilerplate` of a checkout of tidegate"));
            }
            return Ok(named.canonicalize()?);
        }
        let starts = [env::current_dir().ok(), env::current_exe().ok()];
        let found = starts.iter().flatten().find_map(|start| {
            let mut candidates = start.ancestors().map(|it| it.join("boilerplate"));
            candidates.find(|candidate| is_it(candidate))
        });
        found.ok_or_else(|| {
            CliError::usage("the crate tidegate-boilerplate is not to be found from here")
                .hint("--boilerplate names the directory `boilerplate` of a checkout of tidegate")
        })
    }
}

/// Returns the name without the prefix that every connector has.
fn checked(name: &str) -> Result<&str, CliError> {
    let bare = name.strip_prefix(PREFIX).unwrap_or(name);
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let good = bare.starts_with(|c: char| c.is_ascii_lowercase())
        && bare.chars().all(fits)
        && !bare.ends_with('-')
        && !bare.contains("--")
        && bare.len() <= NAME_BYTES_MAX;
    match good {
        true => Ok(bare),
        false => Err(CliError::usage(format!("{name:?} cannot be a connector's name")).hint(
            format!(
                "a name has small letters, digits and single dashes, begins with a letter, and is no longer than {NAME_BYTES_MAX}"
            ),
        )),
    }
}

/// Puts the new connector's name in the place of the starter's.
fn renamed(text: &str, name: &str) -> String {
    let words = name.split('-').map(|word| {
        let (first, rest) = word.split_at(1);
        first.to_ascii_uppercase() + rest
    });
    let camel: String = words.collect();
    let snake = name.replace('-', "_");
    text.replace("StarterConnector", &format!("{camel}Connector"))
        .replace("materialize-starter", &format!("{PREFIX}{name}"))
        .replace("materialize_starter", &format!("materialize_{snake}"))
        .replace("fn starter()", &format!("fn {snake}()"))
        .replace("= starter()", &format!("= {snake}()"))
}

fn manifest(name: &str, boilerplate: &Path) -> String {
    format!(
        r#"[package]
name = "{PREFIX}{name}"
version = "0.1.0"
edition = "2024"
publish = false

[lib]
# The component, and what its native tests link.
crate-type = ["cdylib", "rlib"]

[dependencies]
serde = {{ version = "1", features = ["derive"] }}
# Documents are kept as the text that they came as: no digit is lost.
serde_json = {{ version = "1", features = ["raw_value"] }}
tidegate-boilerplate = {{ path = {boilerplate:?} }}

[dev-dependencies]
tempfile = "3"

# Not a part of whatever workspace it lies in.
[workspace]

[profile.release]
panic = "abort"
strip = true
"#
    )
}

/// Returns what to do next, within the crate.
fn steps(name: &str, boilerplate: &Path) -> [String; 3] {
    let build = boilerplate.with_file_name("scripts/build-connectors");
    let component = format!("target/{PREFIX}{name}.wasm");
    [
        "cargo test    # natively, in a moment".to_owned(),
        format!("{} target .    # makes {component}", build.display()),
        format!("tidegate connector test {component} --config conformance.yaml"),
    ]
}

fn readme(name: &str, boilerplate: &Path) -> String {
    let docs = boilerplate.with_file_name("docs").join("connectors.md");
    format!(
        "# {PREFIX}{name}\n\nA Tidegate connector. It keeps documents in a JSON file, for a start: \
         replace `src/file.rs`\nby the destination, and what `src/session.rs` and \
         `src/connector.rs` do with it.\n\n```sh\n{}\n```\n\nWith a rustup toolchain that has the \
         target wasm32-wasip2, `cargo build --release --target\nwasm32-wasip2` makes the component, \
         too. The guide to connectors is {}.\n",
        steps(name, boilerplate).join("\n"),
        docs.display(),
    )
}

fn write(file: &Path, text: &str) -> Result<(), CliError> {
    let failed =
        |error: std::io::Error| CliError::user(format!("cannot write {}: {error}", file.display()));
    if let Some(parent) = file.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    fs::write(file, text).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_and_put_in_place() {
        assert_eq!(checked("acme-kv").unwrap(), "acme-kv");
        assert_eq!(checked("materialize-acme-kv").unwrap(), "acme-kv");
        for name in [
            "",
            "Acme",
            "acme_kv",
            "1st",
            "a--b",
            "a-",
            "a/b",
            "materialize-",
        ] {
            let error = checked(name).map(str::to_owned).unwrap_err().to_string();
            assert!(
                error.contains("cannot be a connector's name"),
                "{name}: {error}"
            );
        }
        let text = "use materialize_starter::StarterConnector; // materialize-starter";
        assert_eq!(
            renamed(text, "acme-kv"),
            "use materialize_acme_kv::AcmeKvConnector; // materialize-acme-kv"
        );
        for (file, text) in FILES {
            let left = renamed(text, "acme-kv").to_lowercase();
            assert!(
                !left.contains("starter"),
                "{file} still speaks of the starter"
            );
        }
    }
}
