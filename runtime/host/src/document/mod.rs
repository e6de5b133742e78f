//! Documents: their parsing, schemas, keys, fields and reductions.
//!
//! ```text
//! text -> parse -> Document -+-> Checker    does it fit the collection's schema?
//!                            +-> Extractor  tuples of its key and of its values
//!                            +-> Reducer    several documents of one key -> one
//! ```
//!
//! A number keeps its text until somebody needs a value, and then the value is
//! exact: an integer above 2^53 or an amount of money that passed through a
//! double would come out as another number.
//!
//! Nothing here knows about bindings, transactions or destinations.

mod check;
mod decimal;
mod extract;
mod parse;
mod pointer;
mod reduce;
mod value;

pub use check::{Checker, SchemaError, Violation};
pub use decimal::{Decimal, INTEGER_DIGITS_MAX, Integer};
pub use extract::{Extractor, FieldError, FieldProblem, ProjectionError};
pub use parse::{DEPTH_MAX, DOCUMENT_BYTES_MAX, Document, NUMBER_BYTES_MAX, ParseError, Tape};
pub use pointer::{Found, Locations, Locator, Pointer, PointerError};
pub use reduce::{ReduceError, Reducer, SUM_DIGITS_MAX, StrategyError, StrategyProblem};
pub use value::{Elements, Kind, Members, Value};

/// Most bytes of a value that an error message repeats: enough to recognise
/// it, and not a page of log for one wrong field.
pub const SHOWN_BYTES_MAX: usize = 120;

/// Cuts text to what an error message repeats.
pub fn shown(text: &str) -> String {
    if text.len() <= SHOWN_BYTES_MAX {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(SHOWN_BYTES_MAX);
    format!("{}... ({} bytes)", &text[..end], text.len())
}
