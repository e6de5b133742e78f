use super::*;
use crate::{load, plan::Answers};
use std::io;
use std::path::{Path, PathBuf};

fn run(path: &str, text: &str, only: Option<&str>) -> Migration {
    let read = |asked: &Path| -> io::Result<Vec<u8>> {
        if asked == Path::new(path) {
            Ok(text.as_bytes().to_vec())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    };
    let draft = load(&[PathBuf::from(path)], &read);
    migrate(&draft, &Answers::default(), only)
}

fn after(path: &str, text: &str) -> String {
    let migration = run(path, text, None);
    assert_eq!(migration.refused, [], "{text}");
    match migration.files.get(path) {
        Some(file) => {
            assert_eq!(file.before, text);
            file.after.clone()
        }
        None => text.to_owned(),
    }
}

#[test]
fn schedules_move_and_all_else_stays() {
    struct Case {
        name: &'static str,
        path: &'static str,
        before: &'static str,
        want: &'static str,
    }
    let cases = [
        Case {
            name: "lines, with comments and quotes",
            path: "flow.yaml",
            before: "\
materializations:
  acmeCo/a: # the warehouse
    # how to get there
    endpoint:
      connector:
        image: \"x/materialize-snowflake:v4\"
        config:
          host: 'h'
          syncSchedule:   # agreed with finance
            timezone: Europe/Paris
            # fast in office hours
            syncFrequency: \"5m\"   # was 1h
            fastSyncStartTime: 9:00
            fastSyncStopTime: '17:00'
            fastSyncEnabledDays: M-F
          role: r
    bindings: []
",
            want: "\
materializations:
  acmeCo/a: # the warehouse
    # how to get there
    syncSchedule:
      baseInterval: 4h
      timezone: Europe/Paris
      windows:
        - {interval: 5m, start: \"09:00\", end: \"17:00\", days: [Mon, Tue, Wed, Thu, Fri]}
    endpoint:
      connector:
        image: \"x/materialize-snowflake:v4\"
        config:
          host: 'h'
          syncSchedule:   # agreed with finance
            # fast in office hours
            syncFrequency: 0s   # was 1h
          role: r
    bindings: []
",
        },
        Case {
            name: "braces",
            path: "flow.yaml",
            before: "materializations: {a/b: {endpoint: {connector: {image: materialize-bigquery, config: {syncSchedule: {syncFrequency: 30s}}}}, bindings: []}}\n",
            want: "materializations: {a/b: {syncSchedule: {baseInterval: 30s}, endpoint: {connector: {image: materialize-bigquery, config: {syncSchedule: {syncFrequency: 0s}}}}, bindings: []}}\n",
        },
        Case {
            name: "JSON",
            path: "flow.json",
            before: "{\"materializations\": {\"a/b\": {\n  \"endpoint\": {\"connector\": {\"image\": \"materialize-bigquery\", \"config\": {\"syncSchedule\": {\"syncFrequency\": \"1h\"}}}}}}}",
            want: "{\"materializations\": {\"a/b\": {\n  \"syncSchedule\": {\"baseInterval\":\"1h\"},\n  \"endpoint\": {\"connector\": {\"image\": \"materialize-bigquery\", \"config\": {\"syncSchedule\": {\"syncFrequency\": \"0s\"}}}}}}}",
        },
        Case {
            name: "the materialization has one already: only the connector's goes",
            path: "flow.yaml",
            before: "materializations:\n  a/b:\n    syncSchedule: {baseInterval: 1h}\n    endpoint:\n      connector:\n        image: materialize-redshift\n        config:\n          a: b\n          syncSchedule: {syncFrequency: 1h}\n",
            want: "materializations:\n  a/b:\n    syncSchedule: {baseInterval: 1h}\n    endpoint:\n      connector:\n        image: materialize-redshift\n        config:\n          a: b\n          syncSchedule: {syncFrequency: 0s}\n",
        },
        Case {
            name: "the connector's default would stack",
            path: "flow.yaml",
            before: "materializations:\n  a/b:\n    syncSchedule: {baseInterval: 1h}\n    endpoint:\n      connector:\n        image: materialize-redshift\n        config:\n          a: b\n",
            want: "materializations:\n  a/b:\n    syncSchedule: {baseInterval: 1h}\n    endpoint:\n      connector:\n        image: materialize-redshift\n        config:\n          syncSchedule:\n            syncFrequency: 0s\n          a: b\n",
        },
        Case {
            name: "nothing to move",
            path: "flow.yaml",
            before: "materializations:\n  a/b: {endpoint: {connector: {image: materialize-redshift, config: {syncSchedule: {syncFrequency: 0s}}}}}\n  a/c: {endpoint: {connector: {image: materialize-redshift, config: {}}}}\n  a/d: {endpoint: {connector: {image: materialize-postgres, config: {}}}}\n",
            want: "materializations:\n  a/b: {endpoint: {connector: {image: materialize-redshift, config: {syncSchedule: {syncFrequency: 0s}}}}}\n  a/c: {endpoint: {connector: {image: materialize-redshift, config: {}}}}\n  a/d: {endpoint: {connector: {image: materialize-postgres, config: {}}}}\n",
        },
    ];
    for case in cases {
        let got = after(case.path, case.before);
        assert_eq!(got, case.want, "{}", case.name);
        assert_eq!(after(case.path, &got), got, "{}: again", case.name);
    }
}

const SHARED: &str = "\
x-config: &config {host: h, syncSchedule: {syncFrequency: 1h}}
materializations:
  a/b:
    endpoint: {connector: {image: materialize-bigquery, config: *config}}
  a/c:
    endpoint: {connector: {image: materialize-bigquery, config: *config}}
";

#[test]
fn shared_text_is_edited_once_or_not_at_all() {
    let all = run("flow.yaml", SHARED, None);
    assert_eq!(all.moved, ["a/b", "a/c"]);
    let text = &all.files["flow.yaml"].after;
    assert_eq!(text.matches("syncFrequency: 0s").count(), 1);
    assert_eq!(text.matches("baseInterval: 1h").count(), 2);

    let one = run("flow.yaml", SHARED, Some("a/b"));
    assert!(one.files.is_empty());
    assert!(one.refused[0].1.contains("a/c"), "{:?}", one.refused);
}

#[test]
fn what_cannot_be_read_is_refused() {
    let text = "materializations:\n  a/b: {endpoint: {connector: {image: materialize-bigquery, config: {syncSchedule: {syncFrequency: soon}}}}}\n";
    let migration = run("flow.yaml", text, None);
    assert!(migration.files.is_empty());
    assert_eq!(migration.refused.len(), 1);
}
