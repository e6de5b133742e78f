//! A million documents of about 250 bytes, of 300,000 keys: seven fields, and the
//! document makes eight columns.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use fastrand::Rng;
use serde_json::{Value, json};

/// Enough for several files and transactions.
pub const DOCUMENTS: usize = 1_000_000;

/// Of ten documents, so many have a key of their own.
const KEYS_OF_TEN: usize = 3;

/// A document's text fills up to about this many bytes.
const DOCUMENT_BYTES: usize = 250;

/// The same documents each time.
const SEED: u64 = 1;

/// Returns the schema of the documents.
pub fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": { "type": "integer" },
            "line": { "type": "integer" },
            "total": { "type": "number" },
            "status": { "type": "string" },
            "customer": { "type": "integer" },
            "paid": { "type": "boolean" },
            "note": { "type": "string" },
        },
    })
}

/// Writes the documents; returns how many keys they have.
pub fn write(file: &Path, documents: usize) -> anyhow::Result<usize> {
    let mut random = Rng::with_seed(SEED);
    let keys_max = (documents * KEYS_OF_TEN / 10).max(1) as u64;
    let mut keys = BTreeSet::new();
    let mut file = BufWriter::new(File::create(file)?);
    for line in 1..=documents {
        // Each key once, so that there are as many as there should be; then at random.
        let id = match line as u64 <= keys_max {
            true => line as u64,
            false => random.u64(1..=keys_max),
        };
        keys.insert(id);
        let (cents, customer) = (random.u32(0..1_000_000), random.u32(0..50_000));
        let mut text = format!(
            r#"{{"id":{id},"line":{line},"total":{}.{:02},"status":"shipped","customer":{customer},"paid":{},"note":""#,
            cents / 100,
            cents % 100,
            random.bool(),
        );
        while text.len() < DOCUMENT_BYTES - 2 {
            text.push(random.alphanumeric());
        }
        writeln!(file, "{text}\"}}")?;
    }
    file.into_inner()?.sync_all()?;
    Ok(keys.len())
}
