//! A shard: the pipeline that owns a connector instance.

pub mod combine;
