//! Tasks of a host in words.

use std::time::{Duration, SystemTime};

use indicatif::HumanCount;
use tidegate_api::v1;
use tidegate_api::v1::task::{HeldBy, State};

/// Puts a leader into a line.
pub fn describe(status: &v1::Status) -> String {
    let head = match status.head_phase() {
        v1::head::Phase::Idle | v1::head::Phase::Unspecified => None,
        phase => Some(format!(
            "{} ({} documents, open for {})",
            phase.as_str_name().to_ascii_lowercase().replace('_', " "),
            HumanCount(status.sourced_docs_total),
            span(Duration::from_millis(status.open_age_millis))
        )),
    };
    let tail = match status.tail_phase() {
        v1::tail::Phase::Done | v1::tail::Phase::Unspecified => None,
        phase => Some(format!(
            "the one before: {}",
            phase.as_str_name().to_ascii_lowercase().replace('_', " ")
        )),
    };
    let parts: Vec<String> = head.into_iter().chain(tail).collect();
    match parts.is_empty() {
        true => "idle".to_owned(),
        false => parts.join("; "),
    }
}

/// Puts what holds a task into words, with the time that is left.
pub fn hold(task: &v1::Task, now: SystemTime) -> Option<String> {
    let status = task.status.as_ref()?;
    let (what, until) = match task.held_by() {
        HeldBy::Unspecified => return None,
        HeldBy::SyncSchedule => ("held by its schedule", status.held_until),
        HeldBy::Connector => (
            "acknowledgement held by the connector",
            status.acknowledgement_held_until,
        ),
    };
    let Some(until) = until.and_then(|until| SystemTime::try_from(until).ok()) else {
        return Some(what.to_owned());
    };
    let left = until.duration_since(now).unwrap_or_default();
    Some(format!(
        "{what} for {}, until {}",
        span(left),
        humantime::format_rfc3339_seconds(until)
    ))
}

/// Puts a task into a line.
pub fn line(task: &v1::Task, now: SystemTime) -> String {
    let state = match task.state() {
        State::Pending if task.message.is_empty() => "starting".to_owned(),
        State::Pending => format!("restarting after: {}", task.message),
        State::Running => "running".to_owned(),
        State::Stopped => "stopped".to_owned(),
        State::Failed => format!("failed: {}", task.message),
        State::Unspecified => "in a state that is unknown here".to_owned(),
    };
    let mut line = format!(
        "{}: {state}; {} documents read, {} to read, {} rows stored, {} transactions",
        task.name,
        HumanCount(task.read_docs_total),
        HumanCount(task.to_read_docs),
        HumanCount(task.stored_rows_total),
        HumanCount(task.transactions_total)
    );
    let left_out = left_out(task.skipped_docs_total, task.dead_letters_total);
    for more in left_out.into_iter().chain(hold(task, now)) {
        line += "; ";
        line += &more;
    }
    line
}

/// Puts documents that were left out into words, if there are any.
pub fn left_out(skipped: u64, dead_letters: u64) -> Option<String> {
    let count = |count: u64, one: &str, more: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{} {more}", HumanCount(count))),
    };
    let counts: Vec<String> = [
        count(skipped, "document skipped", "documents skipped"),
        count(dead_letters, "dead letter", "dead letters"),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!counts.is_empty()).then(|| counts.join(", "))
}

/// Whole seconds are enough for people.
fn span(duration: Duration) -> humantime::FormattedDuration {
    humantime::format_duration(Duration::from_secs(duration.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Option<prost_types::Timestamp> {
        Some(prost_types::Timestamp { seconds, nanos: 0 })
    }

    #[test]
    fn tasks() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
        let mid = v1::Task {
            name: "a/b".to_owned(),
            state: State::Running.into(),
            read_docs_total: 5_000,
            ..Default::default()
        };
        let counts = "5,000 documents read, 0 to read, 0 rows stored, 0 transactions";
        let held = v1::Task {
            held_by: HeldBy::SyncSchedule.into(),
            status: Some(v1::Status {
                held_until: at(1_000 + 3 * 3600 + 59),
                ..Default::default()
            }),
            ..mid.clone()
        };
        let paced = v1::Task {
            held_by: HeldBy::Connector.into(),
            status: Some(v1::Status {
                acknowledgement_held_until: at(10),
                ..Default::default()
            }),
            ..mid.clone()
        };
        let left_out = v1::Task {
            skipped_docs_total: 1,
            dead_letters_total: 2_000,
            ..mid.clone()
        };
        let failed = v1::Task {
            state: State::Failed.into(),
            message: "the disk is full".to_owned(),
            ..mid.clone()
        };
        #[rustfmt::skip]
        let cases = [
            (mid, format!("a/b: running; {counts}")),
            (held, format!("a/b: running; {counts}; held by its schedule for 3h 59s, until 1970-01-01T03:17:39Z")),
            (paced, format!("a/b: running; {counts}; acknowledgement held by the connector for 0s, until 1970-01-01T00:00:10Z")),
            (failed, format!("a/b: failed: the disk is full; {counts}")),
            (left_out, format!("a/b: running; {counts}; 1 document skipped, 2,000 dead letters")),
        ];
        for (task, want) in cases {
            assert_eq!(line(&task, now), want);
        }
    }

    #[test]
    fn leaders() {
        let idle = v1::Status::default();
        assert_eq!(describe(&idle), "idle");
        let busy = v1::Status {
            sourced_docs_total: 7,
            open_age_millis: 61_500,
            head_phase: v1::head::Phase::StartCommit.into(),
            tail_phase: v1::tail::Phase::Acknowledge.into(),
            ..Default::default()
        };
        assert_eq!(
            describe(&busy),
            "start commit (7 documents, open for 1m 1s); the one before: acknowledge"
        );
    }
}
