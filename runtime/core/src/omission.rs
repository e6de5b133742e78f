//! Decides what becomes of a document that cannot be stored.
//!
//! ```text
//! refusal -> decide -> halt: the task fails, and says why
//!                  '-> omission: noted in the hint -> the next session replays the
//!                      same extents without it -> counted at the commit
//! ```
//!
//! The note is durable before the replay begins, and the replay reads exactly what
//! was read, so that a transaction that was left and begun anew any number of times
//! leaves out the same documents and counts each once.

use serde::{Deserialize, Serialize};

use crate::layout::{Binding, Key};

/// How many documents one transaction leaves out at most.
///
/// Each costs a session and a replay. A transaction with more of them has no bad
/// documents but a column that does not fit, and somebody should hear of it.
pub const OMISSIONS_MAX: usize = 100;

/// How many bytes of keys and reasons one transaction notes at most.
///
/// The notes are in the record, which is written several times a transaction, and
/// which a store may split above half a mebibyte.
pub const OMISSION_BYTES_MAX: usize = 256 << 10;

/// What a binding does about documents that cannot be stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnError {
    /// The task fails, and nothing is lost.
    #[default]
    Halt,
    /// They are left out, and counted.
    Skip,
    /// They are left out, counted, and kept in a collection of their own.
    DeadLetter,
}

/// Which document is refused, for its binding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Refused {
    /// What the transaction's documents of a key come to.
    Key(Key),
    /// One document, which never came to be combined, by its offset in the journal.
    Offset(u64),
}

/// A document that cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The binding's place in the layout.
    pub binding: u32,
    /// Which document it is, unless the connector does not say it.
    pub refused: Option<Refused>,
    /// Why, for people.
    pub reason: String,
    /// The field that it is about, if one is.
    pub field: Option<String>,
    /// When, in microseconds since the Unix epoch.
    pub at_micros: i64,
}

/// A document that a transaction leaves out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Omission {
    /// Its binding.
    pub binding: Binding,
    /// Which one it is.
    pub refused: Refused,
    /// Why, for people.
    pub reason: String,
    /// The field that it is about, if one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// When it was refused, in microseconds since the Unix epoch.
    pub at_micros: i64,
    /// Whether it is kept as a dead letter.
    pub dead_letter: bool,
}

impl Omission {
    fn bytes(&self) -> usize {
        let key = match &self.refused {
            // As it is written, in hexadecimal digits.
            Refused::Key(key) => 2 * key.0.len(),
            Refused::Offset(_) => 0,
        };
        key + self.reason.len() + self.field.as_ref().map_or(0, String::len)
    }
}

/// Documents that were left out since the task first ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeftOut {
    /// Those that are nowhere but in the collection.
    pub skipped: u64,
    /// Those that are kept as dead letters.
    pub dead_letters: u64,
}

impl LeftOut {
    /// Says whether there is none.
    pub fn is_none(&self) -> bool {
        *self == LeftOut::default()
    }

    /// Counts what a transaction left out.
    pub(crate) fn count(&mut self, omissions: &[Omission]) {
        let letters = omissions.iter().filter(|it| it.dead_letter).count() as u64;
        self.dead_letters += letters;
        self.skipped += omissions.len() as u64 - letters;
    }
}

/// Why a task halts at a document that cannot be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Halt {
    /// The binding says so.
    #[error(
        "the binding's onError is halt; with skip or deadLetter the task goes on without such \
         documents"
    )]
    OnError,
    /// It is not known which one it is.
    #[error(
        "it cannot be left out as the binding's onError says, because the connector does not say \
         which of the documents that it was given it means"
    )]
    Unidentified,
    /// It was left out, and refused all the same.
    #[error(
        "it was left out and is refused all the same; this is a bug in the connector or in tidegate"
    )]
    LeftOutAlready,
    /// The transaction leaves out as many as it may.
    #[error(
        "it is not left out as the binding's onError says, because its transaction leaves out \
         {before} documents already; with so many it is rather a field that does not fit: exclude \
         it, widen its schema, or bind with a later notBefore"
    )]
    TooMany {
        /// How many.
        before: usize,
    },
}

