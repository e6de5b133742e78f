//! `validate` and `explain`: every problem at once, in three formats, with real
//! connectors.

use serde_json::{Value, json};
use std::fs;
use tidegate_tests::host::Finished;
use tidegate_tests::program;
use tidegate_tests::workspace::Workspace;

const GOOD: &str = r#"
collections:
  acmeCo/orders:
    key: [/id]
    schema:
      type: object
      required: [id]
      properties: {id: {type: integer}, total: {type: integer}}
materializations:
  acmeCo/shop:
    endpoint: {wasm: {component: materialize-sqlite, config: {path: shop.db}}}
    bindings:
      - source: acmeCo/orders
        resource: {table: orders}
"#;

fn workspace(catalog: &str) -> Workspace {
    let workspace = Workspace::new();
    workspace.write("flow.yaml", catalog);
    workspace
}

fn validate(workspace: &Workspace, arguments: &[&str]) -> Finished {
    let connectors = program::connectors();
    let connectors = ["--connectors", connectors.to_str().expect("a path is text")];
    let all = ["validate"].iter().chain(arguments).chain(&connectors);
    workspace.tidegate(all.copied()).finish()
}

fn json_of(finished: &Finished) -> Value {
    assert_eq!(finished.stderr, "", "{}", finished.command);
    serde_json::from_str(&finished.stdout)
        .unwrap_or_else(|error| panic!("{error}:\n{}", finished.stdout))
}

fn codes(answer: &Value) -> Vec<&str> {
    let diagnostics = answer["diagnostics"].as_array().expect("there is a list");
    diagnostics
        .iter()
        .map(|it| it["code"].as_str().expect("a code is text"))
        .collect()
}

#[test]
fn a_good_catalog_has_nothing_to_mend() {
    let workspace = workspace(GOOD);
    let finished = validate(&workspace, &["flow.yaml"]).succeeded();
    assert_eq!(finished.stdout, "0 errors, 0 warnings\n");
    assert_eq!(finished.stderr, "");
    let finished = validate(&workspace, &["flow.yaml", "--format", "json"]).succeeded();
    let nothing =
        json!({ "diagnostics": [], "summary": { "errors": 0, "warnings": 0, "infos": 0 } });
    assert_eq!(json_of(&finished), nothing);
    assert_eq!(
        fs::read_dir(workspace.path(""))
            .expect("it is there")
            .count(),
        1,
        "nothing is written"
    );
}

#[test]
fn every_problem_is_reported_at_once_and_at_its_place() {
    let catalog = GOOD
        .replace("key: [/id]", "key: [/total]")
        .replace("source: acmeCo/orders", "source: acmeCo/order")
        .replace("{path: shop.db}", "{paht: shop.db}");
    let workspace = workspace(&catalog);
    let finished = validate(&workspace, &["flow.yaml", "--format", "json"]).ended_with(1);
    let answer = json_of(&finished);
    assert_eq!(
        codes(&answer),
        [
            "key-optional",
            "config-invalid",
            "config-invalid",
            "unknown-collection"
        ]
    );
    assert_eq!(
        answer["diagnostics"][3],
        json!({
            "code": "unknown-collection",
            "severity": "error",
            "message": answer["diagnostics"][3]["message"],
            "pointer": "/materializations/acmeCo~1shop/bindings/0/source",
            "file": "flow.yaml",
            "line": 13,
            "column": 17,
            "help": "did you mean \"acmeCo/orders\"?",
            "related": [],
        })
    );
    assert_eq!(
        answer["summary"],
        json!({ "errors": 4, "warnings": 0, "infos": 0 })
    );

    let shown = validate(&workspace, &["flow.yaml"]).ended_with(1);
    for words in [
        "error[unknown-collection]",
        "--> flow.yaml:13:17",
        "13 |       - source: acmeCo/order",
        "at /materializations/acmeCo~1shop/bindings/0/source",
        "help: did you mean \"acmeCo/orders\"?",
        "4 errors, 0 warnings",
    ] {
        assert!(
            shown.stdout.contains(words),
            "no \"{words}\" in\n{}",
            shown.stdout
        );
    }
    assert!(
        !shown.stdout.contains('\u{1b}'),
        "colours are for terminals"
    );
    assert_eq!(shown.stderr, "");
}

