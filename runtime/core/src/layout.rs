//! What a task's transactions are spread over: its bindings and its shards.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::frontier::Source;

/// A shard's place in its task's layout; shard zero leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShardId(pub u32);

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shard {}", self.0)
    }
}

/// What makes a binding the same binding across specs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Binding {
    /// The resource at the destination.
    pub resource: Vec<String>,
    /// The backfill counter: a higher one starts the binding over.
    pub backfill: u32,
}

impl Binding {
    /// Says whether `source` is read for this binding.
    pub fn reads(&self, source: &Source) -> bool {
        self.resource == source.resource && self.backfill == source.backfill
    }
}

/// The hashes of keys that one shard is responsible for, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct KeyRange {
    /// The lowest hash.
    pub begin: u32,
    /// The highest hash.
    pub end: u32,
}

impl KeyRange {
    /// The range of a task's only shard.
    pub const ALL: KeyRange = KeyRange {
        begin: 0,
        end: u32::MAX,
    };
}

impl fmt::Display for KeyRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}-{:08x}", self.begin, self.end)
    }
}

impl FromStr for KeyRange {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let malformed = || LayoutError::KeyRange { text: text.into() };
        let (begin, end) = text.split_once('-').ok_or_else(malformed)?;
        let hash = |hex| u32::from_str_radix(hex, 16).map_err(|_| malformed());
        let range = KeyRange {
            begin: hash(begin)?,
            end: hash(end)?,
        };
        // Also refuses `+1-2` and short forms, which would not read back as written.
        if range.begin > range.end || range.to_string() != text {
            return Err(malformed());
        }
        Ok(range)
    }
}

impl From<KeyRange> for String {
    fn from(range: KeyRange) -> Self {
        range.to_string()
    }
}

impl TryFrom<String> for KeyRange {
    type Error = LayoutError;

    fn try_from(text: String) -> Result<Self, LayoutError> {
        text.parse()
    }
}

/// The bindings and shards that a transaction is read under.
///
/// What a transaction staged makes sense only under the layout it was read
/// under, so the layout is recorded beside everything that may be recovered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Layout {
    /// The bindings, in the order by which messages number them.
    pub bindings: Vec<Binding>,
    /// The key ranges, in the order by which [`ShardId`] numbers the shards.
    pub shards: Vec<KeyRange>,
}

impl Layout {
    /// Says whether `source` is read for one of the bindings.
    pub fn reads(&self, source: &Source) -> bool {
        self.bindings.iter().any(|binding| binding.reads(source))
    }

    /// Says whether each binding is in `current` with a higher backfill
    /// counter. One that is merely gone may come back, and is not superseded.
    pub(crate) fn is_superseded_by(&self, current: &Layout) -> bool {
        self.bindings.iter().all(|old| {
            current
                .bindings
                .iter()
                .any(|new| new.resource == old.resource && new.backfill > old.backfill)
        })
    }

    /// Iterates the shards with their key ranges, in order.
    pub fn shards(&self) -> impl Iterator<Item = (ShardId, KeyRange)> {
        (0..).map(ShardId).zip(self.shards.iter().copied())
    }

    /// Returns the key range of `shard`, if the layout has such a shard.
    pub fn range(&self, shard: ShardId) -> Option<KeyRange> {
        self.shards.get(shard.0 as usize).copied()
    }

    /// Returns the binding that messages call `index`, if there is one.
    pub fn binding(&self, index: u32) -> Option<&Binding> {
        self.bindings.get(index as usize)
    }
}

/// A packed key; its bytes sort as the keys do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Key(pub Vec<u8>);

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl TryFrom<String> for Key {
    type Error = LayoutError;

    fn try_from(text: String) -> Result<Self, LayoutError> {
        let digits = text.as_bytes();
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        let byte = |pair: &[u8]| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        };
        let bytes = digits.chunks(2).map(byte).collect::<Option<Vec<u8>>>();
        bytes.map(Key).ok_or(LayoutError::Key { text })
    }
}

/// Why a text is not part of a layout.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// It is not a key range.
    #[error("`{text}` is not a key range such as 00000000-ffffffff")]
    KeyRange {
        /// The text.
        text: String,
    },
    /// It is not a key in hexadecimal.
    #[error("`{text}` is not a key written as pairs of hexadecimal digits")]
    Key {
        /// The text.
        text: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_ranges_read_back_as_written() {
        for (text, begin, end) in [
            ("00000000-ffffffff", 0, u32::MAX),
            ("00000000-7fffffff", 0, 0x7fff_ffff),
            ("80000000-80000000", 0x8000_0000, 0x8000_0000),
        ] {
            let range = KeyRange { begin, end };
            assert_eq!(text.parse(), Ok(range));
            assert_eq!(range.to_string(), text);
        }
        for text in [
            "",
            "-",
            "0-1",
            "+0000000-00000001",
            "00000002-00000001",
            "0000000G-ffffffff",
        ] {
            let want = LayoutError::KeyRange { text: text.into() };
            assert_eq!(text.parse::<KeyRange>(), Err(want));
        }
    }

    #[test]
    fn keys_read_back_as_written() {
        for (text, bytes) in [("", vec![]), ("00", vec![0]), ("02ff", vec![2, 255])] {
            assert_eq!(Key::try_from(text.to_string()), Ok(Key(bytes.clone())));
            assert_eq!(String::from(Key(bytes)), text);
        }
        for text in ["0", "000", "0g", "é", "+1"] {
            let want = LayoutError::Key { text: text.into() };
            assert_eq!(Key::try_from(text.to_string()), Err(want));
        }
    }
}
