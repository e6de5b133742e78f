//! `tidegate read`: a collection's documents on stdout.

use std::io::{self, BufWriter, ErrorKind, Write};

use clap::Args;
use tidegate_host::Host;

use crate::error::CliError;
use crate::options::DataDirOption;

/// Prints every document of a collection, a line each, in the order of the journal.
#[derive(Args)]
pub struct Read {
    /// Name of the collection
    collection: String,
    #[command(flatten)]
    data_dir: DataDirOption,
}

impl Read {
    pub fn execute(self) -> Result<(), CliError> {
        let host = Host::open(self.data_dir.open()?)?;
        let mut out = BufWriter::new(io::stdout().lock());
        let mut broken = None;
        host.read(&self.collection, |document| {
            let written = out.write_all(document).and_then(|()| out.write_all(b"\n"));
            broken = written.err();
            broken.is_none()
        })?;
        let flushed = broken.map_or_else(|| out.flush(), Err);
        match flushed {
            // `tidegate read ... | head` has seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            flushed => Ok(flushed?),
        }
    }
}
