//! What the compiler does not check: which crate may use which, what the pure
//! crates must not name, and what must not be left lying about.
//!
//! Each test looks at the whole repository and lists everything it finds.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tidegate_tests::program::repository;

/// Longest file, in lines. Longer ones are two things.
const LINES_MAX: usize = 900;

/// Most lines of the lock file. A dependency that would break this brings a
/// forest with it.
const LOCK_LINES_MAX: usize = 6_000;

/// What builds and editors put there.
const NOT_OURS: [&str; 5] = ["target", ".git", ".tidegate", ".idea", ".vscode"];

/// The top level is fixed, so that people find things.
const TOP_LEVEL: &[&str] = &[
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "Makefile",
    "README.md",
    "boilerplate",
    "clippy.toml",
    "connectors-fixtures",
    "deny.toml",
    "docs",
    "examples",
    "runtime",
    "rust-toolchain.toml",
    "rustfmt.toml",
    "scripts",
    "tests",
    "validator",
    "wit",
    ".cargo",
    ".ci",
    ".gitattributes",
    ".github",
    ".gitignore",
];

/// Which of our crates each crate may use, developing included.
const MAY_USE: &[(&str, &[&str])] = &[
    ("tidegate-wit", &[]),
    ("tidegate-schedule", &[]),
    (
        "tidegate-boilerplate",
        &["tidegate-wit", "tidegate-schedule"],
    ),
    ("tidegate-validator", &["tidegate-wit", "tidegate-schedule"]),
    ("tidegate-core", &["tidegate-schedule"]),
    ("tidegate-api", &[]),
    (
        "tidegate-host",
        &[
            "tidegate-wit",
            "tidegate-schedule",
            "tidegate-validator",
            "tidegate-core",
            "tidegate-api",
        ],
    ),
    (
        "tidegate-conformance",
        &["tidegate-wit", "tidegate-core", "tidegate-host"],
    ),
    (
        "tidegate",
        &[
            "tidegate-conformance",
            "tidegate-host",
            "tidegate-validator",
            "tidegate-api",
            "tidegate-schedule",
        ],
    ),
    // From outside, like anybody else.
    ("tidegate-tests", &[]),
];

/// Connectors link the guest's library, and what the wire looks like.
const CONNECTORS_MAY_USE: &[&str] = &["tidegate-boilerplate", "tidegate-wit"];

/// Crates that do no IO, and what they must not even depend on.
const PURE: &[&str] = &[
    "tidegate-wit",
    "tidegate-schedule",
    "tidegate-boilerplate",
    "tidegate-validator",
    "tidegate-core",
];
const IMPURE: &[&str] = &[
    "tokio",
    "wasmtime",
    "wasmtime-wasi",
    "tracing",
    "rusqlite",
    "redb",
];

/// What code must not name, and where.
const FORBIDDEN: &[(&str, &[&str])] = &[
    (
        "runtime/core/src",
        &[
            "Instant",
            "SystemTime",
            "HashMap",
            "HashSet",
            "tokio",
            "tracing",
            "std::thread",
            "std::fs",
            "std::io",
            "std::env",
            "std::net",
            "println!",
            "async ",
            "rand",
        ],
    ),
    (
        "validator/src",
        &[
            "tokio",
            "wasmtime",
            "SystemTime",
            "Instant::",
            "HashMap",
            "std::thread",
            "std::net",
        ],
    ),
    (
        "validator/schedule/src",
        &[
            "tokio",
            "SystemTime",
            "Instant::",
            "HashMap",
            "Utc::now",
            "Local::now",
        ],
    ),
    ("boilerplate/src", &["tokio", "wasmtime", "HashMap"]),
    (
        "",
        &[
            "thread::sleep",
            "#[ignore",
            "#[should_panic",
            "todo!",
            "unimplemented!",
            "dbg!",
            "unreachable!()",
        ],
    ),
];

/// Words that say that something is not finished. Written apart, or this file
/// would hold them.
const UNFINISHED: [&str; 3] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("X", "XX"),
];

/// Hosts that packages and images come from: which one is used is set up where
/// the tools are, not here.
const REGISTRIES: [&str; 9] = [
    concat!("crates", ".io"),
    concat!("npmjs", ".org"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("ghcr", ".io"),
    concat!("docker", ".io"),
    concat!("quay", ".io"),
    concat!("gcr", ".io"),
    concat!("proxy.golang", ".org"),
];

/// A file of the repository: its path from the root, and its text.
struct File {
    path: String,
    text: String,
}

impl File {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    fn name(&self) -> &str {
        self.path
            .rsplit('/')
            .next()
            .expect("a path has a last part")
    }

    fn stem(&self) -> &str {
        self.name()
            .split('.')
            .next()
            .expect("a name has a first part")
    }

    fn directory(&self) -> &str {
        self.path
            .rsplit_once('/')
            .map_or("", |(directory, _)| directory)
    }

    /// Returns the numbered lines without their comments.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let code = |line: &'_ str| line.find("//").map_or(line.len(), |start| start);
        self.text
            .lines()
            .enumerate()
            .map(move |(index, line)| (index + 1, &line[..code(line)]))
    }
}

