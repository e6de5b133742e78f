//! A directory of its own for each test, and a reader that goes by the manifests.

use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;

use files_connector::FilesConnector;
use flate2::read::GzDecoder;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_boilerplate::testing::{Document, Harness, binding, document, spec};
use tidegate_boilerplate::{Driver, JsonType, SpecBinding};

pub const INTEGER: &[JsonType] = &[JsonType::Integer];
pub const TEXT: &[JsonType] = &[JsonType::String];

/// A connector under test, with its directory.
pub struct Fixture {
    pub harness: Harness<Driver<FilesConnector>>,
    pub path: PathBuf,
    _directory: TempDir,
}

/// Returns a connector of a format with a new directory and these bindings, not
/// applied yet.
pub fn created(config: Value, bindings: Vec<SpecBinding>) -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    let mut spec = spec(config, bindings);
    spec.config["path"] = path.to_str().unwrap().into();
    Fixture {
        harness: Harness::of(FilesConnector, spec),
        path,
        _directory: directory,
    }
}

/// Returns the same, applied and opened.
pub fn opened(config: Value, bindings: Vec<SpecBinding>) -> Fixture {
    let mut fixture = created(config, bindings);
    fixture.harness.apply().unwrap();
    fixture.harness.open().unwrap();
    fixture
}

/// Returns a connector that writes the animals' documents as lines.
pub fn lines() -> Fixture {
    opened(json!({"format": "ndjson"}), vec![animals()])
}

/// Returns a binding to a folder of its collection's name.
pub fn folder(
    name: &str,
    key: &[(&str, &[JsonType])],
    values: &[(&str, &[JsonType])],
) -> SpecBinding {
    SpecBinding {
        resource_path: vec![name.to_owned()],
        delta_updates: true,
        ..binding(name, json!({"folder": name}), key, values)
    }
}

/// Returns the animals: an integer `id` and a text `name`.
pub fn animals() -> SpecBinding {
    folder("animals", &[("id", INTEGER)], &[("name", TEXT)])
}

/// Returns an animal.
pub fn animal(id: i64, name: &str) -> Document {
    document(0, json!({"id": id, "name": name}))
}

impl Fixture {
    /// Returns the manifests, in order.
    pub fn manifests(&self) -> Vec<Value> {
        let names = self.names("manifest");
        let manifest = |name| {
            let path = self.path.join("manifest").join(name);
            serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
        };
        names.into_iter().map(manifest).collect()
    }

    /// Returns the names in a folder, in order.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path.join(folder)) else {
            return Vec::new();
        };
        let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
        let mut names: Vec<_> = entries.map(|entry| name(entry.unwrap())).collect();
        names.sort();
        names
    }

    /// Returns every file below a folder, in order.
    pub fn files_below(&self, folder: &str) -> Vec<String> {
        let mut found = Vec::new();
        for name in self.names(folder) {
            let name = format!("{folder}/{name}");
            match self.path.join(&name).is_dir() {
                true => found.extend(self.files_below(&name)),
                false => found.push(name),
            }
        }
        found
    }

    /// Returns the paths of a folder's committed files, in order.
    pub fn committed(&self, folder: &str) -> Vec<String> {
        let manifests = self.manifests();
        let files = manifests
            .iter()
            .flat_map(|it| it["files"].as_array().unwrap());
        let of_folder = files.filter(|it| it["folder"] == folder);
        of_folder
            .map(|it| it["path"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Returns the text of a folder's committed files.
    pub fn text(&self, folder: &str) -> String {
        let mut text = String::new();
        for path in self.committed(folder) {
            let file = File::open(self.path.join(&path)).unwrap();
            match path.ends_with(".gz") {
                true => GzDecoder::new(file).read_to_string(&mut text).unwrap(),
                false => (&file).read_to_string(&mut text).unwrap(),
            };
        }
        text
    }

    /// Returns the lines of a folder's committed files, as JSON.
    pub fn json_lines(&self, folder: &str) -> Vec<Value> {
        let text = self.text(folder);
        assert!(text.is_empty() || text.ends_with('\n'), "{text:?}");
        let line = |line| serde_json::from_str(line).unwrap();
        text.lines().map(line).collect()
    }

    /// Opens a folder's committed Parquet files.
    pub fn parquet(&self, folder: &str) -> Vec<SerializedFileReader<File>> {
        let open = |path| {
            let file = File::open(self.path.join(path)).unwrap();
            SerializedFileReader::new(file).unwrap()
        };
        self.committed(folder).into_iter().map(open).collect()
    }

    /// Returns the rows of a folder's committed Parquet files.
    pub fn parquet_rows(&self, folder: &str) -> Vec<Vec<(String, Field)>> {
        let mut rows = Vec::new();
        for reader in self.parquet(folder) {
            for row in reader.get_row_iter(None).unwrap() {
                let row = row.unwrap();
                let fields = row.get_column_iter();
                rows.push(
                    fields
                        .map(|(name, field)| (name.clone(), field.clone()))
                        .collect(),
                );
            }
        }
        rows
    }
}
