//! Behaviours that users have reported missing elsewhere, one by one.

use super::*;

/// Runs documents in one transaction, and in one transaction each.
fn both_ways(plan: &Arc<Plan>, documents: &[&str], check: impl Fn(&Destination)) {
    let mut together = Destination::new(plan.clone());
    together.transact(documents);
    check(&together);
    let mut apart = Destination::new(plan.clone());
    for document in documents {
        apart.transact(&[document]);
    }
    check(&apart);
}

fn summing() -> Schema {
    json!({"reduce": {"strategy": "merge"}, "properties": {"n": {"reduce": {"strategy": "sum"}}}})
}

#[test]
fn an_update_after_a_delete_is_kept() {
    let documents = [
        r#"{"id":7,"v":"a","_meta":{"op":"c"}}"#,
        r#"{"id":7,"_meta":{"op":"d"}}"#,
        r#"{"id":7,"v":"b","_meta":{"op":"c"}}"#,
        r#"{"id":8,"v":"x","_meta":{"op":"c"}}"#,
        r#"{"id":8,"_meta":{"op":"d"}}"#,
    ];
    for schema in [json!({}), json!({"reduce": {"strategy": "merge"}})] {
        both_ways(&plan(&schema, true), &documents, |destination| {
            assert_eq!(destination.documents(), [documents[2]]);
        });
    }
}

