//! The formats of diagnostics, and what must never be in them.

use crate::support::{self, Scenario};
use serde_json::Value;
use tidegate_validator::diagnostic;

const CATALOG: &str = r#"
--- my flow.yaml
collections:
  acmeCo/c:
    schema: {type: object, properties: {id: {type: integer}}, required: [id]}
    key: [/id]
materializations:
  acmeCo/m:
    endpoint:
      connector:
        image: materialize-warehouse
        config: {host: h, credentials: {auth: jwt, key: hunter2}, syncSchedule: {syncFrequency: 1h}}
    syncSchedule: {baseInterval: 1h}
    bindings:
      - {source: acmeCo/d, resource: {table: a}}
captures: {acmeCo/x: {endpoint: {}}}
"#;

#[test]
fn machine_formats() {
    let text = format!(
        "roots: [\"my flow.yaml\", \"/none.yaml\"]\n{}",
        CATALOG.trim_start()
    );
    let (_, built, diagnostics) = Scenario::parse(&text).run();
    assert!(built.is_none());
    insta::with_settings!({prepend_module_to_snapshot => false, snapshot_path => "../snapshots", omit_expression => true}, {
        let shown = |value: &Value| serde_json::to_string_pretty(value).expect("a value can be written");
        insta::assert_snapshot!("format_json", shown(&diagnostic::json(&diagnostics)));
        let mut sarif = diagnostic::sarif(&diagnostics);
        // The pages are long, and have a test of their own.
        for rule in sarif["runs"][0]["tool"]["driver"]["rules"].as_array_mut().expect("there are rules") {
            rule.as_object_mut().expect("a rule is an object").remove("help");
        }
        sarif["runs"][0]["tool"]["driver"]["semanticVersion"] = "0.0.0".into();
        insta::assert_snapshot!("format_sarif", shown(&sarif));
    });
}

#[test]
fn colours_are_asked_for() {
    let (draft, _, diagnostics) = Scenario::parse("--- flow.yaml\ncollection: {}\n").run();
    let plain = diagnostic::human(&diagnostics, draft.sources(), false);
    let coloured = diagnostic::human(&diagnostics, draft.sources(), true);
    assert!(!plain.contains('\u{1b}'));
    assert!(coloured.contains("\u{1b}[1;31merror[unknown-field]\u{1b}[0m"));
}

/// A value that the schema refuses may be a secret that stands at a wrong place.
#[test]
fn what_a_schema_refuses_is_not_repeated() {
    for (config, code) in [
        ("host: h, credentials: hunter2", "config-invalid"),
        ("host: h, credentials: {auth: hunter2}", "config-invalid"),
        (
            "host: h, credentials: {auth: jwt, key: {a: hunter2}}",
            "config-invalid",
        ),
        (
            "host: h, credentials: {auth: jwt, pasword: hunter2}",
            "config-invalid",
        ),
        (
            "host: h, credentials: {auth: password, user: [hunter2], password: 5}",
            "config-invalid",
        ),
        (
            "host: \"postgres://me:hunter2@h\", credentials: {auth: jwt, key: hunter2}",
            "config-invalid",
        ),
        (
            "host: h, port: hunter2, credentials: {auth: jwt, key: hunter2}",
            "config-invalid",
        ),
        (
            "host: h, timestamps: hunter2, credentials: {auth: jwt, key: hunter2}",
            "config-invalid",
        ),
        (
            "host: h, credentials: {auth: jwt, key: hunter2}, syncSchedule: {syncFrequency: hunter2}",
            "config-invalid",
        ),
        (
            "host: h, credentials: {auth: jwt, key: hunter2}, syncSchedule: {password: hunter2}",
            "config-invalid",
        ),
        (
            "host: h, credentials: {auth: jwt, key: hunter2, key: hunter2}",
            "duplicate-key",
        ),
    ] {
        let text = CATALOG.trim_start().replace(
            "host: h, credentials: {auth: jwt, key: hunter2}, syncSchedule: {syncFrequency: 1h}",
            config,
        );
        let text = text.replace("my flow.yaml", "flow.yaml");
        let (draft, _, diagnostics) = Scenario::parse(&text).run();
        assert!(
            diagnostics.iter().any(|it| it.code.as_str() == code),
            "{config}: {diagnostics:#?}"
        );
        let human = diagnostic::human(&diagnostics, draft.sources(), false);
        let programs = format!(
            "{}{}",
            diagnostic::json(&diagnostics),
            diagnostic::sarif(&diagnostics)
        );
        assert!(
            !human.contains("hunter2") && !programs.contains("hunter2"),
            "{config}:\n{human}"
        );
    }
}

#[test]
fn no_edit_of_a_catalog_panics_or_shows_a_secret() {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move |below: usize| {
        // xorshift: the test is the same in every run.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % u64::try_from(below.max(1)).expect("a length fits"))
            .expect("it is below a length")
    };
    for (name, text) in support::all() {
        for _ in 0..12 {
            let lines: Vec<&str> = text.lines().collect();
            let at = next(lines.len());
            let mut edited: Vec<String> = lines.iter().map(|it| (*it).to_owned()).collect();
            // What stands before the first file is JSON for the test itself.
            if lines[..=at].iter().all(|line| !line.starts_with("--- "))
                || lines[at].starts_with("--- ")
            {
                continue;
            }
            let line: Vec<char> = lines[at].chars().collect();
            match next(4) {
                0 => {
                    edited.remove(at);
                }
                1 => {
                    let cut = next(line.len());
                    edited[at] = line[..cut].iter().collect();
                }
                2 => {
                    let cut = next(line.len());
                    let rest: String = line[cut..].iter().collect();
                    let with = ["[", "}", ": ", "&a ", "*a", "\"", "<<", "~", "0", "- "][next(10)];
                    edited[at] = format!("{}{with}{rest}", line[..cut].iter().collect::<String>());
                }
                _ => edited.insert(at, lines[next(lines.len())].replace("--- ", "")),
            }
            let scenario = Scenario::parse(&edited.join("\n"));
            let (draft, _, diagnostics) = scenario.run();
            let shown = format!(
                "{}{}{}",
                diagnostic::human(&diagnostics, draft.sources(), true),
                diagnostic::json(&diagnostics),
                diagnostic::sarif(&diagnostics)
            );
            let leak = shown.lines().find(|line| line.contains("hunter2"));
            assert_eq!(leak, None, "{name}: {}", edited.join("\n"));
        }
    }
}