#[test]
fn warnings_fail_where_they_are_denied() {
    let workspace = workspace(
        "materializations:\n  acmeCo/shop:\n    endpoint: {wasm: {component: materialize-sqlite, config: {path: a.db}}}\n    bindings: []\n",
    );
    let finished = validate(&workspace, &["flow.yaml"]).succeeded();
    assert!(
        finished.stdout.contains("warning[no-bindings]"),
        "{}",
        finished.stdout
    );
    validate(&workspace, &["flow.yaml", "--deny-warnings"]).ended_with(1);
}

#[test]
fn a_wrong_command_line_ends_with_2() {
    let workspace = workspace(GOOD);
    fs::create_dir(workspace.path("empty")).expect("it is new");
    for arguments in [
        &[][..],
        &["flow.yaml", "--format", "xml"],
        &["empty"],
        &["flow.yaml", "--live"],
    ] {
        let finished = validate(&workspace, arguments).ended_with(2);
        assert_eq!(finished.stdout, "", "{}", finished.command);
        assert!(!finished.stderr.is_empty(), "{}", finished.command);
    }
    let nowhere = ["validate", "flow.yaml", "--connectors", "nowhere"];
    workspace
        .tidegate(nowhere)
        .finish()
        .ended_with(2)
        .says(&["nowhere"]);
    // A file that is not there is a problem like any other.
    let finished = validate(
        &workspace,
        &["nothing.yaml", "flow.yaml", "--format", "json"],
    )
    .ended_with(1);
    assert_eq!(codes(&json_of(&finished)), ["file-unreadable"]);
}

#[test]
fn directories_are_searched_for_catalogs() {
    let workspace = Workspace::new();
    let bad = |key: &str| format!("collections: {{a/b: {{schema: {{}}, key: [], {key}: 1}}}}\n");
    for directory in ["a", "a/b", "a/.hidden"] {
        fs::create_dir(workspace.path(directory)).expect("it is new");
    }
    workspace.write("a/flow.yaml", "import: [b/sales.flow.yaml]\n");
    workspace.write("a/b/sales.flow.yaml", bad("first"));
    workspace.write("a/b/other.flow.json", "{\"collections\": 5}\n");
    workspace.write("a/b/schema.yaml", "[nothing: of: ours");
    workspace.write("a/.hidden/flow.yaml", bad("hidden"));
    let finished = validate(&workspace, &["a", "--format", "json"]).ended_with(1);
    let answer = json_of(&finished);
    let files: Vec<_> = answer["diagnostics"]
        .as_array()
        .expect("there is a list")
        .iter()
        .map(|it| it["file"].as_str().expect("a file is text"))
        .collect();
    assert!(
        files.contains(&"a/b/other.flow.json") && files.contains(&"a/b/sales.flow.yaml"),
        "{files:?}"
    );
    assert!(
        !files
            .iter()
            .any(|it| it.contains("hidden") || it.contains("schema")),
        "{files:?}"
    );
}

#[test]
fn rules_that_need_a_connector_are_skipped_without_it_and_said_to_be() {
    let catalog = GOOD.replace("materialize-sqlite", "materialize-elsewhere");
    let workspace = workspace(&catalog);
    let finished = validate(&workspace, &["flow.yaml", "--format", "json"]).succeeded();
    let answer = json_of(&finished);
    assert_eq!(codes(&answer), ["connector-skipped"]);
    let message = answer["diagnostics"][0]["message"]
        .as_str()
        .expect("a message is text");
    assert!(
        message.contains("materialize-elsewhere") && message.contains("materialize-sqlite"),
        "{message}"
    );

    // A path is looked for beside the catalog.
    workspace.write(
        "flow.yaml",
        GOOD.replace("materialize-sqlite", "bin/sink.wasm"),
    );
    let finished = validate(&workspace, &["flow.yaml", "--format", "json"]).succeeded();
    assert_eq!(codes(&json_of(&finished)), ["connector-skipped"]);
    // What is there and is no connector is an error.
    workspace.write("sink.wasm", "not a component");
    workspace.write("flow.yaml", GOOD.replace("materialize-sqlite", "sink.wasm"));
    let finished = validate(&workspace, &["flow.yaml", "--format", "json"]).ended_with(1);
    assert_eq!(codes(&json_of(&finished)), ["connector-failed"]);
}

