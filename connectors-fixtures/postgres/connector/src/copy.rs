//! Rows as `COPY ... (FORMAT binary)` takes them.
//!
//! ```text
//! signature, flags, extension | fields, (length, value)* | fields, (length, value)* | .. | -1
//! ```

/// Eleven bytes of signature, no flags, no header extension.
const HEADER: &[u8; 19] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// What stands for the number of fields after the last row.
const TRAILER: i16 = -1;

/// What stands for the length of a null.
const NULL: i32 = -1;

/// Rows on their way into one table.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    bytes: Vec<u8>,
}

impl Rows {
    /// Says whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns how much memory they take.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Begins a row.
    pub(crate) fn begin(&mut self, fields: usize) {
        if self.bytes.is_empty() {
            self.bytes.extend(HEADER);
        }
        let fields = i16::try_from(fields).expect("a table has at most 1600 columns");
        self.bytes.extend(fields.to_be_bytes());
    }

    /// Adds a null to the row.
    pub(crate) fn push_null(&mut self) {
        self.bytes.extend(NULL.to_be_bytes());
    }

    /// Adds a field whose bytes are written by `write`.
    pub(crate) fn push<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.bytes.len();
        self.bytes.extend(NULL.to_be_bytes());
        write(&mut self.bytes)?;
        let len = self.bytes.len() - start - size_of_val(&NULL);
        let len = i32::try_from(len).expect("the host's documents are far below 2 GiB");
        self.bytes[start..start + size_of_val(&NULL)].copy_from_slice(&len.to_be_bytes());
        Ok(())
    }

    /// Takes the rows, whole.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.bytes);
        if !bytes.is_empty() {
            bytes.extend(TRAILER.to_be_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_framed() {
        let mut rows = Rows::default();
        assert!(rows.is_empty() && rows.take().is_empty());
        rows.begin(2);
        rows.push_null();
        let pushed: Result<(), ()> = rows.push(|out| {
            out.extend(b"ab");
            Ok(())
        });
        pushed.unwrap();
        let bytes = rows.take();
        assert_eq!(&bytes[..11], b"PGCOPY\n\xff\r\n\0");
        assert_eq!(&bytes[11..19], [0; 8]);
        assert_eq!(&bytes[19..], b"\0\x02\xff\xff\xff\xff\0\0\0\x02ab\xff\xff");
        assert!(rows.is_empty());
    }
}
