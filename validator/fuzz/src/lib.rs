//! What the fuzz targets do with bytes: read them, and see that nothing panics and what must hold holds.

#[path = "../../tests/validate/support.rs"]
pub mod support;

use chrono::DateTime;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use support::Scenario;
use tidegate_schedule::{CompiledPacing, CompiledSchedule, Configured, classify};
use tidegate_validator::{Answers, Diagnostic, Draft, diagnostic, finish, load, migrate};

/// The first instant at which schedules give up: 2100-01-01T00:00:00Z.
const END: i64 = 4_102_444_800_000;

/// What a scenario of the fuzzer has beside its files.
const SETTINGS: &str = r#"constraints: {"acmeCo/c": {"held": {"kind": "incompatible", "reason": "it was a number"}}}
live: {"a/m": {"task": "a/m", "config": {}, "bindings": [{"collection": "acmeCo/c", "resource": {}, "resourcePath": ["a"], "backfill": 3, "key": [{"field": "id", "pointer": "/id", "types": ["integer"]}], "values": []}]}}
"#;

/// Reads the bytes as a catalog in YAML, and again as one in JSON.
pub fn loader(bytes: &[u8]) {
    for name in ["flow.yaml", "flow.json"] {
        // A file that imports itself under other names reads the same bytes again.
        let draft = load(&[PathBuf::from(name)], &|_: &Path| Ok(bytes.to_vec()));
        let (_, diagnostics) = finish(&draft, &Answers::default());
        show(&draft, &diagnostics);
    }
}

/// Reads the bytes as a model schedule and as a connector's, and evaluates what can be read.
pub fn schedule(bytes: &[u8]) {
    let Some((head, text)) = bytes.split_at_checked(16) else {
        return;
    };
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let seed = number(&head[8..]);
    // Mostly within the years of schedules, now and then anywhere.
    let raw = number(&head[..8]).cast_signed();
    let after = if raw % 16 == 0 {
        raw
    } else {
        raw.rem_euclid(END)
    };
    let Ok(value) = serde_json::from_slice::<Value>(text) else {
        return;
    };
    match CompiledSchedule::parse(&value) {
        Ok(schedule) => {
            check_fire(&value, after, schedule.next_fire_millis(after, seed));
            if (0..END).contains(&after) {
                let instant =
                    DateTime::from_timestamp_millis(after).expect("an instant of these years");
                let entries = schedule.explain(instant, seed, 4);
                let ordered = entries.windows(2).all(|pair| pair[0].at < pair[1].at);
                assert!(ordered, "{value} after {after}: {entries:?}");
            }
        }
        Err(error) => assert!(!error.problems().is_empty(), "{value}"),
    }
    if let Ok(Configured::Paced(schedule)) = classify(Some(&value))
        && let Ok(pacing) = CompiledPacing::compile(&schedule)
    {
        check_fire(&value, after, pacing.next_fire_millis(after, seed));
    }
}

fn check_fire(schedule: &Value, after: i64, fire: Option<i64>) {
    if let Some(fire) = fire {
        assert!(
            fire > after && fire < END,
            "{schedule} after {after}: {fire}"
        );
    }
}

/// Validates the bytes as a catalog of several files, against connectors made of data.
pub fn validate(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let scenario = Scenario::parse(&format!("{SETTINGS}--- flow.yaml\n{text}"));
    let (draft, built, diagnostics) = scenario.run();
    assert!(
        built.is_some() || !diagnostics.is_empty(),
        "what is not built has a reason"
    );
    show(&draft, &diagnostics);
    let migration = migrate(&draft, &Answers::default(), None);
    let files: BTreeMap<_, _> = migration.files.iter().collect();
    for (name, file) in files {
        assert!(
            file.before != file.after,
            "{name} changes, or is not listed"
        );
    }
}

fn show(draft: &Draft, diagnostics: &[Diagnostic]) {
    diagnostic::human(diagnostics, draft.sources(), true);
    diagnostic::json(diagnostics);
    diagnostic::sarif(diagnostics);
}
