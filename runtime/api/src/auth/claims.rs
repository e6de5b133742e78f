//! What a token allows.

use serde::{Deserialize, Serialize};

use crate::error::{Code, Error};

/// What a token may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// List, get and watch tasks.
    TasksRead,
    /// Ask for a commit.
    TasksSync,
    /// Stop and start tasks.
    TasksWrite,
    /// Append documents.
    CollectionsAppend,
    /// Read documents.
    CollectionsRead,
    /// Everything, the catalog included.
    Admin,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Scope; 6] = [
        Scope::TasksRead,
        Scope::TasksSync,
        Scope::TasksWrite,
        Scope::CollectionsAppend,
        Scope::CollectionsRead,
        Scope::Admin,
    ];

    /// Returns the word in a token's `scope`.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::TasksRead => "tasks:read",
            Scope::TasksSync => "tasks:sync",
            Scope::TasksWrite => "tasks:write",
            Scope::CollectionsAppend => "collections:append",
            Scope::CollectionsRead => "collections:read",
            Scope::Admin => "admin",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Scope> {
        Scope::ALL.into_iter().find(|scope| scope.as_str() == word)
    }
}

/// What a token says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// Whom it was made for; for people only.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sub: String,
    /// The scopes, with spaces between them. Words that are unknown allow
    /// nothing.
    pub scope: String,
    /// Which names: those that start with the parts of one of these. An empty
    /// one is every name; without any there is none.
    #[serde(default)]
    pub prefixes: Vec<String>,
    /// When it was made, in seconds since the Unix epoch.
    #[serde(default)]
    pub iat: u64,
    /// When it expires, in seconds since the Unix epoch.
    pub exp: u64,
}

impl Claims {
    /// Refuses a caller without a scope.
    pub fn require(&self, scope: Scope) -> Result<(), Error> {
        let words = || self.scope.split_ascii_whitespace().filter_map(Scope::parse);
        if words().any(|it| it == scope || it == Scope::Admin) {
            return Ok(());
        }
        let message = format!(
            "the token does not have the scope {}: ask for one that has",
            scope.as_str()
        );
        Err(Error::new(Code::PermissionDenied, message))
    }

    /// Refuses a caller who is not allowed every name.
    pub fn require_every_name(&self) -> Result<(), Error> {
        if self.prefixes.iter().any(String::is_empty) {
            return Ok(());
        }
        Err(Error::new(
            Code::PermissionDenied,
            "the token is restricted to names, and a catalog concerns all of them: ask for one \
             that is not",
        ))
    }

    /// Says whether a name is one of the caller's.
    ///
    /// Whole parts count: `acmeCo/foo` does not reach `acmeCo/foobar`.
    pub fn sees(&self, name: &str) -> bool {
        self.prefixes.iter().any(|prefix| {
            let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
            match name.strip_prefix(prefix) {
                Some(rest) => prefix.is_empty() || rest.is_empty() || rest.starts_with('/'),
                None => false,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(scope: &str, prefixes: &[&str]) -> Claims {
        Claims {
            sub: String::new(),
            scope: scope.to_owned(),
            prefixes: prefixes.iter().map(ToString::to_string).collect(),
            iat: 0,
            exp: 0,
        }
    }

    #[test]
    fn scopes() {
        struct Case {
            scope: &'static str,
            needs: Scope,
            want: bool,
        }
        #[rustfmt::skip]
        let cases = [
            Case { scope: "tasks:read tasks:sync", needs: Scope::TasksRead, want: true },
            Case { scope: "tasks:read  tasks:sync", needs: Scope::TasksSync, want: true },
            Case { scope: "tasks:read", needs: Scope::TasksWrite, want: false },
            Case { scope: "tasks:write", needs: Scope::TasksRead, want: false },
            Case { scope: "admin", needs: Scope::CollectionsRead, want: true },
            Case { scope: "tasks:read", needs: Scope::Admin, want: false },
            Case { scope: "", needs: Scope::TasksRead, want: false },
            Case { scope: "tasks", needs: Scope::TasksRead, want: false },
            Case { scope: "tasks:readmore", needs: Scope::TasksRead, want: false },
            Case { scope: "Admin", needs: Scope::TasksRead, want: false },
        ];
        for case in cases {
            let got = claims(case.scope, &[""]).require(case.needs);
            assert_eq!(got.is_ok(), case.want, "{:?} {:?}", case.scope, case.needs);
        }
    }

    #[test]
    fn names() {
        struct Case {
            prefixes: &'static [&'static str],
            name: &'static str,
            want: bool,
        }
        #[rustfmt::skip]
        let cases = [
            Case { prefixes: &[""], name: "acmeCo/foo", want: true },
            Case { prefixes: &[], name: "acmeCo/foo", want: false },
            Case { prefixes: &["acmeCo"], name: "acmeCo/foo", want: true },
            Case { prefixes: &["acmeCo/"], name: "acmeCo/foo", want: true },
            Case { prefixes: &["acmeCo/foo"], name: "acmeCo/foo", want: true },
            Case { prefixes: &["acmeCo/foo/"], name: "acmeCo/foo", want: true },
            Case { prefixes: &["acmeCo/foo"], name: "acmeCo/foo/bar", want: true },
            Case { prefixes: &["acmeCo/foo"], name: "acmeCo/foobar", want: false },
            Case { prefixes: &["acmeCo/foo"], name: "acmeCo", want: false },
            Case { prefixes: &["other", "acmeCo"], name: "acmeCo/foo", want: true },
            Case { prefixes: &["acmeco"], name: "acmeCo/foo", want: false },
            Case { prefixes: &["/"], name: "acmeCo/foo", want: true },
        ];
        for case in cases {
            let got = claims("admin", case.prefixes).sees(case.name);
            assert_eq!(got, case.want, "{:?} {}", case.prefixes, case.name);
        }
    }

    #[test]
    fn a_restricted_token_is_not_for_catalogs() {
        assert!(claims("admin", &[""]).require_every_name().is_ok());
        assert!(claims("admin", &["acmeCo"]).require_every_name().is_err());
        assert!(claims("admin", &[]).require_every_name().is_err());
    }
}
