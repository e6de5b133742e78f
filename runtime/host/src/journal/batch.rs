//! What a read yields: documents as slices of one buffer.

use std::ops::Range;

/// Some frames' documents in one buffer.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    buffer: Vec<u8>,
    spans: Vec<Range<u32>>,
    frames: Vec<FrameSpan>,
}

/// The documents of one frame, or those of them that were asked for.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// The offset of the first document here.
    pub first: u64,
    /// The publish clock: microseconds since the Unix epoch, UTC.
    pub clock: i64,
    /// The fingerprint of the schema that the documents were checked against.
    pub schema: u64,
    buffer: &'a [u8],
    spans: &'a [Range<u32>],
}

/// A document where it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Document<'a> {
    /// The document's offset.
    pub offset: u64,
    /// The publish clock: microseconds since the Unix epoch, UTC.
    pub clock: i64,
    /// The fingerprint of the schema that it was checked against.
    pub schema: u64,
    /// The document.
    pub bytes: &'a [u8],
}

#[derive(Debug, Clone)]
struct FrameSpan {
    first: u64,
    clock: i64,
    schema: u64,
    spans: Range<usize>,
}

impl Batch {
    /// Gives the batch the buffer that its frames are about.
    pub(crate) fn with_buffer(self, buffer: Vec<u8>) -> Self {
        Self { buffer, ..self }
    }

    /// Adds a frame whose documents will be at `spans` of the buffer.
    pub(crate) fn push(
        &mut self,
        first: u64,
        clock: i64,
        schema: u64,
        spans: impl Iterator<Item = Range<u32>>,
    ) {
        let start = self.spans.len();
        self.spans.extend(spans);
        self.frames.push(FrameSpan {
            first,
            clock,
            schema,
            spans: start..self.spans.len(),
        });
    }

    /// Returns the number of documents.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Tells whether there is no document.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns how much memory the documents hold, in bytes.
    pub fn bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Iterates over the frames.
    pub fn frames(&self) -> impl Iterator<Item = Frame<'_>> {
        self.frames.iter().map(|frame| Frame {
            first: frame.first,
            clock: frame.clock,
            schema: frame.schema,
            buffer: &self.buffer,
            spans: &self.spans[frame.spans.clone()],
        })
    }

    /// Iterates over the documents in the order of their offsets.
    pub fn documents(&self) -> impl Iterator<Item = Document<'_>> {
        self.frames().flat_map(Frame::documents)
    }
}

impl<'a> Frame<'a> {
    /// Iterates over the frame's documents in the order of their offsets.
    pub fn documents(self) -> impl Iterator<Item = Document<'a>> {
        self.spans
            .iter()
            .zip(self.first..)
            .map(move |(span, offset)| Document {
                offset,
                clock: self.clock,
                schema: self.schema,
                bytes: &self.buffer[span.start as usize..span.end as usize],
            })
    }
}
