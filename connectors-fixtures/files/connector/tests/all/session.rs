//! Sessions: what is committed and when it is seen, and what a crash leaves.

use std::fs;

use serde_json::{Value, json};
use tidegate_boilerplate::testing::{Harness, document, tombstone};
use tidegate_boilerplate::{ErrorKind, Fence, KeyRange, Protocol};

use crate::common::{Fixture, INTEGER, animal, animals, created, folder, lines, opened};

/// Runs a transaction up to its commit.
fn commit(fixture: &mut Fixture, ids: &[i64], checkpoint: &str) {
    let harness = &mut fixture.harness;
    let rows = ids.iter().map(|id| harness.row(&animal(*id, "x")));
    let rows = rows.collect();
    harness.load_and_store(rows).unwrap();
    harness.start_commit(checkpoint).unwrap();
}

fn ids(fixture: &Fixture) -> Vec<i64> {
    let lines = fixture.json_lines("animals");
    lines.iter().map(|it| it["id"].as_i64().unwrap()).collect()
}

fn sequences(fixture: &Fixture) -> Vec<u64> {
    let manifests = fixture.manifests();
    let sequence = |it: &Value| it["sequence"].as_u64().unwrap();
    manifests.iter().map(sequence).collect()
}

#[test]
fn rows_are_there_once_they_are_acknowledged_and_not_before() {
    let mut fixture = lines();
    commit(&mut fixture, &[1, 2], "one");
    assert_eq!(fixture.files_below("animals"), [""; 0]);
    assert_eq!(fixture.manifests(), [json!(null); 0]);
    fixture.harness.acknowledge().unwrap();
    let path = "animals/v0/00000000000000000001-00000.ndjson";
    assert_eq!(fixture.files_below("animals"), [path]);
    let manifest = &fixture.manifests()[0];
    let file = json!({
        "path": path, "folder": "animals", "backfill": 0, "rows": 2,
        "bytes": fs::metadata(fixture.path.join(path)).unwrap().len(),
    });
    assert_eq!(manifest["sequence"], 1);
    assert_eq!(manifest["files"], json!([file]));
    assert_eq!(ids(&fixture), [1, 2]);
    assert_eq!(fixture.harness.state, json!({"sequence": 1}));
    assert_eq!(fixture.names(".tidegate"), ["staged", "task.json"]);
}

#[test]
fn a_transaction_without_documents_makes_no_file() {
    let mut fixture = lines();
    fixture.harness.transact(&[], "one").unwrap();
    assert_eq!(fixture.harness.state, Value::Null);
    fixture
        .harness
        .transact(&[animal(1, "ant")], "two")
        .unwrap();
    fixture.harness.transact(&[], "three").unwrap();
    fixture
        .harness
        .transact(&[animal(2, "bee")], "four")
        .unwrap();
    assert_eq!(sequences(&fixture), [1, 2]);
}

#[test]
fn each_change_of_a_key_is_a_row_and_so_is_a_deletion() {
    let mut fixture = lines();
    let harness = &mut fixture.harness;
    harness.transact(&[animal(1, "ant")], "one").unwrap();
    harness.transact(&[animal(1, "bee")], "two").unwrap();
    let gone = json!({"id": 1, "_meta": {"op": "d"}});
    harness
        .transact(&[tombstone(0, gone.clone())], "three")
        .unwrap();
    let want = [
        json!({"id": 1, "name": "ant"}),
        json!({"id": 1, "name": "bee"}),
        gone,
    ];
    assert_eq!(fixture.json_lines("animals"), want);
}

