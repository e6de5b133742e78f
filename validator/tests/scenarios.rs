//! Scenarios: catalogs in, diagnostics out.
//!
//! A scenario holds several files, each behind a line `--- path`. Its snapshot holds what a person would read, and what
//! was built if anything was.

mod support;

use std::fmt::Write;
use std::path::Path;
use support::Scenario;
use tidegate_validator::{Built, diagnostic};

#[test]
fn scenarios() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut names: Vec<_> = std::fs::read_dir(&root)
        .expect("the scenarios are there")
        .map(|entry| entry.expect("an entry can be read").path())
        .collect();
    names.sort();
    assert!(!names.is_empty());
    for path in names {
        let text = std::fs::read_to_string(&path).expect("a scenario can be read");
        let name = path
            .file_stem()
            .expect("a file has a name")
            .to_string_lossy();
        let scenario = Scenario::parse(&text);
        let (draft, built, diagnostics) = scenario.run();
        let mut shown = diagnostic::human(&diagnostics, draft.sources(), false);
        if let Some(built) = built {
            describe(&mut shown, &built);
        }
        insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
            insta::assert_snapshot!(name.as_ref(), shown);
        });
    }
}

/// Writes what matters of what was built.
fn describe(shown: &mut String, built: &Built) {
    for task in built.tasks.values() {
        let _ = writeln!(shown, "\nbuilt {} on {}", task.name, task.component);
        if task.sync_schedule.is_some() {
            let _ = writeln!(shown, "  with a schedule");
        }
        if task.shards.disable {
            let _ = writeln!(shown, "  disabled");
        }
        for (binding, of_host) in task.spec.bindings.iter().zip(&task.bindings) {
            let names = |fields: &[tidegate_wit::message::Projection]| {
                let names: Vec<_> = fields.iter().map(|it| it.field.as_str()).collect();
                names.join(", ")
            };
            let _ = writeln!(
                shown,
                "  {} -> {}: key {}; values {}; document {}",
                binding.collection,
                binding.resource_path.join("."),
                names(&binding.key),
                names(&binding.values),
                binding.document.as_deref().unwrap_or("none"),
            );
            if binding.backfill > 0 || of_host.hard_delete {
                let _ = writeln!(
                    shown,
                    "    backfill {}, hard delete {}",
                    binding.backfill, of_host.hard_delete
                );
            }
        }
    }
}
