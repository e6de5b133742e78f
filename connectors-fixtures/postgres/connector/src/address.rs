//! Where a server is: `host:port`, or a URL.

/// The port of a URL that names none.
const DEFAULT_PORT: u16 = 5432;

/// A server's host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// A name or an address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// Text that is no address. It is not repeated, as it may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoAddress(&'static str);

impl std::fmt::Display for NoAddress {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.0)
    }
}

impl Address {
    /// Reads an address.
    pub(crate) fn parse(text: &str) -> Result<Self, NoAddress> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Self::host_port(text, None);
        };
        if !["postgres", "postgresql"].contains(&scheme) {
            return Err(NoAddress("its scheme is not postgres://"));
        }
        if rest.contains('@') {
            return Err(NoAddress(
                "write user and password in the fields `user` and `password`, where the password is kept secret",
            ));
        }
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains(['/', '?', '#']) {
            return Err(NoAddress(
                "write the database and settings in the fields `database` and `sslmode`, not in the URL",
            ));
        }
        Self::host_port(authority, Some(DEFAULT_PORT))
    }

    fn host_port(text: &str, default: Option<u16>) -> Result<Self, NoAddress> {
        // A colon inside brackets is of an IPv6 address.
        let port_at = text.rfind(':').filter(|at| !text[*at..].contains(']'));
        let (host, port) = match (port_at, default) {
            (Some(at), _) => {
                let port = text[at + 1..].parse();
                (
                    &text[..at],
                    port.map_err(|_| NoAddress("its port is not a number up to 65535"))?,
                )
            }
            (None, Some(port)) => (text, port),
            (None, None) => return Err(NoAddress("it has no port: write host:port")),
        };
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let host = bare.unwrap_or(host);
        if host.is_empty() || (bare.is_none() && host.contains(':')) {
            return Err(NoAddress(
                "it has no host: write host:port, an IPv6 address in brackets",
            ));
        }
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host.contains(':') {
            true => write!(out, "[{}]:{}", self.host, self.port),
            false => write!(out, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let cases = [
            ("db:5433", Some("db:5433")),
            ("10.0.0.1:1", Some("10.0.0.1:1")),
            ("[::1]:5432", Some("[::1]:5432")),
            ("postgres://db", Some("db:5432")),
            ("postgresql://db:6/", Some("db:6")),
            ("postgres://[::1]", Some("[::1]:5432")),
            ("db", None),
            (":5432", None),
            ("::1:5432", None),
            ("db:65536", None),
            ("http://db:1", None),
            ("postgres://u@db", None),
            ("postgres://db/d", None),
            ("postgres://db?sslmode=require", None),
        ];
        for (text, want) in cases {
            let got = Address::parse(text).ok().map(|it| it.to_string());
            assert_eq!(got.as_deref(), want, "{text}");
        }
    }
}
