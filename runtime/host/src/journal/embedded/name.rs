//! The directory names of collections. Pure.
//!
//! A letter, digit, `-`, `_` or `.` (but not the first) stands for itself, any
//! other byte is `%` and two hexadecimal digits: names cannot leave the directory,
//! hide in it, or be two for one collection.

/// The longest file name on common file systems.
const FILE_NAME_BYTES_MAX: usize = 255;

/// Returns the directory name of a collection, or why it cannot have one.
pub(super) fn escape(collection: &str) -> Result<String, String> {
    if collection.is_empty() {
        return Err("its name is empty".to_owned());
    }
    let mut escaped = String::with_capacity(collection.len() + 8);
    for (at, byte) in collection.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => escaped.push(byte.into()),
            b'.' if at > 0 => escaped.push('.'),
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    if escaped.len() > FILE_NAME_BYTES_MAX {
        return Err(format!(
            "its name takes {} bytes as a directory's name, and a file system allows \
             {FILE_NAME_BYTES_MAX}",
            escaped.len()
        ));
    }
    Ok(escaped)
}

/// Returns the collection of a directory name, if it is one of ours.
pub(super) fn unescape(name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    let collection = String::from_utf8(bytes).ok()?;
    // Only the one spelling that `escape` gives.
    (escape(&collection).as_deref() == Ok(name)).then_some(collection)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names() {
        struct Case {
            collection: &'static str,
            want: Option<&'static str>,
        }
        for case in [
            Case {
                collection: "acme/orders",
                want: Some("acme%2Forders"),
            },
            Case {
                collection: "a.b-c_D9",
                want: Some("a.b-c_D9"),
            },
            Case {
                collection: "..",
                want: Some("%2E."),
            },
            Case {
                collection: ".hidden",
                want: Some("%2Ehidden"),
            },
            Case {
                collection: "50%",
                want: Some("50%25"),
            },
            Case {
                collection: "é",
                want: Some("%C3%A9"),
            },
            Case {
                collection: "",
                want: None,
            },
        ] {
            assert_eq!(escape(case.collection).ok().as_deref(), case.want);
        }
        assert!(escape(&"x".repeat(255)).is_ok());
        assert!(escape(&"x".repeat(256)).is_err());
        for foreign in ["%2f", "%", "%4", "%41", ".x", "a/b", "%FF", "%+1", ""] {
            assert_eq!(unescape(foreign), None, "{foreign}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(collection in "\\PC{1,20}") {
            let escaped = escape(&collection).expect("short enough");
            prop_assert!(!escaped.contains('/') && !escaped.starts_with('.'));
            prop_assert_eq!(unescape(&escaped), Some(collection));
        }
    }
}
