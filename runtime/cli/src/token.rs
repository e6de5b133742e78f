//! `tidegate token`: the data directory's token, or a narrower one.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tidegate_api::auth::{Claims, KeyError, Keys, Scope, mint, now};
use tidegate_api::local;

use crate::error::CliError;
use crate::options::DataDirOption;
use crate::output::print;

/// Prints the token of the data directory, or makes one.
///
/// With --scope or --prefix a token is made that may do no more than they say. It
/// needs no host that runs: only its keys.
#[derive(Args)]
#[command(after_help = "\
Examples:
  curl -H \"Authorization: Bearer $(tidegate token)\" http://127.0.0.1:9400/v1/tasks
  tidegate token --scope tasks:sync --prefix acmeCo/foo --expires 90d --for 'the nightly report'
  tidegate token --new-key

A prefix is a name and everything below it: acmeCo/foo does not reach acmeCo/foobar. Without
--prefix a token reaches every name.
To rotate keys: --new-key, make the tokens anew, then take the old key, the last one, out of the
key file. A host that runs sees either within seconds.")]
pub struct Token {
    /// What the token may be used for; may be given more than once
    #[arg(long, value_name = "SCOPE", value_parser = scope)]
    scope: Vec<Scope>,
    /// Names that the token may be used for; may be given more than once
    #[arg(long, value_name = "NAME", requires = "scope")]
    prefix: Vec<String>,
    /// How long the token is good
    #[arg(long, value_name = "DURATION", default_value = "30d", requires = "scope",
        value_parser = humantime::parse_duration)]
    expires: Duration,
    /// Whom the token is for, as a note in it
    #[arg(
        long = "for",
        value_name = "WHOM",
        default_value = "",
        requires = "scope",
        hide_default_value = true
    )]
    whom: String,
    /// Put a new key in front of those that there are; it signs from now on
    #[arg(long, conflicts_with = "scope")]
    new_key: bool,
    /// The key file, in place of the data directory's own
    #[arg(long, value_name = "FILE", env = "TIDEGATE_KEYS")]
    keys: Option<PathBuf>,
    #[command(flatten)]
    data_dir: DataDirOption,
}

fn scope(word: &str) -> Result<Scope, String> {
    Scope::parse(word).ok_or_else(|| {
        let all = Scope::ALL.map(Scope::as_str);
        format!("there are {}", all.join(", "))
    })
}

impl Token {
    pub fn execute(self) -> Result<(), CliError> {
        let dir = &self.data_dir.data_dir;
        let keys = self.keys.clone();
        let keys = keys.unwrap_or_else(|| local::key_file(dir));
        if self.new_key {
            let kids = Keys::rotate(&keys)?;
            eprintln!("{}: {} signs from now on", keys.display(), kids[0]);
            return Ok(());
        }
        if !self.scope.is_empty() {
            let token = mint(&read(&keys)?, &self.claims())?;
            return print(format_args!("{token}\n"));
        }
        match local::read_token(dir)? {
            Some(token) => print(format_args!("{token}\n")),
            None => Err(nothing_yet(&dir.display().to_string())),
        }
    }

    fn claims(&self) -> Claims {
        let scopes: Vec<&str> = self.scope.iter().map(|scope| scope.as_str()).collect();
        Claims {
            sub: self.whom.clone(),
            scope: scopes.join(" "),
            prefixes: match self.prefix.as_slice() {
                // Every name.
                [] => vec![String::new()],
                prefixes => prefixes.to_vec(),
            },
            iat: now(),
            exp: now().saturating_add(self.expires.as_secs()),
        }
    }
}

fn read(keys: &std::path::Path) -> Result<Keys, CliError> {
    match Keys::read(keys) {
        Err(KeyError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            Err(nothing_yet(&keys.display().to_string()))
        }
        read => Ok(read?),
    }
}

fn nothing_yet(what: &str) -> CliError {
    CliError::user(format!("there is nothing yet at {what}"))
        .hint("`tidegate serve` makes a key and a token; --new-key makes a key; --data-dir names another directory")
}
