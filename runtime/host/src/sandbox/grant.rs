//! What a connector may reach: nothing, but for what its task's configuration
//! names.
//!
//! ```text
//! spec: wants /address ─┐
//! config: /address = db:5432 ─┼─> Grants: db:5432 ──> dial (at each connect)
//! catalog: allow (replaces) ──┘           directory ─> preopens, sqlite.open
//! ```
//!
//! The connector's spec says *where* in the configuration the reachable things
//! are named; the operator's configuration says *what* they are. A catalog's
//! `allow` replaces what follows from that, kind by kind: it narrows or widens.
//!
//! Making grants touches nothing; whether a named path is a directory is asked
//! of the caller. What a name resolves to and where a path leads is checked
//! when the guest uses it, because both can change in between.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_wit::message::Wants;
use url::Url;

/// What a catalog allows a connector, in place of what its configuration
/// names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Allow {
    /// `host:port` each; the host may be `*.example.com`, the port `*`. An
    /// empty list allows nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Vec<String>>,
    /// Directories, read and write. An empty list allows nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<Vec<String>>,
}

/// A grant that cannot be made. Values are left out where they may carry a
/// password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// The configuration has something else where an address or path belongs.
    #[error("the config at {pointer} is {found}, where {want} belongs")]
    Value {
        /// Pointer into the configuration.
        pointer: String,
        /// What is there.
        found: &'static str,
        /// What belongs there.
        want: &'static str,
    },
    /// An address cannot be read.
    #[error("{place} is not an address that can be granted: {reason}")]
    Address {
        /// Where it is.
        place: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A directory cannot be granted.
    #[error("the directory {} cannot be granted: {reason}; create it, or correct the path", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// A guest that reached for what it was not granted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// No grant names the address.
    #[error("{address} is not granted; {}", Granted(granted, "network"))]
    Address {
        /// What was dialled.
        address: String,
        /// The grants that there are.
        granted: Vec<String>,
    },
    /// The address is granted by name, and the name leads inside.
    #[error(
        "{address} resolves to {ip}, which is {class}, and a name does not open that; if it is meant, add \"{ip}:{port}\" to the catalog's `allow.network`"
    )]
    Inside {
        /// What was dialled.
        address: String,
        /// What it resolves to.
        ip: IpAddr,
        /// The port.
        port: u16,
        /// What kind of address that is.
        class: &'static str,
    },
    /// No grant has the path.
    #[error(
        "the file {path} is not in a granted directory; {}",
        Granted(granted, "directory")
    )]
    Path {
        /// What was to be opened, as the guest wrote it.
        path: String,
        /// The grants that there are.
        granted: Vec<String>,
    },
    /// The path names no file that may be opened.
    #[error("the file {path} cannot be opened: {reason}")]
    File {
        /// What was to be opened, as the guest wrote it.
        path: String,
        /// Why not.
        reason: String,
    },
}

struct Granted<'a>(&'a [String], &'static str);

impl fmt::Display for Granted<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => write!(
                formatter,
                "no {0} is granted: name it in the config, or in the catalog's `allow.{0}`",
                self.1
            ),
            granted => write!(
                formatter,
                "granted is {}; correct the config, or add it to the catalog's `allow.{}`",
                granted.join(", "),
                self.1
            ),
        }
    }
}

/// What a connector may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// What relative paths are relative to.
    base: PathBuf,
    directories: Vec<DirectoryGrant>,
    network: Vec<NetworkGrant>,
}

/// A directory that a connector may read and write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirectoryGrant {
    /// Its name for the guest: as the configuration wrote it, so that paths in
    /// the configuration mean the same inside and outside.
    pub guest: String,
    /// Its path on the host.
    pub host: PathBuf,
}

/// An address that a connector may dial.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NetworkGrant {
    host: Host,
    /// None is any.
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Host {
    Address(IpAddr),
    /// In lower case.
    Name(String),
    /// Any name with this end, in lower case, with its leading dot.
    Under(String),
}

impl Grants {
    /// Returns no grant at all.
    pub fn none() -> Grants {
        Grants::default()
    }

