//! A JSON object a line: the document, if it is selected; else the selected fields.

use std::fs::File;
use std::io;

use serde_json::Value;
use tidegate_boilerplate::Store;
use tidegate_boilerplate::text::push_json;

use super::{Columns, PushError, Sink};

/// An NDJSON file.
pub(crate) struct Ndjson {
    sink: Sink,
    /// What stands before each field's value; none if the line is the document.
    before: Vec<String>,
    line: String,
}

impl Ndjson {
    pub(super) fn begin(columns: &Columns, sink: Sink) -> Self {
        let before = |(position, name): (usize, &str)| {
            let separator = if position == 0 { '{' } else { ',' };
            format!("{separator}{}:", Value::from(name))
        };
        let before = match columns.document {
            Some(_) => Vec::new(),
            None => columns.names().enumerate().map(before).collect(),
        };
        Self {
            sink,
            before,
            line: String::new(),
        }
    }

    pub(super) fn push(&mut self, columns: &Columns, store: &Store<'_>) -> Result<(), PushError> {
        self.line.clear();
        if columns.document.is_some() {
            self.line.push_str(store.document_text()?);
        } else {
            let elements = columns.elements(store)?;
            for (before, element) in self.before.iter().zip(&elements) {
                self.line.push_str(before);
                push_json(&mut self.line, element);
            }
            self.line
                .push_str(if elements.is_empty() { "{}" } else { "}" });
        }
        self.line.push('\n');
        let end = self.line.len() - 1;
        // One character at a time: that is a search of whole words of memory.
        if self.line[..end].contains('\n') || self.line[..end].contains('\r') {
            // Only between the parts of a document that was appended on several lines.
            let line = self.line[..end].replace(['\n', '\r'], " ");
            self.line.replace_range(..end, &line);
        }
        Ok(self.sink.write(self.line.as_bytes())?)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.sink.bytes()
    }

    pub(super) fn finish(self) -> io::Result<File> {
        self.sink.finish()
    }
}
