//! The destination equals a fold over all documents, wherever transactions
//! begin and end.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// What a test document does.
#[derive(Clone, Debug)]
enum Step {
    Write(i64, Vec<i64>, bool),
    Delete,
}

fn steps() -> impl Strategy<Value = Vec<(u8, Step, bool)>> {
    let write = (
        -3i64..4,
        prop::collection::vec(0i64..9, 0..3),
        any::<bool>(),
    );
    let step = prop_oneof![
        3 => write.prop_map(|(number, list, tagged)| Step::Write(number, list, tagged)),
        1 => Just(Step::Delete),
    ];
    prop::collection::vec((0u8..3, step, prop::bool::weighted(0.3)), 1..40)
}

fn text(key: u8, step: &Step) -> String {
    match step {
        Step::Write(number, list, tagged) => {
            let fields = json!({"last": number, "first": number, "sum": number, "min": number, "max": number, "append": list});
            let mut document = json!({"id": key, "f": fields});
            if *tagged {
                document["tag"] = json!(number);
            }
            document.to_string()
        }
        Step::Delete => json!({"id": key, "_meta": {"op": "d"}}).to_string(),
    }
}

/// What a key has, by strategy.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    last: i64,
    first: i64,
    sum: i64,
    min: i64,
    max: i64,
    append: Vec<i64>,
    tag: Option<i64>,
}

/// The fold, in terms of numbers and not of documents.
fn fold(steps: &[(u8, Step, bool)], merge: bool) -> BTreeMap<u8, Row> {
    let mut rows: BTreeMap<u8, Row> = BTreeMap::new();
    for (key, step, _) in steps {
        let Step::Write(number, list, tagged) = step else {
            rows.remove(key);
            continue;
        };
        let fresh = Row {
            last: *number,
            first: *number,
            sum: *number,
            min: *number,
            max: *number,
            append: list.clone(),
            tag: tagged.then_some(*number),
        };
        match rows.get_mut(key) {
            Some(row) if merge => {
                row.last = *number;
                row.sum += number;
                row.min = row.min.min(*number);
                row.max = row.max.max(*number);
                row.append.extend(list);
                row.tag = fresh.tag.or(row.tag);
            }
            _ => {
                rows.insert(*key, fresh);
            }
        }
    }
    rows
}

fn schema(merge: bool) -> Schema {
    let of = |strategy: &str| json!({"reduce": {"strategy": strategy}});
    let fields = json!({
        "reduce": {"strategy": "merge"},
        "properties": {
            "first": of("firstWriteWins"), "sum": of("sum"), "min": of("minimize"),
            "max": of("maximize"), "append": of("append"),
        },
    });
    let root = if merge { "merge" } else { "lastWriteWins" };
    json!({"reduce": {"strategy": root}, "properties": {"f": fields}})
}

fn row(document: &str) -> (u8, Row) {
    let document: Schema = serde_json::from_str(document).unwrap();
    let number = |name: &str| document["f"][name].as_i64().unwrap();
    let append = document["f"]["append"].as_array().unwrap();
    let row = Row {
        last: number("last"),
        first: number("first"),
        sum: number("sum"),
        min: number("min"),
        max: number("max"),
        append: append
            .iter()
            .map(|element| element.as_i64().unwrap())
            .collect(),
        tag: document.get("tag").and_then(Schema::as_i64),
    };
    (u8::try_from(document["id"].as_i64().unwrap()).unwrap(), row)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_destination_equals_a_fold(steps in steps(), merge in any::<bool>(), known in any::<bool>(), fat in any::<bool>()) {
        let mut plan = plan(&schema(merge), true);
        Arc::get_mut(&mut plan).unwrap().bindings[0].skip_equal = !fat;
        let mut destination = Destination::new(plan);
        if !known {
            destination.max_keys = vec![None];
        }
        let documents: Vec<_> = steps.iter().map(|(key, step, _)| text(*key, step)).collect();
        let mut begin = 0;
        for (at, (_, _, commit)) in steps.iter().enumerate() {
            if *commit || at + 1 == steps.len() {
                let transaction: Vec<_> = documents[begin..=at].iter().map(String::as_str).collect();
                destination.transact(&transaction);
                begin = at + 1;
                let rows: BTreeMap<_, _> = destination.documents().into_iter().map(row).collect();
                prop_assert_eq!(rows, fold(&steps[..=at], merge));
            }
        }
    }

    #[test]
    fn without_hard_deletes_tombstones_are_rows(steps in steps(), merge in any::<bool>()) {
        let plan = plan(&schema(merge), false);
        let documents: Vec<_> = steps.iter().map(|(key, step, _)| text(*key, step)).collect();
        let texts: Vec<_> = documents.iter().map(String::as_str).collect();
        let mut together = Destination::new(plan.clone());
        together.transact(&texts);
        let mut apart = Destination::new(plan);
        for text in &texts {
            apart.transact(&[text]);
        }
        prop_assert_eq!(together.documents(), apart.documents());
        let keys: std::collections::BTreeSet<_> = steps.iter().map(|(key, _, _)| key).collect();
        prop_assert_eq!(together.documents().len(), keys.len());
    }
}
