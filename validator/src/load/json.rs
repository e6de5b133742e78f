//! JSON into the tree: a reader of its own, because YAML parsers refuse some valid JSON.

use super::tree::{Entry, Kind, Node, Span, number};
use super::yaml::{DEPTH_MAX, Flaw, Parsed};
use crate::diagnostic::Code;
use std::collections::BTreeMap;

/// Reads a file.
pub(super) fn read(file: u32, text: &str) -> Parsed {
    let mut reader = Reader {
        file,
        rest: text,
        line: 1,
        column: 1,
        flaws: Vec::new(),
        dropped: Vec::new(),
    };
    let result = reader.document();
    let (mut flaws, dropped) = (reader.flaws, reader.dropped);
    let tree = result.map_err(|flaw| flaws.push(flaw)).ok();
    Parsed {
        tree,
        flaws,
        dropped,
    }
}

struct Reader<'a> {
    file: u32,
    rest: &'a str,
    line: u32,
    column: u32,
    flaws: Vec<Flaw>,
    dropped: Vec<Node>,
}

impl Reader<'_> {
    fn document(&mut self) -> Result<Node, Flaw> {
        self.space();
        let root = self.value(0)?;
        self.space();
        if self.rest.is_empty() {
            Ok(root)
        } else {
            Err(self.flaw("expected the end of the file"))
        }
    }

    fn here(&self) -> Span {
        Span {
            file: self.file,
            line: self.line,
            column: self.column,
            end_line: self.line,
            end_column: self.column,
        }
    }

    fn flaw(&self, message: &str) -> Flaw {
        Flaw::new(
            Code::Syntax,
            self.here(),
            format!("this is not valid JSON: {message}"),
        )
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = &self.rest[c.len_utf8()..];
        if c == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(c)
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t' | '\n' | '\r')) {
            self.next();
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, Flaw> {
        let mut span = self.here();
        let kind = match self.peek() {
            Some('{' | '[') if depth >= DEPTH_MAX => return Err(Flaw::too_deep(span)),
            Some('{') => self.object(depth)?,
            Some('[') => self.list(depth)?,
            Some('"') => Kind::Text(self.text()?),
            Some('-' | '0'..='9') => self.number()?,
            Some('a'..='z') => self.word()?,
            Some(_) => return Err(self.flaw("expected a value")),
            None => return Err(self.flaw("the file ends where a value should be")),
        };
        (span.end_line, span.end_column) = (self.line, self.column);
        Ok(Node { kind, span })
    }

    fn word(&mut self) -> Result<Kind, Flaw> {
        for (word, kind) in [
            ("null", Kind::Null),
            ("true", Kind::Bool(true)),
            ("false", Kind::Bool(false)),
        ] {
            if let Some(rest) = self.rest.strip_prefix(word)
                && !rest.starts_with(|c: char| c.is_ascii_alphanumeric())
            {
                word.chars().for_each(|_| {
                    self.next();
                });
                return Ok(kind);
            }
        }
        Err(self.flaw("expected null, true, false, or text in quotes"))
    }

    fn digits(&mut self, text: &mut String) -> Result<(), Flaw> {
        let start = text.len();
        while let Some(c @ '0'..='9') = self.peek() {
            text.push(c);
            self.next();
        }
        if text.len() == start {
            return Err(self.flaw("expected a digit"));
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Kind, Flaw> {
        let start = self.here();
        let mut text = String::new();
        if self.peek() == Some('-') {
            text.push('-');
            self.next();
        }
        if self.peek() == Some('0') {
            text.push('0');
            self.next();
            if matches!(self.peek(), Some('0'..='9')) {
                return Err(self.flaw("a number does not begin with 0"));
            }
        } else {
            self.digits(&mut text)?;
        }
        if self.peek() == Some('.') {
            text.push('.');
            self.next();
            self.digits(&mut text)?;
        }
        if let Some('e' | 'E') = self.peek() {
            text.push('e');
            self.next();
            if let Some(c @ ('+' | '-')) = self.peek() {
                text.push(c);
                self.next();
            }
            self.digits(&mut text)?;
        }
        if number(&text).is_none() {
            self.flaws.push(Flaw::new(
                Code::InvalidValue,
                start,
                "the number is too large",
            ));
            return Ok(Kind::Null);
        }
        Ok(Kind::Number(text))
    }

    fn text(&mut self) -> Result<String, Flaw> {
        self.next();
        let mut text = String::new();
        loop {
            match self.peek() {
                None => return Err(self.flaw("text has no closing quote")),
                Some(c) if c < ' ' => {
                    return Err(self.flaw("a control character in text is written as an escape"));
                }
                Some('"') => {
                    self.next();
                    return Ok(text);
                }
                Some('\\') => {
                    self.next();
                    text.push(self.escape()?);
                }
                Some(c) => {
                    text.push(c);
                    self.next();
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, Flaw> {
        let plain = match self.peek() {
            Some(c @ ('"' | '\\' | '/')) => c,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => {
                self.next();
                return self.unicode();
            }
            _ => return Err(self.flaw("there is no such escape")),
        };
        self.next();
        Ok(plain)
    }

    fn unicode(&mut self) -> Result<char, Flaw> {
        let first = self.hex()?;
        let code = match first {
            0xd800..0xdc00 => {
                if !self.rest.starts_with("\\u") {
                    return Err(self.flaw("half of a surrogate pair stands alone"));
                }
                self.next();
                self.next();
                match self.hex()? {
                    second @ 0xdc00..0xe000 => {
                        0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
                    }
                    _ => return Err(self.flaw("half of a surrogate pair stands alone")),
                }
            }
            code => code,
        };
        char::from_u32(code).ok_or_else(|| self.flaw("half of a surrogate pair stands alone"))
    }

    fn hex(&mut self) -> Result<u32, Flaw> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self
                .peek()
                .and_then(|c| c.to_digit(16))
                .ok_or_else(|| self.flaw("expected four hexadecimal digits"))?;
            code = code * 16 + digit;
            self.next();
        }
        Ok(code)
    }

    fn list(&mut self, depth: usize) -> Result<Kind, Flaw> {
        self.next();
        let mut items = Vec::new();
        self.space();
        if self.peek() == Some(']') {
            self.next();
            return Ok(Kind::List(items));
        }
        loop {
            self.space();
            items.push(self.value(depth + 1)?);
            self.space();
            match self.peek() {
                Some(',') => self.next(),
                Some(']') => {
                    self.next();
                    return Ok(Kind::List(items));
                }
                _ => return Err(self.flaw("expected \",\" or \"]\"")),
            };
        }
    }

    fn object(&mut self, depth: usize) -> Result<Kind, Flaw> {
        self.next();
        let mut entries = Vec::new();
        let mut seen = BTreeMap::new();
        self.space();
        if self.peek() == Some('}') {
            self.next();
            return Ok(Kind::Object(entries));
        }
        loop {
            self.space();
            let mut key_span = self.here();
            if self.peek() != Some('"') {
                return Err(self.flaw("expected a key in quotes"));
            }
            let key = self.text()?;
            (key_span.end_line, key_span.end_column) = (self.line, self.column);
            self.space();
            if self.peek() != Some(':') {
                return Err(self.flaw("expected \":\""));
            }
            self.next();
            self.space();
            let value = self.value(depth + 1)?;
            match seen.get(&key) {
                Some(first) => {
                    self.flaws.push(Flaw::duplicate(&key, key_span, *first));
                    self.dropped.push(value);
                }
                None => {
                    seen.insert(key.clone(), key_span);
                    entries.push(Entry {
                        key,
                        key_span,
                        value,
                    });
                }
            }
            self.space();
            match self.peek() {
                Some(',') => self.next(),
                Some('}') => {
                    self.next();
                    return Ok(Kind::Object(entries));
                }
                _ => return Err(self.flaw("expected \",\" or \"}\"")),
            };
        }
    }
}
