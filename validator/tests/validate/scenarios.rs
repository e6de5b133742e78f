//! Scenarios: catalogs in, diagnostics out.
//!
//! A scenario holds several files, each behind a line `--- path`. Its snapshot holds what a person would read, and what
//! was built if anything was.

use crate::support::{self, Scenario};
use std::fmt::Write;
use tidegate_validator::{Built, diagnostic};

#[test]
fn scenarios() {
    for (name, text) in support::all() {
        let scenario = Scenario::parse(&text);
        let (draft, built, diagnostics) = scenario.run();
        let mut shown = diagnostic::human(&diagnostics, draft.sources(), false);
        if let Some(built) = built {
            describe(&mut shown, &built);
        }
        insta::with_settings!({prepend_module_to_snapshot => false, snapshot_path => "../snapshots", omit_expression => true}, {
            insta::assert_snapshot!(name, shown);
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
