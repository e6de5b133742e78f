//! Reaching for what a connector may or may not have, and saying what came of it.
//!
//! ```text
//! fault `reach` -> each attempt -> "reached ..." or why not -> one error with all of them
//! ```

use serde::Deserialize;
use tidegate_boilerplate::ConnectorError;
use tidegate_boilerplate::net::Connection;
use tidegate_boilerplate::sqlite::Database;

/// Something outside of the sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reach {
    /// `host:port`, by the import `net`.
    Net(String),
    /// A URL, by `wasi:http`.
    Http(String),
    /// `host:port`, by a socket of WASI, and its look-up if the host is a name.
    Socket(String),
    /// `host:port`, to be listened on by a socket of WASI.
    Listen(String),
    /// A name, by the look-up of WASI.
    Name(String),
    /// A file, to be read.
    File(String),
    /// A file, to be made.
    NewFile(String),
    /// A database, by the import `sqlite`.
    Database(String),
    /// Environment variables and arguments.
    Environment,
}

impl Reach {
    /// Tries; returns what was found, or why nothing was.
    fn attempt(&self) -> Result<String, String> {
        match self {
            Reach::Net(address) => net(address).map_err(|error| error.message),
            Reach::Http(url) => http(url).map_err(|error| error.message),
            Reach::Socket(address) => wasi::socket(address),
            Reach::Listen(address) => wasi::listen(address),
            Reach::Name(name) => wasi::name(name),
            Reach::File(path) => std::fs::read_to_string(path).map_err(|it| it.to_string()),
            Reach::NewFile(path) => std::fs::write(path, "made by a connector")
                .map(|()| "a new file".to_owned())
                .map_err(|error| error.to_string()),
            Reach::Database(path) => Database::open(path)
                .and_then(|db| db.execute("CREATE TABLE reached (n)", &[]))
                .map(|_| "a database".to_owned())
                .map_err(|error| error.message),
            Reach::Environment => Ok(environment()),
        }
    }
}

/// Tries everything; returns the error that tells of it.
pub(crate) fn all(reaches: &[Reach]) -> ConnectorError {
    let told = (1..).zip(reaches).map(|(n, reach)| match reach.attempt() {
        Ok(found) => format!("{n} reached {found}"),
        Err(reason) => format!("{n} refused: {reason}"),
    });
    ConnectorError::config(format!("faulty: {}.", told.collect::<Vec<_>>().join(" | ")))
}

/// Splits `host:port`.
pub(crate) fn split(address: &str) -> Result<(&str, u16), ConnectorError> {
    let parts = address.rsplit_once(':');
    let parts = parts.and_then(|(host, port)| Some((host, port.parse().ok()?)));
    parts.ok_or_else(|| {
        let message = format!("address {address:?} is not host:port");
        ConnectorError::config(message).of_field("address")
    })
}

fn net(address: &str) -> Result<String, ConnectorError> {
    let (host, port) = split(address)?;
    Connection::open(host, port).map(|_| "a server".to_owned())
}

fn http(url: &str) -> Result<String, ConnectorError> {
    let request = ::http::Request::get(url).body(Vec::new());
    let request = request.map_err(|error| ConnectorError::config(error.to_string()))?;
    let response = tidegate_boilerplate::http::send(&request)?;
    Ok(format!("an answer, {}", response.status().as_u16()))
}

fn environment() -> String {
    let variables: Vec<_> = std::env::vars()
        .map(|(name, it)| format!("{name}={it}"))
        .collect();
    let arguments: Vec<_> = std::env::args().collect();
    format!("variables {variables:?}, arguments {arguments:?}")
}

#[cfg(target_family = "wasm")]
mod wasi {
    use std::net::Ipv4Addr;

    use tidegate_boilerplate::bindings::wasi::sockets::instance_network::instance_network;
    use tidegate_boilerplate::bindings::wasi::sockets::ip_name_lookup::resolve_addresses;
    use tidegate_boilerplate::bindings::wasi::sockets::network::{
        ErrorCode, IpAddress, IpAddressFamily, IpSocketAddress, Ipv4SocketAddress,
    };
    use tidegate_boilerplate::bindings::wasi::sockets::tcp_create_socket::create_tcp_socket;

    pub(super) fn socket(address: &str) -> Result<String, String> {
        let (host, port) = super::split(address).map_err(|error| error.message)?;
        let connect = || {
            let ip = match host.parse::<Ipv4Addr>() {
                Ok(ip) => ip,
                Err(_) => look_up(host)?,
            };
            let socket = create_tcp_socket(IpAddressFamily::Ipv4)?;
            socket.start_connect(&instance_network(), with_port(ip, port))?;
            socket.subscribe().block();
            socket.finish_connect()?;
            Ok("a server".to_owned())
        };
        connect().map_err(|code: ErrorCode| code.to_string())
    }

    pub(super) fn listen(address: &str) -> Result<String, String> {
        let (host, port) = super::split(address).map_err(|error| error.message)?;
        let ip = host.parse().map_err(|_| "no IPv4 address")?;
        let listen = || {
            let socket = create_tcp_socket(IpAddressFamily::Ipv4)?;
            socket.start_bind(&instance_network(), with_port(ip, port))?;
            socket.finish_bind()?;
            socket.start_listen()?;
            socket.finish_listen()?;
            Ok("a listener".to_owned())
        };
        listen().map_err(|code: ErrorCode| code.to_string())
    }

    pub(super) fn name(name: &str) -> Result<String, String> {
        match look_up(name) {
            Ok(ip) => Ok(format!("an address, {ip}")),
            Err(code) => Err(code.to_string()),
        }
    }

    /// Returns the first IPv4 address of a name.
    fn look_up(name: &str) -> Result<Ipv4Addr, ErrorCode> {
        let addresses = resolve_addresses(&instance_network(), name)?;
        addresses.subscribe().block();
        while let Some(address) = addresses.resolve_next_address()? {
            if let IpAddress::Ipv4((a, b, c, d)) = address {
                return Ok([a, b, c, d].into());
            }
        }
        Err(ErrorCode::NameUnresolvable)
    }

    fn with_port(ip: Ipv4Addr, port: u16) -> IpSocketAddress {
        let [a, b, c, d] = ip.octets();
        IpSocketAddress::Ipv4(Ipv4SocketAddress {
            port,
            address: (a, b, c, d),
        })
    }
}

#[cfg(not(target_family = "wasm"))]
mod wasi {
    const NONE: &str = "natively there is no WASI";

    pub(super) fn socket(_: &str) -> Result<String, String> {
        Err(NONE.to_owned())
    }

    pub(super) fn listen(_: &str) -> Result<String, String> {
        Err(NONE.to_owned())
    }

    pub(super) fn name(_: &str) -> Result<String, String> {
        Err(NONE.to_owned())
    }
}
