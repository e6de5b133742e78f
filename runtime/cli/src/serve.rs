//! `tidegate serve`: the published catalog, with an API.
//!
//! ```text
//! data directory -> port -> catalog published -> ready ... signal
//!                                                            |
//!       tasks stop, callers hear that they are done -> port closed -> exit
//! ```

use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tidegate_api::Readiness;
use tidegate_api::server::{Pace, Server, ServerOptions, TlsFiles};
use tidegate_host::leader::TaskState;
use tidegate_host::{CatalogFiles, Host, Registry};
use tokio::sync::oneshot;

use crate::error::CliError;
use crate::options::{ConnectorsOption, DataDirOption};
use crate::signals::{Signals, stop_at_once};

/// How often failed tasks are looked for, to say so on standard error.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// File descriptors that are asked for: each connection is one, and the soft limit
/// of 1,024 that processes start with is a few hundred callers.
const DESCRIPTORS: u64 = 8_192;

/// Runs a catalog as a server: appends, sync-now, publishing and everything else
/// come through its API.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tidegate serve flow.yaml
  tidegate serve --listen 127.0.0.1:9400
  tidegate append acmeCo/orders orders.ndjson        # from another shell
  tidegate sync-now --task acmeCo/shop --through head && sqlite3 shop.db 'SELECT ...'

Without a catalog it runs the one that was published last. It runs until SIGINT or SIGTERM, then
commits what is open and exits 0; a second signal stops at once, and the next run recovers.")]
pub struct Serve {
    /// Catalog files to publish over the stored catalog
    catalog: Vec<PathBuf>,
    /// Address and port to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9400")]
    listen: SocketAddr,
    /// Certificate chain to show, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// Its private key, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// Keys that tokens are signed with, in place of the data directory's own
    #[arg(long, value_name = "FILE", env = "TIDEGATE_KEYS")]
    keys: Option<PathBuf>,
    /// Listen on other addresses than loopback without TLS and keys: whoever can
    /// reach the port can read the tokens that are sent
    #[arg(long)]
    insecure_listen: bool,
    #[command(flatten)]
    data_dir: DataDirOption,
    #[command(flatten)]
    connectors: ConnectorsOption,
}

impl Serve {
    pub fn execute(self) -> Result<(), CliError> {
        // With fewer there is room for fewer callers at a time.
        if let Err(error) = rlimit::increase_nofile_limit(DESCRIPTORS) {
            tracing::warn!("the limit of file descriptors stays as it is: {error}");
        }
        let dir = self.data_dir.create()?;
        let options = self.options(dir.path().to_owned());
        let host = Host::open(dir)?;
        let registry = host.registry(host.connectors(self.connectors.places())?);
        let backend = host.backend(&registry);
        let server = host.on_data(Server::bind(options))?;
        let url = server.url().to_owned();
        let (stop, stopped) = oneshot::channel();
        let stopped = Box::pin(async move {
            // A sender that is gone stops it, too.
            let _ = stopped.await;
        });
        let serving = host.spawn(server.serve(backend.clone(), stopped));
        host.on_data(self.publish(&registry))?;
        backend.set_readiness(Readiness::Ready);
        eprintln!("listening on {url}");

        host.block_on(wait(&registry))?;
        backend.set_readiness(Readiness::NotReady("the host is stopping".to_owned()));
        host.block_on(stop_tasks(registry.clone()))?;
        let _ = stop.send(());
        // It cannot fail, only panic, and has said so then.
        let _ = host.on_data(serving);
        match failed(&registry).is_empty() {
            true => Ok(()),
            false => Err(CliError::user("some tasks failed, as said above")),
        }
    }

    fn options(&self, data_dir: PathBuf) -> ServerOptions {
        let tls = self.tls_certificate.clone().zip(self.tls_key.clone());
        ServerOptions {
            listen: self.listen,
            data_dir,
            keys: self.keys.clone(),
            tls: tls.map(|(certificate, key)| TlsFiles { certificate, key }),
            insecure_listen: self.insecure_listen,
            pace: Pace::default(),
        }
    }

    /// Publishes the catalog that is named, or the one of before again.
    async fn publish(&self, registry: &Registry) -> Result<(), CliError> {
        let publication = match self.catalog.as_slice() {
            [] => registry.resume().await?,
            roots => Some(registry.publish(&CatalogFiles::read(roots)?, false).await?),
        };
        let Some(publication) = publication else {
            eprintln!("no catalog yet: `tidegate publish flow.yaml` publishes one");
            return Ok(());
        };
        eprint!("{}", publication.catalog.report(io::stderr().is_terminal()));
        match publication.catalog.built {
            Some(_) => Ok(()),
            None => Err(CliError::user("the catalog has errors; nothing was run")),
        }
    }
}

/// Waits for a signal, and says meanwhile which tasks fail.
async fn wait(registry: &Registry) -> Result<(), CliError> {
    let mut signals = Signals::listen()?;
    let mut said = BTreeSet::new();
    let mut look = tokio::time::interval(LOOK_EVERY);
    loop {
        tokio::select! {
            () = signals.next() => return Ok(()),
            _ = look.tick() => say(registry, &mut said),
        }
    }
}

fn say(registry: &Registry, said: &mut BTreeSet<String>) {
    let failed: BTreeSet<String> = failed(registry).into_iter().collect();
    for message in failed.difference(said) {
        eprintln!("error: {message}");
    }
    // One that fails again in the same way is said again.
    *said = failed;
}

fn failed(registry: &Registry) -> Vec<String> {
    let tasks = registry.list().into_iter();
    let message = |(_, view): (_, tidegate_host::leader::TaskView)| match view.state {
        TaskState::Failed { message } => Some(message),
        _ => None,
    };
    tasks.filter_map(message).collect()
}

/// Stops the tasks in order; a second signal stops the process.
async fn stop_tasks(registry: Arc<Registry>) -> Result<(), CliError> {
    let mut signals = Signals::listen()?;
    let mut said = failed(&registry).into_iter().collect();
    tokio::select! {
        () = registry.end() => say(&registry, &mut said),
        () = signals.next() => stop_at_once(),
    }
    Ok(())
}
