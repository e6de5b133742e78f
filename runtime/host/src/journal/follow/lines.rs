//! Splits an input into lines as it is read. Pure.
//!
//! ```text
//! fill(bytes) -> next() -> the caller judges the line -> accept(line) -> position()
//! ```
//!
//! A line that is not accepted stays: the position is before it.

use super::prefix::Prefix;
use super::resume::Resume;
use crate::journal::{DOCUMENT_BYTES_MAX, InputPosition};
use std::ops::Range;

/// The longest line: a document, and some room for a byte order mark, a carriage
/// return or trailing blanks, so that whatever is at fault is said by the right error.
const LINE_BYTES_MAX: usize = DOCUMENT_BYTES_MAX + 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Lines of an input, from some position on.
#[derive(Debug)]
pub(super) struct Lines {
    /// What is before the position.
    prefix: Prefix,
    /// The number of lines before it.
    line: u64,
    /// Whether the last of them was taken without its newline.
    newline_owed: bool,
    buffer: Vec<u8>,
    /// How much of the buffer is in the prefix.
    prefixed: usize,
    /// Where the next line begins in the buffer.
    start: usize,
    /// Up to where there is no newline after `start`.
    searched: usize,
}

/// A line that holds a document.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Its number, from 1.
    pub number: u64,
    text: Range<usize>,
    end: usize,
    newline: bool,
}

/// Why there is no next line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineFault {
    /// The line is longer than a document may be.
    TooLong {
        /// Its number.
        line: u64,
    },
    /// The line was taken without its newline, and now goes on.
    Extended {
        /// Its number.
        line: u64,
    },
}

impl Lines {
    pub(super) fn new(resume: Resume) -> Self {
        Self {
            prefix: resume.prefix,
            line: resume.line,
            newline_owed: resume.newline_owed,
            buffer: Vec::new(),
            prefixed: 0,
            start: 0,
            searched: 0,
        }
    }

    /// Lets `read` add bytes to the buffer.
    pub(super) fn fill<T>(&mut self, read: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        self.settle();
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.prefixed = 0;
        self.start = 0;
        read(&mut self.buffer)
    }

    /// Returns the next line that is not blank, or `None` if it is not all there.
    ///
    /// With `take_last`, what is there counts as a line without its newline.
    pub(super) fn next(&mut self, take_last: bool) -> Option<Result<Line, LineFault>> {
        loop {
            let newline = memchr::memchr(b'\n', &self.buffer[self.searched..]);
            let newline = newline.map(|at| self.searched + at);
            let end = newline.unwrap_or(self.buffer.len());
            self.searched = end;
            let text = self.trimmed(end);
            if self.newline_owed {
                if !text.is_empty() {
                    return Some(Err(LineFault::Extended { line: self.line }));
                }
                self.consume(newline? + 1);
                self.newline_owed = false;
                continue;
            }
            let number = self.line + 1;
            if end - self.start > LINE_BYTES_MAX || text.len() > DOCUMENT_BYTES_MAX {
                return Some(Err(LineFault::TooLong { line: number }));
            }
            match newline {
                Some(newline) if text.is_empty() => {
                    self.consume(newline + 1);
                    self.line = number;
                }
                None if text.is_empty() || !take_last => return None,
                _ => {
                    return Some(Ok(Line {
                        number,
                        text,
                        end: newline.map_or(end, |newline| newline + 1),
                        newline: newline.is_some(),
                    }));
                }
            }
        }
    }

    /// Returns a line's document.
    pub(super) fn text(&self, line: &Line) -> &[u8] {
        &self.buffer[line.text.clone()]
    }

    /// Moves the position behind a line.
    pub(super) fn accept(&mut self, line: &Line) {
        self.consume(line.end);
        self.line = line.number;
        self.newline_owed = !line.newline;
    }

    /// Returns the position behind the last line accepted.
    pub(super) fn position(&mut self) -> InputPosition {
        self.settle();
        InputPosition {
            byte: self.prefix.length(),
            line: self.line,
            fingerprint: self.prefix.fingerprint(),
        }
    }

    fn consume(&mut self, end: usize) {
        self.start = end;
        self.searched = end;
    }

    fn settle(&mut self) {
        self.prefix.advance(&self.buffer[self.prefixed..self.start]);
        self.prefixed = self.start;
    }

