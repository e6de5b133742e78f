//! Segment files: their header, their creation, and what is believed of them.
//!
//! ```text
//! header: magic version length first name_length name sum
//! frames
//! ```
//!
//! Only the last segment can end in a torn write, because a segment is synced
//! before the next one is made. A bad frame there is
//!
//! ```text
//! nothing valid follows                  -> torn: truncate
//! valid frames of the same write follow,
//!   and a block of it was never written  -> torn (power loss reorders): truncate
//! else                                   -> corrupt: refuse, change nothing
//! ```

use super::frame::{self, Damage, HEADER_BYTES, Header, StoredOrigin};
use crate::journal::JournalError;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Begins each segment; the byte that no text contains tells it from a text file.
const MAGIC: [u8; 8] = *b"TGSEG\xF7\r\n";

/// The format's version: raised by a change that this code could not read.
const VERSION: u32 = 1;

/// The fixed part of a header: magic, version, length, first, name's length.
const FIXED_BYTES: usize = 8 + 4 + 4 + 8 + 4;

/// The longest header: a collection's name is limited by its directory's.
const HEADER_LENGTH_MAX: usize = FIXED_BYTES + 255 + 4;

/// How much is read to look at a frame's header.
///
/// Holds some dozens of the smallest frames; of the usual ones of 256 KiB it wastes little.
const LOOK_BYTES: usize = 16 << 10;

/// The unit in which a disk writes all or nothing.
const SECTOR_BYTES: usize = 512;

const EXTENSION: &str = ".segment";
const UNFINISHED: &str = ".segment.new";

/// A segment file.
#[derive(Debug)]
pub(super) struct Segment {
    pub file: File,
    pub path: PathBuf,
    pub first: u64,
    /// Where its frames begin.
    pub header: u64,
}

/// What was cut off a segment because it had never been acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truncated {
    /// The segment's file.
    pub path: PathBuf,
    /// Where the file ends now.
    pub byte: u64,
    /// How many bytes were cut off.
    pub bytes: u64,
}

/// Returns the path of the segment that begins with an offset.
pub(super) fn path(directory: &Path, first: u64) -> PathBuf {
    directory.join(format!("{first:020}{EXTENSION}"))
}

/// Lists the segments of a journal's directory, and removes what a crash left of
/// one that was being made.
pub(super) fn list(directory: &Path) -> Result<Vec<u64>, JournalError> {
    let failed = |source| JournalError::io("listing", directory, source);
    let mut firsts = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or("");
        if let Some(digits) = name.strip_suffix(UNFINISHED)
            && number(digits).is_some()
        {
            // It had no frames yet: it gets its name only once it is whole.
            fs::remove_file(&path).map_err(|source| JournalError::io("removing", &path, source))?;
            continue;
        }
        let Some(first) = name.strip_suffix(EXTENSION).and_then(number) else {
            return Err(JournalError::Layout {
                path,
                reason: "not a file of a journal".to_owned(),
                help: "move it somewhere else",
            });
        };
        firsts.push(first);
    }
    firsts.sort_unstable();
    Ok(firsts)
}

