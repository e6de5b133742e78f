//! Comma-separated values with a header, as RFC 4180 quotes them.
//!
//! | value                  | written                |
//! |------------------------|------------------------|
//! | null                   | nothing                |
//! | text, `""` included    | always in quotes       |
//! | a number, a boolean    | bare, every digit      |
//! | an array, an object    | its JSON, in quotes    |
//!
//! So an empty text is told from null, and the text `1` from the number. Writers at
//! hand quote a whole row alike, or as few values as possible, and would lose that.

use std::fmt::Write;
use std::fs::File;
use std::io;

use tidegate_boilerplate::Store;
use tidegate_boilerplate::text::push_json;
use tidegate_boilerplate::tuple::Element;

use super::{Columns, PushError, Sink};

/// A CSV file.
pub(crate) struct Csv {
    sink: Sink,
    line: String,
}

impl Csv {
    pub(super) fn begin(columns: &Columns, mut sink: Sink) -> io::Result<Self> {
        let mut line = String::new();
        for name in columns.names() {
            push_quoted(&mut line, name);
            line.push(',');
        }
        end(&mut line);
        sink.write(line.as_bytes())?;
        Ok(Self { sink, line })
    }

    pub(super) fn push(&mut self, columns: &Columns, store: &Store<'_>) -> Result<(), PushError> {
        self.line.clear();
        for element in columns.elements(store)? {
            push(&mut self.line, &element);
            self.line.push(',');
        }
        if columns.document.is_some() {
            push_quoted(&mut self.line, store.document_text()?);
            self.line.push(',');
        }
        end(&mut self.line);
        Ok(self.sink.write(self.line.as_bytes())?)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.sink.bytes()
    }

    pub(super) fn finish(self) -> io::Result<File> {
        self.sink.finish()
    }
}

fn push(line: &mut String, element: &Element<'_>) {
    match element {
        Element::Nil => {}
        Element::String(it) => push_quoted(line, it),
        Element::Bytes(it) if it.starts_with(b"{") || it.starts_with(b"[") => {
            push_quoted(line, &String::from_utf8_lossy(it));
        }
        number_or_boolean => push_json(line, number_or_boolean),
    }
}

fn push_quoted(line: &mut String, text: &str) {
    line.push('"');
    for (position, part) in text.split('"').enumerate() {
        let separator = if position == 0 { "" } else { "\"\"" };
        write!(line, "{separator}{part}").expect("a text takes whatever is appended");
    }
    line.push('"');
}

/// Ends a line: the last comma separates nothing.
fn end(line: &mut String) {
    line.pop();
    line.push('\n');
}
