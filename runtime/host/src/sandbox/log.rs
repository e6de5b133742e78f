//! A guest's log lines: its `runtime.log`, standard output and standard error.
//!
//! Lines are cut at a length and dropped beyond a rate; how many were dropped
//! is a line of its own. What goes to standard error is also kept for the
//! length of a call: if the guest crashes in it, these are its last words.

use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;
use tokio::time::Instant;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use super::grant::Denial;
use super::limits::Limits;

/// A guest may log for this long at full speed before lines are dropped: a
/// start or an error comes in a burst.
const BURST_SECONDS: u32 = 10;

/// A panic message with its place; the rest would be a backtrace without
/// names.
const LAST_WORDS_BYTES: usize = 2 << 10;

/// How much a guest may write to a standard stream at once. Writing never
/// waits; this only bounds one buffer.
const STREAM_WRITE_BYTES: usize = 64 << 10;

/// How important a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Something failed.
    Error,
    /// Something may fail.
    Warn,
    /// Something happened.
    Info,
    /// For the connector's author.
    Debug,
    /// For the connector's author, in masses.
    Trace,
}

/// One line of a connector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Name of the task.
    pub task: Arc<str>,
    /// How important it is.
    pub level: LogLevel,
    /// What the connector wrote.
    pub message: String,
}

/// Where lines go. It must not wait: the guest's thread waits with it.
pub type LogSink = Arc<dyn Fn(LogLine) + Send + Sync>;

/// Returns a sink into the host's own log.
pub fn tracing_sink() -> LogSink {
    Arc::new(
        |LogLine {
             task,
             level,
             message,
         }| match level {
            LogLevel::Error => tracing::error!(target: "connector", %task, "{message}"),
            LogLevel::Warn => tracing::warn!(target: "connector", %task, "{message}"),
            LogLevel::Info => tracing::info!(target: "connector", %task, "{message}"),
            LogLevel::Debug => tracing::debug!(target: "connector", %task, "{message}"),
            LogLevel::Trace => tracing::trace!(target: "connector", %task, "{message}"),
        },
    )
}

/// The log of one session.
pub(super) struct GuestLog {
    task: Arc<str>,
    sink: LogSink,
    line_bytes: usize,
    lines_per_second: u32,
    state: Mutex<State>,
}

struct State {
    rate: Rate,
    /// Lines that were dropped and not yet counted in a line.
    dropped: u64,
    /// Standard error of this call.
    words: String,
}

