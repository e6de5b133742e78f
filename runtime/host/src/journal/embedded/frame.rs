//! How a frame is laid out in a segment. Pure.
//!
//! ```text
//! magic header_sum body_sum origin_length body_length count first clock schema group
//! origin: nothing | 1 byte line fingerprint identity | 2 hash key
//! body:   the end of each document, then the documents
//! ```
//!
//! All numbers are little-endian. The header's checksum covers the rest of the
//! header and the origin, the body's the body: a reader can skip a frame by its
//! header and know that the header is right without reading the body.

use crate::journal::{APPEND_BYTES_MAX, Append, Batch, InputPosition, ORIGIN_BYTES_MAX, Origin};
use std::ops::Range;

/// Begins each frame. The first byte never occurs in UTF-8, so no document that is
/// text can contain what looks like a frame.
pub(super) const MAGIC: [u8; 4] = [0xF7, b'T', b'G', b'F'];

/// The length of the fixed part of a frame.
pub(super) const HEADER_BYTES: usize = 56;

/// The longest origin: its tag, its numbers and its text.
const ORIGIN_LENGTH_MAX: usize = 1 + 3 * 8 + ORIGIN_BYTES_MAX;

const ORIGIN_INPUT: u8 = 1;
const ORIGIN_PRODUCER: u8 = 2;

/// The fixed part of a frame, believed: its checksum was right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub origin_length: u32,
    pub body_length: u32,
    pub count: u32,
    pub first: u64,
    pub clock: i64,
    pub schema: u64,
    /// The byte of the segment at which the write that brought this frame began:
    /// all before it was durable by then.
    pub group: u64,
    body_sum: u32,
}

/// An origin as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StoredOrigin {
    None,
    Input {
        input: String,
        position: InputPosition,
    },
    Producer {
        key: String,
        hash: u64,
    },
}

/// Why bytes are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Damage {
    #[error("a frame is incomplete")]
    Incomplete,
    #[error("there is no frame where one should begin")]
    Magic,
    #[error("the checksum of a frame's header does not match")]
    HeaderSum,
    #[error("the checksum of a frame's documents does not match")]
    BodySum,
    #[error("a frame contradicts itself")]
    Contradiction,
}

