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

    /// Counts the documents of `extents` that this frontier has not come to.
    pub fn beyond(&self, extents: &Extents) -> u64 {
        let beyond = |(source, extent): (&Source, Extent)| {
            let lower = extent.lower.max(self.next(source));
            extent.upper.saturating_sub(lower)
        };
        extents.iter().map(beyond).sum()
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn source(resource: &str, backfill: u32, journal: &str) -> Source {
        Source {
            resource: vec![resource.into()],
            backfill,
            journal: journal.into(),
        }
    }

    fn frontier(offsets: &[(&str, u32, &str, u64)]) -> Frontier {
        offsets
            .iter()
            .map(|(resource, backfill, journal, next)| {
                (source(resource, *backfill, journal), *next)
            })
            .collect()
    }

    #[test]
    fn a_new_binding_starts_from_the_beginning() {
        let read = frontier(&[("a", 0, "j", 7)]);
        assert_eq!(read.next(&source("a", 0, "j")), 7);
        assert_eq!(read.next(&source("a", 1, "j")), 0, "backfilled");
        assert_eq!(read.next(&source("b", 0, "j")), 0, "new");
    }

    #[test]
    fn covers_source_by_source() {
        let cases = [
            ("itself", frontier(&[("a", 0, "j", 7)]), true),
            ("less", frontier(&[("a", 0, "j", 6)]), true),
            ("nothing", frontier(&[]), true),
            ("more", frontier(&[("a", 0, "j", 8)]), false),
            ("another journal", frontier(&[("a", 0, "k", 1)]), false),
            ("another backfill", frontier(&[("a", 1, "j", 1)]), false),
            (
                "another journal, unread",
                frontier(&[("a", 0, "k", 0)]),
                true,
            ),
        ];
        let read = frontier(&[("a", 0, "j", 7)]);
        for (name, other, want) in cases {
            assert_eq!(read.covers(&other), want, "{name}");
        }
    }

    #[test]
    fn what_is_beyond_is_counted_source_by_source() {
        let read = frontier(&[("a", 0, "j", 7)]);
        let cases = [
            ("nothing", frontier(&[]), frontier(&[]), 0),
            ("again", frontier(&[]), read.clone(), 0),
            ("further", read.clone(), frontier(&[("a", 0, "j", 9)]), 2),
            (
                "again and further",
                frontier(&[("a", 0, "j", 3)]),
                frontier(&[("a", 0, "j", 9)]),
                2,
            ),
            (
                "backfilled",
                frontier(&[]),
                frontier(&[("a", 1, "j", 4), ("b", 0, "j", 1)]),
                5,
            ),
        ];
        for (name, lower, upper, want) in cases {
            let extents = Extents::between(&lower, &upper);
            assert_eq!(read.beyond(&extents), want, "{name}");
        }
    }

    #[test]
    fn a_backfill_drops_the_entry_that_it_supersedes() {
        let before = frontier(&[("a", 0, "j", 7), ("a", 0, "k", 5), ("b", 0, "j", 3)]);
        let upper = frontier(&[("a", 2, "j", 4)]);
        let after = before.advanced(&Extents::between(&before, &upper));
        let want = frontier(&[("a", 0, "k", 5), ("a", 2, "j", 4), ("b", 0, "j", 3)]);
        assert_eq!(after, want);
    }

    #[test]
    fn a_checkpoint_is_this_text() {
        let text = frontier(&[("a", 2, "j", 7)]).to_checkpoint();
        let want =
            r#"{"version":1,"offsets":[{"resource":["a"],"backfill":2,"journal":"j","next":7}]}"#;
        assert_eq!(text, want, "destinations hold texts such as this one");
    }

    #[test]
    fn refuses_what_it_did_not_write() {
        let newer = Frontier::from_checkpoint(r#"{"version":2,"cursor":"x"}"#);
        assert!(matches!(newer, Err(CheckpointError::Version { found: 2 })));
        let offset = r#"{"resource":["a"],"backfill":0,"journal":"j","next":1}"#;
        let texts = [
            String::new(),
            "null".into(),
            "{}".into(),
            r#"{"version":"1","offsets":[]}"#.into(),
            r#"{"version":1}"#.into(),
            r#"{"version":1,"offsets":[],"more":1}"#.into(),
            format!(r#"{{"version":1,"offsets":[{offset},{offset}]}}"#),
            r#"{"version":1,"offsets":[{"resource":["a"],"backfill":0,"journal":"j","next":-1}]}"#
                .into(),
            r#"{"version":1,"offsets":["#.into(),
        ];
        for text in texts {
            let read = Frontier::from_checkpoint(&text);
            assert!(
                matches!(read, Err(CheckpointError::Malformed(_))),
                "{text}: {read:?}"
            );
        }
    }

    #[test]
    fn extents_are_never_empty() {
        let texts = [
            r#"[{"resource":["a"],"backfill":0,"journal":"j","lower":3,"upper":3}]"#,
            r#"[{"resource":["a"],"backfill":0,"journal":"j","lower":4,"upper":3}]"#,
        ];
        for text in texts {
            assert!(serde_json::from_str::<Extents>(text).is_err(), "{text}");
        }
    }

    fn any_frontier() -> impl Strategy<Value = Frontier> {
        let offset = ("[ab\"\\\\é]{0,3}", 0..3u32, "[jk/]{0,2}", any::<u64>());
        let source = |(resource, backfill, journal, next): (String, u32, String, u64)| {
            (source(&resource, backfill, &journal), next)
        };
        proptest::collection::vec(offset.prop_map(source), 0..8)
            .prop_map(|offsets| offsets.into_iter().collect())
    }

    proptest! {
        #[test]
        fn checkpoints_read_back(frontier in any_frontier()) {
            let text = frontier.to_checkpoint();
            let read = Frontier::from_checkpoint(&text).expect("what was written reads back");
            prop_assert_eq!(&read, &frontier);
            prop_assert_eq!(read.to_checkpoint(), text);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*", at in 0..80usize) {
            let _ = Frontier::from_checkpoint(&text);
            let mut cut = frontier(&[("a", 0, "j", 7)]).to_checkpoint();
            cut.truncate(at);
            prop_assert!(at >= 79 || Frontier::from_checkpoint(&cut).is_err());
        }

        #[test]
        fn extents_lead_from_lower_to_upper(lower in any_frontier(), other in any_frontier()) {
            let upper = lower.joined(&other);
            let extents = Extents::between(&lower, &upper);
            prop_assert!(upper.covers(&lower) && upper.covers(&other));
            // What a backfill superseded is dropped, and nothing else.
            let advanced = lower.advanced(&extents);
            prop_assert!(upper.covers(&advanced));
            for (source, extent) in extents.iter() {
                prop_assert_eq!(lower.next(source), extent.lower);
                prop_assert!(extent.lower < extent.upper);
            }
            let text = serde_json::to_string(&extents).expect("extents are JSON");
            let read: Extents = serde_json::from_str(&text).expect("extents read back");
            prop_assert_eq!(read, extents);
        }
    }
}
