//! `tidegate connector inspect`: what a component is.

use clap::Args;
use indicatif::HumanBytes;
use tidegate_host::sandbox::Inspection;

use crate::error::CliError;
use crate::options::ConnectorsOption;

#[derive(Args)]
#[command(after_help = "\
Examples:
  tidegate connector inspect materialize-sqlite
  tidegate connector inspect target/connectors/materialize-sqlite.wasm")]
pub struct Inspect {
    /// A component's name, or a path to it
    component: String,
    #[command(flatten)]
    connectors: ConnectorsOption,
}

impl Inspect {
    pub fn execute(self) -> Result<(), CliError> {
        let places = self.connectors.places();
        print(&tidegate_host::inspect(&self.component, places)?)
    }
}

fn print(found: &Inspection) -> Result<(), CliError> {
    println!("component   {}", found.path.display());
    println!("sha256      {}", found.hash);
    println!(
        "size        {}, compiled {}",
        HumanBytes(found.size as u64),
        HumanBytes(found.compiled_size as u64)
    );
    println!("docs        {}", found.spec.documentation_url);
    println!("imports");
    for import in &found.imports {
        println!("  {import}");
    }
    println!("wants");
    for pointer in &found.wants.directory {
        println!("  directory of the path at config {pointer}, read and write");
    }
    for pointer in &found.wants.network {
        println!("  network address at config {pointer}");
    }
    if found.wants.directory.is_empty() && found.wants.network.is_empty() {
        println!("  nothing");
    }
    println!("spec");
    println!("{}", serde_json::to_string_pretty(&found.spec)?);
    Ok(())
}
