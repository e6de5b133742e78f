//! Requests and responses that are not per document.
//!
//! All are JSON objects in camelCase. Responses must not carry properties that
//! the host does not know: a misspelled one would be silently without effect.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A declared message: its derives, and its JSON schema with feature `schemas`.
macro_rules! message {
    ($(#[$meta:meta])* pub struct $name:ident { $($body:tt)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        #[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
        pub struct $name { $($body)* }
    };
    ($(#[$meta:meta])* pub enum $name:ident { $($body:tt)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        #[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
        pub enum $name { $($body)* }
    };
}

message! {
    /// What a connector is: the response of `spec`.
    pub struct SpecResponse {
        /// JSON schema (draft 2020-12) of `endpoint...config`.
        pub config_schema: Value,
        /// JSON schema of a binding's `resource`.
        pub resource_schema: Value,
        /// Where people read about the connector.
        pub documentation_url: String,
        /// What the connector must reach.
        #[serde(default)]
        pub wants: Wants,
        /// Whether the connector stops its own pacing when the spec has a
        /// `syncSchedule`.
        #[serde(default)]
        pub defers_to_schedule: bool,
        /// Pointer into the config of a boolean: the default of a binding's
        /// `hardDelete`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub hard_delete_pointer: Option<String>,
        /// How long names may be.
        #[serde(default)]
        pub name_limits: NameLimits,
    }
}

message! {
    /// Config pointers that name what a connector must reach. What is not
    /// named here, or in the catalog's `allow`, is out of reach.
    #[derive(Default)]
    pub struct Wants {
        /// Pointers to `host:port` texts or URLs.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub network: Vec<String>,
        /// Pointers to paths. A named file grants its parent directory,
        /// read and write.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub directory: Vec<String>,
    }
}

message! {
    /// How long names may be in the destination.
    #[derive(Default)]
    pub struct NameLimits {
        /// Most bytes of UTF-8 in a field's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub field_bytes_max: Option<u32>,
    }
}

message! {
    /// A location in a collection's documents, under a name.
    pub struct Projection {
        /// The field's name.
        pub field: String,
        /// JSON pointer of the location; empty is the document itself.
        pub pointer: String,
        /// JSON types that the schema allows there, in alphabetical order.
        pub types: Vec<JsonType>,
        /// Whether every document has the location.
        #[serde(default)]
        pub required: bool,
        /// The schema's `format`, of text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub format: Option<String>,
        /// The schema's `contentEncoding`, of text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub content_encoding: Option<String>,
        /// What a document without the location has there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub default: Option<Value>,
        /// Whether the location is part of the collection's key.
        #[serde(default)]
        pub key: bool,
        /// The schema's `title` or `description`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub description: Option<String>,
    }
}

message! {
    /// JSON types, with integers told from fractional numbers.
    pub enum JsonType {
        /// `[...]`
        Array,
        /// `true`, `false`
        Boolean,
        /// A number without a fraction.
        Integer,
        /// `null`
        Null,
        /// Any number.
        Number,
        /// `{...}`
        Object,
        /// Text.
        String,
    }
}

message! {
    /// Asks whether and how bindings can be held.
    pub struct ValidateRequest {
        /// Name of the task.
        pub task: String,
        /// Endpoint configuration.
        pub config: Value,
        /// The bindings, in catalog order, disabled ones left out.
        pub bindings: Vec<ValidateBinding>,
        /// The spec that was applied last, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub last: Option<Spec>,
    }
}

message! {
    /// One binding of a [`ValidateRequest`].
    pub struct ValidateBinding {
        /// Name of the collection.
        pub collection: String,
        /// Resource configuration.
        pub resource: Value,
        /// Pointers of the collection's key.
        pub key: Vec<String>,
        /// Every location that can be selected.
        pub projections: Vec<Projection>,
        /// Raised to backfill the binding.
        #[serde(default)]
        pub backfill: u32,
    }
}

message! {
    /// Answers a [`ValidateRequest`].
    pub struct ValidateResponse {
        /// One for each binding of the request, in its order.
        pub bindings: Vec<ValidatedBinding>,
    }
}

message! {
    /// What a connector says of one binding.
    pub struct ValidatedBinding {
        /// Names the resource in the destination; no two bindings may share one.
        pub resource_path: Vec<String>,
        /// Whether rows are only added: nothing is loaded, one key may have
        /// many rows.
        #[serde(default)]
        pub delta_updates: bool,
        /// What may be selected, by field name.
        pub constraints: BTreeMap<String, Constraint>,
    }
}

message! {
    /// Whether a field may be selected, and why.
    pub struct Constraint {
        /// The rule.
        pub kind: ConstraintKind,
        /// A sentence for the catalog's author.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub reason: String,
    }
}

message! {
    /// How a connector takes a field.
    pub enum ConstraintKind {
        /// Must be selected.
        Required,
        /// Selected unless the catalog says otherwise.
        Recommended,
        /// Selected only if the catalog says so.
        Optional,
        /// Cannot be held.
        Forbidden,
        /// Was held before, and can no longer be: the binding must backfill.
        Incompatible,
    }
}

message! {
    /// A materialization as a connector sees it.
    pub struct Spec {
        /// Name of the task.
        pub task: String,
        /// Endpoint configuration.
        pub config: Value,
        /// The active bindings.
        pub bindings: Vec<SpecBinding>,
        /// The model's `syncSchedule`: with it, a connector must not pace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub sync_schedule: Option<Value>,
    }
}

message! {
    /// A binding as a connector sees it.
    pub struct SpecBinding {
        /// Name of the collection.
        pub collection: String,
        /// Resource configuration.
        pub resource: Value,
        /// What `validate` returned.
        pub resource_path: Vec<String>,
        /// Whether rows are only added.
        #[serde(default)]
        pub delta_updates: bool,
        /// Raised to backfill the binding: a resource of a lower counter is
        /// made anew.
        #[serde(default)]
        pub backfill: u32,
        /// The fields of the key tuple.
        pub key: Vec<Projection>,
        /// The fields of the values tuple.
        pub values: Vec<Projection>,
        /// The field that holds the whole document, if it is selected.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub document: Option<String>,
    }
}

message! {
    /// Asks to bring the destination from one spec to the next.
    pub struct ApplyRequest {
        /// The spec that was applied last, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub last: Option<Spec>,
        /// The spec to apply.
        pub next: Spec,
        /// The connector's state.
        #[serde(default)]
        pub state: Value,
        /// Say what would be done, and do nothing.
        #[serde(default)]
        pub dry_run: bool,
    }
}

message! {
    /// Answers an [`ApplyRequest`].
    pub struct ApplyResponse {
        /// What was done, a statement or sentence each; empty if nothing was.
        #[serde(default)]
        pub actions: Vec<String>,
        /// Merge patch (RFC 7396) to the connector's state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub patch: Option<Value>,
    }
}

message! {
    /// A part of a task's key space: key hashes from `begin` to `end`, both
    /// included.
    #[derive(Eq, PartialOrd, Ord)]
    pub struct KeyRange {
        /// The first hash.
        pub begin: u32,
        /// The last hash.
        pub end: u32,
    }
}

impl KeyRange {
    /// The whole key space: the range of a task with one shard.
    pub const FULL: KeyRange = KeyRange {
        begin: 0,
        end: u32::MAX,
    };
}

message! {
    /// Orders the sessions of a task: compare the epoch first.
    #[derive(Copy, Eq, PartialOrd, Ord)]
    pub struct Fence {
        /// Raised when another host takes the task over.
        pub epoch: u64,
        /// Raised at every open.
        pub session: u64,
    }
}

message! {
    /// Starts a session.
    pub struct OpenRequest {
        /// What to materialize.
        pub spec: Spec,
        /// The shard's part of the key space.
        pub range: KeyRange,
        /// The connector's state, of this shard.
        #[serde(default)]
        pub state: Value,
        /// The checkpoint that the host has, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub checkpoint: Option<String>,
        /// Strictly higher at every open.
        pub fence: Fence,
    }
}

message! {
    /// Answers an [`OpenRequest`].
    pub struct OpenResponse {
        /// Who knows what is committed.
        pub authority: Authority,
        /// What holds after a crash.
        pub guarantee: Guarantee,
        /// The destination's checkpoint, of a remote authority.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub checkpoint: Option<String>,
        /// Tasks that return the same text commit at the same instants.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub jitter_key: Option<String>,
        /// The connector's own pacing, if it is to pace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub pacing: Option<Pacing>,
    }
}

message! {
    /// Who knows what is committed.
    pub enum Authority {
        /// The destination: it stores the checkpoint within its own commit,
        /// and has committed when `start-commit` returns.
        Remote,
        /// The host's log: `start-commit` stages, `acknowledge` applies,
        /// idempotently.
        Log,
    }
}

message! {
    /// What holds after a crash.
    pub enum Guarantee {
        /// Every document counts once.
        ExactlyOnce,
        /// A document may count more than once.
        AtLeastOnce,
    }
}

message! {
    /// A connector's own pacing, decided by the boilerplate and waited for by
    /// the host.
    pub struct Pacing {
        /// The config's `syncSchedule`, or the default.
        pub schedule: Value,
    }
}

message! {
    /// The transaction is durable at the host.
    pub struct AcknowledgeRequest {
        /// State patches of the committed transaction, of this shard.
        #[serde(default)]
        pub patches: Vec<Value>,
        /// Whether the transaction is of an earlier session.
        #[serde(default)]
        pub recovery: bool,
        /// How many documents each of the last five transactions stored that
        /// stored any, oldest first.
        #[serde(default)]
        pub stored_counts: Vec<u64>,
    }
}

message! {
    /// Answers an [`AcknowledgeRequest`].
    #[derive(Default)]
    pub struct AcknowledgeResponse {
        /// Merge patch (RFC 7396) to the connector's state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub patch: Option<Value>,
        /// Whether the host is to hold the acknowledgement by
        /// [`OpenResponse::pacing`].
        #[serde(default)]
        pub pace: bool,
    }
}
