//! Whether a connector's own schedule paces its task.
//!
//! ```text
//! open         spec has a schedule            -> no pacing, whatever the config says
//!              config: absent or emptied      -> paced by the default
//!              config: all zero               -> no pacing
//!              config: anything else          -> paced as configured
//! acknowledge  of a recovery, or backfilling  -> not this one
//! ```
//!
//! Two layers must never pace one task: a schedule in the spec holds the whole
//! transaction, and a delayed acknowledgement would be added to it. *When* a paced
//! acknowledgement is due is not known here: the host waits, so that it can end
//! the wait.

use serde_json::Value;
use tidegate_schedule::{
    Configured, ConnectorSchedule, DEFAULT_UPLOAD_INTERVAL, ScheduleError, classify,
    classify_uploads,
};

/// The property of connectors with a whole schedule of their own.
pub const CONFIG_PROPERTY: &str = "syncSchedule";

/// The property of file sinks.
pub const UPLOAD_PROPERTY: &str = "uploadInterval";

/// How it is decided what a session is paced by: see [`decide`].
pub type Decide =
    fn(Option<&Value>, Option<&Value>) -> Result<Option<ConnectorSchedule>, ScheduleError>;

/// A connector's pacing property, in its config and at the top of its config schema,
/// and how it is read: the first that the schema has. A connector without any never
/// paces.
pub const CONFIG_PROPERTIES: [(&str, Decide); 2] =
    [(CONFIG_PROPERTY, decide), (UPLOAD_PROPERTY, decide_uploads)];

/// As many transactions must have stored little before a task counts as caught
/// up: a single small one can be a pause between two large ones.
const CAUGHT_UP_TRANSACTIONS: usize = 5;

/// A transaction that stored this many documents is part of a backfill, which
/// pacing would only prolong.
const BACKFILL_DOCUMENTS: u64 = 1_000_000;

/// Decides what a session is paced by, if by anything.
///
/// `spec_schedule` is the model's own, and `configured` what the connector's config
/// has for its `syncSchedule`.
///
/// # Errors
///
/// If the config's schedule decides, and is wrong.
pub fn decide(
    spec_schedule: Option<&Value>,
    configured: Option<&Value>,
) -> Result<Option<ConnectorSchedule>, ScheduleError> {
    if spec_schedule.is_some() {
        return Ok(None);
    }
    match classify(configured)? {
        Configured::Absent => Ok(Some(ConnectorSchedule::default())),
        Configured::AllZero => Ok(None),
        Configured::Paced(schedule) => {
            schedule.check()?;
            Ok(Some(schedule))
        }
    }
}

/// Decides the same for a file sink, whose config has an `uploadInterval`.
///
/// # Errors
///
/// If the config's interval decides, and is wrong.
pub fn decide_uploads(
    spec_schedule: Option<&Value>,
    configured: Option<&Value>,
) -> Result<Option<ConnectorSchedule>, ScheduleError> {
    if spec_schedule.is_some() {
        return Ok(None);
    }
    Ok(match classify_uploads(configured)? {
        Configured::Absent => Some(ConnectorSchedule::every(DEFAULT_UPLOAD_INTERVAL)),
        Configured::AllZero => None,
        Configured::Paced(schedule) => Some(schedule),
    })
}

