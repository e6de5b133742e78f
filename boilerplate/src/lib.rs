//! What a connector's author links, so that a connector holds only what is
//! peculiar to its destination.
//!
//! A connector implements two traits: [`Connector`], which describes the
//! destination and opens a session, and [`Transactor`], the session. The
//! boilerplate does the rest:
//!
//! ```text
//! host -> guest -> Driver: order, JSON, batches, pacing -> Connector, Transactor -> destination
//! ```
//!
//! - the protocol's order, enforced once ([`driver`]);
//! - loads and stores out of packed batches, loaded documents into bounded ones
//!   ([`batch`]);
//! - whether the connector's own schedule paces, so that two never do
//!   ([`pacing`]); it applies to a connector whose config schema has a
//!   `syncSchedule` or an `uploadInterval`;
//! - state patches ([`state`]), fences ([`fence`]) and the claims to checkpoints ([`claim`]), SQL ([`sql`]), instants
//!   ([`instant`]), durable directories ([`directory`]), and the host's SQLite (`sqlite`) and network ([`net`], `http`);
//! - attempts that are made again after a pause ([`retry`]).
//!
//! # A connector
//!
//! One that keeps what it is given in memory, with a transaction of its life
//! through the native harness ([`testing`]):
//!
//! ```
//! use std::{cell::RefCell, collections::BTreeMap, rc::Rc};
//!
//! use serde_json::json;
//! use tidegate_boilerplate::testing::{Harness, binding, document, spec};
//! use tidegate_boilerplate::*;
//!
//! /// The destination: documents by key, and the checkpoint they are at.
//! #[derive(Default)]
//! struct Table {
//!     rows: BTreeMap<Vec<u8>, Vec<u8>>,
//!     checkpoint: Option<String>,
//!     fence: Option<Fence>,
//! }
//!
//! #[derive(Clone, Default)]
//! struct Memory(Rc<RefCell<Table>>);
//!
//! impl Connector for Memory {
//!     type Transactor = Session;
//!
//!     fn spec(&self) -> SpecResponse {
//!         SpecResponse {
//!             config_schema: json!({"type": "object", "additionalProperties": false}),
//!             resource_schema: json!({"type": "object", "additionalProperties": false}),
//!             documentation_url: "https://example.com/memory".to_owned(),
//!             wants: Wants::default(),
//!             defers_to_schedule: true,
//!             hard_delete_pointer: None,
//!             name_limits: NameLimits::default(),
//!         }
//!     }
//!
//!     fn validate(&self, request: &ValidateRequest) -> Result<ValidateResponse, ConnectorError> {
//!         let constraint = Constraint { kind: ConstraintKind::Recommended, reason: String::new() };
//!         let validated = |binding: &ValidateBinding| ValidatedBinding {
//!             resource_path: vec![binding.collection.clone()],
//!             delta_updates: false,
//!             constraints: binding
//!                 .projections
//!                 .iter()
//!                 .map(|projection| (projection.field.clone(), constraint.clone()))
//!                 .collect(),
//!         };
//!         Ok(ValidateResponse { bindings: request.bindings.iter().map(validated).collect() })
//!     }
//!
//!     fn apply(&self, _: &ApplyRequest) -> Result<ApplyResponse, ConnectorError> {
//!         Ok(ApplyResponse { actions: Vec::new(), patch: None })
//!     }
//!
//!     fn open(&self, request: &OpenRequest) -> Result<(Opened, Session), ConnectorError> {
//!         let mut table = self.0.borrow_mut();
//!         table.fence = Some(fence::raise(table.fence, request.fence)?);
//!         let opened = Opened {
//!             authority: Authority::Remote,
//!             guarantee: Guarantee::ExactlyOnce,
//!             checkpoint: table.checkpoint.clone(),
//!             jitter_key: None,
//!         };
//!         Ok((opened, Session { table: self.0.clone(), fence: request.fence, stored: Vec::new() }))
//!     }
//! }
//!
//! struct Session {
//!     table: Rc<RefCell<Table>>,
//!     fence: Fence,
//!     stored: Vec<(Vec<u8>, Option<Vec<u8>>)>,
//! }
//!
//! impl Transactor for Session {
//!     fn load(&mut self, _: u32, keys: Keys<'_>, loaded: &mut Loaded) -> Result<(), ConnectorError> {
//!         for key in keys {
//!             let key = key?;
//!             if let Some(document) = self.table.borrow().rows.get(key.tuple) {
//!                 loaded.push(key.ordinal, document);
//!             }
//!         }
//!         Ok(())
//!     }
//!
//!     fn store(&mut self, _: u32, stores: Stores<'_>) -> Result<(), ConnectorError> {
//!         for store in stores {
//!             let store = store?;
//!             let document = (!store.delete).then(|| store.document.to_vec());
//!             self.stored.push((store.key_tuple.to_vec(), document));
//!         }
//!         Ok(())
//!     }
//!
//!     fn start_commit(&mut self, checkpoint: &str) -> Result<Option<serde_json::Value>, ConnectorError> {
//!         let mut table = self.table.borrow_mut();
//!         fence::check(table.fence, self.fence)?;
//!         for (key, document) in self.stored.drain(..) {
//!             match document {
//!                 Some(document) => table.rows.insert(key, document),
//!                 None => table.rows.remove(&key),
//!             };
//!         }
//!         table.checkpoint = Some(checkpoint.to_owned());
//!         Ok(None)
//!     }
//! }
//!
//! // In the crate of the component, a `cdylib` for wasm32-wasip2.
//! tidegate_boilerplate::export!(Memory);
//!
//! let memory = Memory::default();
//! let spec = spec(json!({}), vec![binding("animals", json!({}), &[("id", &[JsonType::Integer])], &[("name", &[JsonType::String])])]);
//! let mut harness = Harness::of(memory.clone(), spec);
//! harness.open()?;
//! let cat = document(0, json!({"id": 1, "name": "cat"}));
//! harness.transact(&[cat], "checkpoint 1")?;
//! assert_eq!(memory.0.borrow().checkpoint.as_deref(), Some("checkpoint 1"));
//!
//! // An older session can no longer commit.
//! memory.0.borrow_mut().fence = Some(Fence { epoch: 9, session: 1 });
//! assert!(harness.transact(&[], "checkpoint 2").is_err());
//! # Ok::<(), ConnectorError>(())
//! ```

