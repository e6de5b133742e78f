//! Connectors in JavaScript and Python: components that bring an interpreter along.
//!
//! Both write NDJSON files into a directory and leave it to the host's log what is
//! committed, so that each line must be there exactly once, in the order of commits.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tidegate_tests::catalog::{Catalog, Task};
use tidegate_tests::document::{SALES, sale_schema, sales};
use tidegate_tests::fold::{Fold, canonical, row};
use tidegate_tests::host::{Finished, Host, RUN_MAX};
use tidegate_tests::program::{INTERPRETED, interpreted};
use tidegate_tests::seed;
use tidegate_tests::workspace::{Run, Workspace};

const TASK: &str = "acmeCo/files";

/// Where the task's fence and its staged files are.
const STAGING: &str = "out/.tidegate/acmeCo%2Ffiles";

const ONE: &str = r#"{"id":1,"n":1}"#;
const TWO: &str = r#"{"id":2,"n":2}"#;

/// The longest that a run may take which compiles an interpreter: half a minute of
/// one core, and there are other tests.
const COMPILING_MAX: Duration = Duration::from_secs(300);

/// How often a host is killed.
const KILLS: usize = 30;

fn workspace(catalog: &Catalog) -> Workspace {
    interpreted();
    Workspace::with(catalog)
}

fn files(component: &str) -> Task {
    Task::new(component, json!({ "path": "out" }))
}

fn run(workspace: &Workspace) -> Run<'_> {
    workspace.run().input(SALES, "lines.ndjson")
}

fn finish(workspace: &Workspace) -> Finished {
    let host = run(workspace).until_caught_up().start();
    host.finish_within(COMPILING_MAX).succeeded()
}