    /// Makes the grants of a task.
    ///
    /// Relative paths are relative to `base`. A path for which `is_directory`
    /// holds, or that ends in a slash, is granted itself; any other names a
    /// file, and its parent is granted.
    ///
    /// # Errors
    ///
    /// If the configuration or `allow` has something else where an address or
    /// a path belongs.
    pub fn new(
        wants: &Wants,
        config: &Value,
        allow: &Allow,
        base: &Path,
        is_directory: &dyn Fn(&Path) -> bool,
    ) -> Result<Grants, GrantError> {
        let mut network = Vec::new();
        match &allow.network {
            Some(patterns) => {
                for pattern in patterns {
                    network.push(NetworkGrant::parse(pattern).map_err(|reason| {
                        GrantError::Address {
                            place: format!("{pattern:?} in `allow.network`"),
                            reason,
                        }
                    })?);
                }
            }
            None => {
                for pointer in &wants.network {
                    for text in texts(config, pointer, "an address (host:port, or a URL)")? {
                        network.push(address_grant(text, pointer)?);
                    }
                }
            }
        }
        let mut directories = Vec::new();
        match &allow.directory {
            Some(paths) => {
                directories.extend(paths.iter().map(|path| whole_directory(path, base)));
            }
            None => {
                for pointer in &wants.directory {
                    for text in texts(config, pointer, "a path")? {
                        directories.push(directory_of(text, base, is_directory));
                    }
                }
            }
        }
        network.sort();
        network.dedup();
        directories.sort();
        directories.dedup();
        Ok(Grants {
            base: base.to_owned(),
            directories,
            network,
        })
    }

    /// Returns the granted directories.
    pub fn directories(&self) -> &[DirectoryGrant] {
        &self.directories
    }

    /// Returns the granted addresses.
    pub fn network(&self) -> &[NetworkGrant] {
        &self.network
    }

    /// Returns the addresses that `host:port` may resolve to: a check for each.
    ///
    /// # Errors
    ///
    /// If no grant names the address.
    pub(super) fn check_name(&self, host: &str, port: u16) -> Result<Granting<'_>, Denial> {
        let granting: Vec<_> = self
            .network
            .iter()
            .filter(|grant| grant.names(host, port))
            .collect();
        if granting.is_empty() {
            return Err(self.not_granted(display_address(host, port)));
        }
        Ok(Granting {
            all: &self.network,
            address: display_address(host, port),
            local: is_localhost(host),
            port,
        })
    }

    /// Checks a name that is looked up, whatever the port that it is for.
    pub(super) fn check_lookup(&self, name: &str) -> Result<(), Denial> {
        match self.network.iter().any(|grant| grant.names_host(name)) {
            true => Ok(()),
            false => Err(self.not_granted(name.to_owned())),
        }
    }

    /// Checks an address that is dialled as an address: it is granted itself, or one of
    /// the names that led to it is.
    pub(super) fn check_socket<'a>(
        &self,
        ip: IpAddr,
        port: u16,
        names: impl Iterator<Item = &'a str>,
    ) -> Result<(), Denial> {
        let check = |host: &str| self.check_name(host, port)?.check(ip);
        let mut refused = match check(&ip.to_string()) {
            Ok(()) => return Ok(()),
            Err(denial) => denial,
        };
        for name in names {
            match check(name) {
                Ok(()) => return Ok(()),
                // Says more than that the address is not granted.
                Err(inside @ Denial::Inside { .. }) => refused = inside,
                Err(_) => {}
            }
        }
        Err(refused)
    }

    fn not_granted(&self, address: String) -> Denial {
        Denial::Address {
            address,
            granted: self.network.iter().map(ToString::to_string).collect(),
        }
    }

    /// Returns the real path of a file in a granted directory.
    ///
    /// Its directory is resolved first, so that neither `..` nor a link leads
    /// out; the file itself must not be a link.
    pub(super) fn file(&self, path: &str) -> Result<PathBuf, Denial> {
        let refuse = |reason: String| Denial::File {
            path: path.to_owned(),
            reason,
        };
        let full = self.base.join(path);
        let (Some(parent), Some(name)) = (full.parent(), full.file_name()) else {
            return Err(refuse("it names no file".into()));
        };
        // Before anything else, so that a guest does not learn what exists.
        let denied = || Denial::Path {
            path: path.to_owned(),
            granted: self.directories.iter().map(|d| d.guest.clone()).collect(),
        };
        let parent = parent.canonicalize().map_err(|_| denied())?;
        let inside = self.directories.iter().any(|directory| {
            directory
                .host
                .canonicalize()
                .is_ok_and(|granted| parent.starts_with(granted))
        });
        if !inside {
            return Err(denied());
        }
        let file = parent.join(name);
        match file.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => Err(refuse("it is a symbolic link".into())),
            Ok(metadata) if !metadata.is_file() => Err(refuse("it is not a file".into())),
            Ok(_) => Ok(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(file),
            Err(error) => Err(refuse(error.to_string())),
        }
    }
}