impl GuestLog {
    pub(super) fn new(task: &str, limits: &Limits, sink: LogSink) -> GuestLog {
        GuestLog {
            task: task.into(),
            sink,
            line_bytes: limits.log_line_bytes,
            lines_per_second: limits.log_lines_per_second,
            state: Mutex::new(State {
                rate: Rate::new(limits.log_lines_per_second, Instant::now()),
                dropped: 0,
                words: String::new(),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .expect("nothing panics while it holds this lock")
    }

    /// Writes a line, unless there were too many.
    pub(super) fn line(&self, level: LogLevel, message: &str) {
        self.whole_line(level, cut(message, self.line_bytes));
    }

    /// Says what the guest was refused, where the import itself has no words for it.
    pub(super) fn denied(&self, import: &str, denial: &Denial) {
        self.line(LogLevel::Warn, &format!("{import}: {denial}"));
    }

    /// Logs a line that was cut already.
    fn whole_line(&self, level: LogLevel, message: String) {
        let dropped = {
            let mut state = self.state();
            if !state.rate.take(Instant::now()) {
                state.dropped += 1;
                return;
            }
            mem::take(&mut state.dropped)
        };
        self.report_dropped(dropped);
        self.send(level, message);
    }

    fn report_dropped(&self, dropped: u64) {
        if dropped > 0 {
            let message = format!(
                "{dropped} lines were dropped: the connector logs more than {} a second",
                self.lines_per_second
            );
            self.send(LogLevel::Warn, message);
        }
    }

    fn send(&self, level: LogLevel, message: String) {
        (self.sink)(LogLine {
            task: self.task.clone(),
            level,
            message,
        });
    }

    /// Forgets the words of earlier calls.
    pub(super) fn begin_call(&self) {
        self.state().words.clear();
    }

    /// Returns what the guest wrote to standard error in this call.
    pub(super) fn last_words(&self) -> String {
        mem::take(&mut self.state().words)
    }

    /// Keeps a line of standard error. Errors are one line: it is appended.
    fn keep_words(&self, line: &str) {
        let line = line.trim();
        let words = &mut self.state().words;
        let room = LAST_WORDS_BYTES.saturating_sub(words.len());
        if room > 0 {
            if !words.is_empty() {
                words.push(' ');
            }
            words.push_str(&cut(line, room));
        }
    }
}

impl Drop for GuestLog {
    fn drop(&mut self) {
        let dropped = mem::take(&mut self.state().dropped);
        self.report_dropped(dropped);
    }
}

/// Cuts a line to about a number of bytes, and says how much is gone.
fn cut(line: &str, bytes: usize) -> String {
    if line.len() <= bytes {
        return line.to_owned();
    }
    let kept = &line[..line.floor_char_boundary(bytes)];
    format!("{kept} [{} bytes cut]", line.len() - kept.len())
}

/// Lets a number of lines a second pass.
#[derive(Debug)]
struct Rate {
    per_second: f64,
    available: f64,
    at: Instant,
}

impl Rate {
    fn new(per_second: u32, now: Instant) -> Rate {
        Rate {
            per_second: per_second.into(),
            available: (per_second * BURST_SECONDS).into(),
            at: now,
        }
    }

    fn take(&mut self, now: Instant) -> bool {
        let earned = (now - self.at).as_secs_f64() * self.per_second;
        let most = self.per_second * f64::from(BURST_SECONDS);
        self.available = (self.available + earned).min(most);
        self.at = now;
        if self.available < 1.0 {
            return false;
        }
        self.available -= 1.0;
        true
    }
}

/// Standard output or standard error of a guest, taken apart into lines.
#[derive(Clone)]
pub(super) struct LineStream {
    log: Arc<GuestLog>,
    level: LogLevel,
    line: Arc<Mutex<Line>>,
}

/// A line that has not ended yet.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    /// How many more bytes it had.
    cut: usize,
}

impl LineStream {
    pub(super) fn stdout(log: Arc<GuestLog>) -> LineStream {
        LineStream {
            log,
            level: LogLevel::Info,
            line: Arc::default(),
        }
    }

    pub(super) fn stderr(log: Arc<GuestLog>) -> LineStream {
        LineStream {
            log,
            level: LogLevel::Warn,
            line: Arc::default(),
        }
    }

    fn write_bytes(&self, bytes: &[u8]) {
        let mut line = self
            .line
            .lock()
            .expect("nothing panics while it holds this lock");
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (part, ended) = match part.strip_suffix(b"\n") {
                Some(part) => (part, true),
                None => (part, false),
            };
            let room = self.log.line_bytes.saturating_sub(line.bytes.len());
            let kept = part.len().min(room);
            line.bytes.extend_from_slice(&part[..kept]);
            line.cut += part.len() - kept;
            if ended {
                self.end(mem::take(&mut *line));
            }
        }
    }

    fn end(&self, line: Line) {
        let mut text = String::from_utf8_lossy(&line.bytes).into_owned();
        if line.cut > 0 {
            text.push_str(&format!(" [{} bytes cut]", line.cut));
        }
        // The standard library's advice is for people at a terminal.
        if text.trim().is_empty() || text.starts_with("note: run with `RUST_BACKTRACE=1`") {
            return;
        }
        if self.level == LogLevel::Warn {
            self.log.keep_words(&text);
        }
        self.log.whole_line(self.level, text);
    }
}

impl Drop for LineStream {
    fn drop(&mut self) {
        // The last of its clones ends a line that the guest left open.
        if let Some(line) = Arc::get_mut(&mut self.line) {
            let line = line
                .get_mut()
                .map(mem::take)
                .expect("nothing panics while it holds this lock");
            if !line.bytes.is_empty() {
                self.end(line);
            }
        }
    }
}

#[async_trait]
impl Pollable for LineStream {
    async fn ready(&mut self) {}
}

impl OutputStream for LineStream {
    fn write(&mut self, bytes: bytes::Bytes) -> StreamResult<()> {
        self.write_bytes(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(STREAM_WRITE_BYTES)
    }
}

impl AsyncWrite for LineStream {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.write_bytes(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl IsTerminal for LineStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for LineStream {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn log(limits: &Limits) -> (Arc<GuestLog>, Arc<Mutex<Vec<LogLine>>>) {
        let lines: Arc<Mutex<Vec<LogLine>>> = Arc::default();
        let sink = lines.clone();
        let sink: LogSink = Arc::new(move |line| sink.lock().unwrap().push(line));
        (Arc::new(GuestLog::new("t", limits, sink)), lines)
    }

    fn texts(lines: &Mutex<Vec<LogLine>>) -> Vec<String> {
        let lines = lines.lock().unwrap();
        lines.iter().map(|line| line.message.clone()).collect()
    }

    #[test]
    fn a_rate_has_a_burst_and_a_steady_flow() {
        let start = Instant::now();
        let mut rate = Rate::new(2, start);
        let mut take = |milliseconds| {
            let now = start + Duration::from_millis(milliseconds);
            (0..100).take_while(|_| rate.take(now)).count()
        };
        assert_eq!(take(0), 20);
        assert_eq!(take(499), 0);
        assert_eq!(take(1_600), 3);
        assert_eq!(take(3_600_000), 20);
    }

    #[test]
    fn dropped_lines_are_counted() {
        let limits = Limits {
            log_lines_per_second: 1,
            ..Limits::default()
        };
        let (log, lines) = log(&limits);
        for number in 0..15 {
            log.line(LogLevel::Info, &number.to_string());
        }
        assert_eq!(texts(&lines).len(), 10);
        drop(log);
        let last = "5 lines were dropped: the connector logs more than 1 a second";
        assert_eq!(texts(&lines)[10..], [last]);
    }

    #[test]
    fn a_stream_becomes_lines() {
        let limits = Limits {
            log_line_bytes: 8,
            ..Limits::default()
        };
        let (log, lines) = log(&limits);
        let stream = LineStream::stdout(log.clone());
        for part in [
            &b"one\ntw"[..],
            b"o\n\n",
            b"long, ",
            b"longer\n",
            b"\xff rest",
        ] {
            stream.write_bytes(part);
        }
        drop(stream.clone());
        assert_eq!(texts(&lines), ["one", "two", "long, lo [4 bytes cut]"]);
        drop(stream);
        assert_eq!(texts(&lines)[3], "\u{fffd} rest");
        log.line(LogLevel::Info, "äääääää");
        assert_eq!(texts(&lines)[4], "ääää [6 bytes cut]");
        assert_eq!(log.last_words(), "");
    }

    #[test]
    fn standard_error_is_kept_for_one_call() {
        let (log, _) = log(&Limits::default());
        let stream = LineStream::stderr(log.clone());
        stream.write_bytes(b"of the last call\n");
        log.begin_call();
        stream.write_bytes(
            b"\nthread 'main' panicked at src/lib.rs:9:5:\nboom\n\
              note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n",
        );
        let words = "thread 'main' panicked at src/lib.rs:9:5: boom";
        assert_eq!(log.last_words(), words);
        stream.write_bytes(&[b'x'; 3 * LAST_WORDS_BYTES]);
        stream.write_bytes(b"\n");
        assert!(log.last_words().len() < LAST_WORDS_BYTES + 32);
    }
}
