//! Databases without a guest.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use tempfile::TempDir;
use tidegate_wit::batch;
use tidegate_wit::tuple::{Bytes, Element, decode, encode};
use tokio::time::Instant;

use super::database::{Access, Attempt, Database, Done, Failure, Interrupt};
use super::patiently;
use crate::sandbox::bindings::ErrorKind;
use crate::sandbox::stop::{Stop, StopHandle};

const RESULT_BYTES: usize = 1 << 20;

fn interrupt(after: Duration, stop: Stop) -> Interrupt {
    Interrupt {
        deadline: Instant::now() + after,
        stop,
        grace: Duration::ZERO,
    }
}

fn patient() -> Interrupt {
    interrupt(Duration::from_secs(60), Stop::never())
}

struct File {
    directory: TempDir,
    path: PathBuf,
}

fn file() -> File {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.db");
    File { directory, path }
}

fn open(path: &Path) -> Database {
    Database::open(path, Access::Write, RESULT_BYTES, patient()).unwrap()
}

fn run(database: &mut Database, sql: &str) -> Attempt<u64> {
    database.execute(sql, &[])
}

fn pack(rows: &[&[Element<'_>]]) -> Vec<u8> {
    let mut packed = Vec::new();
    rows.iter()
        .for_each(|row| batch::push_row(&mut packed, &encode(row)));
    packed
}

fn unpack(packed: &[u8]) -> Vec<Vec<Element<'_>>> {
    batch::rows(packed)
        .map(|row| decode(row.unwrap()).unwrap())
        .collect()
}

fn text(text: &str) -> Element<'_> {
    Element::String(Cow::Borrowed(text))
}

fn failed<T: std::fmt::Debug>(attempt: Attempt<T>) -> (ErrorKind, String) {
    match attempt {
        Err(Failure::Failed(error) | Failure::Locked(error)) => (error.kind, error.message),
        other => panic!("{other:?}"),
    }
}

#[test]
fn values_come_back_as_they_went() {
    let file = file();
    let mut database = open(&file.path);
    run(&mut database, "create table t (a, b, c, d, e, f)").unwrap();
    let bytes = |bytes: &'static [u8]| Element::Bytes(Bytes(Cow::Borrowed(bytes)));
    let row = [
        Element::Nil,
        Element::Int(i64::MIN),
        Element::Double(-0.1),
        text("a\0ä"),
        bytes(b"\0\xff"),
        Element::Bool(true),
    ];
    let insert = "insert into t values (?, ?, ?, ?, ?, ?)";
    assert_eq!(database.execute(insert, &encode(&row)).unwrap(), 1);
    let found = database.query("select * from t", &[]).unwrap();
    let mut want = row;
    want[5] = Element::Int(1);
    assert_eq!(unpack(&found), [want]);
}

#[test]
fn an_integer_of_more_than_64_bits_is_a_document_error() {
    let file = file();
    let mut database = open(&file.path);
    let row = encode(&[Element::BigInt((1_i128 << 64).into())]);
    let (kind, message) = failed(database.query("select ?", &row));
    assert_eq!(kind, ErrorKind::Document);
    assert!(message.contains("18446744073709551616"), "{message}");
}

#[test]
fn many_rows_are_one_call() {
    let file = file();
    let mut database = open(&file.path);
    run(&mut database, "create table t (id integer primary key, v)").unwrap();
    let rows = pack(&[
        &[Element::Int(1), text("a")],
        &[Element::Int(2), text("b")],
        &[Element::Int(3), text("c")],
    ]);
    let insert = "insert into t values (?, ?)";
    let changed = database.execute_many(insert, &rows, &mut Done::default());
    assert_eq!(changed.unwrap(), 3);
    let keys = pack(&[&[Element::Int(3)], &[Element::Int(9)], &[Element::Int(1)]]);
    let found = database.query_many("select v from t where id = ?", &keys);
    let found = found.unwrap();
    let found: Vec<_> = batch::loaded(&found)
        .map(|found| found.map(|(ordinal, row)| (ordinal, decode(row).unwrap())))
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(found, [(0, vec![text("c")]), (2, vec![text("a")])]);
    assert_eq!(run(&mut database, "delete from t").unwrap(), 3);
    assert_eq!(run(&mut database, "begin").unwrap(), 0);
}

