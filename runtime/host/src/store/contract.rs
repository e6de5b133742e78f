//! What every implementation of [`Store`] must do; run against each of them.

use super::{KEY_BYTES_MAX, Store, StoreError, VALUE_BYTES_MAX, Versioned};
use futures::future::{BoxFuture, join_all};

/// Opens the same store again, after the one before was dropped.
pub(crate) type Open<'a> = &'a (dyn Fn() -> BoxFuture<'a, Box<dyn Store>> + Sync);

/// Runs the whole suite.
pub(crate) async fn all(open: Open<'_>) {
    let store = open().await;
    puts_and_gets(store.as_ref()).await;
    refuses_other_revisions(store.as_ref()).await;
    lists(store.as_ref()).await;
    limits(store.as_ref()).await;
    races_have_one_winner(store.as_ref()).await;
    // Only one may have it open.
    drop(store);
    survives_reopening(open).await;
}

async fn put(store: &dyn Store, key: &str, value: &str, expected: Option<u64>) -> u64 {
    let put = store.put(key, value.as_bytes().to_vec(), expected).await;
    put.expect("it writes")
}

async fn get(store: &dyn Store, key: &str) -> Option<Versioned> {
    store.get(key).await.expect("it reads")
}

async fn puts_and_gets(store: &dyn Store) {
    assert_eq!(get(store, "get/a").await, None);
    let first = put(store, "get/a", "one", None).await;
    let second = put(store, "get/a", "", Some(first)).await;
    assert!(second > first);
    let want = Versioned {
        value: Vec::new(),
        revision: second,
    };
    assert_eq!(get(store, "get/a").await, Some(want));
    put(store, "get/b", "other", None).await;
    put(store, "get/a", "three", Some(second)).await;
    assert_eq!(get(store, "get/a").await.expect("there").value, b"three");
}

async fn refuses_other_revisions(store: &dyn Store) {
    let first = put(store, "conflict", "one", None).await;
    let second = put(store, "conflict", "two", Some(first)).await;
    for wrong in [None, Some(first), Some(second + 1), Some(0)] {
        match store.put("conflict", b"x".to_vec(), wrong).await {
            Err(StoreError::Conflict {
                key,
                expected,
                actual,
            }) => {
                assert_eq!(
                    (key.as_str(), expected, actual),
                    ("conflict", wrong, Some(second))
                );
            }
            result => panic!("{wrong:?}: {result:?}"),
        }
    }
    match store.put("absent", Vec::new(), Some(second)).await {
        Err(StoreError::Conflict { actual: None, .. }) => {}
        result => panic!("{result:?}"),
    }
    assert_eq!(get(store, "absent").await, None);
    assert_eq!(get(store, "conflict").await.expect("there").value, b"two");
}

async fn lists(store: &dyn Store) {
    for key in [
        "list/b", "list/a/2", "list/a", "list/a/1", "list0", "list/é", "lisu",
    ] {
        put(store, key, "x", None).await;
    }
    struct Case {
        prefix: &'static str,
        want: &'static [&'static str],
    }
    for case in [
        Case {
            prefix: "list/",
            want: &["list/a", "list/a/1", "list/a/2", "list/b", "list/é"],
        },
        Case {
            prefix: "list/a/",
            want: &["list/a/1", "list/a/2"],
        },
        Case {
            prefix: "list/b",
            want: &["list/b"],
        },
        Case {
            prefix: "list/c",
            want: &[],
        },
    ] {
        let keys = store.list(case.prefix).await.expect("it lists");
        assert_eq!(keys, case.want, "{}", case.prefix);
    }
    let all = store.list("").await.expect("it lists");
    assert!(all.is_sorted() && all.iter().any(|key| key == "lisu"));
}

async fn limits(store: &dyn Store) {
    let long = "k".repeat(KEY_BYTES_MAX + 1);
    for key in ["", &long] {
        let result = store.put(key, Vec::new(), None).await;
        assert!(matches!(result, Err(StoreError::Key { .. })), "{result:?}");
        let result = store.get(key).await;
        assert!(matches!(result, Err(StoreError::Key { .. })), "{result:?}");
    }
    put(store, &long[1..], "x", None).await;

    let result = store.put("large", vec![7; VALUE_BYTES_MAX + 1], None).await;
    assert!(
        matches!(result, Err(StoreError::ValueTooLong { .. })),
        "{result:?}"
    );
    assert_eq!(get(store, "large").await, None);
    let put = store.put("large", vec![7; VALUE_BYTES_MAX], None).await;
    let revision = put.expect("it writes");
    assert!(get(store, "large").await.expect("there").value == vec![7; VALUE_BYTES_MAX]);
    let put = store.put("large", vec![8], Some(revision)).await;
    put.expect("a value can become smaller");
}

async fn races_have_one_winner(store: &dyn Store) {
    let puts = (0..20).map(|racer| store.put("race", vec![racer], None));
    let won: Vec<_> = join_all(puts)
        .await
        .into_iter()
        .filter(Result::is_ok)
        .collect();
    assert_eq!(won.len(), 1);

    // Whoever reads, judges and writes again after a conflict loses nothing.
    let increments = (0..20).map(|_| async {
        loop {
            let found = get(store, "count").await;
            let (count, revision) = match found {
                Some(found) => (found.value[0], Some(found.revision)),
                None => (0, None),
            };
            match store.put("count", vec![count + 1], revision).await {
                Ok(_) => return,
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    });
    join_all(increments).await;
    assert_eq!(get(store, "count").await.expect("there").value, [20]);
}

async fn survives_reopening(open: Open<'_>) {
    let mut revision = None;
    for round in 0..4 {
        let store = open().await;
        let found = get(store.as_ref(), "reopen").await;
        assert_eq!(found.map(|found| found.revision), revision);
        revision = Some(put(store.as_ref(), "reopen", &format!("{round}"), revision).await);
    }
    let store = open().await;
    assert_eq!(
        get(store.as_ref(), "reopen").await.expect("there").value,
        b"3"
    );
}
