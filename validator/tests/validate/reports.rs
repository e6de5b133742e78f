//! Reports about other systems that must not become reports about this one.
//!
//! The name of each test begins with the case's number.

use crate::support::Scenario;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tidegate_validator::schedule::CompiledSchedule;
use tidegate_validator::{
    Answers, Built, Code, Diagnostic, Severity, TaskSchedule, finish, load, plan,
};
use tidegate_wit::message::SpecResponse;

/// A connector's config that is complete but for what a test adds.
const WAREHOUSE: &str = "host: h, credentials: {auth: jwt, key: hunter2}";

fn run(text: &str) -> (Option<Built>, Vec<Diagnostic>) {
    let (_, built, diagnostics) = Scenario::parse(text).run();
    (built, diagnostics)
}

/// Returns a catalog whose one materialization, `a/m`, has the fields given.
fn catalog(schema: &str, key: &str, materialization: &str) -> String {
    format!(
        "--- flow.yaml\n\
         collections:\n  a/c:\n    schema: {schema}\n    key: [{key}]\n\
         materializations:\n  a/m:\n    bindings: [{{source: a/c, resource: {{table: t}}}}]\n{materialization}"
    )
}

fn plain(materialization: &str) -> String {
    let schema = "{type: object, properties: {id: {type: integer}}, required: [id]}";
    catalog(schema, "/id", materialization)
}

fn errors(diagnostics: &[Diagnostic]) -> Vec<&Diagnostic> {
    diagnostics
        .iter()
        .filter(|it| it.severity == Severity::Error)
        .collect()
}

/// Requires one error, and returns it.
#[track_caller]
fn one_error(diagnostics: &[Diagnostic]) -> &Diagnostic {
    match errors(diagnostics).as_slice() {
        [error] => error,
        errors => panic!("one error is expected: {errors:#?}"),
    }
}

#[test]
fn c04_clock_times_need_no_quotes_in_yaml_and_do_in_json() {
    let yaml = "materializations:\n  a/m:\n    endpoint: {local: {}}\n    bindings: []\n    syncSchedule:\n      \
                baseInterval: 4h\n      timezone: Europe/Paris\n      \
                windows: [{interval: 15m, start: 10:00, end: 17:30, days: [Mon, Fri]}]\n";
    let draft = load(&[PathBuf::from("flow.yaml")], &|_| {
        Ok(yaml.as_bytes().to_vec())
    });
    let quoted = json!({
        "baseInterval": "4h",
        "timezone": "Europe/Paris",
        "windows": [{"interval": "15m", "start": "10:00", "end": "17:30", "days": ["Mon", "Fri"]}],
    });
    let quoted = CompiledSchedule::parse(&quoted).expect("the schedule reads");
    assert_eq!(draft.schedule("a/m"), Some(TaskSchedule::Compiled(&quoted)));

    let json = r#"{"materializations": {"a/m": {"endpoint": {"local": {}}, "bindings": [], "syncSchedule":
        {"baseInterval": "4h", "timezone": "UTC", "windows": [{"interval": "15m", "start": 600, "end": "17:30"}]}}}}"#;
    let draft = load(&[PathBuf::from("flow.json")], &|_| {
        Ok(json.as_bytes().to_vec())
    });
    let (_, diagnostics) = finish(&draft, &Answers::default());
    let error = one_error(&diagnostics);
    assert_eq!(
        error.place.pointer,
        "/materializations/a~1m/syncSchedule/windows/0/start"
    );
    let said = format!(
        "{} {}",
        error.message,
        error.help.as_deref().unwrap_or_default()
    );
    assert!(said.contains("HH:MM") && said.contains("quote"), "{said}");
}

