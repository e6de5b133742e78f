//! The interval between uploads in the config of a file sink: what it says, and whether it says anything.
//!
//! ```text
//! config.uploadInterval -> classify_uploads -> Absent   the default of 5m applies
//!                                           -> AllZero  as good as none: uploads follow each other at once
//!                                           -> Paced    by that interval, all day
//! ```

use crate::legacy::{Configured, ConnectorSchedule, parse_frequency};
use crate::problem::{Problem, ProblemKind, ScheduleError, type_name};
use serde_json::Value;
use std::time::Duration;

/// What file sinks wait between uploads when they are not told.
pub const DEFAULT_UPLOAD_INTERVAL: &str = "5m";

/// The least interval that some file sinks offer; those have no zero, and this one is none to speak of.
const LEAST_UPLOAD_INTERVAL: Duration = Duration::from_secs(1);

/// Reads a config's `uploadInterval` and says what it amounts to.
pub fn classify_uploads(upload_interval: Option<&Value>) -> Result<Configured, ScheduleError> {
    const FIX: &str = "write a number and a unit, such as \"5m\", or \"0s\" for uploads at once";
    let text = match upload_interval {
        None | Some(Value::Null) => return Ok(Configured::Absent),
        Some(Value::String(text)) if text.trim().is_empty() => return Ok(Configured::Absent),
        Some(Value::String(text)) => text.trim(),
        // An unquoted zero is a spelling of zero, not a mistake.
        Some(Value::Number(number)) if number.as_f64() == Some(0.0) => "0",
        Some(other) => {
            let message = format!("an uploadInterval is text, not {}", type_name(other));
            return Err(Problem::new("", other, ProblemKind::Type, message, FIX).into());
        }
    };
    let interval = parse_frequency(text).map_err(|message| {
        let value = Value::from(text);
        Problem::new("", &value, ProblemKind::Interval, message, FIX)
    })?;
    Ok(match interval <= LEAST_UPLOAD_INTERVAL {
        true => Configured::AllZero,
        false => Configured::Paced(ConnectorSchedule::every(text)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_an_interval_amounts_to() {
        let paced = |text| Ok(Configured::Paced(ConnectorSchedule::every(text)));
        let cases = [
            (None, Ok(Configured::Absent)),
            (Some(json!(null)), Ok(Configured::Absent)),
            (Some(json!(" ")), Ok(Configured::Absent)),
            (Some(json!("0s")), Ok(Configured::AllZero)),
            (Some(json!(0)), Ok(Configured::AllZero)),
            (Some(json!("1s")), Ok(Configured::AllZero)),
            (Some(json!("1001ms")), paced("1001ms")),
            (Some(json!(" 15m ")), paced("15m")),
            (Some(json!("1h30m")), paced("1h30m")),
            (Some(json!("often")), Err(())),
            (Some(json!("-5m")), Err(())),
            (Some(json!("400days")), Err(())),
            (Some(json!(5)), Err(())),
            (Some(json!({})), Err(())),
        ];
        for (value, want) in cases {
            let got = classify_uploads(value.as_ref()).map_err(drop);
            assert_eq!(got, want, "{value:?}");
        }
    }
}
