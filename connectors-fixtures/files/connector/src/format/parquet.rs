//! Apache Parquet: rows are gathered into columns, and a row group is written
//! whenever enough have been.

use std::fs::File;
use std::io;
use std::sync::Arc;

use ::bytes::Bytes;
use ::parquet::basic::{self, LogicalType, Repetition, TimeUnit};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::schema::types::Type;
use tidegate_boilerplate::Store;
use tidegate_boilerplate::tuple::Element;

use super::{Columns, PushError, unholdable};
use crate::column::{ColumnType, Texts, Values};
use crate::config::Compression;

/// Memory of the rows of one group. Readers skip and parallelize by the group, so it
/// is not to be small; a guest has 512 MiB, and writing a group takes about as much
/// again for the column that is being encoded.
const GROUP_BYTES_MAX: usize = 32 << 20;

/// A Parquet file.
pub(crate) struct Parquet {
    writer: SerializedFileWriter<File>,
    columns: Vec<Column>,
    buffered_bytes: usize,
}

/// The rows of a column that are not written yet.
struct Column {
    name: String,
    column: ColumnType,
    /// 1 for each row with a value, 0 for each null.
    levels: Vec<i16>,
    values: Values,
}

impl Parquet {
    pub(super) fn begin(
        columns: &Columns,
        compression: Compression,
        file: File,
    ) -> io::Result<Self> {
        let fields = columns.fields.iter().map(|it| (&it.name, it.column));
        let document = columns.document.iter().map(|it| (it, ColumnType::Json));
        let columns = fields.chain(document).map(|(name, column)| Column {
            name: name.clone(),
            column,
            levels: Vec::new(),
            values: column.empty(),
        });
        let columns: Vec<_> = columns.collect();
        let compression = match compression {
            Compression::None => basic::Compression::UNCOMPRESSED,
            Compression::Gzip => basic::Compression::GZIP(basic::GzipLevel::default()),
            Compression::Snappy => basic::Compression::SNAPPY,
        };
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_created_by("tidegate".to_owned())
            .build();
        let schema = schema(&columns).map_err(of_parquet)?;
        let writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties));
        Ok(Self {
            writer: writer.map_err(of_parquet)?,
            columns,
            buffered_bytes: 0,
        })
    }

    pub(super) fn push(&mut self, columns: &Columns, store: &Store<'_>) -> Result<(), PushError> {
        let elements = columns.elements(store)?;
        for (column, element) in self.columns.iter_mut().zip(&elements) {
            self.buffered_bytes += column
                .push(element)
                .map_err(|reason| unholdable(&column.name, element, reason, store))?;
        }
        if columns.document.is_some()
            && let Some(column) = self.columns.last_mut()
            && let Values::Texts(texts) = &mut column.values
        {
            let document = store.document_text()?;
            texts.text.push_str(document);
            texts.ends.push(texts.text.len());
            column.levels.push(1);
            self.buffered_bytes += document.len() + size_of::<usize>() + size_of::<i16>();
        }
        if self.buffered_bytes >= GROUP_BYTES_MAX {
            self.write_group()?;
        }
        Ok(())
    }

    /// Writes the rows that are gathered, column by column.
    fn write_group(&mut self) -> io::Result<()> {
        let mut group = self.writer.next_row_group().map_err(of_parquet)?;
        for column in &mut self.columns {
            let next = group.next_column().map_err(of_parquet)?;
            let writer = next.expect("the schema has a column for each of ours");
            column.write(writer).map_err(of_parquet)?;
        }
        group.close().map_err(of_parquet)?;
        self.buffered_bytes = 0;
        Ok(())
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.writer.bytes_written() + self.buffered_bytes) as u64
    }

    pub(super) fn finish(mut self) -> io::Result<File> {
        if self.buffered_bytes > 0 {
            self.write_group()?;
        }
        self.writer.into_inner().map_err(of_parquet)
    }
}

impl Column {
    /// Appends a value; returns how many bytes of memory it takes.
    fn push(&mut self, element: &Element<'_>) -> Result<usize, &'static str> {
        let value_bytes = match element {
            Element::Nil => {
                self.levels.push(0);
                0
            }
            element => {
                let bytes = self.column.push(&mut self.values, element)?;
                self.levels.push(1);
                bytes
            }
        };
        Ok(value_bytes + size_of::<i16>())
    }

    /// Writes its rows, and forgets them.
    fn write(&mut self, mut writer: SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let levels = Some(&self.levels[..]);
        match &mut self.values {
            Values::Booleans(it) => {
                writer.typed::<BoolType>().write_batch(it, levels, None)?;
                it.clear();
            }
            Values::Integers(it) => {
                writer.typed::<Int64Type>().write_batch(it, levels, None)?;
                it.clear();
            }
            Values::Doubles(it) => {
                writer.typed::<DoubleType>().write_batch(it, levels, None)?;
                it.clear();
            }
            Values::Texts(it) => {
                let values = std::mem::take(it).into_values();
                let writer = writer.typed::<ByteArrayType>();
                writer.write_batch(&values, levels, None)?;
            }
        }
        self.levels.clear();
        writer.close()
    }
}

impl Texts {
    /// Returns each text, all of them in one piece of memory.
    fn into_values(self) -> Vec<ByteArray> {
        let text = Bytes::from(self.text);
        let mut start = 0;
        let value = |end| {
            let value = text.slice(start..end);
            start = end;
            ByteArray::from(value)
        };
        self.ends.into_iter().map(value).collect()
    }
}

fn schema(columns: &[Column]) -> Result<Type, ParquetError> {
    let field = |it: &Column| {
        let (physical, logical) = match it.column {
            ColumnType::Boolean => (basic::Type::BOOLEAN, None),
            ColumnType::Integer => (basic::Type::INT64, None),
            ColumnType::Number => (basic::Type::DOUBLE, None),
            ColumnType::Instant => {
                let micros = LogicalType::timestamp(true, TimeUnit::MICROS);
                (basic::Type::INT64, Some(micros))
            }
            ColumnType::Text => (basic::Type::BYTE_ARRAY, Some(LogicalType::String)),
            ColumnType::Json => (basic::Type::BYTE_ARRAY, Some(LogicalType::Json)),
        };
        let field = Type::primitive_type_builder(&it.name, physical)
            .with_logical_type(logical)
            .with_repetition(Repetition::OPTIONAL);
        field.build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
    Type::group_type_builder("row").with_fields(fields).build()
}

fn of_parquet(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    }
}
