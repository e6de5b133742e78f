//! `materialize-files` in a directory that somebody reads all the while.
//!
//! ```text
//! lines -> tidegate, killed now and then -> files and manifests <- a reader, transaction by transaction
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_tests::catalog::{Catalog, Task};
use tidegate_tests::document::{SALES, sale_schema, sales};
use tidegate_tests::files::{Lines, Reader};
use tidegate_tests::fold::Fold;
use tidegate_tests::host::{Finished, RUN_MAX};
use tidegate_tests::prefix::Prefix;
use tidegate_tests::seed;
use tidegate_tests::workspace::Workspace;

const TASK: &str = "acmeCo/files";

/// How often a host is killed.
const KILLS: usize = 30;

/// The pause between looks of the reader: shorter than a commit.
const PAUSE: Duration = Duration::from_millis(1);

fn task(config: Value) -> Task {
    let mut all = json!({ "path": "out", "format": "ndjson", "uploadInterval": "0s" });
    for (name, value) in config.as_object().into_iter().flatten() {
        all[name] = value.clone();
    }
    Task::new("materialize-files", all)
}

fn folder(source: &str, folder: &str) -> Value {
    json!({ "source": source, "resource": { "folder": folder } })
}

/// Returns a catalog with all sales in two folders.
fn twice(config: Value) -> Catalog {
    let task = task(config)
        .binding(folder(SALES, "one"))
        .binding(folder(SALES, "two"));
    Catalog::new()
        .collection(SALES, &["/id"], sale_schema())
        .task(TASK, task)
}

fn sums() -> Fold {
    Fold::sum(&["id"], &["n", "revenue"])
}

/// Another program that reads the directory all the while.
struct Watch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64, String>>,
}

impl Watch {
    /// Starts to read: each transaction must be whole, and with those before it be
    /// what some first lines come to.
    fn start(dir: PathBuf, lines: Arc<[String]>) -> Watch {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || watch(&dir, lines, &stopped));
        Watch { stop, thread }
    }

    /// Ends it; returns how many transactions it has read.
    #[track_caller]
    fn finish(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.join().expect("a check returns its failures") {
            Ok(transactions) => transactions,
            Err(message) => panic!("an outside reader saw: {message}"),
        }
    }
}

fn watch(dir: &Path, lines: Arc<[String]>, stop: &AtomicBool) -> Result<u64, String> {
    let (mut one, mut two) = (sums(), sums());
    let mut prefix = Prefix::new(lines, sums());
    let mut reader = Reader::new(dir);
    let mut transactions = 0;
    loop {
        let last = stop.load(Ordering::Relaxed);
        while let Some(lines) = reader.read()? {
            add(&mut one, &lines, "one");
            add(&mut two, &lines, "two");
            if one.rows != two.rows {
                return Err(format!("folders one and two differ after {lines:?}"));
            }
            prefix.advance_to(&one.rows)?;
            transactions += 1;
        }
        if last {
            return Ok(transactions);
        }
        thread::park_timeout(PAUSE);
    }
}

fn add(fold: &mut Fold, lines: &Lines, folder: &str) {
    let lines = lines.get(folder).into_iter().flatten();
    lines.for_each(|line| drop(fold.apply(line)));
}

/// Returns how many files are staged.
fn staged(workspace: &Workspace) -> usize {
    let staged = fs::read_dir(workspace.path("out/.tidegate/staged"));
    let sessions = staged.into_iter().flatten().flatten();
    let files = sessions.flat_map(|it| fs::read_dir(it.path()).into_iter().flatten());
    files.count()
}

#[test]
fn thirty_rounds_of_kill_9() {
    const LINES: usize = 200;
    const KEYS: u32 = 60;
    let mut random = seed::random("files::thirty_rounds");
    let lines: Arc<[String]> = sales(&mut random, KILLS * LINES, KEYS).into();
    let workspace = Workspace::with(&twice(json!({ "partition": "hourly" })));
    let out = workspace.path("out");
    let watch = Watch::start(out.clone(), Arc::clone(&lines));
    let mut fold = sums();
    let mut whole = Duration::from_secs(1);
    let mut killed = 0;
    for (round, lines) in lines.chunks(LINES).enumerate() {
        let run = || workspace.run().input(SALES, "sales.ndjson");
        workspace.append_lines("sales.ndjson", &lines[..LINES / 2]);
        let mut host = run().start();
        let pause = whole.mul_f64(random.f64() * 0.4);
        let mut ended = host.ends_within(pause);
        for lines in lines[LINES / 2..].chunks(LINES / 8) {
            workspace.append_lines("sales.ndjson", lines);
            ended |= host.ends_within(pause / 4);
        }
        host.kill();
        killed += usize::from(!ended);
        let finished = run().until_caught_up().start().finish().succeeded();
        whole = finished.took;
        lines.iter().for_each(|line| drop(fold.apply(line)));
        let all = Reader::all(&out);
        for folder in ["one", "two"] {
            let rows = sums().over(&all[folder]);
            assert_eq!(
                rows, fold.rows,
                "{folder} after round {round}: {}",
                finished.stderr
            );
        }
        assert_eq!(staged(&workspace), 0, "after round {round}");
    }
    let transactions = watch.finish();
    println!("the reader saw {transactions} transactions");
    assert_eq!(killed, KILLS, "a host that follows does not end by itself");
    assert!(transactions >= KILLS as u64, "each round commits");
}

