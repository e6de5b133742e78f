//! Parsing and combining flat documents of some 300 bytes and 19 fields.
//!
//! `parse/*` is what the choice of a parser rests on. All but the first keep a
//! number's text; ours is the last, and the only one that also knows where
//! each value's text is and refuses names that occur twice. `simd-json` is not
//! here: it makes doubles of decimals before anybody can ask for their text.
//!
//! `combine/*` is the hot path: parse, key, add, then values and drain.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use serde_json::json;
use tidegate_host::document::{Checker, Extractor, Locations, Tape};
use tidegate_host::shard::combine::{BindingPlan, COMBINE_BYTES_MAX, Combiner, Plan};
use tidegate_wit::message::{KeyRange, Projection, SpecBinding};

/// How many documents one round combines.
const DOCUMENTS: usize = 20_000;

fn document(id: usize) -> String {
    format!(
        concat!(
            r#"{{"id":{id},"customer":"cus_{id:08}","status":"shipped","currency":"EUR","amount":{cents}.25,"#,
            r#""quantity":{n},"sku":"SKU-{n:05}","city":"Utrecht","country":"NL","express":true,"gift":false,"#,
            r#""note":null,"weight":0.75,"carrier":"post","created":"2026-05-04T00:13:00Z","#,
            r#""updated":"2026-05-04T00:15:30Z","version":{n},"discount":0,"channel":"web"}}"#
        ),
        id = id,
        cents = id % 1000,
        n = id % 97,
    )
}

fn projections() -> Vec<Projection> {
    let document: serde_json::Value =
        serde_json::from_str(&document(1)).expect("the document is JSON");
    let names = document
        .as_object()
        .expect("the document is an object")
        .keys();
    let projection = |name: &String| Projection {
        field: name.clone(),
        pointer: format!("/{name}"),
        types: Vec::new(),
        required: true,
        format: None,
        content_encoding: None,
        default: None,
        key: name == "id",
        description: None,
    };
    names.map(projection).collect()
}

fn parse(criterion: &mut Criterion) {
    let text = document(12_345);
    let mut group = criterion.benchmark_group("parse");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("serde_json::Value (doubles)", |bencher| {
        bencher.iter(|| serde_json::from_str::<serde_json::Value>(black_box(&text)).is_ok());
    });
    group.bench_function("serde_json::RawValue", |bencher| {
        bencher.iter(|| {
            serde_json::from_str::<BTreeMap<&str, &serde_json::value::RawValue>>(black_box(&text))
                .is_ok()
        });
    });
    group.bench_function("sonic_rs::Value (raw numbers)", |bencher| {
        bencher.iter(|| {
            let mut parser = sonic_rs::Deserializer::from_str(black_box(&text)).use_rawnumber();
            serde::Deserialize::deserialize(&mut parser).map(|value: sonic_rs::Value| drop(value))
        });
    });
    group.bench_function("sonic_rs::to_object_iter", |bencher| {
        bencher.iter(|| sonic_rs::to_object_iter(black_box(text.as_str())).count());
    });
    let mut tape = Tape::default();
    group.bench_function("tidegate Tape", |bencher| {
        bencher.iter(|| tape.parse(black_box(text.as_bytes())).is_ok());
    });
    group.finish();

    let mut group = criterion.benchmark_group("document");
    let values = Extractor::values(&projections()).expect("the fields are fields");
    let parsed = tape.parse(text.as_bytes()).expect("the document is one");
    let (mut locations, mut tuple) = (Locations::default(), Vec::new());
    group.bench_function("extract 19 values", |bencher| {
        bencher.iter(|| {
            tuple.clear();
            values
                .extract(black_box(&parsed), &mut locations, &mut tuple)
                .is_ok()
        });
    });
    let mut properties = serde_json::Map::new();
    for projection in projections() {
        properties.insert(
            projection.field,
            json!({"type": ["string", "number", "boolean", "null"]}),
        );
    }
    properties["amount"] = json!({"type": "number", "minimum": 0, "multipleOf": 0.01});
    let checker =
        Checker::new(&json!({"type": "object", "required": ["id"], "properties": properties}))
            .expect("the schema is one");
    group.bench_function("check", |bencher| {
        bencher.iter(|| checker.check_document(black_box(&parsed)).is_ok());
    });
    group.finish();
}

fn combine(criterion: &mut Criterion) {
    let (key, values) = projections()
        .into_iter()
        .partition(|projection| projection.key);
    let spec = SpecBinding {
        collection: "acme/orders".to_owned(),
        resource: json!({}),
        resource_path: vec!["orders".to_owned()],
        delta_updates: false,
        backfill: 0,
        key,
        values,
        document: Some("document".to_owned()),
    };
    let plan = |schema| {
        Arc::new(Plan {
            bindings: vec![BindingPlan::new(&spec, &schema, true).expect("the binding is one")],
            range: KeyRange::FULL,
            budget_bytes: COMBINE_BYTES_MAX,
        })
    };
    let sums = json!({"reduce": {"strategy": "merge"}, "properties": {"amount": {"reduce": {"strategy": "sum"}}}});
    // Keys come in no order, as they do.
    let mixed = |at: usize| at * 7_919 % DOCUMENTS;
    let mut group = criterion.benchmark_group("combine");
    group.sample_size(10);
    group.throughput(Throughput::Elements(DOCUMENTS as u64));
    for (name, plan, keys) in [
        ("replace, a key a document", plan(json!({})), DOCUMENTS),
        (
            "replace, ten documents a key",
            plan(json!({})),
            DOCUMENTS / 10,
        ),
        ("sum, ten documents a key", plan(sums), DOCUMENTS / 10),
    ] {
        let documents: Vec<_> = (0..DOCUMENTS)
            .map(|at| document(mixed(at) % keys))
            .collect();
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || Combiner::new(plan.clone(), vec![Some(Vec::new())], Arc::default()),
                |mut combiner| {
                    for document in &documents {
                        combiner
                            .add(0, document.as_bytes())
                            .expect("the document is one");
                    }
                    let mut drain = combiner.drain();
                    while let Some(batch) = drain.next_batch().expect("the documents can be stored")
                    {
                        black_box(batch.rows);
                    }
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, parse, combine);
criterion_main!(benches);
