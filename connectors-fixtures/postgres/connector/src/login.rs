//! How a connection begins: TLS as `sslmode` says, then who we are.
//!
//! ```text
//! connect -> SSLRequest -> S: TLS by the host | N: plain, or an error -> startup -> SCRAM, MD5 or text -> ready
//! ```
//!
//! | sslmode     | first           | then |
//! |-------------|-----------------|------|
//! | disable     | plain           | |
//! | allow       | plain           | TLS, if the server refuses us |
//! | prefer      | TLS if it can   | plain, if the handshake fails or the server refuses us |
//! | require     | TLS             | |
//! | verify-ca   | TLS, authority checked | |
//! | verify-full | TLS, authority and name checked | |

use postgres_protocol::authentication;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::{AuthenticationSaslBody, Message};
use postgres_protocol::message::frontend;
use tidegate_boilerplate::net::{Connection, Tls, Verify};
use tidegate_boilerplate::{ConnectorError, ErrorKind};

use fallible_iterator::FallibleIterator;

use crate::address::Address;
use crate::client::Client;
use crate::config::{Config, SslMode};
use crate::refusal::Refusal;

/// What a session is to the server, in pg_stat_activity.
const APPLICATION_NAME: &str = "tidegate";

/// A session waits this long for a lock: longer than a merge of another session that
/// is about to be fenced off usually takes, and short enough to say why nothing moves.
const LOCK_TIMEOUT: &str = "60s";

/// A transaction is idle only between two calls of the host. One that stands still
/// this long has lost its host (a suspended machine), and its locks keep others waiting.
const IDLE_TIMEOUT: &str = "5min";

/// Connects and logs in.
pub(crate) fn connect(config: &Config) -> Result<Client, ConnectorError> {
    let address = config.address()?;
    let mut last = None;
    for encryption in Encryption::in_order(config.sslmode, config.sslrootcert.is_some()) {
        match attempt(config, &address, encryption) {
            Ok(mut client) => {
                client.run(&format!(
                    "SET lock_timeout = '{LOCK_TIMEOUT}'; \
                     SET idle_in_transaction_session_timeout = '{IDLE_TIMEOUT}'"
                ))?;
                return Ok(client);
            }
            Err(failure) if failure.another_way_may_do => last = Some(failure.error),
            Err(failure) => {
                // What the first way failed with is what the configuration asked for.
                let error = last.unwrap_or(failure.error);
                return Err(named(error, &address));
            }
        }
    }
    Err(named(
        last.expect("each mode has a way to connect"),
        &address,
    ))
}

fn named(error: ConnectorError, address: &Address) -> ConnectorError {
    ConnectorError {
        message: format!("PostgreSQL at {address}: {}", error.message),
        ..error
    }
}

/// One way to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encryption {
    Plain,
    /// TLS if the server offers it.
    IfOffered,
    Tls(Verify),
}

impl Encryption {
    fn in_order(mode: SslMode, has_authority: bool) -> Vec<Self> {
        match mode {
            SslMode::Disable => vec![Self::Plain],
            SslMode::Allow => vec![Self::Plain, Self::Tls(Verify::None)],
            SslMode::Prefer => vec![Self::IfOffered, Self::Plain],
            // Who names an authority wants it checked.
            SslMode::Require if has_authority => vec![Self::Tls(Verify::Ca)],
            SslMode::Require => vec![Self::Tls(Verify::None)],
            SslMode::VerifyCa => vec![Self::Tls(Verify::Ca)],
            SslMode::VerifyFull => vec![Self::Tls(Verify::Full)],
        }
    }
}

/// An attempt that failed.
struct Failure {
    error: ConnectorError,
    /// Whether the mode's next way may succeed where this one did not.
    another_way_may_do: bool,
}

impl From<ConnectorError> for Failure {
    fn from(error: ConnectorError) -> Self {
        Self {
            error,
            another_way_may_do: false,
        }
    }
}

fn attempt(config: &Config, address: &Address, encryption: Encryption) -> Result<Client, Failure> {
    let mut connection = Connection::open(&address.host, address.port).map_err(|error| {
        let advice = match error.kind {
            ErrorKind::Transient => "; check `address`, and that the server runs and listens there",
            _ => "",
        };
        ConnectorError {
            message: format!("{}{advice}", error.message),
            ..error
        }
    })?;
    if encryption != Encryption::Plain {
        encrypt(&mut connection, config, address, encryption)?;
    }
    let mut client = Client::new(connection);
    log_in(&mut client, config).map_err(|refused| match refused {
        LoginError::Refused(refusal) => Failure {
            another_way_may_do: refusal.is_of_hba(),
            error: refusal.into(),
        },
        LoginError::Other(error) => error.into(),
    })?;
    Ok(client)
}

