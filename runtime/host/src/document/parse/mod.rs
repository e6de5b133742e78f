//! Parsing: text becomes a flat tape of its values, in one pass.
//!
//! The tape holds no values, only where each one's text is. That is why a
//! number cannot lose digits, why an array or object can be stored as it came,
//! and why a document that is parsed for two of its fields costs no more than
//! finding them. Tokens are found by `sonic-rs` (vectorised), through its
//! token-level parser, which is public and of which little is promised: an
//! upgrade must pass the tests here. What is ours is what it leaves open:
//! positions, limits, and names that occur twice.
//!
//! An object with the same name twice is refused. Readers disagree about such
//! objects (first, last, both), so its key could be one document's and its row
//! another's.

use sonic_rs::parser::{Parser, Reference};
use sonic_rs::reader::{Read, Reader};

use super::shown;
use super::value::{Kind, Value};

/// Deepest nesting of arrays and objects. What walks a document recurses, and
/// this many frames fit the smallest stack we run on many times over.
pub const DEPTH_MAX: usize = 128;

/// Largest document, before and after reduction. One document must fit a
/// batch, a guest's memory and the combiner's budget several times over.
pub const DOCUMENT_BYTES_MAX: usize = 64 << 20;

/// Longest text of a number. Exact arithmetic on digits takes the square of
/// their count, and no one means more than this.
pub const NUMBER_BYTES_MAX: usize = 4096;

/// Text that is not a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// It is not JSON.
    #[error("not JSON at byte {at}: {reason}")]
    Syntax {
        /// Where it goes wrong.
        at: usize,
        /// What is wrong there.
        reason: String,
    },
    /// An object has a name twice.
    #[error(
        "property {name:?} occurs twice in the object at byte {at}: readers would disagree which one counts; keep one"
    )]
    Duplicate {
        /// The name.
        name: String,
        /// Where the object starts.
        at: usize,
    },
    /// Arrays and objects are nested too deep.
    #[error("arrays and objects are nested deeper than {DEPTH_MAX} levels at byte {at}")]
    Depth {
        /// Where the first one too deep starts.
        at: usize,
    },
    /// A number has too many digits.
    #[error("the number at byte {at} has {len} characters; the limit is {NUMBER_BYTES_MAX}")]
    Number {
        /// Where it starts.
        at: usize,
        /// Its length.
        len: usize,
    },
    /// The text is too long.
    #[error("the document has {len} bytes; the limit is {DOCUMENT_BYTES_MAX}")]
    Size {
        /// Its length.
        len: usize,
    },
}

/// One value, or one name of a property: where its text is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// Offset of its text; of a string, of its opening quote.
    pub start: u32,
    /// Offset behind its text; of a string, behind its closing quote.
    pub end: u32,
    /// Position on the tape behind the value and all inside it. Of a name,
    /// whose value always comes next: a hash of the name.
    pub next: u32,
    pub kind: Kind,
}

/// Memory for parsing, to be used again for the next document.
#[derive(Debug, Default)]
pub struct Tape {
    nodes: Vec<Node>,
    /// Hashes of the names of the objects that are open.
    names: Vec<u32>,
    unescaped: Vec<u8>,
    bytes_read: u64,
}

impl Tape {
    /// Parses one document.
    ///
    /// # Errors
    ///
    /// If the text is not one JSON value, or exceeds a limit.
    pub fn parse<'d>(&'d mut self, text: &'d [u8]) -> Result<Document<'d>, ParseError> {
        self.nodes.clear();
        let text = self.read(text)?;
        Ok(Document {
            text,
            nodes: &self.nodes,
        })
    }

    /// Parses several documents, to be looked at together.
    ///
    /// # Errors
    ///
    /// Of the first that is not a document.
    pub fn parse_all<'d>(
        &'d mut self,
        texts: impl IntoIterator<Item = &'d [u8]>,
    ) -> Result<Vec<Document<'d>>, ParseError> {
        self.nodes.clear();
        let mut parsed = Vec::new();
        for text in texts {
            let begin = self.nodes.len();
            let text = self.read(text)?;
            parsed.push((text, begin..self.nodes.len()));
        }
        let nodes = &self.nodes;
        let document = |(text, range): (_, std::ops::Range<usize>)| Document {
            text,
            nodes: &nodes[range],
        };
        Ok(parsed.into_iter().map(document).collect())
    }

    /// How many bytes of text it has parsed in all: what the work of a caller
    /// is measured by.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    fn read<'d>(&mut self, text: &'d [u8]) -> Result<&'d str, ParseError> {
        if text.len() > DOCUMENT_BYTES_MAX {
            return Err(ParseError::Size { len: text.len() });
        }
        let text = std::str::from_utf8(text).map_err(|error| ParseError::Syntax {
            at: error.valid_up_to(),
            reason: "not UTF-8".to_owned(),
        })?;
        self.names.clear();
        self.bytes_read += text.len() as u64;
        let mut reading = Reading {
            parser: Parser::new(Read::from(text)),
            text,
            begin: self.nodes.len(),
            tape: self,
        };
        let first = reading.token()?;
        reading.value(first, 0)?;
        if reading.parser.skip_space().is_some() {
            return Err(reading.syntax("text after the document"));
        }
        Ok(text)
    }
}

