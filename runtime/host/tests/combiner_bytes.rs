//! The combiner's count of its memory, against what it really allocates. A
//! binary of its own: other tests would allocate meanwhile.

use std::alloc::System;
use std::sync::Arc;

use cap::Cap;
use serde_json::json;
use tidegate_host::shard::combine::{BindingPlan, COMBINE_BYTES_MAX, Combiner, Plan};
use tidegate_wit::batch::push_loaded;
use tidegate_wit::message::{KeyRange, Projection, SpecBinding};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// How far the count may be from the truth.
const TOLERANCE: f64 = 0.2;

fn plan(reduce: serde_json::Value) -> Arc<Plan> {
    let id = Projection {
        field: "id".to_owned(),
        pointer: "/id".to_owned(),
        types: Vec::new(),
        required: true,
        format: None,
        content_encoding: None,
        default: None,
        key: true,
        description: None,
    };
    let spec = SpecBinding {
        collection: "acme/things".to_owned(),
        resource: json!({}),
        resource_path: vec!["things".to_owned()],
        delta_updates: false,
        backfill: 0,
        key: vec![id],
        values: Vec::new(),
        document: Some("document".to_owned()),
    };
    let schema = json!({"reduce": reduce});
    Arc::new(Plan {
        bindings: vec![BindingPlan::new(&spec, &schema, false).expect("the binding is one")],
        range: KeyRange::FULL,
        budget_bytes: COMBINE_BYTES_MAX,
    })
}

fn assert_close(what: &str, counted: u64, allocated: usize) {
    let ratio = counted as f64 / allocated as f64;
    assert!(
        (1.0 - TOLERANCE..=1.0 + TOLERANCE).contains(&ratio),
        "{what}: counted {counted} bytes of {allocated}, {ratio:.2}"
    );
}

#[test]
fn the_count_is_close_to_what_is_allocated() {
    // Ascending keys fill the tree's nodes by half, mixed ones by two thirds.
    for (what, mixed, keys, fill, reduce) in [
        (
            "ascending",
            false,
            20_000,
            260,
            json!({"strategy": "lastWriteWins"}),
        ),
        (
            "mixed",
            true,
            20_000,
            260,
            json!({"strategy": "lastWriteWins"}),
        ),
        (
            "small",
            true,
            20_000,
            30,
            json!({"strategy": "lastWriteWins"}),
        ),
        (
            "replaced",
            true,
            2_000,
            260,
            json!({"strategy": "lastWriteWins"}),
        ),
        ("merged", true, 2_000, 260, json!({"strategy": "merge"})),
    ] {
        let plan = plan(reduce);
        let fill = "f".repeat(fill);
        let before = ALLOCATOR.allocated();
        let mut combiner = Combiner::new(plan, vec![None], Arc::default());
        for at in 0..20_000 {
            let at = if mixed { at * 7_919 % 20_000 } else { at };
            let document = format!(r#"{{"id":"key-{:08}","fill":"{fill}"}}"#, at % keys);
            combiner
                .add(0, document.as_bytes())
                .expect("the document is one");
        }
        assert_close(what, combiner.bytes(), ALLOCATOR.allocated() - before);

        let mut handed_out = 0;
        while let Some(batch) = combiner.next_load(true) {
            let mut loaded = Vec::new();
            for ordinal in handed_out..handed_out + batch.count {
                push_loaded(
                    &mut loaded,
                    ordinal,
                    format!(r#"{{"id":{ordinal},"fill":"{fill}"}}"#).as_bytes(),
                );
            }
            handed_out += batch.count;
            combiner
                .add_loaded(0, &loaded)
                .expect("the answers are in order");
        }
        assert_close(what, combiner.bytes(), ALLOCATOR.allocated() - before);

        let mut drain = combiner.drain();
        for _ in 0..10 {
            drop(drain.next_batch().expect("the documents can be stored"));
        }
        while drain
            .next_batch()
            .expect("the documents can be stored")
            .is_some()
        {}
        assert_eq!(drain.bytes(), 0);
    }
}