/// The grants that allowed a name; each address it resolves to is checked too.
pub(super) struct Granting<'a> {
    all: &'a [NetworkGrant],
    pub(super) address: String,
    local: bool,
    port: u16,
}

impl Granting<'_> {
    /// Checks one address.
    ///
    /// A name in someone else's hands could lead to this machine, or to the
    /// cloud's metadata service beside it: such addresses must be granted as
    /// addresses.
    pub(super) fn check(&self, ip: IpAddr) -> Result<(), Denial> {
        let ip = ip.to_canonical();
        let class = match class(ip) {
            None => return Ok(()),
            Some(LOOPBACK) if self.local => return Ok(()),
            Some(class) => class,
        };
        if self.all.iter().any(|grant| grant.is_address(ip, self.port)) {
            return Ok(());
        }
        Err(Denial::Inside {
            address: self.address.clone(),
            ip,
            port: self.port,
            class,
        })
    }
}

const LOOPBACK: &str = "this machine";

/// Returns what kind of address it is, if a name must not lead there.
fn class(ip: IpAddr) -> Option<&'static str> {
    let link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    if ip.is_loopback() {
        Some(LOOPBACK)
    } else if link_local {
        Some("a link-local address")
    } else if ip.is_multicast() {
        Some("a multicast address")
    } else if ip.is_unspecified() {
        Some("no address")
    } else {
        None
    }
}

fn is_localhost(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost")
}

impl NetworkGrant {
    /// Reads `host:port`, where the host may be `*.example.com` and the port
    /// `*`.
    fn parse(text: &str) -> Result<NetworkGrant, &'static str> {
        let (host, port) = split_port(text).ok_or("it has no port: write host:port")?;
        let port = match port {
            "*" => None,
            number => Some(parse_port(number)?),
        };
        let host = match host.strip_prefix('*') {
            Some(end) if end.len() > 1 && end.starts_with('.') => {
                Host::Under(checked_name(end)?.to_ascii_lowercase())
            }
            Some(_) => return Err("a * stands for the first part of a name: *.example.com"),
            None => Host::parse(host)?,
        };
        Ok(NetworkGrant { host, port })
    }

    fn names(&self, host: &str, port: u16) -> bool {
        self.names_host(host) && self.port.is_none_or(|granted| granted == port)
    }

    fn names_host(&self, host: &str) -> bool {
        match (&self.host, Host::parse(host)) {
            (Host::Under(end), Ok(Host::Name(name))) => name.ends_with(end.as_str()),
            (granted, Ok(host)) => *granted == host,
            (_, Err(_)) => false,
        }
    }

    fn is_address(&self, ip: IpAddr, port: u16) -> bool {
        self.host == Host::Address(ip) && self.port.is_none_or(|granted| granted == port)
    }
}

impl fmt::Display for NetworkGrant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Address(IpAddr::V6(ip)) => write!(formatter, "[{ip}]")?,
            Host::Address(ip) => write!(formatter, "{ip}")?,
            Host::Name(name) => write!(formatter, "{name}")?,
            Host::Under(end) => write!(formatter, "*{end}")?,
        }
        match self.port {
            Some(port) => write!(formatter, ":{port}"),
            None => write!(formatter, ":*"),
        }
    }
}

impl Host {
    fn parse(host: &str) -> Result<Host, &'static str> {
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        match bare.unwrap_or(host).parse::<IpAddr>() {
            Ok(ip) => Ok(Host::Address(ip.to_canonical())),
            Err(_) => {
                let name = checked_name(host)?.to_ascii_lowercase();
                // The dot of a fully qualified name makes no other name of it.
                Ok(Host::Name(name.strip_suffix('.').unwrap_or(&name).into()))
            }
        }
    }
}

fn checked_name(name: &str) -> Result<&str, &'static str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if name.is_empty() {
        Err("it has no host")
    } else if !name.chars().all(fits) {
        Err("its host has characters that no host name has")
    } else {
        Ok(name)
    }
}

/// Splits `host:port`; an IPv6 address must be in brackets.
fn split_port(text: &str) -> Option<(&str, &str)> {
    let (host, port) = text.rsplit_once(':')?;
    let bracketed = host.starts_with('[') && host.ends_with(']');
    (bracketed || !host.contains(':')).then_some((host, port))
}

