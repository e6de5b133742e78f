//! The binary as a child process.
//!
//! ```text
//! start -> lines, as they are printed -> exit | signal | kill -9
//! ```
//!
//! Waiting is always for something that the process does, and never longer than
//! a limit; a test that runs into one prints what the process said.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The longest that a run of a test's input may take. It takes about a second;
/// the rest is for a machine that does other things as well.
pub const RUN_MAX: Duration = Duration::from_secs(60);

/// A running `tidegate`. Dropping it kills it.
pub struct Host {
    command: String,
    child: Child,
    printed: Receiver<Line>,
    stdout: String,
    stderr: Vec<String>,
    started: Instant,
}

/// How a run ended, and what it said.
#[derive(Debug)]
pub struct Finished {
    /// What was run.
    pub command: String,
    /// The exit code; none after a signal.
    pub code: Option<i32>,
    /// All of its standard output.
    pub stdout: String,
    /// All of its standard error.
    pub stderr: String,
    /// From its start to its end.
    pub took: Duration,
}

enum Line {
    Out(String),
    Err(String),
}

enum Event {
    Printed,
    Ended,
    TimedOut,
}

impl Host {
    /// Starts a command.
    pub fn start(mut command: Command) -> Host {
        let described = describe(&command);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {described}: {error}"));
        let (sender, printed) = channel();
        let stdout = child.stdout.take().expect("stdout is piped");
        let stderr = child.stderr.take().expect("stderr is piped");
        forward(stdout, sender.clone(), Line::Out);
        forward(stderr, sender, Line::Err);
        let started = Instant::now();
        Host {
            command: described,
            child,
            printed,
            stdout: String::new(),
            stderr: Vec::new(),
            started,
        }
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until a line of standard error satisfies `found`, and returns it.
    /// Earlier lines count.
    #[track_caller]
    pub fn wait_for_line(
        &mut self,
        what: &str,
        limit: Duration,
        found: impl Fn(&str) -> bool,
    ) -> String {
        let deadline = Instant::now() + limit;
        let mut seen = 0;
        loop {
            if let Some(line) = self.stderr[seen..].iter().find(|line| found(line)) {
                return line.clone();
            }
            seen = self.stderr.len();
            match self.next(deadline) {
                Event::Printed => {}
                Event::Ended => panic!(
                    "{} ended before it said {what}:\n{}",
                    self.command,
                    self.stderr()
                ),
                Event::TimedOut => {
                    panic!(
                        "{} did not say {what} in {limit:?}:\n{}",
                        self.command,
                        self.stderr()
                    )
                }
            }
        }
    }

    /// Waits until `done` holds, looking again whenever the process prints
    /// something and at least every 10 ms.
    #[track_caller]
    pub fn wait_until(&mut self, what: &str, limit: Duration, mut done: impl FnMut() -> bool) {
        let deadline = Instant::now() + limit;
        while !done() {
            assert!(
                Instant::now() < deadline,
                "{}: not in {limit:?}: {what}. It said:\n{}",
                self.command,
                self.stderr()
            );
            if matches!(
                self.next(Instant::now() + Duration::from_millis(10)),
                Event::Ended
            ) {
                assert!(
                    done(),
                    "{} ended before {what}:\n{}",
                    self.command,
                    self.stderr()
                );
            }
        }
    }

    /// Waits for the end, at most for `limit`; returns whether it came.
    pub fn ends_within(&mut self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            match self.next(deadline) {
                Event::Printed => {}
                Event::Ended => return true,
                Event::TimedOut => return false,
            }
        }
    }

    /// Waits for the end.
    #[track_caller]
    pub fn finish_within(mut self, limit: Duration) -> Finished {
        let ended = self.ends_within(limit);
        assert!(
            ended,
            "{} did not end in {limit:?}. It said:\n{}",
            self.command,
            self.stderr()
        );
        self.end()
    }

    /// Waits for the end of an ordinary run.
    #[track_caller]
    pub fn finish(self) -> Finished {
        self.finish_within(RUN_MAX)
    }

    /// Kills it with signal 9.
    pub fn kill(mut self) -> Finished {
        // It may be over already.
        let _ = self.child.kill();
        self.ends_within(RUN_MAX);
        self.end()
    }

    /// Sends a signal: `TERM`, `INT`.
    #[track_caller]
    pub fn signal(&self, name: &str) {
        let id = self.id();
        let sent = Command::new("sh")
            .arg("-c")
            .arg(format!("kill -s {name} {id}"))
            .status();
        assert!(
            sent.is_ok_and(|status| status.success()),
            "signal {name} could not be sent to {id}"
        );
    }

    /// Returns how long ago it was started.
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns what it has said so far.
    pub fn stderr(&self) -> String {
        self.stderr.join("\n")
    }

    /// Returns the most memory it has had resident, in KiB; none once it is over.
    pub fn peak_memory_kib(&self) -> Option<u64> {
        peak_memory_kib(format!("/proc/{}/status", self.id()))
    }

    fn next(&mut self, deadline: Instant) -> Event {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.printed.recv_timeout(left) {
            Ok(Line::Out(line)) => {
                self.stdout.push_str(&line);
                self.stdout.push('\n');
                Event::Printed
            }
            Ok(Line::Err(line)) => {
                self.stderr.push(line);
                Event::Printed
            }
            Err(RecvTimeoutError::Timeout) => Event::TimedOut,
            // Both pipes are closed, which a process does by ending.
            Err(RecvTimeoutError::Disconnected) => Event::Ended,
        }
    }

    fn end(mut self) -> Finished {
        let status: ExitStatus = self.child.wait().expect("a child can be waited for");
        Finished {
            command: self.command.clone(),
            code: status.code(),
            stdout: std::mem::take(&mut self.stdout),
            stderr: self.stderr(),
            took: self.started.elapsed(),
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // After a test that failed half-way; a process that is over stays over.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Finished {
    /// Requires exit code 0.
    #[track_caller]
    pub fn succeeded(self) -> Finished {
        self.ended_with(0)
    }

    /// Requires an exit code.
    #[track_caller]
    pub fn ended_with(self, code: i32) -> Finished {
        assert_eq!(
            self.code,
            Some(code),
            "{} said:\n{}{}",
            self.command,
            self.stdout,
            self.stderr
        );
        self
    }

    /// Requires each of the words in standard output.
    #[track_caller]
    pub fn prints(self, words: &[&str]) -> Finished {
        for word in words {
            assert!(
                self.stdout.contains(word),
                "{} did not print \"{word}\". It printed:\n{}",
                self.command,
                self.stdout
            );
        }
        self
    }

    /// Requires each of the words in standard error.
    #[track_caller]
    pub fn says(self, words: &[&str]) -> Finished {
        for word in words {
            assert!(
                self.stderr.contains(word),
                "{} did not say \"{word}\". It said:\n{}",
                self.command,
                self.stderr
            );
        }
        self
    }
}

/// Reads the peak resident memory out of a process's status file.
pub fn peak_memory_kib(status: impl AsRef<Path>) -> Option<u64> {
    let text = std::fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

fn forward(pipe: impl Read + Send + 'static, to: Sender<Line>, wrap: fn(String) -> Line) {
    thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n') {
            let Ok(line) = line else { return };
            // A test that is over no longer listens.
            if to
                .send(wrap(String::from_utf8_lossy(&line).into_owned()))
                .is_err()
            {
                return;
            }
        }
    });
}

fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut text = program
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}
