//! A shard: the pipeline that owns a connector instance. Data runtime.
//!
//! ```text
//! leader -> actor -> reader -> combiner -> connector -> destination
//!              '------- replies --------------'
//! ```

mod actor;
pub mod combine;
mod connector;
mod error;
mod left_out;
mod reader;
mod refusal;

pub use actor::{Reported, Request, Shard, ShardConfig};
pub use connector::{Answer, Connector};
pub use error::ShardError;
pub(crate) use left_out::{LeftOut, dead_letters_of, on_error_of};
pub(crate) use reader::Reader;
pub use reader::Window;
