//! How a command gets at a host.
//!
//! ```text
//! --url --------------------------------------> the host there
//! --data-dir -> held by a host that serves ---> that host
//!            -> free -------------------------> the directory itself
//! ```

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use tidegate_api::client::{Client, Target};
use tidegate_api::local::{self, Address};
use tidegate_api::{Code, Error};
use tidegate_host::{DataDir, DataDirError};

use crate::error::CliError;
use crate::options::DataDirOption;

/// How long a host that is starting, stopping or being restarted is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long to wait between two attempts.
const PAUSE: Duration = Duration::from_millis(250);

/// Which host, and as whom.
#[derive(Args)]
pub struct HostOption {
    /// The host to call, in place of the one on the data directory
    #[arg(long, value_name = "URL", env = "TIDEGATE_URL")]
    url: Option<String>,
    /// The token to show, in place of the data directory's; better in the
    /// environment, where others do not see it
    #[arg(
        long,
        value_name = "TOKEN",
        env = "TIDEGATE_TOKEN",
        hide_env_values = true
    )]
    token: Option<String>,
    /// The certificate to trust, in PEM, in place of what the machine trusts
    #[arg(long, value_name = "FILE", env = "TIDEGATE_CERTIFICATE")]
    certificate: Option<PathBuf>,
    #[command(flatten)]
    pub data_dir: DataDirOption,
}

/// Where a command does its work.
pub enum Place {
    /// In a host that runs.
    Host,
    /// On the directory, which is held now.
    Directory(DataDir),
}

impl HostOption {
    /// Returns where to call, and as whom: what the options say, and else what the
    /// host on the data directory left there.
    pub fn target(&self) -> Result<Target, Error> {
        let dir = &self.data_dir.data_dir;
        let unreadable = |error: std::io::Error| {
            let message = format!("cannot read what a host left in {}: {error}", dir.display());
            Error::new(Code::FailedPrecondition, message)
        };
        let address = match self.url {
            Some(_) => None,
            None => Address::read(dir).map_err(unreadable)?,
        };
        let (url, certificate) = match (&self.url, address) {
            (Some(url), _) => (url.clone(), None),
            (None, Some(address)) => (address.url, address.certificate),
            (None, None) => {
                let message = format!(
                    "no host has served on {}: `tidegate serve` does, --data-dir names another \
                     directory, and --url a host elsewhere",
                    dir.display()
                );
                return Err(Error::new(Code::FailedPrecondition, message));
            }
        };
        let token = match &self.token {
            Some(token) => Some(token.clone()),
            None => local::read_token(dir).map_err(unreadable)?,
        };
        Ok(Target {
            url,
            token,
            certificate: self.certificate.clone().or(certificate),
        })
    }

    /// Returns whether a host runs that does the work, or takes the directory.
    /// With `make`, the directory is made if there is none.
    pub fn place(&self, make: bool) -> Result<Place, CliError> {
        if self.url.is_some() {
            return Ok(Place::Host);
        }
        let dir = &self.data_dir.data_dir;
        let held = match make {
            true => DataDir::create(dir),
            false => DataDir::open(dir),
        };
        match held {
            Ok(dir) => Ok(Place::Directory(dir)),
            Err(DataDirError::InUse { dir: used, holder }) => {
                // What another host left is not of this one, which may not serve.
                let address = Address::read(dir).ok().flatten();
                match address.is_some_and(|address| address.pid.to_string() == holder) {
                    true => Ok(Place::Host),
                    false => Err(DataDirError::InUse { dir: used, holder }.into()),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a call, again while the host is not there or not ready, for some
    /// seconds.
    pub async fn call<T>(
        &self,
        call: impl AsyncFn(Client) -> Result<T, tonic::Status>,
    ) -> Result<T, Error> {
        let began = Instant::now();
        loop {
            let called = async {
                let client = Client::connect(&self.target()?).await?;
                Ok::<_, Error>(call(client).await?)
            };
            match called.await {
                Err(error) if error.is_retryable() && began.elapsed() < PATIENCE => {
                    tokio::time::sleep(PAUSE).await;
                }
                called => return called,
            }
        }
    }
}

/// Runs a command's calls.
pub fn block_on<T>(calls: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(calls)
}

/// Puts a host's error into words, with what to do about it.
pub fn refused(error: Error) -> CliError {
    match error.code {
        // What is named does not exist, which is the command line's.
        Code::NotFound => CliError::usage(error),
        Code::Unauthenticated => CliError::user(error)
            .hint("--token, TIDEGATE_TOKEN or the data directory has the token that is shown"),
        Code::Unavailable => {
            CliError::user(error).hint("is the host running? `tidegate serve` starts one")
        }
        _ => CliError::user(error),
    }
}
