//! Options that several subcommands share.

use std::path::{Path, PathBuf};

use clap::Args;
use tidegate_host::{ConnectorPlaces, DataDir, DataDirError};

use crate::error::CliError;

/// Where the host keeps everything.
#[derive(Args)]
pub struct DataDirOption {
    /// Directory of journals and state
    #[arg(
        long,
        value_name = "DIR",
        env = "TIDEGATE_DATA_DIR",
        default_value = ".tidegate"
    )]
    pub data_dir: PathBuf,
}

impl DataDirOption {
    /// Takes the directory's lock, making the directory if need be.
    pub fn create(&self) -> Result<DataDir, CliError> {
        Ok(DataDir::create(&self.data_dir)?)
    }

    /// Takes the directory's lock, if there is such a directory.
    pub fn existing(&self) -> Result<Option<DataDir>, CliError> {
        match DataDir::open(&self.data_dir) {
            Err(DataDirError::Missing { .. }) => Ok(None),
            opened => Ok(Some(opened?)),
        }
    }
}

/// Where connectors are looked up.
#[derive(Args)]
pub struct ConnectorsOption {
    /// Directory to look connectors up in, before those beside the binary
    #[arg(long, value_name = "DIR", env = "TIDEGATE_CONNECTORS")]
    pub connectors: Option<PathBuf>,

    /// Directory to keep compiled connectors in; several hosts may share one
    #[arg(long, value_name = "DIR", env = "TIDEGATE_CACHE")]
    pub cache: Option<PathBuf>,
}

impl ConnectorsOption {
    /// Returns where connectors are.
    pub fn places(&self) -> ConnectorPlaces {
        ConnectorPlaces {
            directories: self.directories(),
            cache: self.cache.clone(),
        }
    }

    /// Returns the directories to look in, first to last.
    fn directories(&self) -> Vec<PathBuf> {
        let mut directories: Vec<PathBuf> = self.connectors.iter().cloned().collect();
        if let Some(beside) = std::env::current_exe()
            .ok()
            .as_deref()
            .and_then(Path::parent)
        {
            directories.push(beside.to_owned());
            directories.push(beside.join("connectors"));
            // A build has target/release/tidegate and target/connectors.
            directories.extend(beside.parent().map(|target| target.join("connectors")));
        }
        directories
    }
}
