//! A schedule in a file of its own: what one tries out before it goes into a catalog.

use crate::diagnostic::{Diagnostic, Report};
use crate::load::{Files, Sources};
use crate::model::{Context, Field};
use std::io;
use std::path::Path;
use tidegate_schedule::CompiledSchedule;

/// A schedule that was read, or why it could not be.
#[derive(Debug, Clone)]
pub struct ScheduleFile {
    /// The schedule; nothing if there is an error.
    pub schedule: Option<CompiledSchedule>,
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
    /// What [`crate::diagnostic::human`] quotes from.
    pub sources: Sources,
}

/// Reads a file that holds what a `syncSchedule` does, as YAML or JSON.
pub fn load_schedule(path: &Path, read: &dyn Fn(&Path) -> io::Result<Vec<u8>>) -> ScheduleFile {
    let mut files = Files::new(read);
    let mut report = Report::default();
    let tree = files.root(path, &mut report);
    let schedule = tree.and_then(|tree| {
        let field = Field {
            node: &tree,
            pointer: String::new(),
            key_span: tree.span,
        };
        let mut context = Context {
            path,
            files: &mut files,
            report: &mut report,
        };
        context.sync_schedule(&field).compiled
    });
    // A flaw such as a repeated key leaves a schedule that is not what its author sees.
    let good = !report.has_errors_since(0);
    ScheduleFile {
        schedule: schedule.filter(|_| good),
        diagnostics: report.into_sorted(),
        sources: files.into_sources(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::human;

    fn load(name: &str, text: &str) -> ScheduleFile {
        load_schedule(Path::new(name), &|_| Ok(text.as_bytes().to_vec()))
    }

    #[test]
    fn a_schedule_is_read_or_explained_at_its_line() {
        for (name, text) in [
            (
                "s.yaml",
                "baseInterval: 4h\ntimezone: UTC\nwindows: [{interval: 5m, start: 10:00, end: 17:30}]\n",
            ),
            ("s.json", r#"{"cron": "0 2 * * *"}"#),
            ("-", r#"{"baseInterval": "0s"}"#),
        ] {
            let file = load(name, text);
            assert!(file.schedule.is_some(), "{name}: {:?}", file.diagnostics);
            assert_eq!(file.diagnostics, [], "{name}");
        }
        for (name, text, says) in [
            (
                "s.yaml",
                "baseInterval: 4h\nbaseInterval: 5h\n",
                "s.yaml:2:1",
            ),
            (
                "s.yaml",
                "baseInterval: 4h\ntimezone: Local\n",
                "s.yaml:2:11",
            ),
            (
                "s.json",
                r#"{"baseInterval": "1h", "timezone": "UTC", "windows": [{"interval": "5m", "start": 600, "end": "12:00"}]}"#,
                "/windows/0/start",
            ),
            ("s.yaml", "", "a syncSchedule is an object"),
            ("s.yaml", "{", "s.yaml:"),
        ] {
            let file = load(name, text);
            assert_eq!(file.schedule, None, "{text}");
            let shown = human(&file.diagnostics, &file.sources, false);
            assert!(shown.contains(says), "{text}: {shown}");
        }
        let missing = load_schedule(
            Path::new("s.yaml"),
            &|_| Err(io::ErrorKind::NotFound.into()),
        );
        assert!(
            missing.diagnostics[0]
                .message
                .contains("there is no such file")
        );
    }
}
