//! Batches, ordinals, ranges, budgets and errors.

use tidegate_wit::batch::BATCH_BYTES_MIN;
use tidegate_wit::tuple::{Element, encode};
use xxhash_rust::xxh64::xxh64;

use super::*;

fn id(id: i64) -> Vec<u8> {
    encode(&[Element::Int(id)])
}

#[test]
fn only_keys_that_may_exist_are_loaded() {
    let mut destination = Destination::new(plan(&json!({}), false));
    destination.max_keys = vec![Some(id(5))];
    let mut combiner = destination.combiner();
    for document in [
        r#"{"id":6}"#,
        r#"{"id":5}"#,
        r#"{"id":2}"#,
        r#"{"id":5}"#,
        r#"{"id":9}"#,
    ] {
        combiner.add(0, document.as_bytes()).unwrap();
    }
    assert_eq!(combiner.next_load(false), None, "a batch is not full");
    let batch = combiner.next_load(true).unwrap();
    let keys: Vec<_> = rows(&batch.keys).map(|key| key.unwrap().to_vec()).collect();
    assert_eq!((keys, batch.count), (vec![id(5), id(2)], 2));
    assert_eq!(combiner.next_load(true), None, "each key is asked for once");
    assert_eq!(combiner.max_keys(), [Some(id(9))]);

    destination.max_keys = vec![None];
    let mut combiner = destination.combiner();
    combiner.add(0, br#"{"id":7}"#).unwrap();
    assert_eq!(combiner.next_load(true).unwrap().count, 1);
    assert_eq!(combiner.max_keys(), [None], "what is not known stays so");
}

#[test]
fn load_batches_are_full_ones_until_the_last() {
    let mut destination = Destination::new(plan(&json!({}), false));
    destination.max_keys = vec![None];
    let mut combiner = destination.combiner();
    let mut sizes = Vec::new();
    let mut count = 0;
    for at in 0..20_000 {
        combiner
            .add(0, format!(r#"{{"id":"key-{at:08}"}}"#).as_bytes())
            .unwrap();
        while let Some(batch) = combiner.next_load(false) {
            sizes.push(batch.keys.len());
            count += batch.count;
        }
    }
    assert!(sizes.len() >= 4, "{sizes:?}");
    assert!(
        sizes
            .iter()
            .all(|size| (BATCH_BYTES_MIN..=BATCH_BYTES_MAX).contains(size)),
        "{sizes:?}"
    );
    while let Some(batch) = combiner.next_load(true) {
        count += batch.count;
    }
    assert_eq!(count, 20_000);
}

#[test]
fn answers_that_break_the_protocol_are_errors() {
    let mut destination = Destination::new(plan(&json!({}), false));
    destination.max_keys = vec![None];
    let combiner = || {
        let mut combiner = destination.combiner();
        combiner.add(0, br#"{"id":1}"#).unwrap();
        combiner.add(0, br#"{"id":2}"#).unwrap();
        combiner
    };
    let loaded = |ordinals: &[u32]| {
        let mut batch = Vec::new();
        ordinals
            .iter()
            .for_each(|ordinal| push_loaded(&mut batch, *ordinal, b"{}"));
        batch
    };

    let mut early = combiner();
    let error = early.add_loaded(0, &loaded(&[0])).unwrap_err();
    assert_eq!(
        error,
        LoadedError::Unasked {
            ordinal: 0,
            asked: 0
        }
    );

    let mut asked = combiner();
    asked.next_load(true).unwrap();
    asked.add_loaded(0, &loaded(&[1])).unwrap();
    let error = asked.add_loaded(0, &loaded(&[0, 1])).unwrap_err();
    assert_eq!(error, LoadedError::Twice { ordinal: 1 });

    let mut beyond = combiner();
    beyond.next_load(true).unwrap();
    let error = beyond.add_loaded(0, &loaded(&[2])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "it returned ordinal 2, and only 2 keys were asked for"
    );

    let error = combiner().add_loaded(0, &loaded(&[0])[..7]).unwrap_err();
    assert!(matches!(error, LoadedError::Batch(_)), "{error}");

    let mut garbled = combiner();
    garbled.next_load(true).unwrap();
    let mut batch = Vec::new();
    push_loaded(&mut batch, 0, b"{\"id\":");
    garbled.add_loaded(0, &batch).unwrap();
    let error = garbled.drain().next_batch().unwrap_err();
    assert_eq!(
        error.to_string(),
        "binding 0 (acme/things), key [1]: the document that the connector loaded: \
         not JSON at byte 6: the text ends early"
    );
}

#[test]
fn documents_that_cannot_be_combined_are_named() {
    let schema = json!({"reduce": {"strategy": "merge"}, "properties": {"v": {"reduce": {"strategy": "sum"}}}});
    for (documents, want) in [
        (
            &["[1"][..],
            "binding 0 (acme/things): not JSON at byte 2: the text ends early",
        ),
        (
            &[r#"{"id":null}"#],
            "binding 0 (acme/things): key field \"id\" at \"/id\" is null: \
             a key cannot be null; many destinations have no null keys",
        ),
        (
            &[r#"{"id":"x","v":1}"#, r#"{"id":"x","v":"2"}"#],
            "binding 0 (acme/things), key [\"x\"]: sum at \"/v\" takes numbers only, and the document has \"2\"",
        ),
    ] {
        let destination = Destination::new(plan(&schema, false));
        let mut combiner = destination.combiner();
        let (last, before) = documents.split_last().unwrap();
        before
            .iter()
            .for_each(|document| assert!(combiner.add(0, document.as_bytes()).is_ok()));
        assert_eq!(
            combiner.add(0, last.as_bytes()).unwrap_err().to_string(),
            want
        );
    }
}

#[test]
fn shards_share_the_keys_without_gap_or_overlap() {
    let halves = [
        KeyRange {
            begin: 0,
            end: 0x7fff_ffff,
        },
        KeyRange {
            begin: 0x8000_0000,
            end: u32::MAX,
        },
    ];
    let combiners = halves.map(|range| {
        let plan = Plan {
            range,
            ..Plan::clone(&plan(&json!({}), false))
        };
        Combiner::new(Arc::new(plan), vec![None], Arc::default())
    });
    let [mut low, mut high] = combiners;
    for at in 0..200 {
        let document = format!(r#"{{"id":{at}}}"#);
        let in_low = low.add(0, document.as_bytes()).unwrap() == Added::Combined;
        let in_high = high.add(0, document.as_bytes()).unwrap() == Added::Combined;
        assert!(in_low != in_high);
        assert_eq!(in_high, xxh64(&id(at), 0) >> 63 == 1);
    }
    assert!(!low.is_empty() && !high.is_empty());
}

#[test]
fn bindings_are_drained_in_order_in_bounded_batches() {
    let one = BindingPlan::new(&binding(), &json!({}), false).unwrap();
    let plan = plan_of(vec![one.clone(), one.clone(), one]);
    let mut destination = Destination::new(plan);
    let mut combiner = destination.combiner();
    let large = "x".repeat(BATCH_BYTES_MAX - 100);
    for at in (0..3000).rev() {
        let fill = "y".repeat(200);
        combiner
            .add(0, format!(r#"{{"id":{at},"v":"{fill}"}}"#).as_bytes())
            .unwrap();
    }
    for at in 0..3 {
        combiner
            .add(2, format!(r#"{{"id":{at}}}"#).as_bytes())
            .unwrap();
        combiner
            .add(
                2,
                format!(r#"{{"id":{},"v":"{large}"}}"#, at + 10).as_bytes(),
            )
            .unwrap();
    }
    let mut drain = combiner.drain();
    let mut held = drain.bytes();
    let mut batches = Vec::new();
    while let Some(batch) = drain.next_batch().unwrap() {
        assert!(drain.bytes() <= held, "memory is given back as it goes");
        held = drain.bytes();
        assert_eq!(destination.gauges.bytes(), held);
        destination.store(&batch);
        batches.push((batch.binding, batch.rows.len()));
    }
    assert!(batches.is_sorted_by_key(|(binding, _)| *binding));
    assert!(
        batches.iter().filter(|(binding, _)| *binding == 0).count() >= 2,
        "{batches:?}"
    );
    let sizes: Vec<_> = destination.tables.iter().map(BTreeMap::len).collect();
    assert_eq!(sizes, [3000, 0, 6]);
    let counts = drain.counts();
    assert_eq!(
        (counts[0].documents, counts[0].stored, counts[1]),
        (3000, 3000, Counts::default())
    );
    assert_eq!(counts[0].bytes, counts[0].stored_bytes);
}

#[test]
fn a_full_combiner_says_so_and_an_abort_leaves_nothing() {
    let budget = Plan {
        budget_bytes: 100_000,
        ..Plan::clone(&plan(&json!({}), false))
    };
    let gauges: Arc<CombineGauges> = Arc::default();
    let mut combiner = Combiner::new(Arc::new(budget), vec![None], gauges.clone());
    let mut at = 0;
    while !combiner.over_budget() {
        combiner
            .add(
                0,
                format!(r#"{{"id":{at},"v":"{}"}}"#, "z".repeat(300)).as_bytes(),
            )
            .unwrap();
        at += 1;
    }
    assert!((100..400).contains(&at), "{at} documents");
    // Loaded documents share the budget.
    let before = combiner.bytes();
    combiner.next_load(true).unwrap();
    let mut loaded = Vec::new();
    push_loaded(&mut loaded, 0, &[b' '; 10_000]);
    combiner.add_loaded(0, &loaded).unwrap();
    assert!(combiner.bytes() > before + 9_000);
    assert_eq!((gauges.bytes(), gauges.keys()), (combiner.bytes(), at));
    drop(combiner);
    assert_eq!((gauges.bytes(), gauges.keys()), (0, 0));

    let mut failing = Combiner::new(plan(&json!({}), false), vec![None], gauges.clone());
    failing.add(0, br#"{"id":1}"#).unwrap();
    failing.add(0, b"{").unwrap_err();
    drop(failing);
    assert_eq!(gauges.bytes(), 0);
}
