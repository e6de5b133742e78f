//! What a sync-now call costs, beside the bare commit of the same rows.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rusqlite::Connection;
use serde_json::{Value, json};
use tidegate_tests::api::Api;
use tidegate_tests::catalog::{Catalog, Task};
use tidegate_tests::document::{ORDERS, order_schema};
use tidegate_tests::host::{Host, RUN_MAX, peak_memory_kib};
use tidegate_tests::workspace::Workspace;

use crate::measure::round;

const TASK: &str = "acmeCo/held";

/// Documents of a held transaction.
const HELD: [usize; 3] = [1, 1_000, 100_000];

/// Each figure is the median of so many.
const RUNS: usize = 5;

/// Calls of a task that has nothing to do.
const IDLE_CALLS: usize = 1_000;

/// Callers who wait for one commit.
const WAITERS: usize = 1_000;

/// Tasks of an idle host, each with a held transaction.
const TASKS: usize = 200;

/// How long the idle host is watched.
const WATCHED: Duration = Duration::from_secs(10);

/// Measures all of it.
pub fn run() -> anyhow::Result<Value> {
    let workspace = Workspace::with(&catalog(1));
    let (mut host, api) = serve(&workspace)?;
    let mut next = 0;
    let mut held = Vec::new();
    for documents in HELD {
        let (mut calls, mut commits) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            hold(&mut host, &api, &mut next, documents)?;
            let called = Instant::now();
            call(&api)?;
            calls.push(called.elapsed());
            let bare = workspace.path(&format!("bare-{documents}.db"));
            commits.push(commit(&bare, next - documents, documents)?);
        }
        let (call, commit) = (median(calls), median(commits));
        let ratio = call.as_secs_f64() / commit.as_secs_f64();
        println!(
            "{documents} held documents: {call:.1?} to return, {ratio:.2} times a bare commit"
        );
        held.push(json!({
            "documents": documents,
            "callSeconds": seconds(call),
            "bareCommitSeconds": seconds(commit),
            "ratio": round(ratio, 100.0),
        }));
    }
    let idle = idle_calls(&api)?;
    drop(host);
    let waiters = waiters()?;
    Ok(json!({ "held": held, "idle": idle, "waiters": waiters, "wakes": wakes()? }))
}

fn catalog(tasks: usize) -> Catalog {
    let mut catalog = Catalog::new().collection(ORDERS, &["/id"], order_schema());
    for task in 0..tasks {
        let (name, file) = match task {
            0 => (TASK.to_owned(), "held.db".to_owned()),
            task => (format!("{TASK}-{task}"), format!("held-{task}.db")),
        };
        let held = Task::sqlite(&file)
            .table(ORDERS, "orders")
            .field("syncSchedule", json!({ "baseInterval": "4h" }));
        catalog = catalog.task(&name, held);
    }
    catalog
}

fn serve(workspace: &Workspace) -> anyhow::Result<(Host, Api)> {
    let mut host = workspace.serve().start();
    host.wait_for_line("where it listens", RUN_MAX, |line| {
        line.contains("listening")
    });
    let api = Api::of(&workspace.data_dir());
    Ok((host, api))
}

fn line(id: usize) -> String {
    format!("{{\"id\":{id},\"status\":\"placed\",\"line\":{id}}}")
}

/// Appends documents and waits until a transaction holds all of them.
fn hold(host: &mut Host, api: &Api, next: &mut usize, documents: usize) -> anyhow::Result<()> {
    let lines: Vec<String> = (*next..*next + documents).map(line).collect();
    let route = format!("/v1/collections/{ORDERS}:append");
    let answer = api.post(&route, &lines.join("\n"))?;
    ensure!(answer.contains("appendedDocs"), "{answer}");
    *next += documents;
    let read = next.to_string();
    host.wait_until("the transaction is held", RUN_MAX, || {
        let task = api.task(TASK);
        task["readDocsTotal"] == read && task["heldBy"] == "SYNC_SCHEDULE"
    });
    Ok(())
}

fn call(api: &Api) -> anyhow::Result<()> {
    let called = api.sync_now(TASK, false);
    called.map(|_| ()).map_err(|error| anyhow::anyhow!(error))
}

