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
mod reader;

pub use actor::{Reported, Request, Shard, ShardConfig};
pub use connector::{Answer, Connector};
pub use error::ShardError;
pub(crate) use reader::Reader;
pub use reader::Window;
