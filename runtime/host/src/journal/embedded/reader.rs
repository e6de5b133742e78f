//! Reads frames back: one read of the file for a run of whole frames.

use super::frame::Header;
use super::index::Stretch;
use super::segment::{self, read_at};
use super::{Known, on_blocking_thread};
use crate::journal::{Batch, JournalError, Reader};
use futures::FutureExt;
use futures::future::BoxFuture;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// The largest batch, however much was asked for, in bytes.
///
/// A batch addresses its buffer with 32 bits; nobody gains from more than this.
const BATCH_BYTES_MAX: u64 = 64 << 20;

pub(super) struct SegmentReader {
    known: Arc<Known>,
    wanted: Range<u64>,
    bytes_max: u64,
    /// The segment read last, by its first offset.
    open: Option<(u64, File)>,
}

impl SegmentReader {
    pub(super) fn new(known: Arc<Known>, wanted: Range<u64>, bytes_max: u64) -> Self {
        Self {
            known,
            wanted,
            bytes_max: bytes_max.min(BATCH_BYTES_MAX),
            open: None,
        }
    }

    async fn read_next(&mut self) -> Result<Option<Batch>, JournalError> {
        let Range { start, end } = self.wanted;
        if start >= end {
            return Ok(None);
        }
        let stretch = {
            let index = self.known.index();
            if end > index.end() {
                return Err(JournalError::BeyondEnd {
                    collection: self.known.collection.clone(),
                    upper: end,
                    end: index.end(),
                });
            }
            index
                .stretch(start, end, self.bytes_max)
                .expect("the range is within the journal")
        };
        let open = self
            .open
            .take()
            .filter(|(first, _)| *first == stretch.segment);
        let known = self.known.clone();
        let wanted = self.wanted.clone();
        let (batch, file) = on_blocking_thread(&self.known.collection, move || {
            let path = segment::path(&known.directory, stretch.segment);
            let file = match open {
                Some((_, file)) => file,
                None => File::open(&path)
                    .map_err(|source| JournalError::io("opening", &path, source))?,
            };
            let batch = read(&file, &path, &stretch, &wanted)?;
            Ok((batch, file))
        })
        .await?;
        self.open = Some((stretch.segment, file));
        self.wanted.start = stretch.upper;
        Ok(Some(batch))
    }
}

impl Reader for SegmentReader {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Batch>, JournalError>> {
        self.read_next().boxed()
    }
}

/// Reads, checks and takes apart the frames of a stretch.
fn read(
    file: &File,
    path: &Path,
    stretch: &Stretch,
    wanted: &Range<u64>,
) -> Result<Batch, JournalError> {
    let length = usize::try_from(stretch.length).expect("a stretch fits in memory");
    let mut buffer = Vec::new();
    read_at(file, stretch.byte, length, &mut buffer)
        .map_err(|source| JournalError::io("reading", path, source))?;
    let corrupt = |at: usize, reason: &dyn ToString| JournalError::Corrupt {
        path: path.to_owned(),
        byte: stretch.byte + at as u64,
        reason: reason.to_string(),
    };
    if buffer.len() < length {
        return Err(corrupt(buffer.len(), &"the file was cut off while in use"));
    }
    let mut batch = Batch::default();
    let mut at = 0;
    let mut next = stretch.lower;
    while at < length && next < wanted.end {
        let frame = &buffer[at..];
        let header = Header::decode(frame).map_err(|damage| corrupt(at, &damage))?;
        if header.first != next {
            return Err(corrupt(
                at,
                &"a frame's offset is not the one after the last",
            ));
        }
        next = header.next();
        if next > wanted.start {
            header
                .verify(frame)
                .map_err(|damage| corrupt(at, &damage))?;
            header.collect(frame, at, wanted, &mut batch);
        }
        at += header.frame_length();
    }
    if next < stretch.upper.min(wanted.end) {
        return Err(corrupt(at, &"frames are missing"));
    }
    Ok(batch.with_buffer(buffer))
}