#[test]
fn a_transaction_of_many_bindings_has_one_manifest() {
    let names: Vec<_> = (0..50).map(|it| format!("f{it}")).collect();
    let bindings = names
        .iter()
        .map(|name| folder(name, &[("id", INTEGER)], &[]));
    let mut fixture = opened(json!({"format": "csv"}), bindings.collect());
    let documents: Vec<_> = (0..50)
        .map(|binding| document(binding, json!({"id": binding})))
        .collect();
    fixture.harness.transact(&documents, "one").unwrap();
    fixture.harness.transact(&documents[7..9], "two").unwrap();
    let manifests = fixture.manifests();
    assert_eq!(manifests[0]["files"].as_array().unwrap().len(), 50);
    assert_eq!(manifests[1]["files"].as_array().unwrap().len(), 2);
    assert_eq!(fixture.committed("f7").len(), 2);
}

#[test]
fn a_crash_before_the_commit_leaves_nothing() {
    let mut fixture = lines();
    fixture
        .harness
        .transact(&[animal(1, "ant")], "one")
        .unwrap();
    let rows = vec![fixture.harness.row(&animal(2, "bee"))];
    fixture.harness.load_and_store(rows).unwrap();
    assert_eq!(fixture.files_below(".tidegate/staged").len(), 1);
    fixture.harness.open().unwrap();
    assert_eq!(fixture.files_below(".tidegate/staged"), [""; 0]);
    fixture
        .harness
        .transact(&[animal(3, "cat")], "two")
        .unwrap();
    assert_eq!(ids(&fixture), [1, 3]);
}

#[test]
fn a_patch_that_the_host_did_not_commit_is_as_if_it_had_not_been() {
    let mut fixture = lines();
    fixture
        .harness
        .transact(&[animal(1, "ant")], "one")
        .unwrap();
    let state = fixture.harness.state.clone();
    commit(&mut fixture, &[2], "two");
    fixture.harness.state = state;
    fixture.harness.patches.clear();
    fixture.harness.open().unwrap();
    fixture.harness.recover().unwrap();
    assert_eq!(fixture.files_below(".tidegate/staged"), [""; 0]);
    commit(&mut fixture, &[3], "two again");
    fixture.harness.acknowledge().unwrap();
    assert_eq!(
        (ids(&fixture), sequences(&fixture)),
        (vec![1, 3], vec![1, 2])
    );
}

/// Stops an acknowledgement after each of its steps, and lets the next session
/// recover.
#[test]
fn a_crash_at_any_step_of_an_acknowledgement_is_recovered_from() {
    for step in ["nothing", "folders", "one file", "all files", "manifest"] {
        let bindings = vec![animals(), folder("other", &[("id", INTEGER)], &[])];
        let mut fixture = opened(json!({"format": "ndjson"}), bindings);
        let harness = &mut fixture.harness;
        let documents = [animal(1, "ant"), document(1, json!({"id": 2}))];
        let rows = documents.iter().map(|it| harness.row(it)).collect();
        harness.load_and_store(rows).unwrap();
        harness.start_commit("one").unwrap();
        let pending = harness.state["pending"].clone();
        let patches = harness.patches.clone();
        let files = pending["manifest"]["files"].as_array().unwrap();
        let named = |count: usize| {
            for (file, staged) in files.iter().zip(pending["staged"].as_array().unwrap()) {
                let path = fixture.path.join(file["path"].as_str().unwrap());
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                if files[..count].contains(file) {
                    fs::rename(fixture.path.join(staged.as_str().unwrap()), path).unwrap();
                }
            }
        };
        match step {
            "nothing" => {}
            "folders" => named(0),
            "one file" => named(1),
            "all files" => named(2),
            _ => {
                let acknowledge = json!({"patches": patches}).to_string();
                harness.protocol().acknowledge(&acknowledge).unwrap();
            }
        }
        for _ in 0..2 {
            fixture.harness.open().unwrap();
            fixture.harness.patches = patches.clone();
            fixture.harness.recover().unwrap();
            assert_eq!(ids(&fixture), [1], "{step}");
            assert_eq!(fixture.json_lines("other").len(), 1, "{step}");
            assert_eq!(sequences(&fixture), [1], "{step}");
        }
        fixture.harness.transact(&documents, "two").unwrap();
        assert_eq!(ids(&fixture), [1, 1], "{step}");
        assert_eq!(fixture.files_below(".tidegate/staged"), [""; 0], "{step}");
    }
}