#[test]
fn what_follows_a_delete_reduces_onto_nothing() {
    let plan = plan(&summing(), true);
    let created = r#"{"id":1,"n":5,"old":true}"#;
    let deleted = r#"{"id":1,"_meta":{"op":"d"}}"#;
    let again = r#"{"id":1,"n":2}"#;
    both_ways(&plan, &[created, deleted, again, again], |destination| {
        assert_eq!(destination.documents(), [r#"{"id":1,"n":4}"#]);
    });
    // The loaded document is on the far side of the barrier too.
    let mut destination = Destination::new(plan);
    destination.transact(&[created]);
    let counts = destination.transact(&[deleted, again]);
    assert_eq!(destination.documents(), [again]);
    assert_eq!((counts.loaded, counts.stored, counts.deleted), (1, 1, 0));
}

#[test]
fn deleting_what_was_never_there() {
    let tombstone = r#"{"id":9,"_meta":{"op":"d"}}"#;
    let mut hard = Destination::new(plan(&json!({}), true));
    let counts = hard.transact(&[tombstone]);
    assert_eq!((counts.stored, counts.deleted, counts.skipped), (0, 0, 1));
    assert!(hard.documents().is_empty());

    let mut soft = Destination::new(plan(&json!({}), false));
    let counts = soft.transact(&[tombstone]);
    assert_eq!((counts.stored, counts.deleted, counts.skipped), (1, 0, 0));
    assert_eq!(soft.documents(), [tombstone]);
}

#[test]
fn deleting_what_is_there() {
    let tombstone = r#"{"id":9,"_meta":{"op":"d"}}"#;
    let mut destination = Destination::new(plan(&json!({}), true));
    destination.transact(&[r#"{"id":9}"#]);
    let counts = destination.transact(&[tombstone]);
    assert_eq!((counts.stored, counts.deleted, counts.skipped), (0, 1, 0));
    assert!(destination.documents().is_empty());
    // Again, the key being not greater than what the destination may have.
    let counts = destination.transact(&[tombstone]);
    assert_eq!((counts.loaded, counts.deleted, counts.skipped), (0, 0, 1));
}

#[test]
fn a_tombstone_from_before_hard_deletes_is_nothing_to_reduce_onto() {
    let mut destination = Destination::new(plan(&summing(), false));
    destination.transact(&[r#"{"id":1,"n":5,"_meta":{"op":"d"}}"#]);
    destination.plan = plan(&summing(), true);
    destination.transact(&[r#"{"id":1,"n":2}"#]);
    assert_eq!(destination.documents(), [r#"{"id":1,"n":2}"#]);
}

#[test]
fn sums_survive_a_commit_that_nobody_acknowledged() {
    let documents = [
        r#"{"id":1,"n":1}"#,
        r#"{"id":2,"n":1}"#,
        r#"{"id":1,"n":1}"#,
    ];
    let want = [r#"{"id":1,"n":2}"#, r#"{"id":2,"n":2}"#];
    let mut destination = Destination::new(plan(&summing(), false));
    destination.transact(&documents);
    for _ in 0..3 {
        // The session ends in the middle of the next transaction.
        let mut combiner = destination.combiner();
        combiner.add(0, br#"{"id":2,"n":1}"#).unwrap();
        assert!(destination.gauges.bytes() > 0);
    }
    assert_eq!(
        (destination.gauges.bytes(), destination.gauges.keys()),
        (0, 0)
    );
    destination.transact(&[r#"{"id":2,"n":1}"#]);
    assert_eq!(destination.documents(), want);

    let mut spec = binding();
    spec.delta_updates = true;
    let mut delta = Destination::new(plan_of(vec![
        BindingPlan::new(&spec, &summing(), false).unwrap(),
    ]));
    delta.transact(&documents);
    delta.transact(&[r#"{"id":2,"n":1}"#]);
    assert_eq!(delta.asked, 0, "nothing is loaded");
    let appended: Vec<_> = delta
        .appended
        .iter()
        .map(|(document, _)| document.as_str())
        .collect();
    assert_eq!(
        appended,
        [
            r#"{"id":1,"n":2}"#,
            r#"{"id":2,"n":1}"#,
            r#"{"id":2,"n":1}"#
        ]
    );
}

#[test]
fn delta_updates_append_deletes_and_equal_documents() {
    let mut spec = binding();
    spec.delta_updates = true;
    let mut delta = Destination::new(plan_of(vec![
        BindingPlan::new(&spec, &json!({}), true).unwrap(),
    ]));
    let tombstone = r#"{"id":1,"_meta":{"op":"d"}}"#;
    delta.transact(&[r#"{"id":1}"#]);
    delta.transact(&[r#"{"id":1}"#]);
    delta.transact(&[r#"{"id":1}"#, tombstone]);
    let want = [
        (r#"{"id":1}"#.to_owned(), false),
        (r#"{"id":1}"#.to_owned(), false),
        (tombstone.to_owned(), true),
    ];
    assert_eq!(delta.appended, want);
}

#[test]
fn integer_keys_above_two_to_the_53_stay_apart() {
    let mut destination = Destination::new(plan(&json!({}), false));
    destination.transact(&[r#"{"id":9007199254740993,"v":1}"#]);
    destination.transact(&[r#"{"id":9007199254740992,"v":1}"#]);
    let counts = destination.transact(&[r#"{"id":9007199254740993,"v":2}"#]);
    assert_eq!(counts.loaded, 1);
    assert_eq!(
        destination.documents(),
        [
            r#"{"id":9007199254740992,"v":1}"#,
            r#"{"id":9007199254740993,"v":2}"#
        ]
    );
}

#[test]
fn a_key_may_have_a_default() {
    let mut spec = binding();
    spec.key[0].default = Some(json!("value"));
    let mut destination = Destination::new(plan_of(vec![
        BindingPlan::new(&spec, &json!({}), false).unwrap(),
    ]));
    destination.transact(&["{}"]);
    let counts = destination.transact(&[r#"{"id":"value","v":1}"#]);
    assert_eq!(counts.loaded, 1);
    assert_eq!(destination.documents(), [r#"{"id":"value","v":1}"#]);
}

#[test]
fn a_document_equal_to_the_loaded_one_is_left_out() {
    let stored = r#"{"id":1,"v":{"a":[1,2.50],"b":"\u00e9"}}"#;
    let respelled = r#"{"v":{"b":"é","a":[1.0,25e-1]}, "id":1}"#;
    let mut destination = Destination::new(plan(&json!({}), false));
    destination.transact(&[stored]);
    for equal in [stored, respelled] {
        let counts = destination.transact(&[equal]);
        assert_eq!(
            (counts.loaded, counts.stored, counts.skipped),
            (1, 0, 1),
            "{equal}"
        );
    }
    let counts = destination.transact(&[r#"{"id":1,"v":{"a":[2.50,1],"b":"é"}}"#]);
    assert_eq!((counts.stored, counts.skipped), (1, 0));

    let mut plan = plan(&json!({}), false);
    Arc::get_mut(&mut plan).unwrap().bindings[0].skip_equal = false;
    let mut destination = Destination::new(plan);
    destination.transact(&[stored]);
    assert_eq!(
        destination.transact(&[stored]).stored,
        1,
        "values must be written again"
    );
}

#[test]
fn values_are_those_of_the_reduced_document() {
    let schema = json!({"reduce": {"strategy": "merge"}, "properties": {"v": {"reduce": {"strategy": "sum"}}}});
    let mut destination = Destination::new(plan(&schema, false));
    destination.transact(&[r#"{"id":1,"v":9007199254740992}"#]);
    let mut combiner = destination.combiner();
    combiner.add(0, br#"{"id":1,"v":1}"#).unwrap();
    destination.asked = 0;
    destination.load(&mut combiner, true);
    let batch = combiner.drain().next_batch().unwrap().unwrap();
    let store = stores(&batch.rows).next().unwrap().unwrap();
    assert!(store.exists);
    let values = tidegate_wit::tuple::decode(store.values).unwrap();
    assert_eq!(
        values,
        [tidegate_wit::tuple::Element::Int(9_007_199_254_740_993)]
    );
}

#[test]
fn without_its_field_the_document_is_not_stored() {
    let mut spec = binding();
    spec.document = None;
    let plan = plan_of(vec![BindingPlan::new(&spec, &json!({}), false).unwrap()]);
    let mut destination = Destination::new(plan);
    destination.transact(&[r#"{"id":1,"v":2}"#]);
    assert_eq!(destination.documents(), [""]);
    // The destination can then only say that the key exists.
    let counts = destination.transact(&[r#"{"id":1,"v":2}"#]);
    assert_eq!((counts.loaded, counts.stored), (1, 1));

    let error = BindingPlan::new(&spec, &summing(), false).unwrap_err();
    assert_eq!(error.problem, PlanProblem::Document);
}