#[test]
fn a_draft_is_compared_with_what_runs() {
    let workspace = workspace(&GOOD.replace("total: {type: integer}", "total: {type: string}"));
    workspace.write("live.yaml", GOOD);
    let live = |more: &[&str]| {
        let arguments = [
            &["flow.yaml", "--live", "live.yaml", "--format", "json"][..],
            more,
        ]
        .concat();
        validate(&workspace, &arguments)
    };
    let answer = json_of(&live(&[]).succeeded());
    assert_eq!(codes(&answer), ["backfill-needed"]);
    let message = answer["diagnostics"][0]["message"]
        .as_str()
        .expect("a message is text");
    assert!(message.contains("total"), "{message}");
    live(&["--deny-warnings"]).ended_with(1);

    // What is to happen then is the author's choice.
    let draft = fs::read_to_string(workspace.path("flow.yaml")).expect("it is there");
    workspace.write(
        "flow.yaml",
        format!("{draft}        onIncompatibleSchemaChange: abort\n"),
    );
    assert_eq!(
        codes(&json_of(&live(&[]).ended_with(1))),
        ["incompatible-change"]
    );

    // Another key; a counter that goes down.
    let both = GOOD.replace("required: [id]", "required: [id, total]");
    workspace.write("live.yaml", format!("{both}        backfill: 2\n"));
    workspace.write("flow.yaml", both.replace("key: [/id]", "key: [/total]"));
    let answer = json_of(&live(&[]).ended_with(1));
    let found = codes(&answer);
    assert!(
        found.contains(&"backfill-needed") && found.contains(&"backfill-lowered"),
        "{answer:#}"
    );

    // Without the connector the key and the counter are compared still.
    for file in ["flow.yaml", "live.yaml"] {
        let catalog = fs::read_to_string(workspace.path(file)).expect("it is there");
        workspace.write(
            file,
            catalog.replace("materialize-sqlite", "materialize-elsewhere"),
        );
    }
    let answer = json_of(&live(&[]).ended_with(1));
    let mut found = codes(&answer);
    found.sort_unstable();
    let want = ["backfill-lowered", "backfill-needed", "connector-skipped"];
    assert_eq!(found, want, "{answer:#}");

    // One cannot compare with what has errors.
    workspace.write("live.yaml", GOOD.replace("key: [/id]", "key: [/di]"));
    let finished = live(&[]).ended_with(1).says(&["--live", "key-unknown"]);
    assert_eq!(finished.stdout, "");
}

#[test]
fn a_cron_whose_years_are_over_is_an_error() {
    let catalog = format!("{GOOD}    syncSchedule:\n      cron: \"0 0 2 * * * 2024\"\n");
    let workspace = workspace(&catalog);
    let finished = validate(&workspace, &["flow.yaml", "--format", "json"]).ended_with(1);
    let answer = json_of(&finished);
    assert_eq!(codes(&answer), ["schedule-invalid"]);
    assert_eq!(
        answer["diagnostics"][0]["pointer"],
        "/materializations/acmeCo~1shop/syncSchedule/cron"
    );
    assert_eq!(answer["diagnostics"][0]["line"], 16);
}

