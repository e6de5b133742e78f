//! Calls out of order: each is refused with an error, and costs the session.

use futures::future::BoxFuture;
use tidegate_host::sandbox::{Fault, Session};
use tidegate_wit::message::{AcknowledgeRequest, OpenRequest};

use super::{Bench, Collection, Passed, any};
use crate::failure::refused;

type Made<'s> = BoxFuture<'s, Result<(), Fault>>;

/// Calls by name, of a session that is opened by the request.
async fn make(session: &mut Session, call: &str, request: &OpenRequest) -> Result<(), Fault> {
    let acknowledge = |recovery| AcknowledgeRequest {
        patches: Vec::new(),
        recovery,
        stored_counts: Vec::new(),
    };
    let made: Made<'_> = match call {
        "open" => Box::pin(async { session.open(request).await.map(drop) }),
        "flush" => Box::pin(async { session.flush(0).await.map(drop) }),
        "store" => Box::pin(session.store(0, &[])),
        "start-commit" => Box::pin(async { session.start_commit("c").await.map(drop) }),
        "acknowledge" => {
            Box::pin(async { session.acknowledge(&acknowledge(false)).await.map(drop) })
        }
        other => unreachable!("no check makes the call {other}"),
    };
    made.await
}

/// What is in order, and then the call that is not.
const WRONG: &[(&[&str], &str)] = &[
    (&[], "flush"),
    (&[], "store"),
    (&[], "start-commit"),
    (&[], "acknowledge"),
    (&["open"], "open"),
    (&["open"], "acknowledge"),
    (&["open", "store"], "flush"),
    (&["open", "store"], "open"),
    (&["open", "store"], "acknowledge"),
    (&["open", "start-commit"], "store"),
    (&["open", "start-commit"], "flush"),
    (&["open", "start-commit"], "start-commit"),
    (&["open", "start-commit"], "open"),
    (&["open", "start-commit", "acknowledge"], "acknowledge"),
];

/// Makes every sequence that the protocol has not.
pub(super) async fn order(bench: &Bench) -> Passed {
    let mut task = bench
        .task("order", &[(any(bench)?, Collection::plain())])
        .await?;
    for (before, wrong) in WRONG {
        task.fence.session += 1;
        let request = task.open_request(task.fence);
        let mut session = bench.start(&task.spec).await?;
        for call in *before {
            make(&mut session, call, &request).await?;
        }
        let name = match before.last() {
            Some(last) => format!("{wrong} after {last}"),
            None => format!("{wrong} before open"),
        };
        refused(&name, make(&mut session, wrong, &request).await)?;
    }
    Ok(format!("{} sequences", WRONG.len()))
}
