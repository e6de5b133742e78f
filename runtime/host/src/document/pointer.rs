//! JSON pointers (RFC 6901), and finding many of them in one walk.

use super::parse::{Document, hash_name};
use super::value::{Kind, Value};

/// A text that is not a JSON pointer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pointer:?} is not a JSON pointer: {reason}")]
pub struct PointerError {
    /// The text.
    pub pointer: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// A parsed JSON pointer: the names and indices on the way down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pointer(Vec<String>);

impl Pointer {
    /// Parses a pointer. The empty text points to the document itself.
    ///
    /// # Errors
    ///
    /// If it does not start with `/`, or `~` is not followed by 0 or 1.
    pub fn parse(text: &str) -> Result<Self, PointerError> {
        let error = |reason| PointerError {
            pointer: text.to_owned(),
            reason,
        };
        let Some(tokens) = text.strip_prefix('/') else {
            return match text {
                "" => Ok(Pointer::default()),
                _ => Err(error("it must be empty or start with `/`")),
            };
        };
        let token = |token: &str| {
            let mut pieces = token.split('~');
            let mut parsed = pieces.next().unwrap_or_default().to_owned();
            for piece in pieces {
                parsed.push(match piece.as_bytes().first() {
                    Some(b'0') => '~',
                    Some(b'1') => '/',
                    _ => return Err(error("`~` must be followed by 0 or 1")),
                });
                parsed.push_str(&piece[1..]);
            }
            Ok(parsed)
        };
        Ok(Pointer(
            tokens.split('/').map(token).collect::<Result<_, _>>()?,
        ))
    }

    /// The names and indices on the way down.
    pub fn tokens(&self) -> &[String] {
        &self.0
    }
}

/// Appends one name to the text of a pointer.
pub(super) fn push_token(pointer: &mut String, token: &str) {
    pointer.push('/');
    pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
}

/// Finds the values at a fixed list of pointers.
#[derive(Clone, Debug)]
pub struct Locator {
    root: Branch,
    count: usize,
}

/// What is wanted at one location and below it.
#[derive(Clone, Debug, Default)]
struct Branch {
    /// Positions in the list of pointers of those that end here.
    ends: Vec<usize>,
    children: Vec<Child>,
    /// Positions of children by hash of their name; [`EMPTY`] where there is
    /// none. A power of two, at least twice the number of children.
    table: Vec<usize>,
}

const EMPTY: usize = usize::MAX;

#[derive(Clone, Debug)]
struct Child {
    token: String,
    /// What the token means to an array.
    index: Option<usize>,
    branch: Branch,
}

impl Locator {
    /// Prepares to find the given pointers.
    pub fn new<'p>(pointers: impl IntoIterator<Item = &'p Pointer>) -> Self {
        let mut root = Branch::default();
        let mut count = 0;
        for (end, pointer) in pointers.into_iter().enumerate() {
            root.add(pointer.tokens(), end);
            count = end + 1;
        }
        root.index();
        Locator { root, count }
    }

    /// Finds what a document has at each pointer.
    #[inline]
    pub fn find<'l, 'd>(&self, document: &Document<'d>, found: &'l mut Locations) -> Found<'l, 'd> {
        found.0.clear();
        found.0.resize(self.count, EMPTY);
        self.root.find(document.root(), &mut found.0);
        Found {
            root: document.root(),
            positions: &found.0,
        }
    }
}

/// Memory for finding, to be used again for the next document.
#[derive(Clone, Debug, Default)]
pub struct Locations(Vec<usize>);

/// What a document has at each of a [`Locator`]'s pointers.
#[derive(Clone, Copy, Debug)]
pub struct Found<'l, 'd> {
    root: Value<'d>,
    positions: &'l [usize],
}

impl<'d> Found<'_, 'd> {
    /// The value at the pointer of a position in the list.
    #[inline]
    pub fn get(&self, pointer: usize) -> Option<Value<'d>> {
        match self.positions[pointer] {
            EMPTY => None,
            at => Some(self.root.at(at)),
        }
    }
}

