//! What a file is made of: rows in, bytes out.
//!
//! ```text
//! store -> the fields of its tuples, or its document -> line | buffered columns -> compressed -> file
//! ```

mod csv;
mod ndjson;
mod parquet;
mod sink;

use std::fs::File;
use std::io;

use tidegate_boilerplate::text::{json_text, key_text};
use tidegate_boilerplate::tuple::{self, Element};
use tidegate_boilerplate::{ConnectorError, Projection, SpecBinding, Store};

use crate::column::ColumnType;
use crate::config::{Compression, Config, Format};

pub(crate) use self::sink::Sink;

/// The columns of a binding.
#[derive(Debug)]
pub(crate) struct Columns {
    /// Of the key and the values, in the order of the tuples.
    fields: Vec<Field>,
    /// The field that holds the document.
    document: Option<String>,
}

#[derive(Debug)]
struct Field {
    name: String,
    column: ColumnType,
}

impl Columns {
    /// Returns the columns of a binding.
    pub(crate) fn new(spec: &SpecBinding) -> Self {
        let field = |it: &Projection| Field {
            name: it.field.clone(),
            column: ColumnType::of(it),
        };
        Self {
            fields: spec.key.iter().chain(&spec.values).map(field).collect(),
            document: spec.document.clone(),
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let fields = self.fields.iter().map(|it| &*it.name);
        fields.chain(self.document.as_deref())
    }

    /// Takes a store's tuples apart, an element a field.
    fn elements<'a>(&self, store: &Store<'a>) -> Result<Vec<Element<'a>>, ConnectorError> {
        let mut elements = tuple::decode(store.key_tuple)?;
        elements.extend(tuple::decode(store.values_tuple)?);
        match elements.len() == self.fields.len() {
            true => Ok(elements),
            false => Err(ConnectorError::internal(format!(
                "a row has {} elements for {} fields",
                elements.len(),
                self.fields.len()
            ))),
        }
    }
}

/// A file that is being written.
pub(crate) enum Writer {
    Ndjson(ndjson::Ndjson),
    Csv(csv::Csv),
    Parquet(Box<parquet::Parquet>),
}

impl Writer {
    /// Begins a file.
    pub(crate) fn begin(config: &Config, columns: &Columns, file: File) -> io::Result<Self> {
        let gzip = config.compression() == Compression::Gzip;
        Ok(match config.format {
            Format::Ndjson => Self::Ndjson(ndjson::Ndjson::begin(columns, Sink::new(file, gzip))),
            Format::Csv => Self::Csv(csv::Csv::begin(columns, Sink::new(file, gzip))?),
            Format::Parquet => {
                let parquet = parquet::Parquet::begin(columns, config.compression(), file)?;
                Self::Parquet(Box::new(parquet))
            }
        })
    }

    /// Appends a row.
    pub(crate) fn push(&mut self, columns: &Columns, store: &Store<'_>) -> Result<(), PushError> {
        match self {
            Self::Ndjson(it) => it.push(columns, store),
            Self::Csv(it) => it.push(columns, store),
            Self::Parquet(it) => it.push(columns, store),
        }
    }

    /// Returns about how long the file is.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Ndjson(it) => it.bytes(),
            Self::Csv(it) => it.bytes(),
            Self::Parquet(it) => it.bytes(),
        }
    }

    /// Ends the file; what is left is to synchronize it.
    pub(crate) fn finish(self) -> io::Result<File> {
        match self {
            Self::Ndjson(it) => it.finish(),
            Self::Csv(it) => it.finish(),
            Self::Parquet(it) => it.finish(),
        }
    }
}

/// Why a row was not appended.
pub(crate) enum PushError {
    /// The row.
    Row(ConnectorError),
    /// The file.
    File(io::Error),
}

impl From<ConnectorError> for PushError {
    fn from(error: ConnectorError) -> Self {
        Self::Row(error)
    }
}

impl From<io::Error> for PushError {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

/// Returns the error of a value that its column cannot hold.
fn unholdable(
    field: &str,
    element: &Element<'_>,
    reason: &str,
    store: &Store<'_>,
) -> ConnectorError {
    let key = store.key().map(|key| key_text(&key));
    ConnectorError::document(format!(
        "field {field:?} cannot hold {}: {reason}. Correct the document, exclude the field, or allow another type \
         beside it in the collection's schema, which makes the column JSON text",
        json_text(element),
    ))
    .of_key(key.unwrap_or_default())
    .of_field(field)
}
