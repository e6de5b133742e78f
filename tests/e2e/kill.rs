//! Kill -9 at any moment: thirty rounds for each of two workloads.
//!
//! ```text
//! append lines -> start -> (append more) -> kill -9 after a random while
//!       ^            run until caught up -> the table equals the fold
//!       +---------------------------------------+
//! ```
//!
//! All the while another connection reads, and every snapshot of it must be the
//! fold of some first lines.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use rusqlite::Connection;
use serde_json::json;
use tidegate_tests::catalog::{Catalog, Task};
use tidegate_tests::document::{ORDERS, SALES, order_schema, orders, sale_schema, sales};
use tidegate_tests::fold::Fold;
use tidegate_tests::prefix::Prefix;
use tidegate_tests::seed;
use tidegate_tests::table;
use tidegate_tests::watch::{Check, Watch};
use tidegate_tests::workspace::Workspace;

const ROUNDS: usize = 30;

/// Lines that are there when a round's host starts, and those that come later.
const LINES_AT_START: usize = 150;
const LINES_LATER: usize = 50;
const LATER: usize = 3;
const LINES_A_ROUND: usize = LINES_AT_START + LATER * LINES_LATER;

/// Keys are few, so that most documents change a row that is there.
const KEYS: u32 = 60;

/// What the rounds are about.
struct Workload {
    collection: &'static str,
    lines: Arc<[String]>,
    fold: Fold,
    tables: &'static [&'static str],
}

#[test]
fn thirty_rounds_where_the_last_document_wins() {
    let mut random = seed::random("thirty_rounds_where_the_last");
    let lines: Arc<[String]> = orders(&mut random, ROUNDS * LINES_A_ROUND, KEYS).into();
    let binding =
        |table| json!({ "source": ORDERS, "resource": { "table": table }, "hardDelete": true });
    let task = Task::sqlite("rows.db")
        .binding(binding("one"))
        .binding(binding("two"));
    let catalog = Catalog::new()
        .collection(ORDERS, &["/id"], order_schema())
        .task("acmeCo/rows", task);
    let fold = Fold::last_write_wins(&["id"]).hard_delete();
    let check = Prefix::new(Arc::clone(&lines), fold.clone()).check(&["one", "two"], &["id"]);
    let workload = Workload {
        collection: ORDERS,
        lines,
        fold,
        tables: &["one", "two"],
    };
    rounds(&mut random, &Workspace::with(&catalog), &workload, check);
}

#[test]
fn thirty_rounds_where_documents_add_up() {
    let mut random = seed::random("thirty_rounds_where_documents");
    let lines: Arc<[String]> = sales(&mut random, ROUNDS * LINES_A_ROUND, KEYS).into();
    let task = Task::sqlite("rows.db").table(SALES, "sums").binding(json!({
        "source": SALES,
        "resource": { "table": "changes", "delta_updates": true },
    }));
    let catalog = Catalog::new()
        .collection(SALES, &["/id"], sale_schema())
        .task("acmeCo/rows", task);
    let fold = Fold::sum(&["id"], &["n", "revenue"]);
    let mut prefix = Prefix::new(Arc::clone(&lines), fold.clone()).check(&["sums"], &["id"]);
    let check: Check = Box::new(move |connection| {
        let summed = changes_sum_up(connection)?;
        Ok(prefix(connection)?.and(summed))
    });
    let workload = Workload {
        collection: SALES,
        lines,
        fold,
        tables: &["sums"],
    };
    rounds(&mut random, &Workspace::with(&catalog), &workload, check);
}

/// A binding of delta updates has a row for each change, and they must add up to
/// the row of the other binding.
fn changes_sum_up(connection: &Connection) -> rusqlite::Result<Result<(), String>> {
    let mut query = connection.prepare_cached(
        "WITH summed AS (SELECT id, sum(n) AS n FROM changes GROUP BY id)
         SELECT count(*) FROM summed FULL JOIN sums USING (id) WHERE summed.n IS NOT sums.n",
    )?;
    let unequal: i64 = query.query_row([], |row| row.get(0))?;
    Ok(match unequal {
        0 => Ok(()),
        unequal => Err(format!(
            "{unequal} keys have changes that do not add up to their row"
        )),
    })
}

fn rounds(random: &mut Rng, workspace: &Workspace, workload: &Workload, check: Check) {
    let mut watch = Watch::start(&workspace.path("rows.db"), check);
    let mut killed = 0;
    // How long a whole run takes: kills are spread over a little more than that.
    let mut whole = Duration::from_secs(1);
    let mut fold = workload.fold.clone();
    for round in 1..=ROUNDS {
        let lines = &workload.lines[..round * LINES_A_ROUND];
        killed += usize::from(killed_round(random, workspace, workload, lines, whole));

        let run = workspace
            .run()
            .input(workload.collection, "lines.ndjson")
            .until_caught_up();
        let finished = run.start().finish().succeeded();
        whole = finished.took;
        for line in &lines[lines.len() - LINES_A_ROUND..] {
            fold.apply(line);
        }
        for name in workload.tables {
            let rows = table::read(&workspace.path("rows.db"), name, &["id"]);
            assert_eq!(
                rows, fold.rows,
                "{name} after round {round}: {}",
                finished.stderr
            );
        }
        watch = watch.still_good();
    }
    let seen = watch.finish();
    println!("{killed} of {ROUNDS} rounds were killed before their end; the reader saw {seen:?}");
    assert!(
        killed >= ROUNDS / 2,
        "most rounds must be killed while there is work to do"
    );
    assert!(
        seen.changes as usize >= ROUNDS,
        "the reader must see the table change"
    );
}

/// Runs a host over the round's lines and kills it; returns whether it was still
/// at work.
fn killed_round(
    random: &mut Rng,
    workspace: &Workspace,
    workload: &Workload,
    lines: &[String],
    whole: Duration,
) -> bool {
    let (at_start, mut later) = lines[lines.len() - LINES_A_ROUND..].split_at(LINES_AT_START);
    workspace.append_lines("lines.ndjson", at_start);
    let run = workspace.run().input(workload.collection, "lines.ndjson");
    // A host that is to end by itself takes other ways than one that is not.
    let ends = random.bool();
    let mut host = if ends {
        run.until_caught_up().start()
    } else {
        run.start()
    };
    let pause = whole.mul_f64(random.f64() * 1.2) / (LATER as u32 + 1);
    let mut ended = host.ends_within(pause);
    while !later.is_empty() {
        let (now, rest) = later.split_at(LINES_LATER);
        workspace.append_lines("lines.ndjson", now);
        later = rest;
        ended |= host.ends_within(pause);
    }
    let finished = host.kill();
    assert!(
        ends || !ended,
        "a host that follows does not end by itself: {}",
        finished.stderr
    );
    !ended
}
