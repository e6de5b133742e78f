//! `tidegate explain`: a page for each code.

use clap::Args;
use tidegate_validator::Code;

use crate::error::CliError;
use crate::output::print;

/// Explains the code of a diagnostic, or lists the codes.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tidegate explain
  tidegate explain sync-schedule-conflict")]
pub struct Explain {
    /// The code, as it stands in brackets before a message
    code: Option<String>,
}

impl Explain {
    pub fn execute(self) -> Result<(), CliError> {
        let Some(text) = &self.code else {
            return print(list());
        };
        match text.parse::<Code>() {
            Ok(code) => print(code.explanation()),
            Err(()) => {
                let error = CliError::usage(format!("there is no code \"{text}\""));
                Err(error.hint(match Code::nearest(text) {
                    Some(code) => format!("did you mean {code}?"),
                    None => "`tidegate explain` lists the codes".to_owned(),
                }))
            }
        }
    }
}

fn list() -> String {
    let mut text = String::new();
    for code in Code::ALL {
        let name = code.as_str();
        let severity = code.severity().as_str();
        text.push_str(&format!("{name:22}  {severity:7}  {}\n", code.summary()));
    }
    text
}
