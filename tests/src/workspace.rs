//! A directory of its own for each test, and the commands that run in it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::catalog::Catalog;
use crate::host::Host;
use crate::program;

/// The catalog's file, unless a test names others.
pub const CATALOG: &str = "flow.json";

/// A directory that is kept if the test fails.
pub struct Workspace {
    dir: TempDir,
}

/// A `tidegate run` that is being put together.
pub struct Run<'a> {
    workspace: &'a Workspace,
    command: &'static str,
    catalogs: Vec<String>,
    data_dir: PathBuf,
    options: Vec<OsString>,
    shell: Option<String>,
}

impl Workspace {
    /// Makes the directory.
    #[expect(clippy::new_without_default, reason = "it makes a directory")]
    pub fn new() -> Workspace {
        let dir = tempfile::Builder::new().prefix("tidegate-").tempdir();
        Workspace {
            dir: dir.expect("a temporary directory can be made"),
        }
    }

    /// Makes the directory with a catalog in it.
    pub fn with(catalog: &Catalog) -> Workspace {
        let workspace = Workspace::new();
        workspace.catalog(catalog);
        workspace
    }

    /// Returns the path of a file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns the data directory of its runs.
    pub fn data_dir(&self) -> PathBuf {
        self.path("data")
    }

    /// Writes a file, in place of an older one.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).expect("a file can be written");
        path
    }

    /// Writes lines, each with its end.
    pub fn write_lines<L: AsRef<str>>(&self, name: &str, lines: impl IntoIterator<Item = L>) {
        self.write(name, "");
        self.append_lines(name, lines);
    }

    /// Appends lines, each with its end.
    pub fn append_lines<L: AsRef<str>>(&self, name: &str, lines: impl IntoIterator<Item = L>) {
        let text: String = lines
            .into_iter()
            .flat_map(|line| [line.as_ref().to_owned(), "\n".to_owned()])
            .collect();
        self.append(name, &text);
    }

    /// Appends text as it is.
    pub fn append(&self, name: &str, text: &str) {
        let file = File::options()
            .create(true)
            .append(true)
            .open(self.path(name));
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.expect("a file can be appended to");
    }

    /// Writes the catalog.
    pub fn catalog(&self, catalog: &Catalog) {
        self.write(CATALOG, catalog.to_string());
    }

    /// Puts a `tidegate run` of the catalog together.
    pub fn run(&self) -> Run<'_> {
        Run {
            workspace: self,
            command: "run",
            catalogs: vec![CATALOG.to_owned()],
            data_dir: self.data_dir(),
            options: Vec::new(),
            shell: None,
        }
    }

    /// Puts a `tidegate serve` of the catalog together, on a free port.
    pub fn serve(&self) -> Run<'_> {
        Run {
            command: "serve",
            ..self.run()
        }
        .option("--listen")
        .option("127.0.0.1:0")
    }

    /// Starts `tidegate` with these arguments and no others.
    pub fn tidegate<A: Into<OsString>>(&self, arguments: impl IntoIterator<Item = A>) -> Host {
        Host::start(self.command(arguments))
    }

    /// Starts a subcommand on the data directory: `append`, `read`, `tasks`.
    pub fn on_data(&self, arguments: &[&str]) -> Host {
        let data_dir = [OsString::from("--data-dir"), self.data_dir().into()];
        self.tidegate(arguments.iter().map(OsString::from).chain(data_dir))
    }

    fn command<A: Into<OsString>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(program::tidegate());
        command
            .args(arguments.into_iter().map(Into::into))
            .current_dir(self.dir.path());
        // Whoever runs the tests may have set up their own.
        for variable in [
            "TIDEGATE_DATA_DIR",
            "TIDEGATE_CONNECTORS",
            "TIDEGATE_LOG",
            "TIDEGATE_URL",
            "TIDEGATE_TOKEN",
            "TIDEGATE_CERTIFICATE",
            "TIDEGATE_KEYS",
        ] {
            command.env_remove(variable);
        }
        // Compiling a connector takes longer than most tests.
        command.env("TIDEGATE_CACHE", program::compiled());
        command
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.dir.disable_cleanup(true);
            println!("its files are in {}", self.dir.path().display());
        }
    }
}

impl Run<'_> {
    /// Names the catalogs.
    pub fn catalogs(mut self, names: &[&str]) -> Self {
        self.catalogs = names.iter().map(|&name| name.to_owned()).collect();
        self
    }

    /// Names another data directory.
    pub fn data_dir(mut self, dir: &Path) -> Self {
        self.data_dir = dir.to_owned();
        self
    }

    /// Follows a file into a collection.
    pub fn input(self, collection: &str, file: &str) -> Self {
        self.option("--input")
            .option(&format!("{collection}={file}"))
    }

    /// Ends once everything is read, committed and acknowledged.
    pub fn until_caught_up(self) -> Self {
        self.option("--until-caught-up")
    }

    /// Adds an argument.
    pub fn option(mut self, argument: &str) -> Self {
        self.options.push(argument.into());
        self
    }

    /// Runs under a shell that runs `script` first.
    pub fn shell(mut self, script: &str) -> Self {
        self.shell = Some(format!("{script}\nexec \"$@\""));
        self
    }

    /// Starts it.
    pub fn start(self) -> Host {
        let mut arguments: Vec<OsString> = vec![self.command.into()];
        arguments.extend(self.catalogs.iter().map(OsString::from));
        arguments.extend(["--data-dir".into(), self.data_dir.into()]);
        arguments.extend(["--connectors".into(), program::connectors().into()]);
        arguments.extend(self.options);
        let command = self.workspace.command(arguments);
        Host::start(match self.shell {
            None => command,
            Some(script) => under_shell(&script, command),
        })
    }
}

fn under_shell(script: &str, command: Command) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script, "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    if let Some(dir) = command.get_current_dir() {
        shell.current_dir(dir);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}
