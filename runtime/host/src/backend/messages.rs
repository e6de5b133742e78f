//! The host's own data as messages of the API.

use prost_types::Timestamp;
use tidegate_api::{Code, Error, SyncNow, v1};
use tidegate_core::close_policy::WaitsOn;
use tidegate_core::{Figures, HeadPhase, Outcome, Status, TailPhase};
use tidegate_validator::diagnostic::{Diagnostic, Place, Severity};
use v1::sync_now_response::{Ack, Done};

use crate::catalog::Catalog;
use crate::host::Preview;
use crate::journal::Document;
use crate::leader::{TaskState, TaskView};
use crate::published::{CatalogFiles, Published};
use crate::registry::Change;

pub(super) fn ack(outcome: Outcome, status: &Status) -> Ack {
    Ack {
        outcome: of_outcome(outcome).into(),
        status: Some(of_status(status)),
    }
}

fn of_outcome(outcome: Outcome) -> v1::sync_now_response::Outcome {
    use v1::sync_now_response::Outcome as To;
    match outcome {
        Outcome::HeldCollapsed => To::HeldCollapsed,
        Outcome::CloseRequested => To::CloseRequested,
        Outcome::AlreadyClosing => To::AlreadyClosing,
        Outcome::Idle => To::Idle,
        Outcome::NotApplicable => To::NotApplicable,
    }
}

/// The answer for a name of which nothing can be open.
pub(super) fn not_applicable() -> SyncNow {
    SyncNow {
        ack: Ack {
            outcome: of_outcome(Outcome::NotApplicable).into(),
            status: Some(v1::Status::default()),
        },
        done: Box::pin(async { Ok(Done::default()) }),
    }
}

pub(super) fn done(figures: &Figures) -> Done {
    Done {
        committed_docs_total: figures.documents,
        committed_bytes_total: figures.bytes,
        duration_millis: figures.duration_millis,
    }
}

fn of_status(status: &Status) -> v1::Status {
    use v1::{head::Phase as Head, status::WaitsOn as Waits, tail::Phase as Tail};
    let head = match status.head_phase {
        HeadPhase::Idle => Head::Idle,
        HeadPhase::Extend => Head::Extend,
        HeadPhase::Flush => Head::Flush,
        HeadPhase::PersistHint => Head::PersistHint,
        HeadPhase::Store => Head::Store,
        HeadPhase::StartCommit => Head::StartCommit,
        HeadPhase::Persist => Head::Persist,
        HeadPhase::Stop => Head::Stop,
    };
    let tail = match status.tail_phase {
        TailPhase::Begin => Tail::Begin,
        TailPhase::Acknowledge => Tail::Acknowledge,
        TailPhase::Persist => Tail::Persist,
        TailPhase::Trigger => Tail::Trigger,
        TailPhase::PersistTrigger => Tail::PersistTrigger,
        TailPhase::Done => Tail::Done,
    };
    let waits_on = match status.waits_on {
        None => Waits::Unspecified,
        Some(WaitsOn::Tail) => Waits::Tail,
        Some(WaitsOn::Hold) => Waits::Hold,
        Some(WaitsOn::Floor) => Waits::Floor,
        Some(WaitsOn::Input) => Waits::Input,
    };
    v1::Status {
        sourced_docs_total: status.sourced_documents,
        sourced_bytes_total: status.sourced_bytes,
        open_age_millis: status.open_age_millis,
        head_phase: head.into(),
        tail_phase: tail.into(),
        held_until: status.held_until_millis.map(of_millis),
        acknowledgement_held_until: status.acknowledgement_held_until_millis.map(of_millis),
        waits_on: waits_on.into(),
    }
}

pub(super) fn task(name: &str, view: &TaskView) -> v1::Task {
    use v1::task::{HeldBy, State};
    let (state, message) = match &view.state {
        TaskState::Starting { after } => (State::Pending, after.clone().unwrap_or_default()),
        TaskState::Running => (State::Running, String::new()),
        TaskState::Stopped => (State::Stopped, String::new()),
        TaskState::Failed { message } => (State::Failed, message.clone()),
    };
    let status = view.status.as_ref();
    let held_by = match status {
        Some(status) if status.held_until_millis.is_some() => HeldBy::SyncSchedule,
        Some(status) if status.acknowledgement_held_until_millis.is_some() => HeldBy::Connector,
        _ => HeldBy::Unspecified,
    };
    v1::Task {
        name: name.to_owned(),
        state: state.into(),
        message,
        transactions_total: view.transactions,
        read_docs_total: view.read,
        to_read_docs: view.to_read,
        stored_rows_total: view.stored,
        status: status.map(of_status),
        held_by: held_by.into(),
        skipped_docs_total: view.left_out.skipped,
        dead_letters_total: view.left_out.dead_letters,
    }
}

