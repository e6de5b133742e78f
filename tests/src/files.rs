//! What a directory of files holds, for whoever goes by its manifests.
//!
//! ```text
//! manifest/1, manifest/2 .. while they are there -> the files that each names -> lines by folder
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The lines of a transaction, by folder, without the headers of CSV files.
pub type Lines = BTreeMap<String, Vec<String>>;

/// Reads transactions one after the other.
pub struct Reader {
    dir: PathBuf,
    next: u64,
}

impl Reader {
    /// Returns a reader at the first transaction of a directory, which need not exist
    /// yet.
    pub fn new(dir: &Path) -> Reader {
        Reader {
            dir: dir.to_owned(),
            next: 1,
        }
    }

    /// Reads the next transaction, if it is there. Says what is wrong if it is not
    /// there as a whole.
    pub fn read(&mut self) -> Result<Option<Lines>, String> {
        let manifest = self.dir.join(format!("manifest/{:020}.json", self.next));
        let text = match fs::read_to_string(&manifest) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|error| format!("{}: {error}", manifest.display()))?,
        };
        let manifest: Value =
            serde_json::from_str(&text).map_err(|error| format!("{text:?}: {error}"))?;
        let mut lines = Lines::new();
        for file in manifest["files"].as_array().into_iter().flatten() {
            let path = file["path"].as_str().unwrap_or_default();
            let text = fs::read_to_string(self.dir.join(path))
                .map_err(|error| format!("transaction {}: {path}: {error}", self.next))?;
            let header = usize::from(path.ends_with(".csv"));
            let rows: Vec<_> = text.lines().skip(header).map(str::to_owned).collect();
            if (text.len() as u64, rows.len() as u64)
                != (number(file, "bytes"), number(file, "rows"))
            {
                return Err(format!("{path} is not what its manifest says: {file}"));
            }
            let folder = file["folder"].as_str().unwrap_or_default();
            lines.entry(folder.to_owned()).or_default().extend(rows);
        }
        self.next += 1;
        Ok(Some(lines))
    }

    /// Reads all transactions that are there.
    #[track_caller]
    pub fn all(dir: &Path) -> Lines {
        let mut reader = Reader::new(dir);
        let mut all = Lines::new();
        while let Some(lines) = reader.read().expect("transactions are whole") {
            for (folder, lines) in lines {
                all.entry(folder).or_default().extend(lines);
            }
        }
        all
    }
}

fn number(file: &Value, name: &str) -> u64 {
    file[name].as_u64().unwrap_or(u64::MAX)
}