pub mod batch;
// Generated, and documented in `wit/connector.wit`.
#[allow(missing_docs)]
#[cfg(target_family = "wasm")]
pub mod bindings;
pub mod claim;
pub mod connector;
pub mod directory;
pub mod driver;
pub mod error;
pub mod fence;
#[cfg(target_family = "wasm")]
pub mod guest;
#[cfg(any(target_family = "wasm", feature = "native-http"))]
pub mod http;
pub mod instant;
pub mod net;
mod order;
pub mod pacing;
pub mod retry;
pub mod runtime;
pub mod sql;
#[cfg(any(target_family = "wasm", feature = "native-sqlite"))]
pub mod sqlite;
pub mod state;
#[cfg(not(target_family = "wasm"))]
pub mod testing;

pub use batch::{Key, Keys, Loaded, Store, Stores};
pub use connector::{Connector, Opened, Transactor};
pub use driver::{Driver, Protocol};
pub use error::{ConnectorError, ErrorKind};
pub use tidegate_wit::batch as packed;
pub use tidegate_wit::message::*;
pub use tidegate_wit::{text, tuple};

/// Makes a component of a connector, given by a type that is [`Connector`] and
/// [`Default`].
///
/// `export!(protocol T)` takes a type that is [`Protocol`] instead: a connector
/// that means to do without the [`Driver`]'s care. Outside of WebAssembly there
/// is nothing to export.
#[macro_export]
macro_rules! export {
    (protocol $protocol:ty) => {
        #[cfg(target_family = "wasm")]
        mod tidegate_export {
            #[allow(unused_imports)]
            use super::*;

            std::thread_local! {
                static INSTANCE: std::cell::RefCell<$protocol> = std::cell::RefCell::default();
            }

            struct Instance;

            impl $crate::guest::Instance for Instance {
                type Protocol = $protocol;

                fn with<R>(call: impl FnOnce(&mut $protocol) -> R) -> R {
                    INSTANCE.with_borrow_mut(call)
                }
            }

            type Component = $crate::guest::Component<Instance>;
            $crate::bindings::export!(Component with_types_in $crate::bindings);
        }
    };
    ($connector:ty) => {
        $crate::export!(protocol $crate::Driver<$connector>);
    };
}