/// Appends the frame of `append` to `target`; `hash` is the producer's, if there is one.
pub(super) fn encode(append: &Append, hash: u64, first: u64, group: u64, target: &mut Vec<u8>) {
    let start = target.len();
    target.resize(start + HEADER_BYTES, 0);
    match &append.origin {
        Origin::None => {}
        Origin::Input {
            input, position, ..
        } => {
            target.push(ORIGIN_INPUT);
            for number in [position.byte, position.line, position.fingerprint] {
                target.extend_from_slice(&number.to_le_bytes());
            }
            target.extend_from_slice(input.as_bytes());
        }
        Origin::Producer { key } => {
            target.push(ORIGIN_PRODUCER);
            target.extend_from_slice(&hash.to_le_bytes());
            target.extend_from_slice(key.as_bytes());
        }
    }
    let body = target.len();
    let documents = &append.documents;
    for &end in documents.ends() {
        target.extend_from_slice(&length(end).to_le_bytes());
    }
    target.extend_from_slice(documents.bytes());

    let body_sum = crc32c::crc32c(&target[body..]);
    let header = &mut target[start..];
    let mut at = 8;
    let mut put = |bytes: &[u8]| {
        header[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    put(&body_sum.to_le_bytes());
    put(&length(body - start - HEADER_BYTES).to_le_bytes());
    put(&length(append.bytes()).to_le_bytes());
    put(&length(documents.len()).to_le_bytes());
    put(&first.to_le_bytes());
    put(&append.clock.to_le_bytes());
    put(&append.schema.to_le_bytes());
    put(&group.to_le_bytes());
    let header_sum = crc32c::crc32c(&target[start + 8..body]);
    target[start..start + 4].copy_from_slice(&MAGIC);
    target[start + 4..start + 8].copy_from_slice(&header_sum.to_le_bytes());
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("appends and batches are limited far below 4 GiB")
}

impl Header {
    /// Reads the header and the origin at the start of `bytes`.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Damage> {
        let Some(fixed) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(Damage::Incomplete);
        };
        if fixed[..4] != MAGIC {
            return Err(Damage::Magic);
        }
        let header = Self {
            body_sum: number32(fixed, 8),
            origin_length: number32(fixed, 12),
            body_length: number32(fixed, 16),
            count: number32(fixed, 20),
            first: number64(fixed, 24),
            clock: number64(fixed, 32).cast_signed(),
            schema: number64(fixed, 40),
            group: number64(fixed, 48),
        };
        if header.origin_length as usize > ORIGIN_LENGTH_MAX {
            // Lengths that were never written would read far past the frame.
            return Err(Damage::HeaderSum);
        }
        let Some(summed) = bytes.get(8..header.body_at()) else {
            return Err(Damage::Incomplete);
        };
        if crc32c::crc32c(summed) != number32(fixed, 4) {
            return Err(Damage::HeaderSum);
        }
        let ends = u64::from(header.count) * 4;
        if header.count == 0
            || header.body_length as usize > APPEND_BYTES_MAX
            || ends > u64::from(header.body_length)
            || header.first.checked_add(u64::from(header.count)).is_none()
        {
            return Err(Damage::Contradiction);
        }
        Ok(header)
    }

    /// Returns the length of the origin that bytes claim, as far as it is plausible.
    pub(super) fn origin_length_of(fixed: &[u8; HEADER_BYTES]) -> usize {
        (number32(fixed, 12) as usize).min(ORIGIN_LENGTH_MAX)
    }

    /// Returns where the body begins in the frame.
    pub(super) fn body_at(&self) -> usize {
        HEADER_BYTES + self.origin_length as usize
    }

    /// Returns the length of the whole frame.
    pub(super) fn frame_length(&self) -> usize {
        self.body_at() + self.body_length as usize
    }

    /// Returns the offset after the last document.
    pub(super) fn next(&self) -> u64 {
        self.first + u64::from(self.count)
    }

    /// Reads the origin of the frame that begins `bytes`.
    pub(super) fn origin(&self, bytes: &[u8]) -> Result<StoredOrigin, Damage> {
        let origin = &bytes[HEADER_BYTES..self.body_at()];
        let text = |from: usize| {
            let text = origin.get(from..).ok_or(Damage::Contradiction)?;
            String::from_utf8(text.to_vec()).map_err(|_| Damage::Contradiction)
        };
        match origin.first() {
            None => Ok(StoredOrigin::None),
            Some(&ORIGIN_INPUT) => Ok(StoredOrigin::Input {
                input: text(25)?,
                position: InputPosition {
                    byte: number64(origin, 1),
                    line: number64(origin, 9),
                    fingerprint: number64(origin, 17),
                },
            }),
            Some(&ORIGIN_PRODUCER) => Ok(StoredOrigin::Producer {
                key: text(9)?,
                hash: number64(origin, 1),
            }),
            Some(_) => Err(Damage::Contradiction),
        }
    }

    /// Checks the body of the whole frame that begins `bytes`.
    pub(super) fn verify(&self, bytes: &[u8]) -> Result<(), Damage> {
        let body = bytes
            .get(self.body_at()..self.frame_length())
            .ok_or(Damage::Incomplete)?;
        if crc32c::crc32c(body) != self.body_sum {
            return Err(Damage::BodySum);
        }
        let (ends, documents) = body.split_at(4 * self.count as usize);
        let mut last = 0;
        let ascending = ends.chunks_exact(4).all(|end| {
            let end = number32(end, 0);
            let ascends = last <= end;
            last = end;
            ascends
        });
        if !ascending || last as usize != documents.len() {
            return Err(Damage::Contradiction);
        }
        Ok(())
    }

    /// Adds those documents of a verified frame that are within `wanted` to `batch`,
    /// whose buffer will hold the frame at byte `at`.
    ///
    /// The caller has checked that there are such documents.
    pub(super) fn collect(&self, frame: &[u8], at: usize, wanted: &Range<u64>, batch: &mut Batch) {
        let first = self.first.max(wanted.start);
        let skip = index(first - self.first);
        let keep = index(self.next().min(wanted.end) - first);
        let documents_at = self.body_at() + 4 * self.count as usize;
        let ends = &frame[self.body_at()..documents_at];
        let origin = length(at + documents_at);
        let mut start = origin;
        if skip > 0 {
            start += number32(ends, 4 * (skip - 1));
        }
        let ends = &ends[4 * skip..4 * (skip + keep)];
        let spans = ends.chunks_exact(4).map(|end| {
            let end = origin + number32(end, 0);
            let span = start..end;
            start = end;
            span
        });
        batch.push(first, self.clock, self.schema, spans);
    }
}

fn index(documents: u64) -> usize {
    usize::try_from(documents).expect("a frame counts its documents in 32 bits")
}

/// Reads a number at a place that the caller has checked to exist.
fn number32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Reads a number at a place that the caller has checked to exist.
fn number64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
