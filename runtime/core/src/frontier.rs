//! How far a task has read, and the text in which a destination remembers it.
//!
//! A *frontier* says, for every source, which document is the next to read.
//! *Extents* say which documents one transaction reads. A frontier that covers
//! a transaction's extents is the frontier before it, advanced by them:
//!
//! ```text
//! frontier --advanced(extents)--> frontier --to_checkpoint--> text
//! ```
//!
//! Nothing here knows what a document holds, or whether a filter passed it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The version written into every checkpoint.
///
/// A checkpoint outlives the host that wrote it, so a change of meaning needs
/// a number that older hosts refuse.
const CHECKPOINT_VERSION: u64 = 1;

/// One journal, as one binding reads it.
///
/// The binding is named by its resource and its backfill counter, not by its
/// place in the task: a binding that is new or backfilled has no offset yet,
/// and starts from the journal's beginning.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Source {
    /// The binding's resource at the destination.
    pub resource: Vec<String>,
    /// The binding's backfill counter.
    pub backfill: u32,
    /// The journal's name.
    pub journal: String,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resource = self.resource.join(".");
        write!(f, "journal {} of resource {resource}", self.journal)
    }
}

/// For every source, the ordinal of the next document to read.
///
/// A source without an entry is read from its first document. Entries of zero
/// say the same and are not kept, so that equal frontiers compare as equal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Offset>", into = "Vec<Offset>")]
pub struct Frontier {
    offsets: BTreeMap<Source, u64>,
}

/// The documents `lower..upper` of one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The first document.
    pub lower: u64,
    /// The document after the last one.
    pub upper: u64,
}

/// The documents that a transaction, or one extension of it, reads.
///
/// No extent is empty: a source of which nothing is read has no entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Range>", into = "Vec<Range>")]
pub struct Extents {
    extents: BTreeMap<Source, Extent>,
}

/// Why a checkpoint could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// It was written by a newer host.
    #[error(
        "the checkpoint has version {found}, and this host knows versions up to {CHECKPOINT_VERSION}: \
         run a host at least as new as the one that wrote it"
    )]
    Version {
        /// The version it carries.
        found: u64,
    },
    /// It is not a checkpoint, or was cut short.
    #[error(
        "the checkpoint is not one that this host wrote: restore it at the destination, \
         or raise the backfill counter of every binding and remove it"
    )]
    Malformed(#[source] serde_json::Error),
}

impl Frontier {
    /// Returns the ordinal of the next document to read of `source`.
    pub fn next(&self, source: &Source) -> u64 {
        self.offsets.get(source).copied().unwrap_or(0)
    }

    /// Raises the offset of `source` to `next`; never lowers it.
    pub fn raise(&mut self, source: Source, next: u64) {
        if next > self.next(&source) {
            self.offsets.insert(source, next);
        }
    }

    /// Iterates the sources of which something was read, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Source, u64)> {
        self.offsets.iter().map(|(source, next)| (source, *next))
    }

    /// Says whether nothing was read of any source.
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Says whether everything before `other` is before this frontier, too.
    pub fn covers(&self, other: &Frontier) -> bool {
        other.iter().all(|(source, next)| self.next(source) >= next)
    }

    /// Returns the least frontier that covers both.
    #[must_use]
    pub fn joined(&self, other: &Frontier) -> Frontier {
        let mut joined = self.clone();
        for (source, next) in other.iter() {
            joined.raise(source.clone(), next);
        }
        joined
    }

    /// Returns the frontier after `extents` were read.
    ///
    /// A source whose binding was backfilled since drops its older entry:
    /// otherwise every backfill would make each later checkpoint longer.
    #[must_use]
    pub fn advanced(&self, extents: &Extents) -> Frontier {
        let mut advanced = self.clone();
        for (source, extent) in extents.iter() {
            advanced.drop_before(source);
            advanced.raise(source.clone(), extent.upper);
        }
        advanced
    }

    /// Returns the part of this frontier whose sources satisfy `keep`.
    #[must_use]
    pub fn restricted(&self, keep: impl Fn(&Source) -> bool) -> Frontier {
        self.iter()
            .filter(|(source, _)| keep(source))
            .map(|(source, next)| (source.clone(), next))
            .collect()
    }

    /// Writes the text that a destination stores.
    pub fn to_checkpoint(&self) -> String {
        let checkpoint = Checkpoint {
            version: CHECKPOINT_VERSION,
            offsets: self.clone(),
        };
        serde_json::to_string(&checkpoint).expect("a checkpoint's keys are all strings")
    }

    /// Reads the text that [`Frontier::to_checkpoint`] wrote.
    pub fn from_checkpoint(text: &str) -> Result<Frontier, CheckpointError> {
        let header: Header = serde_json::from_str(text).map_err(CheckpointError::Malformed)?;
        if header.version != CHECKPOINT_VERSION {
            return Err(CheckpointError::Version {
                found: header.version,
            });
        }
        let checkpoint: Checkpoint =
            serde_json::from_str(text).map_err(CheckpointError::Malformed)?;
        Ok(checkpoint.offsets)
    }

    /// Drops what was read of the same journal before its last backfill.
    fn drop_before(&mut self, source: &Source) {
        for backfill in self.backfills_before(source) {
            self.offsets.remove(&Source {
                backfill,
                ..source.clone()
            });
        }
    }

    fn backfills_before(&self, source: &Source) -> Vec<u32> {
        let first = Source {
            resource: source.resource.clone(),
            backfill: 0,
            journal: String::new(),
        };
        self.offsets
            .range(first..source.clone())
            .filter(|(older, _)| older.journal == source.journal)
            .map(|(older, _)| older.backfill)
            .collect()
    }
}

