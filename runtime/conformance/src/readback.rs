//! Reads a destination back with the command of the setup.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use crate::failure::Failure;
use crate::sample::SEQ;
use crate::setup::{Setup, named_text};
use crate::task::Task;

/// How long the command may take: it prints the few rows of a check.
const READBACK_MAX: Duration = Duration::from_secs(30);

/// A row, with every digit of its numbers.
pub(crate) type Row = BTreeMap<String, Box<RawValue>>;

/// How often each number in [`SEQ`] is there.
pub(crate) type Counts = BTreeMap<i64, usize>;

/// Returns how often each document is in a binding's resource.
pub(crate) async fn counts(task: &Task<'_>, binding: u32) -> Result<Counts, Failure> {
    let command = task.bench.setup.readback.as_deref();
    let command = command.ok_or_else(|| {
        Failure::not_applicable(
            "delta updates are never loaded: give the setup a `readback` command that prints the rows",
        )
    })?;
    let mut counts = Counts::new();
    for (seq, _) in rows(task, binding, command).await? {
        *counts.entry(seq).or_default() += 1;
    }
    Ok(counts)
}

/// Returns the rows of a binding's resource, each with its number in [`SEQ`].
pub(crate) async fn rows(
    task: &Task<'_>,
    binding: u32,
    command: &[String],
) -> Result<Vec<(i64, Row)>, Failure> {
    let (name_of_task, name) = (task.name(0), task.name(binding));
    let command = command
        .iter()
        .map(|part| named_text(part, name_of_task, name));
    let command: Vec<String> = command.collect();
    let text = output(&task.bench.setup, &command).await?;
    let mut rows = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let row: Row = serde_json::from_str(line)
            .map_err(|error| malformed(&command, line, &error.to_string()))?;
        let seq = row.get(SEQ).and_then(|seq| seq.get().parse().ok());
        let seq =
            seq.ok_or_else(|| malformed(&command, line, &format!("it has no integer `{SEQ}`")))?;
        rows.push((seq, row));
    }
    Ok(rows)
}

async fn output(setup: &Setup, command: &[String]) -> Result<String, Failure> {
    let shown = command.join(" ");
    let failed = |what: String| Failure::wrong(format!("the readback `{shown}` {what}"));
    let Some((program, arguments)) = command.split_first() else {
        return Err(failed("names no program".to_owned()));
    };
    let spawned = Command::new(program)
        .args(arguments)
        .current_dir(&setup.base)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = spawned.map_err(|error| failed(format!("cannot be run: {error}")))?;
    let stdout = read(child.stdout.take().expect("it is piped"));
    let stderr = read(child.stderr.take().expect("it is piped"));
    let ended = timeout(READBACK_MAX, async { (stdout.await, stderr.await) }).await;
    let Ok((Ok(stdout), Ok(stderr))) = ended else {
        // It may be over by now.
        let _ = child.kill();
        let _ = child.wait();
        return Err(failed(format!("took longer than {READBACK_MAX:?}")));
    };
    // Both its pipes are closed, which a process does by ending.
    let status = child.wait();
    let status = status.map_err(|error| failed(format!("cannot be waited for: {error}")))?;
    if !status.success() {
        return Err(failed(format!("failed ({status}): {}", stderr.trim())));
    }
    Ok(stdout)
}

/// Reads a pipe to its end, on a thread that may wait.
fn read(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    spawn_blocking(move || {
        let mut bytes = Vec::new();
        // What was read until an error is as good as what a shorter output has.
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn malformed(command: &[String], line: &str, problem: &str) -> Failure {
    Failure::wrong(format!(
        "the readback `{}` printed {}, and a JSON object a line is wanted: {problem}",
        command.join(" "),
        tidegate_host::document::shown(line),
    ))
}
