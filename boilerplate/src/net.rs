//! TCP to the addresses that the host grants.
//!
//! Natively it is plain TCP, ungranted and without TLS.

use crate::error::ConnectorError;

/// How far a server's certificate is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// Not at all: the connection is encrypted, with whom is not known.
    None,
    /// The chain must end at a trusted authority.
    Ca,
    /// And the certificate must name the server.
    Full,
}

/// How a connection becomes TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The name that the certificate is to have.
    pub server_name: String,
    /// How far it is checked.
    pub verify: Verify,
    /// PEM of the only authorities to trust; without it, the usual ones.
    pub ca: Option<String>,
}

/// A connection.
#[derive(Debug)]
pub struct Connection(imp::Connection);

impl Connection {
    /// Connects to a host by name or address.
    ///
    /// # Errors
    ///
    /// If the address is not granted, or nothing listens there.
    pub fn open(host: &str, port: u16) -> Result<Self, ConnectorError> {
        imp::open(host, port).map(Self)
    }

    /// Reads at most `max` bytes: at least one, or none at the end of the stream.
    ///
    /// # Errors
    ///
    /// If the connection is lost.
    pub fn read(&mut self, max: u32) -> Result<Vec<u8>, ConnectorError> {
        imp::read(&mut self.0, max)
    }

    /// Writes all of the bytes.
    ///
    /// # Errors
    ///
    /// If the connection is lost.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), ConnectorError> {
        imp::write(&mut self.0, bytes)
    }

    /// Turns the connection into TLS, in mid-stream; the host does it.
    ///
    /// # Errors
    ///
    /// If the handshake fails or the certificate is refused, and natively.
    pub fn start_tls(&mut self, options: &Tls) -> Result<(), ConnectorError> {
        imp::start_tls(&mut self.0, options)
    }
}

#[cfg(target_family = "wasm")]
mod imp {
    pub(super) use crate::bindings::tidegate::connector::net::Connection;

    use super::{Tls, Verify};
    use crate::bindings::tidegate::connector::net;
    use crate::error::ConnectorError;

    pub(super) fn open(host: &str, port: u16) -> Result<Connection, ConnectorError> {
        Ok(net::connect(host, port)?)
    }

    pub(super) fn read(connection: &mut Connection, max: u32) -> Result<Vec<u8>, ConnectorError> {
        Ok(connection.read(max)?)
    }

    pub(super) fn write(connection: &mut Connection, bytes: &[u8]) -> Result<(), ConnectorError> {
        Ok(connection.write(bytes)?)
    }

    pub(super) fn start_tls(
        connection: &mut Connection,
        options: &Tls,
    ) -> Result<(), ConnectorError> {
        Ok(connection.start_tls(&net::Tls {
            server_name: options.server_name.clone(),
            verify: match options.verify {
                Verify::None => net::Verify::None,
                Verify::Ca => net::Verify::Ca,
                Verify::Full => net::Verify::Full,
            },
            ca: options.ca.clone(),
        })?)
    }
}

#[cfg(not(target_family = "wasm"))]
mod imp {
    use std::io::{Error, Read, Write};
    pub(super) use std::net::TcpStream as Connection;

    use super::Tls;
    use crate::error::ConnectorError;

    pub(super) fn open(host: &str, port: u16) -> Result<Connection, ConnectorError> {
        Connection::connect((host, port)).map_err(|error| {
            ConnectorError::transient(format!("{host}:{port} cannot be reached: {error}"))
        })
    }

    pub(super) fn read(connection: &mut Connection, max: u32) -> Result<Vec<u8>, ConnectorError> {
        let mut bytes = vec![0; max as usize];
        let len = connection.read(&mut bytes).map_err(lost)?;
        bytes.truncate(len);
        Ok(bytes)
    }

    pub(super) fn write(connection: &mut Connection, bytes: &[u8]) -> Result<(), ConnectorError> {
        connection.write_all(bytes).map_err(lost)
    }

    pub(super) fn start_tls(_: &mut Connection, _: &Tls) -> Result<(), ConnectorError> {
        Err(ConnectorError::config("natively there is no TLS"))
    }

    fn lost(error: Error) -> ConnectorError {
        ConnectorError::transient(format!("the connection is lost: {error}"))
    }
}