/// A parsed document.
#[derive(Clone, Copy, Debug)]
pub struct Document<'d> {
    text: &'d str,
    nodes: &'d [Node],
}

impl<'d> Document<'d> {
    /// The document's text.
    pub fn text(&self) -> &'d str {
        self.text
    }

    /// The value that is the document.
    pub fn root(&self) -> Value<'d> {
        Value::new(self.text, self.nodes, 0)
    }
}

/// Names of one object that are compared one by one; more are sorted. The scan
/// of a few hashes is faster than anything that has to be built first.
const NAMES_SCANNED_MAX: usize = 64;

struct Reading<'t, 'd> {
    parser: Parser<Read<'d>>,
    text: &'d str,
    /// Where the document begins on the tape.
    begin: usize,
    tape: &'t mut Tape,
}

impl<'d> Reading<'_, 'd> {
    #[cold]
    fn syntax(&self, reason: &str) -> ParseError {
        ParseError::Syntax {
            at: self.parser.read.index().saturating_sub(1),
            reason: reason.to_owned(),
        }
    }

    /// Takes over what the tokenizer says, without its excerpt of the text.
    #[cold]
    fn refused(error: &sonic_rs::Error) -> ParseError {
        let said = error.to_string();
        let reason = said.split(" at line ").next().unwrap_or("malformed");
        ParseError::Syntax {
            at: error.offset(),
            reason: reason.to_owned(),
        }
    }

    #[inline]
    fn token(&mut self) -> Result<u8, ParseError> {
        match self.parser.skip_space() {
            Some(byte) => Ok(byte),
            None => Err(ParseError::Syntax {
                at: self.text.len(),
                reason: "the text ends early".to_owned(),
            }),
        }
    }

    #[inline]
    fn push(&mut self, start: usize, kind: Kind) -> usize {
        let at = self.tape.nodes.len();
        self.tape.nodes.push(Node {
            start: offset(start),
            end: offset(self.parser.read.index()),
            next: offset(at + 1 - self.begin),
            kind,
        });
        at
    }

    /// Reads the value that starts with a byte just taken.
    fn value(&mut self, first: u8, depth: usize) -> Result<(), ParseError> {
        let start = self.parser.read.index() - 1;
        let literal = |rest, kind| (rest, kind);
        let (rest, kind) = match first {
            b'"' => {
                let (kind, ()) = self.string(|_| ())?;
                self.push(start, kind);
                return Ok(());
            }
            b'-' | b'0'..=b'9' => {
                let number = self
                    .parser
                    .skip_number(first)
                    .map_err(|error| Self::refused(&error))?;
                if number.len() > NUMBER_BYTES_MAX {
                    let len = number.len();
                    return Err(ParseError::Number { at: start, len });
                }
                self.push(start, Kind::Number);
                return Ok(());
            }
            b'{' | b'[' if depth == DEPTH_MAX => return Err(ParseError::Depth { at: start }),
            b'{' => return self.object(start, depth + 1),
            b'[' => return self.array(start, depth + 1),
            b't' => literal("rue", Kind::True),
            b'f' => literal("alse", Kind::False),
            b'n' => literal("ull", Kind::Null),
            _ => return Err(self.syntax("expected a value")),
        };
        self.parser
            .parse_literal(rest)
            .map_err(|error| Self::refused(&error))?;
        self.push(start, kind);
        Ok(())
    }

    fn close(&mut self, at: usize) {
        let next = offset(self.tape.nodes.len() - self.begin);
        let node = &mut self.tape.nodes[at];
        node.end = offset(self.parser.read.index());
        node.next = next;
    }

    fn array(&mut self, start: usize, depth: usize) -> Result<(), ParseError> {
        let at = self.push(start, Kind::Array);
        let mut first = self.token()?;
        if first != b']' {
            loop {
                self.value(first, depth)?;
                match self.token()? {
                    b',' => first = self.token()?,
                    b']' => break,
                    _ => return Err(self.syntax("expected `,` or `]`")),
                }
            }
        }
        self.close(at);
        Ok(())
    }

    fn object(&mut self, start: usize, depth: usize) -> Result<(), ParseError> {
        let at = self.push(start, Kind::Object);
        let names_begin = self.tape.names.len();
        let mut first = self.token()?;
        if first != b'}' {
            loop {
                if first != b'"' {
                    return Err(self.syntax("expected the name of a property"));
                }
                let name = self.name()?;
                self.unique(name, at, names_begin)?;
                if self.token()? != b':' {
                    return Err(self.syntax("expected `:`"));
                }
                first = self.token()?;
                self.value(first, depth)?;
                match self.token()? {
                    b',' => first = self.token()?,
                    b'}' => break,
                    _ => return Err(self.syntax("expected `,` or `}`")),
                }
            }
        }
        self.close(at);
        if self.tape.names.len() - names_begin > NAMES_SCANNED_MAX {
            self.unique_among_many(at)?;
        }
        self.tape.names.truncate(names_begin);
        Ok(())
    }

    /// Reads the rest of a string; `look` sees what it says.
    #[inline]
    fn string<T>(&mut self, look: impl FnOnce(&str) -> T) -> Result<(Kind, T), ParseError> {
        let parsed = self.parser.parse_str(&mut self.tape.unescaped);
        match parsed.map_err(|error| Self::refused(&error))? {
            Reference::Borrowed(said) => Ok((Kind::String, look(said))),
            Reference::Copied(said) => Ok((Kind::EscapedString, look(said))),
        }
    }

    /// Reads a name; returns its position on the tape.
    #[inline]
    fn name(&mut self) -> Result<usize, ParseError> {
        let start = self.parser.read.index() - 1;
        let (kind, hash) = self.string(hash_name)?;
        let at = self.push(start, kind);
        self.tape.nodes[at].next = hash;
        Ok(at)
    }

    /// Compares a name with those of its object that came before, while they
    /// are few.
    #[inline]
    fn unique(&mut self, name: usize, object: usize, names_begin: usize) -> Result<(), ParseError> {
        let hash = self.tape.nodes[name].next;
        let before = &self.tape.names[names_begin..];
        if before.len() <= NAMES_SCANNED_MAX && before.contains(&hash) {
            self.compare_names(name, object)?;
        }
        self.tape.names.push(hash);
        Ok(())
    }

    #[cold]
    fn compare_names(&self, name: usize, object: usize) -> Result<(), ParseError> {
        let nodes = &self.tape.nodes[self.begin..];
        let added = Value::new(self.text, nodes, name - self.begin);
        let mut at = object + 1 - self.begin;
        while at < name - self.begin {
            let earlier = Value::new(self.text, nodes, at);
            if earlier.string() == added.string() {
                return Err(self.duplicate(added, object));
            }
            at = nodes[at + 1].next as usize;
        }
        Ok(())
    }

    /// Finds a name that occurs twice in a large object that has just been
    /// closed. Sorted by text, not by hash: names could be made to collide.
    #[cold]
    fn unique_among_many(&self, object: usize) -> Result<(), ParseError> {
        let nodes = &self.tape.nodes[self.begin..];
        let value = Value::new(self.text, nodes, object - self.begin);
        let mut names: Vec<_> = value.members().map(|(name, _)| name).collect();
        names.sort_by_cached_key(|name| name.string());
        match names
            .windows(2)
            .find(|pair| pair[0].string() == pair[1].string())
        {
            Some(pair) => Err(self.duplicate(pair[1], object)),
            None => Ok(()),
        }
    }

    #[cold]
    fn duplicate(&self, name: Value<'_>, object: usize) -> ParseError {
        ParseError::Duplicate {
            name: shown(&name.string().unwrap_or_default()),
            at: self.tape.nodes[object].start as usize,
        }
    }
}