/// Reads every text file of the repository.
fn files() -> Vec<File> {
    let mut files = Vec::new();
    collect(&repository(), "", &mut files);
    assert!(files.len() > 50, "the repository was found");
    files
}

fn collect(directory: &Path, path: &str, files: &mut Vec<File>) {
    for entry in fs::read_dir(directory).expect("the repository can be read") {
        let entry = entry.expect("the repository can be read");
        let name = entry.file_name().into_string().expect("names are UTF-8");
        let inner = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}/{name}")
        };
        if NOT_OURS.contains(&name.as_str()) {
            continue;
        }
        if entry.file_type().expect("an entry has a type").is_dir() {
            collect(&entry.path(), &inner, files);
        } else if let Ok(text) = fs::read_to_string(entry.path()) {
            files.push(File { path: inner, text });
        }
    }
}

#[track_caller]
fn nothing(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}

/// Returns what cargo knows of a workspace's own packages.
fn packages(manifest: PathBuf) -> Vec<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args([
        "metadata",
        "--no-deps",
        "--offline",
        "--format-version=1",
        "--manifest-path",
    ]);
    let output = command.arg(manifest).output().expect("cargo can be run");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("metadata is JSON");
    metadata["packages"]
        .as_array()
        .expect("there are packages")
        .clone()
}

fn name(package: &Value) -> &str {
    package["name"].as_str().expect("a package has a name")
}

fn uses(package: &Value) -> BTreeSet<&str> {
    package["dependencies"]
        .as_array()
        .expect("a package has a list")
        .iter()
        // What is optional is off unless somebody asks, as native tests do.
        .filter(|dependency| dependency["optional"] != true)
        .map(name)
        .collect()
}

#[test]
fn crates_use_each_other_in_one_direction() {
    let packages = packages(repository().join("Cargo.toml"));
    let may_use: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    let mut found = Vec::new();
    for package in &packages {
        let Some(allowed) = may_use.get(name(package)) else {
            found.push(format!("{} is not in the list", name(package)));
            continue;
        };
        for used in uses(package) {
            if may_use.contains_key(used) && !allowed.contains(&used) {
                found.push(format!("{} uses {used}", name(package)));
            }
            if PURE.contains(&name(package)) && IMPURE.contains(&used) {
                found.push(format!("{} is pure, and uses {used}", name(package)));
            }
        }
    }
    assert_eq!(
        packages.len(),
        MAY_USE.len(),
        "every crate in the list is there"
    );
    nothing("crates that use what is not below them", &found);
}

#[test]
fn connectors_use_the_guest_s_library_alone() {
    let mut found = Vec::new();
    for package in packages(repository().join("connectors-fixtures/Cargo.toml")) {
        for used in uses(&package) {
            let ours = used.starts_with("tidegate");
            if ours && !CONNECTORS_MAY_USE.contains(&used) || IMPURE.contains(&used) {
                found.push(format!("{} uses {used}", name(&package)));
            }
        }
    }
    nothing("connectors that use what is the host's", &found);
}

#[test]
fn code_names_nothing_that_is_forbidden_there() {
    let mut found = Vec::new();
    for file in files()
        .iter()
        .filter(|file| file.is_rust() && file.path != "tests/tidy.rs")
    {
        for (place, words) in FORBIDDEN {
            if !file.path.starts_with(place) {
                continue;
            }
            for (number, code) in file.code() {
                for word in words.iter().filter(|word| names(code, word)) {
                    found.push(format!("{}:{number}: {word}", file.path));
                }
            }
        }
    }
    nothing("forbidden names", &found);
}

/// Returns whether code holds a word that is not a part of a longer one.
fn names(code: &str, word: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    code.match_indices(word).any(|(at, _)| {
        let longer_before = part(word.chars().next()) && part(code[..at].chars().next_back());
        let after = &code[at + word.len()..];
        let longer_after = part(word.chars().next_back()) && part(after.chars().next());
        !longer_before && !longer_after
    })
}

#[test]
fn words_are_found_whole() {
    assert!(names("use std::time::Instant;", "Instant"));
    assert!(!names("the Instants of InstantLike", "Instant"));
    assert!(names("x.rand()", "rand"));
    assert!(!names("operand", "rand"));
    assert!(names("  todo!(\"x\")", "todo!"));
}

#[test]
fn files_are_short_finished_and_explained() {
    let mut found = Vec::new();
    for file in files() {
        let lines = file.text.lines().count();
        if file.is_rust() && lines > LINES_MAX {
            found.push(format!(
                "{}: {lines} lines, and {LINES_MAX} are the most",
                file.path
            ));
        }
        let tests = file.stem().ends_with("tests");
        if file.is_rust() && !tests && !file.text.starts_with("//!") && !file.text.starts_with("#!")
        {
            found.push(format!(
                "{}: does not begin by saying what it is",
                file.path
            ));
        }
        for (index, line) in file.text.lines().enumerate() {
            for word in UNFINISHED.iter().filter(|word| names(line, word)) {
                found.push(format!("{}:{}: {word}", file.path, index + 1));
            }
            if file.name() == "Cargo.lock" {
                continue;
            }
            for host in REGISTRIES.iter().filter(|host| line.contains(*host)) {
                found.push(format!("{}:{}: names {host}", file.path, index + 1));
            }
        }
        if file.name() == "Cargo.lock" && lines > LOCK_LINES_MAX {
            found.push(format!(
                "{}: {lines} lines, and {LOCK_LINES_MAX} are the most",
                file.path
            ));
        }
    }
    nothing("untidy files", &found);
}

