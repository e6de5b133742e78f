//! What runs a task, and within which bounds.

use super::fields::{Context, Field};
use super::value;
use crate::diagnostic::Code;
use crate::load::files;
use std::path::PathBuf;
use std::time::Duration;

/// Names the component that runs a task.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ComponentRef {
    /// A file; relative paths are resolved against the catalog's own file.
    Path(PathBuf),
    /// A name to look up among the installed connectors.
    Name(String),
}

impl std::fmt::Display for ComponentRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// Bounds of a connector; what is `None` is left to the host's defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// `memory`: linear memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// `compute`: time without returning to the host.
    pub compute: Option<Duration>,
    /// `import`: time in one call to the host.
    pub import: Option<Duration>,
    /// `call`: time of one call of the connector.
    pub call: Option<Duration>,
    /// `batch`: size of one packed batch, in bytes.
    pub batch_bytes: Option<u64>,
    /// `document`: size of one document, in bytes.
    pub document_bytes: Option<u64>,
    /// `logRate`: lines of log a second.
    pub log_lines_per_second: Option<u32>,
}

/// What a connector may reach, in place of what its spec asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allow {
    /// Hosts; `None` leaves it to the spec.
    pub network: Option<Vec<NetworkGrant>>,
    /// Directories, relative ones resolved against the catalog's file; `None` leaves it to the spec.
    pub directory: Option<Vec<PathBuf>>,
}

/// A host, and perhaps one port of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkGrant {
    /// A name, an address, `*.domain`, or `*`.
    pub host: String,
    /// The port; `None` is any.
    pub port: Option<u16>,
    /// The text as written.
    pub text: String,
}

/// How shards of a task run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shards {
    /// Whether the task does not run.
    pub disable: bool,
    /// Least time that a transaction is open.
    pub min_txn_duration: Option<Duration>,
    /// Most time that a transaction is open.
    pub max_txn_duration: Option<Duration>,
}

impl ComponentRef {
    pub(super) fn read(context: &Context<'_, '_>, text: &str) -> Self {
        if text.contains(['/', '\\']) || text.ends_with(".wasm") {
            Self::Path(files::relative(context.path, text))
        } else {
            Self::Name(text.to_owned())
        }
    }
}

impl Context<'_, '_> {
    /// Reads text through `parse`, and reports what it says.
    pub(super) fn parsed<T>(
        &mut self,
        field: Option<Field<'_>>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        let field = field?;
        let Some(text) = field.node.text() else {
            // What the parser says of nothing is what it wants.
            let advice = parse("").err();
            self.wrong_type(&field, "text").help_if(advice);
            return None;
        };
        match parse(text) {
            Ok(value) => Some(value),
            Err(message) => {
                self.add(Code::InvalidValue, &field.spot(), message);
                None
            }
        }
    }

    pub(super) fn limits(&mut self, field: &Field<'_>) -> Limits {
        let Some(mut fields) = self.object(field) else {
            return Limits::default();
        };
        let log_rate = fields.get("logRate");
        let limits = Limits {
            memory_bytes: self.parsed(fields.get("memory"), value::size),
            compute: self.parsed(fields.get("compute"), value::duration),
            import: self.parsed(fields.get("import"), value::duration),
            call: self.parsed(fields.get("call"), value::duration),
            batch_bytes: self.parsed(fields.get("batch"), value::size),
            document_bytes: self.parsed(fields.get("document"), value::size),
            log_lines_per_second: log_rate.and_then(|field| self.natural(&field)),
        };
        fields.close(self);
        limits
    }

    pub(super) fn allow(&mut self, field: &Field<'_>) -> Allow {
        let Some(mut fields) = self.object(field) else {
            return Allow::default();
        };
        let network = fields.get("network").and_then(|it| self.list(&it));
        let directory = fields.get("directory").and_then(|it| self.list(&it));
        fields.close(self);
        let network = network.map(|items| {
            let grant = |item| self.parsed(Some(item), network_grant);
            items.into_iter().filter_map(grant).collect()
        });
        let path = self.path.to_owned();
        let directory = directory.map(|items| {
            let read = |text: &str| match text {
                "" => Err("a directory has a path".to_owned()),
                text => Ok(files::relative(&path, text)),
            };
            let grant = |item| self.parsed(Some(item), read);
            items.into_iter().filter_map(grant).collect()
        });
        Allow { network, directory }
    }

    pub(super) fn shards(&mut self, field: &Field<'_>) -> Shards {
        let Some(mut fields) = self.object(field) else {
            return Shards::default();
        };
        let (min, max) = (fields.get("minTxnDuration"), fields.get("maxTxnDuration"));
        let min_spot = min.as_ref().map(Field::spot);
        let disable = fields.get("disable");
        let shards = Shards {
            disable: disable.and_then(|it| self.boolean(&it)).unwrap_or_default(),
            min_txn_duration: self.parsed(min, value::duration),
            max_txn_duration: self.parsed(max.clone(), value::duration),
        };
        // Settings of the containers that such catalogs were written for.
        fields.tolerate(&[
            "flags",
            "hotStandbys",
            "logLevel",
            "readChannelSize",
            "ringBufferSize",
        ]);
        fields.close(self);
        if let (Some(least), Some(most)) = (shards.min_txn_duration, shards.max_txn_duration)
            && least > most
            && let (Some(max), Some(min)) = (max, min_spot)
        {
            self.related(
                Code::InvalidValue,
                &max.spot(),
                "maxTxnDuration is shorter than minTxnDuration, so no transaction could satisfy both",
                (&min, "minTxnDuration is set here"),
            )
            .help("raise maxTxnDuration, or lower minTxnDuration");
        }
        shards
    }
}

fn network_grant(text: &str) -> Result<NetworkGrant, String> {
    let advice = "write \"host:port\", \"*.domain:port\" or \"host\"";
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or(format!(
            "the bracket of the address is not closed; {advice}"
        ))?;
        (host, rest.strip_prefix(':'))
    } else if text.matches(':').count() > 1 {
        (text, None)
    } else {
        match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        }
    };
    let port = match port {
        None | Some("*") => None,
        Some(port) => Some(
            port.parse::<u16>()
                .ok()
                .filter(|port| *port > 0)
                .ok_or(format!("\"{port}\" is not a port; {advice}"))?,
        ),
    };
    let name = host.strip_prefix("*.").unwrap_or(host);
    let good = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if name.is_empty() || name != "*" && !name.chars().all(good) {
        return Err(format!("\"{text}\" does not name a host; {advice}"));
    }
    Ok(NetworkGrant {
        host: host.to_owned(),
        port,
        text: text.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_name_hosts_and_ports() {
        for (text, want) in [
            ("db.example.com:5432", Some(("db.example.com", Some(5432)))),
            ("*.example.com:443", Some(("*.example.com", Some(443)))),
            ("127.0.0.1", Some(("127.0.0.1", None))),
            ("[::1]:5432", Some(("::1", Some(5432)))),
            ("::1", Some(("::1", None))),
            ("*:443", Some(("*", Some(443)))),
            ("", None),
            (":80", None),
            ("host:0", None),
            ("host:99999", None),
            ("https://host", None),
            ("[::1", None),
        ] {
            let got = network_grant(text).ok().map(|it| (it.host, it.port));
            let want = want.map(|(host, port)| (host.to_owned(), port));
            assert_eq!(got, want, "{text}");
        }
    }
}
