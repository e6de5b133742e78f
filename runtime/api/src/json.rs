//! The JSON mapping of the protos: 64-bit integers are strings, enums are names,
//! instants are RFC 3339, and what is not set is left out.

use std::sync::LazyLock;

use prost::{Message, Name};
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};

use crate::error::{Code, Error};

/// The descriptors of `tidegate.v1`.
pub(crate) static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(crate::DESCRIPTORS).expect("the descriptors were just compiled")
});

fn descriptor<M: Name>() -> MessageDescriptor {
    let name = M::full_name();
    let found = POOL.get_message_by_name(&name);
    found.expect("every message is in the descriptors")
}

/// Writes a message.
pub fn to_json<M: Message + Name>(message: &M) -> Vec<u8> {
    let mut dynamic = DynamicMessage::new(descriptor::<M>());
    dynamic
        .transcode_from(message)
        .expect("a message is read by its own descriptor");
    serde_json::to_vec(&dynamic).expect("a message is JSON")
}

/// Reads a message. No text at all is a message without anything in it.
pub fn from_json<M: Message + Name + Default>(text: &[u8]) -> Result<M, Error> {
    if text.trim_ascii().is_empty() {
        return Ok(M::default());
    }
    let invalid = |error: serde_json::Error| {
        let message = format!("the request is no {}: {error}", M::NAME);
        Error::new(Code::InvalidArgument, message)
    };
    let mut reader = serde_json::Deserializer::from_slice(text);
    let dynamic = DynamicMessage::deserialize(descriptor::<M>(), &mut reader).map_err(invalid)?;
    reader.end().map_err(invalid)?;
    Ok(dynamic
        .transcode_to()
        .expect("a message is read by its own descriptor"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1;
    use crate::v1::sync_now_response::{Done, Outcome, Response};

    fn text<M: Message + Name>(message: &M) -> String {
        String::from_utf8(to_json(message)).unwrap()
    }

    #[test]
    fn mapping() {
        let mut response = v1::SyncNowResponse {
            response: Some(Response::Done(Done {
                committed_docs_total: u64::MAX,
                committed_bytes_total: 0,
                duration_millis: 1,
            })),
        };
        assert_eq!(
            text(&response),
            r#"{"done":{"committedDocsTotal":"18446744073709551615","durationMillis":"1"}}"#
        );
        response.response = Some(Response::Done(Done::default()));
        assert_eq!(text(&response), r#"{"done":{}}"#);
        let ack = v1::sync_now_response::Ack {
            outcome: Outcome::HeldCollapsed.into(),
            status: Some(v1::Status {
                head_phase: v1::head::Phase::StartCommit.into(),
                held_until: Some(prost_types::Timestamp {
                    seconds: 0,
                    nanos: 500_000_000,
                }),
                ..Default::default()
            }),
        };
        assert_eq!(
            text(&ack),
            r#"{"outcome":"HELD_COLLAPSED","status":{"headPhase":"START_COMMIT","heldUntil":"1970-01-01T00:00:00.500Z"}}"#
        );
    }

    #[test]
    fn requests() {
        let request: v1::SyncNowRequest =
            from_json(br#" {"task": "a/b", "through": "HEAD"} "#).unwrap();
        assert_eq!(request.task, "a/b");
        assert_eq!(request.through(), v1::sync_now_request::Through::Head);
        assert_eq!(from_json::<v1::SyncNowRequest>(b" \n").unwrap().task, "");
        for (text, want) in [
            (&br#"{"tusk": "a/b"}"#[..], "tusk"),
            (br#"{"task": 1}"#, "line 1"),
            (br#"{"task": "a"} {"#, "trailing"),
            (br#"{"task": "a""#, "EOF"),
            (br#"{"through": "TAIL"}"#, "TAIL"),
            (b"task=a", "line 1"),
            (b"\xff", "SyncNowRequest"),
        ] {
            let error = from_json::<v1::SyncNowRequest>(text).unwrap_err();
            assert_eq!(error.code, Code::InvalidArgument);
            assert!(error.message.contains(want), "{error}");
        }
    }
}
