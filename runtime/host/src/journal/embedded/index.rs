//! What a journal knows about itself without asking the disk. Pure.
//!
//! All segments' bytes laid end to end make one line; a *mark* says which offset
//! begins at which place on it. Marks are sparse: short frames share one.

use crate::journal::{Extent, InputPosition};
use std::collections::BTreeMap;

/// How far apart marks are at least, in bytes.
///
/// Small enough that skipping to an offset costs one small read; large enough that
/// 100 GiB of journal take some 25 MiB of marks (16 bytes each).
const MARK_BYTES: u64 = 64 << 10;

/// Where an offset is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Mark {
    first: u64,
    place: u64,
}

/// A segment on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Placed {
    first: u64,
    place: u64,
}

/// A run of whole frames within one segment, for one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    /// The first offset of the segment, which is its name.
    pub segment: u64,
    /// The byte of the segment at which the frames begin.
    pub byte: u64,
    /// How many bytes they take.
    pub length: u64,
    /// The first offset of the first frame.
    pub lower: u64,
    /// The offset after the last frame.
    pub upper: u64,
}

/// The durable part of a journal.
#[derive(Debug, Default)]
pub(super) struct Index {
    segments: Vec<Placed>,
    marks: Vec<Mark>,
    end: Mark,
    positions: BTreeMap<String, InputPosition>,
}

impl Index {
    /// Adds an empty segment, whose frames begin after `header` bytes.
    pub(super) fn add_segment(&mut self, header: u64) {
        self.segments.push(Placed {
            first: self.end.first,
            place: self.end.place,
        });
        self.end.place += header;
    }

    /// Adds a frame of the last segment.
    pub(super) fn add_frame(&mut self, next: u64, length: u64) {
        let segment = self.segments.last().expect("a frame is in a segment");
        let fresh = match self.marks.last() {
            None => true,
            Some(mark) => mark.place < segment.place || self.end.place - mark.place >= MARK_BYTES,
        };
        if fresh {
            self.marks.push(self.end);
        }
        self.end = Mark {
            first: next,
            place: self.end.place + length,
        };
    }

    /// Records how far an input has come.
    pub(super) fn set_position(&mut self, input: &str, position: InputPosition) {
        match self.positions.get_mut(input) {
            Some(known) => *known = position,
            None => drop(self.positions.insert(input.to_owned(), position)),
        }
    }

    /// Returns how far an input has come.
    pub(super) fn position(&self, input: &str) -> Option<InputPosition> {
        self.positions.get(input).copied()
    }

    /// Returns the offset after the last document.
    pub(super) fn end(&self) -> u64 {
        self.end.first
    }

    /// Tells how far a read of about `bytes_max` bytes from `lower` reaches.
    pub(super) fn extent(&self, lower: u64, bytes_max: u64) -> Extent {
        let Some(at) = self.mark_of(lower) else {
            return Extent {
                upper: lower,
                bytes: 0,
            };
        };
        let start = self.marks[at].place;
        let upper = self.reach(at, self.marks.len(), bytes_max);
        Extent {
            upper: upper.first,
            bytes: upper.place - start,
        }
    }

    /// Returns the frames to read next for the documents of `[lower, upper)`.
    pub(super) fn stretch(&self, lower: u64, upper: u64, bytes_max: u64) -> Option<Stretch> {
        let at = self.mark_of(lower)?;
        let start = self.marks[at];
        // A read stays within one file.
        let segment = self.segments.partition_point(|s| s.place <= start.place) - 1;
        let within = match self.segments.get(segment + 1) {
            Some(next) => self.marks.partition_point(|mark| mark.place < next.place),
            None => self.marks.len(),
        };
        // Nor does it read on after the last document wanted.
        let wanted = self.marks.partition_point(|mark| mark.first < upper);
        let reach = self.reach(at, within.min(wanted.max(at + 1)), bytes_max);
        let end = match self.segments.get(segment + 1) {
            // The next segment's header lies between.
            Some(next) => reach.place.min(next.place),
            None => reach.place,
        };
        Some(Stretch {
            segment: self.segments[segment].first,
            byte: start.place - self.segments[segment].place,
            length: end - start.place,
            lower: start.first,
            upper: reach.first,
        })
    }

    /// Returns the last mark at or before `lower`, if there is such a document.
    fn mark_of(&self, lower: u64) -> Option<usize> {
        if lower >= self.end.first {
            return None;
        }
        Some(self.marks.partition_point(|mark| mark.first <= lower) - 1)
    }

    /// Returns the last boundary after mark `at`, none after mark `last`, that is at
    /// most `bytes_max` away, or the next one.
    fn reach(&self, at: usize, last: usize, bytes_max: u64) -> Mark {
        let limit = self.marks[at].place.saturating_add(bytes_max);
        if last == self.marks.len() && self.end.place <= limit {
            return self.end;
        }
        let beyond = self.marks[..self.marks.len().min(last + 1)]
            .partition_point(|mark| mark.place <= limit);
        let boundary = (beyond - 1).max(at + 1);
        self.marks.get(boundary).copied().unwrap_or(self.end)
    }
}
