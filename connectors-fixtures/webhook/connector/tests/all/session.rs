//! Sessions: what is sent, in which order, under which keys, and what answers do.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_boilerplate::testing::{Document, document, tombstone};
use tidegate_boilerplate::{Authority, ConnectorError, ErrorKind, Guarantee, runtime};

use crate::common::{Webhook, animal, animals, opened, opened_with};
use crate::receiver::{Answer, Received, Receiver};

const KEY: &str = "idempotency-key";

fn transact(harness: &mut Webhook, ids: impl IntoIterator<Item = i64>, checkpoint: &str) {
    let documents: Vec<_> = ids.into_iter().map(animal).collect();
    harness.transact(&documents, checkpoint).unwrap();
}

/// Runs a transaction that is to fail.
fn fails(receiver: &Receiver, more: Value, ids: &[i64]) -> ConnectorError {
    let documents: Vec<_> = ids.iter().copied().map(animal).collect();
    opened(receiver, more)
        .transact(&documents, "one")
        .unwrap_err()
}

/// Returns the ids of a request's documents.
fn ids(request: &Received) -> Vec<i64> {
    let documents: Vec<Value> = serde_json::from_str(&request.body).unwrap();
    documents
        .iter()
        .map(|it| it["id"].as_i64().unwrap())
        .collect()
}

fn keys(requests: &[Received]) -> Vec<String> {
    requests.iter().map(|it| it.headers[KEY].clone()).collect()
}

/// Returns a server that gives these answers, and then accepts everything.
fn answering(answers: impl IntoIterator<Item = Answer>) -> Receiver {
    let mut answers: Vec<_> = answers.into_iter().collect();
    answers.reverse();
    Receiver::start(move |_| answers.pop().unwrap_or(Answer::status(200)))
}

#[test]
fn documents_are_sent_in_key_order_and_in_batches() {
    let receiver = Receiver::accepting();
    let headers = json!({"Authorization": "Bearer t0ken", "X-Team": "a"});
    let more = json!({"batchDocuments": 3, "headers": headers, "method": "PUT"});
    let mut harness = opened(&receiver, more);
    let again = harness.open().unwrap();
    assert_eq!(again.authority, Authority::Log);
    assert_eq!(again.guarantee, Guarantee::AtLeastOnce);
    transact(&mut harness, [5, 1, 7, 3, 2, 4, 6], "one");

    let received = receiver.received();
    let sent: Vec<_> = received.iter().map(ids).collect();
    assert_eq!(sent, [vec![1, 2, 3], vec![4, 5, 6], vec![7]]);
    let first = &received[0];
    assert_eq!(
        first.body,
        r#"[{"id":1,"name":"x"},{"id":2,"name":"x"},{"id":3,"name":"x"}]"#
    );
    assert_eq!((&*first.method, &*first.path), ("PUT", "/hooks/animals"));
    for (name, value) in [
        ("authorization", "Bearer t0ken"),
        ("x-team", "a"),
        ("content-type", "application/json"),
    ] {
        assert_eq!(first.headers[name], value);
    }
}

#[test]
fn a_batch_holds_as_many_bytes_as_it_may() {
    let receiver = Receiver::accepting();
    let one = r#"{"id":1,"name":"x"}"#.len();
    // Brackets and commas are a byte for each document, and one.
    let mut harness = opened(&receiver, json!({"batchBytes": 2 * (one + 1)}));
    transact(&mut harness, 1..=5, "one");
    let sent: Vec<_> = receiver.received().iter().map(ids).collect();
    assert_eq!(sent, [vec![1, 2], vec![3, 4], vec![5]]);
}

