//! The codes of diagnostics: stable names that people search for and tools filter by.

use super::Severity;
use crate::model::nearest;
use serde::{Serialize, Serializer};

macro_rules! codes {
    ($($(#[$meta:meta])* $variant:ident $text:literal $severity:ident;)*) => {
        /// Names a rule.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code { $($(#[$meta])* $variant,)* }

        impl Code {
            /// Every code, in the order of the explanations.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the name.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// Returns the page that explains the rule, in Markdown.
            pub fn explanation(self) -> &'static str {
                match self { $(Self::$variant => include_str!(concat!("../explain/", $text, ".md")),)* }
            }

            /// Returns how grave a breach of the rule usually is.
            pub fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)* }
            }
        }
    };
}

codes! {
    // Loading.
    /// A file cannot be read.
    FileUnreadable "file-unreadable" Error;
    /// A file is not valid YAML or JSON.
    Syntax "syntax" Error;
    /// A key stands twice in one object.
    DuplicateKey "duplicate-key" Error;
    /// A file is nested too deeply, or expands to too much.
    TooLarge "too-large" Error;
    /// Files import each other in a circle.
    ImportCycle "import-cycle" Error;
    /// A catalog is written in the syntax of 2021.
    OldSyntax "old-syntax" Error;
    // The shape of a catalog.
    /// A field is not part of the catalog's grammar.
    UnknownField "unknown-field" Error;
    /// A field that is needed is not there.
    MissingField "missing-field" Error;
    /// A value has the wrong JSON type.
    WrongType "wrong-type" Error;
    /// A value has the right type and cannot be read.
    InvalidValue "invalid-value" Error;
    /// A name breaks the grammar of names.
    InvalidName "invalid-name" Error;
    /// A name is defined twice.
    DuplicateName "duplicate-name" Error;
    /// Something has no effect when Tidegate runs the catalog.
    NotRun "not-run" Info;
    /// Something would change what is materialized, and is not supported.
    Unsupported "unsupported" Error;
    // References.
    /// A collection does not exist.
    UnknownCollection "unknown-collection" Error;
    /// References could not be checked.
    ReferencesSkipped "references-skipped" Info;
    /// Two bindings write to one resource.
    DuplicateResource "duplicate-resource" Error;
    /// A materialization has no bindings.
    NoBindings "no-bindings" Warning;
    // Schemas and keys.
    /// A schema is not a valid JSON schema.
    SchemaInvalid "schema-invalid" Error;
    /// A `$ref` leads nowhere.
    SchemaRefUnresolved "schema-ref-unresolved" Error;
    /// A `$ref` leads to another machine.
    SchemaRefRemote "schema-ref-remote" Warning;
    /// A `reduce` annotation is wrong.
    ReduceInvalid "reduce-invalid" Error;
    /// A key names a location that documents do not have.
    KeyUnknown "key-unknown" Error;
    /// A key location may be absent.
    KeyOptional "key-optional" Error;
    /// A key location may be null.
    KeyNullable "key-nullable" Error;
    /// A key location may be something that is no key.
    KeyType "key-type" Error;
    /// A key location carries a reduction.
    KeyReduced "key-reduced" Error;
    /// A projection names a location that documents cannot have.
    ProjectionUnknown "projection-unknown" Error;
    // Fields.
    /// A field does not exist.
    FieldUnknown "field-unknown" Error;
    /// The catalog asks for and against a field.
    FieldConflict "field-conflict" Error;
    /// The connector cannot hold a field that is asked for.
    FieldForbidden "field-forbidden" Error;
    /// Two fields would become one column.
    FieldCollision "field-collision" Error;
    /// A field's name is longer than the destination keeps.
    FieldCut "field-cut" Warning;
    /// No field holds a part of the key.
    KeyNotSelected "key-not-selected" Error;
    // Connectors.
    /// A connector does not exist.
    UnknownComponent "unknown-component" Error;
    /// Rules that need the connector were skipped.
    ConnectorSkipped "connector-skipped" Info;
    /// A connector failed, or broke the protocol.
    ConnectorFailed "connector-failed" Error;
    /// A connector refused a task.
    ConnectorRefused "connector-refused" Error;
    /// An endpoint's configuration breaks the connector's schema.
    ConfigInvalid "config-invalid" Error;
    /// A binding's resource breaks the connector's schema.
    ResourceInvalid "resource-invalid" Error;
    // Pacing.
    /// A schedule cannot be read.
    ScheduleInvalid "schedule-invalid" Error;
    /// Two layers pace one task.
    ScheduleConflict "sync-schedule-conflict" Error;
    /// The connector's default adds to the catalog's schedule.
    ScheduleStacks "sync-schedule-stacks" Warning;
    /// The connector's default paces.
    ScheduleDefault "sync-schedule-default" Info;
    // Live against draft.
    /// A change cannot be applied to what the destination holds.
    IncompatibleChange "incompatible-change" Error;
    /// A binding is backfilled because of a change.
    BackfillNeeded "backfill-needed" Warning;
    /// A backfill counter goes down.
    BackfillLowered "backfill-lowered" Error;
}

impl Code {
    /// Returns the first sentence of the page, as one line.
    pub fn summary(self) -> String {
        // Behind the title and the severity comes the text.
        let text = self.explanation().split("\n\n").nth(2);
        let text = text.unwrap_or_default().trim_end().replace('\n', " ");
        match text.split_once(". ") {
            Some((sentence, _)) => format!("{sentence}."),
            None => text,
        }
    }

    /// Returns the code that `text` is likely to mean.
    pub fn nearest(text: &str) -> Option<Self> {
        nearest(text, Self::ALL.iter().map(|code| code.as_str()))?
            .parse()
            .ok()
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Code {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL
            .iter()
            .copied()
            .find(|code| code.as_str() == text)
            .ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_code_has_a_page_and_each_page_a_code() {
        let pages = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/explain");
        let pages: BTreeSet<_> = std::fs::read_dir(pages)
            .expect("the pages are there")
            .map(|entry| entry.expect("an entry can be read").file_name())
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        let codes: BTreeSet<_> = Code::ALL.iter().map(|code| format!("{code}.md")).collect();
        assert_eq!(pages, codes);
        for code in Code::ALL {
            let page = code.explanation();
            assert!(page.starts_with(&format!("# {code}\n")), "{code}");
            let severity = code.severity().as_str();
            let named = page.lines().nth(2).unwrap_or_default();
            assert!(named.contains(severity), "{code} is a {severity}");
            assert_eq!(code.as_str().parse(), Ok(*code));
        }
    }
}