/// Decides whether a document is left out, beside those that its transaction
/// leaves out `before`.
pub(crate) fn decide(
    on_error: OnError,
    refusal: Refusal,
    binding: &Binding,
    before: &[Omission],
) -> Result<Omission, Halt> {
    if on_error == OnError::Halt {
        return Err(Halt::OnError);
    }
    let omission = Omission {
        binding: binding.clone(),
        refused: refusal.refused.ok_or(Halt::Unidentified)?,
        reason: refusal.reason,
        field: refusal.field,
        at_micros: refusal.at_micros,
        dead_letter: on_error == OnError::DeadLetter,
    };
    let same = |it: &Omission| it.binding == omission.binding && it.refused == omission.refused;
    if before.iter().any(same) {
        return Err(Halt::LeftOutAlready);
    }
    let bytes: usize = before.iter().chain([&omission]).map(Omission::bytes).sum();
    if before.len() >= OMISSIONS_MAX || bytes > OMISSION_BYTES_MAX {
        return Err(Halt::TooMany {
            before: before.len(),
        });
    }
    Ok(omission)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str) -> Binding {
        Binding {
            resource: vec![name.to_owned()],
            backfill: 0,
        }
    }

    fn omission(refused: Refused) -> Omission {
        Omission {
            binding: table("a"),
            refused,
            reason: "it is bad".to_owned(),
            field: None,
            at_micros: 7,
            dead_letter: false,
        }
    }

    #[test]
    fn refusals_table() {
        struct Case {
            name: &'static str,
            on_error: OnError,
            refused: Option<Refused>,
            reason: String,
            before: Vec<Omission>,
            want: Result<Omission, Halt>,
        }
        let key = |key: u8| Refused::Key(Key(vec![key]));
        let mid = || Case {
            name: "skipped",
            on_error: OnError::Skip,
            refused: Some(key(1)),
            reason: "it is bad".to_owned(),
            before: Vec::new(),
            want: Ok(omission(key(1))),
        };
        let others = |count: usize| (0..count as u64).map(|it| omission(Refused::Offset(it)));
        let elsewhere = Omission {
            binding: table("b"),
            ..omission(key(1))
        };
        let long = "x".repeat(OMISSION_BYTES_MAX);
        let cases = [
            mid(),
            Case {
                name: "kept",
                on_error: OnError::DeadLetter,
                want: Ok(Omission {
                    dead_letter: true,
                    ..omission(key(1))
                }),
                ..mid()
            },
            Case {
                name: "halts unless told otherwise",
                on_error: OnError::default(),
                want: Err(Halt::OnError),
                ..mid()
            },
            Case {
                name: "one that nobody can name",
                refused: None,
                want: Err(Halt::Unidentified),
                ..mid()
            },
            Case {
                name: "a document beside a key",
                refused: Some(Refused::Offset(1)),
                before: vec![omission(key(1))],
                want: Ok(omission(Refused::Offset(1))),
                ..mid()
            },
            Case {
                name: "one that was left out, in vain",
                before: vec![omission(key(0)), omission(key(1))],
                want: Err(Halt::LeftOutAlready),
                ..mid()
            },
            Case {
                name: "the same key of another binding",
                before: vec![elsewhere],
                ..mid()
            },
            Case {
                name: "the last one that there is room for",
                before: others(OMISSIONS_MAX - 1).collect(),
                ..mid()
            },
            Case {
                name: "one too many",
                before: others(OMISSIONS_MAX).collect(),
                want: Err(Halt::TooMany {
                    before: OMISSIONS_MAX,
                }),
                ..mid()
            },
            Case {
                name: "too much to note",
                reason: long,
                want: Err(Halt::TooMany { before: 0 }),
                ..mid()
            },
        ];
        for case in cases {
            let refusal = Refusal {
                binding: 0,
                refused: case.refused,
                reason: case.reason,
                field: None,
                at_micros: 7,
            };
            let got = decide(case.on_error, refusal, &table("a"), &case.before);
            assert_eq!(got, case.want, "{}", case.name);
        }
    }

    #[test]
    fn counts_add_up() {
        let mut left_out = LeftOut::default();
        assert!(left_out.is_none());
        let letter = Omission {
            dead_letter: true,
            ..omission(Refused::Offset(0))
        };
        let skipped = omission(Refused::Offset(1));
        left_out.count(&[letter, skipped.clone(), skipped]);
        let want = LeftOut {
            skipped: 2,
            dead_letters: 1,
        };
        assert_eq!(left_out, want);
    }
}