const VALUES: &str = "acmeCo/values";

/// Returns a workspace whose task writes values in a format.
fn values(config: Value) -> Workspace {
    let schema = json!({
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": { "type": "integer" },
            "v": { "type": "integer" },
            "s": { "type": "string" },
            "t": { "type": "string", "format": "date-time" },
        },
    });
    let task = task(config).binding(folder(VALUES, "values"));
    let catalog = Catalog::new().collection(VALUES, &["/id"], schema);
    Workspace::with(&catalog.task(TASK, task))
}

/// Runs a host of its own over some more lines.
fn run(workspace: &Workspace, lines: &[&str]) -> Finished {
    workspace.append_lines("values.ndjson", lines);
    let run = workspace.run().input(VALUES, "values.ndjson");
    run.until_caught_up().start().finish()
}

#[test]
fn c14_integers_above_two_to_the_53_stay_apart_in_csv() {
    let lines = [
        r#"{"id":9007199254740993,"v":1}"#,
        r#"{"id":9007199254740992,"v":1}"#,
        r#"{"id":9007199254740993,"v":2}"#,
    ];
    let workspace = values(json!({ "format": "csv" }));
    for line in lines {
        run(&workspace, &[line]).succeeded();
    }
    let rows = [
        "9007199254740993,,,1",
        "9007199254740992,,,1",
        "9007199254740993,,,2",
    ];
    assert_eq!(Reader::all(&workspace.path("out"))["values"], rows);
}

#[test]
fn c13_instants_are_columns_of_parquet_or_are_refused() {
    // Uncompressed, so that the numbers can be found without a reader.
    let workspace = values(json!({ "format": "parquet", "compression": "none" }));
    let instants = [
        r#"{"id":1,"t":"2026-06-23 00:15:23.918411+00:00"}"#,
        r#"{"id":2,"t":"2025-11-29 01:05:28z"}"#,
        r#"{"id":3,"t":"2025-11-29T01:05:28+05:30"}"#,
    ];
    run(&workspace, &instants).succeeded();
    let file = workspace.path("out/values/v0/00000000000000000001-00000.parquet");
    let bytes = fs::read(file).expect("the transaction's file is there");
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    for micros in [
        1_782_173_723_918_411_i64,
        1_764_378_328_000_000,
        1_764_358_528_000_000,
    ] {
        let held = bytes.windows(8).any(|it| it == micros.to_le_bytes());
        assert!(held, "{micros} is not in the file");
    }
    let refused = run(&workspace, &[r#"{"id":4,"t":"2025-11-29 01:05:28"}"#]);
    refused
        .ended_with(1)
        .says(&[TASK, "values", "\"t\"", "2025-11-29 01:05:28", "no offset"]);
    assert!(
        !workspace
            .path("out/manifest/00000000000000000002.json")
            .exists()
    );
}

/// What the documentation tells people to type.
#[test]
fn a_shell_reads_what_is_committed() {
    let workspace = values(json!({}));
    let lines = [r#"{"id":1,"s":"a"}"#, r#"{"id":2,"s":"b"}"#];
    for line in lines {
        run(&workspace, &[line]).succeeded();
    }
    let script =
        r#"grep -oh '"path":"values/v0/[^"]*' manifest/*.json | cut -d'"' -f4 | xargs -r cat"#;
    let read = Command::new("sh")
        .args(["-c", script])
        .current_dir(workspace.path("out"))
        .output()
        .expect("a shell can be run");
    assert_eq!(
        String::from_utf8_lossy(&read.stdout),
        format!("{}\n{}\n", lines[0], lines[1])
    );
}

#[test]
fn a_directory_is_one_task_s_and_goes_with_its_data_directory() {
    let workspace = values(json!({}));
    run(&workspace, &[r#"{"id":1}"#]).succeeded();
    // A data directory that knows of nothing would write every document again.
    let again = || {
        let run = workspace.run().data_dir(&workspace.path("other"));
        let run = run.input(VALUES, "values.ndjson").until_caught_up();
        run.start().finish_within(RUN_MAX)
    };
    again()
        .ended_with(1)
        .says(&[TASK, "data directory was lost"]);
    assert_eq!(Reader::all(&workspace.path("out"))["values"].len(), 1);
}
