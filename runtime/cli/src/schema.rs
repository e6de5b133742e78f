//! `tidegate schema`: JSON schemas for editors.

use clap::{Args, Subcommand};

use crate::error::CliError;
use crate::output::print_json;

/// Prints a JSON schema, for editors.
#[derive(Args)]
pub struct Schema {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Subcommand)]
enum Kind {
    /// The schema of a catalog file (JSON schema, draft 2020-12)
    #[command(after_help = "\
Examples:
  tidegate schema catalog >catalog.schema.json

and as the first line of a catalog, for editors with the YAML language server:
  # yaml-language-server: $schema=catalog.schema.json")]
    Catalog,
}

impl Schema {
    pub fn execute(self) -> Result<(), CliError> {
        match self.kind {
            Kind::Catalog => print_json(&tidegate_validator::catalog_schema()),
        }
    }
}
