//! Where the bytes of a text file go: through a buffer, compressed or not.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

/// A write of a guest is a call to its host; this many bytes make the cost of the call
/// small beside that of the writing.
const BUFFER_BYTES: usize = 256 << 10;

/// A text file.
pub(crate) enum Sink {
    Plain(Counted),
    Gzip(Box<GzEncoder<Counted>>),
}

/// Counts what is written.
pub(crate) struct Counted {
    inner: BufWriter<File>,
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Sink {
    /// Returns the sink of an empty file.
    pub(crate) fn new(file: File, gzip: bool) -> Self {
        let counted = Counted {
            inner: BufWriter::with_capacity(BUFFER_BYTES, file),
            bytes: 0,
        };
        match gzip {
            true => Self::Gzip(Box::new(GzEncoder::new(counted, Compression::default()))),
            false => Self::Plain(counted),
        }
    }

    /// Appends bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(it) => it.write_all(bytes),
            Self::Gzip(it) => it.write_all(bytes),
        }
    }

    /// Returns how many bytes have gone out.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Plain(it) => it.bytes,
            Self::Gzip(it) => it.get_ref().bytes,
        }
    }

    /// Writes what is left.
    pub(crate) fn finish(self) -> io::Result<File> {
        let counted = match self {
            Self::Plain(it) => it,
            Self::Gzip(it) => it.finish()?,
        };
        Ok(counted.inner.into_inner()?)
    }
}