fn parse_port(text: &str) -> Result<u16, &'static str> {
    match text.parse() {
        Ok(0) | Err(_) => Err("its port is not a number from 1 to 65535"),
        Ok(port) => Ok(port),
    }
}

fn display_address(host: &str, port: u16) -> String {
    if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// Makes a grant of a configured address: `host:port` or a URL.
fn address_grant(text: &str, pointer: &str) -> Result<NetworkGrant, GrantError> {
    let refuse = |reason| GrantError::Address {
        place: format!("the config at {pointer}"),
        reason,
    };
    let (host, port) = if text.contains("://") {
        let url = Url::parse(text).map_err(|_| refuse("it is not a valid URL"))?;
        let host = url.host_str().ok_or(refuse("the URL has no host"))?;
        let port = url
            .port_or_known_default()
            .or_else(|| known_port(url.scheme()))
            .ok_or(refuse("the URL has no port"))?;
        (host.to_owned(), port)
    } else {
        let (host, port) = split_port(text).ok_or(refuse("it has no port: write host:port"))?;
        (host.to_owned(), parse_port(port).map_err(refuse)?)
    };
    Ok(NetworkGrant {
        host: Host::parse(&host).map_err(refuse)?,
        port: Some(port),
    })
}

/// Ports of the schemes that databases use in their URLs.
fn known_port(scheme: &str) -> Option<u16> {
    match scheme {
        "postgres" | "postgresql" => Some(5432),
        "mysql" | "mariadb" => Some(3306),
        "redis" => Some(6379),
        "mongodb" => Some(27017),
        "clickhouse" => Some(9000),
        "nats" => Some(4222),
        _ => None,
    }
}

/// Returns the texts at a pointer: one, several of an array, or none.
fn texts<'a>(
    config: &'a Value,
    pointer: &str,
    want: &'static str,
) -> Result<Vec<&'a str>, GrantError> {
    let refuse = |value: &Value| GrantError::Value {
        pointer: pointer.to_owned(),
        found: type_name(value),
        want,
    };
    let text = |value: &'a Value| value.as_str().ok_or_else(|| refuse(value));
    let found = match config.pointer(pointer) {
        // An optional setting that is not set wants nothing.
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(values)) => values.iter().map(text).collect::<Result<_, _>>()?,
        Some(value) => vec![text(value)?],
    };
    Ok(found.into_iter().filter(|text| !text.is_empty()).collect())
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Grants what a configured path names: itself, or a file's parent.
fn directory_of(text: &str, base: &Path, is_directory: &dyn Fn(&Path) -> bool) -> DirectoryGrant {
    let path = Path::new(text);
    let ends_open = matches!(
        path.components().next_back(),
        None | Some(Component::CurDir | Component::ParentDir | Component::RootDir)
    );
    if text.ends_with('/') || ends_open || is_directory(&base.join(path)) {
        return whole_directory(text, base);
    }
    let parent = path.parent().map_or("", |parent| {
        parent.to_str().expect("a part of a text is text")
    });
    whole_directory(parent, base)
}