#[test]
fn an_older_session_can_take_no_further_step() {
    for step in ["store", "start-commit", "acknowledge"] {
        let mut fixture = lines();
        let harness = &mut fixture.harness;
        let rows = vec![harness.row(&animal(1, "ant"))];
        if step != "store" {
            harness.load_and_store(rows.clone()).unwrap();
        }
        if step == "acknowledge" {
            harness.start_commit("one").unwrap();
        }
        // Another host takes over, from what is committed.
        let mut other = Harness::of(files_connector::FilesConnector, harness.spec.clone());
        other.fence = Fence {
            epoch: 2,
            session: 0,
        };
        other.state = harness.state.clone();
        other.open().unwrap();
        let error = match step {
            "store" => harness.store(0, &rows).unwrap_err(),
            "start-commit" => harness.start_commit("one").unwrap_err(),
            _ => harness.acknowledge().unwrap_err(),
        };
        assert_eq!(error.kind, ErrorKind::Transient, "{step}");
        if step != "start-commit" {
            assert!(
                error.message.contains("1.1 is fenced off"),
                "{step}: {error}"
            );
            assert!(error.message.contains("2.1"), "{step}: {error}");
        }
        other.patches = harness.patches.clone();
        other.recover().unwrap();
        let committed = usize::from(step == "acknowledge");
        assert_eq!(ids(&fixture).len(), committed, "{step}");
        // Nor does it come in again.
        let error = fixture.harness.open().unwrap_err();
        assert!(error.message.contains("is refused"), "{error}");
    }
}

#[test]
fn files_of_another_filling_are_told_by_the_counter() {
    let mut fixture = lines();
    fixture
        .harness
        .transact(&[animal(1, "ant")], "one")
        .unwrap();
    fixture.harness.spec.bindings[0].backfill = 1;
    assert_eq!(fixture.harness.apply().unwrap(), [""; 0]);
    fixture.harness.open().unwrap();
    fixture
        .harness
        .transact(&[animal(1, "ant")], "two")
        .unwrap();
    assert_eq!(
        fixture.committed("animals"),
        [
            "animals/v0/00000000000000000001-00000.ndjson",
            "animals/v1/00000000000000000002-00000.ndjson",
        ]
    );
    assert_eq!(fixture.manifests()[1]["files"][0]["backfill"], 1);
}

#[test]
fn partitions_are_named_by_the_time_of_the_commit() {
    for (partition, length) in [("daily", 10), ("hourly", 13)] {
        let config = json!({"format": "ndjson", "partition": partition});
        let mut fixture = opened(config, vec![animals()]);
        fixture
            .harness
            .transact(&[animal(1, "ant")], "one")
            .unwrap();
        let manifest = &fixture.manifests()[0];
        let committed_at = manifest["committedAt"].as_str().unwrap();
        let named = committed_at[..length].replace(['-', 'T'], "/");
        let path = format!("animals/v0/{named}/00000000000000000001-00000.ndjson");
        assert_eq!(manifest["files"][0]["path"], path);
        assert_eq!(ids(&fixture), [1]);
    }
}

