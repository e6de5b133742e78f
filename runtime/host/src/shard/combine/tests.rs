//! A destination simulated by a map, and transactions against it.

mod cases;
mod fold;
mod linear;
mod protocol;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value as Schema, json};
use tidegate_wit::batch::{BATCH_BYTES_MAX, push_loaded, rows, stores};
use tidegate_wit::message::{KeyRange, Projection, SpecBinding};

use super::*;

/// A field of a simulated binding.
fn projection(field: &str) -> Projection {
    Projection {
        field: field.to_owned(),
        pointer: format!("/{field}"),
        types: Vec::new(),
        required: false,
        format: None,
        content_encoding: None,
        default: None,
        key: false,
        description: None,
    }
}

/// A binding with key `/id` and value `/v`.
fn binding() -> SpecBinding {
    SpecBinding {
        collection: "acme/things".to_owned(),
        resource: json!({}),
        resource_path: vec!["things".to_owned()],
        delta_updates: false,
        backfill: 0,
        key: vec![projection("id")],
        values: vec![projection("v")],
        document: Some("document".to_owned()),
    }
}

fn plan_of(bindings: Vec<BindingPlan>) -> Arc<Plan> {
    Arc::new(Plan {
        bindings,
        range: KeyRange::FULL,
        budget_bytes: COMBINE_BYTES_MAX,
    })
}

fn plan(schema: &Schema, hard_delete: bool) -> Arc<Plan> {
    plan_of(vec![
        BindingPlan::new(&binding(), schema, hard_delete).unwrap(),
    ])
}

/// A destination with one table a binding, that does what a connector does.
struct Destination {
    plan: Arc<Plan>,
    max_keys: Vec<Option<Vec<u8>>>,
    gauges: Arc<CombineGauges>,
    /// Documents by key tuple.
    tables: Vec<BTreeMap<Vec<u8>, String>>,
    /// Rows of delta-update bindings, in order: the document, and whether it
    /// deletes.
    appended: Vec<(String, bool)>,
    /// How many keys it was asked for.
    asked: usize,
}

impl Destination {
    fn new(plan: Arc<Plan>) -> Self {
        let count = plan.bindings.len();
        Destination {
            plan,
            max_keys: vec![Some(Vec::new()); count],
            gauges: Arc::default(),
            tables: vec![BTreeMap::new(); count],
            appended: Vec::new(),
            asked: 0,
        }
    }

    fn combiner(&self) -> Combiner {
        Combiner::new(
            self.plan.clone(),
            self.max_keys.clone(),
            self.gauges.clone(),
        )
    }

    /// Answers what the combiner wants loaded.
    fn load(&mut self, combiner: &mut Combiner, partial: bool) {
        while let Some(batch) = combiner.next_load(partial) {
            let table = &self.tables[batch.binding as usize];
            let mut loaded = Vec::new();
            for (at, key) in rows(&batch.keys).enumerate() {
                let ordinal = u32::try_from(self.asked + at).unwrap();
                if let Some(document) = table.get(key.unwrap()) {
                    push_loaded(&mut loaded, ordinal, document.as_bytes());
                }
            }
            self.asked += batch.count as usize;
            combiner.add_loaded(batch.binding, &loaded).unwrap();
        }
    }

    /// Runs one transaction of documents of the first binding.
    fn transact(&mut self, documents: &[&str]) -> Counts {
        self.asked = 0;
        let mut combiner = self.combiner();
        for document in documents {
            combiner.add(0, document.as_bytes()).unwrap();
            self.load(&mut combiner, false);
        }
        self.load(&mut combiner, true);
        self.max_keys = combiner.max_keys();
        let mut drain = combiner.drain();
        while let Some(batch) = drain.next_batch().unwrap() {
            self.store(&batch);
        }
        assert_eq!(drain.bytes(), 0, "all memory is given back");
        let counts = drain.counts()[0];
        drop(drain);
        assert_eq!((self.gauges.bytes(), self.gauges.keys()), (0, 0));
        counts
    }

    /// Applies a batch, and checks what the protocol promises.
    fn store(&mut self, batch: &StoreBatch) {
        let plan = &self.plan.bindings[batch.binding as usize];
        let table = &mut self.tables[batch.binding as usize];
        assert!(batch.rows.len() <= BATCH_BYTES_MAX || stores(&batch.rows).count() == 1);
        let mut last: Option<Vec<u8>> = None;
        for store in stores(&batch.rows) {
            let store = store.unwrap();
            let document = String::from_utf8(store.document.to_vec()).unwrap();
            assert!(
                last.as_deref().is_none_or(|last| last < store.key),
                "keys are in order, each once"
            );
            last = Some(store.key.to_vec());
            if plan.delta_updates {
                assert!(!store.exists);
                self.appended.push((document, store.delete));
                continue;
            }
            assert_eq!(store.exists, table.contains_key(store.key), "{document}");
            match store.delete {
                true => table.remove(store.key),
                false => table.insert(store.key.to_vec(), document),
            };
        }
    }

    fn documents(&self) -> Vec<&str> {
        self.tables[0].values().map(String::as_str).collect()
    }
}