fn whole_directory(text: &str, base: &Path) -> DirectoryGrant {
    let guest = match text.trim_end_matches('/') {
        "" if text.starts_with('/') => "/",
        "" => ".",
        text => text,
    };
    DirectoryGrant {
        guest: guest.to_owned(),
        host: base.join(guest),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use serde_json::json;

    use super::*;

    fn grants(wants: Wants, config: Value, allow: Allow) -> Result<Grants, GrantError> {
        let is_directory = |path: &Path| path.ends_with("folder");
        Grants::new(&wants, &config, &allow, Path::new("/base"), &is_directory)
    }

    fn network(config: Value, allow: Option<&[&str]>) -> Result<Vec<String>, String> {
        let wants = Wants {
            network: vec!["/address".into()],
            directory: vec![],
        };
        let allow = Allow {
            network: allow.map(|list| list.iter().map(|&text| text.to_owned()).collect()),
            directory: None,
        };
        match grants(wants, config, allow) {
            Ok(grants) => Ok(grants.network.iter().map(ToString::to_string).collect()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn addresses_come_from_where_the_spec_points() {
        let cases = [
            (json!("db:5432"), "db:5432"),
            (json!("DB.example.com.:5432"), "db.example.com:5432"),
            (json!("[::1]:80"), "[::1]:80"),
            (json!("https://a.example/x"), "a.example:443"),
            (json!("postgres://me:secret@db/x"), "db:5432"),
            (json!("redis://db:1/x"), "db:1"),
        ];
        for (address, want) in cases {
            let granted = network(json!({"address": address}), None);
            assert_eq!(granted, Ok(vec![want.to_owned()]), "{address}");
        }
        for nothing in [json!({}), json!({"address": null}), json!({"address": ""})] {
            assert_eq!(network(nothing, None), Ok(vec![]));
        }
        let both = network(json!({"address": ["b:2", "a:1", "b:2"]}), None);
        assert_eq!(both, Ok(vec!["a:1".to_owned(), "b:2".to_owned()]));
    }

    #[test]
    fn an_address_that_cannot_be_read_is_refused_without_its_text() {
        let bad = [
            json!("me:secret@db"),
            json!("secret"),
            json!("secret:0"),
            json!("secret:x"),
            json!("::1:80"),
            json!(":80"),
            json!("foo://me:secret@db/"),
            json!("http://"),
            json!(5432),
            json!({"secret": 1}),
        ];
        for address in bad {
            let error = network(json!({"address": address}), None).unwrap_err();
            assert!(error.contains("/address"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn allow_replaces_what_the_config_names() {
        let config = json!({"address": "db:5432"});
        assert_eq!(network(config.clone(), Some(&[])), Ok(vec![]));
        let wide = network(config.clone(), Some(&["*.example.com:443", "10.0.0.1:*"]));
        let want = ["10.0.0.1:*", "*.example.com:443"].map(str::to_owned);
        assert_eq!(wide, Ok(want.into()));
        for bad in ["*:1", "ex*mple.com:1", "*.:x", "db"] {
            let error = network(config.clone(), Some(&[bad])).unwrap_err();
            assert!(
                error.contains("allow.network") && error.contains(bad),
                "{error}"
            );
        }
    }

    #[test]
    fn a_named_file_grants_its_parent() {
        let cases = [
            ("out.db", ".", "/base/."),
            ("data/out.db", "data", "/base/data"),
            ("data/", "data", "/base/data"),
            ("data/folder", "data/folder", "/base/data/folder"),
            ("/var/x/out.db", "/var/x", "/var/x"),
            ("/out.db", "/", "/"),
            ("..", "..", "/base/.."),
        ];
        for (path, guest, host) in cases {
            let wants = Wants {
                network: vec![],
                directory: vec!["/path".into()],
            };
            let granted = grants(wants, json!({"path": path}), Allow::default()).unwrap();
            let want = DirectoryGrant {
                guest: guest.into(),
                host: host.into(),
            };
            assert_eq!(granted.directories(), [want], "{path}");
        }
    }

    fn granting(patterns: &[&str]) -> Grants {
        let network = patterns.iter().map(|text| NetworkGrant::parse(text));
        Grants {
            network: network.collect::<Result<_, _>>().unwrap(),
            ..Grants::none()
        }
    }

    fn check(patterns: &[&str], host: &str, ip: &str) -> Result<(), Denial> {
        let grants = granting(patterns);
        grants.check_name(host, 80)?.check(ip.parse().unwrap())
    }

    #[test]
    fn a_name_and_what_it_resolves_to_are_both_checked() {
        struct Case {
            patterns: &'static [&'static str],
            host: &'static str,
            ip: &'static str,
            want: &'static str,
        }
        let case = |patterns, host, ip, want| Case {
            patterns,
            host,
            ip,
            want,
        };
        let cases = [
            case(&["db:80"], "db", "10.0.0.1", ""),
            case(&["db:80"], "DB.", "10.0.0.1", ""),
            case(&["db:*"], "db", "10.0.0.1", ""),
            case(&["db:81"], "db", "10.0.0.1", "granted is db:81"),
            case(&[], "db", "10.0.0.1", "no network is granted"),
            case(&["db:80"], "10.0.0.1", "10.0.0.1", "not granted"),
            case(&["*.a.com:80"], "x.y.a.com", "10.0.0.1", ""),
            case(&["*.a.com:80"], "a.com", "10.0.0.1", "not granted"),
            case(&["*.a.com:80"], "xa.com", "10.0.0.1", "not granted"),
            case(&["db:80"], "db", "127.0.0.1", "this machine"),
            case(&["db:80"], "db", "::ffff:127.0.0.1", "this machine"),
            case(&["db:80"], "db", "169.254.169.254", "link-local"),
            case(&["db:80"], "db", "0.0.0.0", "no address"),
            case(&["db:80", "127.0.0.1:80"], "db", "127.0.0.1", ""),
            case(&["localhost:80"], "localhost", "127.0.0.1", ""),
            case(&["localhost:80"], "localhost", "169.254.1.1", "link-local"),
            case(&["127.0.0.1:80"], "127.0.0.1", "127.0.0.1", ""),
            case(&["[::1]:80"], "::1", "::1", ""),
        ];
        for Case {
            patterns,
            host,
            ip,
            want,
        } in cases
        {
            match check(patterns, host, ip) {
                Ok(()) => assert_eq!(want, "", "{patterns:?} {host} {ip}"),
                Err(denial) => {
                    let text = denial.to_string();
                    assert!(!want.is_empty() && text.contains(want), "{text}");
                }
            }
        }
    }

    #[test]
    fn an_address_is_reached_by_itself_or_by_a_name_that_led_to_it() {
        struct Case {
            patterns: &'static [&'static str],
            ip: &'static str,
            names: &'static [&'static str],
            want: &'static str,
        }
        let case = |patterns, ip, names, want| Case {
            patterns,
            ip,
            names,
            want,
        };
        let cases = [
            case(&["10.0.0.1:80"], "10.0.0.1", &[], ""),
            case(&["127.0.0.1:80"], "127.0.0.1", &[], ""),
            case(&["10.0.0.1:81"], "10.0.0.1", &[], "granted is 10.0.0.1:81"),
            case(&["10.0.0.1:80"], "10.0.0.2", &[], "not granted"),
            case(&["db:80"], "10.0.0.1", &["db"], ""),
            case(&["db:80"], "10.0.0.1", &[], "10.0.0.1:80 is not granted"),
            case(
                &["db:80", "other:81"],
                "10.0.0.1",
                &["other"],
                "not granted",
            ),
            case(&["db:80", "other:81"], "10.0.0.1", &["db", "other"], ""),
            case(&["db:80"], "127.0.0.1", &["db"], "this machine"),
            case(&["localhost:80"], "127.0.0.1", &["localhost"], ""),
            case(
                &["db:80", "localhost:80"],
                "127.0.0.1",
                &["db", "localhost"],
                "",
            ),
        ];
        for Case {
            patterns,
            ip,
            names,
            want,
        } in cases
        {
            let names = names.iter().copied();
            match granting(patterns).check_socket(ip.parse().unwrap(), 80, names.clone()) {
                Ok(()) => assert_eq!(want, "", "{patterns:?} {ip} {names:?}"),
                Err(denial) => {
                    let text = denial.to_string();
                    assert!(!want.is_empty() && text.contains(want), "{text}");
                }
            }
        }
        for (name, granted) in [
            ("db", true),
            ("DB.", true),
            ("x.a.com", true),
            ("a.com", false),
            ("10.0.0.1", false),
        ] {
            let checked = granting(&["db:80", "*.a.com:*"]).check_lookup(name);
            assert_eq!(checked.is_ok(), granted, "{name}");
        }
    }

    #[test]
    fn files_outside_the_grant_are_refused() {
        let base = tempfile::tempdir().unwrap();
        let at = |path: &str| base.path().join(path);
        fs::create_dir_all(at("data/deep")).unwrap();
        fs::create_dir(at("other")).unwrap();
        fs::write(at("other/secret.db"), "").unwrap();
        symlink(at("other"), at("data/door")).unwrap();
        symlink(at("other/secret.db"), at("data/link.db")).unwrap();
        symlink(at("other/new.db"), at("data/dangling.db")).unwrap();
        symlink("deep", at("data/shortcut")).unwrap();
        let grants = Grants {
            base: base.path().into(),
            directories: vec![whole_directory("data", base.path())],
            network: vec![],
        };
        let absolute = at("other/secret.db");
        let cases = [
            ("data/out.db", true),
            ("data/deep/out.db", true),
            ("data/shortcut/out.db", true),
            ("data/../data/out.db", true),
            ("data/../other/secret.db", false),
            ("data/door/secret.db", false),
            ("data/link.db", false),
            ("data/dangling.db", false),
            ("data/deep", false),
            ("data/none/out.db", false),
            ("other/secret.db", false),
            ("out.db", false),
            ("data", false),
            ("data/..", false),
            ("", false),
            (absolute.to_str().unwrap(), false),
            ("/etc/passwd", false),
        ];
        for (path, want) in cases {
            let found = grants.file(path);
            assert_eq!(found.is_ok(), want, "{path}: {found:?}");
        }
        assert!(Grants::none().file("/tmp/x.db").is_err());
    }
}
