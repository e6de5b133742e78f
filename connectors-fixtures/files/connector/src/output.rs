//! A staged file: rows are appended to it until it is large enough or its binding's
//! turn is over.

use std::fs::{self, File};

use tidegate_boilerplate::{ConnectorError, Store};

use crate::config::Config;
use crate::disk::failed;
use crate::format::{Columns, PushError, Writer};

/// A file that has reached this many bytes is ended. Large enough that listing and
/// opening files is nothing beside reading them, small enough to be copied again when
/// a copy fails.
const FILE_BYTES_MAX: u64 = 128 << 20;

/// A file that is being written.
pub(crate) struct Output {
    path: String,
    writer: Writer,
    rows: u64,
}

/// A file that is whole and synchronized.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

impl Output {
    /// Begins a file.
    pub(crate) fn begin(
        path: String,
        config: &Config,
        columns: &Columns,
    ) -> Result<Self, ConnectorError> {
        let writer = File::create_new(&path).and_then(|it| Writer::begin(config, columns, it));
        let writer = writer.map_err(|error| failed("made", &path, &error))?;
        Ok(Self {
            path,
            writer,
            rows: 0,
        })
    }

    /// Appends a row.
    pub(crate) fn push(
        &mut self,
        columns: &Columns,
        store: &Store<'_>,
    ) -> Result<(), ConnectorError> {
        self.rows += 1;
        self.writer
            .push(columns, store)
            .map_err(|error| match error {
                PushError::Row(error) => error,
                PushError::File(error) => failed("written", &self.path, &error),
            })
    }

    /// Says whether it is large enough.
    pub(crate) fn is_full(&self) -> bool {
        self.writer.bytes() >= FILE_BYTES_MAX
    }

    /// Ends the file.
    pub(crate) fn finish(self) -> Result<Written, ConnectorError> {
        let Self { path, writer, rows } = self;
        let finished = writer.finish().and_then(|file| file.sync_all());
        let bytes = finished.and_then(|()| fs::metadata(&path));
        match bytes {
            Ok(metadata) => Ok(Written {
                rows,
                bytes: metadata.len(),
            }),
            Err(error) => Err(failed("written", &path, &error)),
        }
    }
}
