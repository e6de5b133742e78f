//! `schedule explain`, `census` and `migrate`: who paces what, and when.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use tidegate_tests::host::{Finished, Host};
use tidegate_tests::program;
use tidegate_tests::workspace::Workspace;

fn explain(workspace: &Workspace, arguments: &[&str]) -> Finished {
    let all = ["schedule", "explain"].iter().chain(arguments);
    workspace.tidegate(all.copied()).finish()
}

/// Explains a schedule alone, and returns the answer for programs.
fn answer(schedule: &Value, after: &str, more: &[&str]) -> Value {
    let workspace = Workspace::new();
    workspace.write("s.json", schedule.to_string());
    let arguments = [
        &["--schedule", "s.json", "--after", after, "--format", "json"],
        more,
    ]
    .concat();
    let finished = explain(&workspace, &arguments).succeeded();
    assert_eq!(finished.stderr, "");
    serde_json::from_str(&finished.stdout).expect("the answer is JSON")
}

fn instants(answer: &Value) -> Vec<&str> {
    let fires = answer["fires"].as_array().expect("there is a list");
    fires
        .iter()
        .map(|it| it["at"].as_str().expect("an instant is text"))
        .collect()
}

#[test]
fn the_next_fires_of_known_schedules() {
    for (schedule, after, want) in [
        // Cases C01, C02 and C03.
        (
            json!({"baseInterval": "15m"}),
            "2026-05-04T00:15:00Z",
            "2026-05-04T00:30:00Z",
        ),
        (
            json!({"baseInterval": "7h"}),
            "2026-05-04T00:13:00Z",
            "2026-05-04T02:00:00Z",
        ),
        (
            json!({"baseInterval": "10m", "timezone": "+00:00", "windows": [
                {"interval": "3h", "start": "23:00", "end": "05:30"}, {"interval": "6h", "start": "05:30", "end": "05:45"}]}),
            "2026-05-04T03:10:00Z",
            "2026-05-04T05:45:00Z",
        ),
        (
            json!({"baseInterval": "6h", "timezone": "Europe/Berlin", "windows": [{"interval": "10m", "start": "02:15", "end": "18:00"}]}),
            "2026-03-29T00:40:00Z",
            "2026-03-29T01:00:00Z",
        ),
        (
            json!({"baseInterval": "4h", "timezone": "Asia/Tokyo", "windows": [
                {"interval": "15m", "start": "00:00", "end": "06:00", "days": ["Sat"]}]}),
            "2026-06-05T14:50:00Z",
            "2026-06-05T15:00:00Z",
        ),
        // A cron expression inside the hour that is skipped, and a day that either field names.
        (
            json!({"cron": "30 2 * * *", "timezone": "Europe/Paris"}),
            "2026-03-28T12:00:00Z",
            "2026-03-29T01:00:00Z",
        ),
        (
            json!({"cron": "0 0 13 * 5"}),
            "2026-03-10T00:00:00Z",
            "2026-03-13T00:00:00Z",
        ),
    ] {
        let answer = answer(&schedule, after, &["--count", "1"]);
        assert_eq!(instants(&answer), [want], "{schedule}");
    }
}

#[test]
fn each_fire_says_what_it_comes_from() {
    let schedule = json!({"baseInterval": "4h", "timezone": "Europe/Berlin", "windows": [{"interval": "1h", "start": "01:30", "end": "04:00"}]});
    let answer = answer(&schedule, "2026-03-28T20:30:00Z", &["--count", "4"]);
    assert_eq!(
        answer,
        json!({ "fires": [
            {"at": "2026-03-29T00:00:00Z", "local": "2026-03-29T01:00:00+01:00", "regime": "base"},
            {"at": "2026-03-29T00:30:00Z", "local": "2026-03-29T01:30:00+01:00", "regime": "window 0"},
            {
                "at": "2026-03-29T01:00:00Z", "local": "2026-03-29T03:00:00+02:00", "regime": "window 0",
                "notes": answer["fires"][2]["notes"],
            },
            {"at": "2026-03-29T02:00:00Z", "local": "2026-03-29T04:00:00+02:00", "regime": "base"},
        ] })
    );
    let note = answer["fires"][2]["notes"][0]
        .as_str()
        .expect("there is a note");
    assert!(
        note.contains("Europe/Berlin") && note.contains("60 minutes"),
        "{note}"
    );
}

