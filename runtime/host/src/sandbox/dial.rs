//! Dialling: the one way out of the sandbox.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::{TcpStream, lookup_host};

use super::grant::{Denial, Grants};

/// A connection that was not made.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// It is not granted.
    #[error(transparent)]
    Denied(#[from] Denial),
    /// The name leads nowhere.
    #[error("{address} cannot be resolved: {source}")]
    Resolve {
        /// What was dialled.
        address: String,
        /// Why not.
        source: io::Error,
    },
    /// No address answered.
    #[error("{address} cannot be reached: {source}")]
    Connect {
        /// What was dialled.
        address: String,
        /// Why the last of its addresses did not answer.
        source: io::Error,
    },
}

/// Resolves a name, checks every address it has now against the grants, and
/// dials those that are granted, in order, until one answers.
///
/// # Errors
///
/// If the address is not granted, or not reachable.
pub async fn dial(grants: &Grants, host: &str, port: u16) -> Result<TcpStream, DialError> {
    let granting = grants.check_name(host, port)?;
    let address = || granting.address.clone();
    let addresses = resolve(host, port)
        .await
        .map_err(|source| DialError::Resolve {
            address: address(),
            source,
        })?;
    let mut failure = DialError::Resolve {
        address: address(),
        source: io::Error::new(io::ErrorKind::NotFound, "the name has no address"),
    };
    for socket in addresses {
        if let Err(denial) = granting.check(socket.ip()) {
            failure = denial.into();
            continue;
        }
        match TcpStream::connect(socket).await {
            Ok(stream) => {
                // Requests are written whole; waiting for more costs a
                // round trip each.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(source) => {
                failure = DialError::Connect {
                    address: address(),
                    source,
                }
            }
        }
    }
    Err(failure)
}

async fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    match bare.unwrap_or(host).parse::<IpAddr>() {
        Ok(ip) => Ok(vec![SocketAddr::new(ip, port)]),
        Err(_) => Ok(lookup_host((host, port)).await?.collect()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::Value;
    use tidegate_wit::message::Wants;
    use tokio::net::TcpListener;

    use super::super::grant::Allow;
    use super::*;

    /// Grants these addresses.
    pub(in crate::sandbox) fn network(patterns: &[&str]) -> Grants {
        let allow = Allow {
            network: Some(patterns.iter().map(|&text| text.to_owned()).collect()),
            directory: None,
        };
        let base = std::path::Path::new("/");
        Grants::new(&Wants::default(), &Value::Null, &allow, base, &|_| false).unwrap()
    }

    #[tokio::test]
    async fn only_granted_addresses_are_dialled() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let granted = |host: &str| network(&[&format!("{host}:{port}")]);
        for host in ["127.0.0.1", "localhost"] {
            dial(&granted(host), host, port).await.unwrap();
        }
        let denied = dial(&granted("localhost"), "127.0.0.1", port).await;
        assert!(matches!(denied, Err(DialError::Denied(_))), "{denied:?}");
        let denied = dial(&Grants::none(), "127.0.0.1", port).await;
        assert!(matches!(denied, Err(DialError::Denied(_))), "{denied:?}");
    }

    #[tokio::test]
    async fn an_address_that_does_not_answer_is_named() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let grants = network(&[&format!("127.0.0.1:{port}")]);
        let error = dial(&grants, "127.0.0.1", port).await.unwrap_err();
        assert!(matches!(error, DialError::Connect { .. }), "{error}");
        assert!(error.to_string().contains(&port.to_string()), "{error}");
    }
}
