//! What a connector's author writes.
//!
//! ```text
//! spec, validate, apply    any number of times
//! open -> Transactor:      load* flush* store* start_commit acknowledge, again and again
//! ```
//!
//! The [`Driver`](crate::Driver) calls in no other order. A method that returns
//! an error ends the session; a destination's transaction that is still open is
//! to be rolled back when the transactor is dropped.

use serde_json::Value;

use crate::batch::{Keys, Loaded, Stores};
use crate::error::ConnectorError;
use crate::{
    ApplyRequest, ApplyResponse, Authority, Guarantee, OpenRequest, SpecResponse, ValidateRequest,
    ValidateResponse,
};

/// Describes a destination and opens sessions to it.
pub trait Connector {
    /// A session.
    type Transactor: Transactor;

    /// Says what the connector is. Called without any grant, so nothing can be
    /// reached.
    fn spec(&self) -> SpecResponse;

    /// Says whether and how each field of each binding can be held.
    ///
    /// # Errors
    ///
    /// If the configuration is wrong. A field that cannot be held is not an error
    /// but a constraint.
    fn validate(&self, request: &ValidateRequest) -> Result<ValidateResponse, ConnectorError>;

    /// Brings the destination from the last spec to the next. Applying twice does
    /// nothing more; a dry run does nothing at all.
    ///
    /// # Errors
    ///
    /// If the destination cannot be brought there.
    fn apply(&self, request: &ApplyRequest) -> Result<ApplyResponse, ConnectorError>;

    /// Starts a session, after fencing every older one ([`fence`](crate::fence)).
    ///
    /// # Errors
    ///
    /// If the destination cannot be reached, or has seen this fence or a higher
    /// one.
    fn open(&self, request: &OpenRequest) -> Result<(Opened, Self::Transactor), ConnectorError>;
}

/// What a connector says of a session. Pacing is not its business.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Who knows what is committed.
    pub authority: Authority,
    /// What holds after a crash.
    pub guarantee: Guarantee,
    /// The destination's checkpoint, of a remote authority.
    pub checkpoint: Option<String>,
    /// Tasks that return the same text commit at the same instants: for
    /// destinations that cost by the time they are awake.
    pub jitter_key: Option<String>,
}

/// A session: one transaction after the other.
///
/// `binding` is an index into the spec's bindings, and in range.
pub trait Transactor {
    /// Looks keys up and pushes the documents of those that exist.
    ///
    /// What is not pushed here must be pushed in [`flush`](Self::flush): all of it,
    /// or what [`Loaded::is_full`] made too much. Called for standard bindings only,
    /// perhaps while the last transaction is not acknowledged yet.
    ///
    /// # Errors
    ///
    /// If the destination cannot tell.
    fn load(
        &mut self,
        binding: u32,
        keys: Keys<'_>,
        loaded: &mut Loaded,
    ) -> Result<(), ConnectorError>;

    /// Pushes documents of keys that [`load`](Self::load) put off; called until it
    /// pushes none.
    ///
    /// # Errors
    ///
    /// If the destination cannot tell.
    fn flush(&mut self, binding: u32, loaded: &mut Loaded) -> Result<(), ConnectorError> {
        let _ = (binding, loaded);
        Ok(())
    }

    /// Takes documents for the destination, in key order, each key once a
    /// transaction.
    ///
    /// # Errors
    ///
    /// If the destination refuses, or cannot hold a document.
    fn store(&mut self, binding: u32, stores: Stores<'_>) -> Result<(), ConnectorError>;

    /// Commits what was stored together with the checkpoint, if the destination is
    /// the authority and the session's fence still holds; else stages it, and
    /// returns a state patch that names the staged work.
    ///
    /// # Errors
    ///
    /// If it is not committed, or not staged.
    fn start_commit(&mut self, checkpoint: &str) -> Result<Option<Value>, ConnectorError>;

    /// Applies what was staged, idempotently: `patches` are those of the committed
    /// transaction. In a `recovery` it is of an earlier session.
    ///
    /// # Errors
    ///
    /// If it is not applied.
    fn acknowledge(
        &mut self,
        patches: &[Value],
        recovery: bool,
    ) -> Result<Option<Value>, ConnectorError> {
        let _ = (patches, recovery);
        Ok(None)
    }
}