#[test]
fn where_nothing_is_held_there_are_no_fires_and_a_reason() {
    let zero = answer(&json!({"baseInterval": "0s"}), "2026-05-04T00:00:00Z", &[]);
    assert_eq!(zero["fires"], json!([]));
    assert!(
        zero["reason"]
            .as_str()
            .is_some_and(|it| it.contains("zero")),
        "{zero}"
    );
    let over = answer(
        &json!({"cron": "0 0 0 1 1 * 2025"}),
        "2026-05-04T00:00:00Z",
        &[],
    );
    assert_eq!(over["fires"], json!([]));
    assert!(
        over["reason"]
            .as_str()
            .is_some_and(|it| it.contains("never fires after")),
        "{over}"
    );
    let last = answer(
        &json!({"cron": "0 0 0 1 1 * 2027"}),
        "2026-05-04T00:00:00Z",
        &[],
    );
    assert_eq!(instants(&last), ["2027-01-01T00:00:00Z"]);

    // A window of zero begins with a fire.
    let window = json!({"baseInterval": "6h", "timezone": "UTC", "windows": [{"interval": "0s", "start": "09:00", "end": "17:00"}]});
    let within = answer(&window, "2026-05-04T10:00:00Z", &["--count", "3"]);
    assert_eq!(
        instants(&within),
        [
            "2026-05-04T18:00:00Z",
            "2026-05-05T00:00:00Z",
            "2026-05-05T06:00:00Z"
        ]
    );
    let before = answer(&window, "2026-05-04T08:00:00Z", &["--count", "1"]);
    assert_eq!(before["fires"][0]["at"], "2026-05-04T09:00:00Z");
    assert_eq!(before["fires"][0]["unheld"], true);
}

#[test]
fn the_jitter_is_the_name_s_the_key_s_or_the_seed_s() {
    let workspace = Workspace::new();
    workspace.write(
        "flow.yaml",
        "materializations:\n  \
         acmeCo/a: {endpoint: {local: {}}, bindings: [], syncSchedule: {baseInterval: 24h}}\n  \
         acmeCo/b: {endpoint: {local: {}}, bindings: []}\n  \
         acmeCo/c: {endpoint: {local: {}}, bindings: [], syncSchedule: {baseInterval: 30}}\n",
    );
    workspace.write("s.yaml", "baseInterval: 24h\n");
    let first = |arguments: &[&str]| {
        let more = [
            "--after",
            "2026-05-04T00:00:00Z",
            "--count",
            "1",
            "--format",
            "json",
        ];
        let finished = explain(&workspace, &[arguments, &more].concat()).succeeded();
        let answer: Value = serde_json::from_str(&finished.stdout).expect("the answer is JSON");
        answer["fires"][0]["at"]
            .as_str()
            .expect("there is a fire")
            .to_owned()
    };
    let of_task = first(&["flow.yaml", "--task", "acmeCo/a"]);
    assert_eq!(
        of_task,
        first(&["--schedule", "s.yaml", "--jitter-key", "acmeCo/a"])
    );
    assert_ne!(
        of_task,
        first(&["--schedule", "s.yaml", "--jitter-key", "acmeCo/b"])
    );
    assert_eq!(first(&["--schedule", "s.yaml"]), "2026-05-05T00:00:00Z");
    assert_eq!(
        first(&["--schedule", "s.yaml", "--seed", "3600"]),
        "2026-05-04T01:00:00Z"
    );
    assert_eq!(
        first(&["flow.yaml", "--task", "acmeCo/a", "--seed", "86400"]),
        "2026-05-05T00:00:00Z"
    );

    let finished = explain(&workspace, &["flow.yaml", "--task", "acmeCo/b"]).succeeded();
    assert!(
        finished.stdout.contains("no syncSchedule"),
        "{}",
        finished.stdout
    );
    let finished = explain(&workspace, &["flow.yaml", "--task", "acmeCo/c"]).ended_with(1);
    finished.says(&["schedule-invalid", "flow.yaml:4:"]);
    explain(&workspace, &["flow.yaml", "--task", "acmeCo/d"])
        .ended_with(2)
        .says(&["acmeCo/d", "acmeCo/a"]);
    explain(&workspace, &["flow.yaml"])
        .ended_with(2)
        .says(&["--task"]);
}

