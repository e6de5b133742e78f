//! TCP to the addresses that the host grants.
//!
//! Natively it is plain TCP, ungranted.

use crate::error::ConnectorError;

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
}

#[cfg(target_family = "wasm")]
mod imp {
    pub(super) use crate::bindings::tidegate::connector::net::Connection;

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
}

#[cfg(not(target_family = "wasm"))]
mod imp {
    use std::io::{Error, Read, Write};
    pub(super) use std::net::TcpStream as Connection;

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

    fn lost(error: Error) -> ConnectorError {
        ConnectorError::transient(format!("the connection is lost: {error}"))
    }
}