/// Decides whether one acknowledgement of a paced session is to be held.
///
/// `stored_counts` are those of the last transactions that stored anything, oldest
/// first. A recovered transaction was late already, and until the task is known to
/// be caught up there is a backlog to get through.
pub fn holds_acknowledgement(recovery: bool, stored_counts: &[u64]) -> bool {
    let recent = stored_counts.iter().rev().take(CAUGHT_UP_TRANSACTIONS);
    !recovery
        && stored_counts.len() >= CAUGHT_UP_TRANSACTIONS
        && recent
            .into_iter()
            .all(|stored| *stored < BACKFILL_DOCUMENTS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FAST: &str = "fast window";

    fn fast(frequency: &str) -> Value {
        json!({
            "syncFrequency": frequency, "timezone": "Europe/Berlin",
            "fastSyncStartTime": "09:00", "fastSyncStopTime": "17:00", "fastSyncEnabledDays": "M-F",
        })
    }

    /// Says what a decision amounts to: nothing, a frequency, or a fast window.
    fn summary(schedule: Option<ConnectorSchedule>) -> Option<String> {
        schedule.map(|schedule| match schedule.timezone {
            Some(_) => FAST.to_owned(),
            None => schedule.sync_frequency.expect("a schedule has a frequency"),
        })
    }

    #[test]
    fn decision_table() {
        struct Case {
            name: &'static str,
            configured: Option<Value>,
            /// Without a schedule in the spec; with one it is always nothing.
            want: Option<&'static str>,
        }
        let case = |name, configured, want| Case {
            name,
            configured,
            want,
        };
        let frequency = |text: &str| Some(json!({"syncFrequency": text}));
        let mut cases = vec![
            case("absent", None, Some("30m")),
            case("null", Some(Value::Null), Some("30m")),
            case("empty", Some(json!({})), Some("30m")),
            case(
                "null frequency",
                Some(json!({"syncFrequency": null})),
                Some("30m"),
            ),
            case("empty frequency", frequency(""), Some("30m")),
            case("blank frequency", frequency("  "), Some("30m")),
            case(
                "an emptied form",
                Some(json!({
                    "syncFrequency": null, "timezone": "", "fastSyncStartTime": "",
                    "fastSyncStopTime": null, "fastSyncEnabledDays": "",
                })),
                Some("30m"),
            ),
            case(
                "zero and an emptied rest",
                Some(json!({"syncFrequency": "0s", "timezone": ""})),
                None,
            ),
            case("zero with a fast window", Some(fast("0s")), Some(FAST)),
            case("frequency", frequency("5m"), Some("5m")),
            case("padded frequency", frequency(" 4h "), Some("4h")),
            case("fast window", Some(fast("5m")), Some(FAST)),
        ];
        for zero in ["0s", "0", "0m", "0h", "0ms", "0h0m0s", "0.0s", "+0s", "-0"] {
            cases.push(case("zero", frequency(zero), None));
        }
        cases.push(case(
            "a zero that is no text",
            Some(json!({"syncFrequency": 0})),
            None,
        ));
        for Case {
            name,
            configured,
            want,
        } in cases
        {
            let got = decide(None, configured.as_ref()).map(summary);
            assert_eq!(got, Ok(want.map(str::to_owned)), "{name}: {configured:?}");
            let model = json!({"baseInterval": "1h"});
            let got = decide(Some(&model), configured.as_ref());
            assert_eq!(got, Ok(None), "{name}, with a schedule in the spec");
        }
    }

    #[test]
    fn a_wrong_schedule_is_an_error_only_where_it_decides() {
        let cases = [
            json!("5m"),
            json!({"syncFrequency": "often"}),
            json!({"syncFrequency": 5}),
            json!({"syncFrequency": "5m", "timezone": "UTC"}),
            json!({"syncFrequency": "0s", "fastSyncStartTime": "09:00"}),
            json!({"syncFrequency": "5m", "timezone": "UTC", "fastSyncStartTime": "09:00", "fastSyncStopTime": "9"}),
        ];
        for configured in cases {
            assert!(decide(None, Some(&configured)).is_err(), "{configured}");
            let model = json!({"cron": "0 2 * * *"});
            assert_eq!(decide(Some(&model), Some(&configured)), Ok(None));
        }
    }

    #[test]
    fn a_file_sink_paces_by_its_interval_unless_the_spec_has_a_schedule() {
        let cases = [
            (None, Some("5m")),
            (Some(json!("")), Some("5m")),
            (Some(json!("0s")), None),
            (Some(json!("1s")), None),
            (Some(json!("15m")), Some("15m")),
        ];
        let model = json!({"baseInterval": "1h"});
        for (configured, want) in cases {
            let got = decide_uploads(None, configured.as_ref()).map(summary);
            assert_eq!(got, Ok(want.map(str::to_owned)), "{configured:?}");
            let got = decide_uploads(Some(&model), configured.as_ref());
            assert_eq!(got, Ok(None), "{configured:?}, with a schedule in the spec");
        }
        assert!(decide_uploads(None, Some(&json!("often"))).is_err());
        assert_eq!(
            decide_uploads(Some(&model), Some(&json!("often"))),
            Ok(None)
        );
    }

    #[test]
    fn acknowledgement_table() {
        struct Case {
            name: &'static str,
            recovery: bool,
            stored: &'static [u64],
            want: bool,
        }
        let mid = Case {
            name: "caught up",
            recovery: false,
            stored: &[1, 999_999, 3, 4, 5],
            want: true,
        };
        let cases = [
            Case {
                name: "recovery",
                recovery: true,
                want: false,
                ..mid
            },
            Case {
                name: "new",
                stored: &[],
                want: false,
                ..mid
            },
            Case {
                name: "four",
                stored: &[1, 2, 3, 4],
                want: false,
                ..mid
            },
            Case {
                name: "backfilling, oldest",
                stored: &[1_000_000, 2, 3, 4, 5],
                want: false,
                ..mid
            },
            Case {
                name: "backfilling, newest",
                stored: &[1, 2, 3, 4, 1_000_000],
                want: false,
                ..mid
            },
            Case {
                name: "a backfill six ago",
                stored: &[5_000_000, 1, 2, 3, 4, 5],
                want: true,
                ..mid
            },
            mid,
        ];
        for Case {
            name,
            recovery,
            stored,
            want,
        } in cases
        {
            assert_eq!(holds_acknowledgement(recovery, stored), want, "{name}");
        }
    }
}