#[test]
fn schedules_come_from_standard_input_too() {
    let script = format!(
        "echo '{{cron: \"0 2 * * *\", timezone: Europe/Paris}}' | '{}' schedule explain --schedule - --after 2026-05-04T00:00:00Z --count 2",
        program::tidegate().display()
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]);
    let shown = Host::start(shell).finish().succeeded().stdout;
    assert_eq!(
        shown,
        "2026-05-05T00:00:00Z  Tue 2026-05-05T02:00:00+02:00  cron\n\
         2026-05-06T00:00:00Z  Wed 2026-05-06T02:00:00+02:00  cron\n"
    );
}

#[test]
fn what_cannot_be_explained_is_refused() {
    let workspace = Workspace::new();
    workspace.write("s.yaml", "baseInterval: 24h\n");
    for arguments in [
        &[][..],
        &["s.yaml", "--schedule", "s.yaml"],
        &["--schedule", "s.yaml", "--seed", "1", "--jitter-key", "k"],
        &["--schedule", "s.yaml", "--count", "0"],
        &["--schedule", "s.yaml", "--count", "1001"],
        &["--schedule", "s.yaml", "--after", "today"],
        &["--schedule", "s.yaml", "--after", "1969-12-31T23:59:59Z"],
        &["--schedule", "s.yaml", "--after", "2100-01-01T00:00:00Z"],
    ] {
        let finished = explain(&workspace, arguments).ended_with(2);
        assert_eq!(finished.stdout, "", "{}", finished.command);
    }
    for (text, says) in [
        ("baseInterval: 1.5h\n", "schedule-invalid"),
        ("baseInterval: 1h\nbaseInterval: 2h\n", "duplicate-key"),
        ("cron: \"0 0 30 2 *\"\n", "schedule-invalid"),
    ] {
        workspace.write("s.yaml", text);
        let finished =
            explain(&workspace, &["--schedule", "s.yaml", "--format", "json"]).ended_with(1);
        assert_eq!(finished.stdout, "", "{text}");
        finished.says(&[says, "s.yaml:"]);
    }
    explain(&workspace, &["--schedule", "no.yaml"])
        .ended_with(1)
        .says(&["no.yaml"]);
}

const PACED: &str = r#"# Who paces what.
materializations:
  acmeCo/configured:   # by its connector
    endpoint:
      connector:
        image: "registry.example.com/materialize-snowflake:v4"
        config:
          host: 'x.example.com'   # quoted
          syncSchedule:
            syncFrequency: 15m # often
            timezone: Europe/Paris
            fastSyncStartTime: "09:00"
            fastSyncStopTime: "17:00"
            fastSyncEnabledDays: M-F
          credentials: {password: hunter2}
    bindings: []
  acmeCo/zero:
    endpoint: {connector: {image: materialize-bigquery, config: {syncSchedule: {syncFrequency: 0s}}}}
    bindings: []
  acmeCo/default:
    endpoint: {connector: {image: materialize-redshift, config: {address: x}}}
    bindings: []
  acmeCo/model:
    endpoint: {wasm: {component: materialize-sqlite, config: {path: a.db}}}
    bindings: []
    syncSchedule: {baseInterval: 1h}
  acmeCo/nobody:
    endpoint: {wasm: {component: materialize-sqlite, config: {path: b.db}}}
    bindings: []
"#;

#[test]
fn a_census_says_who_paces_what() {
    let workspace = Workspace::new();
    fs::create_dir(workspace.path("a")).expect("it is new");
    workspace.write("a/paced.flow.yaml", PACED);
    // A task that is imported is one task still.
    workspace.write("a/flow.yaml", "import: [paced.flow.yaml]\n");
    let shown = workspace
        .tidegate(["census", "a", "--format", "json"])
        .finish()
        .succeeded();
    assert_eq!(shown.stderr, "");
    let answer: Value = serde_json::from_str(&shown.stdout).expect("the census is JSON");
    assert_eq!(
        answer["counts"],
        json!({ "connector configured": 1, "connector all-zero": 1, "connector default": 1, "model": 1, "nobody": 1 })
    );
    assert_eq!(
        answer["tasks"][0],
        json!({
            "task": "acmeCo/configured", "file": "a/paced.flow.yaml", "line": 3, "paces": "connector configured",
            "model": false, "connector": "configured",
        })
    );
    let shown = workspace
        .tidegate(["census", "a"])
        .finish()
        .succeeded()
        .stdout;
    assert!(
        shown.contains("connector default     acmeCo/default  (a/paced.flow.yaml:"),
        "{shown}"
    );
    assert!(shown.ends_with("     5  tasks in 2 catalogs\n"), "{shown}");

    workspace.write("a/broken.flow.yaml", "a: [");
    let shown = workspace.tidegate(["census", "a"]).finish().succeeded();
    shown.says(&["parts of one catalog cannot be read"]);
    workspace.tidegate(["census"]).finish().ended_with(2);
    workspace
        .tidegate(["census", "nowhere"])
        .finish()
        .ended_with(2)
        .says(&["there is no nowhere"]);
}

