//! Fences: how an older session is kept from committing.
//!
//! ```text
//! open    read the destination's fence -> raise -> write it, in one transaction with reading the checkpoint
//! commit  read the destination's fence -> check -> commit, in one transaction
//! ```
//!
//! How a destination keeps the fence is the connector's business; whether a
//! session may go on is decided here.

use crate::Fence;
use crate::error::ConnectorError;

/// Decides whether a session may start: only with a fence above the one that the
/// destination holds. Returns the fence to write.
///
/// # Errors
///
/// If the destination holds this fence or a higher one. The error is transient:
/// whoever is entitled to the task comes again with a higher fence.
pub fn raise(held: Option<Fence>, own: Fence) -> Result<Fence, ConnectorError> {
    match held {
        Some(held) if held >= own => Err(ConnectorError::transient(format!(
            "session {} is refused: the destination has been opened by session {}",
            name(own),
            name(held),
        ))),
        _ => Ok(own),
    }
}

/// Decides whether a session may still commit: only while the destination holds
/// its own fence.
///
/// # Errors
///
/// If another session has opened the destination since, or its record is gone.
pub fn check(held: Option<Fence>, own: Fence) -> Result<(), ConnectorError> {
    match held {
        Some(held) if held == own => Ok(()),
        Some(held) => Err(ConnectorError::transient(format!(
            "session {} is fenced off: the destination has been opened by session {}",
            name(own),
            name(held),
        ))),
        None => Err(ConnectorError::transient(format!(
            "session {} is fenced off: the destination's record of it is gone",
            name(own),
        ))),
    }
}

fn name(fence: Fence) -> String {
    format!("{}.{}", fence.epoch, fence.session)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fence((epoch, session): (u64, u64)) -> Fence {
        Fence { epoch, session }
    }

    #[test]
    fn only_a_higher_fence_opens_and_only_its_own_commits() {
        struct Case {
            held: Option<(u64, u64)>,
            own: (u64, u64),
            raises: bool,
            commits: bool,
        }
        let cases = [
            Case {
                held: None,
                own: (0, 0),
                raises: true,
                commits: false,
            },
            Case {
                held: Some((1, 1)),
                own: (1, 2),
                raises: true,
                commits: false,
            },
            Case {
                held: Some((1, 9)),
                own: (2, 0),
                raises: true,
                commits: false,
            },
            Case {
                held: Some((1, 1)),
                own: (1, 1),
                raises: false,
                commits: true,
            },
            Case {
                held: Some((1, 2)),
                own: (1, 1),
                raises: false,
                commits: false,
            },
            Case {
                held: Some((2, 0)),
                own: (1, 9),
                raises: false,
                commits: false,
            },
        ];
        for case in cases {
            let held = case.held.map(fence);
            let own = fence(case.own);
            assert_eq!(raise(held, own).is_ok(), case.raises, "{held:?} {own:?}");
            assert_eq!(check(held, own).is_ok(), case.commits, "{held:?} {own:?}");
        }
    }

    #[test]
    fn a_refusal_names_both_sessions() {
        let error = raise(Some(fence((3, 7))), fence((3, 6))).unwrap_err();
        assert_eq!(
            error.message,
            "session 3.6 is refused: the destination has been opened by session 3.7"
        );
    }
}