impl Branch {
    fn add(&mut self, tokens: &[String], end: usize) {
        let Some((token, rest)) = tokens.split_first() else {
            self.ends.push(end);
            return;
        };
        let at = self.children.iter().position(|child| child.token == *token);
        let at = at.unwrap_or_else(|| {
            self.children.push(Child {
                token: token.clone(),
                index: array_index(token),
                branch: Branch::default(),
            });
            self.children.len() - 1
        });
        self.children[at].branch.add(rest, end);
    }

    fn index(&mut self) {
        self.table = vec![EMPTY; (self.children.len() * 2).next_power_of_two()];
        let mask = self.table.len() - 1;
        for at in 0..self.children.len() {
            let child = &mut self.children[at];
            child.branch.index();
            let mut slot = hash_name(&child.token) as usize & mask;
            while self.table[slot] != EMPTY {
                slot = (slot + 1) & mask;
            }
            self.table[slot] = at;
        }
    }

    fn find(&self, value: Value<'_>, found: &mut [usize]) {
        for end in &self.ends {
            found[*end] = value.position();
        }
        if self.children.is_empty() {
            return;
        }
        match value.kind() {
            Kind::Object => {
                let mut left = self.children.len();
                for (name, value) in value.members() {
                    if let Some(child) = self.child(name) {
                        child.branch.find(value, found);
                        left -= 1;
                        if left == 0 {
                            break;
                        }
                    }
                }
            }
            Kind::Array => {
                for child in &self.children {
                    let element = child.index.and_then(|index| value.elements().nth(index));
                    if let Some(element) = element {
                        child.branch.find(element, found);
                    }
                }
            }
            _ => {}
        }
    }

    #[inline]
    fn child(&self, name: Value<'_>) -> Option<&Child> {
        let mask = self.table.len() - 1;
        let mut slot = name.name_hash() as usize & mask;
        loop {
            let child = self.children.get(self.table[slot])?;
            if name.is_name(&child.token) {
                return Some(child);
            }
            slot = (slot + 1) & mask;
        }
    }
}

/// What a token means to an array: digits without leading zeros. `-`, the
/// element behind the last one, is never there.
fn array_index(token: &str) -> Option<usize> {
    let plain = token == "0" || !token.starts_with('0');
    let digits = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit());
    (plain && digits).then(|| token.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::super::Tape;
    use super::*;

    #[test]
    fn pointers_find_what_rfc_6901_says() {
        let document =
            br#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"m~n":8,"01":{"~1":5},"k\"l":6," ":7}"#;
        let cases = [
            ("", Some(std::str::from_utf8(document).unwrap())),
            ("/foo", Some(r#"["bar","baz"]"#)),
            ("/foo/0", Some(r#""bar""#)),
            ("/foo/1", Some(r#""baz""#)),
            ("/foo/2", None),
            ("/foo/01", None),
            ("/foo/-", None),
            ("/foo/+1", None),
            ("/foo/18446744073709551616", None),
            ("/", Some("0")),
            ("/a~1b", Some("1")),
            ("/c%d", Some("2")),
            ("/m~0n", Some("8")),
            ("/01/~01", Some("5")),
            ("/k\"l", Some("6")),
            ("/ ", Some("7")),
            ("//", None),
            ("/missing/x", None),
        ];
        let pointers: Vec<_> = cases
            .iter()
            .map(|(text, _)| Pointer::parse(text).unwrap())
            .collect();
        let (mut tape, mut locations) = (Tape::default(), Locations::default());
        let parsed = tape.parse(document).unwrap();
        let found = Locator::new(&pointers).find(&parsed, &mut locations);
        for (at, (pointer, want)) in cases.iter().enumerate() {
            assert_eq!(found.get(at).map(|value| value.text()), *want, "{pointer}");
        }
    }

    #[test]
    fn what_is_not_a_pointer_is_refused() {
        for text in ["a", "a/b", "/~", "/a~2", "/~/b"] {
            assert_eq!(Pointer::parse(text).unwrap_err().pointer, text);
        }
    }
}
