//! Decides whether an input can be read on from where it was left. Pure.

use super::prefix::Prefix;
use crate::journal::InputPosition;

/// What is known of a file beside the position in it.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    /// The file's length.
    pub length: u64,
    /// The file's content before the position, if it is long enough to have it.
    pub prefix: Option<Prefix>,
}

/// Where to read on.
#[derive(Debug, Clone)]
pub(super) struct Resume {
    /// What has been read.
    pub prefix: Prefix,
    /// The number of lines in it.
    pub line: u64,
    /// Whether its last line was taken without a newline, which is then still to come.
    pub newline_owed: bool,
}

/// Why the file is not the one that was read before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is shorter than what was read of it.
    Truncated,
    /// It has other content there.
    Replaced,
}

/// Decides where to read a file on, given how far it was read before.
pub(super) fn resume(position: Option<InputPosition>, facts: Facts) -> Result<Resume, Refusal> {
    let Some(position) = position else {
        return Ok(Resume {
            prefix: Prefix::default(),
            line: 0,
            newline_owed: false,
        });
    };
    let prefix = match facts.prefix {
        Some(prefix) if facts.length >= position.byte => prefix,
        _ => return Err(Refusal::Truncated),
    };
    if prefix.fingerprint() != position.fingerprint {
        return Err(Refusal::Replaced);
    }
    Ok(Resume {
        line: position.line,
        newline_owed: prefix.last().is_some_and(|last| last != b'\n'),
        prefix,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(content: &[u8]) -> Prefix {
        let mut prefix = Prefix::default();
        prefix.advance(content);
        prefix
    }

    /// What a follower that had read `read` finds when the file is `now`.
    fn decide(read: Option<&str>, now: &str) -> Result<(u64, bool), Refusal> {
        let position = read.map(|read| InputPosition {
            byte: read.len() as u64,
            line: 7,
            fingerprint: prefix(read.as_bytes()).fingerprint(),
        });
        let facts = Facts {
            length: now.len() as u64,
            prefix: now.as_bytes().get(..read.unwrap_or("").len()).map(prefix),
        };
        resume(position, facts).map(|resume| (resume.prefix.length(), resume.newline_owed))
    }

    #[test]
    fn resume_table() {
        struct Case {
            name: &'static str,
            read: Option<&'static str>,
            now: &'static str,
            want: Result<(u64, bool), Refusal>,
        }
        let mid = Case {
            name: "nothing new",
            read: Some("1\n2\n"),
            now: "1\n2\n",
            want: Ok((4, false)),
        };
        for case in [
            Case {
                name: "not begun",
                read: None,
                now: "1\n",
                want: Ok((0, false)),
            },
            Case {
                name: "not begun, empty",
                read: None,
                now: "",
                want: Ok((0, false)),
            },
            Case {
                name: "only blank so far",
                read: Some(""),
                now: "1\n",
                want: Ok((0, false)),
            },
            Case {
                name: "grown",
                now: "1\n2\n3\n",
                ..mid
            },
            Case {
                name: "changed behind",
                now: "1\n2\nx",
                ..mid
            },
            Case {
                name: "shorter",
                now: "1\n2",
                want: Err(Refusal::Truncated),
                ..mid
            },
            Case {
                name: "empty",
                now: "",
                want: Err(Refusal::Truncated),
                ..mid
            },
            Case {
                name: "other, same length",
                now: "1\n3\n",
                want: Err(Refusal::Replaced),
                ..mid
            },
            Case {
                name: "other, longer",
                now: "9\n2\n3\n",
                want: Err(Refusal::Replaced),
                ..mid
            },
            Case {
                name: "taken without newline",
                read: Some("1\n2"),
                now: "1\n2",
                want: Ok((3, true)),
            },
            Case {
                name: "newline came",
                read: Some("1\n2"),
                now: "1\n2\n3",
                want: Ok((3, true)),
            },
            mid,
        ] {
            assert_eq!(decide(case.read, case.now), case.want, "{}", case.name);
        }
    }
}
