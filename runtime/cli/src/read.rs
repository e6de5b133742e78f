//! `tidegate read`: a collection's documents on stdout.

use std::io::{self, BufWriter, ErrorKind, Write};

use clap::Args;
use tidegate_api::client::Client;
use tidegate_api::v1;
use tidegate_host::{DataDir, Host};

use crate::connection::{HostOption, Place, block_on, refused};
use crate::error::CliError;

/// Prints every document of a collection, a line each, in the order of the journal.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tidegate read acmeCo/orders | jq .total")]
pub struct Read {
    /// Name of the collection
    collection: String,
    #[command(flatten)]
    host: HostOption,
}

impl Read {
    pub fn execute(self) -> Result<(), CliError> {
        match self.host.place(false)? {
            Place::Host => self.of_host(),
            Place::Directory(dir) => self.of_directory(dir),
        }
    }

    fn of_directory(&self, dir: DataDir) -> Result<(), CliError> {
        let host = Host::open(dir)?;
        let mut out = BufWriter::new(io::stdout().lock());
        let mut broken = None;
        host.read(&self.collection, |document| {
            broken = line(&mut out, document).err();
            broken.is_none()
        })?;
        ended(broken.map_or_else(|| out.flush(), Err))
    }

    fn of_host(&self) -> Result<(), CliError> {
        let read = async |client: Client| {
            let request = v1::ReadRequest {
                collection: self.collection.clone(),
                ..Default::default()
            };
            client.collections().read(request).await
        };
        block_on(async {
            let documents = self.host.call(read).await.map_err(refused)?;
            let mut documents = documents.into_inner();
            let mut out = BufWriter::new(io::stdout().lock());
            loop {
                let document = documents.message().await;
                let Some(document) = document.map_err(|error| refused(error.into()))? else {
                    return ended(out.flush());
                };
                if let Err(error) = line(&mut out, document.document.as_bytes()) {
                    return ended(Err(error));
                }
            }
        })
    }
}

fn line(out: &mut impl Write, document: &[u8]) -> io::Result<()> {
    out.write_all(document)?;
    out.write_all(b"\n")
}

fn ended(written: io::Result<()>) -> Result<(), CliError> {
    match written {
        // `tidegate read ... | head` has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}
