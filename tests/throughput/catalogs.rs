//! Validating catalogs of many materializations: time and memory, which are to
//! grow as the catalog does.

use std::fmt::Write;

use serde_json::{Value, json};
use tidegate_tests::program;
use tidegate_tests::workspace::Workspace;

use crate::measure::{Measured, round};

/// Materializations of the catalogs that are compared.
const SIZES: [usize; 2] = [1_000, 10_000];

/// Materializations for each collection.
const TASKS_A_COLLECTION: usize = 5;

/// Each figure is the best of so many: what else the machine does only slows.
const RUNS: usize = 3;

/// Who answers for the connector of all tasks.
const CONNECTORS: [(&str, &str); 2] = [
    ("without connectors", "materialize-elsewhere"),
    ("with SQLite's connector", "materialize-sqlite"),
];

/// Measures every size, with and without a connector that answers.
pub fn validate() -> anyhow::Result<Value> {
    let mut rows = Vec::new();
    for (name, component) in CONNECTORS {
        let mut figures = Vec::new();
        for tasks in SIZES {
            let best = measured(tasks, component)?;
            println!(
                "validate {tasks} materializations {name}: {:.2} s, {} MiB",
                best.took.as_secs_f64(),
                best.peak_memory_kib / 1024
            );
            figures.push(json!({
                "materializations": tasks,
                "collections": tasks / TASKS_A_COLLECTION,
                "seconds": round(best.took.as_secs_f64(), 1_000.0),
                "peakMemoryKib": best.peak_memory_kib,
            }));
        }
        rows.push(json!({ "name": name, "catalogs": figures }));
    }
    Ok(json!({ "runs": rows }))
}

fn measured(tasks: usize, component: &str) -> anyhow::Result<Measured> {
    let workspace = Workspace::new();
    workspace.write("flow.yaml", catalog(tasks, component));
    let connectors = program::connectors();
    let mut best: Option<Measured> = None;
    for _ in 0..RUNS {
        let arguments = [
            "validate".into(),
            "flow.yaml".into(),
            "--connectors".into(),
            connectors.clone(),
        ];
        let run = Measured::run(workspace.tidegate(arguments))?;
        if best.as_ref().is_none_or(|best| run.took < best.took) {
            best = Some(run);
        }
    }
    Ok(best.expect("there is at least one run"))
}

fn catalog(tasks: usize, component: &str) -> String {
    let collections = (tasks / TASKS_A_COLLECTION).max(1);
    let mut text = "collections:\n".to_owned();
    for position in 0..collections {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "  acmeCo/c{position}:
    key: [/id]
    schema:
      type: object
      required: [id]
      properties:
        id: {{type: integer}}
        name: {{type: string}}
        total: {{type: number}}
        at: {{type: string, format: date-time}}
        nested: {{type: object, properties: {{a: {{type: string}}, b: {{type: integer}}}}}}
        tags: {{type: array, items: {{type: string}}}}
        _meta: {{type: object, properties: {{op: {{type: string, enum: [c, u, d]}}}}}}
"
        );
    }
    text.push_str("materializations:\n");
    for position in 0..tasks {
        let collection = |step: usize| (position + step) % collections;
        let _ = write!(
            text,
            "  acmeCo/m{position}:
    endpoint: {{connector: {{image: {component}, config: {{path: db{position}.db}}}}}}
    syncSchedule:
      baseInterval: 4h
      timezone: Europe/Paris
      windows: [{{interval: 15m, start: 09:00, end: 17:00, days: [Mon, Fri]}}]
    bindings:
      - {{source: acmeCo/c{}, resource: {{table: a}}, fields: {{recommended: true, exclude: [tags]}}}}
      - {{source: acmeCo/c{}, resource: {{table: b}}}}
      - {{source: acmeCo/c{}, resource: {{table: c}}}}
",
            collection(0),
            collection(1),
            collection(7),
        );
    }
    text
}
