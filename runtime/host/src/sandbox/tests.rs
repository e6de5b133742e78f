//! Sessions with a guest that misbehaves on request (`guest.wat`).

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidegate_wit::message::{AcknowledgeRequest, ApplyRequest, Spec, Wants};

use super::*;

/// What `store` of each binding does.
const NOTHING: u32 = 0;
const SPIN: u32 = 1;
const PANIC: u32 = 2;
const FAIL: u32 = 3;
const RECURSE: u32 = 4;
const HOARD: u32 = 5;
const WAIT: u32 = 6;
const SLEEP: u32 = 7;
const PROGRESS: u32 = 8;
const LOG: u32 = 9;
const QUERY: u32 = 10;

const DEADLINE: Duration = Duration::from_secs(2);

/// The engine and the guest, loaded once more for each test: both are cheap.
fn component() -> Component {
    let bytes = wat::parse_str(include_str!("guest.wat")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("guest.wasm");
    std::fs::write(&path, bytes).unwrap();
    let engine = Engine::new(&EngineConfig::default()).unwrap();
    engine.load(&path).unwrap()
}

fn config() -> SessionConfig {
    SessionConfig::without_grants("acme/orders")
}

/// Has `store` of a binding done, and returns how it failed and after how long.
async fn fault(config: SessionConfig, binding: u32) -> (Fault, Duration) {
    let mut session = component().start(config).await.unwrap();
    let start = Instant::now();
    let fault = session.store(binding, b"").await.unwrap_err();
    let elapsed = start.elapsed();
    assert_eq!((fault.call, fault.binding), (Call::Store, Some(binding)));
    assert!(fault.to_string().contains("acme/orders: store"), "{fault}");
    assert!(session.is_finished());
    let next = session.store(NOTHING, b"").await.unwrap_err();
    assert!(matches!(next.kind, FaultKind::Finished), "{next}");
    (fault, elapsed)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_answers_until_it_is_dropped() {
    let mut session = component().start(config()).await.unwrap();
    for _ in 0..3 {
        assert_eq!(session.load(7, b"keys").await.unwrap(), b"keys");
        assert_eq!(session.flush(7).await.unwrap(), b"");
        session.store(NOTHING, b"batch").await.unwrap();
        assert_eq!(session.start_commit("{}").await.unwrap(), None);
        let request = AcknowledgeRequest {
            patches: vec![],
            recovery: false,
            stored_counts: vec![],
        };
        let acknowledged = session.acknowledge(&request).await.unwrap();
        assert!(!acknowledged.pace);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_tells_what_it_is_without_grants() {
    let component = component();
    let inspection = component.inspect().await.unwrap();
    assert_eq!(inspection.spec.documentation_url, "https://example.com");
    assert_eq!(inspection.wants, Wants::default());
    assert_eq!(inspection.hash.len(), 64);
    assert!(inspection.compiled_size > inspection.size);
    let clock = "wasi:clocks/monotonic-clock@0.2.3".to_owned();
    assert!(inspection.imports.contains(&clock));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_does_not_parse_is_a_protocol_fault() {
    let mut session = component().start(config()).await.unwrap();
    let request = tidegate_wit::message::OpenRequest {
        spec: spec(),
        range: tidegate_wit::message::KeyRange::FULL,
        state: Value::Null,
        checkpoint: None,
        fence: tidegate_wit::message::Fence {
            epoch: 1,
            session: 1,
        },
    };
    let fault = session.open(&request).await.unwrap_err();
    let text = fault.to_string();
    assert!(matches!(fault.kind, FaultKind::Protocol { .. }), "{text}");
    assert!(
        text.contains("open") && text.contains("authority"),
        "{text}"
    );
    assert!(session.is_finished());

    let mut session = component().start(config()).await.unwrap();
    let request = ApplyRequest {
        last: None,
        next: spec(),
        state: Value::Null,
        dry_run: true,
    };
    assert!(session.apply(&request).await.unwrap().actions.is_empty());

    let mut config = config();
    config.limits.batch_bytes = 3;
    let mut session = component().start(config).await.unwrap();
    let fault = session.load(0, b"keys").await.unwrap_err();
    assert!(fault.to_string().contains("4 bytes"), "{fault}");
}

fn spec() -> Spec {
    Spec {
        task: "acme/orders".into(),
        config: json!({}),
        bindings: vec![],
        sync_schedule: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn crashes_are_told_apart() {
    let (fault_of_panic, _) = fault(config(), PANIC).await;
    let text = fault_of_panic.to_string();
    assert!(text.contains("panicked or aborted"), "{text}");
    let (recursion, _) = fault(config(), RECURSE).await;
    assert!(recursion.to_string().contains("recursion"), "{recursion}");

    let mut small = config();
    small.limits.memory_bytes = 1 << 20;
    let (memory, _) = fault(small, HOARD).await;
    let FaultKind::Memory { limit, asked } = memory.kind else {
        panic!("{memory}");
    };
    assert_eq!((limit, asked), (1 << 20, (16384 + 1) << 16));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guests_own_error_arrives_whole() {
    let (fault, _) = fault(config(), FAIL).await;
    let FaultKind::Error(error) = fault.kind else {
        panic!("{fault}");
    };
    assert_eq!(error.kind, ErrorKind::Transient);
    assert_eq!(error.message, "no such row");
    assert_eq!(
        (error.binding, error.key, error.field),
        (Some(FAIL), None, None)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stuck_guest_ends_at_its_deadline() {
    let limited = || {
        let mut config = config();
        config.limits.compute = DEADLINE;
        config.limits.import = DEADLINE;
        config
    };
    let ((spin, spun), (sleep, slept)) =
        tokio::join!(fault(limited(), SPIN), fault(limited(), SLEEP));
    assert!(
        matches!(spin.kind, FaultKind::ComputeTimeout(DEADLINE)),
        "{spin}"
    );
    assert!(sleep.to_string().contains("wasi:io/poll"), "{sleep}");
    let expected = DEADLINE..2 * DEADLINE;
    assert!(expected.contains(&spun), "{spun:?}");
    assert!(expected.contains(&slept), "{slept:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_call_can_be_limited() {
    let mut config = config();
    config.limits.call = Some(Duration::from_millis(300));
    let (fault, elapsed) = fault(config, PROGRESS).await;
    assert!(matches!(fault.kind, FaultKind::CallTimeout(_)), "{fault}");
    assert!(elapsed < DEADLINE, "{elapsed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_makes_progress_is_left_alone() {
    let mut config = config();
    // Longer than one turn, and far shorter than all of them.
    config.limits.compute = Duration::from_millis(400);
    config.limits.import = Duration::from_millis(400);
    let mut session = component().start(config).await.unwrap();
    session.store(PROGRESS, b"").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_every_call_at_once() {
    for binding in [SPIN, SLEEP, WAIT, QUERY] {
        let directory = tempfile::tempdir().unwrap();
        let (handle, stop) = StopHandle::new();
        let mut config = config();
        config.stop = stop;
        config.grants = directory_grant(directory.path());
        let component = component();
        let mut session = component.start(config).await.unwrap();
        let call = tokio::spawn(async move {
            let fault = session.store(binding, b"").await.unwrap_err();
            (fault, Instant::now())
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        let asked = Instant::now();
        handle.stop();
        let (fault, ended) = call.await.unwrap();
        let took = ended - asked;
        assert!(took < Duration::from_secs(2), "{binding}: {took:?}");
        match binding {
            // It was told, and returned by itself.
            WAIT => assert!(matches!(fault.kind, FaultKind::Error(_)), "{fault}"),
            _ => assert!(matches!(fault.kind, FaultKind::Stopped), "{fault}"),
        }
    }
}

fn directory_grant(base: &std::path::Path) -> Grants {
    let allow = Allow {
        network: None,
        directory: Some(vec![".".into()]),
    };
    Grants::new(&Wants::default(), &Value::Null, &allow, base, &|_| true).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_without_end_is_an_import_that_takes_too_long() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = config();
    config.limits.import = Duration::from_millis(200);
    config.grants = directory_grant(directory.path());
    let (fault, elapsed) = fault(config, QUERY).await;
    let text = fault.to_string();
    assert!(text.contains("sqlite.query"), "{text}");
    assert!(elapsed < DEADLINE, "{elapsed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_is_not_there_is_a_fault_of_the_start() {
    let mut config = config();
    config.grants = directory_grant(std::path::Path::new("/nonexistent/place"));
    let fault = component().start(config).await.err().unwrap();
    let text = fault.to_string();
    assert!(matches!(fault.kind, FaultKind::Grant(_)), "{text}");
    assert!(
        text.contains("/nonexistent/place") && text.contains("create it"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn log_lines_carry_the_task() {
    let lines: Arc<Mutex<Vec<LogLine>>> = Arc::default();
    let sink = lines.clone();
    let mut config = config();
    config.log = Arc::new(move |line| sink.lock().unwrap().push(line));
    let mut session = component().start(config).await.unwrap();
    session.store(LOG, b"").await.unwrap();
    let want = LogLine {
        task: "acme/orders".into(),
        level: LogLevel::Info,
        message: "no such row".into(),
    };
    assert_eq!(*lines.lock().unwrap(), [want]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_its_caller_drops_ends_the_session() {
    let mut session = component().start(config()).await.unwrap();
    let call = session.store(SLEEP, b"");
    let dropped = tokio::time::timeout(Duration::from_millis(50), call).await;
    assert!(dropped.is_err());
    let fault = session.store(NOTHING, b"").await.unwrap_err();
    assert!(matches!(fault.kind, FaultKind::Finished), "{fault}");
}