/// # Panics
///
/// Never: [`DOCUMENT_BYTES_MAX`] bounds every offset and count.
#[inline]
pub(super) fn offset(at: usize) -> u32 {
    u32::try_from(at).expect("the limit on documents keeps offsets under 4 GiB")
}

/// Hashes the name of a property, for quick comparisons within one process. It
/// looks at the ends of the name only, and equal names are always compared
/// whole, so that a collision costs time and nothing else.
#[inline]
pub(super) fn hash_name(name: &str) -> u32 {
    let bytes = name.as_bytes();
    let len = bytes.len();
    let (head, tail) = if len >= 8 {
        (word(&bytes[..8]), word(&bytes[len - 8..]))
    } else if len >= 4 {
        (half(&bytes[..4]), half(&bytes[len - 4..]))
    } else {
        let fold = |word, byte: &u8| word << 8 | u64::from(*byte);
        (bytes.iter().fold(0, fold), 0)
    };
    let mixed =
        (head ^ tail.rotate_left(29) ^ ((len as u64) << 56)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as u32
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes were cut"))
}

fn half(bytes: &[u8]) -> u64 {
    u64::from(u32::from_le_bytes(
        bytes.try_into().expect("four bytes were cut"),
    ))
}

#[cfg(test)]
mod tests;
