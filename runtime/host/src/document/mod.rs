//! Documents: their numbers, keys, fields and reductions.
