//! The interface `net`: TCP to granted addresses, and TLS in mid-stream.
//!
//! Nothing here has a timeout of its own: a wait that takes too long is ended
//! by the limit on imports, like every other.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wasmtime::component::Resource;

use super::bindings::net::{Host, HostConnection, Tls};
use super::bindings::{ErrorKind, GuestError};
use super::dial::{DialError, dial};
use super::guest::Guest;
use super::stream::Stream;
use super::tls;

/// A read returns at most this much, whatever was asked for: it is memory of
/// the host's. Larger than what a socket usually has ready.
const READ_BYTES_MAX: usize = 256 << 10;

/// One connection of a guest.
pub struct Connection {
    /// None after a TLS handshake failed: bytes of it may be lost.
    stream: Option<Stream>,
    address: String,
}

impl Connection {
    fn stream(&mut self) -> Result<&mut Stream, GuestError> {
        self.stream.as_mut().ok_or_else(|| {
            error(
                ErrorKind::Internal,
                format!(
                    "the connection to {} was closed by a failed TLS handshake",
                    self.address
                ),
            )
        })
    }

    async fn read(&mut self, max: usize) -> Result<Vec<u8>, GuestError> {
        if max == 0 {
            return Err(error(ErrorKind::Internal, "a read of no bytes".into()));
        }
        let mut bytes = vec![0; max.min(READ_BYTES_MAX)];
        let read = match self.stream()?.read(&mut bytes).await {
            Ok(read) => read,
            Err(source) => return Err(self.failed("reading from", &source)),
        };
        bytes.truncate(read);
        Ok(bytes)
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), GuestError> {
        let stream = self.stream()?;
        let write = async {
            stream.write_all(bytes).await?;
            stream.flush().await
        };
        match write.await {
            Ok(()) => Ok(()),
            Err(source) => Err(self.failed("writing to", &source)),
        }
    }

    async fn start_tls(&mut self, options: Tls) -> Result<(), GuestError> {
        if matches!(self.stream()?, Stream::Tls(_)) {
            let message = format!("the connection to {} is TLS already", self.address);
            return Err(error(ErrorKind::Internal, message));
        }
        let connector = tls::connector(options.verify, options.ca.as_deref())
            .map_err(|refused| error(ErrorKind::Config, refused.to_string()))?;
        let name = tls::server_name(&options.server_name)
            .map_err(|refused| error(ErrorKind::Config, refused.to_string()))?;
        let Some(Stream::Plain(plain)) = self.stream.take() else {
            return Err(error(
                ErrorKind::Internal,
                "the connection is closed".into(),
            ));
        };
        match connector.connect(name, plain).await {
            Ok(stream) => {
                self.stream = Some(Stream::Tls(Box::new(stream)));
                Ok(())
            }
            Err(source) => Err(self.handshake_failed(&source)),
        }
    }

    fn failed(&self, doing: &str, source: &io::Error) -> GuestError {
        error(
            ErrorKind::Transient,
            format!("{doing} {}: {source}", self.address),
        )
    }

    /// A certificate that is refused today is refused tomorrow; a handshake
    /// that broke off may succeed.
    fn handshake_failed(&self, source: &io::Error) -> GuestError {
        let kind = match tls::is_refusal(source) {
            true => ErrorKind::Config,
            false => ErrorKind::Transient,
        };
        error(kind, format!("TLS with {}: {source}", self.address))
    }
}

fn error(kind: ErrorKind, message: String) -> GuestError {
    GuestError {
        kind,
        message,
        binding: None,
        key: None,
        field: None,
    }
}

impl From<DialError> for GuestError {
    fn from(refused: DialError) -> GuestError {
        let kind = match refused {
            DialError::Denied(_) => ErrorKind::Config,
            DialError::Resolve { .. } | DialError::Connect { .. } => ErrorKind::Transient,
        };
        error(kind, refused.to_string())
    }
}

impl Host for Guest {
    async fn connect(
        &mut self,
        host: String,
        port: u16,
    ) -> wasmtime::Result<Result<Resource<Connection>, GuestError>> {
        self.enter("net.connect");
        let stream = match dial(&self.grants, &host, port).await {
            Ok(stream) => stream,
            Err(refused) => return Ok(Err(refused.into())),
        };
        let connection = Connection {
            stream: Some(Stream::Plain(stream)),
            address: format!("{host}:{port}"),
        };
        Ok(Ok(self.table.push(connection)?))
    }
}

impl HostConnection for Guest {
    async fn read(
        &mut self,
        connection: Resource<Connection>,
        max: u32,
    ) -> wasmtime::Result<Result<Vec<u8>, GuestError>> {
        let connection = self.enter("net.read").table.get_mut(&connection)?;
        Ok(connection.read(max as usize).await)
    }

    async fn write(
        &mut self,
        connection: Resource<Connection>,
        data: Vec<u8>,
    ) -> wasmtime::Result<Result<(), GuestError>> {
        let connection = self.enter("net.write").table.get_mut(&connection)?;
        Ok(connection.write(&data).await)
    }

    async fn start_tls(
        &mut self,
        connection: Resource<Connection>,
        options: Tls,
    ) -> wasmtime::Result<Result<(), GuestError>> {
        let connection = self.enter("net.start-tls").table.get_mut(&connection)?;
        Ok(connection.start_tls(options).await)
    }

    async fn drop(&mut self, connection: Resource<Connection>) -> wasmtime::Result<()> {
        self.enter("net.drop").table.delete(connection)?;
        Ok(())
    }
}
