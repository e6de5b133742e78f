//! Two layers must never pace one task.
//!
//! ```text
//! connector's schedule: absent | switched off | paces
//! catalog's schedule:   absent | present                  -> fine | information | warning | error
//! ```
//!
//! What a connector paces by is known from its schema, or from its name where there is no schema to look at.

use crate::diagnostic::{Code, Report, Spot};
use crate::load::{Node, Sources, join};
use crate::model::{ComponentRef, Runnable, Task};
use chrono::DateTime;
use serde_json::Value;
use tidegate_schedule::{
    CompiledPacing, CompiledSchedule, Configured, DEFAULT_FREQUENCY, DEFAULT_UPLOAD_INTERVAL,
    classify, classify_uploads,
};
use tidegate_wit::message::SpecResponse;

const SYNC_SCHEDULE: &str = "syncSchedule";
const UPLOAD_INTERVAL: &str = "uploadInterval";

/// Connectors that take a `syncSchedule`.
const SCHEDULED_NAMES: [&str; 8] = [
    "materialize-azure-fabric-warehouse",
    "materialize-bigquery",
    "materialize-clickhouse",
    "materialize-databricks",
    "materialize-iceberg",
    "materialize-motherduck",
    "materialize-redshift",
    "materialize-snowflake",
];

/// Connectors that take an `uploadInterval`.
const UPLOADING_NAMES: [&str; 5] = [
    "materialize-azure-blob-parquet",
    "materialize-gcs-csv",
    "materialize-gcs-parquet",
    "materialize-s3-csv",
    "materialize-s3-parquet",
];

/// How a connector can pace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paces {
    BySchedule,
    ByUploads,
    Never,
}

/// Says how a connector can pace.
pub(crate) fn paces(component: &ComponentRef, spec: Option<&SpecResponse>) -> Paces {
    let (schedule, uploads) = match (spec, component) {
        (Some(spec), _) => {
            let has = |name: &str| {
                let properties = spec.config_schema.get("properties");
                properties.and_then(|it| it.get(name)).is_some()
            };
            (has(SYNC_SCHEDULE), has(UPLOAD_INTERVAL))
        }
        (None, ComponentRef::Name(name)) => (
            SCHEDULED_NAMES.contains(&name.as_str()),
            UPLOADING_NAMES.contains(&name.as_str()),
        ),
        (None, ComponentRef::Path(_)) => (false, false),
    };
    match (schedule, uploads) {
        (true, _) => Paces::BySchedule,
        (false, true) => Paces::ByUploads,
        (false, false) => Paces::Never,
    }
}

/// Returns whether an `uploadInterval` is as good as none.
pub(crate) fn least_upload_interval(text: &str) -> bool {
    let amounts_to = classify_uploads(Some(&Value::from(text)));
    matches!(amounts_to, Ok(Configured::AllZero))
}

/// Returns the offered `uploadInterval` that is as good as none.
fn least_of<'s>(component: &ComponentRef, spec: Option<&'s SpecResponse>) -> Option<&'s str> {
    let Some(spec) = spec else {
        let ComponentRef::Name(name) = component else {
            return None;
        };
        return name.starts_with("materialize-s3-").then_some("1s");
    };
    let options = spec
        .config_schema
        .get("properties")?
        .get(UPLOAD_INTERVAL)?
        .get("enum");
    match options {
        Some(options) => {
            let mut options = options.as_array()?.iter().filter_map(|it| it.as_str());
            options.find(|it| least_upload_interval(it))
        }
        None => Some("0s"),
    }
}

/// Reports a schedule that will never fire again.
pub(crate) fn check_over(task: &Task, wall_millis: i64, sources: &Sources, report: &mut Report) {
    let (Some(schedule), Some(now)) =
        (&task.schedule, DateTime::from_timestamp_millis(wall_millis))
    else {
        return;
    };
    let over = |compiled: &CompiledSchedule| compiled.is_exhausted(now);
    if !schedule.compiled.as_ref().is_some_and(over) {
        return;
    }
    let spot = schedule.cron_spot.as_ref().unwrap_or(&schedule.spot);
    report
        .add(
            sources,
            Code::ScheduleInvalid,
            spot,
            format!(
                "the cron expression of \"{}\" never fires after {}: its years are over",
                task.name,
                now.format("%Y-%m-%d")
            ),
        )
        .help("take the year out of the expression, or name one that is still to come");
}

/// Reports who paces a task, where that is nobody's intention.
pub(crate) fn check_pacing(
    task: &Task,
    runnable: &Runnable,
    spec: Option<&SpecResponse>,
    config_is_bad: bool,
    sources: &Sources,
    report: &mut Report,
) {
    let mut pacing = Pacing {
        task,
        runnable,
        config_is_bad,
        least: least_of(&runnable.component, spec),
        defers: spec.is_some_and(|it| it.defers_to_schedule),
        sources,
        report,
    };
    match paces(&runnable.component, spec) {
        Paces::Never => {}
        Paces::BySchedule => pacing.schedule(),
        Paces::ByUploads => pacing.uploads(),
    }
}

