//! Work grows with the documents, however they are spread over keys. It is
//! counted in bytes parsed, which no other program can disturb.

use super::*;

/// Combines some documents; returns the work.
fn work(schema: &Schema, documents: impl Iterator<Item = String>) -> u64 {
    let mut destination = Destination::new(plan(schema, false));
    destination.max_keys = vec![None];
    let mut combiner = destination.combiner();
    for document in documents {
        combiner.add(0, document.as_bytes()).unwrap();
    }
    destination.load(&mut combiner, true);
    let mut drain = combiner.drain();
    while drain.next_batch().unwrap().is_some() {}
    drain.work()
}

#[test]
fn work_is_linear() {
    let merge = |strategy: &str| {
        json!({"reduce": {"strategy": "merge"}, "properties": {"v": {
            "reduce": {"strategy": strategy}, "additionalProperties": {"reduce": {"strategy": "sum"}}}}})
    };
    type Document = fn(usize, usize) -> String;
    let cases: [(&str, Schema, Document); 5] = [
        ("a key a document", json!({}), |at, _| {
            format!(r#"{{"id":{at},"v":1}}"#)
        }),
        ("one key, replaced", json!({}), |at, _| {
            format!(r#"{{"id":1,"v":{at}}}"#)
        }),
        ("one key, a sum", merge("sum"), |at, _| {
            format!(r#"{{"id":1,"v":{at}}}"#)
        }),
        ("one key, a growing list", merge("append"), |at, _| {
            format!(r#"{{"id":1,"v":[{at}]}}"#)
        }),
        ("one key, a growing object", merge("merge"), |at, count| {
            format!(r#"{{"id":1,"v":{{"p{}":1}}}}"#, at % (count / 2))
        }),
    ];
    const COUNT: usize = 3000;
    for (name, schema, document) in cases {
        let of = |count: usize| work(&schema, (0..count).map(|at| document(at, count)));
        let (once, four_times) = (of(COUNT), of(4 * COUNT));
        let ratio = four_times as f64 / once as f64;
        assert!(
            ratio <= 4.5,
            "{name}: {once} -> {four_times} bytes, {ratio:.2} times"
        );
    }
}