#[test]
fn tombstones_and_selected_fields_are_sent_and_an_empty_transaction_is_not() {
    let receiver = Receiver::accepting();
    let mut fields = animals("/fields");
    fields.document = None;
    let mut harness = opened_with(&receiver, json!({}), vec![animals("/whole"), fields]);
    harness.transact(&[], "zero").unwrap();
    assert_eq!(receiver.received(), []);

    let gone = json!({"id": 1, "_meta": {"op": "d"}});
    let of_fields = json!({"id": 2, "name": "cat", "age": 3});
    let documents = [tombstone(0, gone.clone()), document(1, of_fields)];
    harness.transact(&documents, "one").unwrap();
    let received = receiver.received();
    let sent: Vec<_> = received.iter().map(|it| (&*it.path, &*it.body)).collect();
    let whole = format!("[{gone}]");
    assert_eq!(
        sent,
        [
            ("/hooks/whole", &*whole),
            ("/hooks/fields", r#"[{"id":2,"name":"cat"}]"#)
        ]
    );
}

#[test]
fn a_replay_sends_the_same_bytes_under_the_same_keys() {
    let receiver = Receiver::accepting();
    let mut harness = opened(&receiver, json!({"batchDocuments": 2}));
    transact(&mut harness, 1..=5, "one");

    // A crash in the second transaction, before and after all of it was sent.
    let rows: Vec<_> = (1..=5).map(|id| harness.row(&animal(id))).collect();
    harness.load_and_store(rows).unwrap();
    harness.open().unwrap();
    let rows: Vec<_> = (1..=5).map(|id| harness.row(&animal(id))).collect();
    harness.load_and_store(rows).unwrap();
    let checkpoint = harness.checkpoint.clone();
    harness.start_commit("two").unwrap();
    harness.checkpoint = checkpoint;
    harness.open().unwrap();
    transact(&mut harness, 1..=5, "two");

    let received = receiver.received();
    let (first, rest) = received.split_at(3);
    let (stored, rest) = rest.split_at(2);
    let (committed, replayed) = rest.split_at(3);
    assert_eq!(
        stored,
        &committed[..2],
        "the last batch waits for the commit"
    );
    assert_eq!(committed, replayed);
    let mut distinct = [keys(first), keys(replayed)].concat();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 6, "transactions of equal documents differ");
}

#[test]
fn what_may_pass_is_tried_again_under_the_same_key() {
    let dated = ("Retry-After", "Thu, 01 Jan 1970 00:00:00 GMT".to_owned());
    let receiver = answering([
        Answer::Status(429, vec![("Retry-After", "7".to_owned())], String::new()),
        Answer::Status(503, vec![dated], String::new()),
        Answer::status(502),
        Answer::HangUp,
        Answer::Silence,
    ]);
    let mut harness = opened(&receiver, json!({}));
    runtime::waited();
    transact(&mut harness, [1], "one");
    let seconds = Duration::from_secs;
    let pauses = [seconds(7), seconds(0), seconds(2), seconds(4), seconds(8)];
    assert_eq!(runtime::waited(), pauses);
    let received = receiver.received();
    assert_eq!(received.len(), 6);
    for request in &received {
        assert_eq!(request.body, received[0].body);
        assert_eq!(request.headers[KEY], received[0].headers[KEY]);
    }
}

#[test]
fn attempts_end_and_so_does_patience() {
    let receiver = Receiver::start(|_| Answer::status(503));
    let error = fails(&receiver, json!({}), &[1]);
    assert_eq!((error.kind, error.binding), (ErrorKind::Transient, Some(0)));
    let want = format!(
        "{} answers 503 Service Unavailable (8 attempts)",
        receiver.address()
    );
    assert_eq!(error.message, want);
    assert_eq!(receiver.received().len(), 8);

    let hour = || vec![("Retry-After", "3600".to_owned())];
    let receiver = Receiver::start(move |_| Answer::Status(429, hour(), String::new()));
    let error = fails(&receiver, json!({}), &[1]);
    assert_eq!(error.kind, ErrorKind::Transient);
    assert!(error.message.contains("pause of 3600s"), "{error}");
    assert_eq!(receiver.received().len(), 1);
}