#[test]
fn mistakes_are_told_apart() {
    let file = file();
    let mut database = open(&file.path);
    run(
        &mut database,
        "create table t (id integer primary key not null)",
    )
    .unwrap();
    run(&mut database, "insert into t values (1)").unwrap();
    let cases = [
        ("insert into t values (1)", ErrorKind::Schema, "UNIQUE"),
        (
            "insert into u values (1)",
            ErrorKind::Schema,
            "no such table",
        ),
        ("update t set v = 1", ErrorKind::Schema, "no such column"),
        (
            "insert into t (v) values (1)",
            ErrorKind::Schema,
            "no column named",
        ),
        (
            "inser into t values (1)",
            ErrorKind::Internal,
            "syntax error",
        ),
        ("select 1", ErrorKind::Internal, "`query`"),
        (
            "begin; commit",
            ErrorKind::Internal,
            "more than one statement",
        ),
        (
            "insert into t values (?)",
            ErrorKind::Internal,
            "takes 1 parameters",
        ),
    ];
    for (sql, kind, want) in cases {
        let (found, message) = failed(run(&mut database, sql));
        assert_eq!(found, kind, "{sql}: {message}");
        assert!(message.contains(want), "{sql}: {message}");
    }
    let (kind, _) = failed(database.execute("insert into t values (?)", b"\xff"));
    assert_eq!(kind, ErrorKind::Internal);
    let (kind, _) = failed(database.query_many("select ?", b"\x09\0\0\0"));
    assert_eq!(kind, ErrorKind::Internal);
}