/// Asks for TLS in the clear, and starts it if the server agrees.
fn encrypt(
    connection: &mut Connection,
    config: &Config,
    address: &Address,
    encryption: Encryption,
) -> Result<(), Failure> {
    let mut request = bytes::BytesMut::new();
    frontend::ssl_request(&mut request);
    connection.write(&request)?;
    // One byte and no more: what somebody slipped in behind it would else be taken for
    // the server's, though it came unencrypted.
    let answer = connection.read(1)?;
    match (&answer[..], encryption) {
        (b"S", _) => {}
        (b"N", Encryption::IfOffered) => return Ok(()),
        (b"N", _) => {
            return Err(ConnectorError::config(
                "the server offers no TLS: switch it on there (`ssl = on`), or set `sslmode` to disable",
            )
            .of_field("sslmode")
            .into());
        }
        ([], _) => {
            return Err(ConnectorError::transient("the server closed the connection").into());
        }
        _ => {
            return Err(ConnectorError::config(
                "what answers there is not PostgreSQL: check `address`",
            )
            .of_field("address")
            .into());
        }
    }
    let verify = match encryption {
        Encryption::Tls(verify) => verify,
        Encryption::Plain | Encryption::IfOffered => Verify::None,
    };
    let tls = Tls {
        server_name: address.host.clone(),
        verify,
        ca: config
            .sslrootcert
            .clone()
            .filter(|_| verify != Verify::None),
    };
    connection.start_tls(&tls).map_err(|error| Failure {
        another_way_may_do: encryption == Encryption::IfOffered,
        error: ConnectorError {
            message: match error.kind {
                ErrorKind::Config => format!(
                    "{}; check `sslrootcert`, `sslmode`, and the host's name in the server's certificate",
                    error.message
                ),
                _ => error.message.clone(),
            },
            ..error
        },
    })
}

enum LoginError {
    Refused(Refusal),
    Other(ConnectorError),
}

impl From<ConnectorError> for LoginError {
    fn from(error: ConnectorError) -> Self {
        Self::Other(error)
    }
}

fn log_in(client: &mut Client, config: &Config) -> Result<(), LoginError> {
    let parameters = [
        ("user", &*config.user),
        ("database", &config.database),
        ("application_name", APPLICATION_NAME),
        ("client_encoding", "UTF8"),
    ];
    frontend::startup_message(parameters, client.output()).map_err(unsendable)?;
    client.send()?;
    loop {
        match client.receive()? {
            Message::AuthenticationOk | Message::BackendKeyData(_) => {}
            Message::ReadyForQuery(_) => return Ok(()),
            Message::ErrorResponse(body) => {
                return Err(LoginError::Refused(Refusal::read(&body)));
            }
            Message::AuthenticationCleartextPassword => {
                send_password(client, password(config)?.as_bytes())?;
            }
            Message::AuthenticationMd5Password(body) => {
                let password = password(config)?.as_bytes();
                let hash = authentication::md5_hash(config.user.as_bytes(), password, body.salt());
                send_password(client, hash.as_bytes())?;
            }
            Message::AuthenticationSasl(body) => scram(client, &body, password(config)?)?,
            _ => {
                return Err(ConnectorError::new(
                    ErrorKind::Auth,
                    "the server asks for a way of proving who we are that the connector does not have: allow \
                     scram-sha-256 for this user in its pg_hba.conf",
                )
                .into());
            }
        }
    }
}

fn password(config: &Config) -> Result<&str, ConnectorError> {
    config.password.as_deref().ok_or_else(|| {
        ConnectorError::new(
            ErrorKind::Auth,
            format!(
                "the server asks for a password of user {:?}, and the configuration has none: set `password`",
                config.user
            ),
        )
        .of_field("password")
    })
}

fn send_password(client: &mut Client, password: &[u8]) -> Result<(), ConnectorError> {
    frontend::password_message(password, client.output()).map_err(unsendable)?;
    client.send()
}

/// Proves that we know the password, and has the server prove that it does.
fn scram(
    client: &mut Client,
    body: &AuthenticationSaslBody,
    password: &str,
) -> Result<(), LoginError> {
    let offered = body.mechanisms().any(|it| Ok(it == SCRAM_SHA_256));
    if !offered.unwrap_or(false) {
        return Err(ConnectorError::new(
            ErrorKind::Auth,
            "the server offers no scram-sha-256: allow it for this user in its pg_hba.conf",
        )
        .into());
    }
    let mut scram = ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported());
    frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), client.output())
        .map_err(unsendable)?;
    client.send()?;
    loop {
        match client.receive()? {
            Message::AuthenticationSaslContinue(body) => {
                scram.update(body.data()).map_err(disproved)?;
                frontend::sasl_response(scram.message(), client.output()).map_err(unsendable)?;
                client.send()?;
            }
            Message::AuthenticationSaslFinal(body) => {
                return Ok(scram.finish(body.data()).map_err(disproved)?);
            }
            Message::ErrorResponse(body) => {
                return Err(LoginError::Refused(Refusal::read(&body)));
            }
            _ => {
                return Err(ConnectorError::transient(
                    "the server broke off the exchange of proofs",
                )
                .into());
            }
        }
    }
}

fn disproved(error: std::io::Error) -> ConnectorError {
    ConnectorError::new(
        ErrorKind::Auth,
        format!("the server could not prove that it knows the password: {error}"),
    )
}

fn unsendable(error: std::io::Error) -> ConnectorError {
    ConnectorError::config(format!(
        "user, password or database cannot be sent to the server: {error}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_to_connect() {
        use Encryption::{IfOffered, Plain, Tls};
        let cases = [
            (SslMode::Disable, true, vec![Plain]),
            (SslMode::Allow, false, vec![Plain, Tls(Verify::None)]),
            (SslMode::Prefer, false, vec![IfOffered, Plain]),
            (SslMode::Require, false, vec![Tls(Verify::None)]),
            (SslMode::Require, true, vec![Tls(Verify::Ca)]),
            (SslMode::VerifyCa, false, vec![Tls(Verify::Ca)]),
            (SslMode::VerifyFull, false, vec![Tls(Verify::Full)]),
        ];
        for (mode, has_authority, want) in cases {
            assert_eq!(
                Encryption::in_order(mode, has_authority),
                want,
                "{mode:?} {has_authority}"
            );
        }
    }
}