#[test]
fn large_transactions_are_cut_into_files() {
    const DOCUMENT_BYTES: usize = 30 << 20;
    let mut fixture = lines();
    let text = "x".repeat(DOCUMENT_BYTES);
    for id in 0..6 {
        let mut row = fixture.harness.row(&animal(id, "x"));
        row.document = format!("{{\"id\":{id},\"name\":\"{text}\"}}");
        fixture.harness.store(0, &[row]).unwrap();
    }
    fixture.harness.start_commit("one").unwrap();
    fixture.harness.acknowledge().unwrap();
    let manifest = &fixture.manifests()[0];
    let rows: Vec<_> = manifest["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["rows"].as_u64().unwrap())
        .collect();
    assert_eq!(rows, [5, 1]);
    assert_eq!(
        fixture.names("animals/v0"),
        [
            "00000000000000000001-00000.ndjson",
            "00000000000000000001-00001.ndjson"
        ]
    );
}

#[test]
fn a_directory_that_is_not_the_one_of_before_is_refused() {
    let emptied = |fixture: &mut Fixture| fs::remove_dir_all(&fixture.path).unwrap();
    let applied_anew = |fixture: &mut Fixture| {
        fs::remove_dir_all(&fixture.path).unwrap();
        fixture.harness.apply().unwrap();
    };
    let state_lost = |fixture: &mut Fixture| fixture.harness.state = Value::Null;
    let other_task = |fixture: &mut Fixture| fixture.harness.spec.task = "acme/other".to_owned();
    let sharded = |fixture: &mut Fixture| {
        fixture.harness.range = KeyRange {
            begin: 0,
            end: 0x7fff_ffff,
        };
    };
    type Change<'a> = &'a dyn Fn(&mut Fixture);
    let cases: [(Change<'_>, &str); 5] = [
        (&emptied, "emptied or replaced"),
        (
            &applied_anew,
            "which was written: it was emptied or replaced",
        ),
        (&state_lost, "its data directory was lost"),
        (&other_task, "belongs to task acme/task"),
        (&sharded, "by one shard"),
    ];
    for (change, want) in cases {
        let mut fixture = lines();
        fixture
            .harness
            .transact(&[animal(1, "ant")], "one")
            .unwrap();
        change(&mut fixture);
        let error = fixture.harness.open().unwrap_err();
        assert!(error.message.contains(want), "{want}: {error}");
        assert_ne!(error.kind, ErrorKind::Transient, "{error}");
    }
}

#[test]
fn somebody_elses_file_is_not_overwritten() {
    let mut fixture = lines();
    commit(&mut fixture, &[1], "one");
    let path = fixture.path.join("animals/v0");
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("00000000000000000001-00000.ndjson"), "mine").unwrap();
    let error = fixture.harness.acknowledge().unwrap_err();
    assert!(error.message.contains("move it away"), "{error}");
    assert_eq!(fixture.manifests(), [json!(null); 0]);
}

#[test]
fn applying_claims_the_directory_once() {
    let mut fixture = created(json!({"format": "csv"}), vec![animals()]);
    let want = format!("make directory {:?} that of task acme/task", fixture.path);
    assert_eq!(fixture.harness.dry_run().unwrap().join("\n"), want);
    assert!(!fixture.path.exists());
    assert_eq!(fixture.harness.apply().unwrap(), [want]);
    assert_eq!(fixture.harness.apply().unwrap(), [""; 0]);
    fixture.harness.open().unwrap();
    fixture.harness.apply().unwrap();
    fixture.harness.fence.session -= 1;
    assert!(
        fixture.harness.open().is_err(),
        "the fence outlives an apply"
    );
}

#[test]
fn uploads_are_paced_unless_the_spec_has_a_schedule() {
    let cases = [
        (json!({"format": "csv"}), None, Some("5m")),
        (json!({"format": "csv", "uploadInterval": "0s"}), None, None),
        (
            json!({"format": "csv", "uploadInterval": "1h"}),
            None,
            Some("1h"),
        ),
        (
            json!({"format": "csv", "uploadInterval": "1h"}),
            Some(json!({"baseInterval": "4h"})),
            None,
        ),
    ];
    for (config, schedule, want) in cases {
        let mut fixture = created(config.clone(), vec![animals()]);
        fixture.harness.spec.sync_schedule = schedule;
        fixture.harness.apply().unwrap();
        let pacing = fixture.harness.open().unwrap().pacing;
        let frequency = pacing.map(|it| it.schedule["syncFrequency"].clone());
        assert_eq!(frequency, want.map(Value::from), "{config}");
    }
}