#[test]
fn what_would_not_pass_is_not_tried_again() {
    let cases = [
        (401, ErrorKind::Auth, "headers"),
        (403, ErrorKind::Auth, "headers"),
        (404, ErrorKind::Config, "address"),
        (307, ErrorKind::Config, "redirect"),
    ];
    for (status, kind, words) in cases {
        let elsewhere = Receiver::accepting();
        let location = vec![("Location", elsewhere.url())];
        let said = "no Bearer t0ken here, nor t0ken".to_owned();
        let answer = Answer::Status(status, location, said);
        let receiver = Receiver::start(move |_| answer.clone());
        let secret = json!({"headers": {"Authorization": "Bearer t0ken"}});
        let error = fails(&receiver, secret, &[1, 2]);
        assert_eq!(error.kind, kind, "{status}");
        assert!(error.message.contains(words), "{error}");
        assert!(!error.message.contains("t0ken"), "{error}");
        assert!(!error.message.contains("/hooks"), "{error}");
        assert_eq!(receiver.received().len(), 1, "{status}");
        assert_eq!(elsewhere.received(), [], "no redirect is followed");
    }
}

/// Returns a server that refuses requests by their documents.
fn refusing(status: u16, refuses: impl Fn(&[i64]) -> bool + Send + 'static) -> Receiver {
    Receiver::start(move |request| match refuses(&ids(request)) {
        true => Answer::Status(status, vec![], "not so".to_owned()),
        false => Answer::status(200),
    })
}

#[test]
fn a_batch_that_is_too_large_is_halved_until_it_is_not() {
    let receiver = refusing(413, |ids| ids.len() > 2);
    let mut harness = opened(&receiver, json!({}));
    transact(&mut harness, 1..=6, "one");
    let sent = |requests: &[Received]| requests.iter().map(ids).collect::<Vec<_>>();
    let want = [
        vec![1, 2, 3, 4, 5, 6],
        vec![1, 2, 3],
        vec![1],
        vec![2, 3],
        vec![4, 5, 6],
        vec![4],
        vec![5, 6],
    ];
    assert_eq!(sent(&receiver.received()), want);
    // A replay cuts where the first run cut.
    harness.checkpoint = None;
    harness.open().unwrap();
    transact(&mut harness, 1..=6, "one");
    let received = receiver.received();
    assert_eq!(received[..7], received[7..]);

    let receiver = refusing(413, |_| true);
    let error = fails(&receiver, json!({}), &[4, 5]);
    assert_eq!(error.kind, ErrorKind::Document);
    assert_eq!(error.key.as_deref(), Some("[4]"));
    assert!(error.message.contains("19 bytes"), "{error}");
}

#[test]
fn a_document_that_is_refused_is_named() {
    for status in [400, 422] {
        let receiver = refusing(status, |ids| ids.contains(&5));
        let error = fails(&receiver, json!({}), &[1, 2, 3, 4, 5, 6]);
        assert_eq!((error.kind, error.binding), (ErrorKind::Document, Some(0)));
        assert_eq!(error.key.as_deref(), Some("[5]"));
        assert!(error.message.contains("not so"), "{error}");
        let taken: Vec<_> = receiver.received();
        let taken = taken
            .iter()
            .filter(|it| it.status == Some(200))
            .flat_map(ids);
        assert_eq!(taken.collect::<Vec<_>>(), [1, 2, 3, 4]);
    }
}

#[test]
fn nothing_is_committed_that_was_not_accepted() {
    let receiver = answering([Answer::status(200), Answer::status(404)]);
    let mut harness = opened(&receiver, json!({"batchDocuments": 1}));
    let documents: Vec<Document> = (1..=2).map(animal).collect();
    harness.transact(&documents, "one").unwrap_err();
    assert_eq!(harness.checkpoint, None);
    harness.open().unwrap();
    transact(&mut harness, 1..=2, "one");
    let received = receiver.received();
    assert_eq!(
        received.iter().map(ids).collect::<Vec<_>>(),
        [[1], [2], [1], [2]]
    );
    assert_eq!(keys(&received[..2]), keys(&received[2..]));
}