pub(super) fn document(document: &Document<'_>) -> v1::ReadResponse {
    v1::ReadResponse {
        offset: document.offset,
        // A journal takes JSON only, which is text.
        document: String::from_utf8_lossy(document.bytes).into_owned(),
    }
}

pub(super) fn files_of(files: v1::CatalogFiles) -> Result<CatalogFiles, Error> {
    if files.roots.is_empty() {
        let message = "a catalog has at least one root: the path of the file to start from";
        return Err(Error::new(Code::InvalidArgument, message));
    }
    if let Some(root) = files.roots.iter().find(|it| !files.files.contains_key(*it)) {
        let message = format!("the root {root} is not among the files: send its text with it");
        return Err(Error::new(Code::InvalidArgument, message));
    }
    let paths = files.files.into_iter();
    Ok(CatalogFiles {
        base: files.base_directory.into(),
        roots: files.roots.into_iter().map(Into::into).collect(),
        files: paths.map(|(path, text)| (path.into(), text)).collect(),
    })
}

pub(super) fn published(published: Published) -> v1::GetCatalogResponse {
    let text = |path: &std::path::Path| path.display().to_string();
    let files = published.catalog;
    v1::GetCatalogResponse {
        catalog: Some(v1::CatalogFiles {
            base_directory: text(&files.base),
            roots: files.roots.iter().map(|it| text(it)).collect(),
            files: files
                .files
                .iter()
                .map(|(path, it)| (text(path), it.clone()))
                .collect(),
        }),
        published_at: Some(of_micros(published.at_micros)),
    }
}

pub(super) fn change(task: &str, change: Change, preview: Option<&Preview>) -> v1::TaskChange {
    use v1::task_change::Kind;
    let kind = match change {
        Change::Added => Kind::Added,
        Change::Changed => Kind::Changed,
        Change::Removed => Kind::Removed,
        Change::Unchanged => Kind::Unchanged,
    };
    let (actions, error) = match preview {
        None => (Vec::new(), String::new()),
        Some(Ok(actions)) => (actions.clone(), String::new()),
        Some(Err(error)) => (Vec::new(), error.clone()),
    };
    v1::TaskChange {
        task: task.to_owned(),
        kind: kind.into(),
        actions,
        error,
    }
}

pub(super) fn diagnostics(catalog: &Catalog) -> Vec<v1::Diagnostic> {
    catalog.diagnostics().iter().map(diagnostic).collect()
}

fn diagnostic(diagnostic: &Diagnostic) -> v1::Diagnostic {
    use v1::diagnostic::Severity as To;
    let severity = match diagnostic.severity {
        Severity::Error => To::Error,
        Severity::Warning => To::Warning,
        Severity::Info => To::Info,
    };
    let place = |place: &Place| v1::Place {
        file: place.file.clone(),
        line: place.line,
        column: place.column,
        pointer: place.pointer.clone(),
    };
    let related = diagnostic.related.iter().map(|related| v1::Related {
        message: related.message.clone(),
        place: Some(place(&related.place)),
    });
    v1::Diagnostic {
        code: diagnostic.code.as_str().to_owned(),
        severity: severity.into(),
        message: diagnostic.message.clone(),
        place: Some(&diagnostic.place)
            .filter(|place| !place.file.is_empty())
            .map(place),
        help: diagnostic.help.clone().unwrap_or_default(),
        related: related.collect(),
    }
}

fn of_millis(millis: i64) -> Timestamp {
    of_micros(millis.saturating_mul(1_000))
}

fn of_micros(micros: i64) -> Timestamp {
    Timestamp {
        seconds: micros.div_euclid(1_000_000),
        nanos: (micros.rem_euclid(1_000_000) * 1_000) as i32,
    }
}
