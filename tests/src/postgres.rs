//! A PostgreSQL server of a test's own, and a way to look into it.
//!
//! ```text
//! initdb (a temporary directory) -> postgres (a free port of loopback) -> psql .. -> SIGINT
//! ```
//!
//! The server keeps its default settings, so what is committed is on disk, and lets
//! in nobody without a password (SCRAM). It does not run as root, so root starts it
//! as the user `postgres`. It ends with the thread that started it, even if that is
//! killed.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The role that made the server; it may do anything.
pub const USER: &str = "tide";

/// The role's password.
pub const PASSWORD: &str = "correct horse";

/// The database that every server has.
pub const DATABASE: &str = "postgres";

/// Where Debian puts the server's programs, a directory for each version.
const DEBIAN_PROGRAMS: &str = "/usr/lib/postgresql";

/// Starting takes about a second; recovering after a kill some more.
const START_MAX: Duration = Duration::from_secs(60);

/// A running server. Dropping it stops it.
pub struct Server {
    dir: TempDir,
    port: u16,
    child: Child,
    log: Receiver<String>,
}

impl Server {
    /// Makes a server and starts it.
    pub fn start() -> Server {
        Server::start_with(&[])
    }

    /// Makes a server and starts it with some settings, `name=value` each.
    pub fn start_with(settings: &[&str]) -> Server {
        let dir = tempfile::Builder::new().prefix("postgres-").tempdir();
        let dir = dir.expect("a temporary directory can be made");
        let password = dir.path().join("password");
        fs::write(&password, PASSWORD).expect("a file can be written");
        give_away(dir.path());
        let mut initdb = program("initdb");
        initdb.args([
            "--auth=scram-sha-256",
            "--no-sync",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
        ]);
        initdb
            .arg(format!("--username={USER}"))
            .arg("--pwfile")
            .arg(&password);
        let made = initdb.arg("-D").arg(dir.path().join("data")).output();
        let made = made.expect("initdb can be run");
        assert!(
            made.status.success(),
            "initdb: {}",
            String::from_utf8_lossy(&made.stderr)
        );
        let port = free_port();
        let (child, log) = spawn(dir.path(), port, settings);
        let server = Server {
            dir,
            port,
            child,
            log,
        };
        server.wait_until_ready();
        server
    }

    /// Returns `host:port`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns its directory, which the server may write to.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Stops it, as an operator does, and starts it again with these settings.
    pub fn restart_with(&mut self, settings: &[&str]) {
        self.stop("INT");
        self.start_again(settings);
    }

    /// Stops it as a crash does, in the middle of everything, and starts it again.
    pub fn crash(&mut self) {
        self.stop("QUIT");
        self.start_again(&[]);
    }

    fn start_again(&mut self, settings: &[&str]) {
        let (child, log) = spawn(self.dir.path(), self.port, settings);
        self.child = child;
        self.log = log;
        self.wait_until_ready();
    }

    /// Runs a query, and returns its rows as lines, columns separated by `|`.
    #[track_caller]
    pub fn ask(&self, sql: &str) -> String {
        self.try_ask(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Runs a query, and returns its rows or what the server says.
    pub fn try_ask(&self, sql: &str) -> Result<String, String> {
        let output = self.psql().args(["-c", sql]).output();
        let output = output.expect("psql can be run");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        match output.status.success() {
            true => Ok(text(&output.stdout)),
            false => Err(text(&output.stderr)),
        }
    }

    /// Returns a `psql` that is connected to it, to be given statements.
    pub fn psql(&self) -> Command {
        let mut psql = Command::new("psql");
        psql.args([
            "-X",
            "-A",
            "-t",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            "127.0.0.1",
        ])
        .args(["-p", &self.port.to_string(), "-U", USER, DATABASE])
        .env("PGPASSWORD", PASSWORD)
        .env("PGSSLMODE", "prefer");
        psql
    }

    /// Returns what it has logged since it was asked last.
    pub fn logged(&self) -> Vec<String> {
        self.log.try_iter().collect()
    }

    fn wait_until_ready(&self) {
        let deadline = Instant::now() + START_MAX;
        let mut said = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.log.recv_timeout(left) {
                Ok(line) if line.contains("ready to accept connections") => return,
                Ok(line) => said.push(line),
                Err(_) => panic!("PostgreSQL did not start:\n{}", said.join("\n")),
            }
        }
    }

    /// Sends it a signal to stop, by its process id, and waits.
    fn stop(&mut self, signal: &str) {
        let id = self.child.id().to_string();
        // It may be over already.
        let _ = Command::new("kill").args(["-s", signal, &id]).status();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if thread::panicking() {
            for line in self.logged() {
                println!("postgres: {line}");
            }
        }
        self.stop("INT");
    }
}

fn spawn(dir: &Path, port: u16, settings: &[&str]) -> (Child, Receiver<String>) {
    let mut postgres = program("postgres");
    postgres.arg("-D").arg(dir.join("data"));
    postgres.args([
        "-p",
        &port.to_string(),
        "-c",
        "listen_addresses=127.0.0.1",
        "-k",
    ]);
    postgres.arg(dir);
    for setting in settings {
        postgres.args(["-c", setting]);
    }
    postgres.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = postgres.spawn().expect("postgres can be run");
    let stderr = child.stderr.take().expect("stderr is piped");
    let (sender, log) = channel();
    // Reads to the end, as a full pipe would stop the server.
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    (child, log)
}

/// Returns one of the server's programs, to be run as somebody who is not root.
fn program(name: &str) -> Command {
    let path = find(name);
    let mut command = Command::new("setpriv");
    command.arg("--pdeathsig=INT");
    if is_root() {
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
    }
    command.arg(path).current_dir("/");
    command.env("LC_ALL", "C.UTF-8");
    command
}

fn find(name: &str) -> PathBuf {
    let mut directories: Vec<PathBuf> = fs::read_dir(DEBIAN_PROGRAMS)
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin"))
        .collect();
    directories.sort();
    directories.reverse();
    directories.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    let mut paths = directories.iter().map(|directory| directory.join(name));
    let found = paths.find(|path| path.exists());
    found.unwrap_or_else(|| panic!("there is no {name}: run scripts/setup"))
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Makes a directory the server's, if the server is not run by us.
pub fn give_away(path: &Path) {
    if is_root() {
        let given = Command::new("chown")
            .args(["-R", "postgres:"])
            .arg(path)
            .status();
        assert!(
            given.is_ok_and(|it| it.success()),
            "chown {}",
            path.display()
        );
    }
}

/// Somebody may take the port before the server does; then it says so.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = listener.local_addr().expect("a listener has an address");
    address.port()
}
