//! A server for a test.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tidegate_api::auth::{Claims, Keys, Scope, mint};
use tidegate_api::client::{Client, Target};
use tidegate_api::server::{Pace, Server, ServerOptions};
use tidegate_api::{Error, local};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::host::MemoryHost;

/// Long enough for anything on a machine that is busy with something else.
pub const SOON: Duration = Duration::from_secs(20);

pub struct TestServer {
    pub host: Arc<MemoryHost>,
    pub url: String,
    pub dir: TempDir,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
}

pub fn options(dir: &Path) -> ServerOptions {
    ServerOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        data_dir: dir.to_owned(),
        keys: None,
        tls: None,
        insecure_listen: false,
        pace: Pace {
            heartbeat_every: Duration::from_millis(50),
            keep_up_max: Duration::from_millis(300),
        },
    }
}

impl TestServer {
    pub async fn start() -> TestServer {
        TestServer::with(Arc::new(MemoryHost::new()), |_| {}).await
    }

    pub async fn with(
        host: Arc<MemoryHost>,
        change: impl FnOnce(&mut ServerOptions),
    ) -> TestServer {
        let dir = tempfile::tempdir().unwrap();
        let mut options = options(dir.path());
        change(&mut options);
        let server = Server::bind(options).await.unwrap();
        let url = server.url().to_owned();
        let (stop, stopped) = oneshot::channel();
        let shutdown = async move {
            // A test that ends without stopping stops by dropping everything.
            let _ = stopped.await;
        };
        let served = tokio::spawn(server.serve(host.clone(), Box::pin(shutdown)));
        TestServer {
            host,
            url,
            dir,
            stop: Some(stop),
            served,
        }
    }

    /// Returns the address without the scheme.
    pub fn address(&self) -> &str {
        self.url.split_once("://").unwrap().1
    }

    /// Returns the token that the server left for the owner of its directory.
    pub fn token(&self) -> String {
        local::read_token(self.dir.path()).unwrap().unwrap()
    }

    /// Makes a token.
    pub fn mint(&self, scope: &str, prefixes: &[&str]) -> String {
        let keys = Keys::read(&local::key_file(self.dir.path())).unwrap();
        let claims = Claims {
            sub: "a test".to_owned(),
            scope: scope.to_owned(),
            prefixes: prefixes.iter().map(ToString::to_string).collect(),
            iat: 0,
            exp: u64::from(u32::MAX),
        };
        mint(&keys, &claims).unwrap()
    }

    pub fn target(&self) -> Target {
        Target {
            url: self.url.clone(),
            token: Some(self.token()),
            certificate: None,
        }
    }

    pub async fn client(&self) -> Client {
        Client::connect(&self.target()).await.unwrap()
    }

    pub async fn client_with(&self, token: &str) -> Result<Client, Error> {
        let mut target = self.target();
        target.token = Some(token.to_owned());
        Client::connect(&target).await
    }

    /// Tells the server to stop, and returns what resolves once it has.
    pub fn stop(&mut self) -> &mut JoinHandle<()> {
        self.stop.take().unwrap().send(()).unwrap();
        &mut self.served
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.served.abort();
    }
}

/// Waits for what happens soon.
pub async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    let result = tokio::time::timeout(SOON, future).await;
    result.unwrap_or_else(|_| panic!("{what}: not within {SOON:?}"))
}

/// Waits until something holds.
pub async fn until(what: &str, holds: impl Fn() -> bool) {
    soon(what, async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[test]
fn every_scope_has_a_word() {
    for scope in Scope::ALL {
        assert_eq!(Scope::parse(scope.as_str()), Some(scope));
    }
}