fn number(digits: &str) -> Option<u64> {
    let plain = digits.len() == 20 && digits.bytes().all(|digit| digit.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

/// Syncs a directory: only then does a new file in it survive a crash.
pub(super) fn sync_directory(directory: &Path) -> Result<(), JournalError> {
    File::open(directory)
        .and_then(|opened| opened.sync_all())
        .map_err(|source| JournalError::io("syncing", directory, source))
}

impl Segment {
    /// Makes an empty segment, durably.
    ///
    /// It gets its name only when its header is on disk, so a named segment always
    /// has one and a bad header is corruption.
    pub(super) fn create(
        directory: &Path,
        collection: &str,
        first: u64,
    ) -> Result<Self, JournalError> {
        let path = path(directory, first);
        let unfinished = directory.join(format!("{first:020}{UNFINISHED}"));
        let header = encode(collection, first);
        let write = || {
            let mut file = File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .open(&unfinished)?;
            file.write_all(&header)?;
            file.sync_all()?;
            fs::rename(&unfinished, &path)?;
            Ok(file)
        };
        let file = write().map_err(|source| {
            // Not to leave a file behind on a full disk; if that fails, opening does it.
            drop(fs::remove_file(&unfinished));
            JournalError::io("creating", &path, source)
        })?;
        sync_directory(directory)?;
        Ok(Self {
            file,
            path,
            first,
            header: header.len() as u64,
        })
    }

    /// Opens a segment and checks its header.
    pub(super) fn open(
        directory: &Path,
        collection: &str,
        first: u64,
    ) -> Result<Self, JournalError> {
        let path = path(directory, first);
        let failed = |source| JournalError::io("opening", &path, source);
        let file = File::options()
            .read(true)
            .write(true)
            .open(&path)
            .map_err(failed)?;
        let mut bytes = Vec::new();
        read_at(&file, 0, HEADER_LENGTH_MAX, &mut bytes).map_err(failed)?;
        let header = check(&bytes, &path, collection, first)?;
        Ok(Self {
            file,
            path,
            first,
            header,
        })
    }

    /// Returns the file's length.
    pub(super) fn length(&self) -> Result<u64, JournalError> {
        let metadata = self.file.metadata();
        Ok(metadata
            .map_err(|source| self.failed("measuring", source))?
            .len())
    }

    pub(super) fn failed(&self, action: &'static str, source: io::Error) -> JournalError {
        JournalError::io(action, &self.path, source)
    }

    pub(super) fn corrupt(&self, byte: u64, reason: impl ToString) -> JournalError {
        JournalError::Corrupt {
            path: self.path.clone(),
            byte,
            reason: reason.to_string(),
        }
    }
}

fn encode(collection: &str, first: u64) -> Vec<u8> {
    let name = collection.as_bytes();
    let length = u32::try_from(FIXED_BYTES + name.len() + 4).expect("a name is short");
    let mut header = Vec::with_capacity(length as usize);
    header.extend_from_slice(&MAGIC);
    header.extend_from_slice(&VERSION.to_le_bytes());
    header.extend_from_slice(&length.to_le_bytes());
    header.extend_from_slice(&first.to_le_bytes());
    header.extend_from_slice(
        &u32::try_from(name.len())
            .expect("a name is short")
            .to_le_bytes(),
    );
    header.extend_from_slice(name);
    header.extend_from_slice(&crc32c::crc32c(&header).to_le_bytes());
    header
}

/// Checks a header against what it should be, and returns its length.
fn check(bytes: &[u8], path: &Path, collection: &str, first: u64) -> Result<u64, JournalError> {
    let corrupt = |reason: &str| JournalError::Corrupt {
        path: path.to_owned(),
        byte: 0,
        reason: reason.to_owned(),
    };
    if bytes.get(..8) != Some(&MAGIC) {
        return Err(corrupt("the file does not begin like a journal's segment"));
    }
    let number = |at: usize| bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    // The version before all else: a newer format may differ in everything that follows.
    let found = number(8).map(u32::from_le_bytes);
    match found {
        Some(VERSION) => {}
        Some(found) if found > VERSION => {
            return Err(JournalError::NewerFormat {
                path: path.to_owned(),
                found,
                known: VERSION,
            });
        }
        _ => return Err(corrupt("the segment's header has no known version")),
    }
    let want = encode(collection, first);
    if bytes.starts_with(&want) {
        return Ok(want.len() as u64);
    }
    let length = number(12).map_or(0, u32::from_le_bytes) as usize;
    let whole = bytes
        .get(..length)
        .and_then(|header| header.split_last_chunk::<4>());
    match whole {
        // Whole, but another's: a directory was renamed or copied, or a file system
        // takes two names that differ in case for one.
        Some((header, sum)) if crc32c::crc32c(header).to_le_bytes() == *sum => {
            Err(JournalError::Layout {
                path: path.to_owned(),
                reason: format!(
                    "a segment of another collection or offset ({:?}), not of {collection}",
                    String::from_utf8_lossy(header.get(FIXED_BYTES..).unwrap_or_default()),
                ),
                help: "put the file back where it belongs",
            })
        }
        _ => Err(corrupt(
            "the checksum of the segment's header does not match",
        )),
    }
}

/// Reads up to `length` bytes from `byte` on; fewer only at the end of the file.
pub(super) fn read_at(
    file: &File,
    byte: u64,
    length: usize,
    buffer: &mut Vec<u8>,
) -> io::Result<()> {
    buffer.resize(length, 0);
    let mut filled = 0;
    while filled < length {
        match file.read_at(&mut buffer[filled..], byte + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    buffer.truncate(filled);
    Ok(())
}

/// A frame that a scan came by.
pub(super) struct Scanned {
    pub header: Header,
    pub origin: StoredOrigin,
}

/// Where a scan ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScanEnd {
    /// The byte after the last good frame.
    pub byte: u64,
    /// The offset after it.
    pub next: u64,
    /// What is wrong there, unless the file ends there.
    pub damage: Option<Damage>,
}

/// Walks over a segment's frames: by their headers, or reading everything if `verify`.
pub(super) fn scan(
    segment: &Segment,
    verify: bool,
    mut visit: impl FnMut(Scanned),
) -> Result<ScanEnd, JournalError> {
    let length = segment.length()?;
    let mut end = ScanEnd {
        byte: segment.header,
        next: segment.first,
        damage: None,
    };
    let mut window = Window {
        segment,
        byte: 0,
        buffer: Vec::new(),
    };
    while end.byte < length {
        match window.frame(&end, length, verify)? {
            Ok(scanned) => {
                end.byte += scanned.header.frame_length() as u64;
                end.next = scanned.header.next();
                visit(scanned);
            }
            Err(damage) => {
                end.damage = Some(damage);
                break;
            }
        }
    }
    Ok(end)
}

/// A part of a segment in memory.
struct Window<'a> {
    segment: &'a Segment,
    byte: u64,
    buffer: Vec<u8>,
}

impl Window<'_> {
    /// Returns the bytes from `byte` on, at least `length` of them unless the file ends.
    fn bytes(&mut self, byte: u64, length: usize) -> Result<&[u8], JournalError> {
        let end = self.byte + self.buffer.len() as u64;
        if byte < self.byte || byte + length as u64 > end {
            read_at(
                &self.segment.file,
                byte,
                length.max(LOOK_BYTES),
                &mut self.buffer,
            )
            .map_err(|source| self.segment.failed("reading", source))?;
            self.byte = byte;
        }
        let from = usize::try_from(byte - self.byte).expect("the window is in memory");
        Ok(&self.buffer[from..])
    }

    fn frame(
        &mut self,
        end: &ScanEnd,
        file_length: u64,
        verify: bool,
    ) -> Result<Result<Scanned, Damage>, JournalError> {
        let mut bytes = self.bytes(end.byte, HEADER_BYTES)?;
        if let Some(fixed) = bytes.first_chunk::<HEADER_BYTES>() {
            let need = HEADER_BYTES + Header::origin_length_of(fixed);
            bytes = self.bytes(end.byte, need)?;
        }
        let header = match Header::decode(bytes) {
            Ok(header) if header.first != end.next || header.group > end.byte => {
                return Ok(Err(Damage::Contradiction));
            }
            Ok(header) => header,
            Err(damage) => return Ok(Err(damage)),
        };
        let origin = match header.origin(bytes) {
            Ok(origin) => origin,
            Err(damage) => return Ok(Err(damage)),
        };
        let length = header.frame_length();
        if end.byte + length as u64 > file_length {
            return Ok(Err(Damage::Incomplete));
        }
        if verify {
            let bytes = self.bytes(end.byte, length)?;
            if let Err(damage) = header.verify(bytes) {
                return Ok(Err(damage));
            }
        }
        Ok(Ok(Scanned { header, origin }))
    }
}

/// Cuts a torn write off the last segment, or finds that it is corrupt.
pub(super) fn repair(segment: &Segment, end: &ScanEnd) -> Result<Truncated, JournalError> {
    let damage = end.damage.expect("only a damaged segment is repaired");
    let length = segment.length()?;
    let bytes = length - end.byte;
    let mut tail = Vec::new();
    let tail_length = usize::try_from(bytes).unwrap_or(usize::MAX);
    read_at(&segment.file, end.byte, tail_length, &mut tail)
        .map_err(|source| segment.failed("reading", source))?;
    if let Some(evidence) = evidence(&tail, end) {
        return Err(segment.corrupt(
            end.byte,
            format!("{damage}, yet there is a good one at byte {evidence}"),
        ));
    }
    segment
        .file
        .set_len(end.byte)
        .and_then(|()| segment.file.sync_all())
        .map_err(|source| segment.failed("truncating", source))?;
    Ok(Truncated {
        path: segment.path.clone(),
        byte: end.byte,
        bytes,
    })
}

/// Returns the byte of a good frame which shows that what is bad at the beginning of
/// `tail` had been acknowledged.
///
/// A good frame right there is out of its place: something before it is missing.
fn evidence(tail: &[u8], end: &ScanEnd) -> Option<u64> {
    let mut first_good = None;
    let mut at = 0;
    while let Some(found) = memchr::memmem::find(&tail[at..], &frame::MAGIC) {
        at += found;
        let byte = end.byte + at as u64;
        let header = Header::decode(&tail[at..])
            .ok()
            .filter(|header| header.verify(&tail[at..]).is_ok());
        let Some(header) = header else {
            at += 1;
            continue;
        };
        if header.group > end.byte {
            // Written after the bad frame was durable.
            return Some(byte);
        }
        first_good.get_or_insert((at, byte));
        at += header.frame_length();
    }
    // All good ones are of the write that brought the bad one. Its blocks reach the
    // disk in any order; one that did not reads as zeros, which no text contains.
    let (at, byte) = first_good?;
    (!has_hole(&tail[..at], end.byte)).then_some(byte)
}

/// Tells whether a whole sector of `bytes`, which begin at byte `from` of their file,
/// is zeros.
fn has_hole(bytes: &[u8], from: u64) -> bool {
    let sector = SECTOR_BYTES as u64;
    let skip = usize::try_from(from.next_multiple_of(sector) - from).expect("less than a sector");
    bytes
        .get(skip..)
        .unwrap_or_default()
        .chunks_exact(SECTOR_BYTES)
        .any(|sector| sector.iter().all(|&byte| byte == 0))
}