    /// Returns the text between the line's start and `end`, without what is around it.
    fn trimmed(&self, end: usize) -> Range<usize> {
        let mut start = self.start;
        let at_beginning = self.prefix.length() == 0 && self.prefixed == self.start;
        if at_beginning && self.buffer[start..end].starts_with(BYTE_ORDER_MARK) {
            start += BYTE_ORDER_MARK.len();
        }
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r');
        let line = &self.buffer[start..end];
        let before = line.iter().take_while(|byte| blank(byte)).count();
        let after = line[before..]
            .iter()
            .rev()
            .take_while(|byte| blank(byte))
            .count();
        start + before..end - after
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::follow::resume::{Facts, resume};
    use proptest::prelude::*;

    fn at_beginning() -> Lines {
        let facts = Facts {
            length: 0,
            prefix: None,
        };
        Lines::new(resume(None, facts).expect("nothing was read"))
    }

    /// Reads `content` in pieces, and returns the lines with their numbers, how it
    /// ended, and the position.
    fn split(
        content: &[u8],
        piece: usize,
        take_last: bool,
    ) -> (Vec<(u64, String)>, Option<LineFault>, InputPosition) {
        let mut lines = at_beginning();
        let mut found = Vec::new();
        let mut pieces = content.chunks(piece);
        loop {
            let at_end = pieces.len() == 0;
            match lines.next(take_last && at_end) {
                Some(Ok(line)) => {
                    let text = String::from_utf8_lossy(lines.text(&line)).into_owned();
                    found.push((line.number, text));
                    lines.accept(&line);
                }
                Some(Err(fault)) => return (found, Some(fault), lines.position()),
                None => match pieces.next() {
                    Some(piece) => lines.fill(|buffer| buffer.extend_from_slice(piece)),
                    None => return (found, None, lines.position()),
                },
            }
        }
    }

    #[test]
    fn split_table() {
        struct Case {
            name: &'static str,
            content: &'static str,
            take_last: bool,
            want: &'static [(u64, &'static str)],
            byte: u64,
            line: u64,
        }
        let mid = Case {
            name: "two lines",
            content: "a\nb\n",
            take_last: false,
            want: &[(1, "a"), (2, "b")],
            byte: 4,
            line: 2,
        };
        for case in [
            Case {
                name: "empty",
                content: "",
                want: &[],
                byte: 0,
                line: 0,
                ..mid
            },
            Case {
                name: "carriage returns",
                content: "a\r\nb\r\n",
                byte: 6,
                ..mid
            },
            Case {
                name: "last waits",
                content: "a\nb\nc",
                ..mid
            },
            Case {
                name: "last taken",
                content: "a\nb\nc",
                take_last: true,
                want: &[(1, "a"), (2, "b"), (3, "c")],
                byte: 5,
                line: 3,
            },
            Case {
                name: "blank last is not taken",
                content: "a\nb\n \r",
                take_last: true,
                ..mid
            },
            Case {
                name: "blank lines count",
                content: "\n \r\na\n\t\nb\n\n",
                want: &[(3, "a"), (5, "b")],
                byte: 11,
                line: 6,
                ..mid
            },
            Case {
                name: "byte order mark",
                content: "\u{FEFF}a\nb\n",
                byte: 7,
                ..mid
            },
            Case {
                name: "byte order mark elsewhere",
                content: "a\n\u{FEFF}b\n",
                want: &[(1, "a"), (2, "\u{FEFF}b")],
                byte: 7,
                ..mid
            },
            Case {
                name: "only a mark",
                content: "\u{FEFF}",
                take_last: true,
                want: &[],
                byte: 0,
                line: 0,
            },
            mid,
        ] {
            for piece in 1..=case.content.len().max(1) {
                let (found, fault, position) =
                    split(case.content.as_bytes(), piece, case.take_last);
                let found: Vec<_> = found
                    .iter()
                    .map(|(line, text)| (*line, text.as_str()))
                    .collect();
                assert_eq!(found, case.want, "{} by {piece}", case.name);
                assert_eq!(fault, None, "{}", case.name);
                assert_eq!(
                    (position.byte, position.line),
                    (case.byte, case.line),
                    "{}",
                    case.name
                );
            }
        }
    }

    #[test]
    fn too_long() {
        struct Case {
            name: &'static str,
            content: Vec<u8>,
            want: Option<u64>,
        }
        let line = |bytes: usize| [b"1\n", "x".repeat(bytes).as_bytes(), b" \r\n2\n"].concat();
        for case in [
            Case {
                name: "longest",
                content: line(DOCUMENT_BYTES_MAX),
                want: None,
            },
            Case {
                name: "one more",
                content: line(DOCUMENT_BYTES_MAX + 1),
                want: Some(2),
            },
            Case {
                name: "no end",
                content: vec![b'x'; LINE_BYTES_MAX + 1],
                want: Some(1),
            },
            Case {
                name: "blanks without end",
                content: vec![b' '; LINE_BYTES_MAX + 1],
                want: Some(1),
            },
        ] {
            let (_, fault, _) = split(&case.content, 8 << 20, false);
            let want = case.want.map(|line| LineFault::TooLong { line });
            assert_eq!(fault, want, "{}", case.name);
        }
    }

    #[test]
    fn newline_owed() {
        struct Case {
            name: &'static str,
            then: &'static str,
            want: Result<&'static [&'static str], LineFault>,
        }
        let extended = Err(LineFault::Extended { line: 1 });
        for case in [
            Case {
                name: "nothing",
                then: "",
                want: Ok(&[]),
            },
            Case {
                name: "the newline",
                then: "\n",
                want: Ok(&[]),
            },
            Case {
                name: "half of it",
                then: "\r",
                want: Ok(&[]),
            },
            Case {
                name: "and a line",
                then: "\r\nb\n",
                want: Ok(&["2 b"]),
            },
            Case {
                name: "the line goes on",
                then: "3\n",
                want: extended,
            },
            Case {
                name: "and has no end",
                then: "3",
                want: extended,
            },
        ] {
            let mut lines = at_beginning();
            lines.fill(|buffer| buffer.extend_from_slice(b"12"));
            let last = lines.next(true).expect("a line").expect("a good one");
            lines.accept(&last);
            lines.fill(|buffer| buffer.extend_from_slice(case.then.as_bytes()));
            let mut found = Vec::new();
            let result = loop {
                match lines.next(false) {
                    None => break Ok(()),
                    Some(Err(fault)) => break Err(fault),
                    Some(Ok(line)) => {
                        let text = String::from_utf8_lossy(lines.text(&line)).into_owned();
                        found.push(format!("{} {text}", line.number));
                        lines.accept(&line);
                    }
                }
            };
            match case.want {
                Ok(want) => assert_eq!(
                    (result, found.as_slice()),
                    (
                        Ok(()),
                        &want.iter().map(|s| s.to_string()).collect::<Vec<_>>()[..]
                    ),
                    "{}",
                    case.name
                ),
                Err(fault) => assert_eq!(result, Err(fault), "{}", case.name),
            }
        }
    }

    proptest! {
        /// However the content is cut, and wherever reading is taken up again, the
        /// lines are the same.
        #[test]
        fn any_cut(content in "[ab\\r\\n ]{0,60}", piece in 1_usize..20, stop in 0_usize..20) {
            let (whole, _, end) = split(content.as_bytes(), 1 << 10, false);
            let (cut, _, cut_end) = split(content.as_bytes(), piece, false);
            prop_assert_eq!(&cut, &whole);
            prop_assert_eq!(cut_end, end);

            let stop = content.len().min(stop);
            let (mut first, _, position) = split(&content.as_bytes()[..stop], piece, false);
            let byte = usize::try_from(position.byte).expect("small");
            let mut prefix = Prefix::default();
            prefix.advance(&content.as_bytes()[..byte]);
            let facts = Facts { length: content.len() as u64, prefix: Some(prefix) };
            let mut lines = Lines::new(resume(Some(position), facts).expect("the same file"));
            lines.fill(|buffer| buffer.extend_from_slice(&content.as_bytes()[byte..]));
            while let Some(Ok(line)) = lines.next(false) {
                first.push((line.number, String::from_utf8_lossy(lines.text(&line)).into_owned()));
                lines.accept(&line);
            }
            prop_assert_eq!(first, whole);
            prop_assert_eq!(lines.position(), end);
        }
    }
}
