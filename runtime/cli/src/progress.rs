//! Progress on stderr: bars on a terminal, plain lines otherwise.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use indicatif::{HumanCount, MultiProgress, ProgressBar, ProgressStyle};
use tidegate_host::leader::{TaskState, TaskView};

/// How often plain lines are written: a log that is read later needs no more.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// How often bars are drawn.
pub const DRAW_EVERY: Duration = Duration::from_millis(100);

/// All bars of the process, so that log lines can go above them.
fn bars() -> &'static MultiProgress {
    static BARS: OnceLock<MultiProgress> = OnceLock::new();
    BARS.get_or_init(MultiProgress::new)
}

/// Writes log lines to stderr without tearing the bars.
#[derive(Default)]
pub struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        bars().suspend(|| io::stderr().write(buffer))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Shows how tasks get on.
pub struct Display {
    bars: Option<BTreeMap<String, ProgressBar>>,
    lines: BTreeMap<String, (Instant, String)>,
}

impl Display {
    /// Returns a display for stderr as it is.
    pub fn new() -> Display {
        let bars = io::stderr().is_terminal().then(BTreeMap::new);
        Display {
            bars,
            lines: BTreeMap::new(),
        }
    }

    /// Shows a task as it stands.
    pub fn show(&mut self, task: &str, view: &TaskView) {
        let line = describe(view);
        match &mut self.bars {
            Some(bars) => {
                let bar = bars.entry(task.to_owned()).or_insert_with(|| new_bar(task));
                bar.set_length(view.read + view.to_read);
                bar.set_position(view.read);
                bar.set_message(line);
            }
            None => self.line(task, line, view.state.is_over()),
        }
    }

    /// Writes a plain line if the last one is old enough and says otherwise.
    fn line(&mut self, task: &str, line: String, now: bool) {
        let (last, text) = self
            .lines
            .entry(task.to_owned())
            .or_insert_with(|| (Instant::now(), String::new()));
        if *text != line && (now || last.elapsed() >= LINE_EVERY) {
            eprintln!("{task}: {line}");
            (*last, *text) = (Instant::now(), line);
        }
    }

    /// Writes a line above the bars.
    pub fn say(&self, line: &str) {
        bars().suspend(|| eprintln!("{line}"));
    }

    /// Takes the bars away.
    pub fn finish(&mut self) {
        for bar in self.bars.iter().flat_map(BTreeMap::values) {
            bar.finish_and_clear();
        }
    }
}

fn new_bar(task: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix} {bar:24} {human_pos}/{human_len} {msg}")
        .expect("the template is constant");
    let bar = ProgressBar::new(0)
        .with_style(style)
        .with_prefix(task.to_owned());
    bars().add(bar)
}

/// Puts a task into a line.
pub fn describe(view: &TaskView) -> String {
    let counts = format!(
        "{} documents read, {} rows stored, {} transactions",
        HumanCount(view.read),
        HumanCount(view.stored),
        HumanCount(view.transactions)
    );
    match &view.state {
        TaskState::Starting { after: Some(error) } => format!("restarting after: {error}"),
        TaskState::Starting { after: None } => "starting".to_owned(),
        TaskState::Running => counts,
        TaskState::Stopped => format!("{counts}, stopped"),
        // The error itself comes last of all, where it is seen.
        TaskState::Failed { .. } => format!("{counts}, failed"),
    }
}