#[test]
fn sarif_is_what_its_schema_says() {
    let schema =
        fs::read(program::repository().join("validator/tests/fixtures/sarif-2.1.0.schema.json"));
    let mut schema: Value =
        serde_json::from_slice(&schema.expect("it is there")).expect("a schema is JSON");
    // As published it is no regular expression: a bracket is closed that was never opened.
    for object in ["run", "toolComponent"] {
        schema["definitions"][object]["properties"]["language"]["pattern"] =
            "^[a-zA-Z]{2}(-[a-zA-Z]{2})?$".into();
    }
    let schema = jsonschema::validator_for(&schema).expect("the schema compiles");
    assert!(
        !schema.is_valid(&json!({ "version": "2.1.0" })),
        "the schema refuses something"
    );
    let broken = GOOD
        .replace("source: acmeCo/orders", "source: acmeCo/order")
        .replace("path: shop.db", "paht: a");
    for (catalog, results) in [
        (GOOD.to_owned(), 0),
        (broken, 3),
        ("a: [".to_owned(), 1),
        (format!("{GOOD}\n{GOOD}"), 2),
    ] {
        let workspace = workspace(&catalog);
        let finished = validate(
            &workspace,
            &["flow.yaml", "nothing yet.yaml", "--format", "sarif"],
        )
        .ended_with(1);
        let log = json_of(&finished);
        let errors: Vec<_> = schema
            .iter_errors(&log)
            .map(|it| format!("{}: {it}", it.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{errors:#?}");
        let found = log["runs"][0]["results"]
            .as_array()
            .expect("there are results");
        // One is the file that is not there.
        assert_eq!(found.len(), results + 1, "{log:#}");
        let uris: Vec<_> = found
            .iter()
            .map(|it| {
                it["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
                    .as_str()
                    .expect("a result has a place")
            })
            .collect();
        assert!(uris.contains(&"nothing%20yet.yaml"), "{uris:?}");
    }
}

#[test]
fn secrets_are_never_shown() {
    const SECRET: &str = "hunter2";
    let config = |text: &str| GOOD.replace("{path: shop.db}", text);
    let slips = [
        // Twice the same key, and one dropped.
        config("{path: a.db, password: hunter2, password: hunter2}"),
        format!(
            "{}\n{}",
            config("{path: hunter2}"),
            config("{path: hunter2}")
        ),
        // Wrong types, unknown fields, wrong places.
        config("{path: [hunter2]}"),
        config("{path: {a: hunter2}, other: hunter2}"),
        config("[hunter2]"),
        config("{path: shop.db}}, config: {a: hunter2}"),
        GOOD.replace(
            "{component: materialize-sqlite,",
            "{component: materialize-sqlite, token: hunter2, ",
        ),
        GOOD.replace("config: {path: shop.db}", "confg: {path: hunter2}"),
        GOOD.replace("endpoint: {wasm:", "endpont: {wasm:")
            .replace("shop.db", "hunter2"),
        GOOD.replace("endpoint: {wasm:", "endpoint: {wsam:")
            .replace("shop.db", "hunter2"),
        GOOD.replace("materializations:", "materialisations:")
            .replace("shop.db", "hunter2"),
        // What cannot be parsed at all.
        config("{path: hunter2"),
        config("{path: \"hunter2}"),
        config("{path: *hunter2}"),
        config("{path: hunter2: hunter2}"),
        config("\n        path: hunter2\n      host: [hunter2"),
        // An enumeration, and alternatives.
        config("{path: a.db, journalMode: hunter2, synchronous: hunter2}"),
        GOOD.replace(
            "materialize-sqlite, config: {path: shop.db}",
            "materialize-faulty, config: {fault: hunter2, at: {a: hunter2}, path: {a: hunter2}}",
        ),
        config("{path: a.db, syncSchedule: {syncFrequency: hunter2}}"),
    ];
    for slip in slips {
        let workspace = workspace(&slip);
        let as_json = serde_json::to_string(&slip).expect("text can be written");
        workspace.write("flow.json", format!("{{\"materializations\": {{\"a/b\": {{\"endpoint\": {{\"wasm\": {as_json}, \"x\": hunter2"));
        for format in ["human", "json", "sarif"] {
            for file in ["flow.yaml", "flow.json"] {
                let finished = validate(&workspace, &[file, "--format", format]);
                let said = format!("{}{}", finished.stdout, finished.stderr);
                assert!(
                    !said.contains(SECRET),
                    "{}:\n{slip}\n{said}",
                    finished.command
                );
                assert!(
                    finished.code == Some(1) || slip.contains("password"),
                    "{slip}\n{said}"
                );
            }
        }
    }
}

#[test]
fn each_code_is_explained() {
    let workspace = Workspace::new();
    let list = workspace.tidegate(["explain"]).finish().succeeded().stdout;
    assert!(list.lines().count() > 40, "{list}");
    for line in list.lines() {
        let code = line.split(' ').next().expect("a line begins with a code");
        let page = workspace
            .tidegate(["explain", code])
            .finish()
            .succeeded()
            .stdout;
        assert!(page.starts_with(&format!("# {code}\n")), "{page}");
    }
    let refused = workspace
        .tidegate(["explain", "sync-schedule-conflct"])
        .finish();
    refused.ended_with(2).says(&[
        "sync-schedule-conflct",
        "did you mean sync-schedule-conflict?",
    ]);
    workspace
        .tidegate(["explain", "nonsense"])
        .finish()
        .ended_with(2)
        .says(&["tidegate explain"]);
}

#[test]
fn the_schema_of_catalogs_is_for_editors() {
    let workspace = Workspace::new();
    let shown = workspace
        .tidegate(["schema", "catalog"])
        .finish()
        .succeeded()
        .stdout;
    let schema: Value = serde_json::from_str(&shown).expect("a schema is JSON");
    assert_eq!(
        schema["$schema"],
        "https://json-schema.org/draft/2020-12/schema"
    );
    let schema = jsonschema::validator_for(&schema).expect("the schema compiles");
    let example = json!({ "collections": { "acmeCo/orders": { "key": ["/id"], "schema": {} } } });
    assert!(schema.is_valid(&example));
    assert!(!schema.is_valid(&json!({ "colections": {} })));
}
