//! Prints the rows of Parquet files, a JSON object a line.
//!
//! ```text
//! cargo run --example rows -- FILE...
//! ```
//!
//! For whoever has no reader of Parquet at hand, and for the conformance suite, which sees
//! by it what columns hold.

use std::error::Error;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use parquet::basic::LogicalType;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use tidegate_boilerplate::instant;

fn main() -> ExitCode {
    let mut out = BufWriter::new(io::stdout().lock());
    for path in std::env::args_os().skip(1) {
        if let Err(error) = print(Path::new(&path), &mut out) {
            eprintln!("{}: {error}", path.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn print(path: &Path, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let file = SerializedFileReader::new(File::open(path)?)?;
    let schema = file.metadata().file_metadata().schema();
    let columns = schema.get_fields().iter();
    let is_json: Vec<bool> = columns
        .map(|column| column.get_basic_info().logical_type_ref() == Some(&LogicalType::Json))
        .collect();
    for row in file.get_row_iter(None)? {
        let row = row?;
        let mut members = Vec::new();
        for ((name, field), is_json) in row.get_column_iter().zip(&is_json) {
            let value = match field {
                // As it is: a number in it may have more digits than a double.
                Field::Str(text) if *is_json => text.clone(),
                other => serde_json::to_string(&value(other)?)?,
            };
            members.push(format!("{}:{value}", serde_json::to_string(name)?));
        }
        writeln!(out, "{{{}}}", members.join(","))?;
    }
    Ok(out.flush()?)
}

/// Returns what a column of the connector's holds.
fn value(field: &Field) -> Result<serde_json::Value, String> {
    Ok(match field {
        Field::Null => serde_json::Value::Null,
        Field::Bool(value) => (*value).into(),
        Field::Long(value) => (*value).into(),
        Field::Double(value) => (*value).into(),
        Field::TimestampMicros(micros) => instant::text(*micros).into(),
        Field::Str(text) => text.as_str().into(),
        other => return Err(format!("no column of the connector holds {other}")),
    })
}