#[test]
fn c05_a_value_that_the_connector_does_not_offer() {
    let with = |connector: &str, model: &str| {
        plain(&format!(
            "    endpoint: {{connector: {{image: \"registry.example.com/x/materialize-warehouse:v4\", \
             config: {{{WAREHOUSE}{connector}}}}}}}\n{model}"
        ))
    };
    let (_, diagnostics) = run(&with(", syncSchedule: {syncFrequency: 20m}", ""));
    let error = one_error(&diagnostics);
    assert_eq!(error.code, Code::ConfigInvalid);
    let pointer = "/materializations/a~1m/endpoint/connector/config/syncSchedule/syncFrequency";
    assert_eq!(error.place.pointer, pointer);
    let offered = "0s, 30s, 5m, 15m, 30m, 1h, 2h, 4h";
    assert!(error.message.contains(offered), "{}", error.message);
    let help = error.help.as_deref().unwrap_or_default();
    assert!(help.contains("15m") && help.contains("30m"), "{help}");

    // The materialization's own takes any interval.
    let (built, diagnostics) = run(&with(
        ", syncSchedule: {syncFrequency: 0s}",
        "    syncSchedule: {baseInterval: 20m}\n",
    ));
    assert!(built.is_some(), "{diagnostics:?}");
}

#[test]
fn c06_two_schedules_at_once() {
    const TWICE: Option<Code> = Some(Code::ScheduleConflict);
    // With a connector that defers to the materialization's schedule, and with one that does not.
    for (connector, deferring, not_deferring) in [
        ("", None, Some(Code::ScheduleStacks)),
        ("syncSchedule: {}", None, Some(Code::ScheduleStacks)),
        ("syncSchedule: null", None, Some(Code::ScheduleStacks)),
        (
            "syncSchedule: {syncFrequency: null, timezone: \"\"}",
            None,
            Some(Code::ScheduleStacks),
        ),
        ("syncSchedule: {syncFrequency: 0s}", None, None),
        ("syncSchedule: {syncFrequency: 5m}", TWICE, TWICE),
        (
            "syncSchedule: {syncFrequency: 0s, timezone: UTC, fastSyncStartTime: \"09:00\", fastSyncStopTime: \"17:00\"}",
            TWICE,
            TWICE,
        ),
    ] {
        for (defers, want) in [(true, deferring), (false, not_deferring)] {
            let text = plain(&format!(
                "    endpoint: {{connector: {{image: materialize-warehouse, config: {{{WAREHOUSE}, {connector}}}}}}}\n    \
                 syncSchedule: {{baseInterval: 1h}}\n"
            ));
            let (built, diagnostics) = run(&format!("defers: {defers}\n{text}"));
            // What the connector's schema says of nulls is another matter.
            let pacing = [
                Code::ScheduleConflict,
                Code::ScheduleStacks,
                Code::ScheduleInvalid,
            ];
            let found: Vec<_> = diagnostics
                .iter()
                .filter(|it| pacing.contains(&it.code))
                .collect();
            assert_eq!(
                found.iter().map(|it| it.code).next(),
                want,
                "{connector}, defers: {defers}: {diagnostics:#?}"
            );
            assert!(found.len() <= 1, "{connector}: {found:#?}");
            let Some(found) = found.first() else {
                assert!(built.is_some(), "{connector}: {diagnostics:#?}");
                continue;
            };
            if found.code == Code::ScheduleConflict {
                assert!(built.is_none(), "{connector}");
                assert_eq!(
                    found.place.pointer, "/materializations/a~1m/syncSchedule",
                    "{connector}"
                );
                let other = "/materializations/a~1m/endpoint/connector/config/syncSchedule";
                assert_eq!(found.related[0].place.pointer, other, "{connector}");
            }
        }
    }
}