impl FromIterator<(Source, u64)> for Frontier {
    fn from_iter<I: IntoIterator<Item = (Source, u64)>>(offsets: I) -> Self {
        let mut frontier = Frontier::default();
        for (source, next) in offsets {
            frontier.raise(source, next);
        }
        frontier
    }
}

impl Extents {
    /// Returns what lies between `lower` and `upper`, source by source.
    pub fn between(lower: &Frontier, upper: &Frontier) -> Extents {
        let extents = upper.iter().filter_map(|(source, upper)| {
            let lower = lower.next(source);
            (lower < upper).then(|| (source.clone(), Extent { lower, upper }))
        });
        Extents {
            extents: extents.collect(),
        }
    }

    /// Iterates the sources and what is read of each, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Source, Extent)> {
        self.extents
            .iter()
            .map(|(source, extent)| (source, *extent))
    }

    /// Says whether nothing is read.
    pub fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }
}

/// A checkpoint as it is written.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Checkpoint {
    version: u64,
    offsets: Frontier,
}

/// The part of a checkpoint that every version has.
#[derive(Deserialize)]
struct Header {
    version: u64,
}

/// A frontier's entry: JSON has no maps with keys such as [`Source`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Offset {
    resource: Vec<String>,
    backfill: u32,
    journal: String,
    next: u64,
}

/// An entry of [`Extents`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Range {
    resource: Vec<String>,
    backfill: u32,
    journal: String,
    lower: u64,
    upper: u64,
}

/// Why a list of entries is neither a frontier nor extents.
#[derive(Debug, thiserror::Error)]
enum EntryError {
    #[error("{0} is listed twice")]
    Twice(Source),
    #[error("{0} has the empty extent {1}..{2}")]
    Empty(Source, u64, u64),
}

impl From<Frontier> for Vec<Offset> {
    fn from(frontier: Frontier) -> Self {
        let offset = |(source, next): (Source, u64)| Offset {
            resource: source.resource,
            backfill: source.backfill,
            journal: source.journal,
            next,
        };
        frontier.offsets.into_iter().map(offset).collect()
    }
}

impl TryFrom<Vec<Offset>> for Frontier {
    type Error = EntryError;

    fn try_from(entries: Vec<Offset>) -> Result<Self, EntryError> {
        let mut offsets = BTreeMap::new();
        for entry in entries {
            let source = Source {
                resource: entry.resource,
                backfill: entry.backfill,
                journal: entry.journal,
            };
            if offsets.contains_key(&source) {
                return Err(EntryError::Twice(source));
            }
            offsets.insert(source, entry.next);
        }
        offsets.retain(|_, next| *next > 0);
        Ok(Frontier { offsets })
    }
}

impl From<Extents> for Vec<Range> {
    fn from(extents: Extents) -> Self {
        let range = |(source, extent): (Source, Extent)| Range {
            resource: source.resource,
            backfill: source.backfill,
            journal: source.journal,
            lower: extent.lower,
            upper: extent.upper,
        };
        extents.extents.into_iter().map(range).collect()
    }
}

impl TryFrom<Vec<Range>> for Extents {
    type Error = EntryError;

    fn try_from(entries: Vec<Range>) -> Result<Self, EntryError> {
        let mut extents = BTreeMap::new();
        for entry in entries {
            let Range { lower, upper, .. } = entry;
            let source = Source {
                resource: entry.resource,
                backfill: entry.backfill,
                journal: entry.journal,
            };
            if lower >= upper {
                return Err(EntryError::Empty(source, lower, upper));
            }
            if extents.contains_key(&source) {
                return Err(EntryError::Twice(source));
            }
            extents.insert(source, Extent { lower, upper });
        }
        Ok(Extents { extents })
    }
}
