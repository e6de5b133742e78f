//! A disk that is full: an error, and everything as before once there is room.

use std::path::{Path, PathBuf};
use std::process::Command;

use tidegate_tests::catalog::{Catalog, Task};
use tidegate_tests::document::{SALES, sale_schema, sales};
use tidegate_tests::fold::Fold;
use tidegate_tests::seed;
use tidegate_tests::table;
use tidegate_tests::workspace::Workspace;

/// Room for the files of an idle host, and for a part of the input.
const SMALL_DISK: &str = "6m";

/// Too little for the table of all documents.
const SMALLER_DISK: &str = "2m";

/// The largest file that the host may write, in blocks of 512 bytes: as good as
/// a full disk, for those who may not mount one.
const SMALL_FILES: u32 = 1_000;

/// A small file system, as long as the value lives.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one, where that is allowed.
    fn mount(at: &Path, size: &str) -> Option<SmallDisk> {
        std::fs::create_dir_all(at).expect("a directory can be made");
        let mut mount = Command::new("mount");
        mount
            .args([
                "-t",
                "tmpfs",
                "-o",
                &format!("size={size}"),
                "tidegate-tests",
            ])
            .arg(at);
        mount
            .output()
            .is_ok_and(|done| done.status.success())
            .then(|| SmallDisk(at.to_owned()))
    }

    fn grow(&self) {
        let grown = Command::new("mount")
            .args(["-o", "remount,size=200m"])
            .arg(&self.0)
            .status();
        assert!(
            grown.is_ok_and(|status| status.success()),
            "what can be mounted can be remounted"
        );
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Left mounted, it would keep the workspace from being deleted.
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

fn lines() -> Vec<String> {
    sales(&mut seed::random("disk"), 200_000, 40_000)
}

fn workspace(file: &str) -> Workspace {
    let task = Task::sqlite(file).table(SALES, "sales");
    Workspace::with(
        &Catalog::new()
            .collection(SALES, &["/id"], sale_schema())
            .task("acmeCo/rows", task),
    )
}

#[track_caller]
fn holds(workspace: &Workspace, file: &str, lines: &[String]) {
    let rows = table::read(&workspace.path(file), "sales", &["id"]);
    assert!(
        rows == Fold::sum(&["id"], &["n", "revenue"]).over(lines),
        "{} rows are not right",
        rows.len()
    );
}

#[test]
fn a_full_disk_under_the_journal_loses_nothing() {
    let lines = lines();
    let workspace = workspace("rows.db");
    workspace.write_lines("sales.ndjson", &lines);
    let disk = SmallDisk::mount(&workspace.path("small"), SMALL_DISK);
    let run = || {
        let dir = workspace.path("small/data");
        workspace
            .run()
            .data_dir(&dir)
            .input(SALES, "sales.ndjson")
            .until_caught_up()
    };
    let full = match &disk {
        Some(_) => run(),
        None => run().shell(&format!("trap '' XFSZ; ulimit -f {SMALL_FILES}")),
    };
    full.start().finish().ended_with(1).says(&["sales.ndjson"]);
    if let Some(disk) = &disk {
        disk.grow();
    }
    run().start().finish().succeeded();
    holds(&workspace, "rows.db", &lines);
}

#[test]
fn a_full_disk_under_the_destination_loses_nothing() {
    let lines = lines();
    let workspace = workspace("small/rows.db");
    workspace.write_lines("sales.ndjson", &lines);
    let Some(disk) = SmallDisk::mount(&workspace.path("small"), SMALLER_DISK) else {
        // A limit on file sizes would stop the journal first, which is the other test.
        println!("nothing can be mounted here: the destination's disk is not filled");
        return;
    };
    let run = || {
        workspace
            .run()
            .input(SALES, "sales.ndjson")
            .until_caught_up()
            .start()
            .finish()
    };
    run().ended_with(1).says(&["acmeCo/rows", "full"]);
    disk.grow();
    run().succeeded();
    holds(&workspace, "small/rows.db", &lines);
}