#[test]
fn c15_columns_that_are_cut_to_the_same_bytes() {
    const SHORT: &str = "hs_line_item_global_term_hs_recurring_billing_start_date";
    let schema = format!(
        "{{type: object, required: [id], properties: {{id: {{type: integer}}, properties: {{type: object, properties: \
         {{{SHORT}: {{type: string}}, {SHORT}_enabled: {{type: string}}}}}}, {}: {{type: string}}}}}}",
        "ä".repeat(40)
    );
    let of = |image: &str, config: &str| {
        let endpoint =
            format!("    endpoint: {{connector: {{image: {image}, config: {{{config}}}}}}}\n");
        run(&catalog(&schema, "/id", &endpoint))
    };
    // It keeps 63 bytes of a name.
    let (built, diagnostics) = of(
        "materialize-warehouse",
        &format!("{WAREHOUSE}, syncSchedule: {{syncFrequency: 0s}}"),
    );
    assert!(built.is_none());
    let error = one_error(&diagnostics);
    assert_eq!(error.code, Code::FieldCollision);
    let (short, long) = (
        format!("properties/{SHORT}"),
        format!("properties/{SHORT}_enabled"),
    );
    assert!(
        error.message.contains(&format!("\"{short}\"")) && error.message.contains(&long),
        "{}",
        error.message
    );
    let help = error.help.as_deref().unwrap_or_default();
    assert!(help.contains("projection"), "{help}");
    // Eighty bytes in forty characters.
    let cut = diagnostics
        .iter()
        .find(|it| it.code == Code::FieldCut && it.message.contains('ä'));
    assert!(cut.is_some(), "{diagnostics:#?}");

    let (built, diagnostics) = of("materialize-plain", "");
    assert!(built.is_some(), "{diagnostics:#?}");
}

#[test]
fn c16_keys_that_may_be_null_or_absent() {
    for (name, location, required, want) in [
        ("a", "{type: string}", "[k]", None),
        ("b", "{type: string, default: value}", "[]", None),
        (
            "c",
            "{type: [string, \"null\"]}",
            "[k]",
            Some((Code::KeyNullable, "null")),
        ),
        (
            "d",
            "{type: number}",
            "[k]",
            Some((Code::KeyType, "number")),
        ),
    ] {
        let schema =
            format!("{{type: object, properties: {{k: {location}}}, required: {required}}}");
        let text = catalog(
            &schema,
            "/k",
            "    endpoint: {connector: {image: materialize-plain}}\n",
        );
        let (built, diagnostics) = run(&text);
        match want {
            None => assert!(built.is_some(), "{name}: {diagnostics:#?}"),
            Some((code, word)) => {
                let error = one_error(&diagnostics);
                assert_eq!(error.code, code, "{name}");
                assert!(error.message.contains(word), "{name}: {}", error.message);
            }
        }
    }
}

#[test]
fn c19_multiples_are_of_decimals() {
    for (divisor, value, valid) in [
        ("0.01", "600.03", true),
        ("0.01", "1.11", true),
        ("0.01", "10001.12", true),
        ("0.01", "2222.22", true),
        ("0.01", "600.035", false),
        ("11.0", "9007199254740995", true),
        ("11.0", "9007199254740996", false),
    ] {
        let schema: Value = serde_json::from_str(&format!(
            r#"{{"properties": {{"n": {{"multipleOf": {divisor}}}}}}}"#
        ))
        .expect("the schema is JSON");
        let catalog = format!(
            "materializations:\n  a/m:\n    endpoint: {{connector: {{image: x, config: {{n: {value}}}}}}}\n    bindings: []\n"
        );
        let draft = load(&[PathBuf::from("flow.yaml")], &|_: &Path| {
            Ok(catalog.as_bytes().to_vec())
        });
        let mut answers = Answers::default();
        for request in plan(&draft, &answers) {
            let tidegate_validator::Request::Spec { component } = request else {
                panic!("a spec is asked for: {request:?}");
            };
            answers.specs.insert(component, Ok(spec(schema.clone())));
        }
        let (_, diagnostics) = finish(&draft, &answers);
        assert_eq!(
            errors(&diagnostics).is_empty(),
            valid,
            "{value} of {divisor}: {diagnostics:#?}"
        );
    }
}

fn spec(config_schema: Value) -> SpecResponse {
    SpecResponse {
        config_schema,
        resource_schema: json!(true),
        documentation_url: String::new(),
        wants: Default::default(),
        defers_to_schedule: false,
        hard_delete_pointer: None,
        name_limits: Default::default(),
    }
}