/// Writes the same rows by hand, as durably.
fn commit(file: &Path, first: usize, documents: usize) -> anyhow::Result<Duration> {
    let mut connection = Connection::open(file)?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         CREATE TABLE IF NOT EXISTS orders
           (id INTEGER PRIMARY KEY, status TEXT, line INTEGER, flow_document TEXT)",
    )?;
    let since = Instant::now();
    let transaction = connection.transaction()?;
    {
        let mut insert = transaction.prepare("INSERT INTO orders VALUES (?1, 'placed', ?1, ?2)")?;
        for id in first..first + documents {
            insert.execute((i64::try_from(id)?, line(id)))?;
        }
    }
    transaction.commit()?;
    Ok(since.elapsed())
}

fn idle_calls(api: &Api) -> anyhow::Result<Value> {
    let mut took = Vec::new();
    for _ in 0..IDLE_CALLS {
        let called = Instant::now();
        call(api)?;
        took.push(called.elapsed());
    }
    took.sort_unstable();
    let (p50, p99) = (took[IDLE_CALLS / 2], took[IDLE_CALLS * 99 / 100]);
    println!("idle calls: p50 {p50:.1?}, p99 {p99:.1?}");
    Ok(json!({ "p50Seconds": seconds(p50), "p99Seconds": seconds(p99) }))
}

fn waiters() -> anyhow::Result<Value> {
    let workspace = Workspace::with(&catalog(1));
    let (mut host, api) = serve(&workspace)?;
    hold(&mut host, &api, &mut 0, 1)?;
    let peak = |host: &Host| host.peak_memory_kib().context("the host runs");
    let before = peak(&host)?;
    let called = Instant::now();
    let ends: Vec<anyhow::Result<Duration>> = thread::scope(|scope| {
        let callers: Vec<_> = (0..WAITERS)
            .map(|_| {
                let api = api.clone();
                scope.spawn(move || {
                    call(&api)?;
                    Ok(called.elapsed())
                })
            })
            .collect();
        callers
            .into_iter()
            .map(|caller| caller.join().expect("no caller panics"))
            .collect()
    });
    let ends: Vec<Duration> = ends.into_iter().collect::<anyhow::Result<_>>()?;
    let last = ends.iter().max().context("there are callers")?;
    let memory = peak(&host)? - before;
    println!("{WAITERS} callers: the last one returned after {last:.1?}, {memory} KiB more");
    Ok(json!({ "callers": WAITERS, "seconds": seconds(*last), "memoryKib": memory }))
}

/// Counts how often the threads of an idle host wake up.
fn wakes() -> anyhow::Result<Value> {
    let workspace = Workspace::with(&catalog(TASKS));
    let (mut host, api) = serve(&workspace)?;
    let mut next = 0;
    hold(&mut host, &api, &mut next, 1)?;
    host.wait_until("all tasks hold", RUN_MAX, || {
        let tasks = api.tasks();
        tasks.len() == TASKS && tasks.iter().all(|task| task["heldBy"] == "SYNC_SCHEDULE")
    });
    let before = switches(host.id())?;
    ensure!(!host.ends_within(WATCHED), "the host ended");
    let wakes: u64 = switches(host.id())?
        .iter()
        .map(|(thread, switches)| switches - before.get(thread).unwrap_or(&0))
        .sum();
    let a_task = wakes as f64 / WATCHED.as_secs_f64() / TASKS as f64;
    let memory = peak_memory_kib(format!("/proc/{}/status", host.id())).unwrap_or_default();
    println!("{TASKS} held tasks: {a_task:.3} wakes a second each, {memory} KiB in all");
    Ok(json!({ "tasks": TASKS, "wakesASecondEach": round(a_task, 1_000.0), "memoryKib": memory }))
}

/// Returns how often each thread of a process went to sleep by itself.
fn switches(id: u32) -> anyhow::Result<BTreeMap<OsString, u64>> {
    let mut switches = BTreeMap::new();
    for thread in fs::read_dir(format!("/proc/{id}/task"))? {
        let thread = thread?;
        // One that ends meanwhile does not wake any more.
        let Ok(status) = fs::read_to_string(thread.path().join("status")) else {
            continue;
        };
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        let count = line.context("the kernel counts")?.trim().parse()?;
        switches.insert(thread.file_name(), count);
    }
    Ok(switches)
}

/// Returns seconds, to the hundredth of a millisecond.
fn seconds(duration: Duration) -> f64 {
    round(duration.as_secs_f64(), 100_000.0)
}

fn median(mut durations: Vec<Duration>) -> Duration {
    durations.sort_unstable();
    durations[durations.len() / 2]
}
