//! The server: one port for gRPC, gRPC-web and REST.
//!
//! ```text
//! bind: may it listen there? -> keys -> token -> TLS -> port -> api.json
//! serve: connections -> router -> calls ... shutdown: streams end, calls finish
//! ```

mod connections;
mod listen;
mod router;
mod tls;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::auth::{Claims, KeyError, Keys, MintError, Scope, Verifier, mint, now};
use crate::backend::Backend;
use crate::calls::Calls;
use crate::local::{self, Address};
use crate::stream::Stopping;

pub use self::listen::ListenError;
pub use self::tls::TlsError;
pub use crate::stream::Pace;

/// How long the data directory's token is good: longer than a host that is
/// stopped over a weekend and a holiday.
const TOKEN_LIFE: Duration = Duration::from_secs(30 * 24 * 3600);

/// How often it is made anew, so that a host that runs for years has a good one.
const TOKEN_EVERY: Duration = Duration::from_secs(24 * 3600);

/// How to listen.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Where.
    pub listen: SocketAddr,
    /// Where the address, the token and, unless named, the keys are kept.
    pub data_dir: PathBuf,
    /// The keys that tokens are signed with; those of the data directory, which
    /// are made if need be, unless named.
    pub keys: Option<PathBuf>,
    /// The certificate to show and its key.
    pub tls: Option<TlsFiles>,
    /// Whether other machines may reach the port without TLS and named keys.
    pub insecure_listen: bool,
    /// Times that only tests change.
    pub pace: Pace,
}

/// Files in PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate and those that it hangs on.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// It may not listen there.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// Its keys cannot be used.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// Its token cannot be made.
    #[error("cannot make the token of the data directory: {0}")]
    Token(#[from] MintError),
    /// Its certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The port cannot be had.
    #[error("cannot listen on {listen}: {source}; --listen names another address")]
    Bind {
        /// Where.
        listen: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// A file in the data directory cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A server that has its port, and does not answer yet.
pub struct Server {
    listener: TcpListener,
    url: String,
    tls: Option<TlsAcceptor>,
    verifier: Arc<Verifier>,
    data_dir: PathBuf,
    pace: Pace,
}

impl Server {
    /// Takes the port, and leaves the address and a token in the data directory,
    /// which the caller must hold.
    pub async fn bind(options: ServerOptions) -> Result<Server, ServerError> {
        listen::allow(
            options.listen.ip(),
            options.tls.is_some(),
            options.keys.is_some(),
            options.insecure_listen,
        )?;
        let keys = match &options.keys {
            Some(file) => file.clone(),
            None => {
                let file = local::key_file(&options.data_dir);
                Keys::read_or_make(&file)?;
                file
            }
        };
        let verifier = Arc::new(Verifier::open(&keys)?);
        let tls = options.tls.as_ref().map(tls::acceptor).transpose()?;
        let bind = |source| ServerError::Bind {
            listen: options.listen,
            source,
        };
        let listener = TcpListener::bind(options.listen).await.map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let server = Server {
            listener,
            url: format!("{scheme}://{}", listen::reachable(address)),
            tls,
            verifier,
            data_dir: options.data_dir,
            pace: options.pace,
        };
        server.write_token()?;
        let certificate = options.tls.map(|tls| tls.certificate);
        // Clients may run in another folder.
        let certificate = certificate.map(|it| it.canonicalize().unwrap_or(it));
        let address = Address {
            url: server.url.clone(),
            pid: std::process::id(),
            certificate,
        };
        let written = address.write(&server.data_dir);
        written.map_err(|source| ServerError::Write {
            path: server.data_dir.join("api.json"),
            source,
        })?;
        Ok(server)
    }

    /// Returns where clients on this machine reach the server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Answers until `shutdown` resolves; then ends streams, lets calls finish for
    /// some seconds, and returns.
    ///
    /// The address stays in the data directory, so that clients that wait for a
    /// host to come back know where.
    ///
    /// Boxed, so that the server is compiled here and not once more in each program.
    pub fn serve(
        self,
        backend: Arc<dyn Backend>,
        shutdown: BoxFuture<'static, ()>,
    ) -> BoxFuture<'static, ()> {
        Box::pin(self.answer(backend, shutdown))
    }

    async fn answer(self, backend: Arc<dyn Backend>, shutdown: BoxFuture<'static, ()>) {
        let (stop, stopping) = watch::channel(false);
        let stopping = Stopping::new(stopping);
        let calls = Calls::new(backend, self.verifier.clone(), stopping.clone(), self.pace);
        let router = router::router(calls);
        let connections = connections::serve(&self.listener, self.tls.as_ref(), router, stopping);
        let renewal = async {
            loop {
                tokio::time::sleep(TOKEN_EVERY).await;
                if let Err(error) = self.write_token() {
                    tracing::error!("the token was not made anew: {error}");
                }
            }
        };
        let stopped = async {
            shutdown.await;
            stop.send_replace(true);
            futures::future::pending::<()>().await;
        };
        tokio::select! {
            () = connections => {}
            () = renewal => {}
            () = stopped => {}
        }
    }

    fn write_token(&self) -> Result<(), ServerError> {
        let claims = Claims {
            sub: "data directory".to_owned(),
            scope: Scope::Admin.as_str().to_owned(),
            prefixes: vec![String::new()],
            iat: now(),
            exp: now() + TOKEN_LIFE.as_secs(),
        };
        let token = mint(&self.verifier.keys(), &claims)?;
        let path = local::token_file(&self.data_dir);
        local::write_private(&path, token.as_bytes())
            .map_err(|source| ServerError::Write { path, source })
    }
}