#[test]
fn the_top_level_is_as_it_was_laid_out() {
    let mut found = Vec::new();
    for entry in fs::read_dir(repository()).expect("the repository can be read") {
        let name = entry.expect("the repository can be read").file_name();
        let name = name.to_string_lossy();
        if !NOT_OURS.contains(&name.as_ref()) && !TOP_LEVEL.contains(&name.as_ref()) {
            found.push(name.into_owned());
        }
    }
    nothing("new things at the top level", &found);
}

/// A source file that no module names is not compiled, and its tests do not run.
#[test]
fn no_source_file_is_forgotten() {
    let files = files();
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.is_rust() && !is_root(file)) {
        let (module, home) = match file.name() {
            "mod.rs" => {
                let (home, module) = file
                    .directory()
                    .rsplit_once('/')
                    .expect("mod.rs is in a module");
                (module, home)
            }
            _ => (file.stem(), file.directory()),
        };
        let declared = format!("mod {module};");
        let path = format!("#[path = \"{}\"]", file.name());
        let named = files
            .iter()
            .filter(|other| other.is_rust() && is_home(other, home))
            .any(|other| {
                other
                    .code()
                    .any(|(_, code)| code.trim_end().ends_with(&declared) || code.contains(&path))
            });
        if !named {
            found.push(format!("{}: no \"{declared}\" beside it", file.path));
        }
    }
    nothing("forgotten source files", &found);
}

/// Returns whether cargo compiles the file by itself.
fn is_root(file: &File) -> bool {
    let parent = file
        .directory()
        .rsplit('/')
        .next()
        .expect("a path has a last part");
    matches!(file.name(), "lib.rs" | "main.rs" | "build.rs")
        || matches!(
            parent,
            "tests" | "benches" | "examples" | "bin" | "fuzz_targets"
        )
}

/// Returns whether a file may declare the modules that lie in a directory.
fn is_home(file: &File, directory: &str) -> bool {
    file.directory() == directory || file.path.strip_suffix(".rs") == Some(directory)
}

/// A snapshot or scenario that no test reads protects nothing.
#[test]
fn no_fixture_is_forgotten() {
    let files = files();
    let mut found = Vec::new();
    for file in files.iter().filter(|file| !file.is_rust()) {
        let read = if file.name().ends_with(".snap") {
            snapshot_is_tested(file, &files)
        } else if ["/scenarios/", "/fixtures/", "/testdata/"]
            .iter()
            .any(|part| file.path.contains(part))
        {
            let folder = file
                .directory()
                .rsplit('/')
                .next()
                .expect("a path has a last part");
            mentioned(file.name(), &files)
                || mentioned(file.stem(), &files)
                || mentioned(folder, &files)
        } else {
            true
        };
        if !read {
            found.push(file.path.clone());
        }
    }
    nothing("fixtures that no test reads", &found);
}

/// A snapshot says which source file it comes from and is named after a test,
/// or after a scenario.
fn snapshot_is_tested(snapshot: &File, files: &[File]) -> bool {
    let source = snapshot
        .text
        .lines()
        .find_map(|line| line.strip_prefix("source: "));
    let Some(source) = source.and_then(|path| files.iter().find(|file| file.path == path)) else {
        return false;
    };
    let stem = snapshot.name().trim_end_matches(".snap");
    let (stem, scenario) = stem
        .split_once('@')
        .map_or((stem, None), |(stem, name)| (stem, Some(name)));
    let test = stem.rsplit("__").next().expect("a name has a last part");
    // The second snapshot of a test is called test-2.
    let test = test
        .trim_end_matches(|c: char| c.is_ascii_digit())
        .trim_end_matches('-');
    let scenario_is_there = |name: &str| {
        files
            .iter()
            .any(|file| file.name() == name || file.stem() == name)
    };
    source.text.contains(test) && scenario.is_none_or(scenario_is_there)
        || source.text.contains("snapshot") && scenario_is_there(test)
}

fn mentioned(name: &str, files: &[File]) -> bool {
    files
        .iter()
        .any(|file| file.is_rust() && file.text.contains(name))
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut found = Vec::new();
    for file in files().iter().filter(|file| file.path.ends_with(".md")) {
        for part in file.text.split("](").skip(1) {
            let target = part.split([')', '#', ' ']).next().unwrap_or_default();
            if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            if !repository().join(file.directory()).join(target).exists() {
                found.push(format!("{}: {target}", file.path));
            }
        }
    }
    nothing("links that lead nowhere", &found);
}
