//! What the server refuses, in its words, and what the host is to do about it.

use std::collections::BTreeMap;

use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::ErrorResponseBody;
use tidegate_boilerplate::{ConnectorError, ErrorKind};

/// An error of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// SQLSTATE.
    code: String,
    /// What the server says, its detail and hint included.
    message: String,
}

impl Refusal {
    /// Reads what the server sent.
    pub(crate) fn read(body: &ErrorResponseBody) -> Self {
        let mut fields = BTreeMap::new();
        let mut sent = body.fields();
        // A field that cannot be read ends the message; what was read is still worth telling.
        while let Ok(Some(field)) = sent.next() {
            let value = String::from_utf8_lossy(field.value_bytes()).into_owned();
            fields.insert(field.type_(), value);
        }
        let mut take = |tag: u8| fields.remove(&tag).filter(|it| !it.is_empty());
        let code = take(b'C').unwrap_or_default();
        let mut message = take(b'M').unwrap_or_else(|| "an error without a message".to_owned());
        for more in [take(b'D'), take(b'H')].into_iter().flatten() {
            message = format!("{message} ({more})");
        }
        Self { code, message }
    }

    /// Says whether no line of the server's pg_hba.conf lets us in this way; one of
    /// another encryption may.
    pub(crate) fn is_of_hba(&self) -> bool {
        self.code == "28000"
    }
}

impl From<Refusal> for ConnectorError {
    fn from(refusal: Refusal) -> Self {
        let Refusal { code, message } = refusal;
        let (kind, advice) = judge(&code);
        let advice = match advice {
            "" => String::new(),
            advice => format!("; {advice}"),
        };
        Self::new(kind, format!("PostgreSQL says {code}: {message}{advice}"))
    }
}

/// Decides what the host does about an error, and what a person can.
fn judge(code: &str) -> (ErrorKind, &'static str) {
    use ErrorKind::{Auth, Config, Document, Schema, Transient};
    match code {
        "28P01" => (Auth, "check `user` and `password`"),
        "28000" => (
            Auth,
            "check `user`, `sslmode`, and the server's pg_hba.conf",
        ),
        "42501" => (
            Auth,
            "grant the role what it needs, or name another role in `user`",
        ),
        "3D000" => (Config, "check `database`"),
        "3F000" => (Config, "check `schema`"),
        "57014" => (
            Transient,
            "if it is the server's statement_timeout, raise it for this role",
        ),
        "55P03" => (
            Transient,
            "another session holds a lock; see pg_stat_activity",
        ),
        "25006" => (
            Transient,
            "the server is read-only: a standby, or one about to be replaced",
        ),
        "53300" => (
            Transient,
            "the server has no connection left; raise max_connections or close some",
        ),
        // A key too long for an index, a row too large, JSON nested too deeply.
        "54000" | "54001" => (Document, "the document is too large for the table"),
        // Connection lost, serialisation and deadlock, resources, operator intervention,
        // timeouts of idle sessions, system errors.
        _ if ["08", "40", "53", "57", "58"].contains(&code.get(..2).unwrap_or_default()) => {
            (Transient, "")
        }
        "25P02" | "25P03" => (Transient, ""),
        _ => (Schema, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_retried_and_nothing_else() {
        let cases = [
            ("28P01", ErrorKind::Auth),
            ("28000", ErrorKind::Auth),
            ("42501", ErrorKind::Auth),
            ("3D000", ErrorKind::Config),
            ("57P01", ErrorKind::Transient),
            ("57P03", ErrorKind::Transient),
            ("57014", ErrorKind::Transient),
            ("40001", ErrorKind::Transient),
            ("40P01", ErrorKind::Transient),
            ("53100", ErrorKind::Transient),
            ("53300", ErrorKind::Transient),
            ("55P03", ErrorKind::Transient),
            ("25P03", ErrorKind::Transient),
            ("25006", ErrorKind::Transient),
            ("08006", ErrorKind::Transient),
            ("54000", ErrorKind::Document),
            ("23505", ErrorKind::Schema),
            ("42P01", ErrorKind::Schema),
            ("P0001", ErrorKind::Schema),
            ("", ErrorKind::Schema),
        ];
        for (code, want) in cases {
            assert_eq!(judge(code).0, want, "{code}");
        }
    }
}