#[test]
fn what_reaches_outside_or_weakens_durability_is_refused() {
    let file = file();
    let mut database = open(&file.path);
    run(&mut database, "create table t (a)").unwrap();
    let outside = file.directory.path().join("outside.db");
    let attach = format!("attach '{}' as o", outside.display());
    let vacuum = format!("vacuum into '{}'", outside.display());
    let refused = [
        &*attach,
        "attach ':memory:' as o",
        "attach 'x' || 'y' as o",
        "detach main",
        &*vacuum,
        "select load_extension('x')",
        "pragma journal_mode = off",
        "pragma synchronous = off",
        "pragma locking_mode = exclusive",
        "pragma mmap_size = 1000000",
        "pragma cache_size = 1000000",
        "pragma hard_heap_limit = 1",
        "pragma temp_store_directory = '/'",
        "pragma writable_schema = on",
        "pragma trusted_schema = on",
    ];
    for sql in refused {
        let error = database.query(sql, &[]);
        assert!(error.is_err(), "{sql}");
    }
    assert!(!outside.exists());
    for sql in [
        "vacuum",
        "pragma user_version = 7",
        "pragma table_info(t)",
        "select * from pragma_table_info('t')",
        "pragma wal_checkpoint",
        "create temp table u (a)",
    ] {
        database
            .query(sql, &[])
            .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
    let value = |database: &mut Database, sql| {
        let found = database.query(sql, &[]).unwrap();
        format!("{:?}", unpack(&found)[0][0])
    };
    let journal = value(&mut database, "pragma journal_mode");
    assert!(journal.contains("wal"), "{journal}");
    let synchronous = value(&mut database, "pragma synchronous");
    assert!(synchronous.contains('2'), "{synchronous}");
}

#[test]
fn another_program_reads_meanwhile_and_sees_whole_transactions() {
    let file = file();
    let mut database = open(&file.path);
    run(&mut database, "create table t (a)").unwrap();
    let reader = Connection::open(&file.path).unwrap();
    let count = || {
        let count = reader.query_row("select count(*) from t", [], |row| row.get::<_, i64>(0));
        count.unwrap()
    };
    run(&mut database, "begin immediate").unwrap();
    run(&mut database, "insert into t values (1), (2)").unwrap();
    assert_eq!(count(), 0);
    run(&mut database, "commit").unwrap();
    assert_eq!(count(), 2);
    run(&mut database, "begin").unwrap();
    run(&mut database, "insert into t values (3)").unwrap();
    drop(database);
    assert_eq!(count(), 2);
}

#[test]
fn too_many_rows_at_once_are_refused() {
    let file = file();
    let mut database = open(&file.path);
    let numbers = "with recursive n(i) as (select 1 union all select i + 1 from n limit 1000000) \
                   select i, 'some text' from n";
    let (kind, message) = failed(database.query(numbers, &[]));
    assert_eq!(kind, ErrorKind::Internal);
    assert!(message.contains("1048576 bytes"), "{message}");
    let (kind, _) = failed(database.query("select zeroblob(100000000)", &[]));
    assert_eq!(kind, ErrorKind::Document);
}

const FOR_EVER: &str =
    "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n";

#[test]
fn a_statement_without_end_is_interrupted() {
    let file = file();
    let mut database = open(&file.path);
    let after = Duration::from_millis(100);
    let start = Instant::now();
    database.interrupt_by(Some(interrupt(after, Stop::never())));
    let ended = database.query(FOR_EVER, &[]);
    assert!(matches!(ended, Err(Failure::Interrupted)), "{ended:?}");
    assert!(start.elapsed() >= after);

    let (handle, stop) = StopHandle::new();
    database.interrupt_by(Some(interrupt(Duration::from_secs(60), stop)));
    handle.stop();
    let ended = database.query(FOR_EVER, &[]);
    assert!(matches!(ended, Err(Failure::Interrupted)), "{ended:?}");
}

#[tokio::test]
async fn a_lock_is_waited_for_and_the_rows_before_it_are_not_run_again() {
    let file = file();
    let mut database = open(&file.path);
    run(&mut database, "create table t (a)").unwrap();
    let other = Connection::open(&file.path).unwrap();
    other.execute_batch("begin immediate").unwrap();
    let rows = pack(&[&[Element::Int(1)], &[Element::Int(2)]]);
    let insert = "insert into t values (?)";
    let mut done = Done::default();
    let mut tries = 0;
    let attempt = || {
        tries += 1;
        if tries == 3 {
            other.execute_batch("commit").unwrap();
        }
        database.execute_many(insert, &rows, &mut done)
    };
    let limit = Duration::from_secs(60);
    let changed = patiently(attempt, "sqlite.execute-many", limit, &patient()).await;
    assert_eq!(changed.unwrap().unwrap(), 2);
    assert_eq!(tries, 3);

    other.execute_batch("begin immediate").unwrap();
    let locked = run(&mut database, "delete from t");
    assert!(matches!(locked, Err(Failure::Locked(_))), "{locked:?}");
    let (kind, message) = failed(locked);
    assert_eq!(kind, ErrorKind::Transient);
    assert!(message.contains("another program"), "{message}");
}

#[test]
fn a_file_that_is_no_database_is_the_configurations_fault() {
    let file = file();
    std::fs::write(&file.path, [b'x'; 4096]).unwrap();
    let opened = Database::open(&file.path, Access::Write, RESULT_BYTES, patient());
    let (kind, message) = failed(opened.map(drop));
    assert_eq!(kind, ErrorKind::Config, "{message}");
    let link = file.directory.path().join("link.db");
    let real = file.directory.path().join("real.db");
    drop(open(&real));
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let opened = Database::open(&link, Access::Write, RESULT_BYTES, patient());
    assert_eq!(failed(opened.map(drop)).0, ErrorKind::Config);
}

#[test]
fn a_look_changes_no_file() {
    let look = |path: &Path| Database::open(path, Access::Look, RESULT_BYTES, patient()).unwrap();
    let file = file();
    let mut database = look(&file.path);
    let tables = "select count(*) from sqlite_schema";
    database.query(tables, &[]).unwrap();
    drop(database);
    assert!(!file.path.exists(), "what is not there is not made");

    run(&mut open(&file.path), "create table t (a)").unwrap();
    let before = std::fs::read(&file.path).unwrap();
    let mut database = look(&file.path);
    let found = database.query(tables, &[]).unwrap();
    assert_eq!(unpack(&found), [[Element::Int(1)]]);
    failed(run(&mut database, "insert into t values (1)"));
    failed(run(&mut database, "drop table t"));
    drop(database);
    assert_eq!(std::fs::read(&file.path).unwrap(), before);
    let files = std::fs::read_dir(file.directory.path()).unwrap().count();
    assert_eq!(files, 1, "no write-ahead log stays behind");
}