#[test]
fn a_connector_s_schedule_is_moved_and_all_else_is_left() {
    let workspace = Workspace::new();
    let file = workspace.write("flow.yaml", PACED);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("permissions can be set");

    let shown = workspace
        .tidegate(["migrate", "flow.yaml"])
        .finish()
        .succeeded();
    assert_eq!(
        fs::read_to_string(&file).expect("it is there"),
        PACED,
        "nothing is written unasked"
    );
    assert!(
        shown
            .stdout
            .starts_with("--- a/flow.yaml\n+++ b/flow.yaml\n@@"),
        "{}",
        shown.stdout
    );
    shown.says(&["one task", "--write"]);

    let written = workspace
        .tidegate(["migrate", "flow.yaml", "--write"])
        .finish()
        .succeeded();
    assert_eq!(written.stdout, "moved the schedule of acmeCo/configured\n");
    let want = PACED
        .replace(
            "    endpoint:\n      connector:\n        image: \"registry",
            "    syncSchedule:\n      baseInterval: 4h\n      timezone: Europe/Paris\n      windows:\n        \
             - {interval: 15m, start: \"09:00\", end: \"17:00\", days: [Mon, Tue, Wed, Thu, Fri]}\n    \
             endpoint:\n      connector:\n        image: \"registry",
        )
        .replace("            syncFrequency: 15m # often\n", "            syncFrequency: 0s # often\n")
        .replace(
            "            timezone: Europe/Paris\n            fastSyncStartTime: \"09:00\"\n            \
             fastSyncStopTime: \"17:00\"\n            fastSyncEnabledDays: M-F\n",
            "",
        );
    assert_eq!(fs::read_to_string(&file).expect("it is there"), want);
    let mode = fs::metadata(&file)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o640);
    assert_eq!(
        fs::read_dir(workspace.path(""))
            .expect("it is there")
            .count(),
        1,
        "nothing is left behind"
    );

    // Twice is as good as once, and nobody is paced twice.
    let again = workspace
        .tidegate(["migrate", "flow.yaml", "--write"])
        .finish()
        .succeeded();
    again.says(&["no schedule to move"]);
    let checked = workspace
        .tidegate(["validate", "flow.yaml"])
        .finish()
        .succeeded();
    assert!(
        !checked.stdout.contains("sync-schedule-conflict"),
        "{}",
        checked.stdout
    );
}

#[test]
fn what_cannot_be_moved_is_said() {
    let workspace = Workspace::new();
    workspace.write(
        "flow.yaml",
        PACED.replace("fastSyncEnabledDays: M-F", "fastSyncEnabledDays: X"),
    );
    let refused = workspace
        .tidegate(["migrate", "flow.yaml"])
        .finish()
        .ended_with(1);
    assert_eq!(refused.stdout, "");
    refused.says(&["acmeCo/configured", "cannot be read"]);
    let unknown = workspace
        .tidegate(["migrate", "flow.yaml", "--task", "acmeCo/other"])
        .finish();
    unknown.ended_with(2).says(&["acmeCo/other"]);
    let only = workspace
        .tidegate(["migrate", "flow.yaml", "--task", "acmeCo/zero"])
        .finish();
    only.succeeded().says(&["no schedule to move"]);
    workspace.write("broken.yaml", "a: [");
    workspace
        .tidegate(["migrate", "broken.yaml"])
        .finish()
        .ended_with(1)
        .says(&["broken.yaml"]);
    workspace.tidegate(["migrate"]).finish().ended_with(2);
}