struct Pacing<'p> {
    task: &'p Task,
    runnable: &'p Runnable,
    /// Whether the connector's schema refused the config.
    config_is_bad: bool,
    /// The `uploadInterval` that is as good as none, if the connector offers it.
    least: Option<&'p str>,
    defers: bool,
    sources: &'p Sources,
    report: &'p mut Report,
}

impl Pacing<'_> {
    fn config(&self, key: &str) -> Option<(&Node, Spot)> {
        let entry = self.runnable.config.entry(key)?;
        let pointer = join(&self.runnable.config_pointer, key);
        Some((&entry.value, Spot::new(pointer, entry.key_span)))
    }

    fn schedule(&mut self) {
        let (value, spot) = match self.config(SYNC_SCHEDULE) {
            Some((node, spot)) => (Some((node.to_value(), node.clone())), Some(spot)),
            None => (None, None),
        };
        let configured = match classify(value.as_ref().map(|(value, _)| value)) {
            Ok(configured) => configured,
            Err(error) => return self.problems(error, value.map(|(_, node)| node)),
        };
        if let Configured::Paced(schedule) = &configured
            && let Err(error) = CompiledPacing::compile(schedule)
        {
            self.problems(error, value.map(|(_, node)| node));
        }
        match (configured, spot) {
            (Configured::AllZero, _) => {}
            (Configured::Absent, _) => self.by_default(
                DEFAULT_FREQUENCY,
                Some("syncSchedule: {syncFrequency: 0s}".to_owned()),
            ),
            (Configured::Paced(_), Some(spot)) => self.conflict(
                &spot,
                SYNC_SCHEDULE,
                "set the config's syncSchedule to {syncFrequency: 0s} and nothing else",
            ),
            (Configured::Paced(_), None) => {}
        }
    }

    fn uploads(&mut self) {
        let configured = self.config(UPLOAD_INTERVAL);
        let configured = configured.and_then(|(node, spot)| {
            let text = node.text().filter(|it| !it.is_empty())?;
            Some((least_upload_interval(text), spot))
        });
        match configured {
            Some((true, _)) => {}
            Some((false, spot)) => {
                let off = match self.least {
                    Some(least) => format!("set uploadInterval to {least}"),
                    None => "use a connector that can upload at once".to_owned(),
                };
                self.conflict(&spot, UPLOAD_INTERVAL, &off);
            }
            None => self.by_default(
                DEFAULT_UPLOAD_INTERVAL,
                self.least
                    .map(|least| format!("{UPLOAD_INTERVAL}: {least}")),
            ),
        }
    }

    fn problems(&mut self, error: tidegate_schedule::ScheduleError, node: Option<Node>) {
        // What the connector's schema refused is reported already.
        let Some(node) = node.filter(|_| !self.config_is_bad) else {
            return;
        };
        let pointer = join(&self.runnable.config_pointer, SYNC_SCHEDULE);
        for problem in error.into_problems() {
            let at = node.nearest(&problem.pointer);
            let spot = Spot::new(format!("{pointer}{}", problem.pointer), at.span);
            self.report
                .add(
                    self.sources,
                    Code::ScheduleInvalid,
                    &spot,
                    format!("the connector's schedule: {}", problem.message),
                )
                .help(problem.fix);
        }
    }

    /// Speaks of a default; `off` is what switches it off, if anything does.
    fn by_default(&mut self, default: &str, off: Option<String>) {
        let component = &self.runnable.component;
        match &self.task.schedule {
            None => {
                self.report
                    .add(
                        self.sources,
                        Code::ScheduleDefault,
                        &self.runnable.spot,
                        format!("\"{}\" commits every {default}, the default of {component}", self.task.name),
                    )
                    .help(match off {
                        Some(off) => format!("to choose, add \"syncSchedule: {{baseInterval: {default}}}\" to the materialization and \"{off}\" to the config"),
                        None => format!("to choose, set \"{UPLOAD_INTERVAL}\" in the config"),
                    });
            }
            Some(_) if self.defers => {}
            Some(schedule) => {
                self.report
                    .add(
                        self.sources,
                        Code::ScheduleStacks,
                        &schedule.spot,
                        format!(
                            "{component} waits {default} by default, and that adds to the syncSchedule of \"{}\"",
                            self.task.name
                        ),
                    )
                    .related(
                        self.sources,
                        &Spot::new(&self.runnable.config_pointer, self.runnable.config.span),
                        "the connector's config does not switch its own pacing off",
                    )
                    .help(match off {
                        Some(off) => format!("set \"{off}\" in the config"),
                        None => "remove syncSchedule from the materialization: this connector cannot switch its own pacing off".to_owned(),
                    });
            }
        }
    }

    fn conflict(&mut self, connector: &Spot, key: &str, off: &str) {
        let Some(schedule) = &self.task.schedule else {
            return;
        };
        self.report
            .add(
                self.sources,
                Code::ScheduleConflict,
                &schedule.spot,
                format!(
                    "\"{}\" is paced twice: by its syncSchedule, and by the {key} of {}'s config",
                    self.task.name, self.runnable.component
                ),
            )
            .related(
                self.sources,
                connector,
                format!("the connector's own {key} is here"),
            )
            .help(format!(
                "to keep the materialization's, {off}; to keep the connector's, remove syncSchedule from the materialization"
            ));
    }
}