/// Reads the lines of a folder, file by file in the order of their names, which is
/// the order of commits.
fn lines(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder was made");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|it| it == "ndjson"))
        .collect();
    paths.sort();
    let texts = paths.iter().map(fs::read_to_string);
    let texts = texts.map(|text| text.expect("a file in place can be read"));
    texts
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

/// Names what is staged, or is left over from staging.
fn staged(workspace: &Workspace) -> Vec<String> {
    let folder = workspace.path(STAGING);
    let entries = fs::read_dir(folder).expect("the connector has a folder for the task");
    let names = entries.map(|entry| entry.expect("it can be read").file_name());
    let names = names.map(|name| name.into_string().expect("names are text"));
    names.filter(|name| !name.ends_with(".fence")).collect()
}

#[test]
fn kills_neither_lose_nor_double_a_line() {
    for component in INTERPRETED {
        let mut random = seed::random("kills_neither_lose");
        let task = files(component)
            .binding(json!({ "source": SALES, "resource": { "folder": "changes" } }))
            .binding(json!({ "source": SALES, "resource": { "folder": "again" } }));
        let catalog = Catalog::new().collection(SALES, &["/id"], sale_schema());
        let workspace = workspace(&catalog.task(TASK, task));
        workspace.write_lines("lines.ndjson", [""; 0]);
        let mut fold = Fold::sum(&["id"], &["n", "revenue"]);
        let mut whole = finish(&workspace).took;
        let mut killed = 0;
        for round in 1..=KILLS {
            for line in sales(&mut random, 400, 40) {
                workspace.append_lines("lines.ndjson", [&line]);
                fold.apply(&line);
            }
            let run = run(&workspace);
            // A host that is to end by itself takes other ways than one that is not.
            let run = if random.bool() {
                run.until_caught_up()
            } else {
                run
            };
            let mut host = run.start();
            killed += usize::from(!host.ends_within(whole.mul_f64(random.f64() * 1.1)));
            host.kill();
            whole = finish(&workspace).took.min(Duration::from_secs(10));
            for folder in ["changes", "again"] {
                let read = lines(&workspace.path("out").join(folder));
                let sums = Fold::sum(&["id"], &["n", "revenue"]).over(&read);
                assert_eq!(sums, fold.rows, "{component}: {folder} after round {round}");
            }
            assert_eq!(
                staged(&workspace),
                [""; 0],
                "{component} after round {round}"
            );
        }
        println!("{component}: {killed} of {KILLS} rounds were killed before their end");
        assert!(
            killed >= KILLS / 2,
            "most rounds must be killed while there is work"
        );
    }
}

#[test]
fn a_committed_file_is_put_into_place_by_the_next_session() {
    // A crash may leave out the renaming, or only the word that it is done.
    for (component, renamed) in INTERPRETED.map(|it| [(it, false), (it, true)]).concat() {
        let workspace = one_folder(component);
        let folder = workspace.path("out/changes");
        let aside = workspace.path("aside");
        let mut host = opened(&workspace);
        fs::rename(&folder, &aside).expect("the folder can be renamed");
        workspace.append_lines("lines.ndjson", [TWO]);
        host.wait_until("the commit", RUN_MAX, || !staged(&workspace).is_empty());
        host.finish()
            .ended_with(1)
            .says(&[TASK, "cannot rename to"]);
        fs::rename(&aside, &folder).expect("the folder can be renamed");
        let staged_files = staged(&workspace);
        assert_eq!(staged_files.len(), 1, "{component}: {staged_files:?}");
        if renamed {
            let staged = workspace.path(STAGING).join(&staged_files[0]);
            let name = staged_files[0].replace(".changes.staged", ".ndjson");
            fs::rename(staged, folder.join(name)).expect("the file can be renamed");
        }
        finish(&workspace);
        assert_eq!(
            lines(&folder),
            [ONE, TWO],
            "{component}, renamed: {renamed}"
        );
        assert_eq!(
            staged(&workspace),
            [""; 0],
            "{component}, renamed: {renamed}"
        );
    }
}

#[test]
fn an_older_session_commits_nothing_more() {
    for component in INTERPRETED {
        let workspace = one_folder(component);
        let fence = workspace.path(STAGING).join("00000000-ffffffff.fence");
        let before = fs::read(&fence).expect("the fence is there");
        let forgotten = "0000000001-0000000001-000009-00000000.changes.staged";
        workspace.write(&format!("{STAGING}/{forgotten}"), "{}");

        let mut host = opened(&workspace);
        host.wait_until("the cleaning", RUN_MAX, || staged(&workspace).is_empty());
        fs::write(&fence, r#"{"epoch":9,"session":1}"#).expect("it can be written");
        workspace.append_lines("lines.ndjson", [TWO]);
        for said in [
            "is fenced off: the destination has been opened by session 9.1",
            "is refused",
        ] {
            host.wait_for_line(said, RUN_MAX, |line| line.contains(said));
        }
        host.kill();
        assert_eq!(lines(&workspace.path("out/changes")), [ONE], "{component}");

        fs::write(&fence, before).expect("it can be written");
        finish(&workspace);
        assert_eq!(
            lines(&workspace.path("out/changes")),
            [ONE, TWO],
            "{component}"
        );
    }
}

/// Makes a workspace whose task has committed [`ONE`].
fn one_folder(component: &str) -> Workspace {
    let catalog = Catalog::new().collection(SALES, &["/id"], sale_schema());
    let binding = json!({ "source": SALES, "resource": { "folder": "changes" } });
    let workspace = workspace(&catalog.task(TASK, files(component).binding(binding)));
    workspace.write_lines("lines.ndjson", [ONE]);
    finish(&workspace);
    workspace
}

/// Starts a host that follows, and waits until its session is open.
fn opened(workspace: &Workspace) -> Host {
    let fence = || fs::read(workspace.path(STAGING).join("00000000-ffffffff.fence"));
    let before = fence().expect("an earlier session left its fence");
    let mut host = run(workspace).start();
    host.wait_until("the session is open", RUN_MAX, || {
        fence().is_ok_and(|now| now != before)
    });
    host
}

#[test]
fn selected_fields_are_lines_with_every_digit() {
    let schema = json!({
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": { "type": "integer" },
            "n": { "type": "number" },
            "s": { "type": "string" },
            "b": { "type": "boolean" },
            "o": { "type": "object" },
            "a": { "type": "array" },
        },
    });
    let documents = [
        r#"{"id":-340282366920938463463374607431768211457,"n":-1e40,"o":{"x":"\u0000"}}"#,
        r#"{"id":-9223372036854775809,"n":-0.5,"a":[1, 2.50]}"#,
        r#"{"id":-1,"n":1e-7,"s":"a\u0000b\n\"é","b":true}"#,
        r#"{"id":0,"n":0}"#,
        r#"{"id":9007199254740993,"n":0.1,"s":"","b":false}"#,
        r#"{"id":18446744073709551615,"n":0.1234567890123456789}"#,
        r#"{"id":340282366920938463463374607431768211457,"n":12345678901234567890}"#,
    ];
    for component in INTERPRETED {
        let binding = |folder: &str, fields| json!({ "source": SALES, "resource": { "folder": folder }, "fields": fields });
        let include = json!({ "n": {}, "s": {}, "b": {}, "o": {}, "a": {} });
        let task = files(component)
            .binding(binding("documents", json!({ "recommended": true })))
            .binding(binding(
                "fields",
                json!({ "recommended": false, "include": include }),
            ));
        let catalog = Catalog::new().collection(SALES, &["/id"], schema.clone());
        let workspace = workspace(&catalog.task(TASK, task));
        workspace.write_lines("lines.ndjson", documents);
        finish(&workspace);
        // Stored in the order of keys.
        let read = lines(&workspace.path("out/documents"));
        assert_eq!(
            read.iter().map(|it| row(it)).collect::<Vec<_>>(),
            documents.map(row)
        );
        let read = lines(&workspace.path("out/fields"));
        assert_eq!(read.len(), documents.len());
        for (line, document) in read.iter().zip(documents) {
            let (line, document) = (row(line), row(document));
            let names: Vec<_> = line.keys().map(String::as_str).collect();
            assert_eq!(names, ["a", "b", "id", "n", "o", "s"], "{component}");
            for (name, value) in &line {
                let want = document.get(name).map_or("null", String::as_str);
                assert_eq!(value, want, "{component}: {name} of {document:?}");
            }
        }
        assert_eq!(
            canonical(&row(&read[0])["n"]),
            format!("-1{}", "0".repeat(40))
        );
    }
}

#[test]
fn what_cannot_go_on_says_why() {
    for component in INTERPRETED {
        let catalog = |folder: &str, backfill: u32| {
            let binding = json!({
                "source": SALES, "resource": { "folder": folder }, "backfill": backfill,
            });
            let task = files(component).binding(binding);
            Catalog::new()
                .collection(SALES, &["/id"], sale_schema())
                .task(TASK, task)
        };
        let workspace = workspace(&catalog("../changes", 0));
        workspace.write_lines("lines.ndjson", [ONE]);
        let refused = |workspace: &Workspace, words: &[&str]| {
            let host = run(workspace).until_caught_up().start();
            let finished = host.finish_within(COMPILING_MAX);
            finished.ended_with(1).says(words);
        };
        refused(&workspace, &[TASK, "../changes", "name one folder"]);

        workspace.catalog(&catalog("changes", 0));
        finish(&workspace);
        // Another data directory does not know what is there.
        let other = workspace.path("other");
        let run = run(&workspace).data_dir(&other).until_caught_up();
        let finished = run.start().finish();
        finished
            .ended_with(1)
            .says(&[TASK, "changes", "the host knows of none"]);

        // A raised counter makes the folder anew.
        workspace.catalog(&catalog("changes", 1));
        finish(&workspace);
        assert_eq!(lines(&workspace.path("out/changes")), [ONE]);
    }
}
