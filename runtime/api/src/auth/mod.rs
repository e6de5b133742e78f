//! Who may do what.
//!
//! ```text
//! Authorization: Bearer TOKEN -> keys -> signature, expiry -> Claims
//!                                                   scope, names <- call
//! ```
//!
//! A missing scope is PERMISSION_DENIED, whatever the call names; a name that is
//! not the caller's is NOT_FOUND, in the words for one that does not exist.

mod claims;
mod hmac;
mod keys;
mod token;

pub use claims::{Claims, Scope};
pub use keys::{KeyError, Keys};
pub use token::{MintError, Verifier, mint, now};
